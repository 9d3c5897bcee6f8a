"""The shell as the laboratory's notebook: run, ask, tell, status, import, export, report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fitbo.cli import main
from fitbo.cli import study as cli_study
from fitbo.config.build import build_study
from fitbo.records import notebook
from fitbo.records.journal import Writer
from fitbo.records.notebook import read_notebook
from fitbo.report.history import load as load_runs
from fitbo.study import Study
from tests.config.test_study import BLACK_BOXES
from tests.studies import PYTHON, SPACE, load_study, points, rows, run, start, study

LAB = "budget: 20\n"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "200")
    return study(tmp_path, LAB, objective="")


def fails(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    """The one error of a command that is a mistake."""
    assert main([str(argument) for argument in arguments]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ")
    assert "Traceback" not in shown.err
    return shown.err.replace("\n    ", " ")


def does(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


# --- ask and tell -----------------------------------------------------------------------------


def test_a_study_by_hand(lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = does(capsys, "ask", lab, "-n", 3)
    assert re.search(r"id +a +n +c", out)
    assert "--id 1 --value" in out
    assert len(points(tmp_path)) == 3
    asked = [json.loads(line) for line in does(capsys, "ask", lab, "-n", 2, "--json").splitlines()]
    assert [point["id"] for point in asked] == [4, 5]
    assert asked[0]["point"] == points(tmp_path)[3]

    assert does(capsys, "tell", lab, "--id", 1, "--value", "0.5") == "1: 0.5; 4 pending\n"
    second = points(tmp_path)[1]
    texts = [f"{name}={value}" for name, value in second.items()]
    assert does(capsys, "tell", lab, "--set", *texts, "--value", "-1e-3").startswith("2: -0.001;")
    assert does(capsys, "tell", lab, "--id", 3, "--failed", "spilt it") == "3: failed; 2 pending\n"
    assert does(capsys, "tell", lab, "--id", 4, "--forget").startswith("4: forgotten; 1 pending")
    out = does(capsys, "tell", lab, "--set", "a=0.25", "n=3", "c=blue", "--value", "7")
    assert out == "6: 7, a point that was not asked for; 1 pending\n"

    entries = read_notebook(load_study(lab)).entries
    assert [entry.state for entry in entries.values()] == [
        "told",
        "told",
        "failed",
        "forgotten",
        "pending",
        "told",
    ]
    assert entries[2].point == second
    assert entries[3].reason == "spilt it"
    assert entries[6].point == {"a": 0.25, "n": 3, "c": "blue"}


def test_asking_by_hand_is_asking_at_once(tmp_path: Path, lab: Path) -> None:
    """The points are those of one study, though each comes from a process of its own."""
    whole = build_study(load_study(lab))
    for value in (3.0, 1.0, 2.0, 0.5, 1.5, 0.7, 0.6):
        point = whole.ask()[0]
        whole.tell(point, value)
        assert main(["ask", str(lab)]) == 0
        number = rows(tmp_path, "asked")[-1]["id"]
        assert main(["tell", str(lab), "--id", str(number), "--value", str(value)]) == 0
        assert points(tmp_path)[-1] == point


def test_status(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing asked" in does(capsys, "status", lab)
    does(capsys, "ask", lab, "-n", 6)
    assert "6 pending" in does(capsys, "status", lab)
    for number in range(1, 6):
        does(capsys, "tell", lab, "--id", number, "--value", 6 - number)
    out = does(capsys, "status", lab)
    assert "try: 5 of 20 evaluations, 1 pending" in out
    assert re.search(r"best observed +1 at a=", out)
    assert re.search(r"predicted +\S+ ± ", out)
    assert "90% in [" in out
    data = json.loads(does(capsys, "status", lab, "--json"))
    assert (data["told"], data["failed"], len(data["pending"])) == (5, 0, 1)
    assert data["best"]["id"] == 5
    assert data["recommended"]["deviation"] > 0
    assert json.loads(does(capsys, "status", lab, "--json")) == data  # looking changes nothing
    assert data["stopped"] is None
    lab.write_text(lab.read_text() + "target: 0.5\n")
    does(capsys, "tell", lab, "--id", 6, "--value", 0.25)
    assert "stopped: the target of 0.5 is reached: 0.25" in does(capsys, "status", lab)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--set", "a=2", "n=3", "c=red", "--value", "1"], "a"),
        (["--set", "a=0.5", "n=3.5", "c=red", "--value", "1"], "n must be a whole number"),
        (["--set", "a=0.5", "n=3", "c=rde", "--value", "1"], "c must be one of red, green, blue"),
        (["--set", "a=0.5", "n=3", "c=rde", "--value", "1"], "did you mean 'red'?"),
        (["--set", "a=0.5", "n=3", "--value", "1"], "the point must have a value for c"),
        (["--set", "b=0.5", "n=3", "c=red", "--value", "1"], "there is no parameter 'b'"),
        (["--set", "a", "n=3", "c=red", "--value", "1"], "--set must be NAME=VALUE"),
        (["--set", "a=1", "a=0", "n=3", "c=red", "--value", "1"], "--set must name a once"),
        (["--set", "a=x", "n=3", "c=red", "--value", "1"], "a must be a number, got 'x'"),
        (["--set", "a=nan", "n=3", "c=red", "--value", "1"], "a"),
        (["--set", "a=0.5", "n=3", "c=red", "--value", "good"], "value must be a number"),
        (["--set", "a=0.5", "n=3", "c=red", "--value", "nan"], "value must be finite"),
        (["--id", "7", "--value", "1"], "--id must be of a point of the study, none yet, got 7"),
        (["--set", "a=0.5", "n=3", "c=red", "--forget"], "--forget must be of a point"),
    ],
)
def test_mistakes_in_telling(
    lab: Path, arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in fails(capsys, "tell", lab, *arguments)
    assert not load_study(lab).journal.exists()


def test_a_busy_notebook_is_one_clear_error(
    lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some patience, and with the command that would have been lost."""
    does(capsys, "ask", lab)
    monkeypatch.setattr(cli_study, "PATIENCE", dict.fromkeys(cli_study.PATIENCE, 0.2))
    with Writer(load_study(lab).journal):
        for arguments in (["ask", lab], ["tell", lab, "--id", 1, "--value", 2]):
            said = fails(capsys, *arguments)
            assert "is being written by another process still, after 0.2 s" in said
            assert f"give the command again, fitbo {' '.join(map(str, arguments))}" in said
        assert "1 pending" in does(capsys, "status", lab)


