"""A study's journal: one JSON object per line, on disk before the next evaluation begins.

The first line is the header, which says what the study is; every other line is one event
(``records.events``). Lines are only appended, each flushed and fsync'd, so a study killed at any
moment loses at most the evaluation under way. A last line that the kill has torn is dropped on
reading and cut off before the next one is written.

One process at a time writes a journal: it holds an advisory lock on the file, which the kernel
releases however the process dies. A run, which may hold it for days, also locks the file's
directory, so that others know that waiting is useless.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from fitbo.records import legacy

FORMAT = 2
RETRY = 0.1  # seconds between attempts at a lock
SILENCE = 1.0  # seconds of waiting before ``waiting`` is called


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


def encoded(line: Mapping[str, Any]) -> bytes:
    """A line of a journal; a ValueError for numbers that are not finite, which JSON lacks."""
    return json.dumps(line, allow_nan=False).encode() + b"\n"


def state_path(path: Path) -> Path:
    """Where the sampler's last ensembles are, beside a journal."""
    return path.with_suffix(".state.npz")


class Writer(AbstractContextManager["Writer"]):
    """Appends to a journal that it has locked; a context manager.

    ``journal`` is what the file held when it was opened, None if it is new.

    patience   seconds to wait for another process that is writing the journal before ``Busy`` is
               raised; if that process is a run, ``Running`` is raised at once
    waiting    called once if the wait takes longer than a moment
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
        self.path, self._synced = path, True
        with ExitStack() as held:
            self._file = held.enter_context(_locked(path, patience, waiting))
            held.callback(_unlock, self._file.fileno())
            self.journal, end = _parse(self._file.read(), path)
            self._file.truncate(end)
            self._file.seek(end)
            if self.journal is None:
                sync_directory(path.parent)
            if running:
                # Released before the file: the file's next holder must not be taken for a run.
                directory = held.enter_context(_opened(path.parent))
                held.callback(_unlock, directory)
                _mark(directory)
            self._held = held.pop_all()

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def append(self, line: Mapping[str, Any]) -> None:
        """One more line, on the disk when this returns; no part of it if there is no room."""
        data = encoded(line)
        start, written = self._file.tell(), 0
        try:
            while written < len(data):
                written += self._file.write(data[written:])
        except OSError as error:
            self._file.truncate(start)
            self._file.seek(start)
            what = f"{error.strerror}, and not written was {data.decode().rstrip()}"
            raise OSError(error.errno, what, str(self.path)) from error
        if self._synced:
            os.fsync(self._file.fileno())

    @contextmanager
    def together(self) -> Iterator[None]:
        """Lines that are on the disk when the block ends, and not one by one."""
        self._synced = False
        try:
            yield
        finally:
            self._synced = True
            os.fsync(self._file.fileno())


def _locked(path: Path, patience: float, waiting: Callable[[], None]) -> BinaryIO:
    """The file, made if need be, with a lock on it; ``Busy`` when the patience has run out."""
    began, said = time.monotonic(), False
    while True:
        # Opened again each time, since the file there may have been moved away in the meantime;
        # unbuffered, and created if need be without losing what is there.
        file: BinaryIO = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b", 0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BaseException as error:
            file.close()
            if not isinstance(error, BlockingIOError):
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
    """Lock the directory of a run, by which others recognise it.

    They look with a shared lock, for a moment. If a lock lasts longer, it is somebody else's, or
    the file system has none: then others wait until their patience ends, and no harm is done.
    """
    with suppress(OSError):
        for _ in range(5):
            try:
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(RETRY)


def _is_run(path: Path) -> bool:
    """Whether the process that writes a journal has locked its directory too."""
    with _opened(path.parent) as directory:
        try:
            # Shared, so that several that look at once do not take one another for the run.
            fcntl.flock(directory, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:  # any other than Blocking: a file system without such locks
            return isinstance(error, BlockingIOError)
    return False


def _unlock(descriptor: int) -> None:
    """Not only closed: a process that an objective has forked may hold copies."""
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def sync_directory(path: Path) -> None:
    """Write the names of new files to disk: a directory is written apart from its files."""
    with _opened(path) as directory:
        os.fsync(directory)


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _parse(data: bytes, path: Path) -> tuple[Journal | None, int]:
    """What the bytes hold, and where their last whole line ends."""
    lines: list[dict[str, Any]] = []
    end = 0
    for line in io.BytesIO(data):  # by b"\n" alone: a torn line may hold any other byte
        try:
            value = json.loads(line) if line.endswith(b"\n") else None
        except ValueError:  # neither JSON nor UTF-8
            value = None
        if isinstance(value, dict):
            lines.append(value)
            end += len(line)
        elif end + len(line) < len(data):
            raise ValueError(
                f"{path}:{len(lines) + 1} must be a JSON object, got {line[:-1][:60]!r}: something "
                f"else has changed the file, restore it or move it away"
            )
    if not lines:
        return None, 0
    rows = [event for line in lines[1:] for event in legacy.events(line)]
    return Journal(legacy.upgraded(lines[0]), rows), end
