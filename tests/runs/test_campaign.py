"""A study's journal is a function of its configuration, however often it was interrupted."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fitbo.config.campaign import StudyConfig
from fitbo.problems import problem
from fitbo.records.journal import Busy, ConfigChanged, Writer, read
from fitbo.runs.study import run
from tests.campaigns import (
    MANY,
    SMALL,
    campaign,
    complete,
    journals,
    n_told,
    one_study,
    start,
    timeless,
    write_config,
)

NOISY = {"noise_std": 0.5}
INITIAL, BUDGET = SMALL["initial"]["n"], SMALL["budget"]


def state_of(study: StudyConfig) -> Path:
    return study.journal.with_suffix(".state.npz")


def run_until(study: StudyConfig, told: int) -> None:
    """Run a new study until its journal holds that many values."""
    assert not complete(study, lambda: n_told(study.journal) >= told)
    assert n_told(study.journal) == told


def told(path: Path) -> list[dict[str, Any]]:
    return [row for row in read(path).rows if row["event"] == "told"]


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A study's folder as it was before each evaluation, and when it was complete."""
    folder = tmp_path_factory.mktemp("moments")
    study = one_study(folder / "out", **NOISY)
    copies: list[Path] = []

    def copy() -> bool:
        copies.append(folder / str(len(copies)))
        shutil.copytree(study.journal.parent, copies[-1])
        return False

    assert complete(study, copy)
    copy()
    assert [n_told(each / "0.jsonl") for each in copies] == list(range(BUDGET + 1))
    return copies


def as_it_is(moments: list[Path], n: int, state: Path) -> None:
    pass


def missing(moments: list[Path], n: int, state: Path) -> None:
    state.unlink(missing_ok=True)


def torn(moments: list[Path], n: int, state: Path) -> None:
    """Cut, or empty, as a disk without power may leave what was not synced."""
    data = state.read_bytes() if state.exists() else b""
    state.write_bytes(data[:-30] if n % 2 else b"")


def stale(moments: list[Path], n: int, state: Path) -> None:
    """Of two evaluations earlier: as if the disk had kept the journal and lost the state."""
    state.unlink(missing_ok=True)
    before = moments[max(0, n - 2)] / state.name
    if before.exists():
        shutil.copy(before, state)


def ahead(moments: list[Path], n: int, state: Path) -> None:
    """Of one evaluation later: as a kill between the state and its row leaves it."""
    after = moments[min(n + 1, BUDGET)] / state.name
    if after.exists():
        shutil.copy(after, state)


# There is no state during the initial design.
CASES = [(n, as_it_is) for n in range(INITIAL)] + [
    (n, damage)
    for n in range(INITIAL, BUDGET + 1)
    for damage in (as_it_is, missing, torn, stale, ahead)
]


@pytest.mark.parametrize(("n", "damage"), CASES)
def test_a_study_resumed_at_any_row_is_the_study_uninterrupted(
    moments: list[Path], n: int, damage: Callable[[list[Path], int, Path], None], tmp_path: Path
) -> None:
    study = one_study(tmp_path, **NOISY)
    shutil.copytree(moments[n], study.journal.parent)
    damage(moments, n, state_of(study))
    assert complete(study)
    assert timeless(study.journal) == timeless(moments[-1] / "0.jsonl")
    assert {f.name for f in study.journal.parent.iterdir()} <= {"0.jsonl", "0.state.npz"}
    # Rows that were there are still those very bytes, timings and all: nothing was run twice.
    assert study.journal.read_bytes().startswith((moments[n] / "0.jsonl").read_bytes())


def test_a_study_has_a_state_from_its_first_fit_on(moments: list[Path]) -> None:
    """After the end too: a larger budget, and the page of the study, go on from it."""
    there = [(each / "0.state.npz").exists() for each in moments]
    assert there == [n > INITIAL for n in range(BUDGET + 1)]


def test_the_state_saves_the_fits(moments: list[Path], tmp_path: Path, monkeypatch: Any) -> None:
    """With the state one fit is made again, without it every one."""
    from fitbo.inference import belief

    fits: list[int] = []
    real = belief.fit
    monkeypatch.setattr(belief, "fit", lambda X, *args: fits.append(len(X)) or real(X, *args))
    n = BUDGET - 1
    for damage, expected in ((as_it_is, [n, n + 1]), (missing, [*range(INITIAL, n + 2)])):
        study = one_study(tmp_path / damage.__name__, **NOISY)
        shutil.copytree(moments[n], study.journal.parent)
        damage(moments, n, state_of(study))
        fits.clear()
        complete(study)
        assert fits == expected


