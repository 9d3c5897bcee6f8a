"""``minimize`` as people call it: their names, their bounds, Ctrl-C, a journal, the result."""

from __future__ import annotations

import json
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter
from matplotlib.figure import Figure
from numpy.testing import assert_array_equal
from scipy.optimize import Bounds, OptimizeResult

import fitbo
from fitbo import Categorical, Integer, Real
from fitbo.cli import main
from fitbo.entropy import BACKENDS
from fitbo.minimise.arguments import CALLED_HERE, ELSEWHERE
from fitbo.records.journal import ConfigChanged, Writer, read
from fitbo.study import OPTIMA

SMALL: dict[str, Any] = {"n_samples": 20, "min_burn_in": 4, "max_burn_in": 40}
SQUARE = [(0.0, 1.0)] * 2


def bowl(x: Any) -> float:
    return float(((np.asarray(x) - 0.3) ** 2).sum())


class Interrupting:
    """The bowl, and Ctrl-C in its n-th call."""

    def __init__(self, at: int) -> None:
        self.at, self.calls = at, 0

    def __call__(self, x: Any) -> float:
        self.calls += 1
        if self.calls == self.at:
            signal.raise_signal(signal.SIGINT)
        return bowl(x)


def test_ctrl_c_returns_what_is_known() -> None:
    found = fitbo.minimize(Interrupting(5), SQUARE, n_calls=9, **SMALL)
    assert not found.success
    assert found.message == "interrupted after 4 evaluations"
    assert found.fun == min(found.func_vals)
    assert len(found.func_vals) == 4 == found.nfev


