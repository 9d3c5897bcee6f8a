"""Kill -9 at random moments of campaigns and studies, resume each time, and count what was lost.

    python benchmarks/faults.py               # 50 kills, some five minutes; writes results/faults/
    python benchmarks/faults.py --attack disk # other attacks: see faults_attacks.py
    python benchmarks/faults.py --kills 3
    python benchmarks/faults.py --blackbox    # a black box that fails: see faults_blackbox.py

The campaign is a real ``python -m fitbo run``, on one process or on several, in a process group
that is killed as a whole: mostly soon after its first new value, sometimes while it starts.
Whenever it completes before its kill it is begun anew in another folder. Counted are

lost        lines that were there at one kill and not, byte for byte, at the next
cut short   evaluations begun whose value is in no journal. The objective itself counts those begun:
            it notes every call in a file of its own
run twice   of these, those beyond one for each study under way
differing   files of a completed campaign that are not those of an undisturbed run, apart from the
            seconds and from the events ("again") which say that an evaluation was repeated

and the exit code is 1 unless the first, the third and the last are zero.
"""

from __future__ import annotations

from common import ROOT, fitbo_run, one_thread, write

one_thread()

import argparse
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from faults_files import CONFIG, COUNTER, MODEL, STUDY

RESULTS = ROOT / "results" / "faults"
# And how many studies each has under way; ``study`` is a file of one with a Python function.
EXECUTORS = {"serial": 1, "processes": 2, "study": 1}
# What may depend on the kills: times, and that an evaluation was repeated.
INCIDENTAL = re.compile(
    rb', "(seconds|elapsed|suggestion_seconds)": (\{[^{}]*\}|[0-9.e-]+)|\{"event": "again".*\n'
)
TOLD = b'{"event": "told"'
STARTING = 0.2  # share of the kills that may come before the first new value
SPAN = 1.5  # seconds after it within which the others come
STARTUP = 3.0  # seconds after the start within which the former come


@dataclass(frozen=True)
class Kill:
    """What one kill did."""

    executor: str
    values: int  # new in the journals since the kill before
    torn: int  # journals whose last line it tore
    cut: int  # evaluations begun and not written
    twice: int  # of them, those beyond one for each worker
    lost: int  # lines that were there before


