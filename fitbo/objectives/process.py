"""A program in its own process group, which ends as a whole.

The program leads a new session: the processes it starts belong to its group, and a signal to the
group reaches them all (unless a grandchild starts another session). At the timeout the group gets
SIGTERM and, after ``GRACE``, SIGKILL. When the program ends by itself, what it left is killed.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from fitbo.objectives.outcome import Failed, clip, ending

GRACE = 2.0  # seconds between SIGTERM and SIGKILL
MOST_OUTPUT = 64 << 20  # bytes of stdout or stderr, beyond which a program is ended
TAIL = 1 << 20  # bytes of an output that are read
LONGEST_PAUSE = 0.05  # seconds between two looks at a program
PID_FILE = "pid"
NAMES = {number.value: number.name for number in signal.Signals}

_groups: set[int] = set()
_lock = threading.Lock()


def run_program(
    command: Sequence[str], folder: Path, env: Mapping[str, str], timeout: float | None
) -> None:
    """Run a program in ``folder``, with its output in the files stdout and stderr there.

    Any end other than exit code 0 in time raises ``Failed`` with the reason.
    """
    out, err = folder / "stdout", folder / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        try:
            process = subprocess.Popen(  # noqa: S603
                list(command),
                cwd=folder,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise Failed(f"{command[0]} cannot be started: {error}") from None
    with _lock:
        _groups.add(process.pid)
        if ending.is_set():  # since it was started: ``end_all`` did not know of it
            _signal(process.pid, signal.SIGKILL)
    try:
        (folder / PID_FILE).write_text(f"{process.pid} {_birth(process.pid)}\n")
        reason = _wait(process.pid, timeout, (out, err))
        if reason is not None:
            _signal(process.pid, signal.SIGTERM)
            _wait(process.pid, GRACE, ())
    finally:
        # Before it is reaped: until then no other group can have the same id.
        _signal(process.pid, signal.SIGKILL)
        with _lock:
            _groups.discard(process.pid)
        code = process.wait()
    if reason is not None:
        raise Failed(reason)
    if code != 0:
        said = clip(last_line(tail(err)), 200)
        name = NAMES.get(-code, f"signal {-code}")
        how = f"killed by {name}" if code < 0 else f"exit code {code}"
        raise Failed(f"{how}: {said}" if said else how)


def end_all() -> None:
    """Stop the study: kill every program that this process runs, and let no attempt begin."""
    ending.set()
    with _lock:
        for group in _groups:
            _signal(group, signal.SIGKILL)


def end_left_over(scratch: Path) -> None:
    """End what a killed study left running for an evaluation, and remove its directories."""
    for folder in (scratch, *scratch.parent.glob(f"{scratch.name}.*")):
        with suppress(OSError, ValueError):
            pid, birth = (folder / PID_FILE).read_text().split()
            if birth != "?" and _birth(int(pid)) == birth:  # not another process with this id
                _signal(int(pid), signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def tail(path: Path) -> str:
    """The last ``TAIL`` bytes of a file, as text."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - TAIL))
            return file.read(TAIL).decode("utf-8", errors="replace")
    except OSError as error:
        raise Failed(f"{path.name} cannot be read: {error.strerror}") from None


def last_line(text: str) -> str:
    """The last line that is not blank."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def _wait(pid: int, timeout: float | None, outputs: Sequence[Path]) -> str | None:
    """Wait until the process ends, then None; or the reason why it has to be ended."""
    end, pause = time.monotonic() + (math.inf if timeout is None else timeout), 0.001
    while True:
        # It is left unreaped, so that its id stays valid while the group is signalled.
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return None
        left = end - time.monotonic()
        if left <= 0:
            return f"timeout after {timeout:g} s"
        for path in outputs:
            if path.stat().st_size > MOST_OUTPUT:
                return f"{path.name} went over {MOST_OUTPUT >> 20} MiB"
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
