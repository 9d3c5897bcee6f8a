"""A campaign over a user's own objectives: methods compared on a function and on a program."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from fitbo.cli import main
from fitbo.config.campaign import ConfigError, from_dict, load, to_dict
from fitbo.records.journal import read
from tests.campaigns import n_told, start, timeless, wait_for

CAMPAIGN = """\
problems:
  - label: bowl
    objective: {python: "./model.py:bowl"}
    space:
      x: {type: real, low: -1.0, high: 2.0}
      y: {type: real, low: -1.0, high: 2.0}
    minimum: 0.0
  - ./kettle.yaml
methods:
  - {label: FITBO, acquisition: fitbo, entropy: mm, samples: 12}
  - {label: EI, acquisition: ei, samples: 12}
  - random
seeds: 2
budget: 7
initial: {n: 4}
executor: {kind: processes, workers: 2}
"""
STUDY = """\
objective:
  command: [sh, ./kettle.sh, "{minutes}", "{lid}"]
space:
  minutes: {type: integer, low: 1, high: 20}
  lid: {type: categorical, choices: ["on", "off"]}
budget: 9
"""
MODEL = """\
import time


def bowl(x, y):
    time.sleep(0.02)
    return (x - 0.3) ** 2 + (y - 0.6) ** 2
"""
PROGRAM = """\
sleep 0.02
[ "$1" -gt 18 ] && { echo "boiled dry" >&2; exit 1; }
[ "$2" = on ] && echo $((($1 - 7) * ($1 - 7))) || echo $((($1 - 12) * ($1 - 12) + 5))
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The campaign's file, in a folder that is not the working directory."""
    folder = tmp_path / "lab"
    folder.mkdir()
    for name, text in (
        ("compare.yaml", CAMPAIGN),
        ("kettle.yaml", STUDY),
        ("model.py", MODEL),
        ("kettle.sh", PROGRAM),
    ):
        (folder / name).write_text(text.replace("sh, ./kettle.sh", f"sh, {folder}/kettle.sh"))
    monkeypatch.chdir(tmp_path)
    return folder / "compare.yaml"


def journals(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): timeless(path) for path in root.rglob("*.jsonl")}


