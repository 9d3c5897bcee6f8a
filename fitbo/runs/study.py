"""One study of a black box, run to its end: ask, evaluate, tell, until there is reason to stop.

    run(config, base)     from wherever the journal ends; a ``Summary``

Each outcome is on the disk before the next evaluation begins. What was asked for and not finished
when the last run ended is evaluated first, and the journal says so. Sequentially a study that was
interrupted asks for the same points as one that was not; in parallel no finished one is lost.

Evaluations run inline, from threads, or on a Dask cluster. A program has a process of its own
anyway; with ``processes`` a Python function has one too, so that its death is one failure.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from fitbo.config.study import StudyExecutor, StudyFile
from fitbo.config.study_build import build_objective
from fitbo.objectives import Objective, Outcome, end_all, end_left_over, evaluate
from fitbo.objectives.outcome import ending
from fitbo.objectives.python import PythonObjective
from fitbo.records.events import Entry
from fitbo.records.notebook import Notebook, open_notebook
from fitbo.runs.standing import Summary, stop_reason, summarise
from fitbo.space import Exhausted
from fitbo.study import Study

logger = logging.getLogger(__name__)

PATIENCE = 10.0  # seconds to wait for an ask or a tell that is writing the journal
GRACE = 0.5  # seconds for programs to end before we say that we wait
SEED_STREAM = 200  # apart from the purposes of a study
Callback = Callable[[Study], bool | None]
Watch = Callable[[Notebook, Entry, Outcome], None]


def run(
    config: StudyFile,
    base: Path,
    *,
    callback: Callback | None = None,
    watch: Watch | None = None,
) -> Summary:
    """Run a study until there is a reason to stop, and say which.

    base       the directory that relative paths of the objective are taken from
    callback   called with the study after each outcome; a true result ends the study
    watch      called with the notebook, the entry and its outcome, for a display
    """
    # The function may change the working directory: from here on nothing depends on it.
    config = replace(config, output=str(Path(config.output).resolve()))
    objective = build_objective(config, base.resolve())
    if config.executor.kind == "processes" and isinstance(objective, PythonObjective):
        objective = replace(objective, isolate=True)
    ending.clear()
    with _same_directory(), open_notebook(config, running=True, patience=PATIENCE) as notebook:
        loop = _Loop(notebook, objective, callback, watch)
        with _executor(config.executor) as (executor, workers):
            reason = loop.until_stopped(executor, workers)
        with suppress(OSError):  # nothing failed, nothing is kept
            (config.directory / "scratch").rmdir()
        summary = summarise(notebook, reason)
        row: dict[str, Any] = {"event": "stopped", "reason": reason, "elapsed": loop.elapsed()}
        if notebook.stopped != reason:
            notebook.append(row | notebook.fitted() | _recommended(summary))
        return summary


class _Loop:
    """Keeps every worker busy, and everything on the disk."""

    def __init__(
        self,
        notebook: Notebook,
        objective: Objective,
        callback: Callback | None,
        watch: Watch | None,
    ) -> None:
        self.notebook, self.objective = notebook, objective
        self.callback, self.watch = callback, watch
        self.began, self.before = time.monotonic(), notebook.elapsed
        self.queue = notebook.pending()
        self.running: dict[Future[Outcome], Entry] = {}
        self.ended: str | None = None

    def elapsed(self) -> float:
        return round(self.before + time.monotonic() - self.began, 3)

    def until_stopped(self, executor: Executor | None, workers: int) -> str:
        """The reason why nothing is begun any more, when all that was begun has ended."""
        reason = None
        try:
            while True:
                while reason is None and len(self.running) < workers:
                    reason = self.ended or stop_reason(self.notebook, self.elapsed(), self._begun())
                    entry = None if reason else self._next()
                    if entry is None:
                        reason = reason or self.ended
                        break
                    if executor is None:
                        self._record(entry, evaluate(*self._job(entry)))
                    else:
                        future = executor.submit(evaluate, *self._job(entry))
                        self.running[future] = entry
                if reason is not None and not self.running:
                    return reason
                self._collect()
                if reason is not None and self.ended is None:
                    reason = stop_reason(self.notebook, self.elapsed(), self._begun()) or reason
        except BaseException:
            self._save_what_finished()
            raise

    def _begun(self) -> int:
        """Evaluations begun in all, whatever has come of them."""
        waiting = {entry.id for entry in self.queue}
        return sum(
            entry.state in ("told", "failed", "pending") and entry.id not in waiting
            for entry in self.notebook.entries.values()
        )

    def _next(self) -> Entry | None:
        """What to evaluate next: what an interruption left over, or a new point; None if none."""
        if self.queue:
            entry = self.queue.pop(0)
            end_left_over(self._scratch(entry))
            self.notebook.append({"event": "again", "id": entry.id})
            return entry
        try:
            return self.notebook.ask()
        except Exhausted as error:
            self.ended = str(error)
            return None

    def _job(self, entry: Entry) -> tuple[Objective, dict[str, Any], int, str]:
        seed = seed_of(self.notebook.config.seed, entry.id)
        return self.objective, entry.point, seed, str(self._scratch(entry))

    def _scratch(self, entry: Entry) -> Path:
        return self.notebook.config.directory / "scratch" / f"{entry.id:04d}"

    def _collect(self) -> None:
        """Wait for an evaluation to end, and record all that have."""
        done, _ = wait(self.running, return_when="FIRST_COMPLETED")
        # In the order in which they began: of several that have ended, chance decides nothing.
        for future in [future for future in self.running if future in done]:
            self._record(self.running[future], _outcome(future))
            del self.running[future]

    def _record(self, entry: Entry, outcome: Outcome) -> None:
        record(self.notebook, entry, outcome, self.elapsed())
        if self.watch is not None:
            self.watch(self.notebook, entry, outcome)
        if self.callback is not None and self.callback(self.notebook.study):
            self.ended = "the callback ended it"

    def _save_what_finished(self) -> None:
        """At an interruption: end the programs, and keep the values that have still come."""
        end_all()
        left = [future for future in self.running if not future.cancel()]
        _, busy = wait(left, timeout=GRACE)
        if busy:
            logger.warning("%d evaluations are still under way: Ctrl-C to give them up", len(busy))
        waited_for = {entry.id for entry in self.notebook.pending()}
        for future in left:
            if self.running[future].id not in waited_for:
                continue  # recorded, and interrupted before it was struck off
            with suppress(Exception):
                outcome = future.result()
                if outcome.value is not None:  # a failure now may be our own doing
                    record(self.notebook, self.running[future], outcome, self.elapsed())


def record(notebook: Notebook, entry: Entry, outcome: Outcome, elapsed: float) -> None:
    """One outcome into the notebook."""
    more: dict[str, Any] = {"seconds": round(outcome.seconds, 6), "elapsed": elapsed}
    if outcome.attempts > 1:
        more["attempts"] = outcome.attempts
    if outcome.kept:
        more["scratch"] = [
            os.path.relpath(path, notebook.config.directory) for path in outcome.kept
        ]
    if outcome.value is not None:
        notebook.told(entry, outcome.value, **more)
    else:
        notebook.failed(entry, outcome.reason or "failed", **more)


def seed_of(seed: int, number: int) -> int:
    """The seed of one evaluation, the same whenever it is repeated: 31 bits."""
    return int(np.random.SeedSequence([seed, SEED_STREAM, number]).generate_state(1)[0] >> 1)


def _recommended(summary: Summary) -> dict[str, Any]:
    return {} if summary.recommended is None else {"recommended": asdict(summary.recommended)}


def _outcome(future: Future[Outcome]) -> Outcome:
    """What an evaluation came to; a worker that died is a failure as any other."""
    try:
        return future.result()
    except Exception as error:
        if isinstance(error, OSError) and not type(error).__module__.startswith("distributed"):
            raise  # a full disk, say: no fault of the evaluation
        return Outcome(None, f"its worker died: {type(error).__name__}", 0.0)


@contextmanager
def _same_directory() -> Iterator[None]:
    """The working directory afterwards is the one before."""
    before = Path.cwd()
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _executor(config: StudyExecutor) -> Iterator[tuple[Executor | None, int]]:
    """What evaluates, None for inline, and how many at a time."""
    workers = config.workers or os.cpu_count() or 1
    if config.kind == "serial":
        yield None, 1
    elif config.kind == "dask":
        from fitbo.config.campaign import Executor as ExecutorConfig
        from fitbo.runs.executors import open_executor

        own = config.workers if config.address is None else None  # a cluster has its workers
        given = ExecutorConfig(kind="dask", workers=own, address=config.address)
        with open_executor(given, workers) as (executor, _):
            yield executor, workers
    else:
        threads = ThreadPoolExecutor(workers)
        try:
            yield threads, workers
        finally:
            # On the way out by an exception, whatever is still running was given up.
            threads.shutdown(wait=False, cancel_futures=True)
