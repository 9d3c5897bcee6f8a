"""Regret of the optimisers people use, on fitbo's problems and in its journals.

    python -m pip install -e ".[peers]"
    python benchmarks/peers.py --problems hartmann6 levy:4 --peers gpsampler logei --seeds 0:10
    python benchmarks/peers.py --peers fitbo-memel fitbo-quad fitbo-mm
    fitbo report results/peers

Every rival is given the problem object, the 2d Sobol points, the noise and the budget of a fitbo
study of the same seed, and one thread. Its journal goes to
``results/peers/<problem>/<method>/<seed>.jsonl``, beside fitbo's own and in their format, so that
one report draws all. Run the same command again to go on where a killed one stopped: all randomness
comes from (seed, n, purpose), and what else a rival remembers is in its journal.

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

In ``suggestion_seconds`` the fit is ``mcmc`` and maximising the acquisition function ``search``;
GPSampler's two are one call, under ``mcmc``. A rival that raises gets a random point, or the best
observed for its recommendation, and the row says why under ``fallback``.
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
from fitbo.config.campaign import INCIDENTAL, Campaign, StudyConfig
from fitbo.config.executor import Executor
from fitbo.config.method import EntropyConfig, MethodConfig
from fitbo.config.problem import ProblemConfig
from fitbo.decode import differences
from fitbo.mixture import Array
from fitbo.records import archive, notebook
from fitbo.records.events import Entry
from fitbo.records.journal import Busy, ConfigChanged, Writer
from fitbo.records.notebook import Notebook
from fitbo.report import history
from fitbo.runs import study
from fitbo.runs.executors import open_executor

RESULTS = Path(__file__).parent.parent / "results"
NAME = "peers"  # of the campaign
PEER_STREAM = 200  # apart from a study's purposes and from the noise
FIT, SUGGEST, RECOMMEND = range(3)
NOISELESS = 1e-6  # observation variance of standardised values; GPyTorch's least in double
RAW_SAMPLES, RESTARTS, CANDIDATES, OPTIMA = 512, 10, 1000, 12


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


def config_of(
    problem: str, peer: str, seed: int, variance: float, extra: int, output: Path
) -> StudyConfig:
    """The study as a campaign would have it, for its labels, its path and its header.

    problem   ``name``, ``name:dim`` or ``name:dim:option=value``
    """
    name, *rest = problem.split(":")
    options = dict(part.split("=") for part in rest if "=" in part)
    described = ProblemConfig(
        name,
        dim=next((int(part) for part in rest if "=" not in part), None),
        noise_std=float(np.sqrt(variance)),
        options={key: yaml.safe_load(value) for key, value in options.items()},
    )
    method = OURS.get(peer) or MethodConfig(label=PEERS[peer].label, acquisition="random")
    campaign = Campaign(
        name=NAME,
        problems=(described,),
        methods=(method,),
        seeds=(seed,),
        budget=2 * described.size + extra,
        output=str(output),
    )
    return StudyConfig(campaign, described, method, seed)


def run_study(config: StudyConfig, name: str, stop: Callable[[], bool] = lambda: False) -> str:
    """Run one study to its budget, from wherever its journal ends; a line about how it went."""
    if name in OURS:
        ended = study.run(config, stop=stop, patience=0.0)
        return "stopped" if ended is None else "complete"
    problem, budget = build_problem(config.problem), config.campaign.budget
    with Writer(config.journal) as writer:
        book = opened(writer, config, name)
        before, began = book.elapsed, time.monotonic()

        def elapsed() -> float:
            return round(before + time.monotonic() - began, 3)

        while len(book.study.y) < budget:
            if stop():
                return f"stopped after {len(book.study.y)} of {budget}"
            entry = next(iter(book.pending()), None) or ask_rival(book, config, name)
            outcome = study.observe(config, entry)
            more = {"f": problem(list(entry.point.values())), "seconds": round(outcome.seconds, 6)}
            book.told(entry, outcome.value, **more, elapsed=elapsed())
        if book.rows[-1].get("event") == "told":
            _, row = advised(book, config, name)
            reason = f"the budget of {budget} evaluations is spent"
            stopped = {"event": "stopped", "reason": reason, "elapsed": elapsed(), "budget": budget}
            book.append(stopped | row)
    (run,) = history.load([config.journal])
    simple, immediate = run.simple[-1], run.immediate[-1]
    return f"{len(run)} evaluations, simple regret {simple:.1e}, immediate {immediate:.1e}"


def opened(writer: Writer, config: StudyConfig, name: str) -> Notebook:
    """The journal's notebook, if it is this rival's; the study in it has the design."""
    head = header(config, name)
    if writer.journal is None:
        writer.append(head)
    elif changed := differences(lasting(writer.journal.header), lasting(head)):
        raise ConfigChanged(
            f"{config.journal} was made by another configuration: {'; '.join(changed)}. "
            f"Choose another --output, or move it away"
        )
    rows = writer.journal.rows if writer.journal is not None else []
    design = notebook.replay(config, rows, fits=False)
    return Notebook(design, config, rows, writer)


def ask_rival(book: Notebook, config: StudyConfig, name: str) -> Entry:
    """The next point, of the design or by the rival's model; on the disk when this returns."""
    n, space = len(book.study.y) + 1, book.study.space
    if n <= config.n_initial:
        return book.ask()
    model, row = advised(book, config, name)
    u, why, seconds = attempt(model.suggest)
    if u is None:
        row["fallback"] = "; ".join(filter(None, (row.get("fallback"), f"suggestion: {why}")))
        u = np.random.default_rng([config.seed, PEER_STREAM, n]).random(space.dim)
    row["suggestion_seconds"]["search"] = round(seconds, 6)
    entry = Entry(n, book.plain(space.from_cube(u)))
    asked = {"event": "asked", "id": n, "point": entry.point, "source": entry.source}
    book.append(asked | ({"note": model.note} if model.note else {}) | row)
    return entry


