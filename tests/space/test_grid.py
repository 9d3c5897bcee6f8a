"""Reals on a grid: values that a bench can set, searched as what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fitbo
from fitbo import Integer, Real, Settings, Space, Study
from fitbo.cli import main
from fitbo.config.campaign import load, loads
from fitbo.decode import ConfigError
from fitbo.records.notebook import open_notebook
from fitbo.search.candidates import exhausted
from tests.studies import study

SMALL: dict[str, Any] = {"n_samples": 20, "min_burn_in": 4, "max_burn_in": 40}


@pytest.mark.parametrize(
    ("real", "values"),
    [
        (Real(0, 0.3, step=0.1), [0.0, 0.1, 0.2, 0.3]),
        (Real(-1, 1, step=0.75), [-1.0, -0.25, 0.5]),
        (Real(0.05, 0.3, step=0.1), [0.05, 0.15, 0.25]),
        (Real(1e-7, 3e-7, step=1e-7), [1e-7, 2e-7, 3e-7]),
        (Real(1e6, 3e6, step=1e6), [1e6, 2e6, 3e6]),
    ],
)
def test_values_have_the_digits_that_they_are_written_with(real: Real, values: list[float]) -> None:
    assert real.decode(real.codes).tolist() == values
    assert real.size == len(values)
    assert real.last == values[-1]
    for code, value in zip(real.codes, values, strict=True):
        assert np.array_equal(real.encode(value), code)
        inside = min(value + 1e-9 * (real.step or 0), real.high)
        assert real.plain(inside) == value
    assert np.array_equal(real.snap(real.codes), real.codes)
    placed = real.decode(real.place(np.linspace(0, 1 - 1e-9, 60 * len(values))))
    _, counts = np.unique(placed, return_counts=True)
    assert counts.tolist() == [60] * len(values)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Real(0, 1, step=0), "step must be above 0 and at most high - low = 1, got 0"),
        (lambda: Real(0, 1, step=-0.1), "step must be above 0"),
        (lambda: Real(0, 1, step=2), "step must be above 0 and at most high - low = 1, got 2"),
        (lambda: Real(1, 9, log=True, step=1), "step must be left out with log, got 1"),
        (lambda: Real(0, 1, step="a"), "step must be a number, got 'a'"),  # type: ignore[arg-type]
        (lambda: Real(0, 1, step=float("nan")), "step must be finite"),
        (lambda: Real(0, 1, step=1e-17), "at most 2\\^53 values"),
        (lambda: Real(0, 1, step=0.4).encode(0.5), "one of 0, 0.4, ..., 0.8, got 0.5: .* is 0.4"),
        (lambda: Real(0, 1, step=0.4).encode(1.0), "got 1: the nearest is 0.8"),
    ],
)
def test_a_wrong_step_or_value_is_one_clear_error(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_study_asks_for_values_of_the_grid_and_ends_with_it() -> None:
    space = Space({"bar": Real(0, 2, step=0.5), "celsius": Real(20, 80), "n": Integer(1, 3)})
    assert not space.plain
    assert space.continuous.tolist() == [False, True, False]
    found = fitbo.minimize(
        lambda p: (p["bar"] - 1.5) ** 2 + (p["celsius"] / 50 - 1) ** 2 + (p["n"] - 2) ** 2,
        space,
        n_calls=24,
        **SMALL,
    )
    assert {point["bar"] for point in found.x_iters} <= {0.0, 0.5, 1.0, 1.5, 2.0}
    assert found.x["bar"] == 1.5
    assert found.x["celsius"] == pytest.approx(50, abs=5)
    grid = Study(Space([Real(0, 1, step=0.5), Real(0, 1, step=0.25)]), Settings(**SMALL))
    seen = [tuple(grid.ask()[0]) for _ in range(3)]
    for x in seen:
        grid.tell(x, sum(x))
    for _ in range(12):
        x = grid.ask()[0]
        seen.append(tuple(x))
        grid.tell(x, sum(x))
    assert len(set(seen)) == 15
    assert exhausted(grid.space, grid.taken)
    with pytest.raises(fitbo.Exhausted, match="each of its 15 points"):
        grid.ask()


SPACE = (
    "space:\n  a: {type: real, low: 0, high: 1, step: 0.05}\n  b: {type: real, low: 0, high: 100}\n"
)


def test_a_file_has_a_grid_and_the_shell_prints_the_digits_that_matter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = study(tmp_path, "", "", SPACE)
    assert main(["ask", str(path)]) == 0
    out = capsys.readouterr().out
    number, a, b = out.splitlines()[1].split()
    assert len(a) <= 4
    assert len(b.replace(".", "").lstrip("0")) <= 6
    assert main(["tell", str(path), "--set", f"a={a}", f"b={b}", "--value", "1"]) == 0
    assert capsys.readouterr().out == f"{number}: 1; 0 pending\n"
    assert main(["tell", str(path), "--set", "a=0.51", "b=1", "--value", "1"]) == 2
    assert "a: it must be one of 0, 0.05, ..., 1, got 0.51" in " ".join(
        capsys.readouterr().err.split()
    )


def test_a_number_that_is_shown_like_two_pending_ones_is_a_new_point(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = study(tmp_path, "", "", SPACE)
    (config,) = load(path).studies()
    with open_notebook(config) as notebook:
        for b in (1.00000001, 1.00000002):
            notebook.expect(notebook.entry_of({"a": 0.5, "b": b}, "ask"))
    assert main(["tell", str(path), "--set", "a=0.5", "b=1", "--value", "1"]) == 0
    assert "3: 1, a point that was not asked for; 2 pending" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("step", "message"),
    [("0", "number from 1e-09"), ("2", "step: must be above 0 and at most"), ("a", "got 'a'")],
)
def test_a_wrong_step_in_a_file_names_its_line(step: str, message: str) -> None:
    text = f"space:\n  a: {{type: real, low: 0, high: 1, step: {step}}}\nbudget: 4\n"
    with pytest.raises(ConfigError, match=message) as caught:
        loads(text, "try.yaml")
    assert "try.yaml:2" in str(caught.value)


def test_a_space_without_steps_is_described_as_before(tmp_path: Path) -> None:
    (config,) = load(study(tmp_path)).studies()
    a = config.described()["problem"]["space"]["a"]
    assert a == {"type": "real", "low": 0.0, "high": 1.0, "log": False}
