"""A study's journal: one JSON object per line, on disk before the next evaluation begins.

The first line is the header, which says what the study is; every other line is one event
(``records.events``). Lines are only appended, each flushed and fsync'd, so a study killed at any
moment loses at most the evaluation under way. A last line that the kill has torn is dropped on
reading and cut off before the next one is written.

Before each line, and when it is closed, the file at the journal's path must still be the one that
is open, with what was written to it. If somebody has removed or replaced it, everything is written
to a fresh file beside it, and ``Displaced`` says where that is.

A run keeps some room on the disk in reserve. When the disk is full, that is given up for the line
that is to be written, and ``NoRoom`` says that no further evaluation should be started.

One process at a time writes a journal: it holds an advisory lock on the file, which the kernel
releases however the process dies. A run that others may join holds it only while it chooses a point
or writes, and each time first takes in what the others have written.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from fitbo.objectives.outcome import FULL
from fitbo.records import locks
from fitbo.records.lines import Journal as Journal
from fitbo.records.lines import encoded as encoded
from fitbo.records.lines import parse

FORMAT = 2
RETRY = 0.05  # seconds between attempts at a lock
SILENCE = 1.0  # seconds of waiting before ``waiting`` is called


class ConfigChanged(ValueError):
    """The journal was written for another configuration."""


class Busy(Exception):
    """Another process is writing this journal."""


class Recorded(OSError):
    """The line is on the disk, but the run has to end."""


class NoRoom(Recorded):
    """The disk is full; what was in reserve for the outcomes under way is in use."""


class Displaced(Recorded):
    """The journal was removed or changed while it was written; the text says where it is now."""


def read(path: Path) -> Journal:
    """The journal at ``path``, without a torn last line, in today's format."""
    return parsed(path.read_bytes(), path)


def parsed(data: bytes, path: Path) -> Journal:
    """The journal that these bytes hold; ``path`` is what errors call it."""
    journal, _ = parse(data, path)
    if journal is None:
        raise ValueError(f"{path} must begin with a header line, and holds no whole line")
    return journal


def state_path(path: Path) -> Path:
    """Where the sampler's last ensembles are, beside a journal."""
    return path.with_suffix(".state.npz")


