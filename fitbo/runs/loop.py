"""Evaluations of one study on several workers: a free worker gets a new point at once.

``drive`` is the whole loop. It asks a study for points, submits them, tells what comes back, and
ends by the first of several reasons. ``submit`` is all it knows of how a point is evaluated, and
its callbacks all that a journal needs: ``on_start`` before a point is submitted, ``on_end`` after
the study knows its outcome. With one worker it is the plain loop of ask, evaluate, tell. With more,
the next point is chosen while all are busy and waits for the first that is free, unless choosing
takes next to nothing beside evaluating.

An exception or a value that is not a finite number is a failure and not the end. What is still
running when a search ends early is cancelled if it has not begun; it stays pending in the study.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from copy import copy
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from fitbo.objectives.outcome import Failed, described, number
from fitbo.space import Exhausted
from fitbo.study import Study

NEGLIGIBLE = 0.02  # share of an evaluation's time that a worker may well be idle
TICK = 1.0  # seconds between looks at ``stop`` while nothing comes back

Submit = Callable[[Any], "Future[Any]"]


@dataclass(frozen=True)
class Trial:
    """One evaluation under way: its number, by the order of starting, and its point.

    ``own`` is whether the point became pending by this trial, and was not so before.
    """

    number: int
    x: Any
    started: float
    own: bool = True


@dataclass(frozen=True)
class Outcome:
    """How an evaluation ended: with a ``value``, or with the ``reason`` for its failure.

    result   what the future gave back, if it gave anything
    error    the exception, if there was one
    """

    number: int
    x: Any
    value: float | None
    reason: str | None
    seconds: float
    result: Any = None
    error: BaseException | None = None

    @property
    def failed(self) -> bool:
        return self.value is None


@dataclass(frozen=True)
class Limits:
    """What ends a search; None is no limit.

    budget         evaluations in all, failed ones too
    max_failures   failures, after which it ends
    time_limit     seconds, after which nothing new is started and nothing waited for
    target         it ends with a value at or below
    tolerance      it ends when ``study.remaining()`` is below, after the initial design
    """

    budget: int | None = None
    max_failures: int | None = None
    time_limit: float | None = None
    target: float | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget < 0:
            raise ValueError(f"budget must not be negative, got {self.budget}")
        if self.max_failures is not None and self.max_failures < 1:
            raise ValueError(f"max_failures must be at least 1, got {self.max_failures}")
        for name in ("time_limit", "tolerance"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, got {value}")
        if self.target is not None and math.isnan(self.target):
            raise ValueError("target must be a number, got nan")

    def reached(self, study: Study, started: float) -> str | None:
        """Why the search ends now, if it does; the budget is for the loop to count."""
        if self.max_failures is not None and len(study.failures) >= self.max_failures:
            last = study.failures[-1][1]
            return f"{len(study.failures)} evaluations failed, the last by {last!r:.200}"
        values = study.y
        if self.target is not None and len(values) and values.min() <= self.target:
            return f"the target of {self.target:g} was reached by {values.min():g}"
        if self.time_limit is not None and time.monotonic() - started >= self.time_limit:
            return f"the time limit of {self.time_limit:g} s has passed"
        if self.tolerance is not None and len(values) >= study.n_initial:
            left = study.remaining()
            if left < self.tolerance:
                return (
                    f"the expected remaining improvement of {left:.3g} is below the tolerance "
                    f"of {self.tolerance:g}"
                )
        return None


def drive(
    study: Study,
    submit: Submit,
    *,
    n_workers: int = 1,
    limits: Limits | None = None,
    queue: Iterable[Any] = (),
    done: int = 0,
    on_start: Callable[[Study, Trial], None] | None = None,
    on_end: Callable[[Study, Outcome], None] | None = None,
    stop: Callable[[Study], str | None] | None = None,
) -> str:
    """Evaluate points on up to ``n_workers`` at a time until a limit is reached; which one.

    submit     ``submit(x)`` starts the evaluation of x and returns its ``Future``
    queue      points to evaluate first; one that is pending in the study already is no new one
    done       evaluations before this call that count towards the budget, as of a study resumed
    on_start   called with the study and the trial, the point being pending, before it is submitted
               (to an executor that is broken in vain: then no outcome follows)
    on_end     called with the study and the outcome, after the study was told
    stop       called with the study after each outcome, and each second meanwhile; text ends the
               search and is the message
    """
    if n_workers < 1:
        raise ValueError(f"n_workers must be at least 1, got {n_workers}")
    limits = limits or Limits()
    waiting = list(queue)
    began, count = time.monotonic(), done
    running: dict[Future[Any], Trial] = {}
    ended: dict[Future[Any], float] = {}  # when, though we may have been thinking then
    spent: list[float] = []  # seconds of the evaluations so far
    ready: Trial | None = None  # chosen, and not started
    closing: str | None = None  # nothing new is started, what runs is waited for
    message = _ended(study, limits, stop, began)

    def choose() -> None:
        nonlocal ready, closing, count
        ready, closing = _choose(study, waiting, count, limits)
        count += ready is not None

    def start() -> None:
        nonlocal ready, closing
        if ready is None:
            return
        trial, ready = replace(ready, started=time.monotonic()), None
        if on_start is not None:
            on_start(study, trial)
        try:
            future = submit(copy(trial.x))  # a function may change what it is given
        except BrokenExecutor as error:
            if trial.own:
                study.forget(trial.x)
            closing = f"the executor is broken and takes no more points: {error}"
            return
        running[future] = trial
        future.add_done_callback(lambda future: ended.setdefault(future, time.monotonic()))

    try:
        while message is None:
            while len(running) < n_workers:
                if ready is None and closing is None:
                    choose()
                if ready is None:
                    break
                start()
            if not running:
                message = closing
                break
            if n_workers > 1 and ready is None and closing is None and not waiting:
                busy = not any(future.done() for future in running)
                if busy and _hurried(study, spent):
                    choose()
            finished = _finished(running, limits, began)
            for future in finished:
                trial = running.pop(future)
                spent.append(ended.pop(future, time.monotonic()) - trial.started)
                outcome = outcome_of(trial, future, spent[-1])
                _record(study, outcome)
                if on_end is not None:
                    on_end(study, outcome)
            # While nothing comes back only the clock and the caller can have changed their minds.
            due = limits if finished else Limits(time_limit=limits.time_limit)
            message = _ended(study, replace(due, tolerance=None), stop, began)
            if message is None and due.tolerance is not None:
                start()  # what remains to be gained takes a while to say
                message = _ended(study, due, None, began)
    finally:
        for future in running:
            future.cancel()
        if ready is not None and study.is_pending(ready.x):
            study.forget(ready.x)
    return message or "there was nothing to evaluate"


def _hurried(study: Study, spent: list[float]) -> bool:
    """Whether choosing a point takes so long, beside evaluating one, that it is worth doing early.

    A point chosen early lacks the value that sets its worker free.
    """
    thinking = sum(study.seconds.get(part, 0.0) for part in ("mcmc", "search"))
    return bool(spent) and thinking > NEGLIGIBLE * median(spent)


def outcome_of(trial: Trial, future: Future[Any], seconds: float) -> Outcome:
    """What a future that is done says of its evaluation."""
    try:
        result = future.result()
    except CancelledError as error:
        return Outcome(trial.number, trial.x, None, "cancelled", seconds, error=error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - what an objective raises is its failure
        return Outcome(trial.number, trial.x, None, described(error), seconds, error=error)
    value, reason = None, None
    try:
        value = number(result)
    except Failed as failure:
        reason = str(failure)
    return Outcome(trial.number, trial.x, value, reason, seconds, result=result)


def inline(fun: Callable[[Any], Any]) -> Submit:
    """A ``submit`` that evaluates here and now, and returns when it is done."""

    def submit(x: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fun(x))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - but Ctrl-C ends the search
            future.set_exception(error)
        return future

    return submit


def _choose(
    study: Study, waiting: list[Any], number: int, limits: Limits
) -> tuple[Trial | None, str | None]:
    """The next trial, its point pending; or none, and why there will be no other."""
    if limits.budget is not None and number >= limits.budget:
        return None, f"the budget of {limits.budget} evaluations is spent"
    if waiting:
        x = waiting.pop(0)
        own = not study.is_pending(x)
        if own:
            study.expect(x)
    else:
        own = True
        try:
            x = study.ask()[0]
        except Exhausted as end:
            return None, str(end)
    return Trial(number, x, time.monotonic(), own), None


def _finished(running: dict[Future[Any], Trial], limits: Limits, began: float) -> list[Future[Any]]:
    """Those that are done, after a while at most, in the order in which they were started."""
    patience = TICK
    if limits.time_limit is not None:
        patience = min(patience, max(0.0, began + limits.time_limit - time.monotonic()))
    done = wait(running, timeout=patience, return_when=FIRST_COMPLETED).done
    return sorted(done, key=lambda future: running[future].number)


def _record(study: Study, outcome: Outcome) -> None:
    if outcome.value is not None:
        study.tell(outcome.x, outcome.value)
    else:
        study.fail(outcome.x, str(outcome.reason))


def _ended(
    study: Study, limits: Limits, stop: Callable[[Study], str | None] | None, began: float
) -> str | None:
    return (stop(study) if stop is not None else None) or limits.reached(study, began)
