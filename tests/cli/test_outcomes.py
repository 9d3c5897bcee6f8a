"""Outcome constraints in files: objectives, programs, ``tell``, tables, status and report."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from fitbo.cli import main
from fitbo.report import history
from tests.studies import load_study, rows, run, study

LIMITS = 'outcome_constraints: ["heat <= 6", "load >= 0.2"]\n'
MODEL = """\
def f(a, n, c):
    gone = float("nan") if n == 9 else a
    return {"value": a - n, "constraints": {"heat": float(n), "load": gone, "more": 3}}

def misspelt(a, n, c):
    return {"value": a - n, "constraints": {"heta": float(n), "load": a}}
"""


def hot(tmp_path: Path, text: str = "", function: str = "f") -> Path:
    objective = f'objective: {{python: "./model.py:{function}"}}\n'
    path = study(tmp_path, LIMITS + text, objective)
    (tmp_path / "model.py").write_text(MODEL)
    return path


def by_hand(tmp_path: Path) -> str:
    return str(study(tmp_path, LIMITS, objective=""))


def test_a_run_keeps_what_was_measured_and_its_best_is_feasible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = hot(tmp_path)
    summary = run(load_study(path))
    told = rows(tmp_path, "told")
    assert len(told) == 8
    for row in told:
        a, n = row["point"]["a"], row["point"]["n"]
        assert row["constraints"] == {"heat": n, "load": None if n == 9 else a}
    good = [r for r in told if r["point"]["n"] <= 6 and r["point"]["a"] >= 0.2]
    assert summary.best is not None
    assert summary.best.value == min(row["value"] for row in good)
    assert summary.feasible == len(good) < 8
    assert summary.minimum is None
    assert summary.recommended is not None
    assert summary.recommended.feasible is not None
    assert main(["status", str(path)]) == 0
    said = capsys.readouterr().out
    assert f"feasible        {len(good)} of 8 values" in said
    assert "  feasible      with probability" in said
    (one,) = history.load([tmp_path / "results"])
    assert one.best[-1] == summary.best.value
    worse = [np.inf if r not in good else r["value"] for r in told]
    assert one.best.tolist() == np.minimum.accumulate(worse).tolist()
    assert main(["report", str(path)]) == 0
    page = next((tmp_path / "results").rglob("*.html")).read_text()
    assert "told, infeasible" in page
    assert "with probability" in page
    assert "Noise:" in page
    assert main(["status", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["recommended"]["feasible"] == summary.recommended.feasible


def test_a_run_resumes_to_the_bit(tmp_path: Path) -> None:
    for name, budgets in (("whole", [8]), ("part", [5, 7, 8])):
        folder = tmp_path / name
        folder.mkdir()
        text = hot(folder).read_text()
        for budget in budgets:
            (folder / "try.yaml").write_text(text.replace("budget: 8", f"budget: {budget}"))
            run(load_study(folder / "try.yaml"))
    whole, part = (rows(tmp_path / name, "told") for name in ("whole", "part"))
    assert [row["point"] for row in part] == [row["point"] for row in whole]


def test_the_target_counts_where_the_constraints_hold(tmp_path: Path) -> None:
    summary = run(load_study(hot(tmp_path, "target: -3\n")))
    told = rows(tmp_path, "told")
    below = [row for row in told if row["value"] <= -3]
    reached = [r for r in below if r["point"]["n"] <= 6 and r["point"]["a"] >= 0.2]
    if reached:
        assert told[-1] is reached[0] or told[-1] == reached[0]
        assert "target of -3 is reached" in str(summary.stopped)
    assert len(below) > len(reached)  # the first value below it, at n > 6, did not end the study


def test_a_misspelt_name_is_a_mistake_that_stops_the_run_and_loses_no_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = hot(tmp_path, function="misspelt")
    assert main(["run", str(path), "--no-report"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "there is no value of 'heat', which an outcome constraint is about" in said
    assert "did you mean 'heta'?" in said
    failed = rows(tmp_path, "failed")
    assert len(failed) == 3
    assert all(row["returned"] == row["point"]["a"] - row["point"]["n"] for row in failed)
    # Corrected, it goes on as if it had been right from the start.
    path.write_text(path.read_text().replace("misspelt", "f"))
    assert run(load_study(path)).told == 8


def test_a_program_prints_further_keys(tmp_path: Path) -> None:
    code = "import json; print(json.dumps({{'loss': {a} - {n}, 'heat': {n}, 'load': {a}}}))"
    command = json.dumps([sys.executable, "-c", code, "{c}"])
    objective = f"objective: {{command: {command}, value: {{stdout: json, key: loss}}}}\n"
    summary = run(load_study(study(tmp_path, LIMITS, objective)))
    assert summary.failed == 0
    assert summary.best is not None
    assert summary.best.constraints is not None
    assert set(summary.best.constraints) == {"heat", "load"}


def test_by_hand_and_by_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = by_hand(tmp_path)
    assert main(["ask", path]) == 0
    assert "--id 1 --value Y --constraints heat=Y load=Y" in capsys.readouterr().out
    assert main(["tell", path, "--id", "1", "--forget"]) == 0
    point = ["--set", "a=0.5", "n=8", "c=red", "--value", "-7.5"]
    assert main(["tell", path, *point, "--constraints", "heat=8", "load=0.5"]) == 0
    table = tmp_path / "data.csv"
    table.write_text("a,n,c,value,heat,load\n0.4,3,red,-2.6,3,0.4\n0.1,2,red,-1.9,2,\n")
    assert main(["import", path, str(table)]) == 0
    assert main(["status", path]) == 0
    said = capsys.readouterr().out
    assert "best observed   -2.6 at a=0.4 n=3 c=red" in said
    assert "1 of 3 values" in said
    assert main(["export", path, str(tmp_path / "out.csv")]) == 0
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "id,a,n,c,value,state,reason,seconds,source,heat,load"
    assert lines[4] == "4,0.1,2,red,-1.9,told,,,given,2.0,"
    other = tmp_path / "other"
    other.mkdir()
    assert main(["import", by_hand(other), str(tmp_path / "out.csv")]) == 0
    values = [(row["value"], row["constraints"]) for row in rows(other, "told")]
    assert values == [(row["value"], row["constraints"]) for row in rows(tmp_path, "told")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no value of 'heat'"),
        (["--constraints", "heat=8"], "no value of 'load'"),
        (["--constraints", "heat=8", "laod=1"], "unknown name 'laod'; did you mean 'load'?"),
        (["--constraints", "heat=hot", "load=1"], "constraints.heat must be a number, got 'hot'"),
        (["--constraints", "heat"], "--constraints must be NAME=VALUE"),
    ],
)
def test_a_bad_tell_is_one_error_and_makes_no_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    point = ["--set", "a=0.5", "n=8", "c=red", "--value", "-7.5"]
    assert main(["tell", by_hand(tmp_path), *point, *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "results").exists()


def test_a_table_without_the_column_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "data.csv"
    table.write_text("a,n,c,value,heat\n0.4,3,red,-2.6,3\n")
    assert main(["import", by_hand(tmp_path), str(table)]) == 2
    assert "load is missing" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ('["heat < 6"]', "outcome_constraints[0]: 'heat < 6' must be a name, <= or >="),
        ('["heat <= 6", "a <= 1"]', "must be about an outcome, got the parameter 'a'"),
        ('"heat <= 6"', "outcome_constraints"),
        ("[3]", "outcome_constraints[0]"),
    ],
)
def test_a_bad_key_is_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, said: str
) -> None:
    path = study(tmp_path, f"outcome_constraints: {key}\n", objective="")
    assert main(["validate", str(path)]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert said in text
    assert text.count("error:") == 1


def test_another_constraint_is_another_configuration_and_an_old_journal_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(by_hand(tmp_path))
    told = ["tell", str(path), "--set", "a=0.5", "n=8", "c=red", "--value", "1"]
    assert main([*told, "--constraints", "heat=8", "load=1"]) == 0
    path.write_text(path.read_text().replace("heat <= 6", "heat <= 7"))
    assert main(["status", str(path)]) == 2
    assert "outcome_constraints[0]: was" in " ".join(capsys.readouterr().err.split())
    journal = tmp_path / "results" / "try" / "study.jsonl"
    journal.unlink()
    path.write_text(path.read_text().replace(LIMITS.replace("6", "7"), ""))
    assert main(told) == 0
    assert "outcome_constraints" not in journal.read_text()  # as journals before the key are


def test_the_schema_has_the_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    text = capsys.readouterr().out
    assert '"outcome_constraints"' in text
    assert '"noise_std"' in text
