"""A study's journal: one JSON object per line, on disk before the next evaluation begins.

The first line is the header, which says what the study is; every other line is one event
(``records.events``). Lines are only appended, each flushed and fsync'd, so a study killed at any
moment loses at most the evaluation under way. A last line that the kill has torn is dropped on
reading and cut off before the next one is written.

Before each line, and when it is closed, the file at the journal's path must still be the one that
is open, with what was written to it. If somebody has removed or replaced it, everything is written
to a fresh file beside it, and ``Displaced`` says where that is.

One process at a time writes a journal: it holds an advisory lock on the file, which the kernel
releases however the process dies. A run, which may hold it for days, also locks the file's
directory, so that others know that waiting is useless.
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

from fitbo.records.lines import Journal as Journal
from fitbo.records.lines import encoded as encoded
from fitbo.records.lines import parse

FORMAT = 2
RETRY = 0.1  # seconds between attempts at a lock
SILENCE = 1.0  # seconds of waiting before ``waiting`` is called


class ConfigChanged(ValueError):
    """The journal was written for another configuration."""


class Busy(Exception):
    """Another process is writing this journal."""


class Displaced(OSError):
    """The journal was removed or changed while it was written; the text says where it is now."""


class Running(Busy):
    """Another process is writing this journal, and will until its run has ended."""


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
            found = self._file.read()
            self.journal, kept = parse(found, path)
            # All that the file should hold, how much of it is there for sure, and since when.
            self._kept, self._sure, self._changed = bytearray(kept), min(len(kept), len(found)), -1
            self._rescued = False
            self._file.truncate(self._sure)
            if self._sure < len(kept):  # a newline was missing
                self._flush()
            if self.journal is None:
                sync_directory(path.parent)
            if running:
                # Released before the file: the file's next holder must not be taken for a run.
                directory = held.enter_context(_opened(path.parent))
                held.callback(_unlock, directory)
                _mark(directory)
            self._held = held.pop_all()

    def __exit__(self, *_: object) -> None:
        with self._held:
            if not self._intact(closely=True):
                raise self._rescue()
            if self._sure < len(self._kept):  # an interruption came while a line was written
                self._flush()

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
        try:
            same = os.path.samestat(here, self.path.stat())
        except OSError:
            return False
        if not same or not self._sure <= here.st_size <= len(self._kept):
            return False
        if not closely and (here.st_size, here.st_mtime_ns) == (len(self._kept), self._changed):
            return True
        self._changed = here.st_mtime_ns
        held = os.pread(self._file.fileno(), len(self._kept) + 1, 0)
        return self._kept.startswith(held)

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
        # Opened again each time, since the file there may have been moved away in the meantime;
        # unbuffered, and created if need be without losing what is there.
        file: BinaryIO = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b", 0)
        try:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError(f"{path} must be a file, and is something else: move it away")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
            file.close()
            continue
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
