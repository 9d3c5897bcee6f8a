"""Seconds for one suggestion: fitbo beside Optuna's GPSampler and BoTorch, in one run.

    python -m pip install -e ".[peers]"
    python benchmarks/suggest.py                # writes results/suggest/
    python benchmarks/suggest.py --only fitbo   # without the peers

One thread each. Every optimiser sees the same n values at the same Sobol points: Hartmann-6D, in
three dimensions Hartmann-3D, in others Ackley. Figures up to n = 400 are medians of ``--repeats``
runs, fitbo's and the peers' in turns. fitbo is timed cold, the first fit and suggestion of a study
that holds n values already, and warm, the mean of twelve suggestions of a running study, one value
after another: two of three are in the trust region, by a model of its own, and the others fit the
whole, so that the occasional moves of its sampler count. The peers are used as their documentation
says, and all are told that there is no noise where they can be: Optuna's
``GPSampler(deterministic_objective=True)``, in a running study, and BoTorch's ``SingleTaskGP``
fitted by ``fit_gpytorch_mll`` with ``LogExpectedImprovement`` maximised from 512 raw samples and 10
restarts.
"""

from __future__ import annotations

from common import ROOT, one_thread, peak_memory, versions, write

one_thread()

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import qmc

from fitbo.inference.settings import Settings
from fitbo.problems import problem
from fitbo.space import Space
from fitbo.study import Study

RESULTS = ROOT / "results" / "suggest"
WARM = 12  # suggestions, four of them in the whole cube
MANY = 400  # values: beyond, one run of each, and none of GPSampler
CASES = (
    (50, 6),
    (100, 6),
    (200, 6),
    (300, 3),
    (400, 6),
    (1000, 6),
    (2000, 6),
    (100, 20),
    (100, 50),
)


def data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    named = {6: "hartmann6", 3: "hartmann3"}
    f = problem(named[d]) if d in named else problem("ackley", dim=d)
    size = 1 << (n + WARM - 1).bit_length()
    U = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(0)).random(size)[: n + WARM]
    return U, f.fun(f.space.from_cube(U))


def turn(n: int, d: int, seed: int, only: str) -> dict[str, float]:
    """A row: one run of each optimiser."""
    row = {"n": float(n), "d": float(d), **fitbo(n, d, seed)}
    if only == "all":
        row["gpsampler"] = attempt(gpsampler, n, d, seed) if n <= MANY else float("nan")
        row["logei"] = attempt(botorch_logei, n, d, seed)
    return row


def fitbo(n: int, d: int, seed: int = 0) -> dict[str, float]:
    """Seconds of the first suggestion, and the means of those after it and of their fits."""
    X, y = data(n, d)
    study = Study(Space([(0, 1)] * d), Settings(n_initial=1, deterministic=True, seed=seed))
    for x, value in zip(X[:n], y[:n], strict=True):
        study.tell(x, value)
    start = time.perf_counter()
    study.fit()  # which a suggestion in the trust region would not need
    study.forget(study.ask()[0])
    found = {"cold": time.perf_counter() - start}
    found["settled"] = float(study.fit().samples.diagnostics.settled)
    warm, fits, moves = 0.0, 0.0, 0
    for x, value in zip(X[n:], y[n:], strict=True):
        study.tell(x, value)
        study.seconds.clear()
        start = time.perf_counter()
        study.forget(study.ask()[0])
        warm += time.perf_counter() - start
        fits += study.seconds.get("mcmc", 0.0)
        moves += study.ensemble is not None and study.ensemble.n == len(study.y)
    return found | {"warm": warm / WARM, "fit": fits / WARM, "moves": float(moves)}


def gpsampler(n: int, d: int, seed: int) -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    X, y = data(n, d)
    space = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(d)}
    sampler = optuna.samplers.GPSampler(seed=seed, deterministic_objective=True)
    study = optuna.create_study(sampler=sampler)

    def add(x: np.ndarray, value: float) -> None:
        params = {f"x{i}": float(v) for i, v in enumerate(x)}
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=space, value=float(value))
        )

    for x, value in zip(X[: n - 1], y[: n - 1], strict=True):
        add(x, value)
    study.ask(space)  # its own hyperparameters are warm too, as in a running study
    add(X[n - 1], y[n - 1])
    start = time.perf_counter()
    study.ask(space)
    return time.perf_counter() - start


