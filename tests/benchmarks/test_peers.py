"""``benchmarks/peers.py``: the rivals' studies are a campaign's, but for who chooses the points."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fitbo.inference.settings import Settings
from fitbo.problems import problem
from fitbo.records.journal import Busy, ConfigChanged, Writer, read
from fitbo.report import regret
from fitbo.report.campaign import write_report
from fitbo.runs.campaign import run_study
from fitbo.study import Study
from tests.campaigns import ENVIRONMENT, journals, one_task, timeless

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "peers.py"
NOISE = 1e-3
# Optuna 4 warns of the multivariate TPE, and a warning would be a fallback here.
pytestmark = pytest.mark.filterwarnings("ignore:Argument ``multivariate`` is an experimental")
NEEDS = {
    "tpe": "optuna",
    "gpsampler": "torch",
    **dict.fromkeys(("logei", "gibbon", "jes"), "botorch"),
}


@pytest.fixture(scope="module")
def peers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks_peers", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look there for their types
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def small(peers: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The same with searches as short as they can be."""
    for name, value in (("RAW_SAMPLES", 16), ("RESTARTS", 4), ("CANDIDATES", 20), ("OPTIMA", 3)):
        monkeypatch.setattr(peers, name, value)
    return peers


def study(peers: ModuleType, output: Path, name: str, noise: float = 0.0, extra: int = 3) -> Path:
    """One study on Branin; the path of its journal."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    task = peers.task_of("branin", name, 5, noise, extra, output)
    peers.run_study(task, name)
    return task.path


def test_the_design_is_that_of_a_study(peers: ModuleType, tmp_path: Path) -> None:
    rows = read(study(peers, tmp_path, "random")).rows
    asked = Study(problem("branin").space, Settings(seed=5, n_initial=4, design="sobol"))
    for row in rows[:4]:
        np.testing.assert_array_equal(row["x"], asked.ask()[0])
        asked.tell(row["x"], row["y"])
    assert len({tuple(row["x"]) for row in rows}) == len(rows) == 7


def test_one_report_draws_rivals_and_fitbo(small: ModuleType, tmp_path: Path) -> None:
    """A campaign of the same name meets the same problem, points and noise."""
    noisy = {"name": "branin", "noise_std": float(np.sqrt(NOISE))}
    changes = {"name": "peers", "problems": [noisy], "seeds": [5], "initial": {"n": 4}}
    ours = one_task(tmp_path, **changes)
    run_study(ours)
    theirs = read(study(small, tmp_path, "random", NOISE))
    mine = read(ours.path)
    assert theirs.header["problem"] == mine.header["problem"]
    assert theirs.header["initial"] == mine.header["initial"]
    for a, b in zip(theirs.rows[:4], mine.rows[:4], strict=True):
        assert list(a) == list(b)
        assert all(a[key] == b[key] for key in ("n", "x", "y", "f", "simple_regret"))
    assert theirs.rows[6]["y"] - theirs.rows[6]["f"] == pytest.approx(
        mine.rows[6]["y"] - mine.rows[6]["f"]
    )

    runs = regret.load([tmp_path / "peers"])
    (methods,) = regret.group(runs).values()
    assert set(methods) == {"MM", "Random"}
    assert all(run.complete for run in runs)
    page = write_report([tmp_path / "peers"])
    assert "Random" in page.read_text()
    assert "Random" in page.with_name("summary.md").read_text()


@pytest.mark.parametrize("noise", [0.0, NOISE])
@pytest.mark.parametrize("name", ["random", "tpe", "gpsampler", "logei", "gibbon", "jes"])
def test_a_killed_run_comes_out_the_same(
    small: ModuleType, tmp_path: Path, name: str, noise: float
) -> None:
    path = study(small, tmp_path, name, noise)
    whole = timeless(path)
    rows = read(path).rows
    assert not [row["fallback"] for row in rows if "fallback" in row]
    assert rows[-1]["simple_regret"] == min(row["f"] for row in rows) - problem("branin").minimum
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in (2, 4, 5, 6):  # within the design, at its end, and after
        path.write_bytes(b"".join(lines[: kept + 1]) + lines[kept + 1][:30])
        study(small, tmp_path, name, noise)
        assert timeless(path) == whole
    (run,) = regret.load([path])
    assert run.complete
    assert np.isfinite(run.seconds[4:]).all()


@pytest.mark.parametrize("name", ["gpsampler", "logei"])
def test_a_rival_told_that_noisy_data_are_exact(small: ModuleType, name: str) -> None:
    pytest.importorskip(NEEDS[name])
    rng = np.random.default_rng(0)
    U = rng.random((12, 2))
    y = (U**2).sum(1) + 0.1 * rng.standard_normal(12)
    noisy = small.Data(U, y, n_initial=4, noisy=True, seed=1)
    told, inferred, exact = (
        small.PEERS[peer].fit(data).recommend()
        for peer, data in (
            (f"{name}-exact", noisy),
            (name, noisy),
            (name, replace(noisy, noisy=False)),
        )
    )
    np.testing.assert_array_equal(told, exact)
    assert abs(told - inferred).max() > 1e-3


@pytest.mark.parametrize("name", ["gpsampler", "logei"])
def test_a_model_recommends_below_its_data(small: ModuleType, tmp_path: Path, name: str) -> None:
    """On a function that a model learns soon, its minimiser beats the points seen."""
    pytest.importorskip(NEEDS[name])
    task = small.task_of("styblinski_tang:1", name, 0, 0.0, 8, tmp_path)
    small.run_study(task, name)
    last = read(task.path).rows[-1]
    assert last["x_recommended"] != last["x"]
    assert last["immediate_regret"] < 1e-2


def test_a_rival_that_raises_loses_no_row(
    peers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(data: Any) -> Any:
        if len(data.y) == 5:
            raise np.linalg.LinAlgError("not positive definite")
        return peers.Model(lambda: np.full(2, np.nan if len(data.y) == 6 else 0.5))

    monkeypatch.setitem(peers.PEERS, "random", replace(peers.PEERS["random"], fit=fit))
    path = study(peers, tmp_path, "random")
    rows = read(path).rows
    assert [row.get("fallback", "")[:50] for row in rows[3:]] == [
        "",
        "recommendation: RuntimeError: LinAlgError: not pos",
        "suggestion: RuntimeError: LinAlgError: not positiv",
        "suggestion: not finite",
    ]
    assert all(np.isfinite(row["x"]).all() for row in rows)
    whole = timeless(path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:6]))
    study(peers, tmp_path, "random")
    assert timeless(path) == whole


def test_journals_of_others_are_left_alone(peers: ModuleType, tmp_path: Path) -> None:
    path = study(peers, tmp_path, "random")
    before = path.read_bytes()
    study(peers, tmp_path, "random")
    with pytest.raises(ConfigChanged, match="budget"):
        study(peers, tmp_path, "random", extra=2)
    with Writer(path), pytest.raises(Busy):
        study(peers, tmp_path, "random")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("spec", "variance", "label", "budget"),
    [
        ("hartmann6", 0.0, "hartmann6", 112),
        ("hartmann6", NOISE, "hartmann6-noise=0.0316228", 112),
        ("michalewicz", 0.0, "michalewicz5", 110),
        ("levy:4", 0.0, "levy4", 108),
        ("ackley5", 0.0, "ackley5", 110),
        ("gp_draw:1:seed=7:kernel=rbf", 0.0, "gp_draw1-seed=7-kernel=rbf", 102),
    ],
)
def test_labels_are_those_of_a_campaign(
    peers: ModuleType, spec: str, variance: float, label: str, budget: int
) -> None:
    task = peers.task_of(spec, "tpe", 3, variance, 100, Path("results"))
    assert task.path == Path("results/peers") / label / "Optuna-TPE" / "3.jsonl"
    assert task.campaign.budget == budget


def test_seeds(peers: ModuleType) -> None:
    assert peers.seeds_of("2:5") == [2, 3, 4]
    assert peers.seeds_of("7") == [7]


def test_a_missing_package_is_named(peers: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["peers.py", "--peers", "tpe"])
    with pytest.raises(SystemExit, match=r'tpe needs optuna: .*-e "\.\[peers\]"'):
        peers.main()


def test_two_workers(tmp_path: Path) -> None:
    arguments = "--problems branin forrester --peers random --seeds 0:2 --extra 2"
    command = [sys.executable, str(SCRIPT), *arguments.split()]
    for output, workers in (("one", "1"), ("two", "2")):
        done = subprocess.run(
            [*command, "--workers", workers, "--output", str(tmp_path / output)],
            capture_output=True,
            text=True,
            check=False,
            env=ENVIRONMENT,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("evaluations") == 4
    assert journals(tmp_path / "one") == journals(tmp_path / "two")
