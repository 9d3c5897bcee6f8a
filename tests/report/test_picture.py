"""The 1-D picture shows the posterior that the methods shared, and what they did next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fitbo.report.picture
from fitbo.problems import problem
from fitbo.records.journal import read
from fitbo.report.figure_1d import AcquisitionCurve, Picture
from fitbo.report.picture import picture_figure, task_of
from fitbo.report.regret import group, load
from fitbo.runs.campaign import run_study, tasks
from tests.campaigns import campaign

METHODS = [
    {"label": "MM", "entropy": "mm", "samples": 24},
    {"label": "EI", "acquisition": "ei", "samples": 24},
]
ONE: dict[str, Any] = {"problems": ["forrester"], "methods": METHODS, "initial": {"n": 4}}


def ran(output: Path, **changes: Any) -> Path:
    for task in tasks(campaign(output, **{**ONE, "budget": 5, **changes})):
        run_study(task)
    return output


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Picture, list[AcquisitionCurve], bool]]:
    """What is given to be drawn."""
    calls: list[Any] = []
    real = fitbo.report.picture.figure_1d

    def watched(picture: Picture, curves: Any, normalise: bool) -> Any:
        calls.append((picture, list(curves), normalise))
        return real(picture, curves, normalise=normalise)

    monkeypatch.setattr(fitbo.report.picture, "figure_1d", watched)
    return calls


def test_each_method_asked_where_its_acquisition_is_largest(
    tmp_path: Path, drawn: list[tuple[Picture, list[AcquisitionCurve], bool]]
) -> None:
    """The curve is made from the journal's header; the point is the journal's own."""
    (methods,) = group(load([ran(tmp_path)])).values()
    assert picture_figure(methods) is not None
    ((picture, curves, normalise),) = drawn
    rows = read(tasks(campaign(tmp_path, **ONE))[0].path).rows
    assert picture.X.tolist() == [row["x"][0] for row in rows[:4]]
    assert picture.y.tolist() == [row["y"] for row in rows[:4]]
    forrester = problem("forrester")
    assert picture.truth[100] == forrester(picture.x[100:101])
    assert {curve.label for curve in curves} == {"MM", "EI"}
    for curve in curves:
        (run,) = methods[curve.label]
        assert curve.x_next == read(run.path).rows[4]["x"][0]
        assert abs(picture.x[np.argmax(curve.alpha)] - curve.x_next) < 0.005
    assert normalise  # two different acquisitions have no scale in common


def test_there_is_no_picture_of_two_dimensions_or_of_a_design_alone(tmp_path: Path) -> None:
    for name, changes in (("a", {"problems": ["branin"]}), ("b", {"budget": 4})):
        (methods,) = group(load([ran(tmp_path / name, **changes)])).values()
        assert picture_figure(methods) is None


def test_there_is_no_picture_by_settings_that_are_not_ours(tmp_path: Path) -> None:
    """A journal of another version is reported all the same."""
    (methods,) = group(load([ran(tmp_path)])).values()
    methods["MM"][0].header["method"]["forgotten"] = 2
    assert picture_figure(methods) is None


def test_there_is_no_picture_of_two_designs(tmp_path: Path) -> None:
    ran(tmp_path / "a", methods=METHODS[:1])
    ran(tmp_path / "b", methods=METHODS[:1], initial={"n": 3})
    (methods,) = group(load([tmp_path])).values()
    assert len(methods) == 2
    assert picture_figure(methods) is None


def test_a_header_describes_its_study(tmp_path: Path) -> None:
    original = tasks(
        campaign(tmp_path, **{**ONE, "problems": [{"name": "gp_draw", "dim": 1, "seed": 3}]})
    )[1]
    run_study(original, lambda: True)
    task = task_of(read(original.path).header)
    assert task.problem.options == original.problem.options
    assert (task.method, task.seed) == (original.method, original.seed)
    assert task.campaign.budget == original.campaign.budget
    assert task.campaign.n_initial(task.problem) == 4


def test_a_peer_beside_our_methods_is_left_out(
    tmp_path: Path, drawn: list[tuple[Picture, list[AcquisitionCurve], bool]]
) -> None:
    """Its header names no acquisition; alone it makes no picture."""
    (methods,) = group(load([ran(tmp_path)])).values()
    peers = [
        replace(run, header={**run.header, "method": {"label": "EI"}}) for run in methods["EI"]
    ]
    assert picture_figure({**methods, "EI": peers}) is not None
    ((_, curves, _),) = drawn
    assert [curve.label for curve in curves] == ["MM"]
    assert picture_figure({"EI": peers}) is None
