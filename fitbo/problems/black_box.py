"""A black box plus what is known of it: domain, minimum, minimisers, noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fitbo.mixture import Array
from fitbo.space import Space


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise f over a box. ``problem(x)`` is noiseless f at (d,); ``observe`` adds the noise.

    fun         the noiseless function, vectorised: (B, d) -> (B,)
    bounds      d pairs (low, high)
    minimum     min f over the box
    minimisers  (k, d), where f attains it; all of them, unless the family says otherwise
    noise_std   standard deviation of the Gaussian noise of an observation
    """

    name: str
    fun: Callable[[Array], Array]
    bounds: tuple[tuple[float, float], ...]
    minimum: float
    minimisers: Array
    noise_std: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", Space(self.bounds).bounds)
        minimisers = np.array(self.minimisers, dtype=np.float64)
        if minimisers.ndim != 2 or minimisers.shape[1] != self.dim:
            raise ValueError(f"minimisers must have shape (k, {self.dim}), got {minimisers.shape}")
        minimisers.flags.writeable = False
        object.__setattr__(self, "minimisers", minimisers)
        if not np.isfinite(self.minimum):
            raise ValueError(f"minimum must be finite, got {self.minimum}")
        if not (np.isfinite(self.noise_std) and self.noise_std >= 0):
            raise ValueError(f"noise_std must be finite and at least 0, got {self.noise_std}")

    @property
    def dim(self) -> int:
        return len(self.bounds)

    @property
    def space(self) -> Space:
        return Space(self.bounds)

    def __call__(self, x: ArrayLike) -> float:
        """Noiseless f at x, (d,) -> float."""
        x = np.asarray(x, dtype=np.float64)
        if x.shape != (self.dim,):
            raise ValueError(f"x must have shape ({self.dim},) for {self.name}, got {x.shape}")
        return float(self.fun(x[None, :])[0])

    def observe(self, x: ArrayLike, rng: np.random.Generator) -> float:
        """f(x) + noise; one normal is drawn whether or not there is noise."""
        return self(x) + self.noise_std * float(rng.standard_normal())


@dataclass(frozen=True)
class Family:
    """What the registry knows of a function before its dimension and options are chosen.

    make      ``make(dim, **options)`` -> (fun, bounds, minimum, minimisers)
    dim       the dimension if none is asked for
    dims      the smallest and the largest dimension allowed; None: no largest
    options   names of further options and their defaults
    """

    description: str
    make: Callable[..., tuple[Callable[[Array], Array], Any, float, ArrayLike]]
    dim: int
    dims: tuple[int, int | None]
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def free(self) -> bool:
        """Whether the dimension may be chosen."""
        return self.dims[0] != self.dims[1]

    def allows(self, dim: int) -> bool:
        low, high = self.dims
        return low <= dim and (high is None or dim <= high)