class Writer(AbstractContextManager["Writer"]):
    """Appends to a journal that it has locked; a context manager.

    ``journal`` is what the file held when it was opened, None if it is new.

    patience   seconds to wait for another process that is writing the journal before ``Busy`` is
               raised
    waiting    called once if the wait takes longer than a moment
    """

    def __init__(
        self,
        path: Path,
        *,
        patience: float = 0.0,
        waiting: Callable[[], None] = lambda: None,
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self._synced, self._rescued = path, True, False
        self.run = 1  # the number of this run; others have others
        self._shared = self._inside = False  # whether the lock is for moments only, and is held
        self._reserve: BinaryIO | None = None
        with ExitStack() as held:
            self._file = _locked(path, patience, waiting)
            held.callback(locks.release, self._file)
            found = self._file.read()
            self.journal, kept = parse(found, path)
            self._hold(kept, min(len(kept), len(found)))
            if self.journal is None:
                sync_directory(path.parent)
            self._held = held.pop_all()

    def _hold(self, kept: bytes, sure: int) -> None:
        """Have the file hold what is to be kept; that many bytes of it are there."""
        # All that the file should hold, how much of it is there for sure, and since when.
        self._kept, self._sure = bytearray(kept), sure
        self._file.truncate(sure)
        self._changed = os.fstat(self._file.fileno()).st_mtime_ns
        if sure < len(kept):  # a newline was missing, or a line that was interrupted
            self._flush()

    def begin(self, share: bool) -> None:
        """This is a run; one that others may join holds the lock for moments only, from now on."""
        self.run, self._reserve = locks.claim(self.path)
        self._held.callback(locks.give_back, self.path, self.run, self._reserve)
        self._shared = share
        if share:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    @contextmanager
    def held(self) -> Iterator[Journal | None]:
        """The lock, in the block; and what the journal holds, if others have written to it."""
        if not self._shared or self._inside or self._rescued:
            yield None
            return
        with ExitStack() as last:
            # Of this file, which need not be the one that we write when the block ends.
            fcntl.flock(self._file, fcntl.LOCK_EX)
            last.callback(fcntl.flock, self._file, fcntl.LOCK_UN)
            self._inside = True
            last.callback(setattr, self, "_inside", False)
            last.callback(self._finish)
            yield self._news()

    def others(self) -> set[int]:
        """The numbers of other runs that are at work; with the lock held."""
        return locks.live_runs(self.path) - ({self.run} if self._reserve is not None else set())

    def __exit__(self, *_: object) -> None:
        with self._held:  # which releases the lock last, when the run's number is free
            if self._shared and not self._rescued:
                fcntl.flock(self._file, fcntl.LOCK_EX)
                self._news()
            self._shared = False
            if not self._intact(closely=True):
                raise self._rescue()
            self._finish()

    def _finish(self) -> None:
        """Write what an interruption has kept from being written."""
        if self._sure < len(self._kept) and self._intact():
            self._flush()

    def _news(self) -> Journal | None:
        """What the journal holds, if others have written to it since we did.

        None too if it is no longer what we wrote: that is found, and everything rescued, with the
        next line that is written.
        """
        here = os.fstat(self._file.fileno())
        if (here.st_size, here.st_mtime_ns) == (len(self._kept), self._changed):
            return None
        found = os.pread(self._file.fileno(), here.st_size, 0)
        sure, unsure = bytes(self._kept[: self._sure]), bytes(self._kept[self._sure :])
        if not found.startswith(sure) or not self._at_path():
            return None
        try:
            journal, kept = parse(found, self.path)
            held = min(len(kept), len(found))
            if unsure and not kept.startswith(sure + unsure):
                journal, kept = parse(kept + unsure, self.path)
        except ValueError:
            return None
        grown = kept != self._kept
        self._hold(kept, held)
        return journal if grown else None

    def append(self, line: Mapping[str, Any]) -> None:
        """One more line, on the disk when this returns; no part of it if there is no room."""
        data, intact = encoded(line), self._intact()
        self._kept += data
        if not intact:
            raise self._rescue()
        self._flush()

    def _flush(self) -> None:
        """Write what the file does not hold for sure; some of it again, after an interruption."""
        start = self._sure
        try:
            written = self._file.seek(start)
            while written < len(self._kept):
                written += self._file.write(self._kept[written:])
            if self._synced:
                os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(start)
            if error.errno in FULL and self._reserve is not None and self._reserve.seek(0, 2):
                self._reserve.truncate(0)
                self._flush()
                why = f"{error.strerror}; what was told is kept: make room, and run again"
                raise NoRoom(error.errno, why, str(self.path)) from error
            lost = self._kept[start:].decode().rstrip()
            del self._kept[start:]
            what = f"{error.strerror}, and not written was {lost}"
            raise OSError(error.errno, what, str(self.path)) from error
        self._sure = len(self._kept)
        self._changed = os.fstat(self._file.fileno()).st_mtime_ns

    def _intact(self, closely: bool = False) -> bool:
        """Whether the file at the path is still the one that we write, as we have written it."""
        if self._rescued or self._file.closed:  # a new file is ours alone
            return True
        here = os.fstat(self._file.fileno())
        if not self._at_path() or not self._sure <= here.st_size <= len(self._kept):
            return False
        if not closely and (here.st_size, here.st_mtime_ns) == (len(self._kept), self._changed):
            return True
        self._changed = here.st_mtime_ns
        held = os.pread(self._file.fileno(), len(self._kept) + 1, 0)
        return self._kept.startswith(held)

    def _at_path(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        except OSError:
            return False

    def _rescue(self) -> Displaced:
        """Write everything to a fresh file, where lines go from now on; what there is to say."""
        was = self.path
        for folder in (*was.parents, Path(tempfile.gettempdir())):
            with suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                descriptor, name = tempfile.mkstemp("", f"{was.name}.rescued-", folder)
                self._file = self._held.enter_context(os.fdopen(descriptor, "r+b", 0))
                self.path, self._rescued, self._sure = Path(name), True, 0
                kept, self._synced = bytes(self._kept), True
                try:
                    self._flush()
                finally:
                    self._kept = bytearray(kept)
                sync_directory(folder)
                break
        else:
            return Displaced(f"{was} was removed or changed, and cannot be written anywhere else")
        return Displaced(
            f"{was} was removed or changed by something else while it was being written: all that "
            f"it held and all that was told since is in {self.path}; to go on, move that file to "
            f"{was} and give the command again"
        )

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
        # Opened again each time, since the file there may have been moved away in the meantime.
        with suppress(BlockingIOError):
            file = locks.hold(path)
            here = os.fstat(file.fileno())
            with suppress(FileNotFoundError):
                if stat.S_ISREG(here.st_mode) and os.path.samestat(here, path.stat()):
                    return file
            locks.release(file)
            if not stat.S_ISREG(here.st_mode):
                raise ValueError(f"{path} must be a file, and is something else: move it away")
            continue
        waited = time.monotonic() - began
        if waited >= patience:
            raise Busy(f"{path} is being written by another process")
        if waited >= SILENCE and not said:
            said = True
            waiting()
        time.sleep(RETRY)


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
