"""A draw from a Gaussian-process prior, as a function that can be evaluated anywhere.

    f(x) = sqrt(2/R) sum_r w_r cos(omega_r . x + b_r)

with R random Fourier features [1]: w_r ~ N(0, 1), b_r ~ U(0, 2 pi), omega_r from the kernel's
spectral density, so that E f = 0 and E f(x) f(x') = k(x - x') over draws. For the RBF kernel of
lengthscale l, omega ~ N(0, I/l^2); for Matern-nu, a multivariate t of 2 nu degrees of freedom: the
normal divided by sqrt(chi^2_{2 nu}/(2 nu)). One draw is a finite sum of cosines, hence smooth
whatever the kernel, and Gaussian only as R grows.

The minimum is not known in closed form. It is the lowest value found by a dense search: ``SCAN``
Sobol points of the unit cube, the ``STARTS`` best of them polished with the exact gradient. Above
six dimensions, or with a lengthscale far below the default, such a search is not reliable;
dimensions above six are therefore refused.

[1] Rahimi, Recht, Random features for large-scale kernel machines, NeurIPS 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fitbo.checks import one_of, whole
from fitbo.mixture import Array
from fitbo.problems.black_box import Made
from fitbo.space.design import sobol

FEATURES = 1024
SCAN = 2**14
STARTS = 64
DEGREES = {"rbf": None, "matern52": 5, "matern32": 3}  # of freedom; None: the normal itself


@dataclass(frozen=True, eq=False)
class FourierDraw:
    """``f(x) = sum_r a_r cos(omega_r . x + b_r)``: a, b (R,), omega (R, d)."""

    a: Array
    b: Array
    omega: Array

    def __call__(self, x: Array) -> Array:
        """(B, d) -> (B,), in blocks so that the features of many points stay small."""
        blocks = [
            (np.cos(part @ self.omega.T + self.b) * self.a).sum(1)
            for part in np.array_split(x, max(1, len(x) // 2048))
        ]
        return np.concatenate(blocks)

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        """f and df/dx at one point, (d,)."""
        phase = self.omega @ x + self.b
        return float(self.a @ np.cos(phase)), -(self.a * np.sin(phase)) @ self.omega


def draw(dim: int, seed: int, lengthscale: float, kernel: str) -> FourierDraw:
    """One function of unit variance on the unit cube; the same for the same arguments."""
    rng = np.random.default_rng([seed, dim])
    omega = rng.standard_normal((FEATURES, dim)) / lengthscale
    degrees = DEGREES[kernel]
    if degrees is not None:
        omega /= np.sqrt(rng.chisquare(degrees, (FEATURES, 1)) / degrees)
    b = rng.uniform(0, 2 * np.pi, FEATURES)
    return FourierDraw(np.sqrt(2 / FEATURES) * rng.standard_normal(FEATURES), b, omega)


def lowest(f: FourierDraw, scan: int = SCAN, starts: int = STARTS) -> tuple[Array, float]:
    """The lowest point found on the unit cube, (d,), and its value."""
    from scipy.optimize import minimize  # a third of a second to import

    dim = f.omega.shape[1]
    points = sobol(scan, dim, np.random.default_rng(0))
    order = np.argsort(f(points))[:starts]
    ends = np.empty((len(order), dim))
    for row, start in enumerate(points[order]):
        ends[row] = minimize(
            f.value_and_grad,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * dim,
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 500},
        ).x
    values = f(ends)
    best = int(np.argmin(values))
    return ends[best], float(values[best])


@lru_cache(maxsize=64)
def _made(dim: int, seed: int, lengthscale: float, kernel: str) -> tuple[FourierDraw, Array, float]:
    f = draw(dim, seed, lengthscale, kernel)
    return f, *lowest(f)


def make_gp_draw(
    dim: int, seed: int = 0, lengthscale: float = 0.3, kernel: str = "matern52"
) -> Made:
    """The draw on the unit cube, and the lowest of its minima that the search found."""
    whole("seed", seed, least=0)
    number = isinstance(lengthscale, int | float) and not isinstance(lengthscale, bool)
    if not (number and 0 < lengthscale < np.inf):
        raise ValueError(f"lengthscale must be a positive number, got {lengthscale!r}")
    one_of("kernel", kernel, DEGREES)
    f, x, value = _made(dim, seed, float(lengthscale), kernel)
    return f, [(0.0, 1.0)] * dim, value, [x]
