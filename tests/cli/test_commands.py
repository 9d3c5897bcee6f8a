"""The commands: what they print, where, and with which exit code."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import fitbo
from fitbo.acquisition import ACQUISITIONS
from fitbo.cli import files, main, parser
from fitbo.cli.display import Bars, Glance, display, print_table
from fitbo.config.campaign import StudyConfig, load
from fitbo.entropy import BACKENDS
from fitbo.problems import PROBLEMS
from fitbo.records import table
from fitbo.records.journal import Writer
from fitbo.report.regret import Summary
from fitbo.surrogate import KERNELS
from tests.campaigns import (
    ENVIRONMENT,
    MANY,
    campaign,
    complete,
    n_told,
    one_study,
    write_config,
)
from tests.config.mutate import CONFIGS, mutants

ROOT = Path(__file__).parents[2]
TINY = {**MANY, "seeds": 1, "budget": 4}
SCREEN = 24  # lines


def command(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fitbo", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, **options.pop("env", {})},
        **options,
    )


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A campaign run by the command, and what that printed."""
    config = write_config(tmp_path_factory.mktemp("cli") / "out", **TINY)
    return config, command("run", config)


@pytest.fixture
def results(ran: tuple[Path, Any], tmp_path: Path) -> Path:
    """A copy of its results."""
    return shutil.copytree(ran[0].with_suffix("") / "small", tmp_path / "results")


# --- run --------------------------------------------------------------------------------------


