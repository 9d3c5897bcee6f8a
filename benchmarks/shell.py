"""Seconds of the commands on a large study: import, status, ask, and tell while an ask is thinking.

    python benchmarks/shell.py          # some minutes; writes results/suggest/shell.md

Each command is a process of its own, as in a shell: Python and its imports count, and a line of
the table says how much they are. The values are Hartmann-6D's at Sobol points. ``ask`` thinks
without the journal's lock, so a ``tell`` meanwhile must be neither refused nor made to wait for it;
the ``ask`` then thinks again, with what was told.
"""

from __future__ import annotations

from common import ONE_THREAD, ROOT, one_thread, versions, write

one_thread()

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import qmc

from fitbo.problems import problem

RESULTS = ROOT / "results" / "suggest"
NAMES = [f"x{i}" for i in range(6)]
STUDY = "\n".join(
    [
        "space:",
        *(f"  {name}: {{type: real, low: 0.0, high: 1.0}}" for name in NAMES),
        "budget: 5000",
        "seed: 0",
        "name: shell",
        "",
    ]
)
TELLS = 5


def command(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """``fitbo ARGUMENTS`` of this source, started in a folder with one thread."""
    return subprocess.Popen(
        [sys.executable, "-m", "fitbo", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def cpu() -> float:
    """CPU seconds of the commands that have ended and been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ended(process: subprocess.Popen[str]) -> None:
    """Wait for a command, which must succeed."""
    _, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{process.args} ended with {process.returncode}: {errors}")


def timed(folder: Path, *arguments: object) -> np.ndarray:
    """Seconds of a command from its start to its end, and of CPU, (2,)."""
    start = np.array([time.perf_counter(), cpu()])
    ended(command(folder, *arguments))
    return np.array([time.perf_counter(), cpu()]) - start


def new_study(folder: Path, n: int) -> None:
    """study.yaml, and n values for it in data.csv."""
    folder.mkdir()
    (folder / "study.yaml").write_text(STUDY)
    sobol = qmc.Sobol(len(NAMES), scramble=True, rng=np.random.default_rng(0))
    points = sobol.random(1 << (n - 1).bit_length())[:n]
    values = problem("hartmann6").fun(points)
    with (folder / "data.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*NAMES, "value"])
        writer.writerows([*map(float, x), float(y)] for x, y in zip(points, values, strict=True))


def tells_during_ask(folder: Path) -> tuple[np.ndarray, int, np.ndarray]:
    """Seconds of each tell (TELLS, 2), how many ended before the ask did, seconds of the ask."""
    start = np.array([time.perf_counter(), cpu()])
    thinking = command(folder, "ask", "study.yaml")
    tells, meanwhile = [], 0
    for i in range(TELLS):
        point = [f"{name}={0.1 + 0.15 * i + 0.01 * k}" for k, name in enumerate(NAMES)]
        tells.append(timed(folder, "tell", "study.yaml", "--set", *point, "--value", -0.5))
        meanwhile += thinking.poll() is None
    ended(thinking)
    both = np.array([time.perf_counter(), cpu()]) - start
    return np.array(tells), meanwhile, both - [0.0, sum(seconds[1] for seconds in tells)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=2000, help="of the table to import")
    parser.add_argument("--values", type=int, default=1000, help="of the study for the rest")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        large, study = Path(temporary) / "large", Path(temporary) / "study"
        new_study(large, given.lines)
        new_study(study, given.values)
        bare = timed(study, "--version")
        imported = timed(large, "import", "study.yaml", "data.csv")
        timed(study, "import", "study.yaml", "data.csv")
        status = timed(study, "status", "study.yaml")
        ask = timed(study, "ask", "study.yaml")
        tells, meanwhile, busy = tells_during_ask(study)
    n = given.values
    rows: list[dict[str, Any]] = [
        {"command": name, "values": values, "seconds": seconds[0], "CPU seconds": seconds[1]}
        for name, values, seconds in (
            ("Python and the imports alone (`--version`)", 0, bare),
            (f"`import` of {given.lines} lines", 0, imported),
            ("`status`", n, status),
            ("`ask`", n, ask),
            ("`tell` during an `ask`, the median", n, np.median(tells, axis=0)),
            ("`tell` during an `ask`, the longest", n, tells.max(0)),
            (f"that `ask`, with {TELLS} tells meanwhile", n, busy),
        )
    ]
    lines = [
        "# The commands on a large study",
        "",
        f"Made by `python benchmarks/shell.py`, one thread each, {versions('numpy', 'scipy')}.",
        "Seconds from start to end of the process, and of CPU, which other work on the machine",
        "does not lengthen. Hartmann-6D, M = 200.",
        "",
        "| command | values in the study | seconds | CPU seconds |",
        "| --- | --- | --- | --- |",
        *(
            f"| {r['command']} | {r['values']} | {r['seconds']:.2g} | {r['CPU seconds']:.2g} |"
            for r in rows
        ),
        "",
        f"None of the {TELLS} tells was refused; {meanwhile} of them had ended before the ask did.",
    ]
    write(given.output, "shell", lines, rows)


if __name__ == "__main__":
    main()
