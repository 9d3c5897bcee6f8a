"""Several runs of one study: real processes that share its journal, some of them killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fitbo.cli import main
from fitbo.config.campaign import StudyConfig
from fitbo.records.journal import ConfigChanged
from fitbo.records.notebook import open_notebook, read_notebook
from tests.campaigns import wait_for
from tests.studies import SPACE, load_study, rows, run, start, study

# Notes each call with its process, and waits while its own number is in the file "hold".
MODEL = """
import os, time
from pathlib import Path

def f(a, n, c, scratch):
    here, number = Path(__file__).parent, scratch.name
    with open(here / "calls", "a") as file:
        file.write(f"{number} {os.getpid()}\\n")
    time.sleep(0.1)
    while number in (here / "hold").read_text().split():
        time.sleep(0.02)
    return (a - 0.3) ** 2 + 0.02 * (n - 4) ** 2
"""


def joint(tmp_path: Path, text: str = "budget: 12\n", hold: str = "") -> Path:
    path = study(tmp_path, text, 'objective: {python: "./joint.py:f"}\n')
    (tmp_path / "joint.py").write_text(MODEL)
    (tmp_path / "hold").write_text(hold)
    return path


def calls(tmp_path: Path) -> dict[int, list[int]]:
    """By evaluation, the processes that have begun it."""
    found: dict[int, list[int]] = {}
    if (tmp_path / "calls").exists():
        for line in (tmp_path / "calls").read_text().splitlines():
            number, process = map(int, line.split())
            found.setdefault(number, []).append(process)
    return found


def begin(path: Path, *more: str) -> subprocess.Popen[str]:
    return start("run", path, "--no-report", *more)


def at_work(tmp_path: Path, *processes: subprocess.Popen[str]) -> Callable[[], bool]:
    """Whether each of these has begun an evaluation."""
    mine = {process.pid for process in processes}
    return lambda: mine <= {pid for begun in calls(tmp_path).values() for pid in begun}


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, out + err


def check_whole(tmp_path: Path, budget: int, repeated: int = 0) -> None:
    """Nothing told twice, nothing lost, the budget spent and not exceeded."""
    told = rows(tmp_path, "told")
    assert sorted(row["id"] for row in told) == list(range(1, budget + 1))
    assert len({json.dumps(row["point"]) for row in told}) == budget
    assert sum(len(each) for each in calls(tmp_path).values()) == budget + repeated
    assert rows(tmp_path)[-1]["event"] == "stopped"
    assert Counter(row["event"] for row in rows(tmp_path))["stopped"] == 1
    folder = tmp_path / "results" / "try"
    assert {p.name for p in folder.iterdir()} <= {"study.jsonl", "study.state.npz"}


def test_a_second_run_joins_and_the_budget_is_spent_once(tmp_path: Path) -> None:
    path = joint(tmp_path, hold="0001")
    one = begin(path)
    wait_for(at_work(tmp_path, one))
    two = begin(path)
    wait_for(at_work(tmp_path, one, two))  # the first is still in its first
    (tmp_path / "hold").write_text("")
    (code, first), (other, second) = ended(one), ended(two)
    assert (code, other) == (0, 0), first + second
    assert "another run is at work on it, and this one joins" in second
    check_whole(tmp_path, 12)
    assert len({pid for begun in calls(tmp_path).values() for pid in begun}) == 2
    # What the other evaluated was pending, or known, when the next was chosen.
    assert any(row.get("run") == 2 for row in rows(tmp_path, "asked"))
    assert sum("the budget of 12 evaluations is spent" in text for text in (first, second)) >= 1


def test_what_a_killed_run_was_evaluating_another_takes_over(tmp_path: Path) -> None:
    """And what a live one evaluates, however long that takes, it leaves alone."""
    path = joint(tmp_path, hold="0001")
    one = begin(path)
    wait_for(at_work(tmp_path, one))
    two = begin(path)
    wait_for(lambda: len(rows(tmp_path, "told")) >= 3)
    assert calls(tmp_path)[1] == [one.pid]
    one.send_signal(signal.SIGKILL)
    one.communicate()
    (tmp_path / "hold").write_text("")
    code, said = ended(two)
    assert code == 0, said
    assert len(calls(tmp_path)[1]) == 2  # again, in a process of its own
    assert [row["run"] for row in rows(tmp_path, "again") if row["id"] == 1] == [2]
    check_whole(tmp_path, 12, repeated=1)


def test_a_run_that_has_spent_the_budget_ends_though_another_evaluates(tmp_path: Path) -> None:
    """The last to end ends the study; if it is killed, the next run does."""
    path = joint(tmp_path, "budget: 5\n", hold="0001")
    one = begin(path)
    wait_for(at_work(tmp_path, one))
    code, said = ended(begin(path))
    assert code == 0, said
    assert "4 of 5 evaluations, 1 pending" in said
    assert "1 of these with another run, which goes on" in said
    assert not rows(tmp_path, "stopped")
    one.send_signal(signal.SIGKILL)
    one.communicate()
    (tmp_path / "hold").write_text("")
    code, said = ended(begin(path))
    assert (code, "joins" in said) == (0, False), said
    check_whole(tmp_path, 5, repeated=1)


def test_ctrl_c_of_one_leaves_the_other_running(tmp_path: Path) -> None:
    path = joint(tmp_path, hold="0001")
    one = begin(path)
    wait_for(at_work(tmp_path, one))
    two = begin(path)
    wait_for(at_work(tmp_path, one, two))
    one.send_signal(signal.SIGINT)
    code, said = ended(one)
    assert code == 130
    assert "nothing told is lost" in said
    assert two.poll() is None
    (tmp_path / "hold").write_text("")
    code, said = ended(two)
    assert code == 0, said
    assert len(calls(tmp_path)[1]) == 2  # it was interrupted, and the other has made it
    check_whole(tmp_path, 12, repeated=1)


def test_runs_with_several_workers_that_are_killed_again_and_again(tmp_path: Path) -> None:
    path = joint(tmp_path, "budget: 30\ninitial: {n: 30}\nexecutor: {kind: threads, workers: 3}\n")
    running = [begin(path), begin(path)]
    killed = 0
    for _ in range(4):
        enough = len(_told(tmp_path)) + 4
        wait_for(partial(_has_told, tmp_path, enough))
        victim = running.pop(0)
        killed += victim.poll() is None
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
        running.append(begin(path))
    for process in running:
        code, said = ended(process)
        assert code == 0, said
    assert killed >= 3
    repeated = sum(len(each) for each in calls(tmp_path).values()) - 30
    assert 0 <= repeated <= 3 * killed
    check_whole(tmp_path, 30, repeated)


def _has_told(tmp_path: Path, count: int) -> bool:
    return len(_told(tmp_path)) >= count


def _told(tmp_path: Path) -> list[dict[str, Any]]:
    exists = (tmp_path / "results" / "try" / "study.jsonl").exists()
    return rows(tmp_path, "told") if exists else []


def test_an_objective_is_not_corrected_under_a_run(tmp_path: Path) -> None:
    path = joint(tmp_path)
    with open_notebook(load_study(path), running="joint"):
        other = study(tmp_path, "budget: 12\n", 'objective: {python: "./model.py:f"}\n')
        with pytest.raises(ConfigChanged, match="is being run with another objective"):
            run(load_study(other))
    assert run(load_study(other)).told == 12  # now it is corrected


def test_a_run_alone_writes_what_it_always_wrote(tmp_path: Path) -> None:
    """No row tells of numbers while there is one run at a time, whatever was killed before."""
    path = joint(tmp_path, hold="0003")
    one = begin(path)
    wait_for(lambda: 3 in calls(tmp_path))
    one.send_signal(signal.SIGKILL)
    one.communicate()
    (tmp_path / "hold").write_text("")
    assert main(["run", str(path), "--quiet", "--no-report"]) == 0
    assert [row["id"] for row in rows(tmp_path, "again")] == [3]
    assert not any("run" in row for row in rows(tmp_path))
    check_whole(tmp_path, 12, repeated=1)


def test_each_chooses_by_what_the_other_has_pending(tmp_path: Path) -> None:
    """Two that would choose the same, from the same seed and values, do not."""

    def opened(config: StudyConfig) -> Any:
        return open_notebook(config, running="joint")

    config = load_study(study(tmp_path, "initial: {n: 3}\n", space=SPACE))
    with opened(config) as one, opened(config) as two:
        for i in range(5):
            first, second = one.ask(), two.ask()
            assert first.point != second.point
            assert [e.id for e in two.pending()] == [first.id, second.id]
            two.told(second, 1.0 + i)
            one.told(first, 0.5 + i)
        with two.locked():
            assert two.study.y.tolist() == [y for i in range(5) for y in (1.0 + i, 0.5 + i)]
    # The fits are those that the journal tells of: it is resumed from there as by either.
    alone = read_notebook(config).warm()
    with opened(config) as again:
        assert again.ask().point == again.plain(alone.ask(1)[0])


def test_the_pid_of_a_dead_run_is_not_what_it_is_known_by(tmp_path: Path) -> None:
    """Its number is a lock: a process of the same id, or a file that is left, is no run."""
    config = load_study(joint(tmp_path))
    with open_notebook(config, running="joint") as notebook:
        notebook.ask()
    left = config.journal.with_suffix(".run1")
    left.write_text(f"{os.getpid()}\n")
    with open_notebook(config) as notebook:
        assert [entry.id for entry in notebook.abandoned()] == [1]
        assert notebook.writer is not None
        assert notebook.writer.others() == set()
    assert not left.exists()
