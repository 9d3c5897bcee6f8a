"""The loop that evaluates: one worker or many, failures, limits, workers that die."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import signal
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import fitbo
from fitbo.inference.settings import Settings
from fitbo.minimise.call import called
from fitbo.objectives import Outcome
from fitbo.records.events import Entry
from fitbo.records.notebook import Notebook
from fitbo.runs.limits import Limits
from fitbo.runs.loop import Loop, inline
from fitbo.space import Integer, Space
from fitbo.study import Study

SQUARE = [(0.0, 1.0)] * 2
SMALL = {"n_samples": 16, "n_initial": 4, "entropy": "mm"}


def bowl(x: np.ndarray) -> float:
    return float(((x - 0.3) ** 2).sum())


def slow_bowl(x: np.ndarray) -> float:
    time.sleep(0.05)
    return bowl(x)


def slower_bowl(x: np.ndarray) -> float:
    time.sleep(0.25)  # however busy the machine is, longer than choosing a point
    return bowl(x)


def unlicensed(x: np.ndarray) -> float:
    return bowl(x) if x[0] < 0.6 else sys.exit("no licence")


def suicide_once(flag: str, x: np.ndarray) -> float:
    """The first call of all kills the process it runs in."""
    try:
        Path(flag).touch(exist_ok=False)
    except FileExistsError:
        time.sleep(0.05)
        return bowl(x)
    os.kill(os.getpid(), signal.SIGKILL)
    return math.nan


def study(seed: int = 0, **changes: object) -> Study:
    return Study(Space(SQUARE), Settings(seed=seed, **{**SMALL, **changes}))  # type: ignore[arg-type]


def drive(s: Study, fun, *, executor=None, on_end=None, queue=(), **options: object) -> str:
    """The loop on a study without a journal; ``fun`` is evaluated here or on the executor."""
    notebook = Notebook(s)
    for x in queue:
        entry = notebook.entry_of(notebook.plain(x), "x0")
        notebook.append({"event": "asked", "id": entry.id, "point": entry.point})

    def submit(entry: Entry) -> Future:
        return executor.submit(called, fun, notebook.x(entry.point))

    def watch(notebook: Notebook, entry: Entry, outcome: Outcome) -> None:
        if on_end is not None:
            on_end(notebook.study, entry, outcome)

    here = inline(lambda entry: called(fun, notebook.x(entry.point)))
    options = {"patient": False, **options}
    return Loop(notebook, submit if executor else here, watch=watch, **options).run()  # type: ignore[arg-type]


def test_one_worker_is_the_plain_loop() -> None:
    plain = study()
    for _ in range(7):
        x = plain.ask()[0]
        plain.tell(x, bowl(x))
    driven = study()
    message = drive(driven, bowl, limits=Limits(budget=7))
    assert np.array_equal(plain.X, driven.X)
    assert np.array_equal(plain.y, driven.y)
    assert message == "the budget of 7 evaluations is spent"
    minimised = fitbo.minimize(bowl, SQUARE, n_calls=7, **SMALL)
    assert np.array_equal(plain.X, minimised.x_iters)
    with ThreadPoolExecutor(1) as pool:
        threaded = fitbo.minimize(bowl, SQUARE, n_calls=7, executor=pool, **SMALL)
    assert np.array_equal(plain.X, threaded.x_iters)


def test_a_free_worker_gets_a_point_at_once() -> None:
    """Two of three evaluations never end: the third worker goes through the budget alone."""
    gate = threading.Event()
    calls: list[int] = []

    def stuck(x: np.ndarray) -> float:
        calls.append(1)
        if len(calls) <= 2:
            gate.wait(30)
        elif len(calls) == 8:
            gate.set()
        return bowl(x)

    orders: list[int] = []
    pendings: list[int] = []
    s = study(deterministic=False)
    with ThreadPoolExecutor(3) as pool:
        drive(
            s,
            stuck,
            executor=pool,
            n_workers=3,
            limits=Limits(budget=8),
            on_end=lambda s, e, o: (orders.append(e.id), pendings.append(len(s.pending))),  # type: ignore[func-returns-value]
        )
    assert orders[:5] == [3, 4, 5, 6, 7]
    assert sorted(orders) == list(range(1, 9))
    assert max(pendings) == 3  # the two that are stuck, and what was chosen ahead
    assert len(s.y) == 8
    assert len(s.pending) == 0
    gaps = abs(s.X[:, None] - s.X).max(2) + np.eye(8)
    assert gaps.min() > 1e-4


def test_the_next_point_is_chosen_while_all_workers_are_busy() -> None:
    """When one of two ends, the other is under way and the next is ready; none is left over."""
    pendings: list[int] = []
    s = study(deterministic=False)
    with ThreadPoolExecutor(2) as pool:
        drive(
            s,
            slower_bowl,
            executor=pool,
            n_workers=2,
            limits=Limits(budget=12),
            on_end=lambda s, e, o: pendings.append(len(s.pending)),
        )
    assert max(pendings) == 2
    assert len(s.y) == 12
    assert len(s.pending) == 0
    s = study()
    with ThreadPoolExecutor(2) as pool:
        drive(
            s,
            slower_bowl,
            executor=pool,
            n_workers=2,
            stop=lambda: "enough" if len(s.y) >= 8 else None,
        )
    assert len(s.pending) <= 1  # what was chosen and not started is forgotten


def test_beside_a_long_evaluation_no_point_is_chosen_early() -> None:
    """Choosing takes milliseconds, an evaluation would take half a minute by its clock."""
    pendings: list[int] = []
    now = time.monotonic
    late = 0.0

    class Slow:
        def submit(self, function, *arguments) -> Future:
            nonlocal late
            late += 30.0
            future: Future = Future()
            threading.Timer(0.02, future.set_result, [function(*arguments)]).start()
            return future

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now() + late)
        s = study()
        drive(
            s,
            bowl,
            executor=Slow(),
            n_workers=2,
            limits=Limits(budget=8),
            on_end=lambda s, e, o: pendings.append(len(s.pending)),
        )
    assert max(pendings) == 1


def test_an_outcome_is_timed_by_its_end_and_not_by_our_attention() -> None:
    """The optimiser thinks for longer than an evaluation takes."""
    seconds: list[float] = []
    s = study(n_samples=100)
    with ThreadPoolExecutor(2) as pool:
        drive(
            s,
            slow_bowl,
            executor=pool,
            n_workers=2,
            limits=Limits(budget=9),
            on_end=lambda s, e, o: (seconds.append(o.seconds), time.sleep(0.2)),  # type: ignore[func-returns-value]
        )
    assert sorted(seconds)[4] < 0.15


def test_a_callback_that_forgets_what_is_pending_does_no_harm() -> None:
    def forgetful(s: Study, *_: object) -> None:
        for x in s.pending:
            s.forget(x)

    s = study()
    with ThreadPoolExecutor(2) as pool, pytest.raises(RuntimeError, match="mine"):
        drive(
            s,
            slow_bowl,
            executor=pool,
            n_workers=2,
            limits=Limits(budget=30),
            on_end=forgetful,
            stop=lambda: _raise() if len(s.y) > 6 else None,
        )


def _raise() -> str:
    raise RuntimeError("mine")


def test_a_study_goes_on_where_it_was_left() -> None:
    """Four evaluations, two points under way, and a new loop that finishes them first."""
    notebook = Notebook(study())
    here = inline(lambda entry: called(bowl, notebook.x(entry.point)))
    Loop(notebook, here, limits=Limits(budget=4)).run()
    under_way = [notebook.ask(), notebook.ask()]
    resumed: list[Entry] = []
    message = Loop(notebook, here, limits=Limits(budget=7), resume=resumed.append).run()
    assert message == "the budget of 7 evaluations is spent"
    assert resumed == under_way
    assert [entry.id for entry in notebook.outcomes] == list(range(1, 8))
    assert np.array_equal(notebook.study.X[4:6], [notebook.x(entry.point) for entry in under_way])
    assert len(notebook.study.pending) == 0


def test_failures_are_data() -> None:
    def fragile(x: np.ndarray) -> object:
        if x[0] > 0.8:
            raise RuntimeError("too hot")
        if x[1] > 0.9:
            return math.nan
        return "low" if x[1] < 0.05 else bowl(x)

    seen: list[Outcome] = []
    s = study()
    message = drive(s, fragile, limits=Limits(budget=12), on_end=lambda s, e, o: seen.append(o))
    assert "budget of 12" in message
    assert len(s.y) + len(s.failures) == 12 == len(seen)
    reasons = {reason for _, reason in s.failures}
    assert reasons <= {
        "RuntimeError: too hot",
        "the value is nan",
        "expected a number, got str 'low'",
    }
    assert "RuntimeError: too hot" in reasons
    assert all((o.value is None) == (o.reason is not None) for o in seen)
    assert np.isfinite(s.y).all()


@pytest.mark.parametrize("kind", [None, ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_exit_is_a_failure_as_any_other(kind) -> None:
    with contextlib.nullcontext() if kind is None else kind(max_workers=1) as executor:
        result = fitbo.minimize(unlicensed, SQUARE, n_calls=5, executor=executor, **SMALL)
    assert result.nfev == 5
    assert {reason for _, reason in result.failures} == {"SystemExit: no licence"}
    assert len(result.func_vals) == 5 - len(result.failures) > 0


def test_an_array_that_holds_one_number_is_one() -> None:
    result = fitbo.minimize(lambda x: np.array([bowl(x)]), SQUARE, n_calls=3, **SMALL)
    assert result.failures == []
    assert len(result.func_vals) == 3


def test_each_limit_ends_the_search_and_says_so() -> None:
    def run(fun=bowl, n_calls: int = 30, bounds=SQUARE, **limits):
        return fitbo.minimize(fun, bounds, n_calls=n_calls, **{**SMALL, **limits})

    assert run(target=0.2).message.startswith("the target of 0.2 is reached: 0.")
    failed = run(lambda x: 1 / 0, max_failures=3)
    assert failed.nfev == 3 == len(failed.failures)
    assert failed.message.startswith("3 evaluations failed, and max_failures is 3; the last: Zero")
    assert not failed.success
    assert failed.x is None
    assert "every evaluation failed" in failed.message
    late = run(slow_bowl, time_limit=0.2)
    assert late.message == "the time limit of 0.2 s is reached"
    assert late.nfev < 30
    done = run(lambda p: p["n"], bounds={"n": Integer(1, 3)}, n_initial=2)
    assert done.message == "the space is exhausted: each of its 3 points has been asked for"
    assert done.nfev == 3
    assert done.fun == 1.0
    sure = run(tolerance=1e9)
    assert sure.nfev == 4
    assert "expected remaining improvement" in sure.message
    assert "below the tolerance of 1e+09" in sure.message
    assert (
        run(callback=lambda s: True).message == "the callback ended the search after 1 evaluations"
    )


def test_the_time_limit_does_not_wait_for_what_hangs() -> None:
    gate, over = threading.Event(), []

    def hang(x: np.ndarray) -> float:
        over.append(gate.wait(20))  # forever, as far as the search is concerned
        return 0.0

    with ThreadPoolExecutor(2) as pool:
        result = fitbo.minimize(hang, SQUARE, executor=pool, n_workers=2, time_limit=0.3, **SMALL)
        assert not over  # it came back before any evaluation did
        gate.set()
    assert "time limit" in result.message
    assert len(result.study.pending) == 2


def test_bad_limits_and_workers() -> None:
    for call, message in [
        (lambda: Limits(max_failures=0), "max_failures must be at least 1, got 0"),
        (lambda: Limits(time_limit=0), "time_limit must be positive, got 0"),
        (lambda: Limits(tolerance=-1.0), "tolerance must be positive, got -1.0"),
        (lambda: Limits(target=math.nan), "target must be a number"),
        (lambda: fitbo.minimize(bowl, SQUARE, n_workers=2), "n_workers=2 needs an executor"),
        (lambda: fitbo.minimize(bowl, SQUARE, n_workers=0), "n_workers must be a whole number"),
        (lambda: drive(study(), bowl, n_workers=0), "n_workers must be at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


def test_ctrl_c_is_not_a_failure() -> None:
    def interrupted(x: np.ndarray) -> float:
        raise KeyboardInterrupt

    s = study()
    with pytest.raises(KeyboardInterrupt):
        drive(s, interrupted, limits=Limits(budget=3))
    assert not s.failures
    assert len(s.pending) == 1


def test_processes() -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        result = fitbo.minimize(bowl, SQUARE, n_calls=8, executor=pool, n_workers=2, **SMALL)
    assert result.nfev == 8 == len(result.func_vals)
    assert result.fun == min(bowl(x) for x in result.x_iters)


def test_a_killed_process_breaks_its_pool_and_loses_nothing(tmp_path: Path) -> None:
    s = study()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        fun = functools.partial(suicide_once, str(tmp_path / "flag"))
        message = drive(s, fun, executor=pool, n_workers=2, limits=Limits(budget=20))
    assert "the executor is broken" in message
    assert 1 <= len(s.failures) <= 2
    assert "BrokenProcessPool" in s.failures[0][1]
    assert len(s.pending) == 0


def test_dask_with_a_worker_killed(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    s = study()
    flag = str(tmp_path / "flag")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        message = drive(
            s,
            functools.partial(suicide_once, flag),
            executor=client.get_executor(pure=False),
            n_workers=2,
            limits=Limits(budget=8),
        )
    assert Path(flag).exists()  # somebody died
    assert message == "the budget of 8 evaluations is spent"
    assert len(s.y) == 8  # and Dask gave its point to another
    assert not s.failures


def test_a_broken_executor_strikes_off_its_own_points_only() -> None:
    class Broken:
        def submit(self, *arguments: object) -> Future:
            raise BrokenExecutor("gone")

    s = study()
    (before,) = s.ask()
    assert "broken" in drive(s, bowl, executor=Broken(), queue=[before], limits=Limits(budget=5))
    assert np.array_equal(s.pending, [before])
    s = study()
    assert "broken" in drive(s, bowl, executor=Broken(), limits=Limits(budget=5))
    assert len(s.pending) == 0


def halving(x: np.ndarray) -> float:
    x *= 0.5
    return bowl(x)


def test_an_objective_may_change_what_it_is_given() -> None:
    for executor in (None, ThreadPoolExecutor(1)):
        found = fitbo.minimize(halving, SQUARE, n_calls=6, executor=executor, **SMALL)
        assert len(found.study.pending) == 0
        assert found.fun == halving(found.x.copy())


def popping(point: dict) -> float:
    return float(point.pop("n") + 1)


def test_an_objective_may_empty_its_point() -> None:
    found = fitbo.minimize(popping, {"n": Integer(1, 9)}, n_calls=4, **SMALL)
    assert len(found.func_vals) == 4
    assert found.x["n"] + 1 == found.fun
