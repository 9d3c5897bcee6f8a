"""The outcome of an evaluation: a finite number, or the reason why there is none.

A number may come with its standard deviation and with the values that outcome constraints are
about: ``{"value": 0.42, "std": 0.05, "constraints": {"temperature": 81.2}}``.

A failure is data. Whatever goes wrong in a user's function or program, ``evaluate`` returns an
``Outcome`` that gives the reason in one line. Two things pass through: Ctrl-C, and what is wrong
with the machine and not with the point, such as a full disk. Then no scratch directory is left, so
that one which is left says that the process died during the evaluation.
"""

from __future__ import annotations

import errno
import math
import numbers
import os
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from fitbo.checks import nearest

LONGEST_REASON, LONGEST_TRACE = 300, 4000
FULL = (errno.ENOSPC, errno.EDQUOT)
LONGEST_CHAIN = 20  # of exceptions raised from one another
PROBE = 1 << 12  # bytes that are written to see whether there is room

ending = threading.Event()  # set while the study is being stopped: no further attempt begins


class Failed(Exception):
    """An evaluation has no value; the text is the reason. A user's function may raise it too."""


class MachineError(OSError):
    """What is wrong is the machine's, and says nothing about the point: to be evaluated again."""


@dataclass(frozen=True)
class Observation:
    """A value, its standard deviation if that is stated, and what constraints may be about.

    A constraint's value that is not known is NaN.
    """

    value: float
    std: float | None = None
    constraints: Mapping[str, float] = field(default_factory=dict)


class Objective(Protocol):
    """A black box: a point and a seed in, an observation out, or an exception; picklable.

    retries   further attempts after one that failed
    keep      whether scratch directories are kept after success too
    scratch   an empty directory for this attempt only
    """

    @property
    def retries(self) -> int: ...

    @property
    def keep(self) -> bool: ...

    def __call__(self, point: Mapping[str, Any], seed: int, scratch: Path) -> Observation: ...


@dataclass(frozen=True)
class Outcome:
    """A value or a reason, the other being None; ``kept`` lists the directories left behind.

    ``trace`` is more than a line about a failure: the traceback, or the end of a program's stderr.
    ``std`` and ``constraints`` are what came with the value.
    """

    value: float | None
    reason: str | None
    seconds: float
    attempts: int = 1
    kept: tuple[str, ...] = ()
    trace: str = ""
    std: float | None = None
    constraints: Mapping[str, float] = field(default_factory=dict)


def evaluate(
    objective: Objective, point: Mapping[str, Any], seed: int, scratch: str | Path
) -> Outcome:
    """Evaluate at a point, and again after a failure while retries are left.

    Each attempt has its own directory: ``scratch``, or with ``.2``, ``.3``, ... appended if that
    exists. It is removed after success, and kept after a failure unless it is empty.
    """
    started, kept, attempts = time.perf_counter(), list[str](), 0
    while True:
        attempts += 1
        found, reason, trace, folder = None, None, "", _fresh(Path(scratch))
        kept.append(str(folder))
        try:
            found = returned(lambda folder=folder: objective(point, seed, folder))  # type: ignore[misc]
            if not objective.keep:
                shutil.rmtree(folder, ignore_errors=True)
        except BaseException as error:  # noqa: BLE001 (whatever a user's code raises)
            try:
                reason = failure(error)
                _check_machine(error, reason, folder)
            except BaseException:
                for each in kept:
                    shutil.rmtree(each, ignore_errors=True)
                raise
            trace = _keep_traceback(error, folder)
        if not folder.exists():
            kept.pop()
        if found is not None or attempts > objective.retries or ending.is_set():
            spent = time.perf_counter() - started
            return outcome(found, reason, spent, attempts=attempts, kept=tuple(kept), trace=trace)


def outcome(found: Observation | None, reason: str | None, seconds: float, **more: Any) -> Outcome:
    """The outcome of an evaluation that made an observation, or has a reason why not."""
    if found is None:
        return Outcome(None, reason, seconds, **more)
    std, constraints = found.std, found.constraints
    return Outcome(found.value, reason, seconds, std=std, constraints=constraints, **more)


def traced(error: BaseException, stderr: Path | None = None) -> str:
    """The traceback of what a function raised; of ``Failed`` what the program wrote to stderr."""
    if not isinstance(error, Failed):
        return _safely(lambda: "".join(traceback.format_exception(error)))
    if stderr is None or not stderr.is_file():
        return ""
    return stderr.read_bytes()[-LONGEST_TRACE:].decode("utf-8", "replace")


def returned(function: Callable[[], Any]) -> Observation:
    """What a user's function returns; a process that it has forked ends here."""
    here = os.getpid()
    try:
        return observed(function())
    finally:
        if os.getpid() != here:  # it would write the same journal
            os._exit(0)
        # Only where there is none: another thread's function may have redirected it.
        sys.stdout = sys.__stdout__ if sys.stdout is None else sys.stdout
        sys.stderr = sys.__stderr__ if sys.stderr is None else sys.stderr


