"""Seconds for one suggestion: fitbo beside Optuna's GPSampler and BoTorch, in one run.

    python -m pip install -e ".[peers]"
    python benchmarks/suggest.py                # writes results/suggest/
    python benchmarks/suggest.py --only fitbo   # without the peers

One thread each. Every optimiser sees the same n values of Hartmann-6D at the same Sobol points.
fitbo is timed in its steady state, with the sampler warm from the value before, and each peer as
its documentation uses it: Optuna's ``GPSampler(deterministic_objective=True)``, BoTorch's
``SingleTaskGP`` fitted by ``fit_gpytorch_mll`` with ``LogExpectedImprovement`` maximised from 512
raw samples and 10 restarts, and its ``SaasFullyBayesianSingleTaskGP`` by NUTS with the defaults.
"""

from __future__ import annotations

from common import ROOT, one_thread, peak_memory, versions, write

one_thread()

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy.stats import qmc

from fitbo.entropy import BACKENDS
from fitbo.inference.settings import Settings
from fitbo.problems import problem
from fitbo.space import Space
from fitbo.study import Study

RESULTS = ROOT / "results" / "suggest"
HARTMANN = problem("hartmann6")
DIM = HARTMANN.dim


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    X = qmc.Sobol(DIM, scramble=True, rng=np.random.default_rng(0)).random_base2(10)[: n + 1]
    return X, HARTMANN.fun(X)


def fitbo(
    n: int, repeats: int, entropy: str = "memel", acquisition: str = "fitbo"
) -> dict[str, float]:
    """Median seconds of a suggestion and of its parts; the sampler is warm from n - 1 values.

    ``acquisition`` is the turn: the gain's own, or ``logei``, the expected improvement's.
    """
    X, y = data(n)
    runs: list[dict[str, float]] = []
    warm = None  # a cold start takes many times a suggestion: one serves every repeat
    for seed in range(repeats):
        turn = {"acquisition": acquisition, "etas": 5, "exploit": 0}
        settings = Settings(seed=seed, n_initial=1, n_samples=200, entropy=entropy, **turn)
        study = Study(Space([(0, 1)] * DIM), settings, ensemble=warm)
        for x, value in zip(X[: n - 1], y[: n - 1], strict=True):
            study.tell(x, value)
        study.fit()
        warm = study.ensemble
        study.tell(X[n - 1], y[n - 1])
        start = time.perf_counter()
        study.ask()
        runs.append({"total": time.perf_counter() - start, **study.seconds})
    return {key: float(np.median([run[key] for run in runs])) for key in runs[0]}


