"""A bug is not a failure region: it stops the run, says what it is, and can be corrected."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fitbo
from fitbo.cli import main
from fitbo.config.campaign import load
from fitbo.records.journal import ConfigChanged
from fitbo.records.notebook import read_notebook
from fitbo.runs.loop import NothingWorks
from tests.studies import SPACE, rows, run, study

SMALL: dict[str, Any] = {"n_samples": 20, "min_burn_in": 4, "max_burn_in": 40}
PRINTS = """\
#!/bin/sh
printf '{"extraction": 3, "loss": %s, "fit": {"rms": 2}}' "$1"
"""


def command(key: str, program: str = "./sim.sh") -> str:
    arguments = '"{a}", "{n}", "{c}"'
    return (
        f"objective: {{command: [{program}, {arguments}], value: {{stdout: json, key: {key}}}}}\n"
    )


def shell(tmp_path: Path, key: str, program: str = "./sim.sh", text: str = "") -> Path:
    (tmp_path / "sim.sh").write_text(PRINTS)
    (tmp_path / "sim.sh").chmod(0o700)
    return study(tmp_path, text, command(key, program))


def broken(x: Any) -> float:
    return {"loss": 1.0}["los"]


def test_three_failures_at_the_start_end_the_call_with_their_traceback() -> None:
    found = fitbo.minimize(broken, [(0, 1)], n_calls=20, **SMALL)
    assert (found.success, found.nfev, found.x) == (False, 3, None)
    assert found.message.startswith("all of the first 3 evaluations failed, the last by KeyError")
    assert 'return {"loss": 1.0}["los"]' in found.traceback
    assert "KeyError: 'los'" in str(found)
    assert len(str(found).splitlines()) <= 10


@pytest.mark.parametrize("fails", [lambda n: n < 2, lambda n: n > 0])
def test_failures_beside_a_value_do_not_end_it(fails: Callable[[int], bool]) -> None:
    calls = []

    def function(x: Any) -> float:
        calls.append(x)
        if fails(len(calls) - 1):
            raise RuntimeError("here")
        return 1.0 + float(x[0])

    found = fitbo.minimize(function, [(0, 1)] * 2, n_calls=8, **SMALL)
    assert found.nfev == 8
    known = fitbo.minimize(broken, [(0, 1)], n_calls=5, x0=[0.5], y0=[1.0], **SMALL)
    assert known.nfev == 5, "a value was known"


def test_with_several_workers_each_has_had_one_failure() -> None:
    with ThreadPoolExecutor(5) as pool:
        found = fitbo.minimize(
            lambda x: time.sleep(0.05) or broken(x),
            [(0, 1)],
            n_calls=30,
            executor=pool,
            n_workers=5,
            **SMALL,
        )
    assert not found.success
    assert 5 <= found.nfev <= 10


def test_a_wrong_key_lists_the_keys_and_its_correction_is_the_same_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = shell(tmp_path, "los")
    assert main(["run", str(path), "--no-report"]) == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert "stopped: all of the first 3 evaluations failed" in shown
    assert (
        "has no key 'los'; did you mean 'loss'?; its keys are 'extraction', 'loss', 'fit'" in shown
    )
    assert len(rows(tmp_path, "failed")) == 3
    path = shell(tmp_path, "loss")
    assert main(["status", str(path)]) == 0
    assert main(["run", str(path), "--no-report"]) == 0
    assert len(rows(tmp_path, "told")) == 8
    notebook = read_notebook(load(path).studies()[0])
    assert notebook.study.failures == []
    assert len(notebook.outcomes) == 8
    with pytest.raises(ConfigChanged, match=r"objective.value.key: was 'loss', is 'extraction'"):
        read_notebook(load(shell(tmp_path, "extraction")).studies()[0])


def test_a_corrected_study_asks_for_the_points_of_one_that_was_right(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.mkdir()
    wrong.mkdir()
    run(load(shell(right, "loss")).studies()[0])
    with pytest.raises(NothingWorks):
        run(load(shell(wrong, "los")).studies()[0])
    run(load(shell(wrong, "loss")).studies()[0])
    told = [[row["point"] for row in rows(folder, "told")] for folder in (right, wrong)]
    assert told[0] == told[1]


def test_a_wrong_program_may_be_corrected_but_not_the_space(tmp_path: Path) -> None:
    path = shell(tmp_path, "loss", "/bin/false")
    with pytest.raises(NothingWorks, match="all of the first 3 evaluations failed"):
        run(load(path).studies()[0])
    other = study(tmp_path, "", command("loss"), SPACE.replace("high: 9", "high: 8"))
    with pytest.raises(ConfigChanged, match=r"space.n.high: was 9, is 8"):
        run(load(other).studies()[0])
    run(load(shell(tmp_path, "loss")).studies()[0])
    assert len(rows(tmp_path, "told")) == 8


def test_a_python_function_shows_its_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = study(tmp_path, "", 'objective: {python: "./bad.py:f"}\n')
    (tmp_path / "bad.py").write_text("def f(a, n, c):\n    return a / (n - n)\n")
    assert main(["run", str(path), "--no-report"]) == 1
    shown = capsys.readouterr().err
    assert "ZeroDivisionError: float division by zero" in shown
    assert "return a / (n - n)" in shown


def test_a_program_shows_what_it_wrote_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = shell(tmp_path, "loss")
    (tmp_path / "sim.sh").write_text("#!/bin/sh\necho first >&2\necho second >&2\nexit 3\n")
    assert main(["run", str(path), "--no-report"]) == 1
    assert "first\nsecond" in capsys.readouterr().err


def test_a_region_that_failed_is_left_alone() -> None:
    """Values fall up to a wall beyond which evaluations fail: none is spent far beyond it."""
    asked: list[float] = []

    def walled(x: np.ndarray) -> float:
        asked.append(float(x[0]))
        if x[0] > 0.7:
            raise RuntimeError("burnt")
        return float(-4 * x[0] + (x[1] - 0.5) ** 2)

    found = fitbo.minimize(walled, [(0, 1)] * 2, n_calls=30, seed=2, n_samples=50)
    assert sum(x > 0.75 for x in asked[15:]) <= 2
    assert found.fun < -2.78
