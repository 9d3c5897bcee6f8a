"""What a person sees of a study under way, at 45 columns too."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

import fitbo
from fitbo.objectives import Outcome
from fitbo.records.events import Entry
from fitbo.records.notebook import Notebook
from fitbo.screen import digits, duration, follow, measured, short
from fitbo.screen.follow import Bar, Cell
from fitbo.study import Study

POINT = {"grams": 15, "celsius": 97.123456789, "seconds": 102, "grind": "medium-coarse"}


def console(width: int = 45) -> Console:
    file = io.StringIO()
    return Console(file=file, width=width, force_terminal=True, color_system=None, record=True)


def study(direction: str = "minimize") -> Notebook:
    space = {"grams": (0, 30), "celsius": (0, 100), "seconds": (0, 200)}
    choice = fitbo.Categorical(["medium-coarse", "fine"])
    return Notebook(Study(fitbo.Space({**space, "grind": choice}), direction=direction))


def outcome(notebook: Notebook, bar: Any, value: float | None, **changed: Any) -> Entry:
    """Begin an evaluation and end it."""
    entry = notebook.entry_of({**POINT, **changed}, "run")
    bar.begun(notebook, entry)
    if value is None:
        notebook.failed(entry, "burnt")
    else:
        notebook.told(entry, value)
    bar.ended(notebook, entry, Outcome(value, None if value else "burnt", 1.0))
    return entry


def drawn(bar: Bar, width: int = 45) -> list[str]:
    shown = console(width)
    shown.print(bar)
    return shown.export_text().rstrip("\n").split("\n")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("width", [45, 80])
def test_the_bar_says_what_runs_how_long_and_what_is_left(width: int) -> None:
    clock, notebook = Clock(), study()
    bar = Bar(40, "coffee", clock=clock)
    assert "no value yet" in drawn(bar, width)[1]
    for value in (0.31, 0.124, None):
        clock.now += 60
        outcome(notebook, bar, value, grams=5 + len(notebook.outcomes))
    bar.begun(notebook, notebook.entry_of(POINT, "run"))
    clock.now += 12
    lines = drawn(bar, width)
    assert len(lines) == 3
    assert all(len(line) <= width for line in lines)
    assert lines[0].startswith("coffee ")
    assert lines[0].endswith("3/40  37 min left")
    assert lines[1].strip() == "best 0.124, 1 failed"
    assert lines[2].startswith("#4 12 s  grams=15 celsius=97.1235")


def test_the_best_of_a_maximised_study_is_the_highest() -> None:
    notebook, bar = study("maximize"), Bar(40, "coffee")
    for i, value in enumerate((0.31, 0.9, 0.5)):
        outcome(notebook, bar, value, grams=i)
    assert drawn(bar)[1].strip() == "best 0.9"


def test_many_workers_do_not_fill_the_screen_and_the_time_limit_counts() -> None:
    clock, notebook = Clock(), study()
    bar = Bar(400, "a study with a very long name", time_limit=100.0, clock=clock)
    clock.now += 30
    outcome(notebook, bar, 1.0)
    for i in range(9):
        bar.begun(notebook, Entry(i + 10, POINT))
    lines = drawn(bar)
    assert lines[0].endswith("1/400  70 s left")
    assert lines[-1].strip() == "and 5 more"
    assert len(lines) == 7
    assert all(len(line) <= 45 for line in lines)


def test_on_a_terminal_there_are_lines_above_the_bar_and_no_bar_afterwards() -> None:
    shown, notebook = console(), study()
    with follow(4, True, title="coffee", console=shown) as following:
        for i, value in enumerate((0.3, None)):
            outcome(notebook, following, value, grams=i)
    text = shown.export_text()
    ended = re.findall(r"\[\d/4\].*", text)
    assert len(ended) == 2
    assert ended[0].startswith("[1/4] 0.3  (best 0.3)  grams=0")
    assert ended[1].startswith("[2/4] failed: burnt  (best 0.3)")
    assert ended[0].endswith("…")
    assert all(len(line) <= 45 for line in ended)
    assert text.rstrip().endswith("choosing the next point")
    assert shown.file.getvalue().endswith("\x1b[2K")  # type: ignore[attr-defined]


def test_without_progress_nothing_is_written() -> None:
    shown, notebook = console(), study()
    with follow(4, False, console=shown) as following:
        outcome(notebook, following, 0.3)
    assert shown.export_text() == ""


def test_the_bar_in_a_notebook() -> None:
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    InteractiveShell.instance()
    notebook = study()
    with capture_output() as captured:
        cell = Cell(Bar(4, "coffee"))
        outcome(notebook, cell, 0.3)
    InteractiveShell.clear_instance()
    assert "best 0.3" in captured.outputs[-1].data["text/plain"]
    assert "1/4" in captured.outputs[-1].data["text/plain"]


@pytest.mark.parametrize(
    ("mean", "deviation", "text"),
    [
        (0.123456789, 0.0056, "0.1235 ± 0.0056"),
        (48.69647120125592, 1.234, "48.7 ± 1.2"),
        (123456.789, 4321.0, "123500 ± 4.3e+03"),
        (-0.5, 0.0, "-0.5 ± 0"),
        (1.0, float("nan"), "1 ± nan"),
        (1.23456789e-9, 2e-11, "1.235e-09 ± 2e-11"),
    ],
)
def test_a_mean_has_the_digits_that_its_deviation_allows(
    mean: float, deviation: float, text: str
) -> None:
    assert measured(mean, deviation) == text


def test_numbers_for_people() -> None:
    assert digits(48.69647120125592) == "48.6965"
    assert (digits(7), digits("x"), digits(True)) == ("7", "x", "True")
    assert short({"a": 0.1 + 0.2, "c": "x"}) == "a=0.3 c=x"
    seconds = (0.4, 12, 99, 130, 3600 * 5 + 240)
    assert [duration(s) for s in seconds] == ["0 s", "12 s", "99 s", "2 min", "5 h 4 min"]
