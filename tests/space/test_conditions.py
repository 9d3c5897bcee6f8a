"""Parameters that exist under a condition: absent from points, and nothing to the model."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fitbo
from fitbo import Categorical, Integer, Real, Settings, Space, Study
from fitbo.cli import main
from fitbo.config.campaign import load, loads
from fitbo.decode import ConfigError
from fitbo.report.write import write_report
from fitbo.search.candidates import Inside, clouds_about, neighbours
from fitbo.search.mixed import first_points, maximise
from tests.studies import rows, run, study

SMALL: dict[str, Any] = {"n_samples": 20, "min_burn_in": 4, "max_burn_in": 40}
KINDS = {
    "rate": Real(1e-4, 1, log=True),
    "momentum": Real(0, 1, when="optimiser == 'sgd'"),
    "optimiser": Categorical(["adam", "sgd", "lbfgs"]),
    "steps": Integer(1, 9, when="optimiser != 'adam'"),
    "decay": Categorical(["cosine", "linear", "none"], when="momentum > 0.5 and steps >= 2"),
}
SPACE = Space(KINDS, ["momentum + rate <= 1.2"])


def draws(n: int = 300, space: Space = SPACE) -> np.ndarray:
    return space.place(np.random.default_rng(0).random((n, len(space.names))))


def wanted(point: dict[str, Any]) -> set[str]:
    """The names that the point should have, by hand."""
    names = {"rate", "optimiser"}
    names |= {"momentum"} if point["optimiser"] == "sgd" else set()
    names |= {"steps"} if point["optimiser"] != "adam" else set()
    both = point["optimiser"] == "sgd" and point["momentum"] > 0.5 and point["steps"] >= 2
    return names | ({"decay"} if both else set())


def test_points_have_what_exists_and_nothing_else() -> None:
    points = SPACE.from_cube(draws())
    assert {frozenset(point) for point in points} > {frozenset({"rate", "optimiser"})}
    for point in points:
        assert set(point) == wanted(point)


def test_the_cube_and_the_points_are_one_to_one() -> None:
    U = draws()
    points = SPACE.from_cube(U)
    np.testing.assert_allclose(SPACE.to_cube(points), U, atol=1e-12)
    assert np.array_equal(SPACE.snap(U), U)
    assert SPACE.plain_values(points[0]) == points[0]
    rough = np.random.default_rng(1).random(U.shape)
    assert SPACE.from_cube(SPACE.snap(rough)) == SPACE.from_cube(rough)
    assert pickle.loads(pickle.dumps(SPACE)) == SPACE  # noqa: S301


def test_what_does_not_exist_makes_no_difference_to_the_model() -> None:
    adam = draws()[[p["optimiser"] == "adam" for p in SPACE.from_cube(draws())]]
    others = [
        i for i, c in enumerate(SPACE.columns_of) if SPACE.names[i] not in ("rate", "optimiser")
    ]
    for i in others:
        assert len(np.unique(adam[:, SPACE.columns_of[i]], axis=0)) == 1
    noisy = adam.copy()
    for i in others:
        noisy[:, SPACE.columns_of[i]] = 0.9
    assert np.array_equal(SPACE.snap(noisy), adam)


def test_a_constraint_on_what_does_not_exist_says_nothing() -> None:
    inside = {"rate": 0.9, "optimiser": "adam"}
    SPACE.check(inside)
    with pytest.raises(ValueError, match="does not satisfy"):
        SPACE.check({"rate": 0.9, "optimiser": "sgd", "momentum": 0.4, "steps": 1})
    U = draws()
    good = SPACE.feasible(U)
    for point, ok in zip(SPACE.from_cube(U), good, strict=True):
        assert ok == (point.get("momentum", 0) + point["rate"] <= 1.2)
    assert not good.all()


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"rate": 0.1, "optimiser": "sgd", "steps": 1}, "has no momentum, which exists when"),
        ({"rate": 0.1, "optimiser": "adam", "steps": 1}, "steps must be left out: it only exists"),
        ({"rate": 0.1}, "the point has no optimiser"),
        ({"rate": 0.1, "optimiser": "rms"}, "optimiser: it must be one of"),
        (
            {"rate": 0.1, "optimiser": "sgd", "momentum": 0.9, "steps": 3},
            "has no decay, which exists when 'momentum > 0.5 and steps >= 2'",
        ),
    ],
)
def test_a_point_that_is_not_one_is_refused(point: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SPACE.check(point)
    assert not SPACE.contains(point)


def test_values_in_order_have_none_for_what_does_not_exist() -> None:
    u = SPACE.check([0.1, None, "adam", None, None])
    assert np.array_equal(u, SPACE.check({"rate": 0.1, "optimiser": "adam"}))


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"a": Real(0, 1, when="b > 0")}, "a: when 'b > 0' cannot use 'b': the parameters are"),
        ({"a": Real(0, 1, when="a > 0"), "b": (0, 1)}, "a: when 'a > 0' cannot use 'a'"),
        (
            {"a": Real(0, 1, when="b > 0"), "b": Real(0, 1, when="a > 0")},
            "the conditions of a, b depend on one another",
        ),
        ({"a": Real(0, 1, when="c == 'z'"), "c": Categorical(["x"])}, "c is one of"),
        ({"a": Real(0, 1, when="b +"), "b": (0, 1)}, "a: when 'b \\+' is not a valid expression"),
        ({"a": Real(0, 1, when="__import__('os')"), "b": (0, 1)}, "a comparison"),
    ],
)
def test_a_wrong_condition_is_one_clear_error(kinds: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Space(kinds)


def test_a_condition_must_be_text_and_needs_names() -> None:
    for wrong in ("", 3, ["a"]):
        with pytest.raises(ValueError, match="when must be an expression"):
            Categorical(["a", "b"], when=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="when needs names"):
        Space([Real(0, 1), Real(0, 1, when="x0 > 0.5")])


def test_a_finite_space_counts_each_point_once() -> None:
    kinds = {"c": Categorical(["x", "y"]), "n": Integer(1, 3, when="c == 'y'")}
    space = Space(kinds)
    assert space.from_cube(space.points) == [
        {"c": "x"},
        {"c": "y", "n": 1},
        {"c": "y", "n": 2},
        {"c": "y", "n": 3},
    ]
    mine = Study(space, Settings(n_initial=1, **SMALL))
    for _ in range(4):
        (point,) = mine.ask()
        mine.tell(point, float(point.get("n", 0)))
    with pytest.raises(fitbo.Exhausted, match="each of its 4 points"):
        mine.ask()


def test_every_candidate_is_a_point_of_the_space() -> None:
    rng, good = np.random.default_rng(0), draws(3)
    inside = Inside(SPACE)
    for U in (neighbours(SPACE, good)[0], inside.kept(clouds_about(SPACE, good, 200, rng))):
        assert np.array_equal(SPACE.settle(U), U)
    changed = inside.kept(clouds_about(SPACE, good, 400, rng))
    awake = SPACE.active(changed)[:, 1]
    assert len(np.unique(changed[awake, 1])) > 10, "what comes into being has many values"
    for i in range(6):
        u = first_points(SPACE, "sobol", 6, i, np.empty((0, SPACE.dim)), [0, 0])
        assert set(SPACE.from_cube(u)) == wanted(SPACE.from_cube(u))


def test_the_search_moves_only_what_exists() -> None:
    class Peak:
        def __call__(self, U: np.ndarray) -> np.ndarray:
            return -((U - 0.8) ** 2).sum(1)

        def value_and_grad(self, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return self(U), -2 * (U - 0.8)

    found = maximise(Peak(), SPACE, np.random.default_rng(0))
    assert np.array_equal(SPACE.settle(found.x[None])[0], found.x)
    point = SPACE.from_cube(found.x)
    assert set(point) == wanted(point)


def conditional(p: dict[str, Any]) -> float:
    if p["optimiser"] == "sgd":
        return float((p["momentum"] - 0.7) ** 2 + (np.log10(p["rate"]) + 2) ** 2)
    return float(0.4 + (np.log10(p["rate"]) + 3) ** 2 + 0.01 * p.get("steps", 0))


def test_a_study_finds_the_best_branch_and_its_parameters() -> None:
    kinds = {k: v for k, v in KINDS.items() if k != "decay"}
    found = fitbo.minimize(conditional, kinds, n_calls=32, n_samples=50, seed=1)
    assert found.x["optimiser"] == "sgd"
    assert found.x["momentum"] == pytest.approx(0.7, abs=0.1)
    assert all("momentum" not in x for x in found.x_iters if x["optimiser"] != "sgd")
    for kind in ("progress", "slices", "dependence"):
        assert found.plot(kind).axes


YAML = """\
space:
  optimiser: {type: categorical, choices: [adam, sgd]}
  rate: {type: real, low: 0.0001, high: 1, log: true}
  momentum: {type: real, low: 0, high: 1, when: "optimiser == 'sgd'"}