def botorch_logei(n: int, d: int, seed: int) -> float:
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    X, y = data(n, d)
    train_x = torch.tensor(X[:n], dtype=torch.double)
    train_y = torch.tensor(-y[:n, None], dtype=torch.double)
    bounds = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    torch.manual_seed(seed)
    start = time.perf_counter()
    model = SingleTaskGP(train_x, train_y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    best = LogExpectedImprovement(model, best_f=train_y.max())
    optimize_acqf(best, bounds=bounds, q=1, num_restarts=10, raw_samples=512)
    return time.perf_counter() - start


def memory(n: int, n_samples: int, dim: int) -> float:
    """Megabytes allocated at the worst moment of one suggestion."""
    rng = np.random.default_rng(0)
    settings = Settings(n_initial=1, n_samples=n_samples, deterministic=True)
    study = Study(Space([(0, 1)] * dim), settings)
    X = rng.random((n, dim))
    for x in X:
        study.tell(x, float(((x - 0.3) ** 2).sum() + np.sin(9 * x[0])))
    return peak_memory(study.ask)


def attempt(run: Callable[[int, int, int], float], n: int, d: int, seed: int) -> float:
    try:
        return run(n, d, seed)
    except ImportError as error:
        print(f"left out: {error}; pip install 'fitbo[peers]'")
        return float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["fitbo", "all"], default="all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--most", type=int, default=2000, help="values of the largest case")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    turn(20, 2, 0, arguments.only)  # what is imported when first used is not timed
    rows: list[dict[str, float]] = []
    for n, d in CASES:
        if n > arguments.most:
            continue
        seeds = range(arguments.repeats if n <= MANY else 1)
        turns = [turn(n, d, seed, arguments.only) for seed in seeds]
        rows.append({key: float(np.median([each[key] for each in turns])) for key in turns[0]})
        print({key: round(value, 3) for key, value in rows[-1].items()}, flush=True)
    six = [row for row in rows if row["d"] == 6]
    slope = np.polyfit(*(np.log([row[key] for row in six]) for key in ("n", "warm")), 1)[0]
    megabytes = memory(min(1000, arguments.most), 200, 6)
    command = "python benchmarks/suggest.py"
    command += f" --most {arguments.most}" if arguments.most < max(n for n, _ in CASES) else ""
    write(arguments.output, "table", table(command, rows, float(slope), megabytes), rows)


def cell(value: float, unit: float = 1.0) -> str:
    return "" if np.isnan(value / unit) else f"{value / unit:.2g}"


def table(command: str, rows: list[dict[str, float]], slope: float, megabytes: float) -> list[str]:
    """Markdown."""
    used = versions("numpy", "optuna", "botorch", "torch")
    lines = [
        "# One suggestion",
        "",
        f"Made by `{command}`, one thread, {used}. M = 200. Seconds of the",
        "first fit and suggestion (cold), of the next ones (warm, the mean of twelve, with the",
        "part of it that is the fit, and how often the sampler moved), of the peers, and ratios.",
        "",
        "| n | d | cold | settled | warm | fit | moves | GPSampler | LogEI | cold / LogEI "
        "| warm / GPSampler | warm / LogEI |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        gp, ei = row.get("gpsampler", np.nan), row.get("logei", np.nan)
        facts = [f"{row['n']:.0f}", f"{row['d']:.0f}", cell(row["cold"])]
        facts += ["yes" if row["settled"] else "no", cell(row["warm"]), cell(row["fit"])]
        facts += [f"{row['moves']:.0f} of {WARM}", cell(gp), cell(ei), cell(row["cold"], ei)]
        lines.append(f"| {' | '.join([*facts, cell(row['warm'], gp), cell(row['warm'], ei)])} |")
    return [
        *lines,
        "",
        f"Growth of the warm suggestion in six dimensions: n^{slope:.2f}.",
        f"Peak memory of a suggestion at n = 1000, M = 200, d = 6: {megabytes:.0f} MB.",
    ]


if __name__ == "__main__":
    main()
