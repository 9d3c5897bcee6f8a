"""``minimize`` and ``maximize``: one call for a Python function."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from fitbo.checks import whole
from fitbo.entropy import Entropy
from fitbo.inference.settings import Settings
from fitbo.minimise.arguments import begin, check_names, drawn_seed
from fitbo.minimise.journal import kept
from fitbo.minimise.result import Result
from fitbo.mixture import Array, Mixture
from fitbo.objectives import Outcome
from fitbo.objectives.outcome import FULL, check_full, failure, outcome, returned, traced
from fitbo.records.events import GIVEN, Entry
from fitbo.records.notebook import Notebook
from fitbo.runs.limits import Limits
from fitbo.runs.loop import Loop, NothingWorks, inline
from fitbo.screen import follow
from fitbo.space import Space
from fitbo.study import Study


def minimize(
    fun: Callable[[Any], float] | None = None,
    bounds: Sequence[Any] | Mapping[str, Any] | Space | None = None,
    *,
    n_calls: int = 100,
    n_initial: int | None = None,
    entropy: str | Entropy | Callable[[Mixture], Array] = "auto",
    seed: int | None = 0,
    callback: Callable[[Study], bool | None] | None = None,
    x0: Any = None,
    y0: ArrayLike | None = None,
    constraints: Sequence[str | Callable[[Any], bool]] = (),
    outcome_constraints: Sequence[str] = (),
    executor: Executor | None = None,
    n_workers: int | None = None,
    max_failures: int | None = None,
    time_limit: float | None = None,
    target: float | None = None,
    tolerance: float | None = None,
    direction: str = "minimize",
    progress: bool = False,
    journal: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Result:
    """Minimise ``fun(x)`` over ``bounds`` in ``n_calls`` evaluations in total.

    bounds        pairs (low, high), scipy's ``Bounds`` or a list of ``Real``s, and x is an array
                  (d,); or a dict of ``Real``, ``Integer`` and ``Categorical`` by name, and x is a
                  dict; or a ``Space``
    constraints   expressions or functions of x that must be true: see ``fitbo.space.constraints``
    outcome_constraints  such as ``["temperature <= 80"]``, if fun returns ``{"value": ...,
                  "constraints": {"temperature": ...}}``: see ``fitbo.inference.outcomes``
    x0, y0        points to begin with, one or several, and their values if known, NaN for a
                  failure; points without values are evaluated first and count as calls, values
                  given do not
    n_initial     points of the initial design, x0 among them; twice the parameters if None; 0: the
                  model chooses as soon as there is a value
    seed          of all random numbers; None: drawn, and found in ``result.study.settings.seed``
    callback      called with the study after each evaluation; a true result ends the search
    executor      a ``concurrent.futures.Executor`` to evaluate on, as processes, threads, or
                  Dask's ``client.get_executor(pure=False)``; this thread if None
    n_workers     evaluations at a time on the executor, as many as a pool of ``concurrent.futures``
                  has workers if None, else 1; a free worker gets a new point
    max_failures  the search ends with this many failures: exceptions, and values that are not
                  finite. Fewer do not end it, unless they are the first three: that is a mistake
                  and no region, and ``result.traceback`` shows it. Where it failed is left alone
    time_limit    seconds after which the search ends
    target        the search ends with a value at or below this; at or above, if maximised
    tolerance     the search ends when the minimum is expected to lie less than this below the best
    direction     ``minimize`` or ``maximize``: whether low values of fun are sought or high ones
    progress      whether to show how far it is: a bar on a terminal and in a notebook, else lines
    journal       a file that has every outcome before the next evaluation begins; the same call
                  with the same file continues where the last one ended
    settings      the other fields of ``fitbo.Settings``

    fun returns a number, or ``{"value": ..., "std": ..., "constraints": {...}}`` with what of these
    there is: the value's standard deviation, and what the outcome constraints are about.

    Returns a ``Result``: ``x`` and ``fun`` are the best observed, ``x_recommended`` and
    ``fun_recommended`` where the posterior mean is best and that mean. Ctrl-C ends the search and
    returns what is known, with ``success`` false, as it is if every evaluation failed. So does a
    full disk, which is no failure of a point: the same call with the same journal makes it again.
    """
    check_names(minimize, fun, bounds, settings)
    whole("n_calls", n_calls, least=1)
    if n_workers is not None:
        whole("n_workers", n_workers, least=1)
    if executor is None and n_workers not in (None, 1):
        raise ValueError(f"n_workers={n_workers} needs an executor: give one, or leave it out")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ValueError(
            f"executor must be one of concurrent.futures, or have its submit, got "
            f"{type(executor).__name__}: give a ProcessPoolExecutor, or leave it out"
        )
    if isinstance(bounds, Space) and constraints:
        raise ValueError("a Space has its own constraints: give them to it")
    space = bounds if isinstance(bounds, Space) else Space(bounds, constraints)
    chosen = drawn_seed(journal) if seed is None else seed
    made = Settings(n_initial=n_initial, entropy=entropy, seed=chosen, **settings)
    limits = Limits(n_calls, max_failures, time_limit, target, tolerance)

    def fresh() -> Study:
        return Study(space, made, direction=direction, outcome_constraints=outcome_constraints)

    with (
        kept(journal, fresh, n_calls) as notebook,
        follow(n_calls, progress, time_limit=time_limit) as shown,
    ):
        begin(notebook, x0, y0)
        evaluate = _submitting(fun, notebook, executor)
        wanted = False

        def submit(entry: Entry) -> Future[Outcome]:
            shown.begun(notebook, entry)
            return evaluate(entry)

        def watch(notebook: Notebook, entry: Entry, outcome: Outcome) -> None:
            nonlocal wanted
            shown.ended(notebook, entry, outcome)
            wanted = bool(callback is not None and callback(notebook.study)) or wanted

        def stop() -> str | None:
            count = evaluations(notebook)
            return f"the callback ended the search after {count} evaluations" if wanted else None

        loop = Loop(
            notebook,
            submit,
            n_workers=n_workers or int(getattr(executor, "_max_workers", 1)),
            limits=limits,
            watch=watch,
            stop=stop,
            patient=False,
        )
        ended, trace = False, ""
        try:
            message, ended = loop.run(), True
        except KeyboardInterrupt:
            message = f"interrupted after {evaluations(notebook)} evaluations"
        except NothingWorks as broken:
            message, trace = broken.reason, broken.trace
        except OSError as error:  # of the function's files, or of the journal
            if error.errno not in FULL:
                raise
            where = f"{error.filename}: " if error.filename else ""
            message = f"stopped after {evaluations(notebook)} evaluations: {where}{error.strerror}"
        if ended and journal is not None and notebook.stopped != message:
            notebook.append({"event": "stopped", "reason": message, "elapsed": loop.elapsed()})
    return Result.of(notebook, message, ended, evaluations(notebook), trace)


def maximize(
    fun: Callable[[Any], float] | None = None, bounds: Any = None, **options: Any
) -> Result:
    """Maximise ``fun(x)``: ``minimize`` with every value, target and result in its own sign."""
    return minimize(fun, bounds, **{"direction": "maximize"} | options)


def called(fun: Callable[[Any], float], x: Any) -> Outcome:
    """What a call of the function comes to: its value, or the reason why there is none."""
    started = time.perf_counter()
    found, reason, trace = None, None, ""
    try:
        found = returned(lambda: fun(x))
    except BaseException as error:  # noqa: BLE001 - what it raises is its failure
        reason, trace = failure(error), traced(error)
        check_full(error, Path.cwd())  # not the point's fault
    return outcome(found, reason, time.perf_counter() - started, trace=trace)


def evaluations(notebook: Notebook) -> int:
    """Outcomes of calls, in all sessions, without the values that were given."""
    return sum(entry.source != GIVEN for entry in notebook.outcomes)


def _submitting(
    fun: Any, notebook: Notebook, executor: Executor | None
) -> Callable[[Entry], Future[Outcome]]:
    """What starts the evaluation of an entry's point, on the executor or here and now."""
    if executor is None:
        return inline(lambda entry: called(fun, notebook.x(entry.point)))
    return lambda entry: executor.submit(called, fun, notebook.x(entry.point))
