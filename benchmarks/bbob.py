"""The 24 functions of BBOB [1] by ``ioh`` [2]: fitbo beside its rivals, from the same starts.

    python -m pip install -e ".[peers]"
    python benchmarks/bbob.py run --split development --methods fitbo egobox-trego pybads random
    python benchmarks/bbob.py run --methods fitbo --set acquisition=logei --label fitbo-logei
    python benchmarks/bbob.py compare fitbo fitbo-logei
    python benchmarks/bbob.py report --split development
    python benchmarks/bbob.py pack --split development

A study is one function in one dimension and one instance: 2d Sobol points, the same for every
method, and 20d evaluations after them, noise-free, as every method is told that can be told, one
thread. The instance is also the seed. The journals are a campaign's,
``results/bbob/<split>/f01-d2/<method>/<instance>.jsonl``, and ``fitbo report`` reads them too. Run
the same command again to go on where a killed one stopped. No line that is printed says what values
were found, so that a split can be run unseen.

============  ==========  =========  ===========================================================
split         dimensions  instances
============  ==========  =========  ===========================================================
development   2, 3        11 to 15   for choosing between variants of fitbo
report        5, 10       1 to 5     for the final table, run once; not looked at while choosing
============  ==========  =========  ===========================================================

``--set`` changes fitbo alone and takes the keys of a method in a campaign's file, or any key of the
file by its path: ``--set surrogate.kernel=rbf``, ``--set initial.design=latin``. A variant needs a
``--label`` of its own. The fitbo that runs is the one that Python imports.

``loops`` and ``peers`` say how each rival is set. ``bbob_report`` says what the report measures.

[1] Hansen, Finck, Ros, Auger, Real-parameter black-box optimization benchmarking 2009: noiseless
    functions definitions, INRIA RR-6829, 2009.
[2] de Nobel, Ye, Vermetten, Wang, Doerr, Baeck, IOHexperimenter, Evolutionary Computation 32, 2024.
"""

from __future__ import annotations

from common import ROOT, prepare_workers

prepare_workers()

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rivals
from bbob_report import compare, refused, report
from loops import LOOPS
from peers import PEERS, missing
from rivals import Peer, run_all, seeds_of

from fitbo.config.campaign import Campaign, StudyConfig, loads
from fitbo.config.method import MethodConfig
from fitbo.decode import ConfigError, keys_of
from fitbo.problems import PROBLEMS, Family
from fitbo.problems.black_box import Made
from fitbo.records import archive

RESULTS = ROOT / "results" / "bbob"
FUNCTIONS = range(1, 25)
SPLITS = {"development": ((2, 3), range(11, 16)), "report": ((5, 10), range(1, 6))}
CHOSEN = ("random", "gpsampler", "logei")  # of the rivals that have a model
RIVALS = {name: PEERS[name] for name in CHOSEN} | LOOPS
DEFAULT = "fitbo"
BUDGET = 22  # evaluations per dimension, 2 of them in the design


def make(dim: int, function: int = 1, instance: int = 1) -> Made:
    """A function of BBOB as a family of ``fitbo.problems`` makes it; its domain is [-5, 5]^d."""
    import ioh

    f = ioh.get_problem(function, instance, dim, ioh.ProblemClass.BBOB)
    bounds = list(zip(f.bounds.lb.tolist(), f.bounds.ub.tolist(), strict=True))
    optimum = f.optimum
    return lambda X: np.array(f(X.tolist())), bounds, float(optimum.y), [list(optimum.x)]


# As a package's entry point would add it; the workers import this module too.
PROBLEMS._own.setdefault("bbob", Family("the functions of BBOB, by ioh", make, 5, (2, None)))