def gpsampler(n: int, repeats: int) -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    X, y = data(n)
    space = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(DIM)}
    times = []
    for seed in range(repeats):
        sampler = optuna.samplers.GPSampler(seed=seed, deterministic_objective=True)
        study = optuna.create_study(sampler=sampler)
        for x, value in zip(X[: n - 1], y[: n - 1], strict=True):
            params = {f"x{i}": float(v) for i, v in enumerate(x)}
            study.add_trial(
                optuna.trial.create_trial(params=params, distributions=space, value=float(value))
            )
        study.ask(space)  # its own hyperparameters are warm too, as in a running study
        params = {f"x{i}": float(v) for i, v in enumerate(X[n - 1])}
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=space, value=float(y[n - 1]))
        )
        start = time.perf_counter()
        study.ask(space)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def botorch_logei(n: int, repeats: int) -> float:
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    X, y = data(n)
    train_x = torch.tensor(X[:n], dtype=torch.double)
    train_y = torch.tensor(-y[:n, None], dtype=torch.double)
    bounds = torch.stack([torch.zeros(DIM), torch.ones(DIM)]).double()
    times = []
    for seed in range(repeats):
        torch.manual_seed(seed)
        start = time.perf_counter()
        model = SingleTaskGP(train_x, train_y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        best = LogExpectedImprovement(model, best_f=train_y.max())
        optimize_acqf(best, bounds=bounds, q=1, num_restarts=10, raw_samples=512)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def botorch_bayesian(n: int, repeats: int) -> float:
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_fully_bayesian_model_nuts
    from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
    from botorch.optim import optimize_acqf

    torch.set_num_threads(1)
    X, y = data(n)
    train_x = torch.tensor(X[:n], dtype=torch.double)
    values = torch.tensor(-y[:n, None], dtype=torch.double)
    train_y = (values - values.mean()) / values.std()
    bounds = torch.stack([torch.zeros(DIM), torch.ones(DIM)]).double()
    times = []
    for seed in range(repeats):
        torch.manual_seed(seed)
        start = time.perf_counter()
        model = SaasFullyBayesianSingleTaskGP(train_x, train_y)
        fit_fully_bayesian_model_nuts(model, disable_progbar=True)
        best = LogExpectedImprovement(model, best_f=train_y.max())
        optimize_acqf(best, bounds=bounds, q=1, num_restarts=10, raw_samples=512)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def memory(n: int, n_samples: int, dim: int) -> float:
    """Megabytes allocated at the worst moment of one suggestion."""
    rng = np.random.default_rng(0)
    study = Study(Space([(0, 1)] * dim), Settings(n_initial=1, n_samples=n_samples))
    X = rng.random((n, dim))
    for x in X:
        study.tell(x, float(((x - 0.3) ** 2).sum() + np.sin(9 * x[0])))
    return peak_memory(study.ask)


def attempt(run: Callable[[int, int], float], n: int, repeats: int) -> float | None:
    try:
        return run(n, repeats)
    except ImportError as error:
        print(f"left out: {error}; pip install 'fitbo[peers]'")
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["fitbo", "all"], default="all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 50, 100, 200, 400])
    parser.add_argument("--bayesian-at", type=int, nargs="*", default=[100])
    arguments = parser.parse_args()
    peers = arguments.only == "all"
    rows: list[dict[str, object]] = []
    for n in arguments.sizes:
        row: dict[str, object] = {"n": n, **fitbo(n, arguments.repeats)}
        row["improvement"] = fitbo(n, arguments.repeats, acquisition="logei")["total"]
        if peers:
            row["gpsampler"] = attempt(gpsampler, n, arguments.repeats)
            row["logei"] = attempt(botorch_logei, n, arguments.repeats)
            row["saas"] = attempt(botorch_bayesian, n, 1) if n in arguments.bayesian_at else None
        rows.append(row)
        print(row, flush=True)
    split = {name: fitbo(100, 3, entropy=name) for name in BACKENDS}
    write(RESULTS, "table", table(rows, split, memory(400, 400, 10)), rows)


def cell(value: object, unit: object = None) -> str:
    if not isinstance(value, float):
        return ""
    if unit is None:
        return f"{value:.2f}"
    return f"{value:.2f} ({value / unit:.1f} x)" if isinstance(unit, float) else f"{value:.2f}"


def table(
    rows: list[dict[str, object]], split: dict[str, dict[str, float]], megabytes: float
) -> list[str]:
    """Markdown."""
    used = versions("numpy", "optuna", "botorch", "torch")
    lines = [
        "# One suggestion",
        "",
        f"Made by `python benchmarks/suggest.py`, one thread, {used}.",
        "Hartmann-6D at n Sobol points, M = 200, `entropy: memel`; seconds, and in brackets the",
        "ratio to fitbo's total in the same row. 'fitbo' is a turn of the information gain, its",
        "parts beside it; 'EI' is a turn of the expected improvement, as three of four are.",
        "",
        "| n | fitbo | MCMC | search | of it entropy | EI | GPSampler | BoTorch LogEI | SAAS |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        total = row["total"]
        lines.append(
            f"| {row['n']} | {cell(total)} | {cell(row['mcmc'])} | {cell(row['search'])} "
            f"| {cell(row['entropy'])} | {cell(row['improvement'])} "
            f"| {cell(row.get('gpsampler'), total)} "
            f"| {cell(row.get('logei'), total)} | {cell(row.get('saas'), total)} |"
        )
    lines += [
        "",
        "Where the time goes for each entropy backend, n = 100:",
        "",
        "| entropy | total | MCMC | search | of it entropy |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, run in split.items():
        lines.append(
            f"| {name} | {cell(run['total'])} | {cell(run['mcmc'])} | {cell(run['search'])} "
            f"| {cell(run['entropy'])} |"
        )
    lines += ["", f"Peak memory of a suggestion at n = 400, M = 400, d = 10: {megabytes:.0f} MB."]
    return lines


if __name__ == "__main__":
    main()
