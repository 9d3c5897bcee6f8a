"""A program in its own process group, which ends as a whole.

The program leads a new session: the processes it starts belong to its group, and a signal to the
group reaches them all (unless a grandchild starts another session). At the timeout the group gets
SIGTERM and, after ``GRACE``, SIGKILL. When the program ends by itself, what it left is killed.

Its output is read through the descriptors that we have opened: the program may remove the files, or
put a pipe in their place that would keep us waiting.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from fitbo.objectives.outcome import FULL, Failed, clip, ending, machine

GRACE = 2.0  # seconds between SIGTERM and SIGKILL
MOST_OUTPUT = 64 << 20  # bytes of stdout or stderr, beyond which a program is ended
TAIL = 1 << 20  # bytes of an output that are read
LONGEST_PAUSE = 0.05  # seconds between two looks at a program
PID_FILE = "pid"
# Why no process can be started at all, whatever the program.
EXHAUSTED = (*FULL, errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
NAMES = {number.value: number.name for number in signal.Signals}

_groups: set[int] = set()
_lock = threading.Lock()


def run_program(
    command: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    timeout: float | None,
    *,
    passed: Sequence[int] = (),
    cwd: Path | None = None,
) -> str:
    """Run a program in ``folder``, or in ``cwd``; the end of its stdout.

    Its output is in the files stdout and stderr there. ``passed`` are descriptors that it inherits.
    Any end other than exit code 0 in time raises ``Failed`` with the reason.
    """
    with ExitStack() as files:
        with machine(folder):
            names = ("stdout", "stderr", PID_FILE)
            out, err, pid = (files.enter_context((folder / name).open("w+b", 0)) for name in names)
        try:
            process = subprocess.Popen(  # noqa: S603
                list(command),
                cwd=cwd or folder,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                pass_fds=passed,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) in EXHAUSTED:
                with machine(folder):
                    raise
            raise Failed(f"{command[0]} cannot be started: {error}") from None
        _end(process, timeout, pid, {"stdout": out, "stderr": err})
        return _tail(out)


def _end(
    process: subprocess.Popen[bytes],
    timeout: float | None,
    pid: BinaryIO,
    outputs: Mapping[str, BinaryIO],
) -> None:
    """Wait until the program has ended, or end it; ``Failed`` unless that was well and in time."""
    with _lock:
        _groups.add(process.pid)
        if ending.is_set():  # since it was started: ``end_all`` did not know of it
            _signal(process.pid, signal.SIGKILL)
    try:
        with machine(Path(pid.name)):
            pid.write(f"{process.pid} {_birth(process.pid)}\n".encode())
        reason = _wait(process.pid, timeout, outputs)
        if reason is not None:
            _signal(process.pid, signal.SIGTERM)
            _wait(process.pid, GRACE, {})
    finally:
        # Before it is reaped: until then no other group can have the same id.
        _signal(process.pid, signal.SIGKILL)
        with _lock:
            _groups.discard(process.pid)
        code = process.wait()
    if reason is not None:
        raise Failed(reason)
    if code != 0:
        said = clip(last_line(_tail(outputs["stderr"])), 200)
        name = NAMES.get(-code, f"signal {-code}")
        how = f"killed by {name}" if code < 0 else f"exit code {code}"
        raise Failed(f"{how}: {said}" if said else how)


def end_all() -> None:
    """Stop the study: kill every program that this process runs, and let no attempt begin."""
    ending.set()
    with _lock:
        for group in _groups:
            _signal(group, signal.SIGKILL)


def end_left_over(scratch: Path) -> bool:
    """End what a killed study left running for an evaluation, and remove its directories.

    Whether there were any: then the study died during that evaluation.
    """
    left = [each for each in (scratch, *scratch.parent.glob(f"{scratch.name}.*")) if each.exists()]
    for folder in left:
        with suppress(OSError, ValueError, Failed):
            pid, birth = tail(folder / PID_FILE).split()
            if birth != "?" and _birth(int(pid)) == birth:  # not another process with this id
                _signal(int(pid), signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
    return bool(left)


def tail(path: Path) -> str:
    """The last ``TAIL`` bytes of a file, as text; anything else of that name is a failure."""
    try:
        # Without O_NONBLOCK a pipe would wait for somebody who writes to it.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", 0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Failed(f"{path.name} is not a file")
            return _tail(file)
    except OSError as error:
        raise Failed(f"{path.name} cannot be read: {error.strerror}") from None


def _tail(file: BinaryIO) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
    data = b"".join(iter(partial(file.read, TAIL), b""))
    return data[-TAIL:].decode("utf-8", errors="replace")


def last_line(text: str) -> str:
    """The last line that is not blank."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def _wait(pid: int, timeout: float | None, outputs: Mapping[str, BinaryIO]) -> str | None:
    """Wait until the process ends, then None; or the reason why it has to be ended."""
    end, pause = time.monotonic() + (math.inf if timeout is None else timeout), 0.001
    while True:
        # It is left unreaped, so that its id stays valid while the group is signalled.
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return None
        left = end - time.monotonic()
        if left <= 0:
            return f"timeout after {timeout:g} s"
        for name, file in outputs.items():
            if os.fstat(file.fileno()).st_size > MOST_OUTPUT:
                return f"{name} went over {MOST_OUTPUT >> 20} MiB"
        time.sleep(min(pause, left))
        pause = min(2 * pause, LONGEST_PAUSE)


def _birth(pid: int) -> str:
    """When a process began, in clock ticks since boot; ``?`` on systems without /proc."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return "?"


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # none is left, or none is ours
        os.killpg(group, number)
