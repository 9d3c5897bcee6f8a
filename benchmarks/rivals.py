"""A rival's study in a campaign's journal: the same problem, design, noise and budget as fitbo's.

Two kinds of rival, each with its own way to go on after a kill:

``fit``    makes a ``Model`` of the values so far and is asked for one point at a time. All its
           randomness comes from (seed, n, purpose), and what else it remembers is in the journal.
``play``   owns its loop, or has a state that no journal could hold, and calls ``evaluate``. To go
           on, it is started again from the design and is given the values of the journal for the
           points that it asks for again; no evaluation is repeated. A rival that asks for other
           points than the journal has, as another version may, is refused.

A ``play`` that returns or raises before the budget is spent is started again with all the values
so far, its ``turn`` one higher. One that did not evaluate anything gets a random point.
What a rival raises costs it that point and not the run, and the row says why under ``fallback``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from fitbo.config.build import build_problem
from fitbo.config.campaign import INCIDENTAL, StudyConfig
from fitbo.config.executor import Executor
from fitbo.decode import differences
from fitbo.mixture import Array
from fitbo.records import notebook
from fitbo.records.events import Entry
from fitbo.records.journal import Busy, ConfigChanged, Writer
from fitbo.records.notebook import Notebook
from fitbo.records.replay import replay
from fitbo.runs import study
from fitbo.runs.executors import open_executor

PEER_STREAM = 200  # apart from a study's purposes and from the noise
FIT, SUGGEST, RECOMMEND = range(3)


@dataclass(frozen=True)
class Data:
    """What a rival is shown after n evaluations; ``warm`` is what it noted one evaluation ago."""

    U: Array  # (n, d), in the unit cube
    y: Array  # (n,)
    n_initial: int
    noisy: bool
    seed: int
    warm: Sequence[float] | None = None

    def rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, PEER_STREAM, len(self.y), purpose])

    def integer(self, purpose: int) -> int:
        return int(self.rng(purpose).integers(2**31))

    @property
    def score(self) -> Array:
        """Standardised -y, to be maximised."""
        return (self.y.mean() - self.y) / max(self.y.std(ddof=1), 1e-12)


@dataclass(frozen=True)
class Model:
    """What a rival makes of the data: points of the cube, (d,), and a note for its next fit."""

    suggest: Callable[[], Array]
    recommend: Callable[[], Array] | None = None  # None: there is no mean, the best observed serves
    note: list[float] | None = None


@dataclass(frozen=True)
class Start:
    """What a rival that owns its loop starts from, and how many evaluations are left to it."""

    data: Data
    left: int
    turn: int = 0  # how often it was started before


Evaluate = Callable[[Array], float]  # a point of the cube, (d,), to its value


@dataclass(frozen=True)
class Peer:
    """A rival: its names, the packages it needs, and how it is fitted or how it plays."""

    name: str
    label: str  # in the journals
    packages: tuple[str, ...] = ()
    fit: Callable[[Data], Model] | None = None
    play: Callable[..., None] | None = None  # (Start, Evaluate, **settings)
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Callable[[], Mapping[str, str]] | None = None  # of what another interpreter has


class Over(BaseException):
    """The budget is spent or the run must stop; it passes the handlers of a rival's own loop."""


class Diverged(BaseException):
    """A rival asked for another point than the one in its journal."""


