"""Lines that are there for good, and lines that a kill has torn."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fitbo.records import journal
from fitbo.records.journal import Busy, Running, Writer, read
from tests.campaigns import ENVIRONMENT

HEADER = {"format": 2, "seed": 0}
ROWS = [{"k": 1, "y": 0.1}, {"k": 2, "y": 1e-300}, {"k": 3, "y": 1 / 3}]
TORN = [
    b"{",
    b'{"k": 4',
    b'{"k": 4}',
    b'{"k": 4, "y"\n',
    b"\n",
    b"null\n",
    b"\x00" * 9,
    b"\xff\r\x85",
]

NOTHING = (None, None, None)
HOLD = """
import sys
from pathlib import Path
from fitbo.records.journal import Writer
with Writer(Path(sys.argv[1])) as writer:
    writer.append({"k": 9})
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of three rows."""
    path = tmp_path / "new" / "folder" / "0.jsonl"
    with Writer(path) as writer:
        assert writer.journal is None
        for line in (HEADER, *ROWS):
            writer.append(line)
    return path


def hold(path: Path) -> subprocess.Popen[str]:
    """Another process that holds the journal until its input ends."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def test_what_is_appended_is_read(path: Path) -> None:
    assert read(path).header == HEADER
    assert read(path).rows == ROWS
    assert path.read_bytes().count(b"\n") == 4
    with Writer(path) as writer:
        assert writer.journal == read(path)
    assert read(path).rows == ROWS


@pytest.mark.parametrize("tail", TORN)
def test_a_torn_last_line_is_dropped_and_then_cut_off(path: Path, tail: bytes) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    assert read(path).rows == ROWS
    assert path.read_bytes() == whole + tail  # to read is not to write
    with Writer(path) as writer:
        assert writer.journal is not None
        assert writer.journal.rows == ROWS
        writer.append({"k": 4})
    assert path.read_bytes() == whole + b'{"k": 4}\n'


def test_every_cut_of_a_journal_leaves_its_whole_lines(path: Path) -> None:
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        with Writer(path) as writer:
            lines = whole[:cut].count(b"\n")
            assert (writer.journal is None) == (lines == 0)
            assert lines == 0 or writer.journal.rows == ROWS[: lines - 1]
            for line in (HEADER, *ROWS)[lines:]:
                writer.append(line)
        assert path.read_bytes() == whole


@pytest.mark.parametrize("head", [b"", b'{"format": 1', b'{"format"\n'])
def test_without_a_whole_header_a_journal_is_new(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "0.jsonl"
    path.write_bytes(head)
    with pytest.raises(ValueError, match="must begin with a header"):
        read(path)
    with Writer(path) as writer:
        assert writer.journal is None
        writer.append(HEADER)
    assert read(path).header == HEADER


@pytest.mark.parametrize("line", [b"{torn", b"[1, 2]", b"", b"\xff", b'{"k": 1}{"k": 2}'])
def test_a_corrupt_line_in_the_middle_is_an_error_that_names_it(path: Path, line: bytes) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[2] = line
    path.write_bytes(b"\n".join(lines))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"0\.jsonl:3 must be a JSON object"):
        read(path)
    with pytest.raises(ValueError, match=r"0\.jsonl:3 must be a JSON object"):
        Writer(path)
    assert path.read_bytes() == before
    path.write_bytes(before.replace(b"\n" + line + b"\n", b"\n"))
    Writer(path).__exit__(None, None, None)  # the error has left no lock behind


def test_what_json_cannot_say_is_refused_before_it_is_written(path: Path) -> None:
    before = path.read_bytes()
    with Writer(path) as writer, pytest.raises(ValueError, match="JSON"):
        writer.append({"y": float("nan")})
    assert path.read_bytes() == before


