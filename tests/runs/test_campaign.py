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

from fitbo.problems import problem
from fitbo.records.journal import Busy, ConfigChanged, Writer, read
from fitbo.runs.campaign import Task, run_study, tasks
from tests.campaigns import MANY, SMALL, campaign, journals, one_task, start, timeless, write_config

NOISY = {"noise_std": 0.5}
INITIAL, BUDGET = SMALL["initial"]["n"], SMALL["budget"]


def state_of(task: Task) -> Path:
    return task.path.with_suffix(".state.npz")


def run_until(task: Task, rows: int) -> None:
    """Run a new study until its journal holds that many rows."""
    left = iter(range(rows))
    assert not run_study(task, lambda: next(left, None) is None)
    assert len(read(task.path).rows) == rows


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A study's folder as it was before each evaluation, and when it was complete."""
    folder = tmp_path_factory.mktemp("moments")
    task = one_task(folder / "out", **NOISY)
    copies: list[Path] = []

    def copy() -> bool:
        copies.append(folder / str(len(copies)))
        shutil.copytree(task.path.parent, copies[-1])
        return False

    assert run_study(task, copy)
    copy()
    assert [len(read(each / "0.jsonl").rows) for each in copies] == list(range(BUDGET + 1))
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
    task = one_task(tmp_path, **NOISY)
    shutil.copytree(moments[n], task.path.parent)
    damage(moments, n, state_of(task))
    assert run_study(task)
    assert timeless(task.path) == timeless(moments[-1] / "0.jsonl")
    assert [file.name for file in task.path.parent.iterdir()] == ["0.jsonl"]
    # Rows that were there are still those very bytes, timings and all: nothing was run twice.
    assert task.path.read_bytes().startswith((moments[n] / "0.jsonl").read_bytes())


def test_a_study_has_a_state_only_while_it_runs(moments: list[Path]) -> None:
    """From the second fit on, for the first one starts from nothing."""
    there = [(each / "0.state.npz").exists() for each in moments]
    assert there == [INITIAL < n < BUDGET for n in range(BUDGET + 1)]


def test_the_state_saves_the_fits(moments: list[Path], tmp_path: Path, monkeypatch: Any) -> None:
    """With the state one fit is made again, without it every one."""
    import fitbo.study

    fits: list[int] = []
    real = fitbo.study.fit
    monkeypatch.setattr(fitbo.study, "fit", lambda X, *args: fits.append(len(X)) or real(X, *args))
    n = BUDGET - 1
    for damage, expected in ((as_it_is, [n, n + 1]), (missing, [*range(INITIAL, n + 2)])):
        task = one_task(tmp_path / damage.__name__, **NOISY)
        shutil.copytree(moments[n], task.path.parent)
        damage(moments, n, state_of(task))
        fits.clear()
        run_study(task)
        assert fits == expected


def test_the_same_seed_gives_the_same_journal_and_another_seed_another(tmp_path: Path) -> None:
    found = []
    for name, seeds in (("a", [4]), ("b", [4]), ("c", [5])):
        task = one_task(tmp_path / name, seeds=seeds, budget=5)
        run_study(task)
        found.append(timeless(task.path).partition(b"\n")[2])
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_a_complete_study_is_left_alone(moments: list[Path], tmp_path: Path) -> None:
    task = one_task(tmp_path, **NOISY)
    shutil.copytree(moments[-1], task.path.parent)
    before = task.path.read_bytes()
    assert run_study(task, lambda: pytest.fail("it should not run"))
    assert task.path.read_bytes() == before


def test_the_state_of_a_journal_that_was_removed_is_not_used(tmp_path: Path) -> None:
    """It has the right shape and the right number of values, and is of another study."""
    old = one_task(tmp_path / "out")
    run_until(old, 6)
    assert state_of(old).exists()
    old.path.unlink()
    new = one_task(tmp_path / "out", initial={"n": 6})
    run_until(new, 6)
    assert run_study(new)
    clean = one_task(tmp_path / "clean", initial={"n": 6})
    run_study(clean)
    assert timeless(new.path) == timeless(clean.path)


# --- What a journal says ----------------------------------------------------------------------


def test_the_header_says_what_the_study_is(moments: list[Path]) -> None:
    header = read(moments[-1] / "0.jsonl").header
    assert header["problem"]["name"] == "branin"
    assert header["problem"]["noise_std"] == 0.5
    assert header["problem"]["minimum"] == problem("branin").minimum
    assert header["method"]["entropy"] == {"name": "mm"}
    assert header["method"]["samples"] == 12
    assert (header["seed"], header["budget"]) == (0, BUDGET)
    assert header["initial"] == {"design": "sobol", "n": INITIAL}
    assert set(header["versions"]) == {"python", "numpy", "scipy", "emcee"}


def test_regrets_follow_from_the_points(moments: list[Path]) -> None:
    branin = problem("branin")
    rows = read(moments[-1] / "0.jsonl").rows
    assert [row["n"] for row in rows] == list(range(1, BUDGET + 1))
    for i, row in enumerate(rows):
        assert row["f"] == branin(row["x"])
        assert row["f_recommended"] == branin(row["x_recommended"])
        assert row["immediate_regret"] == abs(row["f_recommended"] - branin.minimum)
        assert row["simple_regret"] == min(r["f"] for r in rows[: i + 1]) - branin.minimum
        assert set(row["seconds"]) == {"mcmc", "search", "entropy", "recommend", "objective"}


