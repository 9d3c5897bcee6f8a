"""HEBO [1] behind a pipe, for an interpreter of its own: it wants a numpy older than fitbo's.

    python3.11 -m venv hebo
    hebo/bin/python -m pip install numpy==1.24.4 scipy==1.12 pandas scikit-learn torch==2.13.0 \\
        gpytorch==1.13 GPy==1.13.2 pymoo==0.6.0 catboost disjoint-set
    hebo/bin/python -m pip install --no-deps HEBO
    HEBO_PYTHON=hebo/bin/python python benchmarks/bbob.py run --methods hebo

pip does not come to an end with what HEBO itself asks for; with these versions it runs.
``loops.hebo`` starts it. Its first line of output names its versions; then each line of input, the
values so far and a seed, is answered by a line with the next point:

    {"U": [[...], ...], "y": [...], "seed": 7}  ->  {"u": [...]}  or  {"error": "..."}

The setting is that of HEBO's own notebook and of its winning submission to the NeurIPS 2020
black-box challenge: ``model_name="gpy"``, the Gaussian process with warped inputs, and MACE. HEBO
keeps nothing between suggestions but its data and numpy's and torch's global random states, so
that the seed makes them the same in a resumed study. Release 0.3.6 has the model but has left it
out of its list of names, where it is put back.

[1] Cowen-Rivers et al., HEBO: pushing the limits of sample-efficient hyper-parameter optimisation,
    JAIR 74, 2022.
"""

from __future__ import annotations

import json
import sys

answers, sys.stdout = sys.stdout, sys.stderr  # before the imports: some of them print

import random
from importlib.metadata import version

import numpy as np
import pandas as pd
import torch
from hebo.design_space.design_space import DesignSpace
from hebo.models.gp.gpy_wgp import GPyGP
from hebo.models.model_factory import model_dict
from hebo.optimizers.hebo import HEBO


def suggest(U: list[list[float]], y: list[float], seed: int) -> list[float]:
    """The next point of the unit cube, (d,), after values (n,) at points (n, d)."""
    names = [f"x{i}" for i in range(len(U[0]))]
    kinds = [{"name": name, "type": "num", "lb": 0.0, "ub": 1.0} for name in names]
    optimiser = HEBO(DesignSpace().parse(kinds), model_name="gpy", scramble_seed=seed)
    optimiser.observe(pd.DataFrame(U, columns=names), np.array(y)[:, None])
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (it is what HEBO draws from)
    torch.manual_seed(seed)
    return optimiser.suggest(1)[names].to_numpy(dtype=float)[0].tolist()


def main() -> None:
    model_dict.setdefault("gpy", GPyGP)
    packages = ("HEBO", "GPy", "pymoo", "torch")
    print(json.dumps({package: version(package) for package in packages}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = {"u": suggest(**json.loads(line))}
        except Exception as error:  # noqa: BLE001 (the study decides what it costs)
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
