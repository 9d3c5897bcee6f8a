"""Results in, figures and one self-contained ``report.html`` out.

The page needs nothing but itself: images are inlined, the only script sorts the table, and a
content security policy lets no other script run and nothing be fetched. Every text that comes from
a journal is escaped. The same journals give the same bytes: there is no date on the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from fitbo.report.drawing import Style, image
from fitbo.report.figures import eta_figure, regret_figure, run_styles, seconds_figure
from fitbo.report.page import PAGE, SCRIPT, STYLE
from fitbo.report.picture import picture_figure
from fitbo.report.regret import (
    FLOOR,
    SUCCESS,
    Run,
    Runs,
    Summary,
    campaign_labels,
    folder,
    group,
    load,
    summarise,
)

COLUMNS = (
    "problem",
    "method",
    "runs",
    "immediate regret",
    "quartiles",
    "simple regret",
    "quartiles",
    f"success at {SUCCESS:g}",
    "s / suggestion",
)
CAPTIONS = {
    "regret": "Immediate regret |f(recommended) - minimum| and simple regret, on a log scale: "
    "lines are medians over seeds, bands the quartiles. A line is dotted where not every run has "
    "got so far. The grey strip is the initial design.",
    "eta": "What each method believes of the minimum: the posterior of η, its median, 50% and 90% "
    "bands (medians over seeds), against the true minimum.",
    "seconds": "Seconds of MCMC and search that one suggestion took, median over seeds.",
    "picture": "Above, the posterior after the initial design of the first seed; below, what each "
    "method makes of it, and the point that it asked for next.",
}


def write_report(paths: Sequence[Path], output: Path | None = None) -> Path:
    """Write the report of the results below ``paths``; returns the path of ``report.html``.

    Beside it go ``figures/<problem>-<kind>.png`` and ``summary.md``, the table in Markdown.

    output   a folder, or the page itself if it ends in .html; by default the one path given, or
             beside the first of several, named after them all
    """
    runs = load(paths)
    page = _destination(paths, output)
    grouped, rows = group(runs), summarise(group(runs))
    style = run_styles(grouped)
    pictures = page.parent / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    sections = []
    for problem, slug in zip(grouped, slugs(grouped), strict=True):
        drawn = {}
        for kind, data in _figures(problem, grouped[problem], style):
            (pictures / f"{slug}-{kind}.png").write_bytes(data)
            drawn[kind] = data
        sections.append(_section(problem, slug, drawn))
    page.with_name("summary.md").write_text(markdown_table(rows), encoding="utf-8")
    page.write_text(_page(runs, grouped, rows, style, sections), encoding="utf-8")
    return page


def summary_table(rows: Sequence[Summary]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of the final table as plain text, for a terminal or a page."""
    return list(COLUMNS), [[text for text, _ in _cells(row)] for row in rows]


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


def _destination(paths: Sequence[Path], output: Path | None) -> Path:
    if output is None:
        first = paths[0]
        if len(paths) > 1:
            names = dict.fromkeys(path.resolve().name for path in paths)
            output = first.resolve().parent / "-vs-".join(names)
        else:
            output = first.parent if first.is_file() else first
    page = output if output.suffix == ".html" else output / "report.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    return page


def _figures(
    problem: str, methods: Mapping[str, Sequence[Run]], style: Mapping[str, Style]
) -> Iterable[tuple[str, bytes]]:
    makers = {"regret": regret_figure, "eta": eta_figure, "seconds": seconds_figure}
    for kind, make in makers.items():
        figure = make(problem, methods, style)
        if figure is not None:
            yield kind, image(figure)
    picture = picture_figure(methods)
    if picture is not None:
        yield "picture", image(picture)


def _cells(row: Summary) -> list[tuple[str, str | float]]:
    """Text and sort key of each cell."""
    cells: list[tuple[str, str | float]] = [(row.problem, row.problem), (row.method, row.method)]
    whole = str(row.runs) if row.complete == row.runs else f"{row.complete} of {row.runs}"
    cells.append((whole, float(row.complete)))
    for low, median, high in (row.immediate, row.simple):
        cells.append((_regret(median), median))
        cells.append((f"{_regret(low, 1)} … {_regret(high, 1)}", low))
    cells.append((f"{row.success:.0%}", row.success))
    cells.append(("n/a" if math.isnan(row.seconds) else f"{row.seconds:.3g}", row.seconds))
    return cells


def _regret(value: float, decimals: int = 2) -> str:
    if not math.isfinite(value):
        return "n/a"
    return f"≤ {FLOOR:.0e}" if value <= FLOOR * (1 + 1e-9) else f"{value:.{decimals}e}"


