"""Test functions of global optimisation, with their minima to double precision.

Each function is vectorised, x (B, d) -> (B,); a ``Known`` adds its domain and minimum.
Where the minimum is zero, the function is written so that rounding leaves zero and not 1e-16 times
a larger number. Literal minimisers are roots of the gradient at forty digits, rounded to double.

[M92]  Michalewicz, Genetic algorithms + data structures = evolution programs, Springer 1992.
[DS78] Dixon, Szego, The global optimisation problem, in Towards Global Optimisation 2,
       North-Holland 1978: Branin, Goldstein-Price, Hartmann, six-hump camel.
[W96]  Whitley et al., Evaluating evolutionary algorithms, Artif. Intell. 85, 1996: Eggholder.
[A87]  Ackley, A connectionist machine for genetic hillclimbing, Kluwer 1987.
[LM85] Levy, Montalvo, The tunneling algorithm, SIAM J. Sci. Stat. Comput. 6, 1985.
[R60]  Rosenbrock, An automatic method for finding the greatest or least value, Comput. J. 3, 1960.
[R74]  Rastrigin, Systems of extremal control, Nauka 1974.
[ST90] Styblinski, Tang, Experiments in nonconvex optimization, Neural Networks 3, 1990.
[F08]  Forrester, Sobester, Keane, Engineering design via surrogate modelling, Wiley 2008.
[SB]   Surjanovic, Bingham, Virtual library of simulation experiments: test functions and datasets;
       the source of the domains and constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import whole
from fitbo.mixture import Array
from fitbo.problems.black_box import Made

# Hartmann [DS78]: alpha_i, A_ij, P_ij. With P[3, 0] of hartmann3 at 0.0381 the minimum is
# -3.8627798; the often quoted -3.8627821 belongs to 0.03815.
HARTMANN_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN3_A = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
HARTMANN3_P = 1e-4 * np.array(
    [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
)
HARTMANN6_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
HARTMANN6_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def michalewicz(x: Array, m: int) -> Array:
    """-sum_i sin(x_i) sin^2m(i x_i^2 / pi): d! valleys, flat between, steeper with m."""
    i = np.arange(1, x.shape[1] + 1)
    return -(np.sin(x) * np.sin(i * x**2 / np.pi) ** (2 * m)).sum(1)


def make_michalewicz(dim: int, m: int = 10) -> Made:
    """Separable: the minimum is the sum of one-dimensional minima, each found as a root.

    With u = i x^2/pi, term i is positive in each of the i intervals where u runs from k pi to
    (k + 1) pi, and there log sin x + 2m log |sin u| is strictly concave: the second derivative of
    log |sin u| is (2i/pi) (sin(2u)/2 - 2u)/sin^2 u < 0. Each interval therefore has one root of

        sin u cos x + 2m (2 i x/pi) cos u sin x = 0

    and the best of the i roots is the global optimum.
    """
    from scipy.optimize import brentq  # a third of a second to import

    whole("m", m, least=1)

    def slope(x: float, i: int) -> float:
        u = i * x**2 / np.pi
        return float(np.sin(u) * np.cos(x) + 4 * m * i * x / np.pi * np.cos(u) * np.sin(x))

    best = []
    for i in range(1, dim + 1):
        ends = np.pi * np.sqrt(np.arange(i + 1) / i)
        gap = 1e-9 * np.diff(ends)
        roots = [
            brentq(slope, a + g, b - g, args=(i,), xtol=1e-15, rtol=1e-15)
            for a, b, g in zip(ends[:-1], ends[1:], gap, strict=True)
        ]
        depth = [np.sin(x) * np.sin(i * x**2 / np.pi) ** (2 * m) for x in roots]
        best.append(roots[int(np.argmax(depth))])
    fun = partial(michalewicz, m=m)
    return fun, [(0.0, np.pi)] * dim, float(fun(np.array([best]))[0]), [best]


def hartmann(x: Array, A: Array, P: Array) -> Array:
    """-sum_i alpha_i exp(-sum_j A_ij (x_j - P_ij)^2)."""
    return -np.exp(-(A * (x[:, None, :] - P) ** 2).sum(2)) @ HARTMANN_ALPHA


def branin(x: Array) -> Array:
    """(y - 5.1 x^2/(4 pi^2) + 5 x/pi - 6)^2 + 10 (1 - 1/(8 pi)) cos x + 10.

    The minima are where the square is zero and cos x = -1.
    """
    a, b = x.T
    parabola = b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6
    return parabola**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10


def eggholder(x: Array) -> Array:
    """-(y + 47) sin sqrt|x/2 + y + 47| - x sin sqrt|x - y - 47|."""
    a, b = x[:, 0], x[:, 1] + 47
    return -b * np.sin(np.sqrt(abs(a / 2 + b))) - a * np.sin(np.sqrt(abs(a - b)))


def ackley(x: Array) -> Array:
    """20 (1 - exp(-r/5)) + e - exp(mean cos 2 pi x_i), r the root mean square of x."""
    r = np.sqrt((x**2).mean(1))
    return -20 * np.expm1(-0.2 * r) - np.e * np.expm1(-2 * (np.sin(np.pi * x) ** 2).mean(1))


def levy(x: Array) -> Array:
    """With w = 1 + (x - 1)/4,

    sin^2 pi w_1 + sum_{i<d} (w_i - 1)^2 (1 + 10 sin^2(pi w_i + 1))
                 + (w_d - 1)^2 (1 + sin^2 2 pi w_d).
    """
    w = (x - 1) / 4  # w - 1 of the formula: the sines below shift by whole turns, or by pi
    ends = np.sin(np.pi * w[:, 0]) ** 2 + w[:, -1] ** 2 * (1 + np.sin(2 * np.pi * w[:, -1]) ** 2)
    return ends + (w[:, :-1] ** 2 * (1 + 10 * np.sin(np.pi * w[:, :-1] + 1) ** 2)).sum(1)


def rosenbrock(x: Array) -> Array:
    """sum_{i<d} 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2."""
    return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(1)


def rastrigin(x: Array) -> Array:
    """sum_i x_i^2 + 10 (1 - cos 2 pi x_i)."""
    return (x**2 + 20 * np.sin(np.pi * x) ** 2).sum(1)


def styblinski_tang(x: Array) -> Array:
    """sum_i (x_i^4 - 16 x_i^2 + 5 x_i)/2."""
    return 0.5 * (x * (x * (x**2 - 16) + 5)).sum(1)


def six_hump_camel(x: Array) -> Array:
    """(4 - 2.1 x^2 + x^4/3) x^2 + x y + 4 (y^2 - 1) y^2."""
    a, b = x.T
    return (4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + 4 * (b**2 - 1) * b**2


def goldstein_price(x: Array) -> Array:
    """The natural logarithm of Goldstein and Price's function, which spans six decades."""
    a, b = x.T
    left = 19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2
    right = 18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2
    return np.log1p((a + b + 1) ** 2 * left) + np.log(30 + (2 * a - 3 * b) ** 2 * right)


