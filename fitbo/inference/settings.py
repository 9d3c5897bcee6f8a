"""The options of a study, in one frozen dataclass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fitbo.acquisition import ACQUISITIONS
from fitbo.acquisition.remaining import check_moments, usual_moments
from fitbo.checks import assign, finite, one_of, whole
from fitbo.entropy import Entropy, backend
from fitbo.mixture import Array, Mixture
from fitbo.space import DESIGNS
from fitbo.surrogate import DEFAULT_KERNELS, RULES, SURROGATES, Rule, kernel_of

AUTO = "auto"
# FITBO as published: one eta for each theta, the gain alone, of y with its noise, linearised.
PAPER = {"etas": 1, "exploit": 0, "local": 0, "rule": "linearised", "resolution": 0.0}
LOCAL = 2  # steps in the trust region to one in the whole space
NO_NOISE = (-25.0, 0.5)  # prior of log noise variance: what the nugget would give anyway


@dataclass(frozen=True)
class Settings:
    """How a study chooses its points.

    acquisition   a name from ``fitbo.acquisition.ACQUISITIONS``; ``auto``: ``remaining``, or
                  ``fitbo`` if an entropy is given; ``fitbo-paper`` is FITBO as it was published,
                  whatever ``etas``, ``exploit``, ``local``, ``rule`` and ``resolution`` say
    entropy       a backend's name, a backend, or a function of a mixture; for ``fitbo``,
                  ``fitbo-paper`` and ``mes-marginal``; ``auto``: ``memel``
    n_initial     points of the initial design, twice the number of parameters if None; it goes on
                  while all values are equal
    design        a name from ``fitbo.space.DESIGNS``
    n_samples     M, hyperparameter samples: pairs of theta and eta
    etas          K, values of eta for each theta; 1 is the paper's
                  (see ``fitbo.acquisition.information``)
    surrogate     ``batched``, or ``gpy`` for any kernel that GPy knows, at GPy's speed
    kernel        a name, ``additive`` if None; for ``gpy`` an expression such as
                  ``"matern52 + periodic"``, ``matern52`` if None. For ``remaining``, with noise in
                  a space of reals, ``additive`` is ``smooth``: its smoothness is sampled too
    rule          how g's Gaussian becomes f's: ``moment_matched`` or ``linearised``
    resolution    for ``fitbo``: see ``fitbo.inference.propose.indistinct``
    exploit       evaluations by expected improvement after each one that the acquisition function
                  chose: 3 for ``fitbo``, where 0 is the paper's pure exploration; 0 for the others
    beta          for ``lcb``: the square of the number of standard deviations below the mean
    moments       for ``remaining``: moments of the regret; 1 is expected improvement, and what
                  counts in the trust region; None: 2, or 1 in a space with integers, choices or
                  grids (see ``fitbo.acquisition.remaining``). With noise in a space of reals the
                  knowledge gradient is in its place (``fitbo.acquisition.knowledge``)
    thin          steps of the sampler between the ensembles kept, and after its burn-in
    min_burn_in   steps of the sampler before any is kept, if started from the last posterior
    max_burn_in   the most steps before any is kept
    deterministic  True: the function has no noise; False: its noise is inferred; ``auto``: one
                  point is evaluated twice to see (``fitbo.inference.exact``)
    noise_std     its standard deviation, in y's units, if that is known; a value that states one of
                  its own (``Study.tell``) has that instead
    replicates    with noise, points may be told any number of times; else only once each point of a
                  finite space has been, and if ``deterministic`` is False
    local         evaluations in a trust region about the incumbent after each in the whole space:
                  2 without noise; 0 with noise, where a region follows lucky values
    seed          of all random numbers: the same seed gives the same points
    """

    acquisition: str = AUTO
    entropy: str | Entropy | Callable[[Mixture], Array] = AUTO
    n_initial: int | None = None
    design: str = "sobol"
    n_samples: int = 200
    etas: int = 5
    surrogate: str = "batched"
    kernel: str | None = None
    rule: Rule = "moment_matched"
    resolution: float = 0.3
    exploit: int | None = None
    beta: float = 4.0
    moments: int | None = None
    thin: int = 4
    min_burn_in: int = 4
    max_burn_in: int = 500
    deterministic: bool | str = AUTO
    noise_std: float | None = None
    replicates: bool = False
    local: int | None = None
    seed: int = 0

    @property
    def noise(self) -> tuple[float, float] | None:
        """Location and scale of the prior of log noise variance, on standardised y; None: usual.

        A known level is stated by every value, and nothing is left to be inferred.
        """
        return NO_NOISE if self.deterministic is True or self.noise_std is not None else None

    @property
    def rung(self) -> int:
        """``moments``, or 2 if None, in whose place a study puts its space's default."""
        return usual_moments(reals=True) if self.moments is None else self.moments

    @property
    def weighs_knowledge(self) -> bool:
        """Whether the regret that remains is that of the recommendation: there may be noise."""
        return self.acquisition == "remaining" and self.deterministic is False

    @property
    def kernel_name(self) -> str:
        """The kernel, or the surrogate's default."""
        return self.kernel or DEFAULT_KERNELS[self.surrogate]

    def __post_init__(self) -> None:
        if self.acquisition == AUTO:
            assign(self, acquisition="remaining" if self.entropy == AUTO else "fitbo")
        if self.entropy == AUTO:
            assign(self, entropy="memel")
        if self.acquisition == "fitbo-paper":
            assign(self, **PAPER)
            if self.deterministic == AUTO:
                assign(self, deterministic=False)
        if self.exploit is None:
            assign(self, exploit=3 * (self.acquisition == "fitbo"))
        one_of("acquisition", self.acquisition, ACQUISITIONS)
        one_of("design", self.design, DESIGNS)
        one_of("surrogate", self.surrogate, SURROGATES)
        one_of("rule", self.rule, RULES)
        if self.acquisition == "mes-marginal" and self.rule != "moment_matched":
            raise ValueError(
                f"rule must be 'moment_matched' for acquisition 'mes-marginal', got {self.rule!r}"
            )
        backend(self.entropy)
        kernel_of(self.surrogate, self.kernel_name)
        if self.n_initial is not None:
            whole("n_initial", self.n_initial, least=0)
        for name in ("n_samples", "etas", "thin", "min_burn_in", "max_burn_in"):
            whole(name, getattr(self, name), least=1)
        if not (isinstance(self.deterministic, bool) or self.deterministic == AUTO):
            raise ValueError(
                f"deterministic must be True, False or {AUTO!r}, got {self.deterministic!r}"
            )
        if not isinstance(self.replicates, bool):
            raise ValueError(f"replicates must be True or False, got {self.replicates!r}")
        if self.noise_std is not None:
            finite("noise_std", self.noise_std)
            if self.deterministic is True or not self.noise_std > 0:
                raise ValueError(
                    f"noise_std must be positive, and left out if deterministic, got "
                    f"{self.noise_std} and deterministic={self.deterministic}"
                )
            assign(self, deterministic=False)
        if self.local is None and self.deterministic != AUTO:
            assign(self, local=LOCAL if self.deterministic is True else 0)
        for name in ("exploit", "seed", *(["local"] if self.local is not None else [])):
            whole(name, getattr(self, name), least=0)
        if self.max_burn_in < self.min_burn_in:
            raise ValueError(
                f"max_burn_in must be at least min_burn_in, got {self.max_burn_in} "
                f"and {self.min_burn_in}"
            )
        for name in ("resolution", "beta"):
            finite(name, getattr(self, name), least=0)
        if self.moments is not None:
            check_moments(self.moments)
