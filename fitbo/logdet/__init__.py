"""Log-determinants of large positive definite matrices, by maximum entropy and its rivals.

    logdet(K)                                   -> log det K, a float
    value, info = logdet(K, return_info=True)   -> and how it was estimated

K is an ndarray, a scipy.sparse matrix or array, or a ``LinearOperator``. All methods but
``cholesky`` see it only through products with random probes, and at equal ``n_moments`` and
``n_probes`` all take the same number of products: ceil(n_moments / 2) for each probe, since inner
products of the recursion's vectors give two moments per product. For Lanczos, n_moments / 2 is the
number of steps.

An ``UnseenEigenvaluesWarning`` says that the answer rests on eigenvalues too small for the products
to show: the log-determinant may then be far lower. Dense matrices of a few thousand rows are faster
by ``method="cholesky"``, and exact.

Imports: ``checks``, ``mixture`` and ``maxent`` only.
Add here: one file per method with ``estimate(task)``, and one line in ``METHODS``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np

from fitbo.checks import one_of, whole
from fitbo.logdet import auto, chebyshev, cholesky, lanczos, omxnt, taylor
from fitbo.logdet.bounds import resolve
from fitbo.logdet.deflation import Deflated
from fitbo.logdet.info import LogdetInfo, SpectralDensity, UnseenEigenvaluesWarning
from fitbo.logdet.operator import as_operator
from fitbo.logdet.trace import Task
from fitbo.maxent import FAMILIES
from fitbo.maxent.solve import Prior

Method = Callable[..., tuple[float, LogdetInfo]]

METHODS: dict[str, Method] = {
    "meme": auto.estimate,
    "lanczos": lanczos.estimate,
    "chebyshev": chebyshev.estimate,
    "taylor": taylor.estimate,
    "omxnt": omxnt.estimate,
    "cholesky": cholesky.estimate,
}
PRIORS = ("auto", "flat", "log", "ritz")


@overload
def logdet(
    K: Any,
    method: str = ...,
    n_moments: int = ...,
    n_probes: int = ...,
    basis: str = ...,
    bounds: Any = ...,
    seed: Any = ...,
    return_info: Literal[False] = ...,
    *,
    prior: str | Prior = ...,
    deflation: int = ...,
) -> float: ...


@overload
def logdet(
    K: Any,
    method: str = ...,
    n_moments: int = ...,
    n_probes: int = ...,
    basis: str = ...,
    bounds: Any = ...,
    seed: Any = ...,
    *,
    return_info: Literal[True],
    prior: str | Prior = ...,
    deflation: int = ...,
) -> tuple[float, LogdetInfo]: ...


def logdet(
    K: Any,
    method: str = "meme",
    n_moments: int = 30,
    n_probes: int = 50,
    basis: str = "legendre",
    bounds: Any = None,
    seed: Any = None,
    return_info: bool = False,
    *,
    prior: str | Prior = "auto",
    deflation: int = 0,
) -> float | tuple[float, LogdetInfo]:
    """log det K of a real symmetric positive definite K, (n, n).

    method       one of ``METHODS``
    n_moments    moments of the spectrum to match; ceil(n_moments / 2) products per probe
    n_probes     random sign vectors
    basis        of the moments, for MEMe: legendre, chebyshev or power
    bounds       of the spectrum: None, "gershgorin", "lanczos", or a pair (lower, upper), with None
                 for an unknown end. An unknown upper end is bounded by Gershgorin's discs, for a
                 LinearOperator by Lanczos (the default prior needs none). For a kernel matrix plus
                 noise, the noise variance is a lower bound: bounds=(noise, None)
    seed         an int, a numpy.random.Generator, or None
    return_info  also return a ``LogdetInfo``
    prior        MEMe's q0: "auto" to learn it from Lanczos runs as long as the first two show to
                 be needed, within the same number of products; "ritz" for two long runs in any
                 case; "flat" (the paper's), "log" for flat in log lambda, or a function of lambda
    deflation    pivots of a pivoted Cholesky factorisation to take out exactly first

    Warns with an ``UnseenEigenvaluesWarning`` where the priors "auto" and "ritz" find that the
    answer may be too large by more than its standard error. The scale of K does not matter: it is
    divided by a power of two first if its entries are very large or very small.
    """
    one_of("method", method, METHODS)
    whole("n_moments", n_moments, least=1)
    whole("n_probes", n_probes, least=1)
    whole("deflation", deflation, least=0)
    one_of("basis", basis, FAMILIES)
    if not callable(prior) and prior not in PRIORS:
        raise ValueError(f"prior must be one of {', '.join(PRIORS)} or a function, got {prior!r}")
    operator = as_operator(K)
    exponent = operator.exponent
    known = operator.n * exponent * float(np.log(2))
    if method == "cholesky":
        value, info = cholesky.estimate(operator)
    else:
        rng = np.random.default_rng(seed)
        limits = resolve(operator, bounds, rng, spare=method == "meme" and prior == "auto")
        if deflation:
            operator = Deflated(operator, deflation)
            known += float(np.log(operator.pivots).sum())
            limits = operator.bounds(limits)
        q0 = _in_units_of_K(prior, limits.upper, exponent) if callable(prior) else prior
        task = Task(operator, n_moments, n_probes, limits, rng, basis, q0)
        value, info = METHODS[method](task)
    if info.bracket:
        low, high = info.bracket
        info = replace(info, bracket=(low + known, high + known))
    info = replace(info, scale=float(np.ldexp(1.0, exponent)))
    if info.warning:
        warnings.warn(info.warning, UnseenEigenvaluesWarning, stacklevel=2)
    return (value + known, info) if return_info else value + known


def _in_units_of_K(prior: Prior, upper: float, exponent: int) -> Prior:
    """A function of K's eigenvalues as one of those of K / 2^exponent."""
    if exponent > 0 and upper > np.ldexp(np.finfo(np.float64).max, -exponent):
        raise ValueError(
            "prior cannot be a function where eigenvalues of K may exceed 1.8e308, the largest "
            "double; divide K by a constant c and add n log c, or name a prior"
        )
    return lambda x: prior(np.ldexp(x, exponent))


__all__ = [
    "METHODS",
    "PRIORS",
    "LogdetInfo",
    "SpectralDensity",
    "UnseenEigenvaluesWarning",
    "logdet",
]
