"""How a study chooses: every option in one frozen place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fitbo.acquisition import ACQUISITIONS
from fitbo.checks import finite, one_of, whole
from fitbo.entropy import Entropy, backend
from fitbo.mixture import Array, Mixture
from fitbo.space import DESIGNS
from fitbo.surrogate import DEFAULT_KERNELS, RULES, SURROGATES, Rule, kernel_of


@dataclass(frozen=True)
class Settings:
    """How a study chooses.

    acquisition   a name from ``fitbo.acquisition.ACQUISITIONS``
    entropy       a backend's name, a backend, or a function of a mixture; for ``fitbo``
    n_initial     points of the initial design; twice the dimension if None
    design        a name from ``fitbo.space.DESIGNS``
    n_samples     M, hyperparameter samples: pairs of theta and eta
    etas          K, values of eta for each theta: 5 for ``fitbo``, where 1 is the paper's
                  (see ``fitbo.acquisition.information``); 1 for the others
    surrogate     ``batched``, or ``gpy`` for any kernel that GPy knows, at GPy's speed
    kernel        a name, ``additive`` if None; for ``gpy`` an expression such as
                  ``"matern52 + periodic"``, ``matern52`` if None
    rule          how g's Gaussian becomes f's: ``moment_matched`` or ``linearised``
    resolution    for ``fitbo``: see ``fitbo.inference.propose.indistinct``
    exploit       after each evaluation that the acquisition chose, how many go to the largest
                  expected improvement: 3 for ``fitbo``, 0 for the others, which exploit by
                  themselves; with 0 ``fitbo`` seeks knowledge alone, as in the paper
    beta          for ``lcb``: how many squared deviations below the mean
    thin          sampler's steps between ensembles kept, and after its burn-in
    min_burn_in   sampler's steps at least, warm from the last posterior, before any is kept
    max_burn_in   sampler's steps at most, before
    seed          of all chance: the same gives the same points
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
    thin: int = 4
    min_burn_in: int = 4
    max_burn_in: int = 500
    seed: int = 0

    @property
    def kernel_name(self) -> str:
        """The kernel, by default that of the surrogate."""
        return self.kernel or DEFAULT_KERNELS[self.surrogate]

    def __post_init__(self) -> None:
        informed = self.acquisition == "fitbo"
        for name, usual in (("etas", 5 if informed else 1), ("exploit", 3 * informed)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, usual)
        for name, known in (
            ("acquisition", ACQUISITIONS),
            ("design", DESIGNS),
            ("surrogate", SURROGATES),
            ("rule", RULES),
        ):
            one_of(name, getattr(self, name), known)
        backend(self.entropy)
        kernel_of(self.surrogate, self.kernel_name)
        if self.n_initial is not None:
            whole("n_initial", self.n_initial, least=1)
        for name in ("n_samples", "etas", "thin", "min_burn_in", "max_burn_in"):
            whole(name, getattr(self, name), least=1)
        for name in ("exploit", "seed"):
            whole(name, getattr(self, name), least=0)
        if self.max_burn_in < self.min_burn_in:
            raise ValueError(
                f"max_burn_in must be at least min_burn_in, got {self.max_burn_in} "
                f"and {self.min_burn_in}"
            )
        for name in ("resolution", "beta"):
            finite(name, getattr(self, name))
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
