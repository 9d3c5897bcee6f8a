"""The terminal of one's own study, at 45 columns."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from fitbo.cli.display import print_status
from fitbo.config.campaign import load
from fitbo.runs.standing import summarise
from fitbo.runs.study import run as run_study
from fitbo.screen import follow
from tests.studies import study

SLOW = 'objective: {python: "./model.py:f", kwargs: {sleep: 0.4}}\n'


@pytest.mark.parametrize("width", [45, 80])
def test_a_study_and_its_summary_fit_the_terminal(tmp_path: Path, width: int) -> None:
    shown = Console(
        file=io.StringIO(), width=width, force_terminal=True, color_system=None, record=True
    )
    campaign = load(study(tmp_path, "", SLOW))
    with follow(campaign.budget, True, title=campaign.name, console=shown) as following:
        notebook = run_study(campaign.studies()[0], watch=following.ended, begun=following.begun)
    assert notebook is not None
    text = shown.export_text(clear=True)
    assert f"[{campaign.budget}/{campaign.budget}]" in text
    assert f"{campaign.budget - 1}/{campaign.budget}" in text
    assert re.search(r"\n#\d \d s  a=0\.\d+ n=\d c=\w+", text), text
    print_status(shown, campaign, summarise(notebook))
    lines = shown.export_text().splitlines()
    assert all(len(line.rstrip()) <= width for line in lines), lines
    for wanted in (
        "best observed",
        "recommended",
        "predicted",
        "minimum",
        "still to gain",
        "what matters",
    ):
        assert any(wanted in line for line in lines)


def test_a_study_that_is_continued_begins_where_it_was(tmp_path: Path) -> None:
    first = load(study(tmp_path, "", SLOW), ["budget=5"])
    run_study(first.studies()[0])
    campaign = load(study(tmp_path, "", SLOW), ["budget=6"])
    shown = Console(file=io.StringIO(), width=45, force_terminal=True, record=True)
    with follow(6, True, title="try", console=shown) as following:
        run_study(campaign.studies()[0], watch=following.ended, begun=following.begun)
    assert re.search(r" 5/6\n", shown.export_text())
