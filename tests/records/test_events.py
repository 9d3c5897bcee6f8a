"""What a journal's events say of each point, corrections included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fitbo.cli import main
from fitbo.config.build import build_study
from fitbo.config.campaign import StudyConfig
from fitbo.records.events import amended, entries_of, once
from fitbo.records.journal import state_path
from fitbo.records.notebook import Notebook, open_notebook, read_notebook
from fitbo.report.history import load as load_runs
from fitbo.report.write import write_report
from fitbo.runs.standing import status
from fitbo.study import Study
from tests.studies import load_study, loaded, points, rows, run, study

P, Q = {"a": 0.1}, {"a": 0.2}
ASKED = [{"event": "asked", "id": 1, "point": P}, {"event": "asked", "id": 2, "point": Q}]
TOLD = {"event": "told", "id": 1, "point": P, "value": -42.0, "seconds": 3.0}
FAILED = {"event": "failed", "id": 2, "point": Q, "reason": "spurious"}
TO_VALUE = {"event": "corrected", "id": 2, "point": Q, "value": 7.0, "was": "spurious"}
TO_FAILURE = {"event": "corrected", "id": 1, "point": P, "reason": "spilt", "was": -42.0}
WITHDRAWN = {"event": "forgotten", "id": 1, "was": -42.0}
FIT = {"event": "asked", "id": 3, "point": P, "source": "run", "fitted": 1, "eta": [0.0] * 5}


def test_a_correction_is_the_outcome_in_the_place_of_the_one_before() -> None:
    one, two = entries_of([*ASKED, TOLD, FAILED, TO_VALUE, TO_FAILURE]).values()
    assert (one.state, one.value, one.reason, one.seconds) == ("failed", None, "spilt", 3.0)
    assert (two.state, two.value, two.reason) == ("told", 7.0, None)
    assert (one.order, two.order) == (2, 3)  # the rows of their first outcomes


def test_what_is_withdrawn_is_no_outcome() -> None:
    one = entries_of([*ASKED, TOLD, WITHDRAWN])[1]
    assert (one.state, one.value, one.seconds, one.order) == ("forgotten", None, None, -1)


def test_an_outcome_counts_once_unless_it_was_withdrawn() -> None:
    again = {**TOLD, "value": 5.0}
    assert once([*ASKED, TOLD, again]) == [*ASKED, TOLD]
    kept = once([*ASKED, TOLD, again, WITHDRAWN, again, again])
    assert kept == [*ASKED, TOLD, WITHDRAWN, again]
    assert entries_of(kept)[1].value == 5.0
    assert once([TOLD, TO_FAILURE, TO_FAILURE, again]) == [TOLD, TO_FAILURE, TO_FAILURE]


def test_amended_rows_are_those_of_a_study_told_right_at_once() -> None:
    plain = {key: value for key, value in FIT.items() if key not in ("fitted", "eta")}
    assert amended([*ASKED, TOLD, FIT]) == [*ASKED, TOLD, FIT]
    changed = amended([*ASKED, TOLD, FAILED, FIT, TO_VALUE, FIT])
    assert [row["event"] for row in changed] == ["asked", "asked", "told", "told", "asked", "asked"]
    assert (changed[3]["id"], changed[3]["value"]) == (2, 7.0)
    assert changed[4:] == [plain, FIT]  # the fit before was to other values
    assert amended([*ASKED, TOLD, FIT, WITHDRAWN, FAILED]) == [*ASKED, plain, FAILED]
    again = {**TOLD, "value": 5.0}
    assert amended([*ASKED, TOLD, WITHDRAWN, again]) == [*ASKED, again]
    forgotten = {"event": "forgotten", "id": 2}  # never told: no fit was to it
    assert amended([*ASKED, TOLD, FIT, forgotten]) == [*ASKED, TOLD, FIT, forgotten]


# --- A study that is corrected ----------------------------------------------------------------

VALUES = (3.0, 1.0, -42.0, 0.5, 1.5, 0.7)


def measured(config: StudyConfig) -> None:
    """Six points asked for and told, each in a session of its own; the third is mistyped."""
    for value in VALUES:
        with open_notebook(config) as book:
            book.told(book.ask(), value)


def rebuilt(config: StudyConfig, outcomes: list[tuple[Any, float]]) -> Study:
    made = build_study(config)
    for point, value in outcomes:
        made.tell(point, value)
    return made


def told(book: Notebook) -> list[tuple[Any, float]]:
    return list(zip(book.study.X, book.study.y.tolist(), strict=True))


def corrected_value(book: Notebook) -> None:
    book.correct(book.entries[3], 42.0, None)


def corrected_failure(book: Notebook) -> None:
    book.correct(book.entries[3], None, "mistyped")


def withdrawn(book: Notebook) -> None:
    book.forget(book.entries[3])


@pytest.mark.parametrize("correction", [corrected_value, corrected_failure, withdrawn])
@pytest.mark.parametrize("same_session", [True, False])
def test_a_corrected_study_goes_on_from_what_is_right_and_from_nothing_else(
    tmp_path: Path, correction: Any, same_session: bool
) -> None:
    """No ensemble of fits to the wrong value is used, saved or in memory, though n be as it was."""
    config = loaded(tmp_path, "budget: 20\n", "")
    measured(config)
    with open_notebook(config) as book:
        book.ask()  # fitted to six values, of which one is wrong
        assert state_path(config.journal).exists()
        book.forget(book.pending()[0])
        before = config.journal.read_bytes()
        correction(book)
        assert not state_path(config.journal).exists()
        asked = book.ask() if same_session else None
    assert config.journal.read_bytes().startswith(before)  # nothing is erased
    if asked is None:
        with open_notebook(config) as book:
            asked = book.ask()
    book = read_notebook(config)
    assert book.study.y.min() == 0.5
    fresh = rebuilt(config, told(book))
    for point, reason in book.study.failures:
        fresh.fail(point, reason)
    assert asked.point == fresh.ask()[0]


@pytest.mark.parametrize("keep_state", [True, False])
def test_a_corrected_study_resumes_bit_for_bit(tmp_path: Path, keep_state: bool) -> None:
    config = loaded(tmp_path, "budget: 20\n", "")
    measured(config)
    with open_notebook(config) as book:
        book.forget(book.ask())
        corrected_value(book)
    values = [0.3, 0.2, 0.4]
    whole = rebuilt(config, told(read_notebook(config)))
    for value in values:
        with open_notebook(config) as book:
            entry = book.ask()
            book.told(entry, value)
        if not keep_state:
            state_path(config.journal).unlink(missing_ok=True)
        point = whole.ask()[0]
        whole.tell(point, value)
        assert entry.point == point


def test_the_budget_counts_what_is_left(tmp_path: Path) -> None:
    config = loaded(tmp_path, "initial: {n: 8}\n")
    run(config)
    with open_notebook(config) as book:
        withdrawn(book)
    summary = status(read_notebook(config))
    assert (summary.told, summary.stopped) == (7, None)
    summary = run(config)
    assert (summary.told, summary.failed) == (8, 0)
    assert rows(tmp_path, "told")[-1]["id"] == 9
    with open_notebook(config) as book:
        book.correct(book.entries[4], None, "spilt")
    summary = status(read_notebook(config))
    assert (summary.told, summary.failed) == (7, 1)
    assert summary.stopped == "the budget of 8 evaluations is spent"


# --- By the command line ----------------------------------------------------------------------


def says(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_a_value_mistyped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = study(tmp_path, "budget: 20\n", "")
    config = load_study(path)
    measured(config)
    with open_notebook(config) as book:
        book.ask()
    assert says(capsys, "tell", path, "--id", 3, "--value", 42) == (
        "3: 42, corrected: was -42; 1 pending\n"
    )
    assert says(capsys, "tell", path, "--id", 3, "--value", 42) == "3: 42, as it was; 1 pending\n"
    assert len(rows(tmp_path, "corrected")) == 1
    assert json.loads(says(capsys, "status", path, "--json"))["best"]["value"] == 0.5
    line = says(capsys, "export", path).splitlines()[3]
    assert line.startswith("3,")
    assert line.endswith(",42.0,told,,,run")
    text = write_report([config.journal]).read_text()
    assert "-42" not in text
    (found,) = load_runs([config.journal])
    assert not np.isfinite(found.eta).any()  # beliefs about what was not so


def test_failures_and_values_become_one_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = study(tmp_path, "budget: 20\n", "")
    measured(load_study(path))
    tell = ("tell", path, "--id", 3)
    assert "3: failed, corrected: was -42;" in says(capsys, *tell, "--failed", "leaked")
    assert "3: 5, corrected: was failed, leaked;" in says(capsys, *tell, "--value", 5)
    assert "3: forgotten, corrected: was 5;" in says(capsys, *tell, "--forget")
    assert "3: forgotten, as it was;" in says(capsys, *tell, "--forget")
    assert "3: 6, corrected: was forgotten; 0 pending" in says(capsys, *tell, "--value", 6)
    book = read_notebook(load_study(path))
    assert book.study.y.tolist() == [3.0, 1.0, 0.5, 1.5, 0.7, 6.0]
    assert book.study.failures == []
    assert book.entries[3].value == 6
    assert len(points(tmp_path)) == 6


def test_what_was_corrected_is_not_imported_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = study(tmp_path, "budget: 20\n", "")
    table = tmp_path / "data.csv"
    table.write_text("a,n,c,value\n0.1,3,red,-42\n0.1,3,red,1\n0.2,3,red,2\n")
    assert says(capsys, "import", path, table) == "3 imported\n"
    says(capsys, "tell", path, "--id", 1, "--value", 42)
    says(capsys, "tell", path, "--id", 3, "--forget")
    assert says(capsys, "import", path, table) == "0 imported; 3 were there already\n"
    table.write_text(table.read_text().replace("-42", "42"))
    assert says(capsys, "import", path, table) == "0 imported; 3 were there already\n"
