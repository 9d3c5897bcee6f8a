"""Noise in files: ``method.noise_std``, ``tell --std``, several values, a column ``std``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fitbo.cli import main
from tests.studies import load_study, rows, run, study

NOISY = """\
def f(a, n, c):
    return {"value": a + 0.1 * n, "std": 0.01 * n}
"""


def by_hand(tmp_path: Path, text: str = "") -> Path:
    return study(tmp_path, text, objective="")


def test_what_is_told_is_in_the_journal_and_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(by_hand(tmp_path, "method: {samples: 20, noise_std: 0.2}\n"))
    points = ["a=0.1 n=2 c=red", "a=0.5 n=3 c=red", "a=0.9 n=4 c=blue"]
    for i, point in enumerate(points):
        more = [["1.5", "--std", "0.3"], ["1.0", "2.0", "-1e-1"], ["0.25"]][i]
        assert main(["tell", path, "--set", *point.split(), "--value", *more]) == 0
    assert "1.5 ± 0.3" in capsys.readouterr().out
    told = rows(tmp_path, "told")
    assert [row.get("std") for row in told] == [0.3, pytest.approx(0.2 / 3**0.5), None]
    assert told[1]["values"] == [1.0, 2.0, -0.1]
    assert told[1]["value"] == pytest.approx(2.9 / 3)
    assert main(["status", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["noise"]["std"] == 0.2
    assert main(["status", path]) == 0
    assert "std 0.2, stated, beside what 2 values state" in capsys.readouterr().out
    # The same value with another std is a correction; with the same, as it was.
    assert main(["tell", path, "--id", "1", "--value", "1.5", "--std", "0.3"]) == 0
    assert "as it was" in capsys.readouterr().out
    assert main(["tell", path, "--id", "1", "--value", "1.5", "--std", "0.4"]) == 0
    assert rows(tmp_path, "corrected")[0]["std"] == 0.4
    assert main(["export", path]) == 0
    header, first, *_ = capsys.readouterr().out.split("corrected")[-1].split("\n", 1)[1].split("\n")
    assert header == "id,a,n,c,value,std,state,reason,seconds,source"
    assert first.startswith("1,0.1,2,red,1.5,0.4,told")


def test_a_column_of_stds_is_taken_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(by_hand(tmp_path))
    table = tmp_path / "data.csv"
    table.write_text("a,n,c,value,std\n0.1,2,red,1.0,0.3\n0.2,2,red,1.1,\n")
    assert main(["import", path, str(table)]) == 0
    assert [row.get("std") for row in rows(tmp_path, "told")] == [0.3, None]
    table.write_text("a,n,c,value,std\n0.3,2,red,1.0,-0.3\n0.4,2,red,1.1,wide\n")
    assert main(["import", path, str(table)]) == 2
    said = capsys.readouterr().err
    assert "data.csv:2: std must be finite and at least 0, got -0.3" in said
    assert "data.csv:3: std must be a number, got 'wide'" in said
    assert len(rows(tmp_path, "told")) == 2


def test_an_objective_that_states_its_std_runs_and_resumes_to_the_bit(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    for folder in (whole, part):
        folder.mkdir()
        path = study(folder)
        (folder / "model.py").write_text(NOISY)
    run(load_study(whole / "try.yaml"))
    text = (part / "try.yaml").read_text()
    path = part / "try.yaml"
    for budget in (6, 7, 8):
        path.write_text(text.replace("budget: 8", f"budget: {budget}"))
        run(load_study(path))
    told = rows(whole, "told")
    assert all(row["std"] == pytest.approx(0.01 * row["point"]["n"]) for row in told)
    assert [row["point"] for row in rows(part, "told")] == [row["point"] for row in told]


def test_a_std_in_a_deterministic_study_costs_no_value(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = study(tmp_path, "method: {samples: 20, deterministic: true}\n")
    (tmp_path / "model.py").write_text(NOISY)
    run(load_study(path))
    assert len(rows(tmp_path, "told")) == 8
    assert "is ignored: deterministic" in caplog.text
    assert main(["tell", str(path), "--id", "1", "--value", "1.5", "--std", "1"]) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("method: {noise_std: 0}\n", "method.noise_std"),
        ("method: {noise_std: wide}\n", "method.noise_std"),
        ("method: {noise_std: 0.1, deterministic: true}\n", "noise_std: must be left out"),
        ("noise_std: 0.1\n", "a known noise of the objective is method.noise_std"),
    ],
)
def test_a_bad_key_is_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    assert main(["validate", str(by_hand(tmp_path, text))]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--value", "1", "--std", "-1"], "std must be finite and at least 0"),
        (["--value", "1", "2", "--std", "1"], "--std must be left out beside several"),
        (["--failed", "--std", "1"], "--std must be left out beside --failed"),
        (["--value", "1", "--constraints", "hot=3"], "unknown name 'hot'; the study has none"),
    ],
)
def test_a_bad_argument_is_one_error_and_makes_no_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    path = by_hand(tmp_path)
    assert main(["tell", str(path), "--set", "a=0.1", "n=2", "c=red", *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "results").exists()
