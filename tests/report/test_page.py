"""Pages as Chromium shows them: read, pointed at, zoomed, switched, on a phone and in the dark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fitbo.report.palette import contrast
from fitbo.report.write import write_report
from tests.browser import Browser, browser, needs_chromium
from tests.report.test_campaign import DOLLARS, METHODS, write_campaign
from tests.studies import loaded, run

pytestmark = needs_chromium
REGRET = "figure[data-chart=branin-regret]"
OVER = f"{REGRET} .panel:nth-child(2) .u-over"
# Every text with its own colour and that of what lies behind it.
TEXTS = """(() => {
  const solid = node => {
    const back = getComputedStyle(node).backgroundColor;
    return back === "rgba(0, 0, 0, 0)" ? solid(node.parentElement) : back; };
  const own = node => [...node.childNodes].some(c => c.nodeType === 3 && c.textContent.trim());
  const found = {};
  for (const node of document.querySelectorAll("body *")) {
    if (!own(node) || ["SCRIPT", "NOSCRIPT"].includes(node.tagName)) continue;
    found[`${node.tagName}.${node.className}`] = [getComputedStyle(node).color, solid(node)]; }
  const probe = document.createElement("span");
  document.body.append(probe);
  for (const name of ["--muted", "--ink"]) {     // what canvases write with
    probe.style.color = `var(${name})`; probe.style.background = "var(--card)";
    const look = getComputedStyle(probe);
    found[name] = [look.color, look.backgroundColor]; }
  probe.remove();
  return found; })()"""


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two problems and four methods, two of hostile names."""
    return write_report([write_campaign(tmp_path_factory.mktemp("results"))])


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One study with failures, and a parameter of each kind."""
    folder = tmp_path_factory.mktemp("study")
    objective = 'objective: {python: "./model.py:f", kwargs: {fail: true}}\n'
    run(loaded(folder, "budget: 12\n", objective))
    return write_report([folder / "results" / "try"])


def hexadecimal(colour: str) -> str:
    return "#" + "".join(f"{int(c):02x}" for c in re.findall(r"\d+", colour)[:3])


def texts(window: Browser, selector: str) -> list[str]:
    return window.ask(
        f"[...document.querySelectorAll({json.dumps(selector)})].map(n => n.textContent)"
    )


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("which", ["campaign", "study"])
def test_a_page_fits_and_can_be_read(
    window: Browser, request: pytest.FixtureRequest, which: str, width: int, dark: bool
) -> None:
    window.open(request.getfixturevalue(which), width, dark)
    drawn = "document.querySelectorAll('figure').length"
    count = "[...document.querySelectorAll('figure')].filter(f => f.querySelector('canvas')).length"
    assert window.ask(drawn) == window.wait_for(f"{count} === {drawn} && {count}")
    root = "document.documentElement"
    assert window.ask(f"{root}.scrollWidth - {root}.clientWidth") == 0
    colours: dict[str, list[str]] = window.ask(TEXTS)
    assert {"H1.", "TD.", "--muted", "FIGCAPTION."} <= set(colours)
    back = hexadecimal(window.ask("getComputedStyle(document.body).backgroundColor"))
    assert (contrast(back, "#000000") < 4) == dark
    ratios = {name: contrast(*map(hexadecimal, pair)) for name, pair in colours.items()}
    assert min(ratios.values()) >= 4.5, ratios
    assert window.complaints == []


def test_the_policy_stops_everything_but_the_page_s_own_script(
    window: Browser, campaign: Path, tmp_path: Path
) -> None:
    text = campaign.read_text().replace("<h1>", "<script>document.title = 'run'</script><h1>")
    (tmp_path / "copy.html").write_text(text)
    window.open(tmp_path / "copy.html")
    assert window.ask("document.title") != "run"
    assert any("Content Security Policy" in complaint for complaint in window.complaints)
    refused = "fetch('file:///etc/hostname').then(() => 'read', () => 'refused')"
    assert window.ask(refused) == "refused"
    window.complaints.clear()


def test_a_pointer_reads_values_evaluations_and_points(window: Browser, campaign: Path) -> None:
    window.open(campaign)
    window.point(OVER, 5 / 9)  # of evaluations 1 to 10 the sixth
    assert texts(window, f"{REGRET} .readout") == ["Simple regret · evaluation 6"]
    values = dict(zip(METHODS, range(4), strict=True))
    names = texts(window, f"{REGRET} .name")
    assert names == sorted(METHODS)
    for name, shown in zip(names, texts(window, f"{REGRET} .value"), strict=True):
        expected = 10.0 ** (-(values[name] + 1) * 5 / 6 - 0.2)
        assert float(shown.split()[0]) == pytest.approx(expected, rel=1e-3)
    window.click(f"{REGRET} .tool")  # single runs
    height = window.ask(
        "(() => { const u = Figures.figures.get('branin-regret').panels[1].u;"
        "return u.valToPos(-5 / 6 - 0.4, 'y') / u.over.clientHeight; })()"
    )
    window.point(OVER, 5 / 9, height)
    (said,) = texts(window, f"{REGRET} .readout")
    assert "FITBO-10, seed 2: 0.05843 since evaluation 6, at x0=0.1 x1=0.2" in said
    window.click(f"{REGRET} .tool")


def test_a_drag_zooms_both_panels_and_a_button_goes_back(window: Browser, campaign: Path) -> None:
    window.open(campaign)
    scale = (
        "Figures.figures.get('branin-regret').panels.map(p => [p.u.scales.x.min, p.u.scales.x.max])"
    )
    assert window.ask(scale) == [[1, 10], [1, 10]]
    window.drag(OVER, 2 / 9, 6 / 9)
    one, other = window.ask(scale)
    assert one == other
    assert one == pytest.approx([3, 7], abs=0.05)
    window.click(f"{REGRET} .tool:last-child")
    assert window.ask(scale) == [[1, 10], [1, 10]]


def test_a_method_is_switched_off_on_the_whole_page(window: Browser, campaign: Path) -> None:
    window.open(campaign)
    count = (
        "[...Figures.figures.values()].flatMap(f => f.panels).filter(p => !p.root.hidden)"
        ".flatMap(p => p.u.series.slice(1).filter((s, i) => s.show && p.made[i + 1].of.group"
        " === 'FITBO-10')).length"
    )
    before = window.ask(count)
    assert before > 10
    window.click(f"{REGRET} [data-group='FITBO-10']")
    assert window.ask(count) == 0
    pressed = "document.querySelectorAll(\"[data-group='FITBO-10'][aria-pressed=false]\").length"
    assert window.ask(pressed) == 4  # regret and seconds of two problems
    window.click(f"{REGRET} [data-group='FITBO-10']")
    assert window.ask(count) == before


def test_tables_sort_and_no_label_becomes_a_script(window: Browser, campaign: Path) -> None:
    window.open(campaign)
    assert window.ask("document.scripts.length") == 2

    def methods() -> list[str]:
        return texts(window, "#summary tbody tr td:nth-child(2)")

    start = methods()
    window.click("#summary th:nth-child(2) button")
    by_name = methods()
    assert by_name.index("FITBO-2") < by_name.index("FITBO-10")  # numbers in names are numbers
    window.click("#summary th:nth-child(4) button")
    up = methods()
    assert up[:2] == [DOLLARS] * 2  # steepest descent, lowest regret
    window.click("#summary th:nth-child(4) button")
    assert methods() == up[::-1]
    assert sorted(start) == sorted(up)
    assert window.ask("document.querySelectorAll('th[aria-sort=descending]').length") == 1


def test_a_study_s_evaluations_are_under_the_pointer(window: Browser, study: Path) -> None:
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in (study.parent / "study.jsonl").read_text().splitlines()[1:]
    ]
    ended = [row for row in rows if row["event"] in ("told", "failed")]
    failed = next(i for i, row in enumerate(ended) if row["event"] == "failed")
    window.open(study)
    figure = "figure[data-chart=progress]"
    for i in (2, failed):
        across = window.ask(
            "(() => { const u = Figures.figures.get('progress').panels[0].u;"
            f"return u.valToPos({i + 1}, 'x') / u.over.clientWidth; }})()"
        )
        window.point(f"{figure} .u-over", across)
        (said,) = texts(window, f"{figure} .readout")
        row = ended[i]
        outcome = f"{row['value']:.6g}" if row["event"] == "told" else f"failed: {row['reason']}"
        assert f"evaluation {i + 1} · #{row['id']}: {outcome} at a={row['point']['a']:.6g}" in said
    window.point("figure[data-chart=parallel] .u-over", 0.3, 0.4)
    assert re.match(r"#\d+: .* at a=", texts(window, "figure[data-chart=parallel] .readout")[0])
    assert texts(window, "#summary tbody tr:last-child td")[0] == "minimum, f*"


def test_keys_move_the_pointer(window: Browser, study: Path) -> None:
    window.open(study)
    window.ask("document.querySelector('figure[data-chart=progress] .plot').focus()")
    for _ in range(3):
        key = {"key": "ArrowRight", "code": "ArrowRight"}
        window.call("Input.dispatchKeyEvent", type="keyDown", **key)
    assert "evaluation 3 ·" in texts(window, "figure[data-chart=progress] .readout")[0]