def _table(grouped: Runs, rows: Sequence[Summary], style: Mapping[str, Style]) -> str:
    """The sortable table; the best median of each problem stands out."""
    best = {
        (problem, field): min(getattr(row, field)[1] for row in rows if row.problem == problem)
        for problem in grouped
        for field in ("immediate", "simple")
    }
    head = "".join(
        f'<th scope="col"{_numeric(i)}><button type="button">{escape(name)}</button></th>'
        for i, name in enumerate(COLUMNS)
    )
    body = []
    for row in rows:
        cells = []
        for i, (text, key) in enumerate(_cells(row)):
            field = {3: "immediate", 5: "simple"}.get(i)
            first = field is not None and key == best[row.problem, field] and math.isfinite(key)  # type: ignore[arg-type]
            inner = f"<strong>{escape(text)}</strong>" if first else escape(text)
            if i == 1:
                colour = escape(str(style[row.method]["color"]))
                inner = f'<span class="dot" style="background:{colour}"></span>{inner}'
            cells.append(f'<td{_numeric(i)} data-value="{escape(_key(key))}">{inner}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>"
    )


def _numeric(column: int) -> str:
    return "" if column < 2 else ' class="number"'


def _key(value: str | float) -> str:
    """What the script sorts by; empty if there is no value, and then last."""
    if isinstance(value, str):
        return value
    return repr(value) if math.isfinite(value) else ""


def _section(problem: str, slug: str, drawn: Mapping[str, bytes]) -> str:
    cards = "".join(
        f'<figure><img alt="{escape(problem)}: {kind}" src="data:image/png;base64,'
        f'{base64.b64encode(data).decode()}"><figcaption>{escape(CAPTIONS[kind])}</figcaption></figure>'
        for kind, data in drawn.items()
    )
    return f'<section id="{slug}"><h2>{escape(problem)}</h2>{cards}</section>'


def _notes(runs: Sequence[Run]) -> str:
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
        lowest = float(run.simple.min())
        slack = 1e-9 * max(1.0, abs(run.minimum))
        if lowest < -slack:
            worst[run.problem] = min(worst.get(run.problem, 0.0), lowest)
    notes += [
        f"{problem}: a value {-gap:.2g} below the stated minimum was seen; that minimum is wrong."
        for problem, gap in worst.items()
    ]
    return "".join(f'<p class="note">{escape(note)}</p>' for note in notes)


def resolved_config(runs: Sequence[Run]) -> str:
    """What a campaign's headers say it ran, as YAML whose values are JSON."""
    collected: dict[str, list[Any]] = {}
    for run in runs:
        for key, value in {**run.header, "budget": run.budget}.items():  # it may have grown
            if key not in ("versions", "format", "fitbo"):
                seen = collected.setdefault(key, [])
                if value not in seen:
                    seen.append(value)
    lines = []
    plural = {"problem": "problems", "method": "methods"}
    for key, values in collected.items():
        if key == "seed":
            lines.append(f"seeds: {json.dumps(sorted(values))}")
        elif key in plural:
            lines.append(f"{plural[key]}:")
            lines += [f"  - {json.dumps(value, ensure_ascii=False)}" for value in values]
        else:
            value = values[0] if len(values) == 1 else values
            lines.append(f"{key}: {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines)


def _campaigns(runs: Sequence[Run]) -> str:
    """The resolved config and the versions of each campaign, and files that lie beside them."""
    blocks = []
    for path, label in campaign_labels(runs).items():
        mine = [run for run in runs if folder(run) == path]
        versions: dict[str, set[str]] = {}
        for run in mine:
            known = {"fitbo": run.header.get("fitbo"), **(run.header.get("versions") or {})}
            for name, version in known.items():
                versions.setdefault(str(name), set()).add(str(version))
        listed = " · ".join(f"{name} {', '.join(sorted(vs))}" for name, vs in versions.items())
        blocks.append(
            f"<details><summary>{escape(label)}: resolved configuration and versions</summary>"
            f"<p>{escape(listed)}</p><pre>{escape(resolved_config(mine))}</pre>"
        )
        for file in sorted(path.iterdir()):
            if file.is_file() and file.suffix in (".yaml", ".yml"):
                text = file.read_text(encoding="utf-8", errors="replace")
                blocks.append(f"<h3>{escape(file.name)}</h3><pre>{escape(text)}</pre>")
        blocks.append("</details>")
    return "".join(blocks)


def _page(
    runs: Sequence[Run],
    grouped: Runs,
    rows: Sequence[Summary],
    style: Mapping[str, Style],
    sections: Sequence[str],
) -> str:
    campaigns = list(dict.fromkeys(campaign_labels(runs).values()))
    complete = sum(run.complete for run in runs)
    facts = [
        _count(len(grouped), "problem"),
        _count(len(style), "method"),
        _count(len({run.seed for run in runs}), "seed"),
        f"{complete} of {_count(len(runs), 'run')} complete",
    ]
    links = "".join(
        f'<a href="#{slug}">{escape(problem)}</a>'
        for problem, slug in zip(grouped, slugs(grouped), strict=True)
    )
    parts = {
        "script_hash": base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode(),
        "title": escape(" and ".join(campaigns)),
        "style": STYLE,
        "facts": escape(" · ".join(facts)),
        "links": links if len(grouped) > 1 else "",
        "notes": _notes(runs),
        "table": _table(grouped, rows, style),
        "floor": f"{FLOOR:.0e}",
        "sections": "".join(sections),
        "campaigns": _campaigns(runs),
        "script": SCRIPT,
    }
    # One pass, so that a label that looks like a placeholder stays what it is.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], PAGE)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