def advised(book: Notebook, config: StudyConfig, name: str) -> tuple[Model, dict[str, Any]]:
    """The rival's model of all values, and what a row says of it: what it recommends, its times."""
    space, told = book.study.space, book.outcomes
    X = [list(entry.point.values()) for entry in told]
    data = Data(
        U=np.clip(space.to_cube(X), 0.0, 1.0),
        y=book.study.y,
        n_initial=config.n_initial,
        noisy=config.noise_std > 0,
        seed=config.seed,
        warm=[row for row in book.rows if row.get("event") == "asked"][-1].get("note"),
    )
    model, failure, fitting = attempt(lambda: PEERS[name].fit(data))

    def fail() -> Array:
        raise RuntimeError(failure)

    model = model or Model(fail, fail)
    u, why, searching = attempt(model.recommend) if model.recommend else (None, None, 0.0)
    best = X[int(np.argmin(data.y))]
    x = best if u is None else space.from_cube(u).tolist()
    f = build_problem(config.problem)(x)
    return model, {
        "recommended": {"point": book.plain(x), "f": f},
        **({"fallback": f"recommendation: {why}"} if why else {}),
        "suggestion_seconds": {"mcmc": round(fitting, 6), "recommend": round(searching, 6)},
    }


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


def header(config: StudyConfig, name: str) -> dict[str, Any]:
    """A study's header, with the rival for its method."""
    head = notebook.header(config)
    head["study"]["method"] = {"label": PEERS[name].label, "peer": name}
    head["versions"] |= {package: version(package) for package in PEERS[name].packages}
    return head


def lasting(head: Mapping[str, Any]) -> dict[str, Any]:
    """What a header says of the study itself, which must not change."""
    described = head.get("study", {})
    problem = described.get("problem", {}).items()
    return {**described, "problem": {k: v for k, v in problem if k not in INCIDENTAL}}


def run_all(studies: Sequence[tuple[StudyConfig, str]], workers: int) -> int:
    """Run the studies and say how each went; the number that failed."""
    failed = 0
    with open_executor(Executor(workers=workers), len(studies)) as (pool, stopping):
        futures = {pool.submit(run_study, *each, stopping): each[0] for each in studies}
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
    archive.unpack(chosen.output / NAME)
    studies = [
        (config_of(problem, peer, seed, chosen.noise_variance, chosen.extra, chosen.output), peer)
        for seed in chosen.seeds
        for problem in chosen.problems
        for peer in chosen.peers
    ]
    sys.exit(1 if run_all(studies, chosen.workers) else 0)


if __name__ == "__main__":
    main()
