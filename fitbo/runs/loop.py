"""The one loop: ask, evaluate, tell, until there is a reason to stop.

``Loop`` serves ``minimize``, studies and campaigns. It asks a notebook for points, submits them,
records what comes back, and ends at the first limit that is reached. ``submit`` is all it knows
about how a point is evaluated. With one worker it is the plain loop. With several, the next point
is chosen while all are busy and waits for the first that is free, unless choosing takes a
negligible part of the time of an evaluation.

Every point is in the notebook before it is submitted, and its outcome before the next is chosen.
What was pending in the notebook is evaluated first: an interruption loses no point. Nor does one of
another run that shares the notebook: what it leaves when it dies is evaluated here, next.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import KW_ONLY, dataclass, field, replace
from statistics import median
from typing import Any

from fitbo.objectives import Outcome, end_all
from fitbo.objectives.outcome import described, ending
from fitbo.records.events import GIVEN, OUTCOMES, Entry, Point
from fitbo.records.notebook import Notebook
from fitbo.runs.limits import Limits
from fitbo.runs.standing import recommend
from fitbo.space import Exhausted
from fitbo.space.outcomes import lacking, names_of

logger = logging.getLogger(__name__)

MISTAKE = 3  # failures at the start, and nothing else, that end a run
NEGLIGIBLE = 0.02  # share of an evaluation's time for which a worker may be idle
TICK = 1.0  # seconds between looks at ``stop`` while nothing comes back
GRACE = 0.5  # seconds for programs to end, at an interruption, before we say that we wait

Submit = Callable[[Entry], "Future[Outcome]"]
Watch = Callable[[Notebook, Entry, Outcome], None]
Truth = Callable[[Point], float]


class NothingWorks(Exception):
    """No evaluation has ever succeeded: a mistake, rather than a region where f fails.

    ``trace`` is the traceback of the last, or what its program wrote to stderr.
    """

    def __init__(self, reason: str, trace: str = "") -> None:
        super().__init__(reason, trace)
        self.reason, self.trace = reason, trace

    def __str__(self) -> str:
        return self.reason


class _Abandoned(Exception):
    """Nothing more is waited for; the text is why."""


@dataclass(eq=False)
class Loop:
    """Keeps every worker busy, and everything in the notebook: ``Loop(...).run()``.

    submit      starts the evaluation of an entry's point and returns the ``Future`` of its outcome
    n_workers   evaluations at a time
    limits      what ends the study
    truth       the noise-free value of a point, where it is known: then the journal has it for each
                point told, and for what would be recommended before each choice
    watch       called with the notebook, the entry and its outcome, after both are updated
    stop        called before each choice; if it returns a text, the study ends with that message
    patient     whether running evaluations are waited for when the study ends; otherwise they stay
                pending, and the time limit does not wait for them either
    resume      called with an entry that was pending before, when its turn comes
    """

    notebook: Notebook
    submit: Submit
    _: KW_ONLY
    n_workers: int = 1
    limits: Limits = field(default_factory=Limits)
    truth: Truth | None = None
    watch: Watch = lambda *_: None
    stop: Callable[[], str | None] = lambda: None
    patient: bool = True
    resume: Callable[[Entry], None] = lambda entry: None

    def __post_init__(self) -> None:
        if self.n_workers < 1:
            raise ValueError(f"n_workers must be at least 1, got {self.n_workers}")
        self.began = time.monotonic() - self.notebook.elapsed
        with self.notebook.locked():  # left by an interruption, or wanted by the caller
            self.queue = self.notebook.abandoned()
        self.waiting = {entry.id for entry in self.queue}
        self.left_over = set(self.waiting)
        self.running: dict[Future[Outcome], tuple[Entry, float]] = {}
        self.ended: dict[Future[Outcome], float] = {}  # when, even if we were busy choosing
        self.spent: list[float] = []  # seconds of the evaluations so far
        self.ready: Entry | None = None  # chosen, and not started
        self.closing: str | None = None  # why nothing new is started
        self.full: str | None = None  # the same, unless another run dies and leaves a point
        self.broken: NothingWorks | None = None
        self.failures = 0  # of this session

    def elapsed(self) -> float:
        """Seconds for which the study has been run, in all sessions."""
        return round(time.monotonic() - self.began, 3)

    def run(self) -> str:
        """Why nothing is started any more, when all that was started has ended."""
        ending.clear()  # of an interruption before, in the same process
        try:
            self._fill()
            while self.running:
                self._collect()
                self._fill()
        except _Abandoned as end:
            self.closing = str(end)
            for future in self.running:
                future.cancel()
        except BaseException:
            self._save_what_finished()
            raise
        if self.broken is not None and not len(self.notebook.study.y):
            raise self.broken
        notebook, unused = self.notebook, self.ready
        with notebook.locked():
            if unused is not None and notebook.study.is_pending(notebook.x(unused.point)):
                notebook.forget(unused)
        return self.closing or self.full or "there was nothing to evaluate"

    def _fill(self) -> None:
        """Start evaluations until every worker has one, and choose ahead if that is worth it."""
        while self.closing is None and len(self.running) < self.n_workers:
            with self.notebook.locked():
                self._inherit()
                self._check()
                if self.ready is None:
                    self._choose()
            if self.ready is None:
                break
            self._start()
        if self.n_workers > 1 and self.ready is None and not self.queue:
            busy = not any(future.done() for future in self.running)
            if busy and self._hurried():
                with self.notebook.locked():
                    self._inherit()
                    self._choose()

    def _inherit(self) -> None:
        """What is to be evaluated first: of those before us, and of other runs that have died."""
        own = (0, self.notebook.run)  # by hand, or what this run has begun
        found = self.notebook.abandoned()
        self.queue = [e for e in found if e.id in self.waiting or e.run not in own]

    def _check(self) -> None:
        """Close if there is a reason to, other than what the model says about going on."""
        self._close(self._reached(replace(self.limits, tolerance=None)))
        if not self._spent():
            self._close(self.stop())

    def _reached(self, limits: Limits) -> str | None:
        """Which of the limits is reached; the budget is counted by ``_spent``."""
        return replace(limits, budget=None).reached(self.notebook, self.elapsed())

    def _close(self, reason: str | None) -> None:
        """Start nothing new, if there is a reason; and wait for nothing, if we are not patient."""
        self.closing = self.closing or reason
        if reason is not None and not self.patient:
            raise _Abandoned(reason)

    def _spent(self) -> bool:
        """Whether nothing new is to be started, as after the last evaluation of the budget."""
        budget, self.full = self.limits.budget, None
        if budget is not None and self.ready is None and self._begun() >= budget:
            self.full = f"the budget of {budget} evaluations is spent"
        return (self.closing or self.full) is not None

    def _begun(self) -> int:
        """Evaluations chosen in total, whatever their outcome; without those still queued."""
        return self.notebook.begun() - sum(entry.source != GIVEN for entry in self.queue)

    def _choose(self) -> None:
        """The next point, pending in the notebook; or the reason why there is none."""
        if not self._spent() and self.limits.tolerance is not None and not self.queue:
            self._close(self._reached(self.limits))
        if (self.closing or self.full) is not None:
            return
        if self.queue:
            self.ready = self.queue.pop(0)
            self.waiting.discard(self.ready.id)
            self.left_over.add(self.ready.id)
            self.resume(self.ready)
            return
        study, more = self.notebook.study, {}
        if self.truth is not None and len(study.y) >= study.n_initial:
            more = recommended(self.notebook, self.truth)
        try:
            self.ready = self.notebook.ask(**more)
        except Exhausted as end:
            self.closing = str(end)

    def _start(self) -> None:
        if self.ready is None:
            return
        entry, self.ready = self.ready, None
        started = time.monotonic()
        try:
            future = self.submit(entry)
        except BrokenExecutor as error:
            if entry.id not in self.left_over:
                self.notebook.forget(entry)
            self.closing = f"the executor is broken and takes no more points: {error}"
            return
        self.running[future] = entry, started
        future.add_done_callback(lambda done: self.ended.setdefault(done, time.monotonic()))

    def _collect(self) -> None:
        """Wait a while for evaluations to end, and record those that have, in order of starting."""
        patience = TICK
        if self.limits.time_limit is not None and not self.patient:
            patience = min(TICK, max(0.0, self.limits.time_limit - self.elapsed()))
        done = wait(self.running, timeout=patience, return_when=FIRST_COMPLETED).done
        for future in [future for future in self.running if future in done]:
            entry, started = self.running[future]
            self.spent.append(self.ended.pop(future, time.monotonic()) - started)
            outcome = self._record(entry, outcome_of(future, self.spent[-1]))
            del self.running[future]
            self.watch(self.notebook, entry, outcome)
            self._suspect(outcome)
        if not done and not self.patient:
            self._check()

    def _suspect(self, outcome: Outcome) -> None:
        """Start nothing new if all evaluations of this session failed, and none ever succeeded."""
        self.failures += outcome.value is None
        if self.failures < max(MISTAKE, self.n_workers) or len(self.notebook.study.y):
            return
        if self.limits.max_failures is not None and self.failures >= self.limits.max_failures:
            return  # which says so itself
        all_of = f"all of the first {self.failures} evaluations failed, the last by"
        self.broken = NothingWorks(f"{all_of} {outcome.reason}", outcome.trace)
        self.closing = self.closing or self.broken.reason

    def _record(self, entry: Entry, outcome: Outcome) -> Outcome:
        """Write an outcome down; one that lacks what a constraint is about becomes a failure."""
        more: dict[str, Any] = {"seconds": round(outcome.seconds, 6), "elapsed": self.elapsed()}
        more |= {"attempts": outcome.attempts} if outcome.attempts > 1 else {}
        if outcome.kept and self.notebook.config is not None:
            folder = self.notebook.config.directory
            more["scratch"] = [os.path.relpath(path, folder) for path in outcome.kept]
        study = self.notebook.study
        wrong = outcome.value is not None and lacking(study.constraints, outcome.constraints)
        if wrong:
            more["returned"] = outcome.value  # it can still be told, with what it lacks
            outcome = replace(outcome, value=None, reason=f"{wrong}; the value was {outcome.value}")
        with self.notebook.locked():
            if self.notebook.entries[entry.id].state in OUTCOMES:
                what = outcome.reason if outcome.value is None else outcome.value
                logger.warning("%d was told meanwhile, and keeps that, not %s", entry.id, what)
            elif outcome.value is None:
                self.notebook.failed(entry, outcome.reason or "failed", **more)
            else:
                more = ({} if self.truth is None else {"f": self.truth(entry.point)}) | more
                if outcome.std is not None and study.settings.deterministic is True:
                    logger.warning("the std of evaluation %d is ignored: deterministic", entry.id)
                about = {name: outcome.constraints[name] for name in names_of(study.constraints)}
                self.notebook.told(entry, outcome.value, outcome.std, about, **more)
        return outcome

    def _hurried(self) -> bool:
        """Whether choosing takes so long, compared with evaluating, that it is worth doing early.

        A point chosen early lacks the value that sets its worker free.
        """
        key, rows = "suggestion_seconds", reversed(self.notebook.rows)
        seconds: dict[str, float] = next((row[key] for row in rows if key in row), {})
        choosing = sum(seconds.get(part, 0.0) for part in ("mcmc", "search"))
        return bool(self.spent) and choosing > NEGLIGIBLE * median(self.spent)

    def _save_what_finished(self) -> None:
        """At an interruption: end the programs, and keep the values that still arrive."""
        end_all()
        left = [future for future in self.running if not future.cancel()]
        _, busy = wait(left, timeout=GRACE)
        if busy and self.patient:
            logger.warning("%d evaluations are still under way: Ctrl-C to give them up", len(busy))
        waited_for = {entry.id for entry in self.notebook.pending()}
        for future in left:
            entry, _ = self.running[future]
            if entry.id not in waited_for or not (self.patient or future.done()):
                continue  # recorded, and interrupted before it was removed from ``running``
            try:
                outcome = future.result()
            except (Exception, KeyboardInterrupt):  # noqa: BLE001, S112 - it stays pending
                continue
            if outcome.value is not None:  # a failure now may be our own doing
                try:
                    self._record(entry, outcome)
                except OSError as error:  # a full disk; the others may still find room
                    logger.error("%s", error)


def recommended(notebook: Notebook, truth: Truth | None = None) -> dict[str, Any]:
    """What is recommended now, as a row has it; with the noise-free value where it is known."""
    found = recommend(notebook)
    more = {} if truth is None else {"f": truth(found.point)}
    return {"recommended": found.described() | more}


def outcome_of(future: Future[Outcome], seconds: float) -> Outcome:
    """The outcome of an evaluation; a worker that died is a failure like any other."""
    try:
        return future.result()
    except CancelledError:
        return Outcome(None, "cancelled", seconds)
    except Exception as error:
        if isinstance(error, OSError) and not type(error).__module__.startswith("distributed"):
            raise  # a full disk, for example: not the fault of the evaluation
        return Outcome(None, f"its worker failed: {described(error)}", seconds)


def inline(evaluate: Callable[[Entry], Outcome]) -> Submit:
    """A ``submit`` that evaluates here and now, and returns when it is done."""

    def submit(entry: Entry) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        future.set_result(evaluate(entry))
        return future

    return submit
