"""Workers are killed and studies are not lost; Ctrl-C ends everything that was begun."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from fitbo.config.campaign import Campaign, StudyConfig
from fitbo.config.executor import Executor as ExecutorConfig
from fitbo.records.journal import Writer
from fitbo.runs import executors
from fitbo.runs.executors import run_all
from tests.campaigns import (
    MANY,
    alive,
    campaign,
    complete,
    holder,
    journals,
    n_told,
    start,
    wait_for,
    write_config,
)

LONG: dict[str, Any] = {"problems": ["forrester"], "seeds": 3, "budget": 20}
PROCESSES = {"kind": "processes", "workers": 2}
DASK = {"kind": "dask", "workers": 2}
KINDS = [pytest.param(kind, id=kind["kind"]) for kind in ({"kind": "serial"}, PROCESSES, DASK)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The journals of the long campaign, its studies run one after another without an executor."""
    output = tmp_path_factory.mktemp("expected")
    for task in campaign(output, **LONG).studies():
        complete(task)
    return journals(output)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "TICK", 0.02)


def run_grid(
    of: Campaign, tick: Callable[[], None] = lambda: None
) -> dict[str, BaseException | None]:
    """What became of each study."""
    return {task.title: error for task, error in run_all(of.studies(), of.place, tick)}


class Killer:
    """Kills, once, the worker that is in the middle of a study."""

    def __init__(self, of: Campaign) -> None:
        self.paths, self.budget = [task.journal for task in of.studies()], of.budget
        self.killed: int | None = None

    def __call__(self) -> None:
        for path in self.paths:
            if self.killed is None and 4 <= n_told(path) < self.budget - 2:
                worker = holder(path)
                if worker is not None:
                    worker.send_signal(signal.SIGKILL)
                    self.killed = worker.pid


@pytest.mark.parametrize("kind", KINDS[:1])
def test_the_studies_are_those_run_alone(
    tmp_path: Path, kind: dict[str, Any], expected: dict[str, bytes]
) -> None:
    found = run_grid(campaign(tmp_path, executor=kind, **LONG))
    assert list(found.values()) == [None] * 3
    assert journals(tmp_path) == expected


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_worker_killed_in_the_midst_of_a_study_costs_nothing(
    tmp_path: Path, kind: dict[str, Any], expected: dict[str, bytes]
) -> None:
    long = campaign(tmp_path, executor=kind, **LONG)
    killer = Killer(long)
    found = run_grid(long, killer)
    assert killer.killed is not None
    assert not psutil.pid_exists(killer.killed) or (
        psutil.Process(killer.killed).status() == psutil.STATUS_ZOMBIE
    )
    assert found == dict.fromkeys([task.title for task in long.studies()])
    # But for what was under way, which is evaluated again, also by the worker that died with it.
    again = re.compile(rb'\{"event": "again", "id": \d+\}\n')
    assert {name: again.sub(b"", data) for name, data in journals(tmp_path).items()} == expected


def broken(task: StudyConfig, stop: Callable[[], bool], patience: float) -> bool:
    if task.seed == 1:
        raise ArithmeticError(f"no {task.title}")
    return complete(task, stop)


def test_a_study_that_raises_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "run", broken)
    found = run_grid(campaign(tmp_path, **{**MANY, "budget": 3}))
    assert {title: str(error) for title, error in found.items() if error} == {
        title: f"no {title}" for title in ("branin / MM / 1", "forrester / MM / 1")
    }
    assert {Path(name).name for name in journals(tmp_path)} == {"0.jsonl"}


@pytest.mark.slow
def test_a_study_that_raises_in_a_worker_does_not_stop_the_others(tmp_path: Path) -> None:
    executor = {"kind": "processes", "workers": 1}
    small = campaign(tmp_path, executor=executor, **{**MANY, "budget": 3})
    path = small.studies()[0].journal
    path.parent.mkdir(parents=True)
    path.write_text('{"a": 1}\n{torn\n{"n": 2}\n')
    found = run_grid(small)
    failed = found.pop("branin / MM / 0")
    assert isinstance(failed, ValueError)
    assert "0.jsonl:2 must be a JSON object" in str(failed)
    assert list(found.values()) == [None] * 3


class Dead(executors.ThreadPoolExecutor):
    """A pool whose workers die at once: the first study is lost, and no more can be submitted."""

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        if self._shutdown:
            raise BrokenProcessPool("a child process terminated abruptly")
        future = super().submit(os.getpid)
        future.result()
        self.shutdown()
        lost: Any = executors.Future()
        lost.set_exception(BrokenProcessPool("a child process terminated abruptly"))
        return lost


