"""Studies per minute on two worker processes against one, in one run.

    python benchmarks/scaling.py              # writes results/scaling/; wants two idle cores

The same campaign, ``executor: processes``, with one worker and with two in turn, so that whatever
else the machine does falls on both alike. Timed is the whole of ``python -m fitbo run`` but for its
report: starting Python, starting the workers, the studies and the table. Also given is the time
between the first row of any journal and the last, which is what a longer campaign tends to.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import ROOT, fitbo_run, versions, write

RESULTS = ROOT / "results" / "scaling"
ASKED = 1.8
CONFIG = """\
name: scaling
problems: [hartmann6]
methods: [{{label: MEMeL-10, entropy: memel, samples: 200}}]
seeds: {studies}
budget: {budget}
"""


@dataclass(frozen=True)
class Timing:
    """Seconds of one run: of the whole command, and of the studies alone."""

    whole: float
    studies: float


def timed(workers: int, studies: int, budget: int) -> Timing:
    with tempfile.TemporaryDirectory(prefix="fitbo-scaling-") as name:
        folder = Path(name)
        config = folder / "scaling.yaml"
        config.write_text(CONFIG.format(studies=studies, budget=budget))
        settings = [f"output={name}", "executor.kind=processes", f"executor.workers={workers}"]
        began: list[float] = []
        watcher = threading.Thread(target=_first_row, args=(folder, began), daemon=True)
        started = time.perf_counter()
        watcher.start()
        subprocess.run(**fitbo_run(config, "--quiet", settings=settings), check=True)
        ended = time.perf_counter()
        watcher.join()
        # File times are of the system's clock, so the last row is dated by how long ago it was.
        last = max(path.stat().st_mtime for path in folder.rglob("*.jsonl"))
        return Timing(ended - started, ended - (time.time() - last) - began[0])


def _first_row(folder: Path, began: list[float]) -> None:
    while not any(path.read_bytes().count(b"\n") > 1 for path in folder.rglob("*.jsonl")):
        time.sleep(0.01)
    began.append(time.perf_counter())


def table(timings: dict[int, list[Timing]], studies: int, budget: int) -> tuple[list[str], float]:
    """Markdown, and the ratio of the medians of the whole."""
    median = {
        (workers, part): float(np.median([getattr(each, part) for each in those]))
        for workers, those in timings.items()
        for part in ("whole", "studies")
    }
    lines = ["| workers | studies per minute | ratio | without the start | ratio |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for workers in timings:
        cells = [str(workers)]
        for part in ("whole", "studies"):
            cells.append(f"{60 * studies / median[workers, part]:.2f}")
            cells.append(f"{median[1, part] / median[workers, part]:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    load = os.getloadavg()
    lines += [
        "",
        f"{studies} studies of {budget} evaluations on Hartmann-6D, M = 200; medians of "
        f"{len(timings[1])} runs each, in turn. Asked: {ASKED} times. {os.cpu_count()} cores, "
        f"{versions()}, load at the end {load[0]:.1f}.",
        "",
        "    python benchmarks/scaling.py",
    ]
    return lines, median[1, "whole"] / median[2, "whole"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--studies", type=int, default=8, help="an even number")
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    if os.getloadavg()[0] > 1.0:
        print(f"the machine is busy (load {os.getloadavg()[0]:.1f}): the figures will mislead")
    timings: dict[int, list[Timing]] = {1: [], 2: []}
    for _ in range(options.repeats):
        for workers, those in timings.items():
            those.append(timed(workers, options.studies, options.budget))
            print(f"{workers} workers: {those[-1]}", flush=True)
    lines, ratio = table(timings, options.studies, options.budget)
    write(options.output, "table", lines)
    if ratio < ASKED:
        raise SystemExit(
            f"two workers gave {ratio:.2f} times one's studies, {ASKED} were asked for"
        )


if __name__ == "__main__":
    main()
