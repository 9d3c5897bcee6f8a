"""Log-determinants of large positive definite matrices, by maximum entropy and its rivals.

    logdet(K)                                   -> log det K, a float
    value, info = logdet(K, return_info=True)   -> and how it came about

K is an ndarray, a scipy.sparse matrix or array, or a ``LinearOperator``. All methods but
``cholesky`` see it through products with random probes only, and at equal ``n_moments`` and
``n_probes`` all take the same number of products: ceil(n_moments / 2) for each probe, since inner
products of the recursion's vectors give two moments for each product. For Lanczos, n_moments / 2
is the number of steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np

from fitbo.checks import one_of, whole

# Under other names, so that fitbo.logdet.meme and its like stay the modules.
from fitbo.logdet.bounds import resolve
from fitbo.logdet.chebyshev import chebyshev as by_chebyshev
from fitbo.logdet.cholesky import cholesky as by_cholesky
from fitbo.logdet.deflation import Deflated
from fitbo.logdet.info import LogdetInfo, SpectralDensity
from fitbo.logdet.lanczos import lanczos as by_lanczos
from fitbo.logdet.meme import meme as by_meme
from fitbo.logdet.omxnt import omxnt as by_omxnt
from fitbo.logdet.operator import as_operator
from fitbo.logdet.ritz import meme_ritz as by_meme_ritz
from fitbo.logdet.taylor import taylor as by_taylor
from fitbo.maxent import FAMILIES
from fitbo.mixture import Array

Method = Callable[..., tuple[float, LogdetInfo]]

METHODS: dict[str, Method] = {
    "meme": by_meme,
    "lanczos": by_lanczos,
    "chebyshev": by_chebyshev,
    "taylor": by_taylor,
    "omxnt": by_omxnt,
    "cholesky": by_cholesky,
}
PRIORS = ("flat", "log", "ritz")


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
    prior: str | Callable[[Array], Array] = ...,
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
    prior: str | Callable[[Array], Array] = ...,
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
    prior: str | Callable[[Array], Array] = "flat",
    deflation: int = 0,
) -> float | tuple[float, LogdetInfo]:
    """log det K of a real symmetric positive definite K, (n, n).

    method       one of ``METHODS``
    n_moments    moments of the spectrum to match; ceil(n_moments / 2) products for each probe
    n_probes     random sign vectors
    basis        of the moments, for MEMe: legendre, chebyshev or power
    bounds       of the spectrum: None, "gershgorin", "lanczos", or a pair (lower, upper) in which
                 None stands for not known. Unknown upper ends are bounded by Gershgorin's discs,
                 for a LinearOperator by Lanczos. For a kernel matrix plus noise, the noise variance
                 is a lower bound: bounds=(noise, None)
    seed         an int, a numpy.random.Generator, or None
    return_info  also return a ``LogdetInfo``
    prior        MEMe's q0: "flat" (the paper's), "log" for flat in log lambda, "ritz" to learn it
                 from long Lanczos runs within the same number of products (the choice for kernel
                 matrices and for condition numbers beyond some 1e4), or a function of lambda
    deflation    pivots of a pivoted Cholesky factorisation to take out exactly first
    """
    _check(method, n_moments, n_probes, basis, prior, deflation)
    rng = np.random.default_rng(seed)
    operator = as_operator(K)
    if method == "cholesky":
        value, info = by_cholesky(operator)
        return (value, info) if return_info else value
    known = 0.0
    if deflation:
        given = resolve(operator, bounds, rng)
        operator = Deflated(operator, deflation)
        known = float(np.log(operator.pivots).sum())
        limits = operator.bounds(given)
    else:
        limits = resolve(operator, bounds, rng)
    options: dict[str, Any] = {}
    estimate = METHODS[method]
    if method == "meme":
        if prior == "ritz":
            estimate = by_meme_ritz
        else:
            options = {"basis": basis, "prior": prior}
    value, info = estimate(operator, n_moments, n_probes, limits, rng, **options)
    if known:
        bracket = info.bracket and (info.bracket[0] + known, info.bracket[1] + known)
        info = replace(info, bracket=bracket)
    return (value + known, info) if return_info else value + known


def _check(
    method: str, n_moments: int, n_probes: int, basis: str, prior: object, deflation: int
) -> None:
    one_of("method", method, METHODS)
    whole("n_moments", n_moments, least=1)
    whole("n_probes", n_probes, least=1)
    whole("deflation", deflation, least=0)
    one_of("basis", basis, FAMILIES)
    if not callable(prior) and prior not in PRIORS:
        raise ValueError(f"prior must be one of {', '.join(PRIORS)} or a function, got {prior!r}")


__all__ = ["METHODS", "PRIORS", "LogdetInfo", "SpectralDensity", "logdet"]
