"""One study, run from wherever its journal ends until there is a reason to stop.

    run(config)     its notebook, as it is then

Each outcome is on the disk before the next evaluation begins. Evaluations that were unfinished when
the last run ended come first, and the journal says so. Run sequentially, a study that was
interrupted asks for the same points as one that was not; in parallel no finished value is lost.

Evaluations run inline, from threads, or on a Dask cluster. A program has its own process in any
case; with ``processes`` a Python function has one too, so that its death is one failure. Where the
last run died during an evaluation (its scratch directory is left), that evaluation gets one too.

A study of a file of its own may have several runs at a time, each another worker: they share the
journal and the budget, and each chooses by all that is known and pending. What a run leaves when it
dies, another evaluates.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import chdir, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fitbo.config.build import build_objective, build_problem
from fitbo.config.campaign import StudyConfig
from fitbo.config.executor import Executor as ExecutorConfig
from fitbo.objectives import Outcome, PythonObjective, end_left_over, evaluate
from fitbo.records.events import Entry, Point
from fitbo.records.notebook import Notebook, Running, open_notebook
from fitbo.runs.limits import limits_of
from fitbo.runs.loop import Loop, Truth, Watch, inline, recommended
from fitbo.study import Study

logger = logging.getLogger(__name__)

PATIENCE = 60.0  # seconds to wait for another that writes the journal, or chooses a point
# Apart from the purposes of a study: for a test function's noise, and for an evaluation's own seed.
NOISE_STREAM, SEED_STREAM = 100, 200

Callback = Callable[[Study], bool | None]
Job = Callable[[], Outcome]


def run(
    config: StudyConfig,
    *,
    callback: Callback | None = None,
    watch: Watch | None = None,
    begun: Callable[[Notebook, Entry], None] = lambda notebook, entry: None,
    stop: Callable[[], bool] = lambda: False,
    patience: float = PATIENCE,
) -> Notebook | None:
    """Run a study until there is a reason to stop; its notebook, or None if ``stop`` ended it.

    callback   called with the study after each outcome; a true result ends the study
    watch      called with the notebook, the entry and its outcome, for a display
    begun      called with the notebook and an entry whose evaluation starts, likewise
    stop       called before each evaluation; if true, the run ends as if it were interrupted
    patience   seconds to wait for another process that writes the journal
    """
    # The function may change the working directory: from here on nothing depends on it.
    config = replace(config, root=config.root.resolve())
    job, truth, alone = _prepared(config)
    wanted = interrupted = False

    def watched(notebook: Notebook, entry: Entry, outcome: Outcome) -> None:
        nonlocal wanted
        if watch is not None:
            watch(notebook, entry, outcome)
        if callback is not None:
            wanted = bool(callback(notebook.study)) or wanted

    def ended() -> str | None:
        nonlocal interrupted
        interrupted = not wanted and stop()
        return "the callback ended it" if wanted else "interrupted" if interrupted else None

    def again(entry: Entry) -> None:
        row: dict[str, Any] = {"event": "again", "id": entry.id} | notebook.mine()
        if end_left_over(_scratch(config, entry)) and alone(entry):
            row["isolated"] = True
            logger.warning(
                "%s: the last run died during evaluation %d, which is now made again in a process "
                "of its own",
                config.title,
                entry.id,
            )
        notebook.append(row)

    running: Running = "joint" if config.campaign.single else "alone"
    with (
        chdir("."),  # afterwards the working directory is the one before
        open_notebook(config, running=running, patience=patience) as notebook,
        _place(config.evaluations) as (executor, workers),
    ):
        with notebook.locked():
            if others := notebook.writer.others() if notebook.writer is not None else ():
                which = "another run is" if len(others) == 1 else f"{len(others)} other runs are"
                logger.warning("%s: %s at work on it, and this one joins", config.title, which)
        here = inline(lambda entry: job(entry)())

        def submit(entry: Entry) -> Future[Outcome]:
            begun(notebook, entry)
            return here(entry) if executor is None else executor.submit(job(entry))

        loop = Loop(
            notebook,
            submit,
            n_workers=workers,
            limits=limits_of(config.campaign),
            truth=truth,
            watch=watched,
            stop=ended,
            resume=again,
        )
        reason = loop.run()
        with notebook.locked():
            left = notebook.abandoned()
            notebook.elsewhere = tuple(e for e in notebook.pending() if e not in left)
            if not notebook.elsewhere:
                with suppress(OSError):  # nothing failed, nothing is kept
                    config.scratch.rmdir()
            if interrupted:
                return None
            if not notebook.elsewhere and notebook.stopped != reason:
                row: dict[str, Any] = {"event": "stopped", "reason": reason}
                row |= {"elapsed": loop.elapsed(), "budget": config.campaign.budget}
                if len(notebook.study.y) > 1:
                    row |= recommended(notebook, truth)
                notebook.append(row | notebook.fitted())
        return notebook


def _prepared(
    config: StudyConfig,
) -> tuple[Callable[[Entry], Job], Truth | None, Callable[[Entry], bool]]:
    """What evaluates an entry, and the noise-free value of a point where it is known.

    The third makes an entry be evaluated in a process of its own from now on: whether that is new.
    """
    if not config.problem.black_box:

        def truth(point: Point) -> float:
            return build_problem(config.problem)(list(point.values()))

        return lambda entry: partial(observe, config, entry), truth, lambda entry: False

    objective, deadly = build_objective(config.problem), set[int]()
    if config.evaluations.kind == "processes" and isinstance(objective, PythonObjective):
        objective = replace(objective, isolate=True)

    def alone(entry: Entry) -> bool:
        deadly.add(entry.id)
        return isinstance(objective, PythonObjective) and not objective.isolated

    def evaluation(entry: Entry) -> Job:
        seed, scratch = seed_of(config.seed, entry.id), str(_scratch(config, entry))
        mine = objective
        if entry.id in deadly and isinstance(mine, PythonObjective) and not mine.isolated:
            mine = replace(mine, isolate=True, cwd=Path.cwd())  # as it would be in this process
        return partial(evaluate, mine, entry.point, seed, scratch)

    return evaluation, None, alone


def observe(config: StudyConfig, entry: Entry) -> Outcome:
    """A test function at an entry's point, with the noise that belongs to its number."""
    problem = build_problem(config.problem, config.noise_std)
    rng = np.random.default_rng([config.seed, NOISE_STREAM, entry.id])
    started = time.perf_counter()
    value = problem.observe(list(entry.point.values()), rng)
    return Outcome(value, None, time.perf_counter() - started)


def seed_of(seed: int, number: int) -> int:
    """The seed of one evaluation, the same whenever it is repeated: 31 bits."""
    return int(np.random.SeedSequence([seed, SEED_STREAM, number]).generate_state(1)[0] >> 1)


def _scratch(config: StudyConfig, entry: Entry) -> Path:
    return config.scratch / f"{entry.id:04d}"


@contextmanager
def _place(config: ExecutorConfig) -> Iterator[tuple[Executor | None, int]]:
    """What evaluates, None for inline, and how many at a time."""
    workers = config.workers or os.cpu_count() or 1
    if config.kind == "serial":
        yield None, 1
    elif config.kind == "dask":
        from fitbo.runs.executors import open_executor

        own = config.workers if config.address is None else None  # a cluster has its own workers
        with open_executor(replace(config, workers=own), workers) as (executor, _):
            yield executor, workers
    else:
        threads = ThreadPoolExecutor(workers)
        try:
            yield threads, workers
        finally:
            # After an exception, evaluations still running were given up.
            threads.shutdown(wait=False, cancel_futures=True)
