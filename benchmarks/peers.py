"""Regret of the optimisers people use, on fitbo's problems and in its campaigns' journals.

    python -m pip install -e ".[peers]"
    python benchmarks/peers.py --problems hartmann6 levy:4 --peers gpsampler logei --seeds 0:10
    python benchmarks/peers.py --peers fitbo-memel fitbo-quad fitbo-mm
    fitbo report results/peers

Every rival is given the problem object, the 2d Sobol points, the noise and the budget that
``fitbo.runs.campaign`` gives a study of the same seed, and one thread. Its journal goes to
``results/peers/<problem>/<method>/<seed>.jsonl``, where fitbo's own are, so that one report draws
all. Run the same command again to go on where a killed one stopped:
all chance comes from (seed, n, purpose), and what else a rival remembers is in its rows.

Each has its best documented setting, and knows whether there is noise, though not how much:

=========  =========================================================================================
random     uniform in the box.
tpe        Optuna's ``TPESampler(multivariate=True)``: "reported to outperform the independent TPE".
gpsampler  Optuna's ``GPSampler``, ``deterministic_objective`` without noise; its kernel parameters
           start from those of the fit before, as in one running study.
logei      BoTorch's ``SingleTaskGP`` on the unit cube and standardised values. Without noise the
           observation variance is fixed at 1e-6 and ``LogExpectedImprovement`` maximised; with it
           the variance is inferred and ``qLogNoisyExpectedImprovement`` maximised.
gibbon     The same model, ``qLowerBoundMaxValueEntropy`` on 1000 uniform candidates (its tutorial).
jes        The same model, ``qJointEntropySearch`` by its lower bound ("recommended"), given the
           optima of 12 paths (its tutorial; 64 cost six times as much, some 30 s at n = 100).
=========  =========================================================================================

``gpsampler-exact`` and ``logei-exact`` are told that there is no noise when there is, against their
documentation: where noise is faint, to infer it can be worse, as a rough function is taken for it.

No rival draws points of its own before its model: the design stands for its startup trials.
BoTorch's acquisitions are maximised as in its tutorials, 512 raw samples and 10 restarts, with more
raw samples about the best points (``sample_around_best``), for narrow optima are missed without.

Recommended is the minimiser of the rival's own posterior mean, searched from Sobol points and the
best observed. Optuna publishes none, but ``GPSampler`` keeps its regressor, and that has one. Best
observed for TPE and random, which have no mean, and for all within the design.

In the rows ``seconds.mcmc`` is that of the fit to n values, ``search`` of the acquisition that led
to the n-th; GPSampler's two are one call, under ``mcmc``. A rival that raises gets a random point,
or the best observed for its recommendation, and the row says why under ``fallback``.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
# glibc gives torch's large arrays back to the system and asks for them again at each step, which is
# a third of the time of JES. The workers, which read this as they start, keep theirs.
os.environ.update(MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_=str(1 << 33))

import argparse
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import yaml

from fitbo.config.build import build_problem
from fitbo.config.campaign import Campaign, Executor, ProblemConfig
from fitbo.config.method import EntropyConfig, MethodConfig
from fitbo.inference.settings import Settings
from fitbo.mixture import Array
from fitbo.problems import Problem
from fitbo.records.journal import Busy, Writer
from fitbo.runs import campaign
from fitbo.runs.campaign import NOISE_STREAM, Task
from fitbo.runs.executors import open_executor
from fitbo.study import Study

RESULTS = Path(__file__).parent.parent / "results"
PEER_STREAM = 200  # apart from a study's purposes and from the noise
FIT, SUGGEST, RECOMMEND = range(3)
NOISELESS = 1e-6  # observation variance of standardised values; GPyTorch's least in double
RAW_SAMPLES, RESTARTS, CANDIDATES, OPTIMA = 512, 10, 1000, 12

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Data:
    """What a rival is shown after n evaluations; ``warm`` is what it noted one evaluation ago."""

    U: Array  # (n, d), in the unit cube
    y: Array  # (n,)
    n_initial: int
    noisy: bool
    seed: int
    warm: Sequence[float] | None = None

    def rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, PEER_STREAM, len(self.y), purpose])

    def integer(self, purpose: int) -> int:
        return int(self.rng(purpose).integers(2**31))

    @property
    def score(self) -> Array:
        """Standardised -y, to be maximised."""
        return (self.y.mean() - self.y) / max(self.y.std(ddof=1), 1e-12)


@dataclass(frozen=True)
class Model:
    """What a rival makes of the data: points of the cube, (d,), and a note for its next fit."""

    suggest: Callable[[], Array]
    recommend: Callable[[], Array] | None = None  # None: there is no mean, the best observed serves
    note: list[float] | None = None


def random(data: Data) -> Model:
    return Model(lambda: data.rng(SUGGEST).random(data.U.shape[1]))


def tpe(data: Data) -> Model:
    import optuna

    def suggest() -> Array:
        return ask(
            optuna.samplers.TPESampler(
                multivariate=True, n_startup_trials=data.n_initial, seed=data.integer(SUGGEST)
            ),
            data,
        )

    return Model(suggest)


def gpsampler(data: Data) -> Model:
    import optuna
    import torch
    from optuna._gp import acqf, optim_mixed, search_space

    class PosteriorMean(acqf.BaseAcquisitionFunc):  # type: ignore[misc]
        def eval_acqf(self, x: Any) -> Any:
            return regressor.posterior(x)[0]

    with warnings.catch_warnings():  # of deterministic_objective, whose interface may change
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.GPSampler(
            n_startup_trials=data.n_initial,
            deterministic_objective=not data.noisy,
            seed=data.integer(SUGGEST),
        )
    if data.warm is not None:
        *inverse, scale, noise = torch.tensor(data.warm, dtype=torch.float64)
        start = SimpleNamespace(
            inverse_squared_lengthscales=torch.stack(inverse), kernel_scale=scale, noise_var=noise
        )
        sampler._gprs_cache_list = [start]
    u = ask(sampler, data)
    (regressor,) = sampler._gprs_cache_list

    def recommend() -> Array:
        best = np.argsort(data.y, kind="stable")[: RESTARTS // 2]
        found, _ = optim_mixed.optimize_acqf_mixed(
            PosteriorMean(regressor.length_scales, search_space.SearchSpace(unit_cube(data))),
            warmstart_normalized_params_array=data.U[best],
            n_preliminary_samples=RAW_SAMPLES,
            n_local_search=RESTARTS,
            tol=1e-8,
            rng=np.random.RandomState(data.integer(RECOMMEND)),
        )
        return found

    kernel = regressor.inverse_squared_lengthscales, regressor.kernel_scale, regressor.noise_var
    return Model(lambda: u, recommend, torch.hstack(kernel).tolist())


def unit_cube(data: Data) -> dict[str, Any]:
    from optuna.distributions import FloatDistribution

    return {f"x{i}": FloatDistribution(0, 1) for i in range(data.U.shape[1])}


def ask(sampler: Any, data: Data) -> Array:
    """The point that an Optuna sampler suggests in a study that holds the data."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = unit_cube(data)
    study = optuna.create_study(sampler=sampler)
    study.add_trials(
        optuna.trial.create_trial(
            params=dict(zip(space, u, strict=True)), distributions=space, value=value
        )
        for u, value in zip(data.U.tolist(), data.y.tolist(), strict=True)
    )
    params = study.ask(space).params
    return np.array([params[name] for name in space])


