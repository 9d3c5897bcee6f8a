"""Lines that are there for good, and lines that a kill has torn."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fitbo.records import journal
from fitbo.records.journal import Busy, Displaced, Writer, encoded, read
from tests.campaigns import ENVIRONMENT

HEADER = {"format": 2, "seed": 0}


def told(number: int, value: float = 0.5) -> dict[str, Any]:
    return {"event": "told", "id": number, "point": {"a": 0.1}, "value": value}


ROWS = [told(1, 0.1), told(2, 1e-300), told(3, 1 / 3)]
TORN = [
    b"{",
    b'{"event": "told", "i',
    b'{"event": "told", "id": 4, "point": {"a": 0.1}, "value": -',
    b'{"event": "told", "id": 4, "point": {"a": 0.1}, "value": 1.5e',
    b'{"event": "told", "id": 4, "point": {"a": "\\u20',
    b'{"event": "told", "id": 4, "point": {"a": fals',
    b"\x00" * 9,  # as after a power failure
    b'{"event": "told"\x00\x00',
]
FOREIGN = [
    b'{"k": 4, "y"\n',
    b"\n",
    b"null\n",
    b"\xff\r\x85",
    b"# checked by Ann",
    b'{"event": "told", "id": 4 by Ann, who has changed this line',
    b"[1, 2",
    b"<<<<<<< HEAD\n",
]

NOTHING = (None, None, None)
HOLD = """
import sys
from pathlib import Path
from fitbo.records.journal import Writer
with Writer(Path(sys.argv[1])) as writer:
    writer.append({"event": "told", "id": 9, "point": {"a": 0.1}, "value": 0.5})
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
        writer.append(told(4))
    assert path.read_bytes() == whole + encoded(told(4))


@pytest.mark.parametrize("tail", FOREIGN)
@pytest.mark.parametrize("linked", [False, True])
def test_a_last_line_that_no_kill_has_torn_is_an_error_and_stays(
    path: Path, tail: bytes, linked: bool
) -> None:
    """Before, it was dropped without a word and cut off by the next writer."""
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    journal = path
    if linked:
        journal = path.with_name("1.jsonl")
        journal.symlink_to(path)
    for opened in (read, Writer):
        with pytest.raises(ValueError, match=r"[01]\.jsonl:5 must be a JSON object"):
            opened(journal)
    assert path.read_bytes() == whole + tail


@pytest.mark.parametrize("text", [b"my notes", b"my notes\n", b'{"a": 1', b"[1]\n", b'{"a": 1}\n'])
def test_another_s_file_of_one_line_is_never_written(tmp_path: Path, text: bytes) -> None:
    """It was taken for a journal whose header was torn."""
    file, link = tmp_path / "notes.txt", tmp_path / "0.jsonl"
    file.write_bytes(text)
    link.symlink_to(file)
    for opened in (read, Writer):
        with pytest.raises(ValueError, match=r"0\.jsonl:1"):
            opened(link)
    assert file.read_bytes() == text


def test_a_whole_last_line_counts_without_its_newline(path: Path) -> None:
    """As some editors leave it; its value was dropped without a word."""
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert read(path).rows == ROWS
    with Writer(path) as writer:
        assert writer.journal is not None
        assert writer.journal.rows == ROWS
        writer.append(told(4))
    assert path.read_bytes() == whole + encoded(told(4))


def test_every_cut_of_a_journal_leaves_its_whole_lines(path: Path) -> None:
    whole = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        with Writer(path) as writer:
            lines = sum(cut >= end - 1 for end in ends)  # a newline may be missing
            assert (writer.journal is None) == (lines == 0)
            assert lines == 0 or writer.journal.rows == ROWS[: lines - 1]
            for line in (HEADER, *ROWS)[lines:]:
                writer.append(line)
        assert path.read_bytes() == whole


@pytest.mark.parametrize("head", [b"", b"{", b'{"form', b'{"format": 1', b"\x00\x00"])
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
        writer.append(told(4, float("nan")))
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
        release = threading.Timer(0.3, lambda: (first.append(told(4)), first.__exit__(*NOTHING)))
        release.start()
        with Writer(path, patience=30, waiting=lambda: said.append("waiting")) as second:
            assert second.journal is not None
            assert second.journal.rows == [*ROWS, told(4)]
        release.join()
    assert said == ["waiting"]


