"""Total effects: the estimator against closed forms, and the posterior's against the truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fitbo
from fitbo import Categorical, Real, Settings, Space, Study
from fitbo.cli import main
from fitbo.config.campaign import load
from fitbo.inference.importance import importance, total_effects
from fitbo.report.write import write_report
from fitbo.space import DESIGNS
from tests.studies import run, study


def function(X: np.ndarray) -> np.ndarray:
    """Of uniform inputs: variances 1/12, 4/12 and, for the product of the centred ones, 9/144."""
    c = X - 0.5
    return X[:, 0] + 2 * X[:, 1] + 3 * c[:, 0] * c[:, 2]


def test_the_estimator_against_the_closed_form() -> None:
    V = DESIGNS["sobol"](1 << 13, 8, np.random.default_rng(0))
    A, B = V[:, :4], V[:, 4:]
    total = 1 / 12 + 4 / 12 + 9 / 144
    truth = [(1 / 12 + 9 / 144) / total, 4 / 12 / total, 9 / 144 / total, 0.0]
    found = []
    for i in range(4):
        mixed = A.copy()
        mixed[:, i] = B[:, i]
        found.append(total_effects(function(A)[:, None], function(mixed)[:, None])[0])
    assert_allclose(found, truth, atol=5e-3)


def test_a_share_is_at_most_one() -> None:
    f = np.array([[0.0], [1.0]])
    assert total_effects(f, 1 - f)[0] == 1  # (1 + 1)/2 over twice the variance of a quarter: 2
    assert total_effects(f, np.array([[0.5], [1.0]]))[0] == 0.25


def test_a_constant_function_and_no_points() -> None:
    assert total_effects(np.full((9, 2), 5.0), np.full((9, 2), 5.0)).tolist() == [0.0, 0.0]
    assert total_effects(np.empty((0, 3)), np.empty((0, 3))).tolist() == [0.0] * 3


@pytest.fixture(scope="module")
def told() -> Study:
    space = Space({"a": Real(0, 1), "b": Real(0, 1), "dummy": Real(0, 1)})
    mine = Study(space, Settings(n_samples=40, seed=1))
    for u in DESIGNS["sobol"](24, 3, np.random.default_rng(2)):
        x = dict(zip("ab", u, strict=False)) | {"dummy": u[2]}
        mine.tell(x, float(2 * u[0] + u[1] ** 2))
    return mine


def test_the_posterior_knows_what_matters(told: Study) -> None:
    found = told.importance()
    assert list(found)[:2] == ["a", "b"]
    # Variances of 2a and b^2: 4/12 and 4/45.
    a = (4 / 12) / (4 / 12 + 4 / 45)
    assert found["a"].effect == pytest.approx(a, abs=0.06)
    assert found["b"].effect == pytest.approx(1 - a, abs=0.06)
    assert found["dummy"].effect < 0.02
    for each in found.values():
        assert 0 <= each.low <= each.effect * (1 + 1e-9) + 1e-12
        assert each.low <= each.high
    assert told.importance() == found, "the same each time"


def test_maximising_changes_nothing(told: Study) -> None:
    mirrored = Study(told.space, told.settings, direction="maximize")
    for x, y in zip(told.X, told.y, strict=True):
        mirrored.tell(x, -y)
    assert mirrored.importance() == told.importance()


def test_a_parameter_matters_where_it_exists_and_points_are_feasible() -> None:
    space = Space(
        {
            "c": Categorical(["on", "off"]),
            "x": Real(0, 1, when="c == 'on'"),
            "y": Real(0, 1),
        },
        ["y <= 0.5"],
    )
    mine = Study(space, Settings(n_samples=40))
    rng = np.random.default_rng(0)
    while len(mine.y) < 30:
        (point,) = space.from_cube(space.place(rng.random((1, 3))))
        if space.contains(point):
            mine.tell(point, 4 * (point["x"] - 0.5) ** 2 if "x" in point else 3.0)
    found = importance(mine.fit(), space, np.random.default_rng(0))
    assert next(iter(found)) == "c"
    assert found["x"].effect < found["c"].effect
    assert found["y"].effect < 0.1


def test_the_result_the_shell_and_the_report_show_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = fitbo.minimize(lambda x: float(x[0]), [(0, 1)] * 2, n_calls=8, n_samples=20)
    assert next(iter(result.importance())) == "x0"
    path = study(tmp_path)
    run(load(path).studies()[0])
    assert main(["status", str(path)]) == 0
    assert "what matters    " in capsys.readouterr().out
    assert main(["status", str(path), "--json"]) == 0
    line: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert set(line["importance"]) == {"a", "n", "c"}
    assert set(line["importance"]["a"]) == {"effect", "low", "high"}
    page = write_report([tmp_path / "results" / "try"]).read_text()
    assert "What matters" in page
    assert "total effect" in page
