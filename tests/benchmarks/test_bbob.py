"""``benchmarks/bbob.py``: the functions, the rivals that own their loop, and what is reported."""

from __future__ import annotations

import importlib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fitbo.decode import ConfigError
from fitbo.problems import problem
from fitbo.records.archive import pack
from fitbo.records.journal import ConfigChanged, read
from fitbo.report.history import load
from tests.benchmarks import module
from tests.campaigns import timeless

pytest.importorskip("ioh")
NEEDS = {"egobox-trego": "egobox", "egobox": "egobox", "pybads": "pybads", "cma": "cma"}
NEEDS |= {"smac": "smac"}


@pytest.fixture
def bbob(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """With a budget of four evaluations per dimension."""
    made = module("bbob")
    monkeypatch.setattr(made, "BUDGET", 4)
    return made


@pytest.fixture(scope="module")
def ecdf() -> ModuleType:
    return module("ecdf")


def config_of(bbob: ModuleType, output: Path, label: str = "it", function: int = 8) -> Any:
    method = {"label": label, "acquisition": "random"}
    return bbob.config_of("development", function, 2, 11, method, (), output)


def played(bbob: ModuleType, output: Path, play: Any) -> Path:
    """A study of a rival that owns its loop; the path of its journal."""
    config = config_of(bbob, output)
    bbob.run_study(config, module("rivals").Peer("it", "it", play=play))
    return config.journal


@pytest.mark.parametrize("dim", [2, 5])
@pytest.mark.parametrize("function", range(1, 25))
def test_a_minimiser_attains_the_minimum(bbob: ModuleType, function: int, dim: int) -> None:
    f = problem("bbob", dim=dim, function=function, instance=3)
    scale = 1e-9 * (1 + abs(f.minimum))
    assert f(f.minimisers[0]) == pytest.approx(f.minimum, abs=scale)
    X = f.space.from_cube(np.random.default_rng(0).random((200, dim)))
    assert (f.fun(X) > f.minimum).all()


def test_the_first_function_is_the_sphere(bbob: ModuleType) -> None:
    f = problem("bbob", dim=3, function=1, instance=12)
    x = np.array([1.0, -2.0, 4.5])
    assert f(x) == pytest.approx(f.minimum + ((x - f.minimisers[0]) ** 2).sum())
    assert f.bounds == ((-5.0, 5.0),) * 3
    assert f(x) != problem("bbob", dim=3, function=1, instance=13)(x)


@pytest.mark.parametrize("name", ["random", "egobox-trego", "egobox", "pybads", "cma", "smac"])
@pytest.mark.filterwarnings("ignore")  # of the rivals; none of them costs a point, see below
def test_a_killed_run_comes_out_the_same(bbob: ModuleType, tmp_path: Path, name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    peer, config = bbob.RIVALS[name], config_of(bbob, tmp_path)
    bbob.run_study(config, peer)
    whole, rows = timeless(config.journal), read(config.journal).rows
    assert [row["event"] for row in rows] == [*("asked", "told") * 8, "stopped"]
    assert not [row["fallback"] for row in rows if "fallback" in row]
    lines = config.journal.read_bytes().splitlines(keepends=True)
    for kept in (3, 8, 11, 12, 16):  # in the design, at its end, before and after a value, the end
        config.journal.write_bytes(b"".join(lines[: kept + 1]) + lines[kept + 1][:30])
        bbob.run_study(config, peer)
        assert timeless(config.journal) == whole
    never = replace(peer, fit=None, play=lambda *_, **__: pytest.fail("it is complete"))
    assert bbob.run_study(config, never) == "8 evaluations, complete"
    (run,) = load([config.journal])
    assert run.complete
    assert np.isfinite(run.seconds[4:]).all()
    assert run.immediate[-1] == run.simple[-1] >= 0


@pytest.mark.parametrize("name", ["egobox-trego", "pybads", "cma"])
@pytest.mark.filterwarnings("ignore")
def test_a_rival_finds_a_bowl(
    bbob: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """It is given the design's values: it ends far below what chance finds."""
    pytest.importorskip(NEEDS[name])
    monkeypatch.setattr(bbob, "BUDGET", 22)
    ends = {}
    for each in (name, "random"):
        config = config_of(bbob, tmp_path, each, function=1)
        bbob.run_study(config, bbob.RIVALS[each])
        (run,) = load([config.journal])
        ends[each] = run.simple[-1]
    assert ends[name] < 0.2 * ends["random"]


def test_the_design_is_the_same_for_all(bbob: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("cma")
    designs = []
    for name in ("random", "cma"):
        config = config_of(bbob, tmp_path, name)
        bbob.run_study(config, bbob.RIVALS[name])
        designs.append([row["point"] for row in read(config.journal).rows if "f" in row][:5])
    assert designs[0][:4] == designs[1][:4]
    assert designs[0][4] != designs[1][4]


def test_a_rival_that_ends_early_begins_again(bbob: ModuleType, tmp_path: Path) -> None:
    """Turns: two points and an error, nothing at all, one point after another."""
    starts = []

    def play(start: Any, evaluate: Any) -> None:
        starts.append((start.turn, len(start.data.y), start.left))
        if start.turn == 0:
            evaluate(np.array([0.25, 0.5]))
            evaluate(np.array([0.5, 0.5]))
            raise ZeroDivisionError("a pity")
        while start.turn > 1:
            evaluate(np.array([0.75, 1.5]))

    path = played(bbob, tmp_path, play)
    assert starts == [(0, 4, 4), (1, 6, 2), (2, 7, 1)]
    asked = [row for row in read(path).rows if row["event"] == "asked"][4:]
    assert [row.get("fallback") for row in asked] == [
        None,
        None,
        "ZeroDivisionError: a pity",
        None,
    ]
    points = [list(row["point"].values()) for row in asked]
    assert points[:2] == [[-2.5, 0.0], [0.0, 0.0]]
    assert points[3] == [2.5, 5.0]  # within the box
    lines = path.read_bytes().splitlines(keepends=True)
    whole = timeless(path)
    path.write_bytes(b"".join(lines[:14]))
    played(bbob, tmp_path, play)
    assert timeless(path) == whole


def test_a_rival_that_asks_for_other_points_is_refused(bbob: ModuleType, tmp_path: Path) -> None:
    def play(start: Any, evaluate: Any, at: float = 0.25) -> None:
        for i in range(start.left):
            evaluate(np.array([at, i / 10]))

    path = played(bbob, tmp_path, play)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:12]))
    before = path.read_bytes()
    with pytest.raises(module("rivals").Diverged, match="has another point 5 than it asks for now"):
        played(bbob, tmp_path, lambda start, evaluate: play(start, evaluate, 0.3))
    assert path.read_bytes() == before
    peer = module("rivals").Peer("it", "it", play=play, settings={"at": 0.3})
    with pytest.raises(ConfigChanged, match=r"method\.settings: was absent"):
        bbob.run_study(config_of(bbob, tmp_path), peer)


def test_a_run_that_must_stop_goes_on_later(bbob: ModuleType, tmp_path: Path) -> None:
    def play(start: Any, evaluate: Any) -> None:
        for i in range(start.left):
            evaluate(np.array([0.5, i / 10]))

    config, peer = config_of(bbob, tmp_path), module("rivals").Peer("it", "it", play=play)
    calls = iter([False] * 5 + [True])
    assert bbob.run_study(config, peer, lambda: next(calls)) == "stopped after 5 of 8"
    assert bbob.run_study(config, peer) == "8 evaluations, complete"
    whole = timeless(config.journal)
    assert timeless(played(bbob, tmp_path / "whole", play)) == whole


def test_settings_are_those_of_a_campaign(bbob: ModuleType, tmp_path: Path) -> None:
    settings = ["acquisition=logei", "surrogate.kernel=rbf", "initial.design=latin"]
    made = bbob.config_of("report", 3, 5, 2, {"label": "x"}, settings, tmp_path)
    assert made.method.acquisition == "logei"
    assert made.method.surrogate.kernel == "rbf"
    assert made.campaign.initial.design == "latin"
    assert (made.seed, made.n_initial) == (2, 10)
    assert made.journal == tmp_path / "report" / "f03-d5" / "x" / "2.jsonl"
    with pytest.raises(ConfigError, match="did you mean 'acquisition'"):
        bbob.config_of("report", 3, 5, 2, {"label": "x"}, ["acquisiton=ei"], tmp_path)


def command(monkeypatch: pytest.MonkeyPatch, bbob: ModuleType, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["bbob.py", *arguments])
    with pytest.raises(SystemExit) as ended:
        bbob.main()
    return int(ended.value.code or 0)


def test_report_and_compare(
    bbob: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of one method that stays at the centre and one that goes to the minimiser."""
    monkeypatch.setattr(bbob, "BUDGET", 22)
    for name in ("centre", "minimiser"):
        for function in (1, 8, 16):
            f = problem("bbob", dim=2, function=function, instance=11)
            u = f.space.to_cube(f.minimisers)[0] if name == "minimiser" else np.full(2, 0.5)
            config = config_of(bbob, tmp_path, name, function)
            peer = module("rivals").Peer(
                name, name, play=lambda start, evaluate, u=u: [evaluate(u) for _ in range(99)]
            )
            bbob.run_study(config, peer)
    folder = str(tmp_path)
    assert command(monkeypatch, bbob, "compare", "centre", "minimiser", "--output", folder) == 0
    said = capsys.readouterr().out
    assert "on 3 problems that both have completed" in said
    assert "| 3 - 0 - 0 |" in said.split("| all |")[1]
    pack(tmp_path / "development")  # an archive is read as well
    assert command(monkeypatch, bbob, "report", "--output", folder) == 0
    said = capsys.readouterr().out
    assert "| minimiser | 1.00 +- 0.00 | " in said
    assert "| centre | 2.00 +- 0.00 | " in said
    assert "| minimiser |  | 1.00 (1.00-1.00) |" in said
    rows = (tmp_path / "development" / "runs.csv").read_text().splitlines()
    assert len(rows) == 7
    regrets = {tuple(row.split(",")[:3]): float(row.split(",")[7]) for row in rows[1:]}
    assert regrets["minimiser", "2", "1"] < 1e-9
    assert (tmp_path / "development" / "ecdf-d2.png").read_bytes().startswith(b"\x89PNG")
    assert command(monkeypatch, bbob, "compare", "centre", "nobody", "--output", folder) == 2
    assert "must hold complete runs of nobody" in capsys.readouterr().err


def test_a_variant_needs_a_name(
    bbob: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, bbob, "run", "--set", "acquisition=logei") == 2
    assert "give it a name by --label" in capsys.readouterr().err
    assert bbob.numbers("1,11:13") == [1, 11, 12]


def test_hebo_where_it_is_installed(bbob: ModuleType) -> None:
    loops, peers = module("loops"), module("peers")
    loops.hebo_server.cache_clear()
    if "HEBO_PYTHON" not in os.environ:
        if importlib.util.find_spec("hebo") is None:
            assert "let HEBO_PYTHON name an interpreter" in peers.missing([bbob.RIVALS["hebo"]])
        pytest.skip("HEBO_PYTHON names no interpreter with HEBO")
    rng = np.random.default_rng(0)
    U = rng.random((8, 2))
    data = module("rivals").Data(U, ((U - 0.3) ** 2).sum(1), n_initial=4, noisy=False, seed=1)
    one, same = (loops.hebo(data).suggest() for _ in range(2))
    np.testing.assert_array_equal(one, same)
    assert one.shape == (2,)
    assert "HEBO" in loops.hebo_versions()
    server, _ = loops.hebo_server()
    server.stdin.close()
    server.stdout.close()
    assert server.wait(60) == 0
    loops.hebo_server.cache_clear()


def test_targets_are_cocos(ecdf: ModuleType) -> None:
    assert len(ecdf.TARGETS) == 51
    np.testing.assert_allclose(ecdf.TARGETS[[0, 1, -1]], [100, 10**1.8, 1e-8])
    run = ecdf.Score(np.array([200.0, 100.0, 1.0, 1e-8, -1e-12]), 1e-3, 0.0)
    np.testing.assert_allclose(run.reached, [0, 1 / 51, 11 / 51, 1, 1])
    np.testing.assert_allclose(run.log_regret[2:], [0, -8, -8])
    assert run.worse(0.05)
    assert not ecdf.Score(np.array([1e-3]), 1.04e-3, 0.0).worse(0.05)
    assert ecdf.group_of(9) == "low conditioning"
    assert sorted(f for group in ecdf.GROUPS.values() for f in group) == list(range(1, 25))


def test_standard_errors_are_over_functions(ecdf: ModuleType) -> None:
    rng = np.random.default_rng(1)
    means = rng.standard_normal(24)
    functions = np.repeat(np.arange(24), 5)
    mean, error = ecdf.clustered(means[functions], functions)
    assert mean == pytest.approx(means.mean())
    assert error == pytest.approx(means.std(ddof=1) / np.sqrt(24))
    low, high = ecdf.interval(means[functions], functions)
    assert (high - low) / (2 * 1.96) == pytest.approx(error, rel=0.1)
    assert low < mean < high
    independent, _ = ecdf.clustered(means, range(24))
    assert independent == pytest.approx(mean)
    assert np.isnan(ecdf.clustered(means[:5], [1] * 5)[1])


def test_ranks_and_wins_share_ties(ecdf: ModuleType) -> None:
    final = np.array([[-8.0, -8.0, 1.0], [2.0, 0.0, 1.0]])
    np.testing.assert_array_equal(ecdf.ranks(final), [[1.5, 1.5, 3], [3, 1, 2]])
    np.testing.assert_array_equal(ecdf.wins(final[:, 0], final[:, 1]), [0.5, 0])
    np.testing.assert_array_equal(ecdf.wins(final[:, 0], final[:, 2]), [1, 0])


def test_a_header_names_the_setting(bbob: ModuleType, tmp_path: Path) -> None:
    pytest.importorskip("pybads")
    made = module("rivals").header(config_of(bbob, tmp_path), bbob.RIVALS["pybads"])
    assert made["study"]["method"]["settings"] == {"fun_eval_start": 0, "tol_fun": 1e-8}
    assert json.loads(json.dumps(made)) == made
    assert "pybads" in made["versions"]
