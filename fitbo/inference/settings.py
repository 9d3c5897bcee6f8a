"""The options of a study, in one frozen dataclass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fitbo.acquisition import ACQUISITIONS
from fitbo.acquisition.remaining import check_moments
from fitbo.checks import assign, finite, one_of, whole
from fitbo.entropy import Entropy, backend
from fitbo.mixture import Array, Mixture
from fitbo.space import DESIGNS
from fitbo.surrogate import DEFAULT_KERNELS, RULES, SURROGATES, Rule, kernel_of

NO_NOISE = (-25.0, 0.5)  # prior of log noise variance: what the nugget would give anyway


@dataclass(frozen=True)
class Settings:
    """How a study chooses its points.

    acquisition   a name from ``fitbo.acquisition.ACQUISITIONS``
    entropy       a backend's name, a backend, or a function of a mixture; for ``fitbo``
                  and ``mes-marginal``
    n_initial     points of the initial design; twice the number of parameters if None
    design        a name from ``fitbo.space.DESIGNS``
    n_samples     M, hyperparameter samples: pairs of theta and eta
    etas          K, values of eta for each theta: 5 for ``fitbo``, where 1 is the paper's
                  (see ``fitbo.acquisition.information``); 1 for the others
    surrogate     ``batched``, or ``gpy`` for any kernel that GPy knows, at GPy's speed
    kernel        a name, ``additive`` if None; for ``gpy`` an expression such as
                  ``"matern52 + periodic"``, ``matern52`` if None
    rule          how g's Gaussian becomes f's: ``moment_matched`` or ``linearised``
    resolution    for ``fitbo``: see ``fitbo.inference.propose.indistinct``
    exploit       evaluations by expected improvement after each one that the acquisition function
                  chose: 3 for ``fitbo``, where 0 is the paper's pure exploration; 0 for the others
    beta          for ``lcb``: the square of the number of standard deviations below the mean
    moments       for ``remaining``: moments of the regret, 1 is expected improvement, 2 the default
    thin          steps of the sampler between the ensembles kept, and after its burn-in
    min_burn_in   steps of the sampler before any is kept, if started from the last posterior
    max_burn_in   the most steps before any is kept
    deterministic  the function has no noise; else its noise is inferred
    local         evaluations in a trust region about the incumbent after each in the whole space:
                  1 if ``deterministic``, else 0, for where there is noise it follows lucky values
    seed          of all random numbers: the same seed gives the same points
    """

    acquisition: str = "fitbo"
    entropy: str | Entropy | Callable[[Mixture], Array] = "memel"
    n_initial: int | None = None
    design: str = "sobol"
    n_samples: int = 200
    etas: int | None = None
    surrogate: str = "batched"
    kernel: str | None = None
    rule: Rule = "moment_matched"
    resolution: float = 0.3
    exploit: int | None = None
    beta: float = 4.0
    moments: int = 2
    thin: int = 4
    min_burn_in: int = 4
    max_burn_in: int = 500
    deterministic: bool = False
    local: int | None = None
    seed: int = 0

    @property
    def noise(self) -> tuple[float, float] | None:
        """Location and scale of the prior of log noise variance, on standardised y; None: usual."""
        return NO_NOISE if self.deterministic else None

    @property
    def kernel_name(self) -> str:
        """The kernel, or the surrogate's default."""
        return self.kernel or DEFAULT_KERNELS[self.surrogate]

    def __post_init__(self) -> None:
        informed = self.acquisition == "fitbo"
        if self.etas is None:
            assign(self, etas=5 if informed else 1)
        if self.exploit is None:
            assign(self, exploit=3 * informed)
        one_of("acquisition", self.acquisition, ACQUISITIONS)
        one_of("design", self.design, DESIGNS)
        one_of("surrogate", self.surrogate, SURROGATES)
        one_of("rule", self.rule, RULES)
        backend(self.entropy)
        kernel_of(self.surrogate, self.kernel_name)
        if self.n_initial is not None:
            whole("n_initial", self.n_initial, least=0)
        for name in ("n_samples", "etas", "thin", "min_burn_in", "max_burn_in"):
            whole(name, getattr(self, name), least=1)
        if not isinstance(self.deterministic, bool):
            raise ValueError(f"deterministic must be True or False, got {self.deterministic!r}")
        if self.local is None:
            assign(self, local=int(self.deterministic))
        for name in ("exploit", "local", "seed"):
            whole(name, getattr(self, name), least=0)
        if self.max_burn_in < self.min_burn_in:
            raise ValueError(
                f"max_burn_in must be at least min_burn_in, got {self.max_burn_in} "
                f"and {self.min_burn_in}"
            )
        for name in ("resolution", "beta"):
            finite(name, getattr(self, name), least=0)
        check_moments(self.moments)