def failure(error: BaseException) -> str:
    """Why an evaluation has no value; Ctrl-C is raised again."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    return described(error)


@contextmanager
def machine(folder: Path) -> Iterator[None]:
    """What goes wrong with our own files in a scratch directory is not the point's fault."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise MachineError(
            error.errno or errno.EIO,
            f"{why}; this is the machine's fault and no failure of the point, which the next run "
            f"evaluates again, first of all: mend it and run again",
            str(error.filename or folder),
        ) from error


def check_room(folder: Path) -> None:
    """A ``MachineError`` if a scratch directory that is there has no room for more."""
    probe = folder / f".room-{os.getpid()}-{threading.get_ident()}"
    try:
        with probe.open("xb") as file:
            file.write(bytes(PROBE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno in (*FULL, errno.EROFS, errno.EIO):  # otherwise what a function did to it
            with machine(folder):
                raise
    finally:
        with suppress(OSError):
            probe.unlink()


def check_full(error: BaseException, folder: Path) -> None:
    """A ``MachineError`` if a full disk, or another fault of the machine, is behind an error."""
    chain: BaseException | None = error
    for _ in range(LONGEST_CHAIN):
        if isinstance(chain, MachineError):
            raise chain
        if isinstance(chain, OSError) and chain.errno in FULL:
            with machine(folder):
                raise chain
        chain = chain and (chain.__cause__ or chain.__context__)


def _check_machine(error: BaseException, reason: str, folder: Path) -> None:
    """A ``MachineError`` if that is what an evaluation has failed by."""
    check_full(error, folder)
    for number in FULL:  # as a program says it
        if os.strerror(number) in reason:
            with machine(folder):
                raise OSError(number, reason, str(folder))
    check_room(folder)


def _keep_traceback(error: BaseException, folder: Path) -> str:
    """Its text, written to a new file too, as the function may have made anything of that name."""
    trace = ""
    with suppress(OSError):
        trace = traced(error, folder / "stderr")
        if not isinstance(error, Failed):  # whose text says everything
            with (folder / "traceback.txt").open("x", encoding="utf-8", errors="replace") as file:
                file.write(trace)
        folder.rmdir()  # if it is empty
    return trace


def observed(found: Any) -> Observation:
    """A number, or a mapping of ``value``, ``std`` and ``constraints``; else ``Failed``."""
    if isinstance(found, Observation):
        return found
    if not isinstance(found, Mapping):
        return Observation(number(found))
    known = ("value", "std", "constraints")
    for key in found:
        if key not in known:
            hint = nearest(str(key), known) or f"; its keys may be {', '.join(known)}"
            raise Failed(f"the mapping returned has the unknown key {clip(repr(key), 60)}{hint}")
    if "value" not in found:
        raise Failed(f"the mapping returned has no key 'value'; its keys are {list(found)}")
    constraints = found.get("constraints") or {}
    if not isinstance(constraints, Mapping):
        got = clip(_safely(lambda: repr(constraints)), 60)
        raise Failed(f"constraints must be a mapping of names to numbers, got {got}")
    values = {str(name): _measured(value) for name, value in constraints.items()}
    std = _measured(found.get("std"))
    if std < 0:
        raise Failed(f"std must be at least 0, got {std}")
    return Observation(number(found["value"]), None if math.isnan(std) else std, values)


def _measured(value: Any) -> float:
    """A number, NaN if it is None or not finite, and so not known; else ``Failed``."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return math.nan
    return number(value)


def number(value: Any) -> float:
    """A number, or an array of one number, as a finite float; anything else is a failure."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        kind = getattr(getattr(value, "dtype", None), "kind", "f")
        masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())
        if isinstance(value, masked) and value.mask.any():
            raise Failed("the value is masked")
        if math.prod(shape) == 1 and kind not in "OMm":  # objects and dates, which are integers
            value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        text = _safely(lambda: repr(value))
        raise Failed(f"expected a number, got {type(value).__name__} {clip(text, 60)}")
    try:
        real = float(value)
    except OverflowError:
        real = math.inf
    if not math.isfinite(real):
        raise Failed(f"the value is {real}")
    return real


def clip(text: str, most: int = LONGEST_REASON) -> str:
    """One line of at most ``most`` printable characters."""
    line = " ".join(text[: 4 * most].split())
    line = "".join(c if c.isprintable() else "?" for c in line)
    return line if len(line) <= most else f"{line[: most - 3]}..."


def described(error: BaseException) -> str:
    """What was raised, in one line."""
    text = clip(_safely(lambda: str(error)))
    if isinstance(error, Failed):
        return text or "failed"
    return clip(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _safely(function: Callable[[], str]) -> str:
    """A text that a user's object gives of itself, which may fail like anything else of theirs."""
    try:
        return function()[:]
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001
        return f"<no text: {type(error).__name__}>"


def _fresh(scratch: Path) -> Path:
    """A new directory: the one named, or the first free of ``.2``, ``.3``, ..."""
    folder, n = scratch, 1
    with machine(scratch):
        while True:
            try:
                folder.mkdir(parents=True)
            except FileExistsError:
                n += 1
                folder = scratch.with_name(f"{scratch.name}.{n}")
            else:
                return folder