def test_run_prints_lines_a_table_and_the_report_where_there_is_no_terminal(
    ran: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    config, done = ran
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    folder = config.with_suffix("") / "small"
    assert lines[0] == f"small: 2 studies of 4 evaluations, in {folder}"
    assert re.fullmatch(r"\[1/2\] branin / MM / 0: regret [\d.e+-]+", lines[1])
    assert re.fullmatch(r"\[2/2\] forrester / MM / 0: regret [\d.e+-]+", lines[2])
    assert lines[3].split() == [
        "problem",
        "method",
        "runs",
        "regret",
        "quartiles",
        "≤",
        "0.01",
        "s/point",
    ]
    assert [line.split()[:3] for line in lines[4:6]] == [
        ["branin", "MM", "1"],
        ["forrester", "MM", "1"],
    ]
    assert lines[6:] == [f"report: {folder / 'report.html'}"]
    assert all(len(line) <= 80 for line in lines[3:6])
    assert (folder / "report.html").exists()
    assert (folder / "figures" / "forrester-regret.png").exists()


def test_the_picture_is_drawn_of_a_problem_of_one_dimension(ran: tuple[Path, Any]) -> None:
    drawn = {file.name for file in (ran[0].with_suffix("") / "small" / "figures").iterdir()}
    assert "forrester-picture.png" in drawn
    assert "branin-picture.png" not in drawn


def test_a_report_of_a_campaign_s_file_is_of_its_results(
    ran: tuple[Path, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(ran[0]), "--output", str(page)]) == 0
    assert "branin" in capsys.readouterr().out
    assert page.exists()
    assert main(["report", str(write_config(tmp_path / "none"))]) == 2
    assert f"has no results yet, {tmp_path / 'none' / 'small'}" in capsys.readouterr().err


def test_quiet_prints_the_table_only(
    ran: tuple[Path, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """And the same command again finds nothing to do."""
    before = {path: path.read_bytes() for path in ran[0].with_suffix("").rglob("*.jsonl")}
    assert main(["run", str(ran[0]), "--quiet", "--no-report"]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["problem", "branin", "forrester"]
    assert err == ""
    assert {path: path.read_bytes() for path in before} == before


def test_a_changed_configuration_is_a_mistake(
    ran: tuple[Path, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(ran[0]), "--set", "noise_std=3", "--set", "methods[0].samples=13"]) == 2
    _, err = capsys.readouterr()
    assert "noise_std: was 0.0, is 3.0" in err
    assert "method.samples: was 12, is 13" in err
    assert len(err.splitlines()) <= SCREEN


def test_a_campaign_s_budget_may_grow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path / "out", seeds=2, budget=3)
    assert main(["run", str(config), "--quiet", "--no-report"]) == 0
    assert main(["run", str(config), "--set", "budget=4", "--set", "seeds=3", "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines()[-2].split()[2] == "3"  # complete, all of them
    page = (tmp_path / "out" / "small" / "report.html").read_text()
    assert "3 of 3 runs complete" in page
    assert "\nbudget: 4</pre>" in page
    assert main(["run", str(config), "--quiet", "--no-report"]) == 0  # a smaller one is spent
    assert capsys.readouterr().out.splitlines()[-1].split()[2] == "3"


def test_a_study_that_fails_is_named_and_the_others_are_summed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path / "out", **{**MANY, "problems": ["branin"], "budget": 3})
    folder = tmp_path / "out" / "small" / "branin" / "MM"
    (folder / "1.jsonl").mkdir(parents=True)
    assert main(["run", str(config)]) == 1
    out, err = capsys.readouterr()
    assert "branin / MM / 1: failed" in out
    assert f"report: {tmp_path / 'out' / 'small' / 'report.html'}" in out
    assert "failed: branin / MM / 1: IsADirectoryError" in err
    assert "Traceback" not in err


def test_the_way_to_resume_is_a_command_of_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr("fitbo.runs.executors.run_all", interrupted)
    config = write_config(tmp_path / "my [bold] results" / "out")
    assert main(["run", str(config), "--set", "methods[0].samples=14", "--quiet"]) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[1] == (
        f"    fitbo run '{config}' --set 'methods[0].samples=14' --quiet"
    )


def test_ctrl_c_elsewhere_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("fitbo.cli.files.load", interrupted)
    assert main(["validate", "x.yaml"]) == 130


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_shipped_file_runs(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = load(path)
    settings = ["budget=3", "seeds=1", "initial.n=2", "executor=serial", f"output={tmp_path}"]
    settings += [f"methods[{i}].samples=12" for i in range(len(shipped.methods))]
    report = [] if path.stem == "fig_1d" else ["--no-report"]
    assert main(["run", str(path), *report, *[f"--set={each}" for each in settings]]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    written = sorted((tmp_path / path.stem).rglob("*.jsonl"))
    assert len(written) == len(shipped.problems) * len(shipped.methods)
    assert [n_told(each) for each in written] == [3] * len(written)
    assert all(
        len(line) <= 80 for line in out.splitlines() if "output" not in line and "/" not in line
    )
    if path.stem == "fig_1d":
        assert (tmp_path / "fig_1d" / "figures" / "forrester-picture.png").stat().st_size > 10_000


def test_a_table_survives_a_terminal_without_the_letters(ran: tuple[Path, Any]) -> None:
    done = command("run", ran[0], "--no-report", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "? 0.01" in done.stdout


# --- The other commands -----------------------------------------------------------------------


def test_report_of_one_campaign_and_of_two(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(results / "forrester")
    (results / "report.html").unlink()
    other = shutil.copytree(results, tmp_path / "other")
    assert main(["report", str(results)]) == 0
    assert f"report: {results / 'report.html'}" in capsys.readouterr().out
    assert "<html" in (results / "report.html").read_text()
    assert main(["report", str(results), str(other), "--output", str(tmp_path / "both")]) == 0
    out, err = capsys.readouterr()
    assert "results / MM" in out
    assert "other / MM" in out
    assert err == ""
    page = (tmp_path / "both" / "report.html").read_text()
    assert "results / MM" in page
    assert "other / MM" in page


@pytest.mark.parametrize("content", [None, "", "nothing\n", '{"a": 1}\n{"b": 2}\n'])
def test_report_of_what_is_no_campaign(
    tmp_path: Path, content: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "x").mkdir()
        (tmp_path / "x" / "0.jsonl").write_text(content)
    assert main(["report", str(tmp_path / "x")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert len(err.splitlines()) <= 3


def test_validate_says_what_a_file_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", *map(str, CONFIGS), "--set", "seeds=2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(CONFIGS)
    expected = "quickstart: 12 studies of 25 evaluations, in results/quickstart"
    assert any(line.endswith(f"quickstart.yaml: {expected}") for line in lines)


def test_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert {"problems", "space", "budget"} <= set(json.loads(capsys.readouterr().out)["properties"])


def test_list_has_a_line_about_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    described = dict(re.findall(r"(?m)^  ([\w-]+) +(\S.{10,})$", out))
    assert set(described) == {*PROBLEMS, *BACKENDS, *ACQUISITIONS, *KERNELS}
    assert main(["list", "entropies"]) == 0
    assert set(re.findall(r"(?m)^  (\w+)", capsys.readouterr().out)) == set(BACKENDS)


def test_version_and_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code in ((["--version"], 0), ([], 2), (["go"], 2), (["run"], 2)):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == code
    out, err = capsys.readouterr()
    assert out == f"fitbo {fitbo.__version__}\n"
    assert "Traceback" not in err


# --- Mistakes ---------------------------------------------------------------------------------


def one_screen(err: str) -> bool:
    lines = err.splitlines()
    return (
        err.startswith("error: ")
        and len(lines) <= SCREEN
        and max(map(len, lines)) <= 240
        and "Traceback" not in err
    )


def test_200_malformed_files_exit_with_2_and_one_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accepted = 0
    for i, mutant in enumerate(mutants(200, seed=0)):
        path = tmp_path / f"{i}.yaml"
        path.write_text(mutant.text, errors="surrogatepass")
        code = main(["validate", str(path)])
        out, err = capsys.readouterr()
        if code == 0:
            accepted += 1
            assert err == "", mutant
        else:
            assert code == 2, mutant
            assert out == "", mutant
            assert one_screen(err), mutant
            assert f"{i}.yaml" in err, mutant
    assert accepted <= 10


def test_malformed_files_by_the_real_command(tmp_path: Path) -> None:
    for kind in ("a control character", "an anchor in itself"):
        mutant = next(each for each in mutants(200, seed=0) if each.kind == kind)
        path = tmp_path / "mutant.yaml"
        path.write_text(mutant.text, errors="surrogatepass")
        done = command("run", path, "--set", f"output={tmp_path / 'out'}", cwd=tmp_path)
        assert done.returncode == 2, mutant
        assert one_screen(done.stderr), done.stderr
        assert done.stdout == ""
    assert not (tmp_path / "out").exists()


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    undecodable = os.fsdecode(b"\xff.yaml")
    for name in ("missing.yaml", ".", undecodable, "a\x00b", "[bold]x[/red].yaml"):
        assert main(["run", str(tmp_path / name)]) == 2
        assert one_screen(capsys.readouterr().err)


def test_an_output_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path / "out", budget=3)
    (tmp_path / "out").write_text("a file")
    assert main(["run", str(config)]) == 1
    out, err = capsys.readouterr()
    assert "NotADirectoryError" in err
    assert "Traceback" not in err + out


# --- The display ------------------------------------------------------------------------------


def written(task: StudyConfig, rows: int) -> None:
    """Run the study on until its journal holds that many values."""
    complete(task, lambda: n_told(task.journal) >= rows)


def terminal(width: int = 80) -> Console:
    return Console(force_terminal=True, file=io.StringIO(), width=width, height=30)


def drawn(bars: Bars, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(bars.progress)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_a_terminal_shows_a_bar_for_each_study_under_way(tmp_path: Path) -> None:
    one, two, three = campaign(tmp_path, seeds=3, budget=5).studies()
    complete(one)
    console = terminal()
    with display([one, two, three], console, quiet=False) as shown:
        assert isinstance(shown, Bars)
        shown.tick()
        # What was complete before is counted, and has no bar.
        (whole,) = drawn(shown)
        assert "5/15" in whole
        assert "median regret" in whole
        written(two, 2)
        shown.tick()
        whole, bar = drawn(shown)
        assert "7/15" in whole
        assert "branin / MM / 1" in bar
        assert "━" in bar
        assert "2/5" in bar
        assert re.search(r"regret [\d.]+", bar)
        written(two, 5)
        written(three, 1)
        shown.tick()
        shown.ended(two, None)
        whole, bar = drawn(shown)
        assert "11/15" in whole
        assert "branin / MM / 2" in bar
        assert all(len(line) <= 80 for line in drawn(shown))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "━" in text
    assert "\x1b[" in text


def test_a_tick_reads_only_what_has_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the display of a long campaign would take a core to itself."""
    studies = campaign(tmp_path, seeds=3, budget=3).studies()
    for task in studies[:2]:
        complete(task)
    bars = Bars(studies)
    opened: list[Path] = []
    real = Path.open
    monkeypatch.setattr(
        Path, "open", lambda self, *a, **k: opened.append(self) or real(self, *a, **k)
    )
    bars.tick()
    assert opened == []
    written(studies[2], 2)
    opened.clear()
    bars.tick()
    bars.tick()
    assert opened == [studies[2].journal]


def test_a_glance_at_a_journal_in_any_state(tmp_path: Path) -> None:
    path = tmp_path / "0.jsonl"
    glance = Glance(path)
    assert (glance.look().count, str(glance)) == (0, "no value yet")
    with Writer(path) as writer:
        assert glance.look().count == 0
        writer.append({"study": {"problem": {"minimum": 0.25}}})
        assert (glance.look().count, str(glance)) == (0, "no value yet")
        writer.append({"event": "told", "value": 0.9, "f": 0.75})
        assert (glance.look().count, str(glance)) == (1, "regret 0.5")
        writer.append({"event": "failed", "reason": "told"})
        writer.append({"event": "told", "value": 0.5})
        assert (glance.look().count, str(glance)) == (3, "regret 0.25")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"event": "to')
    assert glance.look().count == 3
    path.write_bytes(whole + b"{torn\n" + b'{"event": "told", "value": 0.25}\n')
    assert (glance.look().count, str(glance)) == (4, "regret 0")
    assert str(Glance(path).look()) == "regret 0"
    path.write_text('{"study": {"problem": {}}}\n{"event": "told", "value": 3}\n')
    assert str(Glance(path).look()) == "best 3"


def test_lines_where_there_is_no_terminal(tmp_path: Path) -> None:
    task = one_study(tmp_path, budget=3)
    written(task, 2)
    console = Console(file=io.StringIO(), width=20)
    with display([task], console, quiet=False) as shown:
        shown.tick()
        shown.ended(task, None)
        shown.ended(task, ValueError("[red]no[/red]"))
    first, second = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert first.startswith("[1/1] branin / MM / 0: regret ")
    assert second == "[2/1] branin / MM / 0: failed"


@pytest.mark.parametrize("label", ["x", "FITBO-MEMeL-10", "[bold]", "y" * 100])
def test_the_table_fits_eighty_columns(label: str) -> None:
    regrets = (1.234e-10, 5.678e-05, 9.1e300)
    row = Summary(label, label, 100, 99, regrets, regrets, regrets, 1.0, 12.345)
    never = Summary(label, label, 3, 0, (float("inf"),) * 3, regrets, regrets, 0.0, float("nan"))
    console = terminal()
    print_table(console, [row, never])
    lines = re.sub(r"\x1b\[[\d;]*m", "", console.file.getvalue()).splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert label[:10] in text
    assert "…" in text
    for cell in (
        "99/100",
        "5.7e-05",
        "1.2e-10…9.1e+300",
        "100%",
        "12",
        "0/3",
        "inf…inf",
        "0%",
        "n/a",
    ):
        assert cell in text


def test_help_imports_nothing_heavy_and_knows_the_names_below() -> None:
    code = (
        "import sys; from fitbo.cli.parser import parser; parser().format_help(); "
        "sys.exit(','.join({'numpy', 'scipy', 'yaml', 'fitbo.config'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert tuple(files.SHELVES) == parser.SHELVES
    assert table.EXTRA == parser.EXTRA
    (commands,) = parser.parser()._subparsers._group_actions  # type: ignore[union-attr]
    for command in commands.choices.values():  # type: ignore[union-attr]
        module, _, function = command.get_default("command").partition(".")
        assert callable(getattr(importlib.import_module(f"fitbo.cli.{module}"), function))