def test_it_runs_resumes_after_kills_and_reports(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed twice, its journals are those of a campaign that was not, but for repetitions."""
    root = tmp_path / "results" / "compare"
    for told in (6, 40):
        process = start(["run", str(files), "--no-report"])
        try:
            wait_for(lambda told=told: sum(map(n_told, root.glob("*/*/*.jsonl"))) >= told)  # type: ignore[misc]
            os.killpg(process.pid, signal.SIGKILL)
        finally:
            process.communicate(timeout=30)
    before = {path: path.read_bytes() for path in root.rglob("*.jsonl")}
    assert 40 <= sum(map(n_told, before)) < 12 * 7
    assert main(["run", str(files)]) == 0
    out = capsys.readouterr().out
    for path, data in before.items():
        assert path.read_bytes().startswith(data[: data.rfind(b"\n") + 1])  # nothing is rewritten
    assert len(list(root.rglob("*.jsonl"))) == 2 * 3 * 2
    for path in root.rglob("*.jsonl"):
        rows = read(path).rows
        outcomes = [row for row in rows if row["event"] in ("told", "failed")]
        assert len({row["id"] for row in outcomes}) == len(outcomes) == 7
        assert rows[-1]["event"] == "stopped"

    alone = tmp_path / "alone"
    assert main(["run", str(files), "--set", f"output={alone}", "--no-report", "--quiet"]) == 0
    again = re.compile(rb'\{"event": "again", "id": \d+(, "isolated": true)?\}\n')
    once = {name: again.sub(b"", data) for name, data in journals(root).items()}
    assert once == journals(alone / "compare")

    assert "kettle" in out
    text = (root / "report.html").read_text()
    assert "<h2>bowl</h2>" in text
    assert "<h2>kettle</h2>" in text
    assert sorted(path.name for path in (root / "figures").iterdir()) == [
        "bowl-minimum.png",
        "bowl-regret.png",  # its minimum is known
        "bowl-seconds.png",
        "kettle-best.png",  # and this one's is not
        "kettle-minimum.png",
        "kettle-seconds.png",
    ]
    pages = list((root / "studies").iterdir())
    assert len(pages) == 12
    assert {f"studies/{page.name}" for page in pages} == set(
        re.findall(r'href="(studies/[^"]+)"', text)
    )
    for page in pages:
        assert {"slices", "dependence", "parallel"} <= set(
            re.findall(r'aria-label="[^"]*: (\w+)"', page.read_text())
        )


def test_status_and_export_of_a_campaign(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--set", "seeds=1", "--set", "budget=4", "--set", "methods=[random]"]
    assert main(["run", str(files), *small, "--no-report", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["status", str(files), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 12
    done = [line for line in lines if line["method"] == "RANDOM" and line["seed"] == 0]
    assert [line["told"] + line["failed"] for line in done] == [4, 4]
    assert all(line["stopped"] is None for line in lines if line not in done)
    assert main(["status", str(files)]) == 0
    assert "not begun" in capsys.readouterr().out
    assert main(["export", str(files)]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header == "problem,method,seed,id,x,y,minutes,lid,value,state,reason,seconds,source"
    assert [row.split(",")[0] for row in rows] == ["bowl"] * 4 + ["kettle"] * 4


def test_evaluations_of_each_study_may_run_side_by_side(files: Path, tmp_path: Path) -> None:
    options = ["seeds=1", "methods=[random]", "executor=serial"]
    options += ["evaluations={kind: threads, workers: 2}"]
    given = [part for option in options for part in ("--set", option)]
    assert main(["run", str(files), *given, "--no-report", "--quiet"]) == 0
    events = [row["event"] for row in read(next(tmp_path.rglob("bowl/RANDOM/0.jsonl"))).rows]
    assert events[:2] == ["asked", "asked"]


@pytest.mark.parametrize("command", ["ask", "tell", "import"])
def test_what_is_for_one_study_says_so(
    files: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {"ask": [], "tell": ["--id", "1", "--value", "1"], "import": ["data.csv"]}[command]
    assert main([command, str(files), *more]) == 2
    said = capsys.readouterr().err
    assert f"is a campaign of 12 studies, and {command} works on one" in said
    assert "a file of one study" in said


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("./kettle.yaml", "./nettle.yaml", r"compare.yaml:8: problems\[1\]: there is no file"),
        ("./kettle.yaml", "./compare.yaml", r"problems\[1\]: expected the file of one study"),
        ("low: -1.0, high: 2.0", "low: 3.0, high: 2.0", r":5: problems\[0\].space.x.low: must be"),
        (
            "    minimum: 0.0",
            "    dim: 2",
            r"problems\[0\].dim: must be left out: it is for a",
        ),
        ("    minimum: 0.0", "    name: ackley", r"problems\[0\]: expected a name or a space, got"),
        ("    space:", "    spaec:", r"problems\[0\].spaec: unknown key; did you mean 'space'"),
        ("label: bowl", "label: kettle", r"problems\[1\].label: must be unique, got 'kettle'"),
        ("model.py:bowl", "model.py:owl", r"problems\[0\].objective.python: must name a function"),
    ],
)
def test_one_clear_error_each(
    files: Path, old: str, new: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files.write_text(files.read_text().replace(old, new, 1))
    assert main(["validate", str(files)]) == 2
    said = capsys.readouterr().err.replace("\n    ", " ")
    assert re.search(expected, said), said


def test_an_included_file_keeps_the_base_that_it_states(files: Path) -> None:
    assert load(files).all_problems[1].base == str(files.parent)
    study = files.with_name("kettle.yaml")
    study.write_text(study.read_text() + "base: ./programs\n")
    assert load(files).all_problems[1].base == str(files.parent / "programs")


def test_a_campaign_of_black_boxes_is_plain_data_and_back(files: Path) -> None:
    campaign = load(files)
    assert from_dict(json.loads(json.dumps(to_dict(campaign)))) == campaign


def test_an_error_in_an_included_file_is_reported_there(files: Path) -> None:
    study = files.with_name("kettle.yaml")
    study.write_text(study.read_text().replace("low: 1,", "low: 30,"))
    with pytest.raises(ConfigError) as caught:
        load(files)
    said = str(caught.value).replace("\n    ", " ")
    assert "kettle.yaml:4: problems[1].space.minutes.low: must be below high" in said
