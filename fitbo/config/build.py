"""From a configuration to the objects it describes."""

from __future__ import annotations

from fitbo.config.campaign import Campaign, ProblemConfig
from fitbo.config.method import MethodConfig
from fitbo.entropy import BACKENDS
from fitbo.inference.settings import Settings
from fitbo.problems import Problem, problem


def build_problem(campaign: Campaign, config: ProblemConfig) -> Problem:
    """The problem, with its own noise or else the campaign's."""
    return problem(config.name, dim=config.dim, noise_std=campaign.noise(config), **config.options)


def build_settings(
    campaign: Campaign, problem: ProblemConfig, method: MethodConfig, seed: int
) -> Settings:
    """How one study of the campaign chooses; what the file leaves out is the library's default."""
    return method_settings(
        method, n_initial=campaign.n_initial(problem), design=campaign.initial.design, seed=seed
    )


def method_settings(
    method: MethodConfig, *, n_initial: int | None, design: str, seed: int
) -> Settings:
    """How a study by this method chooses, given what is not the method's."""
    chosen = {
        "resolution": method.resolution,
        "etas": method.etas,
        "exploit": method.exploit,
        "beta": method.beta,
        "thin": method.sampler.thin,
        "min_burn_in": method.sampler.min_burn_in,
        "max_burn_in": method.sampler.max_burn_in,
        "entropy": method.entropy and BACKENDS[method.entropy.name](**method.entropy.options),
    }
    return Settings(
        acquisition=method.acquisition,
        n_initial=n_initial,
        design=design,
        n_samples=method.samples,
        surrogate=method.surrogate.kind,
        kernel=method.surrogate.kernel,
        rule=method.rule,
        seed=seed,
        **{name: value for name, value in chosen.items() if value is not None},  # type: ignore[arg-type]
    )
