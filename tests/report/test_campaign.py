"""The figures and the page of a campaign; ``test_page`` is what a browser makes of it."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from fitbo.records.journal import parsed
from fitbo.report.campaign import campaign_page, resolved_config, slugs, summary_table
from fitbo.report.drawing import image, spread
from fitbo.report.figures import (
    _regret_ticks,
    posterior_figure,
    regret_figure,
    run_styles,
    seconds_figure,
)
from fitbo.report.history import group, load
from fitbo.report.palette import COLOURS, DARK, LIGHT, contrast, styles, written
from fitbo.report.picture import AcquisitionCurve, Drawn, Picture, figure_1d
from fitbo.report.regret import summarise
from fitbo.report.write import write_report
from tests.report.test_regret import write_run

EVIL = "<script>alert(1)</script>"
DOLLARS = "a $x_{1}$ & {{table}}"


METHODS = ("FITBO-10", "FITBO-2", EVIL, DOLLARS)


def write_campaign(root: Path, short: int = 10) -> Path:
    """Two problems and four methods, some of hostile names; two runs may be shorter."""
    for problem in ("branin", f"{EVIL}/../2"):
        for i, method in enumerate(METHODS):
            for seed in range(3):
                n = short if (i, seed) == (1, 2) else 10
                regrets = [10.0 ** (-(i + 1) * k / 6 - seed / 5) for k in range(n)]
                options: dict[str, Any] = {"seed": seed, "budget": 10, "campaign": "<i>demo</i>"}
                write_run(root, regrets, problem=problem, method=method, **options)
    return root


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The campaign with two runs unfinished."""
    return write_campaign(tmp_path_factory.mktemp("results"), short=7)


@pytest.fixture(scope="module")
def page(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([results], tmp_path_factory.mktemp("page"))


def test_an_image_is_the_same_each_time(results: Path) -> None:
    """The PNGs of a report are compared where the page is written twice."""
    methods = group(load([results]))["branin"]
    style = run_styles({"branin": methods})
    first, again = (image(seconds_figure("branin", methods, style)) for _ in range(2))
    assert first == again
    assert first.startswith(b"\x89PNG")
    assert b"tEXt" not in first  # neither a date nor a version


def test_a_regret_figure_shows_the_medians(results: Path) -> None:
    methods = group(load([results]))["branin"]
    figure = regret_figure("branin", methods, run_styles({"branin": methods}))
    left = figure.axes[0]
    colour = run_styles({"branin": methods})["FITBO-10"]["color"]
    line = next(line for line in left.lines if line.get_color() == colour)
    assert_allclose(line.get_xdata(), np.arange(1, 11))
    assert_allclose(line.get_ydata(), [-k / 6 - 0.2 for k in range(10)])  # seed 1 is the middle one
    names = {text.get_text() for text in figure.axes[1].texts}
    assert set(METHODS) <= names
    dotted = [line for line in left.lines if line.get_linestyle() == ":"]
    assert len(dotted) == 1  # FITBO-2, of which one run has stopped


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ((-3.4, 1.2), ["10⁻³", "10⁻²", "10⁻¹", "10⁰", "10¹"]),
        ((-0.8, 0.65), ["0.2", "0.5", "1", "2"]),
        ((0.02, 0.05), ["1.05", "1.06", "1.07", "1.08", "1.1", "1.11", "1.12"]),
    ],
)
def test_an_axis_of_regrets_has_labels_at_any_range(
    limits: tuple[float, float], expected: list[str]
) -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.set_ylim(*limits)
    _regret_ticks(axes)
    figure.canvas.draw()
    shown = [
        label.get_text()
        for label, at in zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)
        if limits[0] <= at <= limits[1]
    ]
    assert shown == expected


def test_styles_follow_the_method_and_the_campaign() -> None:
    assert len({str(style) for style in styles([str(i) for i in range(32)])}) == 32
    a, b, c, d = styles(["EI", "MM", "EI", "MM"], ["one", "one", "two", "two"])
    assert a["color"] == c["color"] != b["color"] == d["color"]
    assert a["linestyle"] == b["linestyle"] != c["linestyle"] == d["linestyle"]