def test_patience_runs_out(path: Path) -> None:
    began = time.monotonic()
    with Writer(path), pytest.raises(Busy, match="by another process"):
        Writer(path, patience=0.25)
    assert 0.25 <= time.monotonic() - began < 10


FORK = """
import os, sys, time
from pathlib import Path
from fitbo.records.journal import Writer
with Writer(Path(sys.argv[1])) as writer:
    writer.begin(share="shared" in sys.argv)
    with writer.held():
        child = os.fork()
    if child == 0:
        os.close(1)  # nobody waits for it
        time.sleep(60)
        os._exit(0)
    print(child, flush=True)
    if "killed" in sys.argv:
        os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("how", [[], ["shared"], ["killed"], ["shared", "killed"]])
def test_a_lock_ends_with_its_run_whatever_was_forked_meanwhile(path: Path, how: list[str]) -> None:
    command = [sys.executable, "-c", FORK, str(path), *how]
    ended = subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == (-signal.SIGKILL if "killed" in how else 0)
    try:
        with Writer(path) as writer:
            assert writer.journal is not None
            assert writer.others() == set()  # nor is it taken for a run at work
    finally:
        os.kill(int(ended.stdout), signal.SIGKILL)


def test_a_journal_moved_away_meanwhile_is_not_written(path: Path) -> None:
    """A process that waits writes to the journal's path, and not to the file that was there."""
    elsewhere = path.with_name("moved.jsonl")
    first = Writer(path)
    release = threading.Timer(0.2, lambda: (path.rename(elsewhere), first._held.close()))
    release.start()
    with Writer(path, patience=30) as second:
        assert second.journal is None
        second.append(HEADER)
    release.join()
    assert read(path).rows == []
    assert read(elsewhere).rows == ROWS


def test_a_reader_needs_no_lock(path: Path) -> None:
    with Writer(path) as writer:
        writer.append(told(4))
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
        assert writer.journal.rows == [*ROWS, told(9)]


def test_a_line_for_which_there_is_no_room_leaves_nothing(path: Path) -> None:
    """A write that the system cuts short, as on a full disk: the next line is whole again."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Writer(path) as writer:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 7, limits[1]))
        try:
            with pytest.raises(OSError, match=r"not written was .*0\.75") as caught:
                writer.append(told(4, 0.75))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert caught.value.filename == str(path)
        writer.append(told(4))
    assert read(path).rows == [*ROWS, told(4)]


def in_place(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.truncate()
        file.write(data)


def replaced(path: Path, data: bytes) -> None:
    path.with_name("j").write_bytes(data)
    path.with_name("j").rename(path)


AWAY: dict[str, Callable[[Path], object]] = {
    "removed": lambda path: path.unlink(),
    "folder removed": lambda path: shutil.rmtree(path.parent),
    "folder moved": lambda path: path.parent.rename(path.parent.with_name("old")),
    "folder is a file": lambda path: (shutil.rmtree(path.parent), path.parent.write_text("")),
    "renamed": lambda path: path.rename(path.with_name("old.jsonl")),
    "copied back": lambda path: replaced(path, path.read_bytes()),
    "an older one": lambda path: replaced(path, path.read_bytes()[:200]),
    "a link": lambda path: (path.unlink(), path.symlink_to("/dev/null")),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "emptied": lambda path: in_place(path, b""),
    "cut": lambda path: os.truncate(path, 200),
    "appended to": lambda path: in_place(path, path.read_bytes() + b"{}"),
    "a digit changed": lambda path: in_place(path, path.read_bytes().replace(b"0.1", b"0.2")),
}


@pytest.mark.parametrize("at", ["append", "exit"])
@pytest.mark.parametrize("way", AWAY)
def test_a_journal_that_is_taken_away_loses_nothing(path: Path, way: str, at: str) -> None:
    """It was written on to the old file, which nobody sees, and the run ended with success."""
    writer = Writer(path)
    writer.append(told(4))
    AWAY[way](path)
    expected = [*ROWS, told(4)]
    if at == "append":
        with pytest.raises(Displaced, match="removed or changed by something else"):
            writer.append(told(5))
        writer.append(told(6))  # as values that still arrive
        writer.__exit__(*NOTHING)
        expected += [told(5), told(6)]
    else:
        with pytest.raises(Displaced, match="removed or changed by something else"):
            writer.__exit__(*NOTHING)
    (rescued,) = path.parents[2].rglob("0.jsonl.rescued-*")
    assert read(rescued).rows == expected
    assert read(rescued).header == HEADER


def test_a_journal_that_is_only_touched_is_intact(path: Path) -> None:
    with Writer(path) as writer:
        os.utime(path, ns=(1, 1))
        writer.append(told(4))
    assert read(path).rows == [*ROWS, told(4)]


@pytest.mark.parametrize("late", [False, True])
def test_an_interruption_while_a_line_is_written_leaves_the_line_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """Ctrl-C may come between any two instructions: what it leaves is not somebody else's doing."""
    fsync = os.fsync

    def interrupted(descriptor: int) -> None:
        monkeypatch.setattr(journal.os, "fsync", fsync)
        if not late:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - 7)
        raise KeyboardInterrupt

    with Writer(path) as writer:
        monkeypatch.setattr(journal.os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            writer.append(told(4))
        writer.append(told(5))
    assert read(path).rows == [*ROWS, told(4), told(5)]


# --- Shared by several runs -------------------------------------------------------------------


def shared(path: Path) -> Writer:
    writer = Writer(path)
    writer.begin(share=True)
    return writer


def numbers(writer: Writer) -> list[int]:
    """The ids of what a writer learns when it takes the lock."""
    with writer.held() as news:
        return [row["id"] for row in news.rows] if news is not None else []


def test_writers_that_share_a_journal_take_in_what_the_other_wrote(path: Path) -> None:
    with shared(path) as one, shared(path) as two:
        assert (one.run, two.run) == (1, 2)
        with one.held() as news:
            assert news is None
            one.append(told(4))
        assert numbers(one) == []  # its own is no news
        assert numbers(two) == [1, 2, 3, 4]
        assert numbers(two) == []
        with two.held():
            two.append(told(5))
        with one.held() as news:
            assert news is not None
            one.append(told(6))
        assert one.others() == {2}
    assert [row["id"] for row in read(path).rows] == [1, 2, 3, 4, 5, 6]
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name]  # no number is left


