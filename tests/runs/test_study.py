"""One study of a black box: nothing is lost, nothing stops it but a reason, and it resumes."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fitbo.cli import main
from fitbo.cli.files import _told_to_end
from fitbo.records import notebook
from fitbo.records.events import entries_of
from fitbo.records.journal import Busy, ConfigChanged, Writer, read
from fitbo.records.notebook import open_notebook, read_notebook
from fitbo.report.write import write_report
from fitbo.runs import loop
from fitbo.runs.loop import NothingWorks
from fitbo.runs.study import seed_of
from fitbo.study import Study
from tests.studies import PYTHON, load_study, loaded, points, rows, run, start, study

FAILING = 'objective: {python: "./model.py:f", kwargs: {fail: true}}\n'


def told(tmp_path: Path) -> list[float]:
    return [row["value"] for row in rows(tmp_path, "told")]


# --- Journal ----------------------------------------------------------------------------------


def test_every_outcome_is_a_row_and_asked_comes_before_it(tmp_path: Path) -> None:
    summary = run(loaded(tmp_path))
    assert summary.stopped == "the budget of 8 evaluations is spent"
    assert (summary.told, summary.failed, summary.pending) == (8, 0, ())
    events = [(row["event"], row.get("id")) for row in rows(tmp_path)]
    assert events[:-1] == [(event, n) for n in range(1, 9) for event in ("asked", "told")]
    last = rows(tmp_path)[-1]
    assert last["event"] == "stopped"
    assert last["recommended"]["point"].keys() == {"a", "n", "c"}
    assert [row["fitted"] for row in rows(tmp_path) if "fitted" in row] == [5, 6, 7, 8]
    assert all(len(row["eta"]) == 5 for row in rows(tmp_path) if "fitted" in row)
    assert summary.best is not None
    assert summary.best.value == min(told(tmp_path))


def test_failures_are_rows_with_reasons_and_never_numbers(tmp_path: Path) -> None:
    seen: list[Study] = []
    summary = run(loaded(tmp_path, "budget: 12\n", FAILING), callback=seen.append)
    failed = rows(tmp_path, "failed")
    assert failed
    assert summary.failed == len(failed)
    assert len(failed) + len(told(tmp_path)) == 12
    for row in failed:
        assert row["reason"] == f"RuntimeError: no good at {row['point']['a']}"
        assert (tmp_path / "results" / "try" / row["scratch"][0] / "traceback.txt").exists()
    assert seen[-1].y.tolist() == told(tmp_path)
    assert [reason for _, reason in seen[-1].failures] == [row["reason"] for row in failed]


def test_a_study_in_which_all_fail_ends_too(tmp_path: Path) -> None:
    config = loaded(tmp_path, objective='objective: {command: ["false", "{point}"]}\n')
    for _ in range(2):  # each run tries again
        with pytest.raises(NothingWorks, match="all of the first 3 evaluations failed"):
            run(config)
    summary = run(replace(config, campaign=replace(config.campaign, budget=8, max_failures=8)))
    assert (summary.told, summary.failed, summary.best) == (0, 8, None)
    assert str(summary.stopped).startswith("8 evaluations failed, and max_failures is 8")


def test_the_seed_of_an_evaluation_is_its_own() -> None:
    assert seed_of(0, 1) == seed_of(0, 1)
    assert len({seed_of(s, n) for s in range(5) for n in range(20)}) == 100
    assert all(0 <= seed_of(s, 1) < 2**31 for s in range(100))


# --- Stopping ---------------------------------------------------------------------------------


def test_max_failures(tmp_path: Path) -> None:
    summary = run(loaded(tmp_path, "budget: 50\nmax_failures: 2\n", FAILING))
    assert summary.failed == 2
    assert str(summary.stopped).startswith("2 evaluations failed, and max_failures is 2; the last")


def test_target(tmp_path: Path) -> None:
    summary = run(loaded(tmp_path, "budget: 50\ntarget: 0.3\n"))
    assert summary.best is not None
    assert (summary.best.value or 1.0) <= 0.3
    assert all(value > 0.3 for value in told(tmp_path)[:-1])
    assert str(summary.stopped).startswith("the target of 0.3 is reached")


def test_time_limit_counts_over_sessions(tmp_path: Path) -> None:
    slow = 'objective: {python: "./model.py:f", kwargs: {sleep: 0.2}}\n'
    config = loaded(tmp_path, "initial: {n: 8}\ntime_limit: 0.5\n", slow)
    summary = run(config)
    assert 1 <= summary.told <= 3
    assert summary.stopped == "the time limit of 0.5 s is reached"
    assert run(config).told == summary.told
    assert len(rows(tmp_path, "stopped")) == 1  # and it has not stopped twice


def test_tolerance(tmp_path: Path) -> None:
    summary = run(loaded(tmp_path, "budget: 9\ntolerance: 1000\n"))
    assert summary.told == 5  # the initial design
    assert "is below the tolerance of 1000" in str(summary.stopped)


def test_callback(tmp_path: Path) -> None:
    summary = run(loaded(tmp_path), callback=lambda study: len(study.y) == 3)
    assert (summary.told, summary.stopped) == (3, "the callback ended it")


def test_a_finite_space_ends_with_itself(tmp_path: Path) -> None:
    space = "space:\n  n: {type: integer, low: 1, high: 4}\n"
    objective = 'objective: {command: ["echo", "{n}"]}\n'
    config = load_study(study(tmp_path, "budget: 9\ninitial: {n: 9}\n", objective, space))
    summary = run(config)
    assert sorted(told(tmp_path)) == [1, 2, 3, 4]
    assert "budget" not in str(summary.stopped)


# --- Resuming ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    tmp_path = tmp_path_factory.mktemp("whole")
    run(loaded(tmp_path))
    return points(tmp_path)


@pytest.mark.parametrize("keep_state", [True, False])
def test_a_study_that_stops_each_time_asks_the_same(
    tmp_path: Path, keep_state: bool, uninterrupted: list[dict[str, Any]]
) -> None:
    config = loaded(tmp_path)
    for _ in range(4):
        count = 0

        def two(study: Study) -> bool:
            nonlocal count
            count += 1
            return count == 2

        run(config, callback=two)
        if not keep_state:
            notebook.state_path(config.journal).unlink(missing_ok=True)
    assert points(tmp_path) == uninterrupted


def test_a_state_that_is_torn_or_of_another_journal_changes_nothing(
    tmp_path: Path, uninterrupted: list[dict[str, Any]]
) -> None:
    config = loaded(tmp_path)
    run(config, callback=lambda study: len(study.y) == 6)
    state = notebook.state_path(config.journal)
    state.write_bytes(state.read_bytes()[:-100])
    run(config, callback=lambda study: len(study.y) == 7)
    assert points(tmp_path) == uninterrupted[:7]
    config.journal.unlink()
    assert state.exists()
    run(config)
    assert points(tmp_path) == uninterrupted


def test_a_fit_made_before_the_next_point_resumes_the_same(tmp_path: Path) -> None:
    """With a tolerance the fit is that of the stopping rule, and the point is chosen after it."""
    text = "budget: 9\ntolerance: 1.0e-12\n"
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    run(loaded(tmp_path / "whole", text))
    config = loaded(tmp_path / "parts", text)
    for _ in range(3):

        def killed(study: Study) -> bool:
            if len(study.y) in (6, 8):
                raise KeyboardInterrupt
            return False

        with suppress(KeyboardInterrupt):
            run(config, callback=killed)
    assert run(config).told == 9
    assert points(tmp_path / "parts") == points(tmp_path / "whole")


def test_a_function_may_change_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths of the study are those of where it was begun, and so is the directory afterwards."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    path = study(tmp_path, "output: results\n", 'objective: {python: "./wander.py:f"}\n')
    (tmp_path / "wander.py").write_text(
        "import os\ndef f(a, n, c, scratch):\n"
        f"    os.chdir({str(tmp_path / 'elsewhere')!r})\n    return a\n"
    )
    summary = run(load_study(path))
    assert (summary.told, summary.failed) == (8, 0)
    assert Path.cwd() == tmp_path
    assert not list((tmp_path / "elsewhere").iterdir())
    assert len(rows(tmp_path, "told")) == 8


def test_values_beyond_all_bounds_are_kept_and_do_no_harm(tmp_path: Path) -> None:
    """The largest double, as some programs mark what has no result, and its negative."""
    objective = 'objective: {python: "./marks.py:f"}\n'
    config = load_study(study(tmp_path, "budget: 9\n", objective))
    (tmp_path / "marks.py").write_text(
        "import sys\ndef f(a, n, c):\n"
        "    top = sys.float_info.max\n    return top if n > 6 else -top if n == 1 else a\n"
    )
    summary = run(config)
    assert summary.told == 9
    assert max(abs(value) for value in told(tmp_path)) > 1e308
    assert summary.minimum is not None
    assert np.isfinite(summary.minimum).all()
    write_report([config.journal])


def test_the_budget_may_be_raised(tmp_path: Path, uninterrupted: list[dict[str, Any]]) -> None:
    run(loaded(tmp_path, "budget: 6\n"))
    summary = run(loaded(tmp_path, "budget: 8\n"))
    assert summary.told == 8
    assert points(tmp_path) == uninterrupted


PLANE = """
space: {a: {type: real, low: 0, high: 1}, b: {type: real, low: 0, high: 1}}
method: {samples: 20, deterministic: %s}
initial: {n: 4}
objective: {python: "./plane.py:%s"}
budget: %d
"""


@pytest.mark.parametrize(
    ("deterministic", "function", "ends"),
    [("false", "plateau", [8, 12]), ("true", "plateau", [6, 12]), ("true", "bowl", [6, 8, 12])],
)
def test_a_study_ends_as_if_it_had_not_been_over_before(
    deterministic: str, function: str, ends: list[int], tmp_path: Path
) -> None:
    """Where it ended no suggestion needed a fit: on a plateau, and in the trust region."""
    made = []
    for name, budgets in (("parts", ends), ("whole", ends[-1:])):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "plane.py").write_text(
            "def bowl(a, b):\n    return (a - 0.37) ** 2 + (b - 0.61) ** 2 + 0.3 * a * b * b\n"
            "def plateau(a, b):\n    return min((a - 0.37) ** 2 + (b - 0.61) ** 2, 0.0049)\n"
        )
        for budget in budgets:
            path = folder / "try.yaml"
            path.write_text(PLANE % (deterministic, function, budget) + f"output: {folder}/out\n")
            run(load_study(path))
        journal = read(folder / "out" / "try" / "study.jsonl")
        made.append([row["point"] for row in journal.rows if row["event"] == "asked"])
    assert len(made[1]) == ends[-1]
    assert made[0] == made[1]


def test_another_study_s_journal_is_refused(tmp_path: Path) -> None:
    run(loaded(tmp_path, "budget: 2\ninitial: {n: 2}\n"))
    with pytest.raises(ConfigChanged, match="seed: was 0, is 1"):
        run(loaded(tmp_path, "seed: 1\nbudget: 2\ninitial: {n: 2}\n"))
    path = study(tmp_path, "budget: 2\ninitial: {n: 2}\n")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], lines[3], lines[2], *lines[4:]]))
    with pytest.raises(ConfigChanged, match="space: was in the order a, n, c, is n, a, c"):
        run(load_study(path))


def test_a_busy_journal_is_refused(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    with Writer(config.journal), pytest.raises(Busy):
        run(config, patience=0.1)


def interrupt(tmp_path: Path, number: int, text: str, at: int) -> None:
    """Run a study in a process of its own and send it a signal when ``at`` rows are there."""
    journal = tmp_path / "results" / "try" / "study.jsonl"
    process = start("run", study(tmp_path, text, NOTED.format(tmp_path)), "--quiet", "--no-report")
    try:
        for _ in range(3000):
            if journal.exists() and journal.read_bytes().count(b"\n") > at:
                break
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    if number != signal.SIGKILL:
        assert process.returncode == 130, err
        assert "nothing told is lost" in err


NOTED = """\
objective:
  command: [sh, -c, 'sleep 0.2; echo "$1" >> {}/calls; echo "$1"', sh, "{{a}}", "{{n}}", "{{c}}"]
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_to_be_told_to_end_is_as_ctrl_c(number: signal.Signals) -> None:
    def ended() -> None:
        with _told_to_end():
            os.kill(os.getpid(), number)
            time.sleep(5)

    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        ended()
    assert signal.getsignal(number) == before
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
        with _told_to_end():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_kill_loses_nothing_and_repeats_only_what_was_under_way(
    tmp_path: Path, number: int
) -> None:
    text = "initial: {n: 8}\n"
    interrupt(tmp_path, number, text, at=5)
    before = rows(tmp_path)
    config = load_study(study(tmp_path, text, NOTED.format(tmp_path)))
    unfinished = [e.id for e in entries_of(before).values() if e.state == "pending"]
    assert len(unfinished) <= 1
    summary = run(config)
    assert rows(tmp_path)[: len(before)] == before
    assert [row["id"] for row in rows(tmp_path, "again")] == unfinished
    assert summary.told == 8
    assert len(points(tmp_path)) == 8
    calls = (tmp_path / "calls").read_text().split()
    values = [str(value) for value in told(tmp_path)]
    assert set(calls) == set(values)
    # A program outlives a kill -9 of its parent, and may note its call before it is ended.
    assert len(calls) <= 8 + len(unfinished)
    assert not (tmp_path / "results" / "try" / "scratch").exists()