class Campaign:
    """A campaign or a study in a folder of its own, with a count of its evaluations."""

    def __init__(self, folder: Path, seeds: int, budget: int, single: bool = False) -> None:
        folder.mkdir(parents=True)
        self.folder, self.log, self.single = folder, folder / "evaluations.log", single
        self.config = folder / "faults.yaml"
        self.config.write_text((STUDY if single else CONFIG).format(seeds=seeds, budget=budget))
        if single:
            (folder / "model.py").write_text(MODEL.format(log=str(self.log)))
        else:
            (folder / "sitecustomize.py").write_text(COUNTER.format(log=str(self.log)))
        self.kept: dict[Path, bytes] = {}
        self.cut = 0

    def start(self, executor: str) -> subprocess.Popen[bytes]:
        place = "serial" if self.single else executor
        kind = [f"executor.kind={place}", f"executor.workers={EXECUTORS[place]}"]
        settings = [f"output={self.folder / 'out'}", *kind]
        return subprocess.Popen(
            **fitbo_run(self.config, settings=settings, path=[self.folder]),
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def journals(self) -> dict[Path, bytes]:
        """The whole lines of every journal."""
        found = sorted((self.folder / "out").rglob("*.jsonl"))
        return {path: _whole_lines(path.read_bytes()) for path in found}

    def torn(self) -> int:
        return sum(
            path.read_bytes() != lines for path, lines in self.journals().items() if path.exists()
        )

    def n_values(self) -> int:
        return _n_values(self.journals())

    def count(self) -> tuple[int, int, int]:
        """Since the last count: new values, evaluations cut short, and lines lost."""
        now = self.journals()
        lost = sum(_n_lost(lines, now.get(path, b"")) for path, lines in self.kept.items())
        values = _n_values(now)
        new = values - _n_values(self.kept)
        begun = self.log.read_bytes().count(b"\n") if self.log.exists() else 0
        cut = begun - values - self.cut
        self.kept, self.cut = now, begun - values
        return new, cut, lost

    def check_points(self) -> None:
        """The objective saw every point of the journals, and as many more as were cut short."""
        seen: dict[str, int] = {}
        for line in self.log.read_text().splitlines():
            seen[line] = seen.get(line, 0) + 1
        for lines in self.journals().values():
            header, *rows = map(json.loads, lines.splitlines())
            name = header["study"]["problem"].get("name", "study")
            for row in rows:
                if row["event"] == "told":
                    point = f"{name} {list(row['point'].values())!r}"
                    seen[point] = seen.get(point, 0) - 1
        _require(min(seen.values()) >= 0, "a journal holds an evaluation that was never made")
        _require(sum(seen.values()) == self.cut, "the points do not add up")

    def results(self) -> dict[str, bytes]:
        """What must not depend on the kills, of every file of the results."""
        out = self.folder / "out"
        # A study's own page shows the seconds of each evaluation.
        timed = ["report.html"] if self.single else []
        files = sorted(path for path in out.rglob("*") if path.is_file() and path.name not in timed)
        return {
            str(path.relative_to(out)): INCIDENTAL.sub(b"", path.read_bytes()) for path in files
        }


def one_kill(campaign: Campaign, executor: str, rng: np.random.Generator) -> Kill | None:
    """Start or resume the campaign and kill it; None if it was complete before."""
    starting = rng.random() < STARTING
    delay = rng.uniform(0, STARTUP if starting else SPAN)
    before = campaign.n_values()
    process = campaign.start(executor)
    while not starting and campaign.n_values() == before and process.poll() is None:
        time.sleep(0.005)
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    _, errors = process.communicate()
    while _alive(process.pid):
        time.sleep(0.005)
    if process.returncode == 0:
        return None
    _require(process.returncode == -signal.SIGKILL, errors.decode(errors="replace"))
    torn = campaign.torn()
    values, cut, lost = campaign.count()
    return Kill(executor, values, torn, cut, max(0, cut - EXECUTORS[executor]), lost)


def run(
    kills: int, seed: int, seeds: int, budget: int, folder: Path
) -> tuple[list[Kill], int, int]:
    """That many kills, the campaigns completed, and how many of their files differ."""
    rng = np.random.default_rng(seed)
    expected: dict[bool, dict[str, bytes]] = {}
    done: list[Kill] = []
    complete = differing = 0

    def begun() -> Campaign:
        """The next: campaigns in the first half of the kills, studies in the second."""
        single = 2 * len(done) >= kills
        if single not in expected:
            whole = Campaign(folder / f"undisturbed-{single}", seeds, budget, single)
            _complete(whole)
            whole.count()
            whole.check_points()
            expected[single] = whole.results()
        return Campaign(folder / str(complete), seeds, budget, single)

    campaign = begun()
    while len(done) < kills:
        kind = "study" if campaign.single else str(rng.choice(["serial", "processes"]))
        kill = one_kill(campaign, kind, rng)
        if kill is not None:
            done.append(kill)
            print(f"{len(done):3d} {kill}", flush=True)
            if len(done) < kills and campaign.single == (2 * len(done) >= kills):
                continue
            _complete(campaign)
        _, cut, lost = campaign.count()
        _require(cut == lost == 0, f"{cut} evaluations cut short and {lost} lost without a kill")
        campaign.check_points()
        found, whole = campaign.results(), expected[campaign.single]
        unlike = sum(found.get(name) != whole.get(name) for name in found | whole)
        complete, differing = complete + 1, differing + unlike
        what = "study" if campaign.single else "campaign"
        print(f"{what} {complete} complete, {unlike} files differ", flush=True)
        campaign = begun()
    return done, complete, differing


def table(kills: list[Kill], complete: int, differing: int, seconds: float) -> list[str]:
    """Markdown."""
    lines = [
        "| executor | kills | before a new value | new values | torn | cut short | run twice "
        "| lost |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for executor in (*EXECUTORS, "all"):
        mine = [kill for kill in kills if executor in (kill.executor, "all")]
        sums = [
            sum(getattr(kill, name) for kill in mine)
            for name in ("values", "torn", "cut", "twice", "lost")
        ]
        cells = [executor, len(mine), sum(kill.values == 0 for kill in mine), *sums]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += [
        "",
        f"Campaigns and studies completed across these kills: {complete}. Their files that differ "
        f"from those of an undisturbed run, apart from the seconds: {differing}. "
        f"{seconds:.0f} s in all.",
        "",
        "*Cut short*: evaluations under way at a kill, which were made again; *run twice*: those "
        "beyond one for each study under way; *lost*: lines that had been written.",
        "",
        f"    python benchmarks/faults.py --kills {len(kills)}",
    ]
    return lines


def _complete(campaign: Campaign) -> None:
    process = campaign.start("serial")
    _, errors = process.communicate()
    _require(process.returncode == 0, errors.decode(errors="replace"))


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


def _n_values(journals: dict[Path, bytes]) -> int:
    return sum(lines.count(TOLD) for lines in journals.values())


def _n_lost(before: bytes, after: bytes) -> int:
    """Lines of ``before`` from the first that ``after`` does not have in its place."""
    old, new = before.splitlines(), after.splitlines()
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    return len(old) - len(list(pairs))


def _alive(group: int) -> bool:
    """Whether a process of the group has not ended; Linux."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgrp = stat.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):  # it ended while we looked
            continue
        if int(pgrp) == group and state not in "ZX":
            return True
    return False


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise SystemExit(f"FAILED: {message}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=2, help="of the campaign: 4 studies each")
    parser.add_argument("--budget", type=int, default=40)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    started = time.perf_counter()
    folder = Path(tempfile.mkdtemp(prefix="fitbo-faults-"))
    kills, complete, differing = run(
        options.kills, options.seed, options.seeds, options.budget, folder
    )
    lines = table(kills, complete, differing, time.perf_counter() - started)
    write(options.output, "table", lines)
    _require(differing == 0, f"files differ, see {folder}")
    _require(
        not any(kill.lost or kill.twice for kill in kills), "evaluations were lost or repeated"
    )
    shutil.rmtree(folder)


if __name__ == "__main__":
    if "--attack" in sys.argv:
        import faults_attacks  # beside this file

        raise SystemExit(faults_attacks.main(sys.argv[1:]))
    if "--blackbox" in sys.argv:
        import faults_blackbox  # beside this file

        raise SystemExit(faults_blackbox.main([a for a in sys.argv[1:] if a != "--blackbox"]))
    main()
