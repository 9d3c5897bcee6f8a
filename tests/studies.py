"""Study files for tests, and ``fitbo`` as a subprocess."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from fitbo.config.campaign import StudyConfig, load
from fitbo.records.notebook import Notebook
from fitbo.runs import study as runs
from fitbo.runs.standing import Summary, summarise

SPACE = """\
space:
  a: {type: real, low: 0.0, high: 1.0}
  n: {type: integer, low: 1, high: 9}
  c: {type: categorical, choices: [red, green, blue]}
"""
MODEL = """\
import os, time
from pathlib import Path

def f(a, n, c, fail=False, sleep=0.0, seed=0):
    time.sleep(sleep)
    if fail and int(1000 * a) % 3 == 0:
        raise RuntimeError(f"no good at {a}")
    return (a - 0.3) ** 2 + 0.02 * (n - 4) ** 2 + {"red": 0.0, "green": 0.1, "blue": 0.3}[c]

def kill(a, n, c):
    os._exit(9) if n > 5 else None
    return a

def note(a, n, c, folder):
    with open(Path(folder) / "calls", "a") as file:
        file.write(f"{a!r} {n} {c}\\n")
    return f(a, n, c)
"""
PYTHON = 'objective: {python: "./model.py:f"}\n'
QUICK = "method: {samples: 20, deterministic: false}\n"


def study(tmp_path: Path, text: str = "", objective: str = PYTHON, space: str = SPACE) -> Path:
    """The path of a study's file, whose results go beside it; five values are its design."""
    (tmp_path / "model.py").write_text(MODEL)
    path = tmp_path / "try.yaml"
    whole = objective + space + text
    for key, line in (
        ("budget", "budget: 8\n"),
        ("initial", "initial: {n: 5}\n"),
        ("method", QUICK),
        ("output", f"output: {tmp_path}/results\n"),
    ):
        whole += "" if f"\n{key}:" in f"\n{whole}" else line
    path.write_text(whole)
    return path


def load_study(path: Path) -> StudyConfig:
    """The study of a file of one."""
    (study,) = load(path).studies()
    return study


def loaded(tmp_path: Path, text: str = "", objective: str = PYTHON) -> StudyConfig:
    return load_study(study(tmp_path, text, objective))


def run(config: StudyConfig, **options: Any) -> Summary:
    """Run a study and say how it stands."""
    notebook = runs.run(config, **options)
    assert isinstance(notebook, Notebook)
    return summarise(notebook)


def rows(tmp_path: Path, event: str | None = None) -> list[dict[str, Any]]:
    lines = (tmp_path / "results" / "try" / "study.jsonl").read_text().splitlines()[1:]
    return [row for row in map(json.loads, lines) if event in (None, row["event"])]


def points(tmp_path: Path) -> list[dict[str, Any]]:
    return [row["point"] for row in rows(tmp_path, "asked")]


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "120",
    }


def start(*arguments: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fitbo", *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