def run_study(
    config: StudyConfig, peer: Peer | None, stop: Callable[[], bool] = lambda: False
) -> str:
    """Run one study to its budget, from wherever its journal ends; a line about how it went.

    peer   None: fitbo itself, as the configuration's method has it
    """
    budget = config.campaign.budget
    if peer is None:
        ended = study.run(config, stop=stop, patience=0.0)
        return "stopped" if ended is None else f"{budget} evaluations, complete"
    with Writer(config.journal) as writer:
        book = opened(writer, config, peer)
        before, began = book.elapsed, time.monotonic()

        def elapsed() -> float:
            return round(before + time.monotonic() - began, 3)

        def tell(entry: Entry) -> float:
            outcome = study.observe(config, entry)
            f = build_problem(config.problem)(list(entry.point.values()))
            more = {"f": f, "seconds": round(outcome.seconds, 6)}
            book.told(entry, outcome.value, **more, elapsed=elapsed())
            return outcome.value

        while len(book.study.y) < (config.n_initial if peer.play else budget):
            if stop():
                return f"stopped after {len(book.study.y)} of {budget}"
            tell(next(iter(book.pending()), None) or ask_rival(book, config, peer))
        if peer.play and len(book.study.y) < budget:
            let_play(book, config, peer, tell, stop)
            if len(book.study.y) < budget:
                return f"stopped after {len(book.study.y)} of {budget}"
        if book.rows[-1].get("event") == "told":
            row = {} if peer.play else advised(book, config, peer)[1]
            reason = f"the budget of {budget} evaluations is spent"
            stopped = {"event": "stopped", "reason": reason, "elapsed": elapsed(), "budget": budget}
            book.append(stopped | row)
    return f"{len(book.study.y)} evaluations, complete"


def opened(writer: Writer, config: StudyConfig, peer: Peer) -> Notebook:
    """The journal's notebook, if it is this rival's; the study in it has the design."""
    head = header(config, peer)
    if writer.journal is None:
        writer.append(head)
    elif changed := differences(lasting(writer.journal.header), lasting(head)):
        raise ConfigChanged(
            f"{config.journal} was made by another configuration: {'; '.join(changed)}. "
            f"Choose another --output, or move it away"
        )
    rows = writer.journal.rows if writer.journal is not None else []
    design = replay(config, rows, fits=False)
    return Notebook(design, config, rows, writer)


def ask_rival(book: Notebook, config: StudyConfig, peer: Peer) -> Entry:
    """The next point, of the design or by the rival's model; on the disk when this returns."""
    n, space = len(book.study.y) + 1, book.study.space
    if n <= config.n_initial:
        return book.ask()
    model, row = advised(book, config, peer)
    u, why, seconds = attempt(model.suggest)
    if u is None:
        row["fallback"] = "; ".join(filter(None, (row.get("fallback"), f"suggestion: {why}")))
        u = anywhere(config, n)
    row["suggestion_seconds"]["search"] = round(seconds, 6)
    entry = Entry(n, book.plain(space.from_cube(u)))
    asked = {"event": "asked", "id": n, "point": entry.point, "source": entry.source}
    book.append(asked | ({"note": model.note} if model.note else {}) | row)
    return entry


def anywhere(config: StudyConfig, n: int) -> Array:
    """The random point in place of an n-th one that a rival failed to give, (d,)."""
    return np.random.default_rng([config.seed, PEER_STREAM, n]).random(config.problem.size)


def data_of(book: Notebook, config: StudyConfig, most: int | None = None) -> Data:
    """The first ``most`` values, all if None, as a rival is shown them."""
    X = [list(entry.point.values()) for entry in book.outcomes]
    return Data(
        U=np.clip(book.study.space.to_cube(X), 0.0, 1.0)[:most],
        y=book.study.y[:most],
        n_initial=config.n_initial,
        noisy=config.noise_std > 0,
        seed=config.seed,
        warm=[row for row in book.rows if row.get("event") == "asked"][-1].get("note"),
    )


def let_play(
    book: Notebook,
    config: StudyConfig,
    peer: Peer,
    tell: Callable[[Entry], float],
    stop: Callable[[], bool],
) -> None:
    """Let a rival that owns its loop go on until the budget is spent or the run must stop."""
    assert peer.play is not None
    made, turn, since = config.n_initial, 0, time.perf_counter()
    why: str | None = None  # it did not go on by itself

    def evaluate(u: Array) -> float:
        nonlocal made, since, why
        if made >= config.campaign.budget or (made >= len(book.outcomes) and stop()):
            raise Over
        if not np.isfinite(u).all():
            raise ValueError(f"asked for {u}, which is not finite")
        seconds, n = time.perf_counter() - since, made + 1
        point = book.plain(book.study.space.from_cube(np.clip(u, 0.0, 1.0)))
        entry = book.entries.get(n)
        if entry is None:
            entry = Entry(n, point)
            asked = {"event": "asked", "id": n, "point": point, "source": entry.source}
            spent = {"suggestion_seconds": {"search": round(seconds, 6)}}
            book.append(asked | ({"fallback": why} if why else {}) | spent)
        elif entry.point != point:
            raise Diverged(
                f"{config.journal} has another point {n} than {peer.label} asks for now, as other "
                f"versions may: move it away to begin anew"
            )
        value = tell(entry) if entry.value is None else entry.value
        made, since, why = n, time.perf_counter(), None
        return float(value)

    try:
        while left := config.campaign.budget - made:
            before, start = made, Start(data_of(book, config, made), left, turn)
            try:
                peer.play(start, evaluate, **peer.settings)
            except Exception as error:  # noqa: BLE001 (a rival's own)
                why = f"{type(error).__name__}: {error}"[:300]
            turn += 1
            if made == before:
                why = why or "it ended without an evaluation"
                evaluate(anywhere(config, made + 1))
    except Over:
        return


