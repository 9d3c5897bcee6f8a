"""A black box and what is known about it: domain, minimum, minimisers, noise."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import assign, finite
from fitbo.mixture import Array
from fitbo.space import Space

Made = tuple[Callable[[Array], Array], Any, float, Any]  # fun, bounds, minimum, minimisers


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise f over a box. ``problem(x)`` is f at (d,), noise-free; ``observe`` adds the noise.

    fun         f, noise-free and vectorised: (B, d) -> (B,)
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
        minimisers = np.array(self.minimisers, dtype=np.float64)
        assign(self, bounds=Space(self.bounds).bounds, minimisers=minimisers)
        if minimisers.ndim != 2 or minimisers.shape[1] != self.dim:
            raise ValueError(f"minimisers must have shape (k, {self.dim}), got {minimisers.shape}")
        minimisers.flags.writeable = False
        finite("minimum", self.minimum)
        finite("noise_std", self.noise_std, least=0)

    @property
    def dim(self) -> int:
        return len(self.bounds)

    @property
    def space(self) -> Space:
        return Space(self.bounds)

    def __call__(self, x: ArrayLike) -> float:
        """The noise-free f at x, (d,) -> float."""
        x = np.asarray(x, dtype=np.float64)
        if x.shape != (self.dim,):
            raise ValueError(f"x must have shape ({self.dim},) for {self.name}, got {x.shape}")
        return float(self.fun(x[None, :])[0])

    def observe(self, x: ArrayLike, rng: np.random.Generator) -> float:
        """f(x) + noise; one normal is drawn whether or not there is noise."""
        return self(x) + self.noise_std * float(rng.standard_normal())


@dataclass(frozen=True)
class Family:
    """A test function before its dimension and options are chosen.

    make   ``make(dim, **options)`` -> (fun, bounds, minimum, minimisers (k, d))
    dim    the default dimension
    dims   the smallest and the largest dimension allowed; None: no largest
    """

    description: str
    make: Callable[..., Made]
    dim: int
    dims: tuple[int, int | None]

    @property
    def options(self) -> dict[str, Any]:
        """The options of ``make``, with their defaults."""
        parameters = inspect.signature(self.make).parameters.values()
        return {p.name: p.default for p in parameters if p.name != "dim"}

    @property
    def free(self) -> bool:
        """Whether the dimension may be chosen."""
        return self.dims[0] != self.dims[1]
