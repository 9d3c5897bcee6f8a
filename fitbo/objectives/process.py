"""A program in a process group of its own, which ends as a whole.

The program leads a new session, so what it starts belongs to its group, and a signal to the group
reaches all of it (unless a grandchild makes a session of its own). At the timeout the group gets
SIGTERM, and a little later SIGKILL; when the program ends by itself, what it left is killed.
"""

from __future__ import annotations

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
MOST_OUTPUT = 64 << 20  # bytes of stdout or stderr, past which a program is ended
TAIL = 1 << 20  # bytes of an output that are read
LONGEST_PAUSE = 0.05
PID_FILE = "pid"

_groups: set[int] = set()
_lock = threading.Lock()


def run_program(
    command: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    timeout: float | None,
) -> None:
    """Run a program in ``folder``, its output to the files stdout and stderr there.

    Any end but exit code 0 in time raises ``Failed`` with the reason.
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
        if ending.is_set():  # since it was started: it was not among those killed
            _signal(process.pid, signal.SIGKILL)
    try:
        (folder / PID_FILE).write_text(f"{process.pid} {_birth(process.pid)}\n")
        reason = _wait(process.pid, timeout, (out, err))
        if reason is not None:
            _signal(process.pid, signal.SIGTERM)
            _wait(process.pid, GRACE, ())
    finally:
        # Before it is reaped: until then no other group can have its number.
        _signal(process.pid, signal.SIGKILL)
        with _lock:
            _groups.discard(process.pid)
        code = process.wait()
    if reason is not None:
        raise Failed(reason)
    if code != 0:
        said = clip(last_line(tail(err)), 200)
        how = f"killed by {_name(-code)}" if code < 0 else f"exit code {code}"
        raise Failed(f"{how}: {said}" if said else how)


def end_all() -> None:
    """Kill every program that this process runs, and let no attempt begin: the study is stopped."""
    ending.set()
    with _lock:
        for group in _groups:
            _signal(group, signal.SIGKILL)


def end_left_over(scratch: Path) -> None:
    """End what a killed study left running for an evaluation, and remove its directories."""
    for folder in (scratch, *scratch.parent.glob(f"{scratch.name}.*")):
        with suppress(OSError, ValueError):
            pid, birth = (folder / PID_FILE).read_text().split()
            if birth != "?" and _birth(int(pid)) == birth:  # and no other that has its number
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
    """Until the process ends, and then None; else why it should not go on."""
    began, pause = time.monotonic(), 0.001
    while True:
        # It is left unreaped: its number stays its own while the group is signalled.
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return None
        left = None if timeout is None else timeout - (time.monotonic() - began)
        if left is not None and left <= 0:
            return f"timeout after {timeout:g} s"
        for path in outputs:
            if path.stat().st_size > MOST_OUTPUT:
                return f"{path.name} went over {MOST_OUTPUT >> 20} MiB"
        time.sleep(pause if left is None else min(pause, left))
        pause = min(2 * pause, LONGEST_PAUSE)


def _birth(pid: int) -> str:
    """When a process began, in the kernel's ticks; ``?`` where there is no /proc to ask."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "?"


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # none is left, or none that is ours
        os.killpg(group, number)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
