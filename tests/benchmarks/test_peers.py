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
from fitbo.records.archive import pack
from fitbo.records.journal import Busy, ConfigChanged, Writer, read
from fitbo.report.history import group, load
from fitbo.report.write import write_report
from fitbo.study import Study
from tests.campaigns import ENVIRONMENT, complete, journals, one_study, timeless

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "peers.py"
NOISE = 1e-3
# A warning would be a fallback here: Optuna 4's of the multivariate TPE, GPyTorch's of a matrix
# that is singular to rounding.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Argument ``multivariate`` is an experimental"),
    pytest.mark.filterwarnings("ignore:A not p.d., added jitter"),
]
NEEDS = {
    "tpe": "optuna",
    "gpsampler": "torch",
    **dict.fromkeys(("logei", "gibbon", "jes"), "botorch"),
}


@pytest.fixture(scope="module")
def peers() -> ModuleType:
    sys.path.insert(0, str(SCRIPT.parent))  # where a script finds the modules beside it
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
    config = peers.config_of("branin", name, 5, noise, extra, output)
    peers.run_study(config, name)
    return config.journal


def events(path: Path, event: str) -> list[dict[str, Any]]:
    return [row for row in read(path).rows if row["event"] == event]


def test_the_design_is_that_of_a_study(peers: ModuleType, tmp_path: Path) -> None:
    rows = events(study(peers, tmp_path, "random"), "told")
    points = [list(row["point"].values()) for row in rows]
    asked = Study(problem("branin").space, Settings(seed=5, n_initial=4, design="sobol"))
    for x, row in zip(points[:4], rows, strict=False):
        np.testing.assert_array_equal(x, asked.ask()[0])
        asked.tell(x, row["value"])
    assert len({tuple(x) for x in points}) == len(rows) == 7


def test_one_report_draws_rivals_and_fitbo(small: ModuleType, tmp_path: Path) -> None:
    """A campaign of the same name meets the same problem, points and noise."""
    noisy = {"name": "branin", "noise_std": float(np.sqrt(NOISE))}
    changes = {"name": "peers", "problems": [noisy], "seeds": [5], "initial": {"n": 4}}
    ours = one_study(tmp_path, **changes)
    assert complete(ours)
    theirs = read(study(small, tmp_path, "random", NOISE))
    mine = read(ours.journal)
    assert theirs.header["study"]["problem"] == mine.header["study"]["problem"]
    assert theirs.header["study"]["initial"] == mine.header["study"]["initial"]
    assert [row["event"] for row in theirs.rows] == [row["event"] for row in mine.rows]
    for a, b in zip(theirs.rows[:8], mine.rows[:8], strict=True):
        assert list(a) == list(b)
        assert all(a.get(key) == b.get(key) for key in ("event", "id", "point", "value", "f"))
    for a, b in zip(theirs.rows[8:], mine.rows[8:], strict=True):
        assert set(a) <= set(b)
    last, same = theirs.rows[13], mine.rows[13]
    assert last["value"] - last["f"] == pytest.approx(same["value"] - same["f"])

    runs = load([tmp_path / "peers"])
    (methods,) = group(runs).values()
    assert set(methods) == {"MM", "Random"}
    assert all(run.complete for run in runs)
    one, other = runs
    np.testing.assert_array_equal(one.simple[:4], other.simple[:4])
    np.testing.assert_array_equal(one.immediate[:3], other.immediate[:3])  # then there is a model
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
    assert [row["event"] for row in rows] == [*("asked", "told") * 7, "stopped"]
    assert not [row["fallback"] for row in rows if "fallback" in row]
    lines = path.read_bytes().splitlines(keepends=True)
    # Within the design, at its end, before and after the value of a chosen point, before the end.
    for kept in (3, 4, 8, 9, 10, 14):
        path.write_bytes(b"".join(lines[: kept + 1]) + lines[kept + 1][:30])
        study(small, tmp_path, name, noise)
        assert timeless(path) == whole
    (run,) = load([path])
    assert run.complete
    assert np.isfinite(run.seconds[4:]).all()
    told = events(path, "told")
    assert run.simple[-1] == min(row["f"] for row in told) - problem("branin").minimum
    assert run.immediate[-1] == abs(rows[-1]["recommended"]["f"] - problem("branin").minimum)


