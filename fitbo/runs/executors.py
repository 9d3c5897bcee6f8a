"""Where the studies of a campaign run: in this process, in several, or on a Dask cluster.

Each kind is a ``concurrent.futures.Executor`` (``distributed`` brings its own), so one loop serves
all: submit every study, take the results as they come, and repeat for the studies that a lost
worker or another process has left.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from multiprocessing import active_children, get_context, parent_process, resource_tracker
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any
from uuid import uuid4

from fitbo.config.campaign import StudyConfig
from fitbo.config.executor import Executor as ExecutorConfig
from fitbo.records.journal import Busy
from fitbo.runs.study import run

logger = logging.getLogger(__name__)

ATTEMPTS = 5  # rounds in which workers are lost and no study is finished before we give up
TICK = 0.25  # seconds between looks at the progress
LOOK = 2.0  # seconds between looks at the workers of a local cluster
BUSY_WAIT = 1.0  # seconds between looks at a journal that another process is writing

Stopping = Callable[[], bool]  # called in a worker before each evaluation; it is sent there
Place = Iterator[tuple[Executor, Stopping]]

_stop: Event | threading.Event | None = None  # in a worker: set when its parent wants it to end
_alone = threading.Lock()  # BLAS has one number of threads per process, so one study at a time


def run_all(
    studies: Sequence[StudyConfig], config: ExecutorConfig, tick: Callable[[], None] = lambda: None
) -> Generator[tuple[StudyConfig, BaseException | None], None, None]:
    """Run every study, and yield each as it ends, with the exception that ended it or None.

    ``tick`` is called a few times per second. A study that another process is writing is left to
    the end and then waited for. If a worker dies, its studies are started again and continue from
    their journals.
    """
    left, patient, futile = list(studies), False, 0
    while left:
        finished = 0
        again: list[StudyConfig] = []
        lost: BaseException | None = None
        with open_executor(config, len(left)) as (executor, stopping):
            with _deaf():
                futures = {_submit(executor, study, stopping, patient): study for study in left}
            for future in _as_completed(futures, tick):
                study = futures[future]
                error = future.exception() if not future.cancelled() else CancelledError()
                killed = type(error).__name__ == "KilledWorker"  # of distributed
                if killed or isinstance(error, BrokenProcessPool | CancelledError):
                    lost = error
                elif not isinstance(error, Busy):
                    finished += 1
                    yield study, error
                    continue
                again.append(study)
        futile = 0 if finished or lost is None else futile + 1
        if futile >= ATTEMPTS:
            for study in again:
                yield study, RuntimeError(f"its worker died {futile} times: {lost}")
            return
        left, patient = again, lost is None


@contextmanager
def open_executor(config: ExecutorConfig, most: int) -> Place:
    """The executor that the configuration names, for up to ``most`` studies at a time.

    With it comes a function by which a study there asks whether it should end. If the block is left
    by an exception, such as Ctrl-C, work not begun is cancelled, and studies under way end after
    their present evaluation.
    """
    workers = min(config.workers or os.cpu_count() or 1, most)
    if config.kind == "serial":
        # One thread: the studies run one after another, with the display still alive.
        stop = threading.Event()
        yield from _pool(ThreadPoolExecutor(1, initializer=_begin, initargs=(stop,)), stop)
    elif config.kind == "processes":
        yield from _processes(workers)
    else:
        yield from _dask(config, workers)


def _processes(workers: int) -> Place:
    # Spawned, not forked: a fork copies the locks of BLAS threads in whatever state they are.
    context = get_context("spawn")
    stop = context.Event()
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(stop, True))
    yield from _pool(pool, stop)


def _pool(pool: Executor, stop: Event | threading.Event) -> Place:
    try:
        yield pool, _stopping
    except BaseException:
        stop.set()
        try:  # in one call: a second would neither wait nor cancel
            pool.shutdown(wait=True, cancel_futures=True)
        except KeyboardInterrupt:  # Ctrl-C again: a kill loses no more than an evaluation
            for child in active_children():
                child.terminate()
        raise
    pool.shutdown()


def _dask(config: ExecutorConfig, workers: int) -> Place:
    distributed = _distributed()
    from dask.config import set as dask_config  # of a package that distributed needs

    with ExitStack() as stack:
        where = config.address
        if where is None:
            resource_tracker.ensure_running()  # first, since it would undo what _deaf does
            # Under load a worker needs longer than the 15 s after which it would be given up.
            stack.enter_context(dask_config({"distributed.deploy.lost-worker-timeout": "1 day"}))
            with _deaf():
                cluster = distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address="127.0.0.1:0",  # any free port: None means 8787
                )
                where = stack.enter_context(cluster)
            cluster.loop.add_callback(_keep_alive, cluster, workers)
        client = stack.enter_context(distributed.Client(where, timeout="10s"))
        # A study under way on another's cluster cannot be stopped from here: it has to ask.
        stop = distributed.Event(f"fitbo-stop-{uuid4()}", client=client)
        try:
            yield client.get_executor(pure=False), partial(_told_to_stop, stop.name)
        except BaseException:
            stop.set()
            raise


async def _keep_alive(cluster: Any, workers: int) -> None:
    """Replace the workers of a local cluster that have died for good, for as long as it runs.

    A worker that is killed is started again by its nanny, but if it is killed once more while it
    starts, the nanny gives up; the cluster takes no notice, and work waits for ever.
    """
    dead: set[Any] = set()
    while cluster.status.name in ("created", "starting", "running"):
        await asyncio.sleep(LOOK)
        now = {name for name, nanny in cluster.workers.items() if not nanny.is_alive()}
        for name in now & dead:  # not between two lives
            logger.warning("worker %s has died, and is replaced", name)
            nanny = cluster.workers.pop(name, None)
            if nanny is not None:
                with suppress(OSError, RuntimeError, TimeoutError):
                    await nanny.close(timeout=LOOK)
        dead = now
        if len(cluster.workers) < workers and cluster.status.name == "running":
            cluster.scale(workers)


def _distributed() -> Any:
    """The package, which carries no types."""
    try:
        import distributed
    except ImportError:
        message = "executor dask needs the package distributed: pip install 'fitbo[dask]'"
        raise ValueError(message) from None
    return distributed


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes started here never receive Ctrl-C, which is for the process that started them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(stop: Event | threading.Event, process: bool = False) -> None:
    """At the start of a worker; a worker process ends with its parent, even a killed one."""
    global _stop
    _stop = stop
    if process:
        threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _submit(
    executor: Executor, study: StudyConfig, stopping: Stopping, patient: bool
) -> Future[bool]:
    # Where a worker on another machine looks for the journal must not depend on where it started.
    study = replace(study, root=Path.cwd())
    try:
        return executor.submit(_run, study, stopping, patient)
    except BrokenProcessPool as error:  # by a worker that was lost since the pool was opened
        broken: Future[bool] = Future()
        broken.set_exception(error)
        return broken


def _run(study: StudyConfig, stopping: Stopping, patient: bool) -> bool:
    """One study, in a worker; with patience, once other processes have finished with it."""
    while True:
        try:
            with _alone:
                return run(study, stop=stopping, patience=0.0) is not None
        except Busy:
            if not patient or stopping():
                raise
        time.sleep(BUSY_WAIT)


def _stopping() -> bool:
    return _stop is not None and _stop.is_set()


def _told_to_stop(name: str) -> bool:
    """In a Dask worker: whether the event of that name is set."""
    return bool(_distributed().Event(name).is_set())


def _as_completed(futures: Iterable[Future[bool]], tick: Callable[[], None]) -> Iterator[Any]:
    """The futures as they are done, with a tick between."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=TICK, return_when="FIRST_COMPLETED")
        yield from done
        tick()
