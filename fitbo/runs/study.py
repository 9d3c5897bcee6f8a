"""One study, run from wherever its journal ends until there is a reason to stop.

    run(config)     its notebook, as it is then

Each outcome is on the disk before the next evaluation begins. What was asked for and not finished
when the last run ended is evaluated first, and the journal says so. Sequentially a study that was
interrupted asks for the same points as one that was not; in parallel no finished one is lost.

Evaluations run inline, from threads, or on a Dask cluster. A program has a process of its own
anyway; with ``processes`` a Python function has one too, so that its death is one failure.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fitbo.config.build import build_objective, build_problem
from fitbo.config.campaign import StudyConfig
from fitbo.config.executor import Executor as ExecutorConfig
from fitbo.objectives import Outcome, PythonObjective, end_left_over, evaluate
from fitbo.objectives.outcome import ending
from fitbo.records.events import Entry, Point
from fitbo.records.notebook import Notebook, open_notebook
from fitbo.runs.limits import limits_of
from fitbo.runs.loop import Loop, Submit, Truth, Watch, inline, recommended
from fitbo.study import Study

PATIENCE = 10.0  # seconds to wait for an ask or a tell that is writing the journal
# Apart from the purposes of a study: of a test function's noise, and of an evaluation's own seed.
NOISE_STREAM, SEED_STREAM = 100, 200

Callback = Callable[[Study], bool | None]
Job = tuple[Callable[..., Outcome], tuple[Any, ...]]


def run(
    config: StudyConfig,
    *,
    callback: Callback | None = None,
    watch: Watch | None = None,
    stop: Callable[[], bool] = lambda: False,
    patience: float = PATIENCE,
) -> Notebook | None:
    """Run a study until there is a reason to stop; its notebook, or None if ``stop`` ended it.

    callback   called with the study after each outcome; a true result ends the study
    watch      called with the notebook, the entry and its outcome, for a display
    stop       asked before each evaluation; if true, the run ends as if it had been interrupted
    patience   seconds to wait for another process that writes the journal
    """
    # The function may change the working directory: from here on nothing depends on it.
    config = replace(config, root=config.root.resolve())
    job, truth = _prepared(config)
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
        end_left_over(_scratch(config, entry))
        notebook.append({"event": "again", "id": entry.id})

    ending.clear()
    with (
        _same_directory(),
        open_notebook(config, running=config.campaign.single, patience=patience) as notebook,
        _place(config.evaluations) as (executor, workers),
    ):
        loop = Loop(
            notebook,
            _submit(executor, job),
            n_workers=workers,
            limits=limits_of(config.campaign),
            truth=truth,
            watch=watched,
            stop=ended,
            resume=again,
        )
        reason = loop.run()
        with suppress(OSError):  # nothing failed, nothing is kept
            config.scratch.rmdir()
        if interrupted:
            return None
        if notebook.stopped != reason:
            row: dict[str, Any] = {"event": "stopped", "reason": reason, "elapsed": loop.elapsed()}
            row["budget"] = config.campaign.budget
            if len(notebook.study.y) > 1:
                row |= recommended(notebook, truth)
            notebook.append(row | notebook.fitted())
        return notebook


def _prepared(config: StudyConfig) -> tuple[Callable[[Entry], Job], Truth | None]:
    """What evaluates an entry, and the noise-free value of a point where it is known."""
    if config.problem.black_box:
        objective = build_objective(config.problem)
        if config.evaluations.kind == "processes" and isinstance(objective, PythonObjective):
            objective = replace(objective, isolate=True)

        def evaluation(entry: Entry) -> Job:
            seed, scratch = seed_of(config.seed, entry.id), str(_scratch(config, entry))
            return evaluate, (objective, entry.point, seed, scratch)

        return evaluation, None

    def truth(point: Point) -> float:
        return build_problem(config.problem)(list(point.values()))

    return lambda entry: (observe, (config, entry)), truth


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


def _submit(executor: Executor | None, job: Callable[[Entry], Job]) -> Submit:
    if executor is None:
        return inline(lambda entry: job(entry)[0](*job(entry)[1]))

    def submit(entry: Entry) -> Future[Outcome]:
        function, arguments = job(entry)
        return executor.submit(function, *arguments)

    return submit


@contextmanager
def _same_directory() -> Iterator[None]:
    """The working directory afterwards is the one before."""
    before = Path.cwd()
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _place(config: ExecutorConfig) -> Iterator[tuple[Executor | None, int]]:
    """What evaluates, None for inline, and how many at a time."""
    workers = config.workers or os.cpu_count() or 1
    if config.kind == "serial":
        yield None, 1
    elif config.kind == "dask":
        from fitbo.runs.executors import open_executor

        own = config.workers if config.address is None else None  # a cluster has its workers
        with open_executor(replace(config, workers=own), workers) as (executor, _):
            yield executor, workers
    else:
        threads = ThreadPoolExecutor(workers)
        try:
            yield threads, workers
        finally:
            # On the way out by an exception, whatever is still running was given up.
            threads.shutdown(wait=False, cancel_futures=True)