@pytest.mark.parametrize("name", ["random", "gpsampler"])
def test_a_larger_budget_goes_on_as_if_it_had_been_so(
    small: ModuleType, tmp_path: Path, name: str
) -> None:
    whole = study(small, tmp_path / "whole", name)
    grown = study(small, tmp_path / "grown", name, extra=1)
    study(small, tmp_path / "grown", name)
    assert len(events(grown, "stopped")) == 2
    rows = [timeless(path).splitlines()[1:] for path in (whole, grown)]
    assert rows[0] == [line for line in rows[1] if b"the budget of 5" not in line]


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
    config = small.config_of("styblinski_tang:1", name, 0, 0.0, 8, tmp_path)
    small.run_study(config, name)
    told, last = read(config.journal).rows[-2:]
    assert last["recommended"]["point"] != told["point"]
    (run,) = load([config.journal])
    assert run.immediate[-1] < 1e-2


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
    why = "RuntimeError: LinAlgError: not positive definite"
    assert [row.get("fallback", "") for row in rows if "suggestion_seconds" in row] == [
        "",
        f"recommendation: {why}; suggestion: {why}",
        "suggestion: not finite",
        "",
    ]
    assert all(np.isfinite(list(row["point"].values())).all() for row in rows[:-1])
    best = min(rows[1:10:2], key=lambda row: row["value"])  # of the five values before it
    assert rows[10]["recommended"] == {"point": best["point"], "f": best["f"]}
    whole = timeless(path)
    for kept in (10, 11):  # before and after the point that fell back is asked for
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[: kept + 1]))
        study(peers, tmp_path, "random")
        assert timeless(path) == whole


def test_journals_of_others_are_left_alone(peers: ModuleType, tmp_path: Path) -> None:
    path = study(peers, tmp_path, "random")
    before = path.read_bytes()
    study(peers, tmp_path, "random")
    study(peers, tmp_path, "random", extra=2)  # more than that is there
    with Writer(path), pytest.raises(Busy):
        study(peers, tmp_path, "random")
    assert path.read_bytes() == before
    ours = {"label": "Random", "acquisition": "random", "samples": 12}
    fitbo = one_study(tmp_path / "ours", name="peers", methods=[ours], seeds=[5], initial={"n": 4})
    assert complete(fitbo)
    before = fitbo.journal.read_bytes()
    with pytest.raises(ConfigChanged, match=r"method\.peer: was absent, is 'random'"):
        study(peers, tmp_path / "ours", "random")
    assert fitbo.journal.read_bytes() == before


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
    config = peers.config_of(spec, "tpe", 3, variance, 100, Path("results"))
    assert config.journal == Path("results/peers") / label / "Optuna-TPE" / "3.jsonl"
    assert config.campaign.budget == budget


def test_seeds(peers: ModuleType) -> None:
    assert peers.seeds_of("2:5") == [2, 3, 4]
    assert peers.seeds_of("7") == [7]


def test_a_missing_package_is_named(peers: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["peers.py", "--peers", "tpe"])
    with pytest.raises(SystemExit, match=r'tpe needs optuna: .*-e "\.\[peers\]"'):
        peers.main()


def test_two_workers_and_an_archive(tmp_path: Path) -> None:
    arguments = "--problems branin forrester --peers random --seeds 0:2 --extra 2"
    command = [sys.executable, str(SCRIPT), *arguments.split()]
    for output, workers in (("one", "1"), ("two", "2"), ("one", "2")):
        done = subprocess.run(
            [*command, "--workers", workers, "--output", str(tmp_path / output)],
            capture_output=True,
            text=True,
            check=False,
            env=ENVIRONMENT,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("evaluations") == 4
        if output == "two":
            assert journals(tmp_path / "one") == journals(tmp_path / "two")
            pack(tmp_path / "one" / "peers")
            assert journals(tmp_path / "one") == {}
    assert journals(tmp_path / "one") == journals(tmp_path / "two")
