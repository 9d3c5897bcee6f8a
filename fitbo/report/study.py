"""The page of one study: the best and the recommended point, figures, every evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fitbo.records.events import Entry
from fitbo.records.notebook import Notebook
from fitbo.report import page
from fitbo.report.campaign import resolved_config, versions
from fitbo.report.coordinates import parallel_figure
from fitbo.report.drawing import image, styles
from fitbo.report.figures import eta_figure
from fitbo.report.history import Run
from fitbo.report.page import Cell
from fitbo.report.slices import dependence_figure, progress_figure, slice_figure
from fitbo.runs.standing import Summary, summarise
from fitbo.space import Categorical
from fitbo.study import bounded

CAPTIONS = {
    "progress": "Every value by its evaluation, and the lowest so far; the ring is the best. "
    "The grey strip is the initial design.",
    "slices": "The posterior along each parameter with the others at the recommended point, which "
    "the dashed lines mark: mean of f and the band that holds 90% of it.",
    "dependence": "Partial dependence: the mean of f over the space for each value of a parameter. "
    "The band holds 90% of the hyperparameter samples' own curves.",
    "parallel": "Each evaluation as a line through the parameters' axes, the best darkest and in "
    "front; colours follow the rank.",
    "eta": "The posterior of η, the lower bound of the model's warp: its median, 50% and 90% "
    "bands, against the lowest value told.",
}
BACKGROUND_SEED = 0  # of the points that a dependence is averaged over


def study_page(notebook: Notebook, run: Run) -> tuple[str, dict[str, bytes]]:
    """The HTML of a study's page, and its figures by kind."""
    summary = summarise(notebook)
    title = run.problem if notebook.config is None else notebook.config.title
    drawn = {kind: image(f) for kind, f in _figures(title, notebook, summary, run).items()}
    space = notebook.study.space
    facts = [
        f"{summary.told + summary.failed} evaluations",
        *([f"{summary.failed} failed"] if summary.failed else []),
        *([f"{len(summary.pending)} pending"] if summary.pending else []),
        f"{len(space.names)} parameters",
        run.method,
    ]
    stopped = f'<p class="note">Stopped: {escape(summary.stopped)}.</p>' if summary.stopped else ""
    listed = ("summary", "evaluations", "config")
    html = page.render(
        title,
        facts=escape(" · ".join(facts)),
        links="".join(f'<a href="#{name}">{name.capitalize()}</a>' for name in listed),
        notes=stopped,
        sections=page.section("summary", "Summary", _summary(notebook, summary))
        + page.section("figures", "Figures", page.figures(title, drawn, CAPTIONS))
        + page.section("evaluations", "Evaluations", _table(notebook), "Click a heading to sort."),
        config=page.details(
            "Resolved configuration and versions",
            f"<p>{escape(versions([run]))}</p><pre>{escape(resolved_config([run]))}</pre>",
        ),
    )
    return html, drawn


def _figures(title: str, notebook: Notebook, summary: Summary, run: Run) -> dict[str, Figure]:
    study = notebook.warm()
    outcomes = [_drawable(entry) for entry in notebook.outcomes]
    figures: dict[str, Figure | None] = {
        "progress": progress_figure(title, outcomes, study.n_initial)
    }
    if summary.recommended is not None:
        rng = np.random.default_rng(BACKGROUND_SEED)
        told = [entry.point for entry in outcomes if entry.state == "told"]
        point = summary.recommended.point
        figures["slices"] = slice_figure(title, study, told, point)
        figures["dependence"] = dependence_figure(title, study, told, rng)
    figures["parallel"] = parallel_figure(title, study.space, outcomes)
    figures["eta"] = eta_figure(title, {run.method: [run]}, {run.method: styles([run.method])[0]})
    return {kind: figure for kind, figure in figures.items() if figure is not None}


def _drawable(entry: Entry) -> Entry:
    """With a value that axes can hold: as large as it is in the model."""
    if entry.value is None:
        return entry
    return replace(entry, value=float(bounded(entry.value)))


def _summary(notebook: Notebook, summary: Summary) -> str:
    """The best observed and the recommended point, beside one another."""
    best, found = summary.best, summary.recommended
    points: dict[str, tuple[Mapping[str, Any], str]] = {}
    if best is not None:
        points["best observed"] = best.point, _text(best.value)
    if found is not None:
        predicted = f"{_text(found.mean)} ± {found.deviation:.2g}"
        points["recommended"] = found.point, predicted
    rows = [[Cell("value", strong=True), *(Cell(text) for _, text in points.values())]]
    for name in notebook.study.space.names:
        cells = [Cell(_text(point[name])) for point, _ in points.values()]
        rows.append([Cell(name, strong=True), *cells])
    return page.table([("", False), *((name, True) for name in points)], rows, sortable=False)


def _table(notebook: Notebook) -> str:
    """Every point, sortable, with what has become of it."""
    space, entries = notebook.study.space, list(notebook.entries.values())
    columns = [("id", True)]
    for name, parameter in zip(space.names, space.parameters, strict=True):
        columns.append((name, not isinstance(parameter, Categorical)))
    columns += [("value", True), ("seconds", True), ("outcome", False)]
    lowest = min([entry.value for entry in entries if entry.value is not None], default=None)
    rows = []
    for entry in entries:
        outcome = entry.reason if entry.state == "failed" else entry.state
        point = [entry.point[name] for name in space.names]
        cells = [Cell(_text(each), each) for each in (entry.id, *point)]
        best = entry.value is not None and entry.value == lowest
        cells.append(Cell(_text(entry.value), entry.value, strong=best))
        rows.append([*cells, *(Cell(_text(each), each) for each in (entry.seconds, outcome))])
    return page.table(columns, rows)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