def test_tells_at_the_same_time_are_all_recorded(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also while an ask thinks: here a writer that is in nobody's way for long."""
    does(capsys, "ask", lab, "-n", 4)
    with Writer(load_study(lab).journal):
        tells = [start("tell", lab, "--id", n, "--value", n) for n in range(1, 5)]
        for tell in tells:
            assert tell.stderr is not None
            assert tell.stderr.readline().startswith("waiting for another process")
    for tell in tells:
        _, err = tell.communicate(timeout=60)
        assert (tell.returncode, err) == (0, "")
    assert sorted(row["value"] for row in rows(tmp_path, "told")) == [1, 2, 3, 4]


def test_nobody_is_refused_while_ask_thinks(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock is for writing; what was told meanwhile is what the point is chosen by."""
    told: list[int] = []
    real = Study.ask

    def interrupted(study: Study, n: int = 1) -> Any:
        if not told:
            point = ["a=0.5", "n=3", "c=red"]
            told.append(main(["tell", str(lab), "--set", *point, "--value", "1"]))
        return real(study, n)

    monkeypatch.setattr(Study, "ask", interrupted)
    does(capsys, "ask", lab, "-n", 2)
    assert told == [0]
    assert [row["event"] for row in rows(tmp_path)] == ["told", "asked", "asked"]
    assert [row["id"] for row in rows(tmp_path)] == [1, 2, 3]


def test_ask_replays_the_journal_once(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many values a replay is what an ask by hand costs; the same points come of it."""
    replays: list[int] = []
    real = notebook.replay

    def counted(config: Any, rows: Any, *args: Any, **options: Any) -> Study:
        replays.append(len(rows))
        return real(config, rows, *args, **options)

    for n in range(3):
        does(capsys, "tell", lab, "--set", f"a=0.{n}", "n=3", "c=red", "--value", str(n))
    monkeypatch.setattr(notebook, "replay", counted)
    does(capsys, "ask", lab)
    assert replays == [3]
    does(capsys, "ask", lab)
    points = [row["point"] for row in rows(tmp_path, "asked")]
    assert points[0] != points[1]


def test_ask_ends_though_others_write_all_the_time(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the end it thinks with the lock, and who tells waits."""
    real, said = Study.ask, []

    def interrupted(study: Study, n: int = 1) -> Any:
        point = [f"a=0.{len(said) + 1}", "n=3", "c=red"]
        said.append(main(["tell", str(lab), "--set", *point, "--value", "1"]))
        return real(study, n)

    monkeypatch.setattr(Study, "ask", interrupted)
    monkeypatch.setitem(cli_study.PATIENCE, "tell", 0.2)
    does(capsys, "ask", lab)
    assert said == [0, 0, 0, 2]
    assert [row["event"] for row in rows(tmp_path)] == ["told"] * 3 + ["asked"]


def test_what_is_told_by_hand_during_a_run_is_known_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = study(tmp_path, "budget: 4\ninitial: {n: 4}\n")
    seen: list[list[float]] = []

    def tell(study: Study) -> None:
        if not seen:
            does(capsys, "tell", path, "--set", "a=0", "n=1", "c=red", "--value", "7")
        seen.append(study.y.tolist())

    run(load_study(path), callback=tell)
    assert seen[-1][1] == 7  # after the run's first
    assert len(rows(tmp_path, "told")) == 4  # it is one of the budget
    assert [row["event"] for row in rows(tmp_path)][:4] == ["asked", "told", "told", "asked"]


def test_what_is_asked_by_hand_during_a_run_is_left_to_that_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = study(tmp_path, "budget: 4\ninitial: {n: 4}\n")
    asked: list[str] = []

    def ask(_: Study) -> None:
        asked.append(does(capsys, "ask", path) if not asked else "")

    summary = run(load_study(path), callback=ask)
    assert [entry.id for entry in summary.pending] == [2]
    assert (summary.told, summary.stopped) == (3, "the budget of 4 evaluations is spent")
    points = [row["point"] for row in rows(tmp_path, "asked")]
    assert len({str(point) for point in points}) == 4


def test_a_value_told_by_hand_for_what_a_run_evaluates_prevails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = study(tmp_path, "budget: 2\ninitial: {n: 2}\n")
    began: list[int] = []

    def tell(_: Any, entry: Any) -> None:
        began.append(entry.id)
        if entry.id == 1:
            does(capsys, "tell", path, "--id", 1, "--value", "7")

    summary = run(load_study(path), begun=tell)
    assert (began, summary.told) == ([1, 2], 2)
    assert next(row["value"] for row in rows(tmp_path, "told")) == 7
    assert "1 was told meanwhile, and keeps that" in caplog.text


def test_points_too_wide_for_a_table_are_lines(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "16")
    out = does(capsys, "ask", lab, "-n", 2)
    for number, point in enumerate(points(tmp_path), start=1):
        written = " ".join(f"{name}={value}" for name, value in point.items())
        assert f"\n{number}: {written}\n" in f"\n{out}"


def test_a_point_may_be_set_piece_by_piece(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--set", "a=0.5", "--set", "n=3", "c=red"]
    assert does(capsys, "tell", lab, *given, "--value", 1).startswith("1: 1,")


def test_an_exhausted_space(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space = "space: {n: {type: integer, low: 1, high: 3}}\n"
    path = study(tmp_path, "initial: {n: 1}\n", "", space)
    assert main(["ask", str(path), "-n", "5", "--json"]) == 1
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 3
    assert shown.err


def test_where_a_new_study_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and not where a program reads: results are relative to the working directory."""
    path = study(tmp_path, "initial: {n: 8}\noutput: results\n")
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")
    where = f"new study in {tmp_path}/there/results/try\n"
    point = ["--set", "a=0.5", "n=3", "c=red", "--value", "1"]
    for first in (["ask", path, "--json"], ["tell", path, *point], ["run", path, "--no-report"]):
        for expected in (where, ""):
            assert main([str(argument) for argument in first]) == 0
            shown = capsys.readouterr()
            assert shown.err == expected
            assert "new study" not in shown.out
        (tmp_path / "there" / "results" / "try" / "study.jsonl").unlink()
    said = fails(capsys, "tell", path, "--id", 1, "--value", 1)
    assert f"there is no journal {tmp_path}/there/results/try/study.jsonl" in said
    assert not (tmp_path / "there" / "results" / "try" / "study.jsonl").exists()


# --- import and export ------------------------------------------------------------------------


def test_export_and_import(lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    does(capsys, "ask", lab, "-n", 3)
    does(capsys, "tell", lab, "--id", 1, "--value", 0.1)
    does(capsys, "tell", lab, "--id", 2, "--failed", 'a "quoted", reason')
    text = does(capsys, "export", lab)
    lines = text.splitlines()
    assert lines[0] == "id,a,n,c,value,state,reason,seconds,source"
    assert lines[1].endswith(",0.1,told,,,ask")
    table = tmp_path / "out.csv"
    does(capsys, "export", lab, table)
    assert table.read_text() == text

    other = tmp_path / "other"
    other.mkdir()
    copy = study(other, LAB, objective="")
    assert ",pending," in lines[3]  # which has no value to import
    assert does(capsys, "import", copy, table) == "2 imported\n"
    assert does(capsys, "import", copy, table) == "0 imported; 2 were there already\n"
    first, second = (row for row in rows(other) if row["event"] in ("told", "failed"))
    assert (first["value"], first["point"]) == (0.1, points(tmp_path)[0])
    assert second["reason"] == 'a "quoted", reason'


def test_the_data_of_a_study_that_was_changed(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the error says: exported from its results, and imported under another name."""
    does(capsys, "tell", lab, "--set", "a=0.5", "n=3", "c=red", "--value", 1)
    text = does(capsys, "export", lab)
    lab.write_text(lab.read_text().replace("high: 1.0", "high: 2.0"))
    folder, table = tmp_path / "results" / "try", tmp_path / "old.csv"
    for command in ("export", "status"):
        said = fails(capsys, command, lab)
        assert "space.a.high: was 1.0, is 2.0" in said
        assert f"fitbo export {folder} old.csv and fitbo import" in said
    assert does(capsys, "export", folder / "study.jsonl") == text
    assert does(capsys, "export", folder, table) == f"1 lines to {table}\n"
    lab.write_text(lab.read_text() + "name: wider\n")
    assert does(capsys, "import", lab, table) == "1 imported\n"
    assert does(capsys, "export", lab) == text.replace(",tell\n", ",given\n")
    (tmp_path / "empty").mkdir()
    assert "must hold a study's journal" in fails(capsys, "export", tmp_path / "empty")
    both = does(capsys, "export", tmp_path / "results").splitlines()
    assert both[0].startswith("problem,method,seed,id,a,n,c,value,")
    assert [line.split(",")[0] for line in both[1:]] == ["try", "wider"]
    moved = folder.rename(folder.with_name("try, the first (of two)"))
    assert does(capsys, "export", moved) == text
    assert does(capsys, "export", (moved / "study.jsonl").rename(tmp_path / "kept.jsonl")) == text


def test_a_point_told_twice_is_said_to_be(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    point = ("--set", "a=0.5", "n=3", "c=red")
    does(capsys, "tell", lab, *point, "--value", 1)
    again = does(capsys, "tell", lab, *point, "--value", 2)
    assert again.startswith("2: 2, once more at the point of 1 (--id 1 corrects that)")
    assert "to withdraw what was told of it, --id 2" in fails(
        capsys, "tell", lab, *point, "--forget"
    )


def test_parameters_named_as_columns_that_do_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table has one column of a name: the parameter's."""
    names = ("id", "seconds", "source")
    space = "space:\n" + "".join(f"  {n}: {{type: integer, low: 1, high: 99}}\n" for n in names)
    table = tmp_path / "data.csv"
    table.write_text("seconds,id,value,source\n60,7,0.5,8\n")
    path = study(tmp_path, LAB, "", space)
    assert does(capsys, "import", path, table) == "1 imported\n"
    text = does(capsys, "export", path)
    assert text == "id,seconds,source,value,state,reason\n7,60,8,0.5,told,\n"
    table.write_text(text)
    assert does(capsys, "import", path, table) == "0 imported; 1 were there already\n"


def test_parameters_named_as_what_came_of_a_point(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their columns are others, so that neither is taken for the other."""
    state = "  state: {type: categorical, choices: [ok, pending]}\n"
    space = "space:\n  value: {type: real, low: 0.0, high: 9.0}\n" + state
    path, table = study(tmp_path, LAB, "", space), tmp_path / "data.csv"
    table.write_text("value,state\n1,ok\n2,pending\n")
    assert "space.value is missing" in fails(capsys, "import", path, table)
    table.write_text("space.value,space.state,value\n1,ok,5\n2,pending,6\n")
    assert does(capsys, "import", path, table) == "2 imported\n"
    text = does(capsys, "export", path)
    assert text.splitlines()[0] == "id,space.value,space.state,value,state,reason,seconds,source"
    assert text.splitlines()[2] == "2,2.0,pending,6.0,told,,,given"
    table.write_text(text)
    assert does(capsys, "import", path, table) == "0 imported; 2 were there already\n"


def test_import_settles_pending_points(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    does(capsys, "ask", lab)
    point = points(tmp_path)[0]
    table = tmp_path / "data.csv"
    table.write_text(f"c,value,a,n\n{point['c']},1.5,{point['a']},{point['n']}\n\n")
    assert does(capsys, "import", lab, table) == "1 imported\n"
    assert rows(tmp_path, "told")[0]["id"] == 1
    assert read_notebook(load_study(lab)).pending() == []


def test_import_names_every_line_that_is_wrong(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "data.csv"
    table.write_text("a,n,c,value\n0.5,3,red,1\n2,3,red,1\n0.5,3,red,x\n0.5,3\n0.5,3,red,\n")
    said = fails(capsys, "import", lab, table)
    assert "nothing was imported" in said
    for line, what in (
        (3, "a"),
        (4, "value must be a number"),
        (5, "expected 4 cells, got 2"),
        (6, "the value is missing"),
    ):
        assert f"data.csv:{line}: {what}" in said
    assert "data.csv:2" not in said
    assert not load_study(lab).journal.exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "must begin with a row of names"),
        ("a,n,value\n", "data.csv:1: the header must name a, n, c, value; c is missing"),
        ("a,n,c,value,b\n", "data.csv:1: unknown column 'b'"),
        ("a,n,c,value,a\n", "the column 'a' is given twice"),
        ('a,n,c,value\n"0.5,3', "not CSV"),
    ],
)
def test_tables_that_are_none(
    lab: Path, tmp_path: Path, text: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "data.csv"
    table.write_text(text)
    assert expected in fails(capsys, "import", lab, table)


def test_files_that_are_not_there(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "No such file" in fails(capsys, "import", lab, tmp_path / "none.csv")
    assert "cannot be read" in fails(capsys, "status", tmp_path / "none.yaml")
    assert "has no results yet" in fails(capsys, "export", lab)
    assert "has no results yet" in fails(capsys, "report", lab)


# --- run, report, validate, schema ------------------------------------------------------------


def test_run_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = study(tmp_path)
    out = does(capsys, "run", path, "--no-report")
    assert "try: one study of 3 parameters, 8 evaluations (serial)" in out
    assert re.search(r"\[8/8\] a=\S+ n=\d c=\w+: \S+  \(best ", out)
    assert "stopped: the budget of 8 evaluations is spent" in out
    page = tmp_path / "results" / "try" / "report.html"
    assert not page.exists()
    assert f"report: {page}" in does(capsys, "report", path)
    text = page.read_text()
    for kind in ("progress", "slices", "dependence", "parallel", "minimum"):
        assert f'aria-label="try: {kind}"' in text
        assert (page.parent / "figures" / f"study-{kind}.png").stat().st_size > 5000
    other = tmp_path / "elsewhere" / "page.html"
    does(capsys, "report", page.parent, "--output", other)
    assert other.read_text() == text  # the same bytes from the folder as from the file


def test_what_programs_write_is_not_reported(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    does(capsys, "tell", lab, "--set", "a=0.5", "n=3", "c=red", "--value", 1)
    folder = tmp_path / "results" / "try"
    (folder / "scratch" / "0001").mkdir(parents=True)
    (folder / "scratch" / "0001" / "log.jsonl").write_text('{"a": 1}\n{"b": 2}\n')
    (found,) = load_runs([tmp_path / "results"])
    assert found.best.tolist() == [1.0]


def test_studies_are_compared(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    does(capsys, "tell", lab, "--set", "a=0.5", "n=3", "c=red", "--value", 1)
    other = lab.with_name("other.yaml")
    other.write_text(lab.read_text())
    does(capsys, "tell", other, "--set", "a=0.5", "n=3", "c=red", "--value", 2)
    out = does(capsys, "report", lab, other)
    page = tmp_path / "results" / "try-vs-other" / "report.html"
    assert out.endswith(f"report: {page}\n")
    assert {"<h2>try</h2>", "<h2>other</h2>"} <= set(re.findall(r"<h2>.*?</h2>", page.read_text()))
    assert len(list((page.parent / "studies").iterdir())) == 2


def test_run_says_when_all_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = study(tmp_path, "max_failures: 2\n", 'objective: {command: ["false", "{point}"]}\n')
    assert main(["run", str(path)]) == 1
    out = capsys.readouterr().out
    assert "failed: exit code 1" in out
    assert "max_failures is 2" in out


def test_mistakes_in_running(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = study(tmp_path, objective="")
    assert "has no objective to run" in fails(capsys, "run", path)
    path = study(tmp_path, objective=PYTHON.replace("model", "nodel"))
    assert "objective.python: must name a file that exists" in fails(capsys, "run", path)
    path = study(tmp_path, objective='objective: {command: ["./x", "{b}"]}\n')
    assert "there is no parameter for the placeholder {b}" in fails(capsys, "run", path)
    assert not (tmp_path / "results").exists()


def test_validate_and_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = study(tmp_path)
    campaign = BLACK_BOXES[0].with_name("quickstart.yaml")
    out = does(capsys, "validate", path, campaign)
    assert "one study of 3 parameters" in out
    assert "quickstart: 18 studies" in out
    path.write_text(path.read_text().replace("low: 0.0", "low: 1.0"))
    assert "space.a.low: must be below high" in fails(capsys, "validate", path)
    assert json.loads(does(capsys, "schema"))["title"] == "A fitbo campaign or study"


def test_a_report_escapes_what_the_journal_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = SPACE.replace("red", "'<script>alert(1)</script>'")
    path = study(tmp_path, LAB, "", space)
    for a in (0.1, 0.2):
        does(
            capsys,
            "tell",
            path,
            "--set",
            f"a={a}",
            "n=3",
            "c=<script>alert(1)</script>",
            "--value",
            a,
        )
    does(capsys, "tell", path, "--set", "a=0.3", "n=3", "c=blue", "--failed", "<b>{{title}}</b>")
    does(capsys, "report", path)
    text = (tmp_path / "results" / "try" / "report.html").read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "&lt;b&gt;{{title}}&lt;/b&gt;" in text
    assert "Content-Security-Policy" in text
    assert not re.search(r'(src|href)="(?!data:|#)', text)


@pytest.mark.parametrize("path", BLACK_BOXES, ids=lambda path: path.stem)
def test_shipped_studies_run(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if path.stem == "blackbox_python":
        pytest.importorskip("sklearn")
    sets = [f"output={tmp_path}", "budget=6", "initial.n=5", "method.samples=20"]
    options = [option for each in sets for option in ("--set", each)]
    does(capsys, "run", path, "--no-report", "--quiet", *options)
    lines = (tmp_path / path.stem / "study.jsonl").read_text().splitlines()[1:]
    events = [json.loads(line)["event"] for line in lines]
    assert events.count("told") + events.count("failed") == 6
    assert events.count("told") >= 4


def test_other_columns_are_refused_ignored_or_kept_by_choice(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("operator,a,n,c,value,remark\nAnn,0.5,3,red,1.5,\nBo,0.25,4,blue,2.5,wet\n")
    said = fails(capsys, "import", lab, table)
    assert "unknown column 'operator'; --extra ignore drops it, --extra keep keeps it" in said
    assert not load_study(lab).journal.exists()
    assert does(capsys, "import", lab, table, "--extra", "keep") == "2 imported\n"
    notes = [row.get("notes") for row in rows(tmp_path, "told")]
    assert notes == [{"operator": "Ann"}, {"operator": "Bo", "remark": "wet"}]
    header, *lines = does(capsys, "export", lab).splitlines()
    assert header.endswith(",operator,remark")
    assert [line.split(",")[-2:] for line in lines] == [["Ann", ""], ["Bo", "wet"]]
    # What is exported can be imported again, with what was kept.
    exported, other = tmp_path / "e.csv", tmp_path / "other"
    exported.write_text("\n".join([header, *lines, ""]))
    other.mkdir()
    copy = study(other)
    assert does(capsys, "import", copy, exported, "--extra", "keep") == "2 imported\n"
    assert [row["notes"] for row in rows(other, "told")] == notes
    load_study(copy).journal.unlink()
    assert does(capsys, "import", copy, exported, "--extra", "ignore") == "2 imported\n"
    assert not any("notes" in row for row in rows(other))


@pytest.mark.parametrize("spend", [False, True])
def test_imported_lines_spend_the_budget_only_if_asked(
    spend: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, table = study(tmp_path, "budget: 6\ninitial: {n: 6}\n"), tmp_path / "t.csv"
    table.write_text("a,n,c,value,reason\n0.5,3,red,1.5,\n0.25,4,blue,,leaked\n")
    does(capsys, "import", path, table, *(["--spend"] if spend else []))
    summary = run(load_study(path))
    assert (summary.told, summary.failed, summary.given) == ((5, 1, 0) if spend else (7, 1, 2))
    assert len(rows(tmp_path, "asked")) == (4 if spend else 6)
    said = does(capsys, "status", path)
    known = "" if spend else ", beside 2 given"
    assert f"6 of 6 evaluations, 1 failed{known}\n" in said
