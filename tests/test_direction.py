"""Maximising is minimising with the sign changed at the door, and everything shown in one's own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import optuna
import pytest
from numpy.testing import assert_array_equal

import fitbo
from fitbo import Settings, Study
from fitbo.cli import main
from fitbo.config.campaign import load, loads
from fitbo.decode import ConfigError
from fitbo.integrations.optuna import FitboSampler
from fitbo.records.notebook import read_notebook
from fitbo.report import history, slices
from fitbo.report.write import write_report
from tests.studies import rows, run, start, study

SMALL = {"n_samples": 20, "min_burn_in": 4, "max_burn_in": 40}
SQUARE = [(-1.0, 2.0), (0.0, 1.0)]
HILL = 'objective: {python: "./model.py:hill"}\ndirection: maximize\n'
MODEL = "def hill(a, n, c):\n    return 5 - (a - 0.3) ** 2 - 0.02 * (n - 4) ** 2\n"


def bowl(x: np.ndarray) -> float:
    return float((x[0] - 0.5) ** 2 + (x[1] - 0.2) ** 2 - 3)


def test_a_maximised_study_is_the_mirror_of_a_minimised_one() -> None:
    low = Study(SQUARE, Settings(**SMALL))  # type: ignore[arg-type]
    high = Study(SQUARE, Settings(**SMALL), direction="maximize")  # type: ignore[arg-type]
    for _ in range(7):
        x = low.ask()[0]
        assert_array_equal(high.ask()[0], x)
        low.tell(x, bowl(x))
        high.tell(x, -bowl(x))
    assert_array_equal(high.y, -low.y)
    assert high.best_observed[1] == -low.best_observed[1] == max(high.y)
    assert_array_equal(high.best_observed[0], low.best_observed[0])
    above, below = high.recommend(), low.recommend()
    assert_array_equal(above.x, below.x)
    assert (above.mean, above.deviation) == (-below.mean, below.deviation)
    assert_array_equal(high.eta_quantiles([0.1, 0.5]), -low.eta_quantiles([0.9, 0.5]))
    assert high.remaining() == low.remaining()


def test_maximize_in_one_call_and_its_target() -> None:
    found = fitbo.maximize(lambda x: -bowl(x), SQUARE, n_calls=30, target=2.9, **SMALL)
    assert found.fun >= 2.9
    assert found.fun == max(found.func_vals)
    assert found.nfev < 30
    assert "target of 2.9 is reached" in found.message
    assert found.fun_recommended == pytest.approx(3, abs=0.5)
    with pytest.raises(ValueError, match=r"direction must be one of .*did you mean 'maximize'\?"):
        fitbo.minimize(bowl, SQUARE, direction="maximise")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = study(tmp_path, "target: 4.95\nbudget: 20\n", HILL)
    (tmp_path / "model.py").write_text(MODEL)
    return path


def test_a_file_is_run_to_its_target_and_shown_in_its_own_sign(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (config,) = load(file).studies()
    summary = run(config)
    values = [row["value"] for row in rows(tmp_path, "told")]
    assert summary.best is not None
    assert summary.best.value == max(values) >= 4.95
    assert max(values[:-1]) < 4.95
    assert "the target of 4.95 is reached" in str(summary.stopped)
    assert main(["status", str(file)]) == 0
    shown = capsys.readouterr().out
    assert f"best observed   {max(values):.6g}" in shown
    assert re.search(r"^maximum +\S+, 90% in \[", shown, re.MULTILINE)
    assert main(["status", str(file), "--json"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["best"]["value"] == max(values)
    low, _, high = line["minimum"]
    assert low <= high
    assert high > max(values)


def test_the_report_of_a_maximised_study_has_its_best_on_top(file: Path, tmp_path: Path) -> None:
    (config,) = load(file).studies()
    run(config)
    folder = config.directory
    page = write_report([folder]).read_text()
    values = [row["value"] for row in rows(tmp_path, "told")]
    assert f"<strong>{max(values):.6g}</strong>" in page
    (found,) = history.load([folder])
    assert_array_equal(found.best, np.maximum.accumulate(values))
    (known,) = history.load([folder], {"try": 5.0})
    np.testing.assert_allclose(known.simple, 5.0 - np.maximum.accumulate(values))
    (axes,) = slices.progress_figure("x", read_notebook(config).outcomes, 2, -1.0).axes
    (best,) = [line for line in axes.lines if line.get_drawstyle() == "steps-post"]
    assert_array_equal(best.get_ydata(), np.maximum.accumulate(values))


def test_a_terminal_shows_the_highest_value(file: Path) -> None:
    process = start("run", file, "--no-report")
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    best = [
        float(line.rpartition("(best ")[2][:-1]) for line in out.splitlines() if "(best" in line
    ]
    assert best == sorted(best)
    assert best[-1] >= 4.95


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("direction: maximise\n", r"direction: expected .*got 'maximise'; did you mean 'maximize'"),
        ("direction: maximize\nminimum: 0\n", "minimum: must be left out: the direction is max"),
        ("maximum: 0\n", "maximum: must be left out: the direction is minimize"),
    ],
)
def test_a_wrong_direction_is_one_clear_error(text: str, wanted: str) -> None:
    space = "space: {a: {type: real, low: 0, high: 1}}\nbudget: 4\n"
    with pytest.raises(ConfigError, match=wanted):
        loads(space + text, "try.yaml")


def test_a_direction_belongs_to_a_black_box() -> None:
    with pytest.raises(ConfigError, match=r"direction: must be left out beside problems"):
        loads("problems: [branin]\ndirection: maximize\nbudget: 9\n")


def test_a_journal_made_before_directions_still_belongs_to_its_study(tmp_path: Path) -> None:
    (config,) = load(study(tmp_path)).studies()
    assert not {"direction", "maximum"} & set(config.described()["problem"])


def test_optuna_follows_the_direction_of_its_study() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = FitboSampler(seed=0, n_startup_trials=4, **SMALL)
    found = optuna.create_study(direction="maximize", sampler=sampler)
    found.optimize(lambda t: -((t.suggest_float("x", 0, 10) - 7) ** 2), n_trials=12)
    assert found.best_params["x"] == pytest.approx(7, abs=0.3)
