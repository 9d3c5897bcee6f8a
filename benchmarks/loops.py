"""Optimisers that own their loop, each at its best documented setting, for ``rivals.Peer.play``.

All work on the unit cube, know that there is no noise, and begin from the design's points and
values; a fixed seed makes each of them repeat itself. The best observed is what they recommend.

============  ======================================================================================
egobox-trego  EGObox's ``Egor`` [1], ``trego=True``: turns of global and local steps of LogEI in a
              trust region about the incumbent [2]. The design is its ``x_doe`` and ``y_doe``.
egobox        The same without: LogEI, EGObox's default.
pybads        PyBADS [3] told that the objective is deterministic. The design is its
              ``precomputed_evaluations``, which train its Gaussian process, and ``x0`` the best of
              it, as the documentation of that argument advises. When it ends before the budget,
              it begins again at a random point, as its authors advise [3], knowing all values.
============  ======================================================================================

[1] Lafage, egobox, a Rust toolbox for efficient global optimization, JOSS 7(78), 4737, 2022.
[2] Diouane, Picheny, Le Riche, Scotto Di Perrotolo, TREGO: a trust-region framework for efficient
    global optimization, J. Global Optimization 86, 2023.
[3] Singh, Acerbi, PyBADS: fast and robust black-box optimization in Python, JOSS 9(94), 5694, 2024;
    https://github.com/acerbilab/bads/wiki (how many times to run it, and from where).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rivals import SUGGEST, Evaluate, Peer, Start


def egobox(start: Start, evaluate: Evaluate, trego: bool) -> None:
    import egobox as egx

    raised: list[BaseException] = []

    def objective(U: Any) -> Any:
        # Egor takes an exception for a failed evaluation and goes on: it is kept for afterwards.
        if raised:
            return np.full((len(U), 1), np.nan)
        try:
            return np.array([[evaluate(u)] for u in U])
        except BaseException as error:
            raised.append(error)
            raise

    U, y = start.data.U, start.data.y
    seed = start.data.integer(SUGGEST)
    optimiser = egx.Egor([[0.0, 1.0]] * U.shape[1], x_doe=U, y_doe=y[:, None], trego=trego)
    try:
        optimiser.minimize(objective, max_iters=start.left, seed=seed, stop_on_error=True)
    finally:
        if raised:
            raise raised[0]


def pybads(start: Start, evaluate: Evaluate) -> None:
    from pybads import BADS

    U, y = start.data.U, start.data.y
    dim = U.shape[1]
    x0 = start.data.rng(SUGGEST).random(dim) if start.turn else U[np.argmin(y)]
    optimiser = BADS(
        lambda u: evaluate(np.ravel(u)),
        x0,
        *(np.full(dim, bound) for bound in (0.0, 1.0, 0.0, 1.0)),
        options={
            "uncertainty_handling": False,
            "max_fun_evals": start.left,
            "random_seed": start.data.integer(SUGGEST),
            "display": "off",
            "show_tips": False,
        },
        precomputed_evaluations=(U, y),
    )
    optimiser.optimize()


ALL = (
    Peer("egobox-trego", "EGObox-TREGO", ("egobox",), play=egobox, settings={"trego": True}),
    Peer("egobox", "EGObox", ("egobox",), play=egobox, settings={"trego": False}),
    Peer("pybads", "PyBADS", ("pybads", "gpyreg"), play=pybads),
)
LOOPS = {peer.name: peer for peer in ALL}