def test_a_line_is_on_the_disk_before_append_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fsync is called once a line, on the journal, when the file holds all of it."""
    path = tmp_path / "0.jsonl"
    synced: list[bytes] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        fsync(descriptor)
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            synced.append(path.read_bytes())

    monkeypatch.setattr(journal.os, "fsync", watched)
    with Writer(path) as writer:
        for count, line in enumerate((HEADER, *ROWS), start=1):
            writer.append(line)
            assert len(synced) == count
            assert synced[-1] == path.read_bytes()
            assert json.loads(synced[-1].splitlines()[-1]) == line


def test_a_second_writer_is_told_that_the_journal_is_busy(path: Path) -> None:
    before = path.read_bytes()
    with Writer(path), pytest.raises(Busy, match="written by another process"):
        Writer(path)
    with Writer(path):
        pass
    assert path.read_bytes() == before


def test_a_patient_writer_waits_until_the_other_has_done(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "SILENCE", 0.0)
    said: list[str] = []
    with Writer(path) as first:
        release = threading.Timer(0.3, lambda: (first.append({"k": 4}), first.__exit__(*NOTHING)))
        release.start()
        with Writer(path, patience=30, waiting=lambda: said.append("waiting")) as second:
            assert second.journal is not None
            assert second.journal.rows == [*ROWS, {"k": 4}]
        release.join()
    assert said == ["waiting"]


def test_patience_runs_out(path: Path) -> None:
    began = time.monotonic()
    with Writer(path), pytest.raises(Busy, match="by another process"):
        Writer(path, patience=0.25)
    assert 0.25 <= time.monotonic() - began < 10


def test_nobody_waits_for_a_run(path: Path) -> None:
    with Writer(path, running=True), pytest.raises(Running, match="is being written by a run"):
        Writer(path, patience=3600)
    with Writer(path), pytest.raises(Busy) as caught:
        Writer(path)
    assert type(caught.value) is Busy  # nothing of the run is left


def test_a_directory_that_somebody_has_locked_is_no_obstacle(path: Path) -> None:
    """As ``flock results fitbo run ...`` does."""
    descriptor = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with Writer(path, running=True) as writer:
            writer.append({"k": 4})
    finally:
        os.close(descriptor)
    assert len(read(path).rows) == 4


FORK = """
import os, sys, time
from pathlib import Path
from fitbo.records.journal import Writer
with Writer(Path(sys.argv[1]), running=True):
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
print(child)
"""


def test_a_lock_ends_with_its_run_whatever_was_forked_meanwhile(path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORK, str(path)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    try:
        with Writer(path) as writer:
            assert writer.journal is not None
    finally:
        os.kill(int(ended.stdout), signal.SIGKILL)


def test_of_several_that_wait_none_is_taken_for_a_run(path: Path) -> None:
    """Each looks at the directory while others do; a mistake would be a value refused."""
    looked: list[bool] = []
    with Writer(path):
        looks = [
            threading.Thread(target=lambda: looked.extend(journal._is_run(path) for _ in range(99)))
            for _ in range(4)
        ]
        for thread in looks:
            thread.start()
        for thread in looks:
            thread.join()
    assert looked == [False] * 4 * 99


def test_a_journal_moved_away_meanwhile_is_not_written(path: Path) -> None:
    """A process that waits writes to the journal's path, and not to the file that was there."""
    elsewhere = path.with_name("moved.jsonl")
    with Writer(path):
        release = threading.Timer(0.2, lambda: path.rename(elsewhere))
        release.start()
        with Writer(path, patience=30) as second:
            assert second.journal is None
            second.append(HEADER)
        release.join()
    assert read(path).rows == []
    assert read(elsewhere).rows == ROWS


def test_a_reader_needs_no_lock(path: Path) -> None:
    with Writer(path) as writer:
        writer.append({"k": 4})
        assert len(read(path).rows) == 4


def test_the_lock_of_a_killed_process_is_free(path: Path) -> None:
    child = hold(path)
    try:
        with pytest.raises(Busy):
            Writer(path)
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert child.returncode == -signal.SIGKILL
    with Writer(path) as writer:
        assert writer.journal is not None
        assert writer.journal.rows == [*ROWS, {"k": 9}]


def test_a_line_for_which_there_is_no_room_leaves_nothing(path: Path) -> None:
    """A write that the system cuts short, as on a full disk: the next line is whole again."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Writer(path) as writer:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 7, limits[1]))
        try:
            with pytest.raises(OSError, match=r"not written was .*0\.75") as caught:
                writer.append({"k": 4, "y": 0.75})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert caught.value.filename == str(path)
        writer.append({"k": 4, "y": 0.5})
    assert read(path).rows == [*ROWS, {"k": 4, "y": 0.5}]