# --- In parallel ------------------------------------------------------------------------------


def test_threads_evaluate_at_the_same_time(tmp_path: Path) -> None:
    """Each run waits until another has begun: one at a time they would wait forever."""
    script = (
        "touch {}/$1; i=0; while [ $(ls {} | wc -l) -lt 2 ]; do sleep 0.05; "
        "i=$((i+1)); [ $i -lt 200 ] || exit 1; done; echo $1"
    ).format(tmp_path / "meet", tmp_path / "meet")
    (tmp_path / "meet").mkdir()
    objective = f"objective:\n  command: [sh, -c, '{script}', sh, '{{a}}', '{{n}}', '{{c}}']\n"
    text = "initial: {n: 6}\nbudget: 6\nexecutor: {kind: threads, workers: 2}\n"
    summary = run(loaded(tmp_path, text, objective))
    assert (summary.told, summary.failed) == (6, 0)
    events = [row["event"] for row in rows(tmp_path)]
    assert events[:2] == ["asked", "asked"]
    open_now = 0
    for event in events[:-1]:
        open_now += 1 if event == "asked" else -1
        assert 0 <= open_now <= 2


def test_processes_die_one_at_a_time(tmp_path: Path) -> None:
    objective = 'objective: {python: "./model.py:kill"}\n'
    text = "initial: {n: 6}\nbudget: 6\nexecutor: {kind: processes, workers: 2}\n"
    summary = run(loaded(tmp_path, text, objective))
    entries = entries_of(rows(tmp_path)).values()
    assert summary.told + summary.failed == 6
    for entry in entries:
        assert entry.state == ("failed" if entry.point["n"] > 5 else "told")
        assert entry.reason == ("exit code 9" if entry.point["n"] > 5 else None)
    assert 0 < summary.failed < 6


