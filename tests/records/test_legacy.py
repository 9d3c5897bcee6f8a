"""Journals that version 0.1 wrote, kept as they were: reported, exported, and gone on with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo.cli import main
from fitbo.records.journal import read
from fitbo.records.notebook import open_notebook, read_notebook
from fitbo.report.history import load
from tests.studies import load_study

KEPT = Path(__file__).parent / "format1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(KEPT, tmp_path / "results")
    return tmp_path / "results"


def test_a_campaign_s_rows_give_the_regrets_that_they_state() -> None:
    path = KEPT / "campaign" / "forrester" / "FITBO-MM" / "0.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    (run,) = load([KEPT / "campaign"])
    assert (run.campaign, run.problem, run.method, run.seed) == (
        "fig_1d",
        "forrester",
        "FITBO-MM",
        0,
    )
    assert (run.budget, run.initial, run.complete) == (7, 6, True)
    assert_allclose(run.simple, [row["simple_regret"] for row in rows], rtol=1e-12)
    assert_allclose(run.immediate, [row["immediate_regret"] for row in rows], rtol=1e-12)
    assert_allclose(run.eta[-1], rows[-1]["eta"], atol=1e-4 * np.ptp(rows[-1]["eta"]))
    assert np.isnan(run.eta[:5]).all()
    spent = rows[-1]["seconds"]
    assert_allclose(run.seconds[-1], spent["mcmc"] + spent["search"], rtol=1e-3)


def test_both_kinds_are_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder / "campaign")]) == 0
    assert "1.1e-02" in capsys.readouterr().out
    text = (folder / "campaign" / "report.html").read_text()
    assert 'aria-label="forrester: picture"' in text
    assert main(["report", str(folder / "lab")]) == 0
    text = (folder / "lab" / "report.html").read_text()
    assert 'aria-label="lab: slices"' in text
    assert "-42" not in text


def test_both_kinds_are_exported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(folder / "lab")]) == 0
    *lines, pending = (KEPT / "lab.csv").read_text().splitlines()
    assert capsys.readouterr().out.splitlines() == lines
    assert pending.startswith("8,")
    assert main(["export", str(folder / "campaign")]) == 0
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert header == "id,x0,value,state,reason,seconds,source"
    assert first.startswith("1,")


def test_a_study_goes_on_from_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To about the point that version 0.1 asked for: another sampler of the same posterior."""
    monkeypatch.chdir(folder.parent)
    config = load_study(folder / "lab.yaml")
    assert read_notebook(config).entries[3].value == 42.0
    before = config.journal.read_bytes()
    with open_notebook(config) as book:
        entry = book.ask()
    assert entry.id == 8
    asked = (KEPT / "lab.csv").read_text().splitlines()[-1].split(",")
    assert entry.point["n"] == int(asked[2])
    assert entry.point["c"] == asked[3]
    assert entry.point["a"] == pytest.approx(float(asked[1]), abs=0.02)
    assert config.journal.read_bytes().startswith(before)
    assert read(config.journal).rows[-1]["event"] == "asked"
