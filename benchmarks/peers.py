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
saas       BoTorch's ``SaasFullyBayesianSingleTaskGP`` by NUTS, 256 steps to warm up and every 16th
           of 128 kept, and ``qLogExpectedImprovement`` averaged over those (its tutorial). One
           chain serves several evaluations: four here, where the tutorial has batches of five.
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

from common import prepare_workers

prepare_workers()

import argparse
import importlib.util
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import rivals
import yaml
from rivals import FIT, RECOMMEND, SUGGEST, Data, Model, Peer, run_all, seeds_of

from fitbo.config.campaign import Campaign, StudyConfig
from fitbo.config.method import EntropyConfig, MethodConfig
from fitbo.config.problem import ProblemConfig
from fitbo.mixture import Array
from fitbo.records import archive

RESULTS = Path(__file__).parent.parent / "results"
NAME = "peers"  # of the campaign
NOISELESS = 1e-6  # observation variance of standardised values; GPyTorch's least in double
RAW_SAMPLES, RESTARTS, CANDIDATES, OPTIMA = 512, 10, 1000, 12
NUTS: Any = {"warmup_steps": 256, "num_samples": 128, "thinning": 16, "jit_compile": True}
NUTS |= {"disable_progbar": True}
CHAIN_SERVES = 4  # evaluations


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


def saas(data: Data) -> Model:
    """BoTorch's sparse model: the samples of its hyperparameters are noted for the next fits."""
    import torch
    from botorch.acquisition.logei import qLogExpectedImprovement
    from botorch.fit import fit_fully_bayesian_model_nuts
    from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
    from botorch.optim import optimize_acqf

    torch.set_num_threads(1)
    torch.manual_seed(data.integer(FIT))
    U, Y = torch.tensor(data.U), torch.tensor(data.score)[:, None]
    d = U.shape[1]
    variance = None if data.noisy else torch.full_like(Y, NOISELESS)
    model = SaasFullyBayesianSingleTaskGP(U, Y, variance, outcome_transform=None)
    if data.warm is None or (len(Y) - data.n_initial) % CHAIN_SERVES == 0:
        fit_fully_bayesian_model_nuts(model, **NUTS, seed=data.integer(FIT))
    else:
        samples = torch.tensor(data.warm).reshape(-1, d + 2)
        named = {"mean": samples[:, 0], "outputscale": samples[:, 1], "lengthscale": samples[:, 2:]}
        model.load_mcmc_samples(named)
    kernel = model.covar_module
    lengthscales = kernel.base_kernel.lengthscale[:, 0]
    each = [model.mean_module.constant[:, None], kernel.outputscale[:, None], lengthscales]
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.double).expand(2, d)

    def suggest() -> Array:
        torch.manual_seed(data.integer(SUGGEST))
        function = qLogExpectedImprovement(model, best_f=data.score.max())
        around = {"sample_around_best": True}
        sizes = {"num_restarts": RESTARTS, "raw_samples": RAW_SAMPLES}
        u, _ = optimize_acqf(function, bounds, q=1, **sizes, options=around)
        return u[0].numpy()

    return Model(suggest, note=torch.hstack(each).detach().ravel().tolist())


def exactly(fit: Callable[[Data], Model], data: Data) -> Model:
    """What a rival makes of the data when told that they are exact."""
    return fit(replace(data, noisy=False))


OPTUNA, BOTORCH = ("optuna", "torch"), ("botorch", "torch")
ALL = (
    Peer("random", "Random", fit=random),
    Peer("tpe", "Optuna-TPE", ("optuna",), tpe),
    Peer("gpsampler", "Optuna-GPSampler", OPTUNA, gpsampler),
    Peer("gpsampler-exact", "Optuna-GPSampler-exact", OPTUNA, partial(exactly, gpsampler)),
    Peer("logei", "BoTorch-LogEI", BOTORCH, partial(botorch, logei)),
    Peer("logei-exact", "BoTorch-LogEI-exact", BOTORCH, partial(exactly, partial(botorch, logei))),
    Peer("gibbon", "BoTorch-GIBBON", BOTORCH, partial(botorch, gibbon)),
    Peer("jes", "BoTorch-JES", BOTORCH, partial(botorch, jes)),
    Peer("saas", "BoTorch-SAAS", BOTORCH, saas),
)
PEERS = {peer.name: peer for peer in ALL}

OURS = {
    "fitbo": MethodConfig(label="fitbo"),
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
    if peer == "fitbo":  # which, as its rivals, knows whether there is noise
        method = replace(method, deterministic=variance == 0)
    campaign = Campaign(
        name=NAME,
        problems=(described,),
        methods=(method,),
        seeds=(seed,),
        budget=2 * described.size + extra,
        output=str(output),
    )
    (study,) = campaign.studies()
    return study


def run_study(config: StudyConfig, name: str, stop: Callable[[], bool] = lambda: False) -> str:
    """Run the study of a rival, or of one of ours, by its name."""
    return rivals.run_study(config, PEERS.get(name), stop)


def missing(peers: Sequence[Peer]) -> str | None:
    """What to install for these rivals, if anything."""
    for peer in peers:
        for package in peer.packages:
            if importlib.util.find_spec(package) is None:
                return f'{peer.name} needs {package}: python -m pip install -e ".[peers]"'
        try:
            _ = peer.versions and peer.versions()
        except (OSError, ValueError) as error:
            return str(error)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description="Rival optimisers in a campaign's journals.")
    parser.add_argument("--problems", nargs="+", default=["hartmann6", "michalewicz:5"])
    usual = [name for name in PEERS if not name.endswith("-exact") and name != "saas"]
    parser.add_argument("--peers", nargs="+", choices=[*PEERS, *OURS], default=usual)
    parser.add_argument("--seeds", type=seeds_of, default="0:10", help="0:10, or one seed")
    parser.add_argument("--noise-variance", type=float, default=0.0)
    parser.add_argument("--extra", type=int, default=100, help="evaluations beyond the 2d")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="journals go below OUTPUT/peers"
    )
    chosen = parser.parse_args()
    if needed := missing([PEERS[name] for name in chosen.peers if name in PEERS]):
        sys.exit(needed)
    archive.unpack(chosen.output / NAME)
    studies = [
        (config_of(problem, peer, seed, chosen.noise_variance, chosen.extra, chosen.output), peer)
        for seed in chosen.seeds
        for problem in chosen.problems
        for peer in chosen.peers
    ]
    sys.exit(1 if run_all(studies, chosen.workers, run_study) else 0)


if __name__ == "__main__":
    main()
