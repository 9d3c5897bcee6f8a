"""Figures, and the page as a browser sees it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

from fitbo.report.campaign import resolved_config, slugs, summary_table
from fitbo.report.drawing import image, spread, styles
from fitbo.report.figures import (
    _regret_ticks,
    eta_figure,
    regret_figure,
    run_styles,
    seconds_figure,
)
from fitbo.report.history import group, load
from fitbo.report.picture import AcquisitionCurve, Picture, figure_1d
from fitbo.report.regret import summarise
from fitbo.report.write import write_report
from tests.report.test_regret import write_run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--enable-logging=stderr",
]
EVIL = "<script>alert(1)</script>"
DOLLARS = "a $x_{1}$ & {{table}}"


METHODS = ("FITBO-10", "FITBO-2", EVIL, DOLLARS)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two problems and four methods, some of hostile names; two runs are unfinished."""
    root = tmp_path_factory.mktemp("results")
    for problem in ("branin", f"{EVIL}/../2"):
        for i, method in enumerate(METHODS):
            for seed in range(3):
                n = 7 if (i, seed) == (1, 2) else 10
                regrets = [10.0 ** (-(i + 1) * k / 6 - seed / 5) for k in range(n)]
                options: dict[str, Any] = {"seed": seed, "budget": 10, "campaign": "<i>demo</i>"}
                write_run(root, regrets, problem=problem, method=method, **options)
    return root


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
    assert eta_figure("branin", methods, run_styles({"branin": methods})) is None
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
    figure = figure_1d(picture, curves, normalise=normalise)
    above, below = figure.axes
    marks = [line for line in below.lines if line.get_marker() == "v"]
    peaks = [[1.0], [1.0]] if normalise else [[0.75], [2.0]]
    assert [list(line.get_xdata()) for line in marks] == [[0.5], [1.0]]
    assert_allclose([line.get_ydata() for line in marks], peaks, atol=2e-3)
    data = next(line for line in above.lines if line.get_marker() == "o")
    assert_allclose(data.get_ydata(), x[::10] ** 2)
    assert image(figure).startswith(b"\x89PNG")


def test_the_page_holds_all_and_escapes_it(page: Path, results: Path) -> None:
    text = page.read_text()
    assert "{{" not in text.replace(html.escape(DOLLARS), "").replace(DOLLARS, "")
    assert EVIL not in text
    assert text.count("<script") == 1
    assert html.escape(EVIL) in text
    assert "<i>demo</i>" not in text
    assert "22 of 24 runs complete" in text
    assert "2 of 24 runs are unfinished" in text
    assert "numpy 2.4.0" in text
    assert not re.search(r"(src|href)=\"(?!data:|#)", text)
    pictures = sorted((page.parent / "figures").iterdir())
    inlined = re.findall(r"base64,([A-Za-z0-9+/=]+)\"", text)
    assert {p.read_bytes() for p in pictures} == {base64.b64decode(data) for data in inlined}
    assert len(inlined) == 6
    again = write_report([results], page.parent / "again.html")
    assert again.read_text() == text


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


PROBE = """
const state = () => [...document.querySelectorAll("tbody tr")].map(
  row => [row.cells[0].textContent, row.cells[1].textContent]);
const solid = node => {
  const back = getComputedStyle(node).backgroundColor;
  return back === "rgba(0, 0, 0, 0)" ? solid(node.parentElement) : back; };
const headings = document.querySelectorAll("th button");
const orders = [state()];
for (const column of [1, 3, 3, 8]) { headings[column].click(); orders.push(state()); }
const colours = {};
for (const name of ["body", "h1", ".brand", ".facts", "nav a", ".note", "th button", "td",
                    "td:nth-child(5)", "tr:nth-child(2) td", ".caption", "figcaption",
                    "summary", "pre"]) {
  const node = document.querySelector(name);
  colours[name] = [getComputedStyle(node).color, solid(node)]; }
const found = {orders, colours, scripts: document.scripts.length, pictures: document.images.length,
  broken: [...document.images].filter(picture => !picture.naturalWidth).length,
  sorted: document.querySelectorAll("th[aria-sort=ascending]").length,
  wide: document.documentElement.scrollWidth - document.documentElement.clientWidth};
const out = document.createElement("pre");
out.id = "probe"; out.textContent = JSON.stringify(found); document.body.append(out);
"""


def browse(page: Path, folder: Path, *flags: str) -> tuple[str, list[str]]:
    """The page's DOM after its scripts have run, and what went to the console."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", *flags]
    command += ["--virtual-time-budget=2000", "--dump-dom", page.resolve().as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def probe(page: Path, folder: Path, *flags: str, policy: bool = True) -> dict[str, Any]:
    """What a script added to a copy of the page finds; the policy admits it, or is taken out."""
    text = page.read_text()
    digest = base64.b64encode(hashlib.sha256(PROBE.encode()).digest()).decode()
    if policy:
        text = text.replace("script-src ", f"script-src 'sha256-{digest}' ")
    else:
        text, count = re.subn(r"<meta http-equiv=\"Content-Security-Policy\".*?>", "", text)
        assert count == 1
    copy = folder / "copy.html"
    copy.write_text(text.replace("</body>", f"<script>{PROBE}</script></body>"))
    dom, console = browse(copy, folder, *flags)
    assert console == []
    found = re.search(r'<pre id="probe">(.*?)</pre>', dom, re.DOTALL)
    assert found, dom[-2000:]
    return json.loads(html.unescape(found[1]))


def contrast(colours: tuple[str, str]) -> float:
    """The WCAG contrast ratio of two CSS colours."""

    def luminance(colour: str) -> float:
        channels = np.array([float(c) for c in re.findall(r"[\d.]+", colour)[:3]]) / 255
        linear = np.where(
            channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
        )
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


@needs_chromium
def test_the_page_loads_without_complaint(page: Path, tmp_path: Path) -> None:
    dom, console = browse(page, tmp_path)
    assert console == []
    assert "How it was run" in dom


@needs_chromium
def test_a_browser_can_sort_and_runs_no_label(page: Path, tmp_path: Path) -> None:
    found = probe(page, tmp_path, policy=False)
    assert found["scripts"] == 2  # the page's and the probe: no label has become one
    assert (found["pictures"], found["broken"]) == (6, 0)
    assert found["wide"] == 0
    assert found["sorted"] == 1
    start, by_name, up, down, _ = found["orders"]
    assert sorted(start) == sorted(by_name) == sorted(up) == sorted(down)
    names = [method for _, method in by_name]
    assert names.index("FITBO-2") < names.index("FITBO-10")  # numbers in names count as numbers
    assert [m for _, m in up][:2] == [DOLLARS] * 2  # steepest descent, lowest regret
    assert [m for _, m in up][-2:] == ["FITBO-10"] * 2
    assert [m for _, m in down][:2] == ["FITBO-10"] * 2


@needs_chromium
@pytest.mark.parametrize(("scheme", "dark"), [(0, True), (1, False)])
def test_both_colour_schemes_can_be_read(
    page: Path, tmp_path: Path, scheme: int, dark: bool
) -> None:
    found = probe(page, tmp_path, f"--blink-settings=preferredColorScheme={scheme}")
    back = found["colours"]["body"][1]
    assert (contrast((back, "rgb(0, 0, 0)")) < 4) == dark
    ratios = {name: contrast(pair) for name, pair in found["colours"].items()}
    assert min(ratios.values()) >= 4.5, ratios
