"""A journal whose lines are JSON and yet not what was written: one line of error, never more."""

from __future__ import annotations

import json
import random
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fitbo.cli import main
from fitbo.config.campaign import StudyConfig
from fitbo.records import ensembles
from fitbo.records.journal import state_path
from fitbo.records.notebook import Notebook, read_notebook
from fitbo.sampling import Ensemble
from tests.benchmarks import module
from tests.studies import load_study, run, study

Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> StudyConfig:
    """A study with values, failures, a correction and a point that is pending."""
    folder = tmp_path_factory.mktemp("rows")
    objective = 'objective: {python: "./model.py:f", kwargs: {fail: true}}\n'
    path = study(folder, "budget: 7\n", objective)
    run(load_study(path))
    assert main(["ask", str(path)]) == 0
    assert main(["tell", str(path), "--id", "3", "--value", "0.7"]) == 0
    return load_study(path)


@pytest.fixture
def lines(config: StudyConfig) -> Any:
    """The journal's lines, which the test may change; afterwards it is as it was."""
    before = config.journal.read_bytes()
    yield [json.loads(line) for line in before.splitlines()]
    config.journal.write_bytes(before)


def write(config: StudyConfig, lines: Lines) -> None:
    config.journal.write_text("".join(json.dumps(line) + "\n" for line in lines))


def first(lines: Lines, event: str) -> dict[str, Any]:
    return next(line for line in lines if line.get("event") == event)


def pending(lines: Lines) -> dict[str, Any]:
    return [line for line in lines if line.get("event") == "asked"][-1]


CHANGES: dict[str, tuple[Any, str]] = {
    "value": (lambda ls: first(ls, "told").update(value="0.4"), "value must be a finite number"),
    "no value": (lambda ls: first(ls, "told").pop("value"), "value must be a finite number, and"),
    "nan": (lambda ls: first(ls, "told").update(value=float("nan")), "value must be a finite"),
    "id": (lambda ls: first(ls, "told").update(id=[1]), "id must be a whole number of at least 1"),
    "event": (lambda ls: first(ls, "told").update(event="tol"), "event must be one of asked, told"),
    "point": (lambda ls: first(ls, "asked").update(point=None), "point must be a mapping"),
    "choice": (lambda ls: pending(ls)["point"].update(c="mauve"), "point must be in the"),
    "parameter": (lambda ls: pending(ls)["point"].pop("n"), "it must have the parameters a"),
    "bounds": (lambda ls: pending(ls)["point"].update(a=7.5), r"must lie in \[0, 1\]"),
    "eta": (lambda ls: ls[-1].update(eta=[1, 2]), "eta must be a list of 5 finite numbers"),
    "reason": (lambda ls: first(ls, "failed").update(reason=7), "reason must be text, got 7"),
    "both": (lambda ls: first(ls, "failed").update(value=7.0), "value must not be there"),
    "twice": (lambda ls: ls.insert(4, first(ls, "asked")), "id must be new, got 1 again"),
    "other": (lambda ls: first(ls, "told").update(point={"a": 0}), "point must be that of"),
    "early": (lambda ls: ls.insert(1, first(ls, "corrected")), "id must be of a point with an out"),
    "fit": (lambda ls: ls[1].update(fitted=3), "fitted must follow a value, got 3 before any"),
    "seconds": (lambda ls: first(ls, "told").update(seconds={}), "seconds must be a finite number"),
    "header": (lambda ls: ls[0]["study"].update(problem=[]), "study.problem must be a mapping"),
    "format": (lambda ls: ls[0].update(format=99), "format must be 1 or 2, got 99"),
    "no study": (lambda ls: ls[0].update(study=3), ":1: the header misses|study must be a mapping"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_row_is_one_line_of_error_with_its_number(
    config: StudyConfig, lines: Lines, name: str
) -> None:
    change, message = CHANGES[name]
    change(lines)
    write(config, lines)
    with pytest.raises(ValueError, match=message) as caught:
        read_notebook(config)
    assert f"{config.journal}:" in str(caught.value)
    assert "\n" not in str(caught.value)


def read_or_refused(config: StudyConfig) -> Notebook | None:
    """What a ValueError says is printed as one sentence; anything else is a traceback."""
    with suppress(ValueError):
        return read_notebook(config)
    return None


def test_two_hundred_changes_at_random(config: StudyConfig, lines: Lines) -> None:
    """Of 400 such changes 59 ended in tracebacks."""
    rng, refused = random.Random(0), 0  # noqa: S311 (no secret)
    for _ in range(200):
        write(config, module("faults_rows").changed(lines, rng))
        notebook = read_or_refused(config)
        if notebook is None:
            refused += 1
        else:
            told = [entry for entry in notebook.entries.values() if entry.state == "told"]
            assert len(notebook.study.y) == len(told)
    assert 100 < refused < 200


def state(path: Path, **changes: Any) -> None:
    """A state as ``ensembles.save`` writes it, with some members changed."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(8, 4))
    ensembles.save(path, Ensemble(theta, rng.normal(size=8), 5, rng.normal(size=(9, 4)), None))
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            change = changes.get(name.removesuffix(".npy"))
            file.writestr(name, change(data) if change else data)


HUGE = b"(100000000000,), }"  # the sampler's 800 GB


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"(8, 4), }" + b" " * (len(HUGE) - 9), HUGE),
        lambda data: data.replace(b"(8, 4)", b"(4, 8)"),
        lambda data: data[:-8] + np.array([np.nan]).tobytes(),
        lambda data: data[:-8],
        lambda data: data.replace(b"<f8", b"|O8"),
        lambda data: b"",
    ],
)
def test_a_state_that_claims_too_much_is_no_state(
    tmp_path: Path, change: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = state_path(tmp_path / "0.jsonl")
    state(path)
    assert ensembles.load(path) is not None
    state(path, log_theta=change)
    assert ensembles.load(path) is None
    assert "its fits are made again" in caplog.text