def test_the_same_seed_gives_the_same_journal_and_another_seed_another(tmp_path: Path) -> None:
    found = []
    for name, seeds in (("a", [4]), ("b", [4]), ("c", [5])):
        study = one_study(tmp_path / name, seeds=seeds, budget=5)
        complete(study)
        found.append(timeless(study.journal).partition(b"\n")[2])
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_a_complete_study_is_left_alone(moments: list[Path], tmp_path: Path) -> None:
    study = one_study(tmp_path, **NOISY)
    shutil.copytree(moments[-1], study.journal.parent)
    before = study.journal.read_bytes()
    assert complete(study, lambda: pytest.fail("it should not run"))
    assert study.journal.read_bytes() == before


def test_the_state_of_a_journal_that_was_removed_is_not_used(tmp_path: Path) -> None:
    """It has the right shape and the right number of values, and is of another study."""
    old = one_study(tmp_path / "out")
    run_until(old, 6)
    assert state_of(old).exists()
    old.journal.unlink()
    new = one_study(tmp_path / "out", initial={"n": 6})
    run_until(new, 6)
    assert complete(new)
    clean = one_study(tmp_path / "clean", initial={"n": 6})
    complete(clean)
    assert timeless(new.journal) == timeless(clean.journal)


# --- What a journal says ----------------------------------------------------------------------


def test_the_header_says_what_the_study_is(moments: list[Path]) -> None:
    header = read(moments[-1] / "0.jsonl").header
    study = header["study"]
    assert header["campaign"] == "small"
    assert study["problem"]["name"] == "branin"
    assert study["problem"]["noise_std"] == 0.5
    assert study["problem"]["minimum"] == problem("branin").minimum
    assert study["method"]["entropy"] == {"name": "mm"}
    assert study["method"]["samples"] == 12
    assert (study["seed"], header["budget"]) == (0, BUDGET)
    assert study["initial"] == {"design": "sobol", "n": INITIAL}
    assert set(header["versions"]) == {"python", "numpy", "scipy", "emcee"}


def test_the_true_values_are_those_of_the_points(moments: list[Path]) -> None:
    branin = problem("branin")
    rows = read(moments[-1] / "0.jsonl").rows
    assert [row["id"] for row in rows if row["event"] == "told"] == list(range(1, BUDGET + 1))
    assert [row["event"] for row in rows] == ["asked", "told"] * BUDGET + ["stopped"]
    for row in told(moments[-1] / "0.jsonl"):
        assert row["f"] == branin(list(row["point"].values()))
        assert row["value"] != row["f"]
    found = [row["recommended"] for row in rows if "recommended" in row]
    assert len(found) == BUDGET - INITIAL + 1
    for each in found:
        assert each["f"] == branin(list(each["point"].values()))


def test_what_is_known_of_a_fit_is_in_the_row_after_it(moments: list[Path]) -> None:
    rows = read(moments[-1] / "0.jsonl").rows
    fitted = [row for row in rows if "fitted" in row]
    assert [row["fitted"] for row in fitted] == list(range(INITIAL, BUDGET + 1))
    for row in fitted:
        assert row["event"] in ("asked", "stopped")
        assert len(row["eta"]) == 5
        assert row["eta"] == sorted(row["eta"])
        assert row["moved"] <= row["fitted"]
        assert ("mcmc" in row) == (row["moved"] == row["fitted"])
        assert {"mcmc", "recommend"} <= set(row["suggestion_seconds"])


def test_noise_is_of_the_seed_and_the_evaluation(tmp_path: Path) -> None:
    """All methods of a seed see the same values of the same design; seeds differ."""
    methods = [*SMALL["methods"], {"label": "R", "acquisition": "random", "samples": 12}]
    noises: dict[tuple[str, int], list[float]] = {}
    options: dict[str, Any] = {"noise_std": 2.0, "budget": 4, "initial": {"n": 4}}
    for study in campaign(tmp_path, methods=methods, seeds=2, **options).studies():
        complete(study)
        rows = told(study.journal)
        noises[str(study.method.label), study.seed] = [row["value"] - row["f"] for row in rows]
    assert noises["MM", 0] == noises["R", 0]
    assert noises["MM", 1] == noises["R", 1]
    both = noises["MM", 0] + noises["MM", 1]
    assert len(set(both)) == 8
    assert 0.5 < np.std(both) < 6.0


