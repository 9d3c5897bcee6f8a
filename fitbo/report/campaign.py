"""The page of a campaign: a table, curves for each problem, its studies, how it was run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from fitbo.report import figures, page
from fitbo.report.charts import Panel
from fitbo.report.curves import problem_panels
from fitbo.report.drawing import image
from fitbo.report.history import Run, campaign_labels, group
from fitbo.report.page import Cell, Page
from fitbo.report.palette import Style
from fitbo.report.picture import Drawn, figure_1d
from fitbo.report.regret import FLOOR, SUCCESS, Summary, known_minimum, summarise

HEADINGS = {"immediate": "immediate regret", "simple": "simple regret", "best": "best value"}
CAPTION = (
    "Each run at its last evaluation; medians and quartiles over seeds. Immediate regret is that "
    "of the recommended point; success means that it is at most the value named. The best median "
    f"of each problem is bold. Regrets below {FLOOR:.0e} count as {FLOOR:.0e}. Click a heading to "
    "sort."
)
CURVES = (
    "lines are medians over seeds, bands the quartiles. A line is dotted where not every run has "
    "reached that far. The grey strip is the initial design."
)
HINT = (
    "In every figure: point at a curve to read it, drag to zoom (two fingers on a screen), click a "
    "name to switch a method off on the whole page."
)
CAPTIONS = {
    "regret": "Immediate regret |f(recommended) - minimum| and simple regret, on a log scale: "
    + CURVES,
    "best": f"The best value so far: {CURVES}",
    "minimum": "What was believed of f*, the minimum (or maximum): the posterior's median, 50% and "
    "90% bands, medians over seeds, each held until the next was noted. Dashed is the true one; "
    "where it is unknown, the line is the best value so far.",
    "eta": "These journals hold no posterior of the minimum. This is that of η, the lower bound of "
    "the model's warp, which lies below the minimum and is not it: median, 50% and 90% bands, "
    "medians over seeds. Dashed is the true minimum, or the line the best value so far.",
    "seconds": "Seconds of MCMC and search per suggestion, median over seeds.",
    "picture": "The posterior after the initial design of the first seed, and each method's "
    "acquisition function with the point that it asked for next.",
}


def draw(
    problem: str,
    methods: Mapping[str, Sequence[Run]],
    style: Mapping[str, Style],
    picture: Drawn | None = None,
) -> dict[str, bytes]:
    """The figures of one problem, by kind, as pictures."""
    known = all(known_minimum(runs) for runs in methods.values())
    kind, _ = figures.posterior_bands(methods)
    drawn = {
        "regret": figures.regret_figure(problem, methods, style) if known else None,
        "best": None if known else figures.best_figure(problem, methods, style),
        kind: figures.posterior_figure(problem, methods, style),
        "seconds": figures.seconds_figure(problem, methods, style),
        "picture": figure_1d(picture, style) if picture is not None else None,
    }
    return {kind: image(figure) for kind, figure in drawn.items() if figure is not None}


def campaign_page(
    runs: Sequence[Run],
    pictures: Mapping[str, Drawn | None] | None = None,
    pages: Mapping[Path, str] | None = None,
) -> Page:
    """The campaign's page.

    pictures   those of problems of one dimension, which need a model
    pages      the addresses of the pages of studies, by their journals
    """
    grouped, pages, pictures = group(runs), pages or {}, pictures or {}
    style = figures.run_styles(grouped)
    slug = dict(zip(grouped, slugs(grouped), strict=True))
    facts = [
        _count(len(grouped), "problem"),
        _count(len(style), "method"),
        _count(len({run.seed for run in runs}), "seed"),
        f"{sum(run.complete for run in runs)} of {_count(len(runs), 'run')} complete",
    ]
    sections = page.section(
        "summary", "Summary", page.table(*_table(summarise(grouped), style)), CAPTION
    )
    sections += f'<p class="caption">{escape(HINT)}</p>'
    charts: dict[str, list[Panel]] = {}
    for problem, methods in grouped.items():
        kinds = problem_panels(methods, style, pictures.get(problem))
        charts |= {f"{slug[problem]}-{kind}": panels for kind, panels in kinds.items()}
        body = "".join(
            page.figure(f"{slug[problem]}-{kind}", f"{problem}: {kind}", CAPTIONS[kind])
            for kind in kinds
        )
        mine = [run for each in methods.values() for run in each if run.path in pages]
        if mine:
            body += page.table([("study", False), ("best", True)], [_link(r, pages) for r in mine])
        sections += page.section(slug[problem], problem, body)
    links = "".join(f'<a href="#{slug[problem]}">{escape(problem)}</a>' for problem in grouped)
    return page.compose(
        " and ".join(dict.fromkeys(campaign_labels(runs).values())),
        charts,
        facts=escape(" · ".join(facts)),
        links=links if len(grouped) > 1 else "",
        notes="".join(f'<p class="note">{escape(note)}</p>' for note in _notes(runs)),
        sections=sections,
        config=_configurations(runs),
    )


def summary_table(rows: Sequence[Summary]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of the final table as plain text."""
    columns, cells = _table(rows)
    return [name for name, _ in columns], [[cell.text for cell in row] for row in cells]


