"""The report of one study: figures and one self-contained ``report.html`` from its journal.

The frame, the style and the script are those of ``fitbo.report.page``; every text that comes from a
journal is escaped, images are inlined, and the same journal gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fitbo.config.study import StudyFile
from fitbo.records.events import Entry, amended
from fitbo.records.journal import read
from fitbo.records.notebook import Notebook, read_notebook
from fitbo.report.coordinates import parallel_figure
from fitbo.report.drawing import image
from fitbo.report.page import PAGE, SCRIPT, STYLE
from fitbo.report.study_figures import (
    dependence_figure,
    eta_figure,
    progress_figure,
    slice_figure,
)
from fitbo.runs.standing import Summary, summarise
from fitbo.study import bounded

CAPTIONS = {
    "progress": "Every value by its evaluation, and the lowest so far; the ring is the best. "
    "The grey strip is the initial design.",
    "slices": "The posterior along each parameter with the others at the recommended point, which "
    "the dashed lines mark: mean of f and the band that holds 90% of it.",
    "dependence": "Partial dependence: the mean of f over the space for each value of a parameter. "
    "The band holds 90% of the hyperparameter samples' own curves.",
    "parallel": "Each evaluation as a line through the parameters' axes, the best darkest and in "
    "front; colours go by rank.",
    "eta": "What is believed of the minimum: the posterior of η, its median, 50% and 90% bands, "
    "against the lowest value told.",
}
HEAD, _, _ = PAGE.partition('<section id="summary">')
_, MARK, TAIL = PAGE.partition("{{sections}}")
BACKGROUND_SEED = 0  # of the points that a dependence is averaged over


def write_study_report(config: StudyFile, output: Path | None = None) -> Path:
    """Write the report of a study; returns the path of ``report.html``.

    output   a folder, or the page itself if it ends in .html; by default the study's own folder
    """
    if not config.journal.exists():
        raise ValueError(
            f"{config.name} has no journal yet, {config.journal}: run or tell it first"
        )
    notebook = read_notebook(config)
    summary = summarise(notebook)
    if not summary.told:
        raise ValueError(f"{config.journal} holds no value yet: there is nothing to report")
    folder = config.directory if output is None else output
    page = folder if folder.suffix == ".html" else folder / "report.html"
    pictures = page.parent / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for kind, figure in _figures(notebook, summary).items():
        drawn[kind] = image(figure)
        (pictures / f"study-{kind}.png").write_bytes(drawn[kind])
    page.write_text(_page(notebook, summary, drawn), encoding="utf-8")
    return page


def _figures(notebook: Notebook, summary: Summary) -> dict[str, Figure]:
    name, study = notebook.config.name, notebook.study
    outcomes = [_drawable(entry) for entry in _outcomes(notebook)]
    figures: dict[str, Figure | None] = {
        "progress": progress_figure(name, outcomes, study.n_initial)
    }
    if summary.recommended is not None:
        rng = np.random.default_rng(BACKGROUND_SEED)
        figures["slices"] = slice_figure(name, study, summary.recommended.point)
        figures["dependence"] = dependence_figure(name, study, rng)
    figures["parallel"] = parallel_figure(name, study.space, outcomes)
    figures["eta"] = eta_figure(name, *_eta(notebook))
    return {kind: figure for kind, figure in figures.items() if figure is not None}


def _outcomes(notebook: Notebook) -> list[Entry]:
    """Values and failures in the order in which they came."""
    entries = [entry for entry in notebook.entries.values() if entry.order >= 0]
    return sorted(entries, key=lambda entry: entry.order)


def _drawable(entry: Entry) -> Entry:
    """With a value that axes can hold: as large as it is in the model."""
    if entry.value is None:
        return entry
    return replace(entry, value=float(bounded(entry.value)))


def _eta(notebook: Notebook) -> tuple[Any, Any, Any]:
    """Values told (k,), the quantiles of eta (k, 5) and the lowest value (k,), fit by fit."""
    values: list[float] = []
    fits: dict[int, tuple[Sequence[float], float]] = {}
    for row in amended(notebook.rows):
        if row.get("event") == "told":
            values.append(float(bounded(row["value"])))
        if "eta" in row and values:
            fits[int(row["fitted"])] = (row["eta"], min(values))
    n = np.array(list(fits), dtype=float)
    eta = np.array([eta for eta, _ in fits.values()], dtype=float).reshape(-1, 5)
    return n, eta, np.array([best for _, best in fits.values()])


def _page(notebook: Notebook, summary: Summary, drawn: Mapping[str, bytes]) -> str:
    config = notebook.config
    facts = [
        f"{summary.told + summary.failed} evaluations",
        *([f"{summary.failed} failed"] if summary.failed else []),
        *([f"{len(summary.pending)} pending"] if summary.pending else []),
        f"{len(config.space)} parameters",
        str(config.method.label),
    ]
    cards = "".join(
        f'<figure><img alt="{escape(config.name)}: {kind}" src="data:image/png;base64,'
        f'{base64.b64encode(data).decode()}"><figcaption>{escape(CAPTIONS[kind])}</figcaption></figure>'
        for kind, data in drawn.items()
    )
    sections = (
        f'<section id="summary"><h2>Summary</h2><div class="scroll">{_summary(config, summary)}'
        f"</div></section><section><h2>Figures</h2>{cards}</section>"
        f'<section id="evaluations"><h2>Evaluations</h2><div class="scroll">{_table(notebook)}'
        '</div><p class="caption">Click a heading to sort.</p></section>'
    )
    parts = {
        "script_hash": base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode(),
        "title": escape(config.name),
        "style": STYLE,
        "facts": escape(" · ".join(facts)),
        "links": '<a href="#summary">Summary</a><a href="#evaluations">Evaluations</a>'
        '<a href="#config">Configuration</a>',
        "notes": f'<p class="note">Stopped: {escape(summary.stopped)}.</p>'
        if summary.stopped
        else "",
        "sections": sections,
        "campaigns": _configuration(notebook),
        "script": SCRIPT,
    }
    # One pass, so that a text that looks like a placeholder stays what it is.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], HEAD + MARK + TAIL)


def _summary(config: StudyFile, summary: Summary) -> str:
    """The best observed and the recommended point, beside one another."""
    best, found = summary.best, summary.recommended
    columns: list[tuple[str, Mapping[str, Any], str]] = []
    if best is not None:
        columns.append(("best observed", best.point, _number(best.value)))
    if found is not None:
        predicted = f"{_number(found.mean)} ± {found.deviation:.2g}"
        columns.append(("recommended", found.point, predicted))
    head = "".join(
        f'<th scope="col" class="number">{_still(title)}</th>' for title, _, _ in columns
    )
    rows = [("value", [text for _, _, text in columns])]
    rows += [(name, [_text(point[name]) for _, point, _ in columns]) for name in config.space]
    if summary.eta is not None:
        low, middle, high = summary.eta
        text = f"{_number(middle)}, 90% in [{_number(low)}, {_number(high)}]"
        rows.append(("minimum η", ["", text] if len(columns) == 2 else [text]))
    body = "".join(
        f"<tr><td><strong>{escape(name)}</strong></td>"
        + "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
        + "</tr>"
        for name, cells in rows
    )
    return (
        f'<table><thead><tr><th scope="col">{_still("")}</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _still(text: str) -> str:
    """A heading's text with the room that a sortable one has."""
    return f'<div style="padding:.6rem .7rem">{escape(text)}</div>'