# --- Who may write it -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"noise_std": 0.25}, r"noise_std: was 0\.0, is 0\.25"),
        ({"initial": {"n": 4}}, r"initial\.n: was 3, is 4"),
        ({"initial": {"n": 3, "design": "latin"}}, r"initial\.design"),
        ({"methods": [{**SMALL["methods"][0], "samples": 14}]}, r"method\.samples: was 12, is 14"),
        ({"methods": [{**SMALL["methods"][0], "entropy": "vub"}]}, r"method\.entropy"),
        ({"budget": 9, "noise_std": 1.0}, r"configuration: noise_std: was 0\.0, is 1\.0\. Set"),
    ],
)
def test_a_changed_configuration_is_refused_with_its_keys(
    tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    run_until(one_study(tmp_path), 1)
    before = one_study(tmp_path).journal.read_bytes()
    with pytest.raises(ConfigChanged, match=named):
        complete(one_study(tmp_path, **change))
    assert one_study(tmp_path).journal.read_bytes() == before


@pytest.mark.parametrize("begun", [2, 4, 5])
def test_a_budget_may_grow(moments: list[Path], begun: int, tmp_path: Path) -> None:
    """Of a study under way or complete: its points are those of one that had it all along."""
    small = one_study(tmp_path, **NOISY, budget=5)
    if begun < 5:
        run_until(small, begun)
    else:
        assert complete(small)
    assert complete(one_study(tmp_path, **NOISY))
    first, whole = timeless(small.journal).splitlines(), timeless(moments[-1] / "0.jsonl")
    assert json.loads(first[0])["budget"] == 5  # the first line stays
    rows = [json.loads(row) for row in first[1:]]
    stops = [row for row in rows if row["event"] == "stopped"]
    assert [row["budget"] for row in stops] == ([5, 7] if begun == 5 else [7])
    fits = ("fitted", "eta", "mcmc", "recommended")
    assert [
        {key: value for key, value in row.items() if key not in fits}
        for row in rows
        if row is not stops[0] or begun < 5
    ] == [
        {key: value for key, value in json.loads(row).items() if key not in fits}
        for row in whole.splitlines()[1:]
    ]


def test_a_smaller_budget_is_spent(moments: list[Path], tmp_path: Path) -> None:
    """It is a limit, and not what a study is: no point depends on it, and none is taken away."""
    study = one_study(tmp_path, **NOISY)
    shutil.copytree(moments[-1], study.journal.parent)
    notebook = run(one_study(tmp_path, **NOISY, budget=5))
    assert notebook is not None
    assert notebook.stopped == "the budget of 5 evaluations is spent"
    assert n_told(study.journal) == BUDGET


def test_more_seeds_and_another_executor_or_version_are_no_change(tmp_path: Path) -> None:
    study = one_study(tmp_path, budget=3)
    run_until(study, 1)
    header, *rows = study.journal.read_text().splitlines()
    older = {**json.loads(header), "fitbo": "0.0.1", "versions": {"python": "3.0"}}
    study.journal.write_text("\n".join([json.dumps(older), *rows, ""]))
    assert complete(one_study(tmp_path, budget=3, seeds=5, executor="processes"))
    assert read(study.journal).header == older


def test_a_study_that_is_being_written_is_busy(tmp_path: Path) -> None:
    study = one_study(tmp_path)
    with Writer(study.journal), pytest.raises(Busy):
        complete(study)


def test_two_processes_on_one_campaign_do_not_corrupt_it(tmp_path: Path) -> None:
    for study in campaign(tmp_path / "alone", **MANY).studies():
        complete(study)
    config = write_config(tmp_path / "both", **MANY)
    children = [start(["run", str(config), "--no-report"]) for _ in range(2)]
    try:
        outputs = [child.communicate(timeout=100) for child in children]
    except subprocess.TimeoutExpired:
        for child in children:
            child.kill()
        raise
    assert [child.returncode for child in children] == [0, 0], outputs
    assert journals(tmp_path / "both") == journals(tmp_path / "alone")
    # Each of them reports that every study has ended, even one that the other process ran.
    assert all(out.count("branin / MM") == out.count("forrester / MM") == 2 for out, _ in outputs)