def test_workers_that_always_die_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the pool breaks while the studies are still being submitted."""
    opened: list[int] = []

    def processes(workers: int) -> Iterator[Any]:
        opened.append(workers)
        yield Dead(1), lambda: False

    monkeypatch.setattr(executors, "_processes", processes)
    found = run_grid(campaign(tmp_path, executor=PROCESSES, **MANY))
    assert len(opened) == executors.ATTEMPTS
    assert len(found) == 4
    assert all("its worker died 5 times" in str(error) for error in found.values())


def test_a_busy_study_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "BUSY_WAIT", 0.05)
    small = campaign(tmp_path, **{**MANY, "budget": 3})
    busy = small.studies()[0]
    other = Writer(busy.journal)
    ended: list[str] = []
    ticks = iter(range(10**6))

    def tick() -> None:
        # The others have ended, and the first has been looked at a few times since.
        if len(ended) == 3 and next(ticks) == 10:
            other.__exit__(None, None, None)

    for task, error in run_all(small.studies(), small.place, tick):
        assert error is None
        ended.append(task.title)
    assert ended[-1] == busy.title
    assert len(ended) == 4
    assert n_told(busy.journal) == 3


def test_a_relative_output_is_relative_to_where_the_campaign_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not to where a worker was: it may be on another machine."""
    monkeypatch.chdir(tmp_path)
    seen: list[Path] = []

    def elsewhere(task: StudyConfig, stop: Callable[[], bool], patience: float) -> bool:
        seen.append(task.journal)
        return True

    monkeypatch.setattr(executors, "run", elsewhere)
    small = campaign(Path("here"))
    run_grid(small)
    assert seen == [tmp_path / "here" / "small" / "branin" / "MM" / "0.jsonl"]


# --- Stopping ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(PROCESSES, id="processes"),
        pytest.param({"kind": "serial"}, id="serial", marks=pytest.mark.slow),
        pytest.param(DASK, id="dask", marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_says_how_to_resume_and_leaves_nobody_behind(
    tmp_path: Path, kind: dict[str, Any], expected: dict[str, bytes]
) -> None:
    config = write_config(tmp_path / "out", executor=kind, **LONG)
    first = campaign(tmp_path / "out", **LONG).studies()[0].journal
    child = start(["run", str(config), "--no-report"])
    try:
        wait_for(lambda: n_told(first) >= 4)
        os.killpg(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 130, errors
        assert "Traceback" not in errors
        assert f"    fitbo run {config} --no-report\n" in errors
        wait_for(lambda: not alive(child.pid), 10)
    finally:
        subprocess.run(["kill", "-KILL", "--", f"-{child.pid}"], check=False, capture_output=True)  # noqa: S607
    written = sum(map(n_told, (tmp_path / "out").rglob("*.jsonl")))
    assert 4 <= written < 3 * LONG["budget"]
    run_grid(campaign(tmp_path / "out", **LONG))
    assert journals(tmp_path / "out") == expected


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    config = write_config(tmp_path / "out", executor=PROCESSES, **{**MANY, "budget": 500})
    child = start(["run", str(config), "--no-report"])
    try:
        wait_for(lambda: sum(map(n_told, (tmp_path / "out").rglob("*.jsonl"))) >= 4)
        assert len(alive(child.pid)) >= 3
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=60)
        wait_for(lambda: not alive(child.pid), 10)
    finally:
        subprocess.run(["kill", "-KILL", "--", f"-{child.pid}"], check=False, capture_output=True)  # noqa: S607


# --- Another's cluster ------------------------------------------------------------------------


def test_a_cluster_by_its_address_and_stopping_what_runs_there(
    tmp_path: Path, expected: dict[str, bytes]
) -> None:
    """Studies under way on a cluster that goes on without us end after their evaluation."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=True, dashboard_address="127.0.0.1:0"
    ) as cluster:
        long = campaign(
            tmp_path, executor={"kind": "dask", "address": cluster.scheduler_address}, **LONG
        )
        first = long.studies()[0].journal
        outcomes = run_all(long.studies(), long.place, lambda: _interrupt_at(first, 4))
        with pytest.raises(KeyboardInterrupt):
            list(outcomes)
        wait_for(lambda: holder(first) is None, 10)
        stopped = sum(map(n_told, tmp_path.rglob("*.jsonl")))
        time.sleep(0.5)
        assert sum(map(n_told, tmp_path.rglob("*.jsonl"))) == stopped < 3 * long.budget
        assert list(run_grid(long).values()) == [None] * 3
    assert journals(tmp_path) == expected


def _interrupt_at(path: Path, rows: int) -> None:
    if n_told(path) >= rows:
        raise KeyboardInterrupt


def test_no_cluster_at_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed

    real = distributed.Client
    monkeypatch.setattr(
        distributed, "Client", lambda address, timeout: real(address, timeout="0.3s")
    )
    nowhere = campaign(tmp_path, executor={"kind": "dask", "address": "tcp://127.0.0.1:1"})
    with pytest.raises(OSError, match=r"127\.0\.0\.1:1"):
        run_grid(nowhere)


def test_without_distributed_dask_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"fitbo\[dask\]"):
        run_grid(campaign(tmp_path, executor="dask"))


def test_a_dask_worker_killed_while_it_starts_again_is_replaced() -> None:
    """Its nanny gives up then, and the cluster took no notice: the work waited for ever."""
    pytest.importorskip("distributed")

    def workers() -> list[psutil.Process]:
        found = []
        for each in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):  # it has just ended
                found += [each] if "spawn_main" in " ".join(each.cmdline()) else []
        return found

    before = {each.pid for each in workers()}
    with executors.open_executor(ExecutorConfig("dask", 1), 1) as (executor, _):
        first = executor.submit(os.getpid).result(timeout=300)
        gone = {first, *before}
        os.kill(first, signal.SIGKILL)
        for _ in range(2):  # as soon as there is another, long before it is ready
            wait_for(lambda: any(each.pid not in gone for each in workers()), 300)
            young = next(each for each in workers() if each.pid not in gone)
            gone.add(young.pid)
            young.kill()
        assert executor.submit(os.getpid).result(timeout=300) not in gone
