"""The outcome of an evaluation: a finite number, or the reason why there is none.

A failure is data. Whatever goes wrong in a user's function or program, ``evaluate`` returns an
``Outcome`` that gives the reason in one line; only Ctrl-C passes through.
"""

from __future__ import annotations

import math
import numbers
import shutil
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

LONGEST_REASON, LONGEST_TRACE = 300, 4000

ending = threading.Event()  # set while the study is being stopped: no further attempt begins


class Failed(Exception):
    """An evaluation has no value; the text is the reason. A user's function may raise it too."""


class Objective(Protocol):
    """A black box: a point and a seed in, a number out, or an exception; picklable.

    retries   further attempts after one that failed
    keep      whether scratch directories are kept after success too
    scratch   an empty directory for this attempt only
    """

    @property
    def retries(self) -> int: ...

    @property
    def keep(self) -> bool: ...

    def __call__(self, point: Mapping[str, Any], seed: int, scratch: Path) -> float: ...


@dataclass(frozen=True)
class Outcome:
    """A value or a reason, the other being None; ``kept`` lists the directories left behind.

    ``trace`` is more than a line about a failure: the traceback, or the end of a program's stderr.
    """

    value: float | None
    reason: str | None
    seconds: float
    attempts: int = 1
    kept: tuple[str, ...] = ()
    trace: str = ""


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
        value, reason, trace, folder = None, None, "", _fresh(Path(scratch))
        try:
            value = number(objective(point, seed, folder))
        except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever a user's code raises)
            reason = described(error)
            with suppress(OSError):  # a full disk must not hide the reason
                trace = traced(error, folder / "stderr")
                if not isinstance(error, Failed):  # whose text says everything
                    (folder / "traceback.txt").write_text(trace, "utf-8", "replace")
                folder.rmdir()  # if it is empty
        else:
            if not objective.keep:
                shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            kept.append(str(folder))
        if value is not None or attempts > objective.retries or ending.is_set():
            spent = time.perf_counter() - started
            return Outcome(value, reason, spent, attempts, tuple(kept), trace)


def traced(error: BaseException, stderr: Path | None = None) -> str:
    """The traceback of what a function raised; of ``Failed`` what the program wrote to stderr."""
    if not isinstance(error, Failed):
        return "".join(traceback.format_exception(error))
    if stderr is None or not stderr.is_file():
        return ""
    return stderr.read_bytes()[-LONGEST_TRACE:].decode("utf-8", "replace")


def number(value: Any) -> float:
    """A number, or an array of one number, as a finite float; anything else is a failure."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and math.prod(shape) == 1:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        raise Failed(f"expected a number, got {type(value).__name__} {clip(repr(value), 60)}")
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
    text = clip(str(error))
    if isinstance(error, Failed):
        return text or "failed"
    return clip(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _fresh(scratch: Path) -> Path:
    """A new directory: the one named, or the first free of ``.2``, ``.3``, ..."""
    folder, n = scratch, 1
    while True:
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            n += 1
            folder = scratch.with_name(f"{scratch.name}.{n}")
        else:
            return folder