def test_a_number_is_free_when_its_run_has_ended(path: Path) -> None:
    one, two = shared(path), shared(path)
    one.__exit__(*NOTHING)
    assert two.others() == set()
    with shared(path) as third:
        assert third.run == 1
        assert two.others() == {1}
    two.__exit__(*NOTHING)


def test_what_a_killed_run_tore_is_cut_off_by_the_next(path: Path) -> None:
    with shared(path) as one, shared(path) as two:
        with path.open("ab") as file:
            file.write(encoded(told(4)) + b'{"event": "told", "id"')
        assert numbers(one) == [1, 2, 3, 4]
        with two.held():
            two.append(told(5))
        assert numbers(one) == [1, 2, 3, 4, 5]
    assert [row["id"] for row in read(path).rows] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("harm", ["removed", "replaced", "garbage", "shortened"])
def test_a_shared_journal_that_something_else_changed_is_rescued_by_each(
    harm: str, path: Path
) -> None:
    one, two = shared(path), shared(path)
    with one.held():
        one.append(told(4))
    if harm == "removed":
        path.unlink()
    elif harm == "replaced":
        copy = path.with_name("copy")
        shutil.copy(path, copy)
        copy.replace(path)
    elif harm == "garbage":
        path.write_bytes(path.read_bytes() + b"not a line\n")
    else:
        os.truncate(path, 60)
    for writer, number in ((one, 5), (two, 6)):
        with pytest.raises(Displaced, match="rescued"), writer.held():
            writer.append(told(number))
        writer.__exit__(*NOTHING)
    rescued = [p.read_bytes() for p in path.parent.glob("*.rescued-*")]
    assert len(rescued) == 2
    for number in (1, 2, 3, 4, 5, 6):
        assert any(encoded(told(number))[:-1].split(b'"value"')[0] in data for data in rescued)


def test_a_line_that_was_interrupted_is_written_after_what_others_wrote(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = shared(path), shared(path)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(one, "_flush", interrupted)  # also when the lock is released
        with pytest.raises(KeyboardInterrupt), one.held():
            one.append(told(4))
    with two.held():
        two.append(told(5))
    one.__exit__(*NOTHING)
    two.__exit__(*NOTHING)
    assert [row["id"] for row in read(path).rows] == [1, 2, 3, 5, 4]
