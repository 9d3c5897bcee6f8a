"""Inputs that nobody would give on purpose, and files that others have made."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fitbo.cli import main
from tests.studies import environment, rows, study

MODULE = (
    "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\ndef f(a, n, c): return a\n"
)


def test_validate_imports_and_with_no_import_runs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = study(tmp_path, objective='objective: {python: "./other.py:f"}\n')
    (tmp_path / "other.py").write_text(MODULE)
    assert main(["validate", "--no-import", str(path)]) == 0
    assert not (tmp_path / "ran").exists()
    assert main(["validate", str(path)]) == 0
    assert (tmp_path / "ran").exists()
    (tmp_path / "other.py").write_text("def ff(a): pass\n")
    assert main(["validate", "--no-import", str(path)]) == 2
    assert "got 'f', which is not there" in " ".join(capsys.readouterr().err.split())
    (tmp_path / "other.py").unlink()
    assert main(["validate", "--no-import", str(path)]) == 2
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "run nothing" not in capsys.readouterr().out


@pytest.mark.parametrize("count", [2, 34, 102, pytest.param(500, marks=pytest.mark.slow)])
def test_the_report_of_a_category_with_many_choices(tmp_path: Path, count: int) -> None:
    """From 34 on it ended in StopIteration."""
    choices = ", ".join(f"k{i}" for i in range(count))
    space = f"space:\n  c: {{type: categorical, choices: [{choices}]}}\n"
    space += "  a: {type: real, low: 0, high: 1}\n"
    text = "method: {acquisition: random, samples: 12}\nbudget: 4\ninitial: {n: 4}\n"
    path = study(
        tmp_path,
        text,
        'objective: {command: [echo, "{a}", "{c}"], value: {regex: "^[^ ]+"}}\n',
        space,
    )
    assert main(["run", str(path), "--quiet"]) == 0
    assert (tmp_path / "results" / "try" / "figures" / "study-slices.png").exists()


def test_a_pair_of_surrogate_escapes_is_one_character(tmp_path: Path) -> None:
    """The journal's JSON joins them: the second ask found another configuration."""
    space = 'space:\n  c: {type: categorical, choices: ["\\ud83d\\ude00", "b"]}\n'
    path = study(tmp_path, space=space)
    for _ in range(2):
        assert main(["ask", str(path)]) == 0
    assert {row["point"]["c"] for row in rows(tmp_path)} == {"😀", "b"}


def test_half_a_surrogate_pair_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = study(tmp_path, space='space:\n  c: {type: categorical, choices: ["\\ud83d", "b"]}\n')
    assert main(["ask", str(path)]) == 2
    assert "half of a surrogate pair is no character" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("a", "value"), [("1_5", "1"), ("0.5", "1_5"), ("0.5", "\u0663"), ("\u0660", "1")]
)
def test_a_number_in_a_table_is_one_as_everybody_writes_it(
    tmp_path: Path, a: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """1_5 was read as 15."""
    (tmp_path / "t.csv").write_text(f"a,n,c,value\n{a},3,red,{value}\n")
    assert main(["import", str(study(tmp_path)), str(tmp_path / "t.csv")]) == 2
    assert "must be a number, got" in capsys.readouterr().err


def test_export_sends_no_escapes_to_a_terminal(tmp_path: Path) -> None:
    space = 'space:\n  c: {type: categorical, choices: ["\\e[31mred", "b"]}\n'
    path = study(tmp_path, space=space)
    assert main(["tell", str(path), "--set", "c=\x1b[31mred", "--value", "1"]) == 0
    command = [sys.executable, "-m", "fitbo", "export", str(path)]
    whole = subprocess.run(command, env=environment(), capture_output=True, check=True).stdout
    assert b"\x1b[31mred" in whole  # a file has it as it is
    master, slave = pty.openpty()
    with subprocess.Popen(command, env=environment(), stdout=slave) as process:
        os.close(slave)
        process.wait(60)
        shown = os.read(master, 1 << 16)
    os.close(master)
    assert b"?[31mred" in shown
    assert b"\x1b" not in shown


def test_a_report_follows_no_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = study(tmp_path, "budget: 5\n")
    assert main(["run", str(path), "--quiet", "--no-report"]) == 0
    folder, precious = tmp_path / "results" / "try", tmp_path / "precious"
    precious.write_text("mine")
    (folder / "report.html").symlink_to(precious)
    (folder / "figures").mkdir()
    (folder / "figures" / "study-progress.png").symlink_to(precious)
    assert main(["report", str(folder)]) == 0
    assert precious.read_text() == "mine"
    assert not (folder / "report.html").is_symlink()
    assert not list(folder.rglob("*.part"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "figures").rename(tmp_path / "old")
    (folder / "figures").symlink_to(elsewhere)
    assert main(["report", str(folder)]) == 2
    assert "must be a folder, and is a link" in " ".join(capsys.readouterr().err.split())
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize(("command", "code"), [("schema", 141), ("list", 1)])
def test_a_reader_that_has_seen_enough_is_no_error(command: str, code: int) -> None:
    """`fitbo schema | head -3` said 'Broken pipe' and ended with 2."""
    reading, writing = os.pipe()
    process: Any = subprocess.Popen(
        [sys.executable, "-m", "fitbo", command],
        env=environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    os.close(reading)
    _, said = process.communicate(timeout=120)
    assert said == b""
    assert process.returncode == code


def test_the_schema_is_whole_for_a_reader_that_waits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["type"] == "object"