def test_a_parallel_study_goes_on_from_its_pending_points(tmp_path: Path) -> None:
    config = loaded(tmp_path, "budget: 9\nexecutor: {kind: threads, workers: 3}\n")
    with open_notebook(config) as book:
        asked = [book.ask() for _ in range(3)]
        book.told(asked[1], 0.5)
    assert [entry.id for entry in read_notebook(config).pending()] == [1, 3]
    summary = run(config)
    assert [row["id"] for row in rows(tmp_path, "again")] == [1, 3]
    assert summary.told == 9
    assert len(points(tmp_path)) == 9
    assert [row["id"] for row in rows(tmp_path, "told")].count(2) == 1


@pytest.mark.slow
def test_dask_evaluates(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    text = "initial: {n: 6}\nbudget: 6\nexecutor: {kind: dask, workers: 2}\n"
    assert run(loaded(tmp_path, text, FAILING)).told > 0
    assert len(rows(tmp_path, "told")) + len(rows(tmp_path, "failed")) == 6


def test_ctrl_c_in_parallel_keeps_values_that_still_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt arrives while two functions run: their values are kept, and nothing else."""
    slow = 'objective: {python: "./model.py:f", kwargs: {sleep: 0.3}}\n'
    config = loaded(tmp_path, "initial: {n: 8}\nexecutor: {kind: threads, workers: 2}\n", slow)
    calls = 0

    def interrupted(*arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return wait(*arguments, **more)

    wait = loop.wait
    monkeypatch.setattr(loop, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(config)
    done = [row["id"] for row in rows(tmp_path, "told")]
    assert len(done) >= 2  # one that had not begun is still pending
    assert not rows(tmp_path, "failed")
    monkeypatch.setattr(loop, "wait", wait)
    assert run(config).told == 8
    assert [row["id"] for row in rows(tmp_path, "told")][: len(done)] == done


def test_an_outcome_is_recorded_once(tmp_path: Path) -> None:
    """An interruption just after it was, as by a display whose pipe is closed."""
    config = loaded(tmp_path, "initial: {n: 8}\nexecutor: {kind: threads, workers: 2}\n")

    def broken(*_: Any) -> None:
        raise BrokenPipeError

    for _ in range(3):
        with pytest.raises(BrokenPipeError):
            run(config, watch=broken)
    ids = [row["id"] for row in rows(tmp_path, "told")]
    assert ids
    assert len(ids) == len(set(ids))
    journal = config.journal
    twice = next(line for line in journal.read_text().splitlines() if '"told"' in line)
    journal.write_text(journal.read_text() + twice + "\n")
    book = read_notebook(config)
    assert len(book.study.y) == len(ids)
    assert sum(entry.state == "told" for entry in book.entries.values()) == len(ids)


def test_the_header_says_what_the_study_is(tmp_path: Path) -> None:
    config = loaded(tmp_path, "budget: 2\ninitial: {n: 2}\n")
    run(config)
    header = json.loads(config.journal.read_text().splitlines()[0])
    assert header["study"]["problem"]["space"]["n"] == {
        "type": "integer",
        "low": 1,
        "high": 9,
        "log": False,
        "step": 1,
    }
    assert "budget" not in header["study"]
    assert os.path.samefile(config.journal.parent, tmp_path / "results" / "try")


def test_objective_is_required_to_run(tmp_path: Path) -> None:
    path = study(tmp_path)
    path.write_text(path.read_text().replace(PYTHON, ""))
    with pytest.raises(ValueError, match="has no objective to run"):
        run(load_study(path))


# --- What is not the point's fault --------------------------------------------------------------


@pytest.mark.parametrize("executor", ["serial", "{kind: threads, workers: 2}"])
@pytest.mark.parametrize(
    "way",
    [
        "rm study.jsonl",
        "mv ../try ../gone; rm -r ../gone",  # at once, or what is rescued could be removed too
        "cp study.jsonl j; mv j study.jsonl",
    ],
)
def test_a_journal_taken_away_during_a_run_ends_it_with_everything_kept(
    tmp_path: Path, way: str, executor: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The run wrote on to a file that nobody sees, and ended with exit code 0."""
    (tmp_path / "way.sh").write_text(f"cd {tmp_path}/results/try && {way}\n")
    objective = 'objective: {python: "./thief.py:f"}\n'
    path = study(tmp_path, f"budget: 12\ninitial: {{n: 12}}\nexecutor: {executor}\n", objective)
    (tmp_path / "thief.py").write_text(
        "import pathlib, subprocess, threading\nhere = pathlib.Path(__file__).parent\n"
        "one = threading.Lock()  # or the other thread calls all the rest meanwhile\n"
        "def f(a, n, c):\n"
        "    with one, open(here / 'calls', 'a') as calls:\n"
        "        print(a, file=calls, flush=True)\n"
        "        if len((here / 'calls').read_text().split()) == 5:\n"
        "            subprocess.run(['sh', here / 'way.sh'])\n"
        "    return a\n"
    )
    assert main(["run", str(path), "--quiet", "--no-report"]) == 2
    said = " ".join(capfd.readouterr().err.split())
    assert "was removed or changed by something else while it was being written" in said
    (rescued,) = tmp_path.rglob("study.jsonl.rescued-*")
    assert str(rescued) in said
    kept = [row["value"] for row in read(rescued).rows if row["event"] == "told"]
    assert set(kept) == {float(line) for line in (tmp_path / "calls").read_text().split()}
    assert 5 <= len(kept) == len(set(kept)) < 12
    (tmp_path / "results" / "try").mkdir(exist_ok=True)
    rescued.rename(tmp_path / "results" / "try" / "study.jsonl")  # as the error says
    assert main(["run", str(path), "--quiet", "--no-report"]) == 0
    assert [row["value"] for row in rows(tmp_path, "told")][: len(kept)] == kept
    assert len(rows(tmp_path, "told")) == 12


def test_a_function_that_kills_its_process_is_one_failure_the_next_time(tmp_path: Path) -> None:
    """Each run died at the same point, without a word."""
    objective = 'objective: {python: "./model.py:kill"}\n'
    path = study(tmp_path, "initial: {n: 6}\nbudget: 6\n", objective)
    codes, said = [], ""
    for _ in range(9):
        process = start("run", path, "--quiet", "--no-report")
        said += process.communicate(timeout=120)[1]
        codes.append(process.returncode)
        if codes[-1] != 9:
            break
    entries = entries_of(rows(tmp_path)).values()
    deaths = [entry.id for entry in entries if entry.point["n"] > 5]
    assert codes == [9] * len(deaths) + [0]
    for entry in entries:
        assert entry.reason == ("exit code 9" if entry.id in deaths else None)
    again = rows(tmp_path, "again")
    assert [(row["id"], row["isolated"]) for row in again] == [(n, True) for n in deaths]
    for number in deaths:
        assert f"the last run died during evaluation {number}, which is now made again" in said


def test_a_point_made_again_after_a_kill_sees_the_same_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_text("2.5")
    path = study(tmp_path, "initial: {n: 2}\nbudget: 2\n", 'objective: {python: "./here.py:f"}\n')
    (tmp_path / "here.py").write_text(
        "import os, pathlib\ndef f(a, n, c):\n"
        "    mark = pathlib.Path('mark')\n    if not mark.exists():\n"
        "        mark.touch()\n        os.kill(os.getpid(), 9)\n"
        "    return float(pathlib.Path('data').read_text())\n"
    )
    process = start("run", path, "--quiet", "--no-report")
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert run(load_study(path)).told == 2
    assert told(tmp_path) == [2.5, 2.5]


def test_an_interrupted_evaluation_is_not_one_that_died(tmp_path: Path) -> None:
    path = study(tmp_path, "initial: {n: 2}\nbudget: 2\n", 'objective: {python: "./stop.py:f"}\n')
    (tmp_path / "stop.py").write_text(
        "import pathlib\nmark = pathlib.Path(__file__).with_name('mark')\n"
        "def f(a, n, c):\n    if not mark.exists():\n"
        "        mark.touch()\n        raise KeyboardInterrupt\n    return a\n"
    )
    with pytest.raises(KeyboardInterrupt):
        run(load_study(path))
    assert run(load_study(path)).told == 2
    assert rows(tmp_path, "again") == [{"event": "again", "id": 1}]


def test_a_function_that_forks_leaves_as_many_rows_as_the_budget(tmp_path: Path) -> None:
    """The child came back into the loop: 28 rows on a budget of 4."""
    path = study(tmp_path, "initial: {n: 4}\nbudget: 4\n", 'objective: {python: "./fork.py:f"}\n')
    (tmp_path / "fork.py").write_text(
        "import os\ndef f(a, n, c):\n    if os.fork() == 0:\n        return -1.0\n"
        "    os.wait()\n    return a\n"
    )
    process = start("run", path, "--quiet", "--no-report")
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert [row["event"] for row in rows(tmp_path)] == ["asked", "told"] * 4 + ["stopped"]
    assert min(told(tmp_path)) > 0