def forrester(x: Array) -> Array:
    """(6 x - 2)^2 sin(12 x - 4)."""
    return ((6 * x - 2) ** 2 * np.sin(12 * x - 4))[:, 0]


@dataclass(frozen=True)
class Known:
    """``make`` of a family with known minimisers; a pair or a number holds for every coordinate.

    minimum   None: the function's value at the first minimiser
    """

    fun: Callable[[Array], Array]
    bounds: ArrayLike
    minimum: float | None
    minimisers: Sequence[ArrayLike]

    def __call__(self, dim: int) -> Made:
        minimisers = np.array([np.broadcast_to(x, dim) for x in self.minimisers])
        minimum = float(self.fun(minimisers)[0]) if self.minimum is None else self.minimum
        return self.fun, np.broadcast_to(self.bounds, (dim, 2)), minimum, minimisers


# The least root of x^3 - 8 x + 5/4, by Viete's formula.
STYBLINSKI_ANGLES = np.arccos(-15 / 64 * np.sqrt(3 / 8)) / 3 - 2 * np.pi * np.arange(3) / 3
STYBLINSKI_X = (2 * np.sqrt(8 / 3) * np.cos(STYBLINSKI_ANGLES)).min()
BRANIN_X = [(-np.pi, 12.275), (np.pi, 2.275), (3 * np.pi, 2.475)]
CAMEL_X = np.array([0.089842013100318062422, -0.7126564030207396334])
HARTMANN3_X = [0.11458887665506896836, 0.55564889461693004477, 0.85254698468667743762]
HARTMANN6_X = [
    0.20168951100670542433,
    0.15001069182345796879,
    0.47687397422189699032,
    0.27533243049405606824,
    0.31165161660011324245,
    0.65730053406562030606,
]

HARTMANN3 = Known(
    partial(hartmann, A=HARTMANN3_A, P=HARTMANN3_P), (0.0, 1.0), -3.8627797873326625, [HARTMANN3_X]
)
HARTMANN6 = Known(
    partial(hartmann, A=HARTMANN6_A, P=HARTMANN6_P), (0.0, 1.0), -3.3223680114155148, [HARTMANN6_X]
)
BRANIN = Known(branin, [(-5.0, 10.0), (0.0, 15.0)], 10 / (8 * np.pi), BRANIN_X)
EGGHOLDER = Known(eggholder, (-512.0, 512.0), -959.6406627208508, [(512.0, 404.2318051137578)])
ACKLEY = Known(ackley, (-32.768, 32.768), 0.0, [0.0])
LEVY = Known(levy, (-10.0, 10.0), 0.0, [1.0])
ROSENBROCK = Known(rosenbrock, (-5.0, 10.0), 0.0, [1.0])
RASTRIGIN = Known(rastrigin, (-5.12, 5.12), 0.0, [0.0])
STYBLINSKI_TANG = Known(styblinski_tang, (-5.0, 5.0), None, [STYBLINSKI_X])
SIX_HUMP_CAMEL = Known(
    six_hump_camel, [(-3.0, 3.0), (-2.0, 2.0)], -1.0316284534898773504, [CAMEL_X, -CAMEL_X]
)
GOLDSTEIN_PRICE = Known(goldstein_price, (-2.0, 2.0), float(np.log(3)), [(0.0, -1.0)])
FORRESTER = Known(forrester, (0.0, 1.0), -6.0207400557670828, [0.75724875784185587])
