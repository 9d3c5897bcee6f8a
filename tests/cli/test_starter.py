"""``fitbo new`` writes files that validate and run, of functions that it never calls."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from fitbo.cli import main
from fitbo.cli.signature import of_command, of_function
from fitbo.config.campaign import load

MODEL = '''\
from typing import Literal

def train(rate: float = 0.01, depth: int = 4, loss: Literal["square", "huber"] = "huber",
          dropout=0.3, warm: bool = False, epochs=200, tag="run", *, seed=0, alpha: float):
    """The loss of a model: # not a comment."""
    return rate + abs(depth - 5) + (loss == "square") + dropout + warm + 100 / epochs + alpha
'''
WANTED = {
    "rate": {"type": "real", "low": 1e-4, "high": 1.0, "log": True},
    "depth": {"type": "integer", "low": 1, "high": 12},
    "loss": {"type": "categorical", "choices": ["square", "huber"]},
    "dropout": {"type": "real", "low": 0.0, "high": 1.0},
    "warm": {"type": "categorical", "choices": [False, True]},
    "epochs": {"type": "integer", "low": 20, "high": 2000, "log": True},
    "alpha": {"type": "real", "low": 0.0, "high": 1.0},
}
QUICK = ["--set", "budget=16", "--quiet", "--no-report"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def proposed(text: str, folder: Path) -> dict[str, Any]:
    """What is proposed for a function of this signature."""
    (folder / "one.py").write_text(f"def f({text}): ...\n")
    return {each.name: each.keys for each in of_function("one.py:f").space}


def test_a_study_of_a_function_validates_and_runs(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", "study", "--python", "model.py:train"]) == 0
    out = capsys.readouterr().out
    assert "wrote study.yaml: study: one study of 7 parameters, 70 evaluations" in out
    assert "left at their defaults: tag" in out
    assert {each.name: each.keys for each in of_function("model.py:train").space} == WANTED
    space = load("study.yaml").space
    assert space is not None
    assert space["rate"].options == {"low": 1e-4, "high": 1.0, "log": True}
    assert main(["validate", "study.yaml"]) == 0
    assert main(["run", "study.yaml", *QUICK, "--set", "method.samples=20"]) == 0
    assert (here / "results" / "study" / "study.jsonl").exists()


def test_the_module_is_read_and_not_run(here: Path) -> None:
    text = "open('ran', 'w').close()\nimport nothing_of_this_name\n"
    (here / "model.py").write_text(text + MODEL)
    assert main(["new", "study", "--python", "model.py:train"]) == 0
    assert not (here / "ran").exists()


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("x: float = 3", {"type": "real", "low": 0.3, "high": 30.0, "log": True}),
        ("x=-2.5", {"type": "real", "low": -5.0, "high": 0.0}),
        ("x: float = 0.0", {"type": "real", "low": 0.0, "high": 1.0}),
        ("x: int", {"type": "integer", "low": 1, "high": 10}),
        ("x=0", {"type": "integer", "low": 0, "high": 10}),
        ("x=-7", {"type": "integer", "low": -14, "high": 0}),
        ("x", {"type": "real", "low": 0.0, "high": 1.0}),
        ("*, x: typing.Literal[1, 2, 4] = 1", {"type": "categorical", "choices": [1, 2, 4]}),
    ],
)
def test_ranges_follow_defaults_and_annotations(
    here: Path, text: str, keys: dict[str, Any]
) -> None:
    assert proposed(text, here) == {"x": keys}


def test_what_is_neither_a_number_nor_a_choice_keeps_its_default(here: Path) -> None:
    assert proposed("x=1.0, y=None, z='a', w=(1, 2), v=max, scratch=None", here).keys() == {"x"}
    assert of_function("one.py:f").kept == ["y", "z", "w", "v"]


def test_a_study_of_a_program_validates_and_runs(here: Path) -> None:
    program = here / "simulate.sh"
    program.write_text('#!/bin/sh\ncat "$4" > seen\necho "$1 $2 $3" >> seen\necho 0.5\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (here / "data.csv").write_text("1\n")
    (here / "files").mkdir()
    text = "./simulate.sh {rate:1e-4..1} {n:1..9} {loss:a,b} data.csv --all={rate}"
    assert main(["new", "study", "--command", text, "--output", "files/try.yaml"]) == 0
    words = ["../simulate.sh", "{rate}", "{n}", "{loss}", "{study}/../data.csv", "--all={rate}"]
    assert f"command: {json.dumps(words)}" in (here / "files" / "try.yaml").read_text()
    assert main(["validate", "files/try.yaml"]) == 0
    keys = ["--set", "objective.keep=true", "--set", "budget=3", "--quiet", "--no-report"]
    assert main(["run", "files/try.yaml", *keys]) == 0
    seen = (here / "results" / "try" / "scratch" / "0001" / "seen").read_text()
    assert seen.startswith("1\n")


def test_placeholders_and_their_hints() -> None:
    words, seen = of_command("'./my sim' {a} {b:0..0.5} {{x}} {seed} --c={c:2,3}")
    assert words == ["./my sim", "{a}", "{b}", "{{x}}", "{seed}", "--c={c}"]
    assert [(each.name, each.keys["type"]) for each in seen.space] == [
        ("a", "real"),
        ("b", "real"),
        ("c", "categorical"),
    ]
    assert seen.space[0].why.startswith("a guess")


@pytest.mark.parametrize("more", [[], ["--python", "model.py:train"]])
def test_a_campaign_validates_and_runs(here: Path, more: list[str]) -> None:
    assert main(["new", "campaign", *more]) == 0
    assert main(["validate", "campaign.yaml"]) == 0
    small = ["--set", "seeds=1", "--set", 'methods=["random"]', "--set", "executor=serial"]
    assert main(["run", "campaign.yaml", *QUICK, *small]) == 0
    assert len(list(here.glob("results/campaign/*/RANDOM/0.jsonl"))) == (1 if more else 2)


def test_a_study_by_hand_can_be_asked(here: Path) -> None:
    assert main(["new", "study"]) == 0
    assert main(["ask", "study.yaml"]) == 0


def test_no_file_is_replaced_unless_it_may_be(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "study.yaml").write_text("mine\n")
    os.symlink("nowhere", here / "link.yaml")
    assert main(["new", "study"]) == 2
    assert "study.yaml exists" in capsys.readouterr().err
    assert main(["new", "study", "--output", "link.yaml"]) == 2
    assert (here / "study.yaml").read_text() == "mine\n"
    assert main(["new", "study", "--force"]) == 0
    assert "budget: 30" in (here / "study.yaml").read_text()
    assert sorted(p.name for p in here.iterdir()) == ["link.yaml", "model.py", "study.yaml"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--python", "model.py:trian"], "must define a function trian.*did you mean 'train'"),
        (["--python", "model"], "must be FILE.py:NAME"),
        (["--python", "absent.py:f"], "No such file"),
        (["--python", "wrong.py:f"], "wrong.py must be Python, and line 1 is not"),
        (["--python", "given.py:f"], "must have a default for path"),
        (["--python", "given.py:g"], "must have a parameter that is a number or a choice"),
        (["--python", "given.py:h"], "must take its arguments by name"),
        (["--command", "./simulate"], "must mention its parameters"),
        (["--command", "./simulate 'a"], "must be words as in a shell"),
        (["--command", "./simulate {a:x..y}"], "must be a range"),
        (["--command", "./simulate {1a}"], "must be a name of letters"),
        (["--output", "study.txt"], "must end in .yaml"),
    ],
)
def test_mistakes_are_said_in_one_sentence(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    (here / "wrong.py").write_text("def f(:\n")
    (here / "given.py").write_text(
        "def f(x=1.0, *, path: str): ...\ndef g(): ...\ndef h(x, /): ...\n"
    )
    assert main(["new", "study", *arguments]) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert err.startswith("error: ")
    assert re.search(said, err), err
    assert not (here / "study.yaml").exists()