def config_of(
    split: str,
    function: int,
    dim: int,
    instance: int,
    method: dict[str, Any],
    settings: Sequence[str],
    output: Path,
) -> StudyConfig:
    """The study as a campaign's file would have it, with the settings as ``fitbo run --set``."""
    problem = {"name": "bbob", "dim": dim, "function": function, "instance": instance}
    file = {
        "name": split,
        "problems": [{**problem, "label": f"f{function:02d}-d{dim}"}],
        "methods": [method],
        "seeds": [instance],
        "budget": BUDGET * dim,
        "output": str(output),
    }
    of_file = set(keys_of(Campaign)) - set(keys_of(MethodConfig))
    paths = [s if re.split(r"[=.[]", s)[0] in of_file else f"methods[0].{s}" for s in settings]
    (study,) = loads(json.dumps(file), "bbob", paths).studies()
    return study


def studies_of(chosen: argparse.Namespace) -> list[tuple[StudyConfig, Peer | None]]:
    """Every study of the grid, instances outermost, so that every function has some early."""
    dims, instances = SPLITS[chosen.split]
    methods = [(name, RIVALS.get(name)) for name in chosen.methods]
    return [
        (
            config_of(
                chosen.split,
                function,
                dim,
                instance,
                {"label": peer.label, "acquisition": "random"}
                if peer
                else {"label": chosen.label or name, "deterministic": True},
                () if peer else chosen.set,
                chosen.output,
            ),
            peer,
        )
        for instance in chosen.instances or instances
        for dim in chosen.dims or dims
        for function in chosen.functions or FUNCTIONS
        for name, peer in methods
    ]


def run_study(
    config: StudyConfig, peer: Peer | None, stop: Callable[[], bool] = lambda: False
) -> str:
    """As ``rivals.run_study``, in a process that has imported this module and so knows BBOB."""
    return rivals.run_study(config, peer, stop)


def run(chosen: argparse.Namespace) -> int:
    if chosen.set and not chosen.label:
        return refused("--set makes a variant: give it a name by --label")
    if needed := missing([RIVALS[name] for name in chosen.methods if name in RIVALS]):
        return refused(needed)
    archive.unpack(chosen.output / chosen.split)
    try:
        studies = studies_of(chosen)
    except ConfigError as error:
        return refused(str(error))
    return 1 if run_all(studies, chosen.workers, run_study) else 0


def pack(chosen: argparse.Namespace) -> int:
    print(archive.pack(chosen.output / chosen.split))
    return 0


def numbers(text: str) -> list[int]:
    """``11:13`` -> 11, 12; ``3`` -> 3; ``1,3:5`` -> 1, 3, 4."""
    return [number for part in text.split(",") for number in seeds_of(part)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="run | report | compare | pack")
    for command, about in (
        (run, "run studies, or go on with them"),
        (report, "tables and figures of all methods"),
        (compare, "two methods, function by function"),
        (pack, "journals into one archive"),
    ):
        sub = commands.add_parser(command.__name__, help=about, description=about)
        sub.set_defaults(command=command)
        sub.add_argument("--split", choices=SPLITS, default="development")
        sub.add_argument("--output", type=Path, default=RESULTS, help="journals: OUTPUT/SPLIT")
        if command is pack:
            continue
        sub.add_argument("--dims", type=int, nargs="+")
        for name in ("instances", "functions"):
            sub.add_argument(f"--{name}", type=numbers, help="such as 11:13 for 11 and 12")
        if command is compare:
            sub.add_argument("methods", nargs=2, metavar=("A", "B"), help="LABEL or FOLDER:LABEL")
        if command is report:
            sub.add_argument("--methods", nargs="+", metavar="LABEL", help="left out: all")
            sub.add_argument("--to", type=Path, help="left out: OUTPUT/SPLIT")
        if command is run:
            known = [DEFAULT, *RIVALS]
            sub.add_argument("--methods", nargs="+", choices=known, default=[DEFAULT])
            sub.add_argument("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE")
            sub.add_argument("--label", help="of fitbo, in place of 'fitbo'")
            sub.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args()
    sys.exit(chosen.command(chosen))


if __name__ == "__main__":
    main()