def logei(model: Any, U: Any, bounds: Any, data: Data) -> Any:
    from botorch.acquisition import LogExpectedImprovement
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement

    if data.noisy:
        return qLogNoisyExpectedImprovement(model, X_baseline=U, prune_baseline=True)
    return LogExpectedImprovement(model, best_f=data.score.max())


def gibbon(model: Any, U: Any, bounds: Any, data: Data) -> Any:
    import torch
    from botorch.acquisition.max_value_entropy_search import qLowerBoundMaxValueEntropy

    return qLowerBoundMaxValueEntropy(model, torch.rand(CANDIDATES, U.shape[1]).to(U))


def jes(model: Any, U: Any, bounds: Any, data: Data) -> Any:
    from botorch.acquisition.joint_entropy_search import qJointEntropySearch
    from botorch.acquisition.utils import get_optimal_samples

    optima = get_optimal_samples(model, bounds=bounds, num_optima=OPTIMA)
    return qJointEntropySearch(model, *optima, estimation_type="LB")


def botorch(acquisition: Callable[..., Any], data: Data) -> Model:
    """BoTorch's usual model, and an acquisition to be maximised."""
    import torch
    from botorch.acquisition import PosteriorMean
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from botorch.utils.sampling import draw_sobol_samples
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    torch.manual_seed(data.integer(FIT))
    U, Y = torch.tensor(data.U), torch.tensor(data.score)[:, None]
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.double).expand(2, U.shape[1])
    variance = None if data.noisy else torch.full_like(Y, NOISELESS)
    model = SingleTaskGP(U, Y, variance, outcome_transform=None)  # as Y is standardised already
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))

    def maximise(function: Any, **options: Any) -> Array:
        with warnings.catch_warnings():
            # Of restarts where the function is flat to rounding: the best of all counts.
            warnings.filterwarnings("ignore", "Optimization failed", RuntimeWarning)
            u, _ = optimize_acqf(function, bounds, q=1, num_restarts=RESTARTS, **options)
        return u[0].numpy()

    def suggest() -> Array:
        torch.manual_seed(data.integer(SUGGEST))
        around = {"sample_around_best": True}
        function = acquisition(model, U, bounds, data)
        return maximise(function, raw_samples=RAW_SAMPLES, options=around)

    def recommend() -> Array:
        mean = PosteriorMean(model)
        half = min(RESTARTS // 2, len(U))
        sobol = draw_sobol_samples(bounds, RAW_SAMPLES, 1, seed=data.integer(RECOMMEND))
        with torch.no_grad():
            starts = [X[mean(X).topk(half).indices] for X in (sobol, U[:, None])]
        return maximise(mean, batch_initial_conditions=torch.cat(starts))

    return Model(suggest, recommend)


def exactly(fit: Callable[[Data], Model], data: Data) -> Model:
    """What a rival makes of the data when told that they are exact."""
    return fit(replace(data, noisy=False))


@dataclass(frozen=True)
class Peer:
    """A rival: its label in the journals, how it is fitted, and the packages it needs."""

    label: str
    fit: Callable[[Data], Model]
    packages: tuple[str, ...] = ()


PEERS = {
    "random": Peer("Random", random),
    "tpe": Peer("Optuna-TPE", tpe, ("optuna",)),
    "gpsampler": Peer("Optuna-GPSampler", gpsampler, ("optuna", "torch")),
    "gpsampler-exact": Peer(
        "Optuna-GPSampler-exact", partial(exactly, gpsampler), ("optuna", "torch")
    ),
    "logei": Peer("BoTorch-LogEI", partial(botorch, logei), ("botorch", "torch")),
    "logei-exact": Peer(
        "BoTorch-LogEI-exact", partial(exactly, partial(botorch, logei)), ("botorch", "torch")
    ),
    "gibbon": Peer("BoTorch-GIBBON", partial(botorch, gibbon), ("botorch", "torch")),
    "jes": Peer("BoTorch-JES", partial(botorch, jes), ("botorch", "torch")),
}


OURS = {
    "fitbo-memel": MethodConfig(
        label="FITBO-MEMeL-10", entropy=EntropyConfig("memel", {"n_moments": 10})
    ),
    "fitbo-quad": MethodConfig(label="FITBO-Quad", entropy=EntropyConfig("quad")),
    "fitbo-mm": MethodConfig(label="FITBO-MM", entropy=EntropyConfig("mm")),
}


def task_of(problem: str, peer: str, seed: int, variance: float, extra: int, output: Path) -> Task:
    """The study as a campaign would have it, for its labels, its path and its header.

    problem   ``name``, ``name:dim`` or ``name:dim:option=value``
    """
    name, *rest = problem.split(":")
    options = dict(part.split("=") for part in rest if "=" in part)
    config = ProblemConfig(
        name,
        dim=next((int(part) for part in rest if "=" not in part), None),
        noise_std=float(np.sqrt(variance)),
        options={key: yaml.safe_load(value) for key, value in options.items()},
    )
    method = OURS.get(peer) or MethodConfig(label=PEERS[peer].label, acquisition="random")
    made = Campaign(
        name="peers",
        problems=(config,),
        methods=(method,),
        seeds=(seed,),
        budget=2 * config.dim + extra,  # type: ignore[operator]
        output=str(output),
    )
    return Task(made, config, method, seed)


def run_study(task: Task, name: str, stop: Callable[[], bool] = lambda: False) -> str:
    """Run one study to its budget, from wherever its journal ends; a line about how it went."""
    if name in OURS:
        return "complete" if campaign.run_study(task, stop) else "stopped"
    problem = build_problem(task.campaign, task.problem)
    n_initial = task.campaign.n_initial(task.problem)
    settings = Settings(n_initial=n_initial, design=task.campaign.initial.design, seed=task.seed)
    design = Study(problem.space, settings).ask(n_initial)
    with Writer(task.path) as writer:
        if writer.journal is None:
            rows: list[dict[str, Any]] = []
            writer.append(header(task, problem, name))
        else:
            rows = writer.journal.rows
            campaign.check_same(writer.journal, header(task, problem, name), task.path)
        model = None
        if n_initial <= len(rows) < task.campaign.budget:
            model, _ = fitted(rows, problem, task.seed, n_initial, name)
        while len(rows) < task.campaign.budget and not stop():
            row, model = evaluate(rows, model, problem, task.seed, design, name)
            writer.append(row)
            rows.append(row)
    if not rows:
        return "stopped"
    simple, immediate = rows[-1]["simple_regret"], rows[-1]["immediate_regret"]
    return f"{len(rows)} evaluations, simple regret {simple:.1e}, immediate {immediate:.1e}"


def evaluate(
    rows: Sequence[Row], model: Model | None, problem: Problem, seed: int, design: Array, name: str
) -> tuple[dict[str, Any], Model | None]:
    """The next row, by the model of those before, and the model given it too."""
    n = len(rows) + 1
    seconds = dict.fromkeys(("mcmc", "search", "entropy", "recommend"), 0.0)
    reasons: dict[str, str | None] = {}
    if model is None:
        x = design[n - 1]
    else:
        u, reasons["suggestion"], seconds["search"] = attempt(model.suggest)
        if u is None:
            u = np.random.default_rng([seed, PEER_STREAM, n]).random(problem.dim)
        x = problem.space.from_cube(u)
    started = time.perf_counter()
    y, f = problem.observe(x, np.random.default_rng([seed, NOISE_STREAM, n])), problem(x)
    objective = time.perf_counter() - started
    told = [*rows, {"x": x.tolist(), "y": y, "f": f}]
    recommended = min(told, key=lambda row: row["y"])["x"]
    if n >= len(design):
        model, seconds["mcmc"] = fitted(told, problem, seed, len(design), name)
        if model.recommend is not None:
            u, reasons["recommendation"], seconds["recommend"] = attempt(model.recommend)
            if u is not None:
                recommended = problem.space.from_cube(u).tolist()
    f_recommended = problem(recommended)
    fallback = "; ".join(f"{what}: {why}" for what, why in reasons.items() if why)
    row = {
        "n": n,
        **told[-1],
        "x_recommended": recommended,
        "f_recommended": f_recommended,
        "simple_regret": min(row["f"] for row in told) - problem.minimum,
        "immediate_regret": abs(f_recommended - problem.minimum),
        "eta": None,
        "mcmc": None,
        **({"note": model.note} if model is not None and model.note else {}),
        **({"fallback": fallback} if fallback else {}),
        "seconds": {**seconds, "objective": objective},
    }
    return row, model


def fitted(
    rows: Sequence[Row], problem: Problem, seed: int, n_initial: int, name: str
) -> tuple[Model, float]:
    """The rival's model of these rows, and its seconds; if it cannot be had, one that says why."""
    U = np.clip(problem.space.to_cube([row["x"] for row in rows]), 0.0, 1.0)
    y = np.array([row["y"] for row in rows])
    data = Data(U, y, n_initial, problem.noise_std > 0, seed, rows[-2].get("note"))
    model, why, seconds = attempt(lambda: PEERS[name].fit(data))

    def fail() -> Array:
        raise RuntimeError(why)

    return model or Model(fail, fail), seconds


def attempt(make: Callable[[], Any]) -> tuple[Any, str | None, float]:
    """What ``make`` returns, or None and why, and the seconds it took."""
    started = time.perf_counter()
    made, why = None, None
    try:
        made = make()
        if isinstance(made, np.ndarray) and not np.isfinite(made).all():
            made, why = None, "not finite"
    except Exception as error:  # noqa: BLE001 (whatever a rival raises costs it a point, not a run)
        why = f"{type(error).__name__}: {error}"[:300]
    return made, why, time.perf_counter() - started


def header(task: Task, problem: Problem, name: str) -> dict[str, Any]:
    """A campaign's header, with the rival for its method."""
    head = campaign.header(task, problem)
    versions = {package: version(package) for package in PEERS[name].packages}
    method = {"label": PEERS[name].label, "peer": name}
    return {**head, "method": method, "versions": {**head["versions"], **versions}}


def run_all(tasks: Sequence[tuple[Task, str]], workers: int) -> int:
    """Run the studies and say how each went; the number that failed."""
    failed = 0
    with open_executor(Executor(workers=workers), len(tasks)) as (pool, stopping):
        futures = {pool.submit(run_study, task, name, stopping): task for task, name in tasks}
        for future in as_completed(futures):
            error = future.exception()
            if error is None:
                said = future.result()
            elif isinstance(error, Busy):
                said = "skipped, as another process is writing it"
            else:
                said, failed = f"failed: {type(error).__name__}: {error}", failed + 1
            print(f"{futures[future].title}: {said}", flush=True)
    return failed


def seeds_of(text: str) -> list[int]:
    """``0:10`` -> 0 .. 9; ``3`` -> 3."""
    first, colon, end = text.partition(":")
    return list(range(int(first or 0), int(end))) if colon else [int(first)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Rival optimisers in a campaign's journals.")
    parser.add_argument("--problems", nargs="+", default=["hartmann6", "michalewicz:5"])
    usual = [name for name in PEERS if not name.endswith("-exact")]
    parser.add_argument("--peers", nargs="+", choices=[*PEERS, *OURS], default=usual)
    parser.add_argument("--seeds", type=seeds_of, default="0:10", help="0:10, or one seed")
    parser.add_argument("--noise-variance", type=float, default=0.0)
    parser.add_argument("--extra", type=int, default=100, help="evaluations beyond the 2d")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="journals go below OUTPUT/peers"
    )
    chosen = parser.parse_args()
    for peer in chosen.peers:
        for package in PEERS[peer].packages if peer in PEERS else ():
            if importlib.util.find_spec(package) is None:
                sys.exit(f'{peer} needs {package}: python -m pip install -e ".[peers]"')
    tasks = [
        (task_of(problem, peer, seed, chosen.noise_variance, chosen.extra, chosen.output), peer)
        for seed in chosen.seeds
        for problem in chosen.problems
        for peer in chosen.peers
    ]
    sys.exit(1 if run_all(tasks, chosen.workers) else 0)


if __name__ == "__main__":
    main()
