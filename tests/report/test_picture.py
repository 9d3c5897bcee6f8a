"""The 1-D picture shows the posterior that the methods shared, and what they did next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fitbo.problems import problem
from fitbo.records.journal import read
from fitbo.records.notebook import config_of
from fitbo.report.history import group, load
from fitbo.report.picture import picture_of
from tests.campaigns import campaign, complete

METHODS = [
    {"label": "MM", "entropy": "mm", "samples": 24, "deterministic": False},
    {"label": "EI", "acquisition": "ei", "samples": 24, "deterministic": False},
]
ONE: dict[str, Any] = {"problems": ["forrester"], "methods": METHODS, "initial": {"n": 4}}


def ran(output: Path, **changes: Any) -> Path:
    for study in campaign(output, **{**ONE, "budget": 5, **changes}).studies():
        complete(study)
    return output


def outcomes(path: Path) -> list[dict[str, Any]]:
    return [row for row in read(path).rows if row["event"] == "told"]


def test_each_method_asked_where_its_acquisition_is_largest(tmp_path: Path) -> None:
    """The curve is made from the journal's header; the point is the journal's own."""
    (methods,) = group(load([ran(tmp_path)])).values()
    drawn = picture_of(methods)
    assert drawn is not None
    picture, curves, normalise = drawn
    told = outcomes(campaign(tmp_path, **ONE).studies()[0].journal)
    assert picture.X.tolist() == [row["point"]["x0"] for row in told[:4]]
    assert picture.y.tolist() == [row["value"] for row in told[:4]]
    forrester = problem("forrester")
    assert picture.truth[100] == forrester(picture.x[100:101])
    assert {curve.label for curve in curves} == {"MM", "EI"}
    for curve in curves:
        (run,) = methods[curve.label]
        assert curve.x_next == outcomes(run.path)[4]["point"]["x0"]
        assert abs(picture.x[np.argmax(curve.alpha)] - curve.x_next) < 0.005
    assert normalise  # two different acquisitions have no scale in common


def test_an_acquisition_about_the_minimum_has_its_curve(tmp_path: Path) -> None:
    """By the draws of f* that chose the point."""
    methods = [
        {"acquisition": name, "samples": 24, "deterministic": False}
        for name in ("remaining", "mes", "jes")
    ]
    methods.append(methods[0] | {"label": "first-rung", "moments": 1})
    (runs,) = group(load([ran(tmp_path, methods=methods)])).values()
    drawn = picture_of(runs)
    assert drawn is not None
    assert len(drawn.curves) == 4
    for curve in drawn.curves:
        assert abs(drawn.picture.x[np.argmax(curve.alpha)] - curve.x_next) < 0.005


def test_there_is_no_picture_of_two_dimensions_or_of_a_design_alone(tmp_path: Path) -> None:
    for name, changes in (("a", {"problems": ["branin"]}), ("b", {"budget": 4})):
        (methods,) = group(load([ran(tmp_path / name, **changes)])).values()
        assert picture_of(methods) is None


def test_there_is_no_picture_by_settings_that_are_not_ours(tmp_path: Path) -> None:
    """A journal of another version is reported all the same."""
    (methods,) = group(load([ran(tmp_path)])).values()
    path = methods["MM"][0].path
    path.write_text(path.read_text().replace('"rule": ', '"forgotten": 2, "rule": ', 1))
    assert picture_of(methods) is None


def test_there_is_no_picture_of_two_designs(tmp_path: Path) -> None:
    ran(tmp_path / "a", methods=METHODS[:1])
    ran(tmp_path / "b", methods=METHODS[:1], initial={"n": 3})
    (methods,) = group(load([tmp_path])).values()
    assert len(methods) == 2
    assert picture_of(methods) is None


def test_a_header_describes_its_study(tmp_path: Path) -> None:
    problems = [{"name": "gp_draw", "dim": 1, "seed": 3}]
    original = campaign(tmp_path, **{**ONE, "problems": problems}).studies()[1]
    assert not complete(original, lambda: True)
    found = config_of(read(original.journal), original.journal)
    assert found.problem.options == original.problem.options
    assert found.problem.label == original.problem.label
    assert (found.method, found.seed) == (original.method, original.seed)
    assert found.n_initial == 4
    assert found.journal == original.journal


def test_a_peer_beside_our_methods_is_left_out(tmp_path: Path) -> None:
    """Its header names no acquisition; alone it makes no picture."""
    (methods,) = group(load([ran(tmp_path)])).values()
    peers = [
        replace(run, header={"study": {**run.header["study"], "method": {"label": "EI"}}})
        for run in methods["EI"]
    ]
    drawn = picture_of({**methods, "EI": peers})
    assert drawn is not None
    assert [curve.label for curve in drawn.curves] == ["MM"]
    assert picture_of({"EI": peers}) is None