def test_colours_are_distinct_and_can_be_seen_in_both_themes() -> None:
    """In OKLab, where 0.02 is a just noticeable difference."""
    assert len({style["color"] for style in styles([str(i) for i in range(16)])}) == 16
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in COLOURS])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    cones = [[0.41222, 0.53633, 0.05145], [0.2119, 0.6807, 0.1074], [0.0883, 0.28172, 0.62998]]
    opponent = [
        [0.21045, 0.79362, -0.00407],
        [1.978, -2.42859, 0.45059],
        [0.0259, 0.78277, -0.80868],
    ]
    lab = np.cbrt(linear @ np.array(cones).T) @ np.array(opponent).T
    apart = np.linalg.norm(lab[:, None] - lab, axis=2) + np.eye(len(lab))
    assert apart.min() > 0.08
    for colour in COLOURS:
        assert min(contrast(colour, DARK), contrast(colour, LIGHT)) >= 3
        assert contrast(written(colour), LIGHT) >= 4.5


def test_spread_keeps_labels_apart_and_order() -> None:
    wanted = np.array([0.0, 0.01, 0.02, 0.5, 0.9, 0.9])
    places = spread(wanted, 0.1)
    assert (np.diff(places) >= 0.1 - 1e-12).all()
    assert_allclose(places[:3].mean(), wanted[:3].mean())
    assert_allclose(places[3], 0.5)
    assert_allclose(spread(np.array([0.1, 0.9]), 0.1), [0.1, 0.9])


def test_no_eta_no_figure(tmp_path: Path) -> None:
    write_run(tmp_path, [1.0, 0.5], initial=2)
    methods = group(load([tmp_path]))["branin"]
    assert posterior_figure("branin", methods, run_styles({"branin": methods})) is None
    page = write_report([tmp_path])
    assert page == tmp_path / "report.html"
    assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == [
        "branin-regret.png",
        "branin-seconds.png",
    ]


def test_a_run_of_failures_only_still_has_a_report(tmp_path: Path) -> None:
    write_run(tmp_path, [None, None, None])
    assert "n/a" in write_report([tmp_path]).read_text()


@pytest.mark.parametrize("normalise", [False, True])
def test_the_picture_in_one_dimension(normalise: bool) -> None:
    x = np.linspace(0, 1, 50)
    picture = Picture("forrester", x, x**2, x, 0.1 + 0 * x, x[::10], x[::10] ** 2)
    curves = [AcquisitionCurve("MM", 3 * x * (1 - x), 0.5), AcquisitionCurve("Quad", 2 * x, 1.0)]
    look = dict(zip(("MM", "Quad"), styles(["MM", "Quad"]), strict=True))
    figure = figure_1d(Drawn(picture, curves, normalise), look)
    above, below = figure.axes
    marks = [line for line in below.lines if line.get_marker() == "v"]
    peaks = [[1.0], [1.0]] if normalise else [[0.75], [2.0]]
    assert [list(line.get_xdata()) for line in marks] == [[0.5], [1.0]]
    assert_allclose([line.get_ydata() for line in marks], peaks, atol=2e-3)
    data = next(line for line in above.lines if line.get_marker() == "o")
    assert_allclose(data.get_ydata(), x[::10] ** 2)
    assert image(figure).startswith(b"\x89PNG")


