"""What an evaluation of a black box came to: a finite number, or the reason why there is none.

A failure is data. Whatever goes wrong in a user's function or program, ``evaluate`` returns an
``Outcome`` that says so in one line; only Ctrl-C passes through it.
"""

from __future__ import annotations

import math
import numbers
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

LONGEST_REASON = 300

ending = threading.Event()  # set when the study is being stopped: no attempt begins any more


class Failed(Exception):
    """An evaluation has no value; the text is the reason. A function may raise it, as any other."""


class Objective(Protocol):
    """A black box: a point and a seed in, a number out, or an exception; picklable."""

    @property
    def retries(self) -> int:
        """Further attempts after one that failed."""
        ...

    @property
    def keep(self) -> bool:
        """Whether scratch directories are kept after success too."""
        ...

    def __call__(self, point: Mapping[str, Any], seed: int, scratch: Path) -> float:
        """The value at a point; ``scratch`` is an empty directory of this attempt's own."""
        ...


@dataclass(frozen=True)
class Outcome:
    """value or reason, of which one is None; ``kept`` are the directories left to look at."""

    value: float | None
    reason: str | None
    seconds: float
    attempts: int = 1
    kept: tuple[str, ...] = ()


def evaluate(
    objective: Objective, point: Mapping[str, Any], seed: int, scratch: str | Path
) -> Outcome:
    """Evaluate at a point, again if it fails and may be retried.

    Each attempt has a directory of its own: ``scratch``, or with ``.2``, ``.3``, ... behind it if
    that exists. It is removed after success and kept after failure.
    """
    started = time.perf_counter()
    kept: list[str] = []
    reason, attempt = "", 0
    for attempt in range(1, objective.retries + 2):
        folder = _fresh(Path(scratch))
        try:
            value = number(objective(point, seed, folder))
        except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever a user's code raises)
            reason = described(error)
            _leave_traceback(folder, error)
            if not _remove_if_empty(folder):
                kept.append(str(folder))
            if ending.is_set():
                break
            continue
        if objective.keep:
            kept.append(str(folder))
        else:
            _remove(folder)
        return Outcome(value, None, time.perf_counter() - started, attempt, tuple(kept))
    return Outcome(None, reason, time.perf_counter() - started, attempt, tuple(kept))


def number(value: Any) -> float:
    """A finite float of a number, or of an array that holds one; anything else is a failure."""
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
    if isinstance(error, Failed):
        return clip(str(error)) or "failed"
    text = clip(f"{error}")
    return clip(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _leave_traceback(folder: Path, error: BaseException) -> None:
    """For whoever looks for the cause; a ``Failed`` has told all that it knows."""
    if not isinstance(error, Failed):
        try:
            text = "".join(traceback.format_exception(error))
            (folder / "traceback.txt").write_text(text, encoding="utf-8", errors="replace")
        except OSError:
            pass  # a full disk must not hide the reason


def _fresh(scratch: Path) -> Path:
    """A new directory: the one named, or the first free of ``.2``, ``.3``, ..."""
    scratch.parent.mkdir(parents=True, exist_ok=True)
    folder, number = scratch, 1
    while True:
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
            folder = scratch.with_name(f"{scratch.name}.{number}")
        else:
            return folder


def _remove_if_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


def _remove(folder: Path) -> None:
    import shutil  # not at every import of the package

    shutil.rmtree(folder, ignore_errors=True)