"""
FUNCTION = (
    "def f(optimiser, rate, momentum=None):\n    return rate if momentum is None else momentum\n"
)
PYTHON = 'objective: {python: "./model.py:f"}\n'
SHELL = """\
objective:
  command: [./sim.sh, "{optimiser}", "--rate={rate}", "--momentum={momentum}"]
  env: {MOMENTUM: "{momentum}"}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = study(tmp_path, "", PYTHON, YAML)
    (tmp_path / "model.py").write_text(FUNCTION)
    return path


def test_a_file_with_a_condition_runs_resumes_reports_and_travels(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (config,) = load(file).studies()
    run(config)
    points = [row["point"] for row in rows(tmp_path, "told")]
    assert {len(p) for p in points} == {2, 3}
    assert all(("momentum" in p) == (p["optimiser"] == "sgd") for p in points)
    assert write_report([config.directory]).exists()
    assert main(["status", str(file)]) == 0
    table = tmp_path / "out.csv"
    assert main(["export", str(file), str(table)]) == 0
    other = tmp_path / "other.yaml"
    other.write_text(file.read_text().replace("results", "elsewhere"))
    capsys.readouterr()
    assert main(["import", str(other), str(table)]) == 0
    assert capsys.readouterr().out == "8 imported\n"
    assert main(["import", str(other), str(table)]) == 0
    assert "8 were there already" in capsys.readouterr().out


def test_the_shell_takes_a_point_without_what_does_not_exist(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", str(file), "-n", "4"]) == 0
    assert main(["tell", str(file), "--set", "optimiser=adam", "rate=0.1", "--value", "1"]) == 0
    capsys.readouterr()
    wrong = ["--set", "optimiser=adam", "rate=0.1", "momentum=0.5", "--value", "1"]
    assert main(["tell", str(file), *wrong]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "momentum must be left out: it only exists when" in shown


def test_a_program_is_not_given_what_does_not_exist(tmp_path: Path) -> None:
    path = study(tmp_path, "", SHELL, YAML)
    program = '#!/bin/sh\necho "$# ${MOMENTUM-none}" >> "$0.calls"\necho 1.5\n'
    (tmp_path / "sim.sh").write_text(program)
    (tmp_path / "sim.sh").chmod(0o700)
    run(load(path).studies()[0])
    calls = (tmp_path / "sim.sh.calls").read_text().splitlines()
    for row, call in zip(rows(tmp_path, "told"), calls, strict=True):
        momentum = row["point"].get("momentum")
        assert call == ("2 none" if momentum is None else f"3 {momentum}")


def test_a_function_must_do_without_what_does_not_exist(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.py").write_text("def f(optimiser, rate, momentum):\n    return rate\n")
    assert main(["validate", str(file)]) == 2
    assert "missing a required argument: 'momentum'" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("optimser == 'sgd'", "space.momentum.when: .*cannot use 'optimser'"),
        ("optimiser == 'sdg'", "space.momentum.when: .*optimiser is one of"),
        ("1 + 1", "space.momentum.when: .*a comparison"),
    ],
)
def test_a_wrong_condition_in_a_file_names_its_key_and_line(when: str, message: str) -> None:
    text = YAML.replace("optimiser == 'sgd'", when) + "budget: 4\n"
    with pytest.raises(ConfigError, match=message) as caught:
        loads(text, "try.yaml")
    assert "try.yaml:4" in str(caught.value)


def test_a_call_with_conditions_has_a_journal(tmp_path: Path) -> None:
    kinds = {k: v for k, v in KINDS.items() if k != "decay"}
    path = tmp_path / "run.jsonl"
    first = fitbo.minimize(conditional, kinds, n_calls=5, journal=path, **SMALL)
    again = fitbo.minimize(conditional, kinds, n_calls=9, journal=path, **SMALL)
    whole = fitbo.minimize(conditional, kinds, n_calls=9, **SMALL)
    assert again.x_iters == whole.x_iters
    assert again.x_iters[:5] == first.x_iters