def markdown_table(rows: Sequence[Summary]) -> str:
    """The same table in Markdown."""
    columns, cells = summary_table(rows)
    lines = [columns, ["---"] * len(columns), *cells]
    escaped = [[re.sub(r"([|<>`$\\])", r"\\\1", text) for text in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in escaped)


def slugs(names: Iterable[str]) -> list[str]:
    """A distinct file name for each label: letters, digits, dots, dashes and underscores only."""
    taken: list[str] = []
    for name in names:
        slug = base = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "problem"
        number = 2
        while slug in taken:
            slug, number = f"{base}-{number}", number + 1
        taken.append(slug)
    return taken


def _table(
    rows: Sequence[Summary], style: Mapping[str, Style] | None = None
) -> tuple[list[tuple[str, bool]], list[list[Cell]]]:
    """The columns that these rows need, and their cells; the best median of each problem bold."""
    known = {field: [not math.isnan(getattr(r, field)[1]) for r in rows] for field in HEADINGS}
    fields = [field for field in ("immediate", "simple") if any(known[field])]
    fields += [] if all(known["simple"]) else ["best"]
    columns = [("problem", False), ("method", False), ("runs", True)]
    for field in fields:
        columns += [(HEADINGS[field], True), ("quartiles", True)]
    columns += [(f"success at {SUCCESS:g}", True), ("s / suggestion", True)]
    cells = []
    for row in rows:
        whole = str(row.runs) if row.complete == row.runs else f"{row.complete} of {row.runs}"
        dot = str(style[row.method]["color"]) if style else None
        line = [Cell(row.problem, row.problem), Cell(row.method, row.method, dot=dot)]
        line.append(Cell(whole, float(row.complete)))
        for field in fields:
            low, median, high = getattr(row, field)
            order = min if field != "best" or row.sign > 0 else max
            best = order(getattr(r, field)[1] for r in rows if r.problem == row.problem)
            first = math.isfinite(median) and median == best
            line.append(Cell(_measure(field, median), median, strong=first))
            line.append(Cell(f"{_measure(field, low, 1)} … {_measure(field, high, 1)}", low))
        line.append(Cell(_known(row.success, ".0%"), row.success))
        cells.append([*line, Cell(_known(row.seconds, ".3g"), row.seconds)])
    return columns, cells


def _known(value: float, form: str) -> str:
    return f"{value:{form}}" if math.isfinite(value) else "n/a"


def _measure(field: str, value: float, decimals: int = 2) -> str:
    """A best value, or a regret with this many decimals."""
    floored = field != "best" and value <= FLOOR * (1 + 1e-9)
    form = ".6g" if field == "best" else f".{decimals}e"
    return f"≤ {FLOOR:.0e}" if floored else _known(value, form)


def _link(run: Run, pages: Mapping[Path, str]) -> list[Cell]:
    title, best = f"{run.method}, seed {run.seed}", float(run.best[-1])
    return [Cell(title, title, link=pages[run.path]), Cell(_known(best, ".6g"), best)]


def _notes(runs: Sequence[Run]) -> list[str]:
    """What a reader must know before trusting the table."""
    notes = []
    unfinished = sum(not run.complete for run in runs)
    if unfinished:
        notes.append(
            f"{unfinished} of {len(runs)} runs are unfinished: the table takes them at their last "
            "evaluation."
        )
    worst: dict[str, float] = {}
    for run in runs:
        gap = float(np.nanmin(run.simple)) if np.isfinite(run.minimum) else 0.0
        if gap < -1e-9 * max(1.0, abs(run.minimum)):
            worst[run.problem] = min(worst.get(run.problem, 0.0), gap)
    return notes + [
        f"{problem}: a value {-gap:.2g} beyond the stated optimum was seen; that optimum is wrong."
        for problem, gap in worst.items()
    ]


def resolved_config(runs: Sequence[Run]) -> str:
    """What a campaign's headers say it ran, as YAML whose values are JSON."""
    collected: dict[str, list[Any]] = {}
    for run in runs:
        facts = {"campaign": run.campaign, **run.header["study"], "budget": run.budget}
        for key, value in facts.items():
            seen = collected.setdefault(key, [])
            if value not in seen:
                seen.append(value)
    lines = []
    for key, values in collected.items():
        if key in ("problem", "method"):
            listed = [f"  - {json.dumps(value, ensure_ascii=False)}" for value in values]
            lines += [f"{key}s:", *listed]
        elif key == "seed":
            lines.append(f"seeds: {json.dumps(sorted(values))}")
        else:
            value = values[0] if len(values) == 1 else values
            lines.append(f"{key}: {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines)


def made_with(runs: Sequence[Run]) -> str:
    """The versions that the journals were made with, and their resolved configuration, as HTML."""
    found: dict[str, set[str]] = {}
    for run in runs:
        known = {"fitbo": run.header.get("fitbo"), **(run.header.get("versions") or {})}
        for name, version in known.items():
            found.setdefault(str(name), set()).add(str(version))
    versions = " · ".join(f"{name} {', '.join(sorted(vs))}" for name, vs in found.items())
    return f"<p>{escape(versions)}</p><pre>{escape(resolved_config(runs))}</pre>"


def _configurations(runs: Sequence[Run]) -> str:
    """What each campaign was made with, and the YAML files beside its journals."""
    blocks = []
    for path, label in campaign_labels(runs).items():
        parts = [made_with([run for run in runs if run.folder == path])]
        for file in sorted(path.iterdir()) if path.is_dir() else ():
            if file.is_file() and file.suffix in (".yaml", ".yml"):
                text = file.read_text(encoding="utf-8", errors="replace")
                parts.append(f"<h3>{escape(file.name)}</h3><pre>{escape(text)}</pre>")
        blocks.append(page.details(f"{label}: resolved configuration and versions", *parts))
    return "".join(blocks)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