def test_during_the_initial_design_the_lowest_value_is_recommended(moments: list[Path]) -> None:
    rows = read(moments[-1] / "0.jsonl").rows
    for i, row in enumerate(rows[: INITIAL - 1]):
        lowest = min(rows[: i + 1], key=lambda r: r["y"])  # as observed: f is not known
        assert row["x_recommended"] == lowest["x"]
        assert row["eta"] is None
        assert row["mcmc"] is None
    for row in rows[INITIAL - 1 :]:
        assert len(row["eta"]) == 5
        assert row["eta"] == sorted(row["eta"])
        assert row["mcmc"]["evaluations"] > 0


def test_noise_is_of_the_seed_and_the_evaluation(tmp_path: Path) -> None:
    """All methods of a seed see the same values of the same design; seeds differ."""
    methods = [*SMALL["methods"], {"label": "R", "acquisition": "random", "samples": 12}]
    noises: dict[tuple[str, int], list[float]] = {}
    options: dict[str, Any] = {"noise_std": 2.0, "budget": 4, "initial": {"n": 4}}
    for task in tasks(campaign(tmp_path, methods=methods, seeds=2, **options)):
        run_study(task)
        rows = read(task.path).rows
        noises[str(task.method.label), task.seed] = [row["y"] - row["f"] for row in rows]
    assert noises["MM", 0] == noises["R", 0]
    assert noises["MM", 1] == noises["R", 1]
    both = noises["MM", 0] + noises["MM", 1]
    assert len(set(both)) == 8
    assert 0.5 < np.std(both) < 6.0


# --- Who may write it -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"budget": 6}, "budget: was 7, is 6; a budget can only grow"),
        ({"noise_std": 0.25}, r"problem\.noise_std: was 0\.0, is 0\.25"),
        ({"initial": {"n": 4}}, r"initial\.n: was 3, is 4"),
        ({"initial": {"n": 3, "design": "latin"}}, r"initial\.design"),
        ({"methods": [{**SMALL["methods"][0], "samples": 14}]}, r"method\.samples: was 12, is 14"),
        ({"methods": [{**SMALL["methods"][0], "entropy": "vub"}]}, r"method\.entropy"),
        ({"budget": 5, "noise_std": 1.0}, r"noise_std: .*budget: was 7, is 5"),
        ({"budget": 9, "noise_std": 1.0}, r"noise_std: was 0\.0, is 1\.0\. Give"),
    ],
)
def test_a_changed_configuration_is_refused_with_its_keys(
    tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    run_until(one_task(tmp_path), 1)
    before = one_task(tmp_path).path.read_bytes()
    with pytest.raises(ConfigChanged, match=named):
        run_study(one_task(tmp_path, **change))
    assert one_task(tmp_path).path.read_bytes() == before


@pytest.mark.parametrize("begun", [2, 4, 5])
def test_a_budget_may_grow(moments: list[Path], begun: int, tmp_path: Path) -> None:
    """Of a study under way or complete: its points are those of one that had it all along."""
    small = one_task(tmp_path, **NOISY, budget=5)
    if begun < 5:
        run_until(small, begun)
    else:
        assert run_study(small)
    assert run_study(one_task(tmp_path, **NOISY))
    header, *rows = map(json.loads, timeless(small.path).splitlines())
    # The first line stays, and those that followed it say what was wanted then.
    assert header["budget"] == 5
    assert [row.pop("budget", None) for row in rows] == [None] * begun + [7] * (7 - begun)
    assert rows == [json.loads(row) for row in timeless(moments[-1] / "0.jsonl").splitlines()[1:]]
    with pytest.raises(ConfigChanged, match="budget: was 7, is 5; a budget can only grow"):
        run_study(small)


def test_more_seeds_and_another_executor_or_version_are_no_change(tmp_path: Path) -> None:
    task = one_task(tmp_path, budget=3)
    run_until(task, 1)
    header, *rows = task.path.read_text().splitlines()
    older = {**json.loads(header), "fitbo": "0.0.1", "versions": {"python": "3.0"}}
    task.path.write_text("\n".join([json.dumps(older), *rows, ""]))
    assert run_study(one_task(tmp_path, budget=3, seeds=5, executor="processes"))
    assert read(task.path).header == older


def test_a_study_that_is_being_written_is_busy(tmp_path: Path) -> None:
    task = one_task(tmp_path)
    with Writer(task.path), pytest.raises(Busy):
        run_study(task)


def test_two_processes_on_one_campaign_do_not_corrupt_it(tmp_path: Path) -> None:
    for task in tasks(campaign(tmp_path / "alone", **MANY)):
        run_study(task)
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
    # Each of them says of every study that it has ended, whoever ran it.
    assert all(out.count("branin / MM") == out.count("forrester / MM") == 2 for out, _ in outputs)
