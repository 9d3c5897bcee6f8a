"""A full disk ends a run, costs no evaluation that is made, and is no failure of a point."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numpy.testing import assert_array_equal

import fitbo
from fitbo.records import locks
from tests.studies import environment, study

MOUNT = 'mount -t tmpfs -o size=400k tmpfs "$1" && shift && exec "$@"'
# The third call fills the disk, and has a value all the same.
FILL = """
import os
from pathlib import Path

def f(a, n, c):
    here = Path(__file__).parent
    with open(here / "calls", "a") as file:
        print(a, file=file)
    if len((here / "calls").read_text().split()) == 3:
        fill(here / "results" / "ballast")
    return a

def fill(path):
    with open(path, "wb", 0) as file:
        try:
            while True:
                file.write(bytes(512))
        except OSError:
            pass
"""
TWICE = """
import sys
from pathlib import Path
from fitbo.cli import main
arguments = ["run", sys.argv[1], "--quiet", "--no-report"]
print(main(arguments))
(Path(sys.argv[1]).parent / "results" / "ballast").unlink()
print(main(arguments))
print((Path(sys.argv[1]).parent / "results" / "try" / "study.jsonl").read_text())
"""
CALL = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import fitbo, full
home = Path(sys.argv[1])
def f(x):
    return full.f(float(x[0]), 1, "red")
journal = home / "results" / "r.jsonl"
for _ in range(2):
    found = fitbo.minimize(f, [(0, 1)], n_calls=40, n_initial=40, journal=journal)
    print(found.success, found.nfev, len(found.failures), found.message)
    (home / "results" / "ballast").unlink(missing_ok=True)
"""


def on_a_small_disk(
    tmp_path: Path, script: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """A script with ``results`` on a file system of 400 kB; skipped where none can be mounted."""
    (tmp_path / "full.py").write_text(FILL)
    (tmp_path / "results").mkdir()
    disk, mounted = str(tmp_path / "results"), ["unshare", "-rm", "sh", "-c", MOUNT, "sh"]
    if subprocess.run([*mounted, disk, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    return subprocess.run(
        [*mounted, disk, sys.executable, "-c", script, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("place", ["serial", "{kind: threads, workers: 3}"])
def test_values_that_meet_a_full_disk_are_kept_and_not_made_again(
    place: str, tmp_path: Path
) -> None:
    text = f"budget: 40\ninitial: {{n: 40}}\nexecutor: {place}\n"
    path = study(tmp_path, text, 'objective: {python: "./full.py:f"}\n')
    done = on_a_small_disk(tmp_path, TWICE, str(path))
    assert "what was told is kept: make room, and run again" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    (
        first,
        *_,
    ) = done.stdout.split("\n", 1)
    assert first == "2"
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"event"')]
    assert sum(row["event"] == "told" for row in rows) == 40
    assert not any(row["event"] == "failed" for row in rows)
    assert len((tmp_path / "calls").read_text().split()) == 40  # each was made once


def test_minimize_ends_by_a_full_disk_and_goes_on_where_there_is_room(tmp_path: Path) -> None:
    done = on_a_small_disk(tmp_path, CALL, str(tmp_path))
    first, second = done.stdout.splitlines()
    made = int(first.split()[1])
    assert first.startswith(f"False {made} 0 stopped after {made} evaluations: "), done
    assert 3 <= made < 40  # as many as there was room for
    assert os.strerror(errno.ENOSPC) in first
    assert second == "True 40 0 the budget of 40 evaluations is spent"
    assert len((tmp_path / "calls").read_text().split()) == 40


@pytest.mark.parametrize("journal", [False, True])
def test_a_function_that_meets_a_full_disk_ends_minimize(journal: bool, tmp_path: Path) -> None:
    """As no failure of the point, which the same call evaluates first of all."""
    full, points = [True], []

    def f(x: object) -> float:
        points.append(x)
        if len(points) == 3 and full:
            try:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/scratch/mesh.dat")
            except OSError as error:
                raise RuntimeError("the mesh was not written") from error
        return float(len(points))

    options = {"n_calls": 5, "n_initial": 5, "journal": tmp_path / "r.jsonl" if journal else None}
    found = fitbo.minimize(f, [(0, 1)], **options)
    assert (found.success, found.nfev, found.failures) == (False, 2, [])
    assert found.message.startswith("stopped after 2 evaluations: /scratch/mesh.dat: ")
    assert "no failure of the point" in found.message
    assert found.func_vals.tolist() == [1.0, 2.0]
    if journal:
        full.clear()
        again = fitbo.minimize(f, [(0, 1)], **options)
        assert (again.success, again.nfev, len(points)) == (True, 5, 6)
        assert_array_equal(points[2], points[3])


def test_a_run_does_not_begin_without_room_for_its_outcomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(count: int) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(locks.os, "urandom", full)
    calls: list[object] = []
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        fitbo.minimize(calls.append, [(0, 1)], n_calls=3, journal=tmp_path / "r.jsonl")
    assert not calls
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.jsonl"]