def _table(notebook: Notebook) -> str:
    """Every point, sortable, with what has become of it."""
    names = list(notebook.config.space)
    columns = ["id", *names, "value", "seconds", "outcome"]
    numeric = {"id", "value", "seconds"} | {
        name for name, parameter in notebook.config.space.items() if parameter.type != "categorical"
    }
    classes = {name: ' class="number"' if name in numeric else "" for name in columns}
    head = "".join(
        f'<th scope="col"{classes[name]}><button type="button">{escape(name)}</button></th>'
        for name in columns
    )
    values = [e.value for e in notebook.entries.values() if e.value is not None]
    lowest = min(values, default=None)
    body = []
    for entry in notebook.entries.values():
        outcome = entry.reason if entry.state == "failed" else entry.state
        cells: list[Any] = [entry.id, *(entry.point[name] for name in names)]
        cells += [entry.value, entry.seconds, outcome]
        row = []
        for name, cell in zip(columns, cells, strict=True):
            shown = escape(_text(cell))
            if name == "value" and cell is not None and cell == lowest:
                shown = f"<strong>{shown}</strong>"
            row.append(f'<td{classes[name]} data-value="{escape(_key(cell))}">{shown}</td>')
        body.append(f"<tr>{''.join(row)}</tr>")
    return (
        f'<table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>"
    )


def _configuration(notebook: Notebook) -> str:
    header = read(notebook.config.journal).header
    versions = {"fitbo": header.get("fitbo"), **(header.get("versions") or {})}
    listed = " · ".join(f"{name} {text}" for name, text in versions.items())
    text = "\n".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in header["study"].items()
    )
    return (
        "<details><summary>Resolved configuration and versions</summary>"
        f"<p>{escape(listed)}</p><pre>{escape(text)}</pre></details>"
    )


def _key(value: Any) -> str:
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) and math.isfinite(value) else str(value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.6g}"