def advised(book: Notebook, config: StudyConfig, peer: Peer) -> tuple[Model, dict[str, Any]]:
    """The rival's model of all values, and what a row says of it: what it recommends, its times."""
    assert peer.fit is not None
    fit, data, space = peer.fit, data_of(book, config), book.study.space
    model, failure, fitting = attempt(lambda: fit(data))

    def fail() -> Array:
        raise RuntimeError(failure)

    model = model or Model(fail, fail)
    u, why, searching = attempt(model.recommend) if model.recommend else (None, None, 0.0)
    best = list(book.outcomes[int(np.argmin(data.y))].point.values())
    x = best if u is None else space.from_cube(u).tolist()
    f = build_problem(config.problem)(x)
    return model, {
        "recommended": {"point": book.plain(x), "f": f},
        **({"fallback": f"recommendation: {why}"} if why else {}),
        "suggestion_seconds": {"mcmc": round(fitting, 6), "recommend": round(searching, 6)},
    }


def attempt(make: Callable[[], Any]) -> tuple[Any, str | None, float]:
    """What ``make`` returns, or None and why, and the seconds it took."""
    started = time.perf_counter()
    made, why = None, None
    try:
        made = make()
        if isinstance(made, np.ndarray) and not np.isfinite(made).all():
            made, why = None, "not finite"
    except Exception as error:  # noqa: BLE001 (whatever a rival raises costs it a point, not a run)
        why = f"{type(error).__name__}: {error}"[:300]
    return made, why, time.perf_counter() - started


def header(config: StudyConfig, peer: Peer) -> dict[str, Any]:
    """A study's header, with the rival for its method."""
    head = notebook.header(config)
    settings = {"settings": dict(peer.settings)} if peer.settings else {}
    head["study"]["method"] = {"label": peer.label, "peer": peer.name, **settings}
    head["versions"] |= {package: version(package) for package in peer.packages}
    head["versions"] |= peer.versions() if peer.versions else {}
    return head


def lasting(head: Mapping[str, Any]) -> dict[str, Any]:
    """What a header says of the study itself, which must not change."""
    described = head.get("study", {})
    problem = described.get("problem", {}).items()
    return {**described, "problem": {k: v for k, v in problem if k not in INCIDENTAL}}


def run_all(
    studies: Sequence[tuple[StudyConfig, Any]],
    workers: int,
    run: Callable[..., str] = run_study,
) -> int:
    """Run the studies and say how each went, never what values it found; how many failed."""
    failed = 0
    with open_executor(Executor(workers=workers), len(studies)) as (pool, stopping):
        futures = {pool.submit(run, *each, stopping): each[0] for each in studies}
        for future in as_completed(futures):
            error = future.exception()
            if error is None:
                said = future.result()
            elif isinstance(error, Busy):
                said = "skipped, as another process is writing it"
            else:
                said, failed = f"failed: {type(error).__name__}: {error}", failed + 1
            print(f"{futures[future].title}: {said}", flush=True)
    return failed


def seeds_of(text: str) -> list[int]:
    """``0:10`` -> 0 .. 9; ``3`` -> 3."""
    first, colon, end = text.partition(":")
    return list(range(int(first or 0), int(end))) if colon else [int(first)]
