"""One compressed file of journals is read wherever a folder of them is."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from fitbo.cli import main
from fitbo.records.archive import ARCHIVE, journals, pack, unpack
from fitbo.report.write import write_report
from tests.campaigns import campaign, complete, timeless, write_config

KEPT = Path(__file__).parent / "format1" / "campaign"
TWO: dict[str, Any] = {"problems": ["branin", "forrester"], "budget": 5}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for study in campaign(tmp_path / "out", **TWO).studies():
        assert complete(study)
    return tmp_path / "out" / "small"


def report(folder: Path, to: Path) -> dict[str, bytes]:
    write_report([folder], to)
    return {str(p.relative_to(to)): p.read_bytes() for p in sorted(to.rglob("*.*"))}


def test_the_report_of_an_archive_is_that_of_its_folder(folder: Path, tmp_path: Path) -> None:
    before = report(folder, tmp_path / "before")
    archive = pack(folder)
    assert list(folder.rglob("*.jsonl")) == []
    assert [path.name for path in folder.iterdir()] == [ARCHIVE]
    assert report(folder, tmp_path / "after") == before
    assert report(archive, tmp_path / "alone") == before
    assert {"report.html", "summary.md"} < set(before)


def test_a_journal_of_the_old_format_is_reported_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    shutil.copytree(KEPT, folder)
    before = report(folder, tmp_path / "before")
    pack(folder)
    assert report(folder, tmp_path / "after") == before


def test_unpacked_journals_are_the_same_bytes(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*.jsonl")}
    pack(folder)
    assert unpack(folder) == 2
    assert {path: path.read_bytes() for path in folder.rglob("*.jsonl")} == before
    assert unpack(folder) == 0  # what is there is left alone


def test_a_packed_campaign_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path / "out", **TWO)
    assert main(["run", str(config), "--no-report", "--quiet"]) == 0
    folder = tmp_path / "out" / "small"
    assert main(["pack", str(folder)]) == 0
    assert main(["status", str(config)]) == 0
    assert capsys.readouterr().out.count("complete") == 2
    assert main(["run", str(config), "--set", "budget=7", "--no-report", "--quiet"]) == 0
    for study in campaign(tmp_path / "whole", **{**TWO, "budget": 7}).studies():
        assert complete(study)
        mine = folder / study.journal.relative_to(tmp_path / "whole" / "small")
        asked = [line for line in timeless(mine).splitlines() if b'"asked"' in line]
        points = [line.partition(b'"point"')[2].partition(b"}")[0] for line in asked]
        whole = [line for line in timeless(study.journal).splitlines() if b'"asked"' in line]
        assert points == [line.partition(b'"point"')[2].partition(b"}")[0] for line in whole]


def test_packing_again_keeps_what_was_packed(folder: Path) -> None:
    pack(folder)
    names = [path for path, _ in journals(folder)]
    unpack(folder)
    (folder / "branin" / "MM" / "0.jsonl").unlink()
    pack(folder)
    assert [path for path, _ in journals(folder)] == names


def test_what_is_no_archive_is_one_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ARCHIVE).write_bytes(b"not an archive")
    assert main(["report", str(folder)]) == 2
    assert "must be an archive of journals" in capsys.readouterr().err
    (folder / ARCHIVE).unlink()
    empty = folder / "empty"
    empty.mkdir()
    assert main(["pack", str(empty)]) == 2
    assert "must hold journals" in capsys.readouterr().err


def test_an_archive_s_names_lead_nowhere_else(tmp_path: Path) -> None:
    evil = tmp_path / "evil.jsonl"
    evil.write_text('{"a": 1}\n')
    folder = tmp_path / "results"
    folder.mkdir()
    with tarfile.open(folder / ARCHIVE, "w:xz") as tar:
        tar.add(evil, "../outside.jsonl")
    assert list(journals(folder)) == []
    assert unpack(folder) == 0
    assert not (tmp_path / "outside.jsonl").exists()
