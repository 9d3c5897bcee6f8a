"""Optimisers that own their loop, each at its best documented setting, for ``rivals.Peer.play``.

All work on the unit cube, know that there is no noise, and begin from the design's points and
values; a fixed seed makes each of them repeat itself. The best observed is what they recommend.

============  ======================================================================================
egobox-trego  EGObox's ``Egor`` [1], ``trego=True``: turns of global and local steps of LogEI in a
              trust region about the incumbent [2]. The design is its ``x_doe`` and ``y_doe``. It
              stops when it has no new point; then it begins again from all values.
egobox        The same without: LogEI, EGObox's default.
pybads        PyBADS [3], ``uncertainty_handling=False``. The design is ``precomputed_evaluations``,
              which train its Gaussian process, in place of its own (``fun_eval_start=0``); ``x0``
              is the best of it, as the documentation of that argument advises. ``tol_fun=1e-8``,
              the last target. When it ends before the budget it begins again at a random point
              ("rerun from different starting points", its example 5), knowing all values.
cma           pycma's ``CMAEvolutionStrategy`` [4], ``x0`` the best of the design and ``sigma0`` a
              quarter of the cube's side ("about 1/4th of the search domain width"), within bounds.
              The other points are not used. When it ends, IPOP: twice the population, from a
              random point.
smac          SMAC3's ``BlackBoxFacade`` [5] by ask and tell, ``deterministic``; the design is its
              initial design (``additional_configs``, and ``n_configs=0`` of its own).
hebo          HEBO with ``model_name="gpy"``, by ask and tell in an interpreter of its own, which
              ``HEBO_PYTHON`` names: see ``hebo_server``. It observes the design.
============  ======================================================================================

[1] Lafage, egobox, a Rust toolbox for efficient global optimization, JOSS 7(78), 4737, 2022.
[2] Diouane, Picheny, Le Riche, Scotto Di Perrotolo, TREGO: a trust-region framework for efficient
    global optimization, J. Global Optimization 86, 2023.
[3] Singh, Acerbi, PyBADS: fast and robust black-box optimization in Python, JOSS 9(94), 5694, 2024.
[4] Hansen, Akimoto, Baudis, CMA-ES/pycma; Auger, Hansen, A restart CMA evolution strategy with
    increasing population size, CEC 2005.
[5] Lindauer et al., SMAC3: a versatile Bayesian optimization package for hyperparameter
    optimization, JMLR 23, 2022.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rivals import SUGGEST, Data, Evaluate, Model, Peer, Start

from fitbo.mixture import Array

HEBO_SERVER = Path(__file__).with_name("hebo_server.py")


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


def pybads(start: Start, evaluate: Evaluate, **options: Any) -> None:
    from pybads import BADS

    U, y = start.data.U, start.data.y
    optimiser = BADS(
        lambda u: evaluate(np.ravel(u)),
        begin(start),
        *(np.full(U.shape[1], bound) for bound in (0.0, 1.0, 0.0, 1.0)),  # hard, then plausible
        options={
            **options,
            "uncertainty_handling": False,
            "max_fun_evals": start.left,
            "random_seed": start.data.integer(SUGGEST),
            "display": "off",
            "show_tips": False,
        },
        precomputed_evaluations=(U, y),
    )
    optimiser.optimize()


def begin(start: Start) -> Array:
    """Where a local search begins: at the best of the design, later at random, (d,)."""
    U, y = start.data.U, start.data.y
    return start.data.rng(SUGGEST).random(U.shape[1]) if start.turn else U[np.argmin(y)]


def cma(start: Start, evaluate: Evaluate, sigma0: float) -> None:
    from cma import CMAEvolutionStrategy, CMAOptions

    d = start.data.U.shape[1]
    options = CMAOptions()
    options.update({"bounds": [0, 1], "seed": 1 + start.data.integer(SUGGEST), "verbose": -9})
    options["popsize"] = (4 + int(3 * np.log(d))) * 2**start.turn  # pycma's own, then IPOP's
    search = CMAEvolutionStrategy(begin(start), sigma0, options)
    while not search.stop():
        points = search.ask()
        search.tell(points, [evaluate(u) for u in points])


def smac(start: Start, evaluate: Evaluate) -> None:
    from ConfigSpace import Configuration, ConfigurationSpace, Float
    from smac import BlackBoxFacade, Scenario
    from smac.runhistory.dataclasses import TrialValue

    U, y = start.data.U, start.data.y
    seed = start.data.integer(SUGGEST)
    names = [f"x{i:02d}" for i in range(U.shape[1])]  # SMAC sorts them
    space = ConfigurationSpace(seed=seed, space={})
    space.add([Float(name, (0.0, 1.0)) for name in names])
    seen = [Configuration(space, dict(zip(names, u, strict=True))) for u in U.tolist()]
    known = dict(zip(seen, y.tolist(), strict=True))
    with tempfile.TemporaryDirectory() as folder:  # it writes a history of its own
        trials = len(y) + start.left
        scenario = Scenario(
            space, deterministic=True, n_trials=trials, seed=seed, output_directory=Path(folder)
        )
        design = BlackBoxFacade.get_initial_design(scenario, n_configs=0, additional_configs=seen)
        facade = BlackBoxFacade(
            scenario, never, initial_design=design, overwrite=True, logging_level=False
        )
        for _ in range(trials):
            asked = facade.ask()
            value = known.get(asked.config)
            if value is None:
                value = evaluate(np.array([asked.config[name] for name in names]))
            facade.tell(asked, TrialValue(cost=value))


def never(config: Any, seed: int = 0) -> float:
    raise RuntimeError("SMAC is driven by ask and tell, and evaluates nothing itself")


def hebo(data: Data) -> Model:
    def suggest() -> Array:
        server, _ = hebo_server()
        assert server.stdin is not None
        assert server.stdout is not None
        question = {"U": data.U.tolist(), "y": data.y.tolist(), "seed": data.integer(SUGGEST)}
        print(json.dumps(question), file=server.stdin, flush=True)
        answer = json.loads(server.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return np.array(answer["u"])

    return Model(suggest)


@cache
def hebo_server() -> tuple[subprocess.Popen[str], dict[str, str]]:
    """HEBO's process, which ends with this one, and its versions."""
    command = [os.environ.get("HEBO_PYTHON", sys.executable), str(HEBO_SERVER)]
    pipe = subprocess.PIPE
    server = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    )
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line:
        server.communicate()  # closes the pipes
        raise ValueError(
            f"hebo needs HEBO, which {command[0]} cannot import: let HEBO_PYTHON name an "
            f"interpreter that can, as {HEBO_SERVER.name} describes"
        )
    return server, json.loads(line)


def hebo_versions() -> dict[str, str]:
    return hebo_server()[1]


ALL = (
    Peer("egobox-trego", "EGObox-TREGO", ("egobox",), play=egobox, settings={"trego": True}),
    Peer("egobox", "EGObox", ("egobox",), play=egobox, settings={"trego": False}),
    Peer(
        "pybads",
        "PyBADS",
        ("pybads", "gpyreg"),
        play=pybads,
        settings={"fun_eval_start": 0, "tol_fun": 1e-8},
    ),
    Peer("cma", "CMA-ES", ("cma",), play=cma, settings={"sigma0": 0.25}),
    Peer("smac", "SMAC3-BlackBox", ("smac",), play=smac),
    Peer("hebo", "HEBO", fit=hebo, versions=hebo_versions),
)
LOOPS = {peer.name: peer for peer in ALL}