def test_a_journal_survives_an_interruption_and_is_continued_to_the_bit(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    given: dict[str, Any] = {"x0": [[0.1, 0.2], [0.8, 0.8]], "y0": [0.05, np.nan], **SMALL}
    broken = fitbo.minimize(Interrupting(7), SQUARE, n_calls=10, journal=path, **given)
    assert (broken.success, broken.nfev) == (False, 6)
    told = [row for row in read(path).rows if row["event"] == "told"]
    assert len(told) == 7
    calls = Interrupting(0)
    continued = fitbo.minimize(calls, SQUARE, n_calls=10, journal=path, **given)
    assert calls.calls == 4
    whole = fitbo.minimize(bowl, SQUARE, n_calls=10, **given)
    assert_array_equal(continued.x_iters, whole.x_iters)
    assert continued.fun_recommended == whole.fun_recommended
    assert continued.nfev == whole.nfev == 10
    assert len(continued.failures) == 1
    assert read(path).rows[-1]["reason"] == "the budget of 10 evaluations is spent"
    more = fitbo.minimize(bowl, SQUARE, n_calls=12, journal=str(path), **given)
    assert_array_equal(more.x_iters[:11], whole.x_iters)


def test_the_commands_read_the_journal_of_a_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = {"a": Real(0, 1), "n": Integer(1, 9, step=2), "c": Categorical(["x", "y"])}
    path = tmp_path / "my run.jsonl"
    fitbo.maximize(
        lambda p: p["a"] - p["n"], space, n_calls=9, journal=path, acquisition="lcb", **SMALL
    )
    assert main(["export", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "id,a,n,c,value,state,reason,seconds,source"
    assert len(lines) == 10
    assert main(["status", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "study: 9 of 9 evaluations"  # a blank is no name
    assert lines[1].startswith("best observed")
    assert any(line.startswith("what matters") for line in lines)
    assert main(["status", str(path), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert (known["journal"], known["told"], known["budget"]) == (str(path), 9, 9)
    assert main(["status", str(tmp_path / "none.jsonl")]) == 2
    assert "there is no journal" in capsys.readouterr().err
    assert main(["report", str(path), "--output", str(tmp_path / "page")]) == 0
    assert (tmp_path / "page" / "report.html").exists()


def test_seed_none_draws_a_seed_and_a_journal_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    one = fitbo.minimize(bowl, SQUARE, n_calls=3, seed=None, journal=path, **SMALL)
    other = fitbo.minimize(bowl, SQUARE, n_calls=3, seed=None, **SMALL)
    assert one.study.settings.seed != other.study.settings.seed
    again = fitbo.minimize(bowl, SQUARE, n_calls=5, seed=None, journal=path, **SMALL)
    assert_array_equal(again.x_iters[:3], one.x_iters)


def test_another_call_is_refused_by_the_journal_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    fitbo.minimize(bowl, SQUARE, n_calls=3, journal=path, **SMALL)
    before = path.read_bytes()
    with pytest.raises(ConfigChanged, match=r"space.x0.high: was 1.0, is 2.0"):
        fitbo.minimize(bowl, [(0, 2), (0, 1)], n_calls=3, journal=path, **SMALL)
    export = rf"seed: was 0, is 1\. .*fitbo export {path} old.csv and give that as x0 and y0"
    with pytest.raises(ConfigChanged, match=export):
        fitbo.minimize(bowl, SQUARE, n_calls=3, journal=path, seed=1, **SMALL)
    with (
        Writer(path),
        pytest.raises(
            ValueError, match="being written by another process: wait until it has ended"
        ),
    ):
        fitbo.minimize(bowl, SQUARE, n_calls=3, journal=path, **SMALL)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraints": [lambda x: True]}, "journal needs constraints that can be written down"),
        ({"entropy": lambda mixture: mixture.mean}, "journal needs an entropy that can be"),
        (
            {"bounds": {"a b": (0, 1)}},
            "(?s)journal cannot describe this study: .*letters,\\s+digits",
        ),
    ],
)
def test_what_a_journal_cannot_hold_is_refused_before_anything_is_run(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    with pytest.raises(ValueError, match=message):
        fitbo.minimize(bowl, **{"bounds": SQUARE, "journal": path} | options)
    assert not path.exists()


@pytest.mark.parametrize("name", BACKENDS)
def test_a_journal_describes_every_entropy_of_ours(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    fitbo.minimize(bowl, [(0, 1)], n_calls=1, entropy=BACKENDS[name](), journal=path)
    assert read(path).header["study"]["method"]["entropy"]["name"] == name


def test_bounds_in_every_form_ask_for_the_same_points() -> None:
    forms = [SQUARE, Bounds([0, 0], [1, 1]), Bounds(0, [1, 1]), [Real(0, 1)] * 2, np.array(SQUARE)]
    points = [fitbo.minimize(bowl, form, n_calls=6, **SMALL).x_iters for form in forms]
    for other in points[1:]:
        assert_array_equal(other, points[0])
    assert fitbo.Study(SQUARE).ask(3).shape == (3, 2)
    assert set(fitbo.Study({"a": Real(0, 1)}).ask()[0]) == {"a"}


def test_a_list_of_parameters_keeps_their_scales() -> None:
    found = fitbo.minimize(
        lambda x: abs(np.log10(x[0]) + 3) + abs(x[1] - 4),
        [Real(1e-5, 1, log=True), Integer(1, 9)],
        n_calls=16,
        **SMALL,
    )
    assert set(found.x_iters[:, 1] % 1) == {0.0}
    assert (found.x_iters[:, 0] < 1e-2).sum() > 3
    with pytest.raises(ValueError, match=r"bounds\[1\] is a category: give a dict"):
        fitbo.Space([Real(0, 1), Categorical(["a", "b"])])
    with pytest.raises(ValueError, match="must be finite"):
        fitbo.minimize(bowl, Bounds([0], [np.inf]))


def test_failures_among_the_values_given() -> None:
    x0 = [[0.1, 0.1], [0.9, 0.9], [0.5, 0.5]]
    found = fitbo.minimize(bowl, SQUARE, n_calls=4, x0=x0, y0=[0.08, np.nan, None], **SMALL)
    assert [reason for _, reason in found.failures] == ["the value is nan"] * 2
    assert (len(found.func_vals), found.nfev) == (5, 4)


def test_without_an_initial_design_the_model_chooses_at_once() -> None:
    known: dict[str, Any] = {"x0": [[0.2, 0.2], [0.9, 0.9]], "y0": [0.1, 2.0]}
    designed = fitbo.minimize(bowl, SQUARE, n_calls=1, n_initial=6, **known, **SMALL)
    modelled = fitbo.minimize(bowl, SQUARE, n_calls=1, n_initial=0, **known, **SMALL)
    assert not any("suggestion_seconds" in row for row in designed.notebook.rows)
    assert "search" in modelled.notebook.rows[2]["suggestion_seconds"]
    assert len(fitbo.minimize(bowl, SQUARE, n_calls=3, n_initial=0, **SMALL).func_vals) == 3


@pytest.mark.parametrize("theirs", CALLED_HERE)
def test_an_argument_of_another_library_is_answered_with_ours(theirs: str) -> None:
    with pytest.raises(
        TypeError, match=f"no argument '{theirs}': here it is called {CALLED_HERE[theirs]}$"
    ):
        fitbo.minimize(**{theirs: 1})


def test_unknown_and_missing_arguments_are_one_sentence() -> None:
    with pytest.raises(TypeError, match="has no argument 'n_sample'; did you mean 'n_samples'"):
        fitbo.minimize(bowl, SQUARE, n_sample=3)
    with pytest.raises(TypeError, match="has no argument 'zzz'; it takes acquisition, "):
        fitbo.maximize(bowl, SQUARE, zzz=3)
    with pytest.raises(TypeError, match="needs bounds, such as"):
        fitbo.minimize(bowl)
    with pytest.raises(TypeError, match="needs a function"):
        fitbo.minimize(bounds=SQUARE)
    with pytest.raises(TypeError, match="fun must be a function of x, got 3"):
        fitbo.minimize(3, SQUARE)  # type: ignore[arg-type]
    assert not set(CALLED_HERE) & set(ELSEWHERE)


def failing(p: dict[str, Any]) -> float:
    if p["c"] == "<b>":
        raise RuntimeError("no")
    return float(p["a"])


@pytest.fixture(scope="module")
def result() -> fitbo.minimise.Result:
    space = {"a": Real(0, 1), "c": Categorical(["x", "<b>"])}
    return fitbo.minimize(failing, space, n_calls=8, seed=3, **SMALL)


def test_the_result_is_scipys_and_prints_in_ten_lines(result: Any) -> None:
    assert isinstance(result, OptimizeResult)
    assert str(result) == repr(result)
    lines = str(result).splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 120
    assert f"nfev: 8, {len(result.failures)} failed" in str(result)
    long = fitbo.minimize(lambda p: 0.0, {f"x{i}": (0, 1) for i in range(90)}, n_calls=1)
    assert len(str(long).splitlines()) <= 10
    assert max(map(len, str(long).splitlines())) <= 120


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_result_says_where_the_minimum_is_thought_to_lie(direction: str) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    result = fitbo.minimize(
        lambda x: sign * bowl(x), SQUARE, n_calls=14, direction=direction, **SMALL
    )
    assert result.minimum is not None
    low, middle, high = result.minimum
    assert low <= middle <= high
    assert low <= 0.0 <= high
    assert result.minimum == tuple(result.study.minimum_quantiles())
    assert result.remaining == result.study.remaining() > 0
    (line,) = (line for line in str(result).splitlines() if "90% in" in line)
    assert line.split(":")[0].strip() == OPTIMA[direction]
    assert f", {result.remaining:.2g} still to gain" in line
    for nothing in ({"n_calls": 1}, {"n_calls": 4, "fun": lambda x: 1.0}):
        none = fitbo.minimize(**{"fun": bowl, "bounds": SQUARE} | nothing, **SMALL)
        assert none.minimum is None
        assert none.remaining is None
        assert "90% in" not in str(none)


def test_a_pool_is_used_by_all_of_its_workers() -> None:
    """Both evaluations must be under way for either to end."""
    both = threading.Barrier(2, timeout=20)

    def together(x: Any) -> float:
        both.wait()
        return bowl(x)

    with ThreadPoolExecutor(2) as pool:
        result = fitbo.minimize(together, SQUARE, n_calls=4, executor=pool, **SMALL)
    assert (result.nfev, result.failures) == (4, [])
    with Pool(1) as other, pytest.raises(ValueError, match=r"executor must .*, got Pool: give"):
        fitbo.minimize(bowl, SQUARE, n_calls=4, executor=other)


def test_the_result_in_a_notebook_is_escaped(result: Any) -> None:
    html = result._repr_html_()
    assert "predicted" in html
    result.message = "<script>"
    assert "<script>" not in result._repr_html_()


def test_the_result_as_a_table(result: Any) -> None:
    pytest.importorskip("pandas")
    frame = result.to_dataframe()
    assert list(frame.columns) == ["a", "c", "value", "reason"]
    assert len(frame) == 8
    assert frame["value"].isna().sum() == len(result.failures) > 0
    assert frame["value"].min() == result.fun


def test_a_table_without_pandas_is_one_sentence(
    result: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_dataframe needs pandas: pip install pandas"):
        result.to_dataframe()


@pytest.mark.parametrize("kind", ["progress", "slices", "dependence"])
def test_the_result_draws_itself(result: Any, kind: str) -> None:
    figure = result.plot(kind)
    assert isinstance(figure, Figure)
    shown, _ = DisplayFormatter().format(figure)  # in a notebook
    assert shown["image/png"].startswith(b"\x89PNG")


def test_an_unknown_figure_is_one_sentence(result: Any) -> None:
    with pytest.raises(ValueError, match=r"kind must be one of progress.* did you mean 'slices'"):
        result.plot("slice")


def test_a_call_from_another_thread_works() -> None:
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(fitbo.minimize(bowl, SQUARE, n_calls=2, **SMALL))
    )
    thread.start()
    thread.join()
    assert found[0].success


def test_progress_without_a_terminal_is_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    fitbo.minimize(failing, {"a": (0, 1), "c": Categorical(["x", "<b>"])}, n_calls=4, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("[1/4] a=")
    assert json.loads(lines[-1].rpartition("best ")[2][:-1]) < 1