def data_of(page: Path) -> dict[str, Any]:
    """What the script of a page draws."""
    block = re.search(r'<script id="data"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
    assert block is not None
    return json.loads(block[1])


def test_the_page_holds_all_and_escapes_it(page: Path, results: Path) -> None:
    text = page.read_text()
    for spelling in (html.escape(DOLLARS), DOLLARS.replace("&", "\\u0026")):
        assert spelling in text
        text = text.replace(spelling, "")
    assert "{{" not in text.replace(DOLLARS, "")
    text = page.read_text()
    assert EVIL not in text
    assert text.count("<script") == 2  # the data, and what draws them
    assert html.escape(EVIL) in text
    assert "<i>demo</i>" not in text
    assert "22 of 24 runs complete" in text
    assert "2 of 24 runs are unfinished" in text
    assert "numpy 2.4.0" in text
    assert not re.search(r"(src|href)=\"(?!#)", text)
    assert "style=" not in text.partition("<script>")[0]  # the policy admits none
    again = write_report([results], page.parent / "again.html")
    assert again.read_text() == text


def test_figures_are_on_the_page_and_beside_it(page: Path) -> None:
    pictures = sorted(p.stem for p in (page.parent / "figures").iterdir())
    assert pictures == sorted(data_of(page)["charts"])
    assert len(pictures) == 6
    immediate, simple = data_of(page)["charts"]["branin-regret"]
    line = next(s for s in immediate["series"] if s["name"] == "FITBO-10")
    assert_allclose(line["y"], [-k / 6 - 0.2 for k in range(10)], rtol=5e-5)
    assert line["at"] == list(range(1, 11))
    low, high = line["bands"][0]
    assert_allclose(np.subtract(high, low), 0.2, atol=1e-4)  # quartiles of three seeds
    single = [s for s in simple["series"] if s.get("run")]
    assert len(single) == 12
    assert "seed 0: 1 since evaluation 1, at x0=0.1 x1=0.2" in single[0]["notes"][0]
    colours = {s["name"]: s["colour"] for s in immediate["series"]}
    assert len(set(colours.values())) == len(METHODS)
    assert {s["colour"] for s in simple["series"]} == set(colours.values())


def test_old_journals_say_that_eta_is_not_the_minimum(page: Path, tmp_path: Path) -> None:
    assert "These journals hold no posterior of the minimum" in page.read_text()
    path = write_run(tmp_path, [2.0, 1.0, 0.5, 0.2])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    journal = parsed(path.read_bytes(), path)
    rows = [dict(row) for row in journal.rows]
    for row in rows:
        if "eta" in row:
            row["minimum"] = [0.1, 0.2, 0.25, 0.3, 0.4]
    header = {**journal.header, "format": 2}
    path.write_text("".join(json.dumps(line) + "\n" for line in [header, *rows]))
    assert lines[0]["format"] == 1
    report = write_report([tmp_path])
    assert "What was believed of f*" in report.read_text()
    (panel,) = data_of(report)["charts"]["branin-minimum"]
    assert panel["series"][0]["y"] == [0.25, 0.25]
    assert panel["level"] == 0.25
    assert (tmp_path / "figures" / "branin-minimum.png").exists()


def test_sixty_studies_fit_on_a_page_of_three_megabytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(60):
        regrets = np.exp(-np.linspace(0, 12, 400) + rng.standard_normal(400)).tolist()
        names = {"problem": f"p{number % 5}", "method": f"m{number % 4}", "seed": number // 20}
        write_run(tmp_path, regrets, **names)
    page = tmp_path / "report.html"
    page.write_text(campaign_page(load([tmp_path])).html())
    assert page.stat().st_size < 3e6
    assert len(data_of(page)["charts"]) == 15
    drawn = data_of(page)["charts"]["p0-regret"][0]["series"][0]["y"]
    assert len(drawn) <= 240


def test_two_campaigns_are_compared(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_run(tmp_path, [1.0, 0.1, 0.01], campaign=name)
        (tmp_path / name / "config.yaml").write_text(f"name: {name}  # <b>\n")
    page = write_report([tmp_path / "one", tmp_path / "two"])
    assert page == tmp_path / "one-vs-two" / "report.html"
    text = page.read_text()
    assert "<h1>one and two</h1>" in text
    assert "one / FITBO" in text
    assert "two / FITBO" in text
    assert "name: two  # &lt;b&gt;" in text


def test_a_value_below_the_minimum_is_said(tmp_path: Path) -> None:
    write_run(tmp_path, [1.0, -0.1])
    assert "0.1 beyond the stated optimum was seen" in write_report([tmp_path]).read_text()


def test_plain_table(results: Path) -> None:
    columns, rows = summary_table(summarise(group(load([results]))))
    table = {row[1]: dict(zip(columns, row, strict=True)) for row in rows if row[0] == "branin"}
    assert all(len(row) == len(columns) for row in rows)
    assert table["FITBO-10"]["immediate regret"] == f"{10 ** (-9 / 6 - 0.2):.2e}"
    assert table["FITBO-2"]["runs"] == "2 of 3"
    assert table[EVIL]["success at 0.01"] == "100%"
    assert table["FITBO-10"]["s / suggestion"] == "1.75"


def test_markdown_table(page: Path) -> None:
    lines = (page.parent / "summary.md").read_text().splitlines()
    assert len(lines) == 2 + 8
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {10}
    assert "| branin | \\<script\\>alert(1)\\</script\\> | 3 |" in "\n".join(lines)


def test_resolved_config_and_slugs(results: Path) -> None:
    lines = resolved_config(load([results])).splitlines()
    assert "seeds: [0, 1, 2]" in lines
    assert "budget: 10" in lines
    assert json.loads(lines[lines.index("methods:") + 1].removeprefix("  - "))["label"]
    assert slugs(["a b", "a/b", "../..", "ok-1.5"]) == ["a-b", "a-b-2", "problem", "ok-1.5"]
