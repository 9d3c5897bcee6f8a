"""Which processes are at work on a study: the kernel says, by locks that end with their holders.

The journal's lock is held while something is written. Every run of a study that others may join
has a number too, 1 for the first, and holds a lock on a file of that number beside the journal
until it ends, however it ends: so a run that is killed is known to be dead, whichever process gets
its id next. A number that is free is taken by the next run, and what was pending with it then
belongs to that one.

Numbers are claimed, looked at and given back with the journal's lock held: no two processes do so
at a time.

The file of a run has a use of its own: it is so large that, once it is emptied, a full disk has
room for the outcomes of the evaluations under way.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO
from weakref import WeakSet

RESERVE = 1 << 16  # bytes

_ours: WeakSet[BinaryIO] = WeakSet()  # files with locks of this process


def _disown() -> None:
    """In a process that an objective has forked: its copies must not keep a dead run's locks."""
    for file in list(_ours):
        file.close()


os.register_at_fork(after_in_child=_disown)


def hold(path: Path, create: bool = True) -> BinaryIO:
    """The file, open, with a lock on it; ``BlockingIOError`` if another has one."""
    # Unbuffered, and created if need be without losing what is there.
    flags = os.O_RDWR | (os.O_CREAT if create else 0)
    file: BinaryIO = os.fdopen(os.open(path, flags, 0o644), "r+b", 0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        file.close()
        raise
    _ours.add(file)
    return file


def release(file: BinaryIO) -> None:
    """Unlock and close it. Not only closed: a process that was forked may have a copy."""
    _ours.discard(file)
    with suppress(OSError, ValueError), file:
        fcntl.flock(file, fcntl.LOCK_UN)


def claim(journal: Path) -> tuple[int, BinaryIO]:
    """The least number that no live run has, and the file whose lock says that it is taken."""
    for number in count(1):
        with suppress(BlockingIOError):
            file = hold(_path(journal, number))
            break
    try:
        file.truncate(0)
        if file.write(os.urandom(RESERVE)) < RESERVE:  # at random: no file system can shorten it
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(_path(journal, number)))
    except BaseException:
        give_back(journal, number, file)
        raise
    return number, file


def give_back(journal: Path, number: int, file: BinaryIO) -> None:
    """The number of a run that ends."""
    with suppress(OSError):  # the directory may be gone
        _path(journal, number).unlink()
    release(file)


def is_alive(journal: Path, number: int) -> bool:
    """Whether a run of this number is at work; what a dead one left of its number is removed."""
    try:
        file = hold(_path(journal, number), create=False)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    give_back(journal, number, file)
    return False


def live_runs(journal: Path) -> set[int]:
    """The numbers of all runs at work."""
    stem = _path(journal, 0).name.removesuffix("0")
    names = []
    with suppress(OSError):  # of a directory that is gone
        names = [n.removeprefix(stem) for n in os.listdir(journal.parent) if n.startswith(stem)]
    return {int(name) for name in names if name.isdecimal() and is_alive(journal, int(name))}


def _path(journal: Path, number: int) -> Path:
    return journal.with_suffix(f".run{number}")
