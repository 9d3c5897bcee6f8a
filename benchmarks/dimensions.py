"""Regret in many dimensions: fitbo beside BoTorch's default and its sparse model, SAAS.

    python -m pip install -e ".[peers]"
    python benchmarks/dimensions.py                        # writes results/dimensions/
    python benchmarks/dimensions.py --methods fitbo --seeds 0:2

    embedded  Hartmann-6D in 50 inputs, of which the others do nothing
    levy      Levy in 20 dimensions, every input of which matters

Every method has the same 20 Sobol points and 60 evaluations more, without noise, as all are told,
and one thread. ``peers`` says how the rivals are set. The journals are a campaign's; run the same
command again to go on where a killed one stopped.
"""

from __future__ import annotations

from common import ROOT, prepare_workers, versions, write

prepare_workers()

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import rivals
from peers import PEERS, missing
from rivals import run_all, seeds_of

from fitbo.config.campaign import StudyConfig, from_dict
from fitbo.problems import PROBLEMS, Family, problem
from fitbo.problems.black_box import Made
from fitbo.records import archive
from fitbo.report.history import Runs, group, load

RESULTS = ROOT / "results" / "dimensions"
N_INITIAL, EXTRA = 20, 60
AT = (20, 40, 60)  # evaluations after the design
FEW = 6  # inputs of the 50 that matter: every eighth
METHODS = {"fitbo": "fitbo", "logei": "BoTorch-LogEI", "saas": "BoTorch-SAAS", "random": "Random"}


def embedded(dim: int) -> Made:
    """Hartmann-6D of six inputs, spread among those that do nothing."""
    inner = problem("hartmann6")
    at = (dim // FEW) * np.arange(FEW)
    lowest = np.full(dim, 0.5)
    lowest[at] = inner.minimisers[0]
    return lambda X: inner.fun(X[:, at]), [(0.0, 1.0)] * dim, inner.minimum, [lowest.tolist()]


# As a package's entry point would add it; the workers import this module too.
EMBEDDED = Family("Hartmann-6D among inputs that do nothing", embedded, 50, (FEW, None))
PROBLEMS._own.setdefault("embedded", EMBEDDED)
SUITE: tuple[dict[str, Any], ...] = ({"name": "embedded", "dim": 50}, {"name": "levy", "dim": 20})


def study_of(described: dict[str, Any], name: str, seed: int, output: Path) -> StudyConfig:
    method = {"deterministic": True} if name == "fitbo" else {"acquisition": "random"}
    file = {
        "name": output.name,
        "problems": [described],
        "methods": [{"label": METHODS[name], **method}],
        "seeds": [seed],
        "budget": N_INITIAL + EXTRA,
        "initial": {"n": N_INITIAL},
        "output": str(output.parent),
    }
    (study,) = from_dict(file).studies()
    return study


def run_study(config: StudyConfig, name: str, stop: Callable[[], bool] = lambda: False) -> str:
    """As ``rivals.run_study``, in a process that knows the embedded function."""
    return rivals.run_study(config, PEERS.get(name), stop)


def table(runs: Runs) -> list[str]:
    """Markdown."""
    lines = [
        "# Many dimensions",
        "",
        f"Made by `python benchmarks/dimensions.py`, {versions('numpy', 'botorch', 'torch')}: the",
        f"same {N_INITIAL} Sobol points, without noise. Median regret of the best value observed,",
        "its range in the end, and seconds per suggestion on a busy machine.",
        "",
        f"| problem | method | seeds | {' | '.join(f'after {n}' for n in AT)} | range | seconds |",
        f"| --- | --- | --- | {' | '.join('---' for _ in AT)} | --- | --- |",
    ]
    for label, methods in runs.items():
        for name in METHODS.values():
            done = [run for run in methods.get(name, []) if run.complete]
            if not done:
                continue
            regrets = np.array([run.simple for run in done])
            cells = [f"{np.median(regrets[:, N_INITIAL + n - 1]):.2g}" for n in AT]
            cells.append(f"{regrets[:, -1].min():.2g} to {regrets[:, -1].max():.2g}")
            seconds = np.nanmean(np.concatenate([run.seconds for run in done]))
            cells.append(f"{seconds:.2g}")
            lines.append(f"| {label} | {name} | {len(done)} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=seeds_of, default="0:3", help="0:3, or one seed")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    if needed := missing([PEERS[name] for name in chosen.methods if name in PEERS]):
        sys.exit(needed)
    output = chosen.output.resolve()
    archive.unpack(output)
    studies = [
        (study_of(described, name, seed, output), name)
        for seed in chosen.seeds
        for described in SUITE
        for name in chosen.methods
    ]
    failed = run_all(studies, chosen.workers, run_study)
    write(output, "table", table(group(load([output]))))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
