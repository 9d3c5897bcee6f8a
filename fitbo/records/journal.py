"""A study's journal: one JSON object per line, on disk before the next evaluation begins.

The first line is the header, what the study is; every other line one event (``records.events``).
Lines are only ever appended, each flushed and fsync'd, so a study killed at any moment has lost at
most the evaluation under way. A last line that the kill has torn is no line: it is dropped on
reading and cut off before the next one is written.

One process at a time writes a journal: it holds an advisory lock on the file, which the kernel
releases however the process dies. One that may hold it for days, a run, locks the file's directory
too, by which others know that waiting is useless.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from fitbo.records import legacy

FORMAT = 2
VERSIONED = ("numpy", "scipy", "emcee")
RETRY = 0.1  # seconds between attempts at a lock
SILENCE = 1.0  # seconds of waiting before anybody is told


class ConfigChanged(ValueError):
    """The journal was written for another configuration."""


class Busy(Exception):
    """Another process is writing this journal."""


class Running(Busy):
    """Another process is writing this journal, and will until its run has ended."""


@dataclass(frozen=True)
class Journal:
    """What a journal holds: its header and its events."""

    header: dict[str, Any]
    rows: list[dict[str, Any]] = field(default_factory=list)


def read(path: Path) -> Journal:
    """The journal at ``path``, without a torn last line, in today's format."""
    return parsed(path.read_bytes(), path)


def parsed(data: bytes, path: Path) -> Journal:
    """The journal that these bytes hold; ``path`` is what errors call it."""
    journal, _ = _parse(data, path)
    if journal is None:
        raise ValueError(f"{path} must begin with a header line, and holds no whole line")
    return journal


def made_by() -> dict[str, str]:
    """The versions that a header names, of Python and of what decides the numbers."""
    return {"python": platform.python_version()} | {name: version(name) for name in VERSIONED}


def state_path(path: Path) -> Path:
    """Where the sampler's last ensembles are, beside a journal."""
    return path.with_suffix(".state.npz")


class Writer:
    """Appends to a journal that it has locked; a context manager.

    ``journal`` is what the file held when it was opened, None if it is new.

    patience   seconds to wait for another process that is writing it, before ``Busy`` is raised;
               for a run nobody waits, and ``Running`` is raised at once
    waiting    called once if that takes more than a moment
    running    whether this is a run, for which others need not wait
    """

    def __init__(
        self,
        path: Path,
        *,
        patience: float = 0.0,
        waiting: Callable[[], None] = lambda: None,
        running: bool = False,
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = _locked(path, patience, waiting)
        self._directory: int | None = None
        try:
            self.journal, end = _parse(self._file.read(), path)
            self._file.truncate(end)
            self._file.seek(end)
            if self.journal is None:
                sync_directory(path.parent)
            if running:
                self._directory = os.open(path.parent, os.O_RDONLY)
                _mark(self._directory)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        # Unlocked, not only closed: a process that an objective has forked may hold copies. The
        # directory first, so that nobody takes who has the file next for a run.
        if self._directory is not None:
            _unlock(self._directory)
            os.close(self._directory)
            self._directory = None
        if not self._file.closed:
            _unlock(self._file.fileno())
            self._file.close()

    def append(self, line: Mapping[str, Any]) -> None:
        """One more line, on the disk when this returns; no part of it if there is no room."""
        data = json.dumps(line, allow_nan=False, separators=(", ", ": ")).encode() + b"\n"
        start, written = self._file.tell(), 0
        try:
            while written < len(data):
                written += self._file.write(data[written:])
        except OSError as error:
            self._file.truncate(start)
            self._file.seek(start)
            text = data.decode().rstrip()
            raise OSError(
                error.errno, f"{error.strerror}, and not written was {text}", str(self.path)
            ) from error
        os.fsync(self._file.fileno())


def _locked(path: Path, patience: float, waiting: Callable[[], None]) -> BinaryIO:
    """The file, made if need be, with a lock on it; ``Busy`` when the patience has run out."""
    began, said = time.monotonic(), False
    while True:
        # Opened anew each time, as what lies there may have been moved away meanwhile; unbuffered,
        # and created if need be without losing what is there.
        file: BinaryIO = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b", 0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            file.close()
        except BaseException:
            file.close()
            raise
        if _is_run(path):
            raise Running(f"{path} is being written by a run")
        waited = time.monotonic() - began
        if waited >= patience:
            raise Busy(f"{path} is being written by another process")
        if waited >= SILENCE and not said:
            said = True
            waiting()
        time.sleep(RETRY)


def _mark(directory: int) -> None:
    """Lock the directory of a run, by which others know it.

    They look by a shared lock, for a moment. One that lasts is somebody else's affair, or the file
    system has none: then others wait for their patience's end, and no harm is done.
    """
    for _ in range(5):
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(RETRY)
        except OSError:
            return
        else:
            return


def _unlock(descriptor: int) -> None:
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _is_run(path: Path) -> bool:
    """Whether who writes a journal has locked its directory too."""
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        # Shared, so that of several that look at once none is taken for the run.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without such locks
        return False
    else:
        return False
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """A new file's name is in its directory, which is written apart from the file."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _parse(data: bytes, path: Path) -> tuple[Journal | None, int]:
    """What the bytes hold, and where their last whole line ends."""
    lines: list[dict[str, Any]] = []
    end = 0
    *whole, rest = data.split(b"\n")  # by that byte alone: a torn line may hold any other
    found = [*whole, rest] if rest else whole
    for number, line in enumerate(found, start=1):
        try:
            value = json.loads(line) if number <= len(whole) else None
        except ValueError:  # neither JSON nor UTF-8
            value = None
        if not isinstance(value, dict):
            if number == len(found):
                break
            raise ValueError(
                f"{path}:{number} must be a JSON object, got {line[:60]!r}: something else has "
                f"changed the file, restore it or move it away"
            )
        lines.append(value)
        end += len(line) + 1
    if not lines:
        return None, 0
    rows = [event for line in lines[1:] for event in legacy.events(line)]
    return Journal(legacy.upgraded(lines[0]), rows), end
