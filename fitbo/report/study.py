"""The page of one study: the best and the recommended point, figures, every evaluation."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fitbo.records.notebook import Notebook
from fitbo.report import coordinates, drawing, figures, page, slices
from fitbo.report.campaign import made_with
from fitbo.report.history import Run
from fitbo.report.page import Cell
from fitbo.runs.standing import Summary, summarise
from fitbo.screen import digits, measured
from fitbo.space import Categorical
from fitbo.space.outcomes import names_of
from fitbo.study import bounded

CAPTIONS = {
    "progress": "Every value by its evaluation, and the best so far; the ring is the best. "
    "The grey strip is the initial design.",
    "slices": "The posterior along each parameter with the others at the recommended point, which "
    "the dashed lines mark: mean of f and the band that holds 90% of it.",
    "dependence": "Partial dependence: the mean of f over the space for each value of a parameter. "
    "The band holds 90% of the hyperparameter samples' own curves.",
    "parallel": "Each evaluation as a line through the parameters' axes, the best darkest and in "
    "front; colours follow the rank.",
    "eta": "The posterior of η, the bound of the model's warp on the side of the best: its median, "
    "50% and 90% bands, against the best value told.",
}
EFFECTS = (
    "The share of the variance of f over the space that is left when all other parameters are "
    "known. The interval is over the hyperparameter samples."
)
BACKGROUND_SEED = 0  # of the points that a dependence is averaged over


def study_page(notebook: Notebook, run: Run) -> tuple[str, dict[str, bytes]]:
    """The HTML of a study's page, and its figures by kind."""
    summary = summarise(notebook)
    title = run.problem if notebook.config is None else notebook.config.title
    shown = _figures(title, notebook, summary, run)
    drawn = {kind: drawing.image(each) for kind, each in shown.items() if each is not None}
    counts = {
        "evaluations": summary.told + summary.failed,
        "failed": summary.failed,
        "pending": len(summary.pending),
        "parameters": len(notebook.study.space.names),
    }
    facts = [f"{count} {what}" for what, count in counts.items() if count]
    stopped = f'<p class="note">Stopped: {escape(summary.stopped)}.</p>' if summary.stopped else ""
    listed = ("summary", "evaluations", "config")
    html = page.render(
        title,
        facts=escape(" · ".join([*facts, run.method])),
        links="".join(f'<a href="#{name}">{name.capitalize()}</a>' for name in listed),
        notes=stopped,
        sections=page.section("summary", "Summary", _summary(notebook, summary))
        + _importance(summary)
        + page.section("figures", "Figures", page.figures(title, drawn, CAPTIONS))
        + page.section("evaluations", "Evaluations", _table(notebook), "Click a heading to sort."),
        config=page.details("Resolved configuration and versions", made_with([run])),
    )
    return html, drawn


def _figures(
    title: str, notebook: Notebook, summary: Summary, run: Run
) -> dict[str, Figure | None]:
    study = notebook.warm()
    # Values that axes can hold: as large as they are in the model.
    outcomes = [
        entry if entry.value is None else replace(entry, value=float(bounded(entry.value)))
        for entry in notebook.outcomes
    ]
    shown: dict[str, Figure | None] = {}
    shown["progress"] = slices.progress_figure(
        title, outcomes, study.n_initial, study.sign, notebook.counts
    )
    if summary.recommended is not None:
        rng = np.random.default_rng(BACKGROUND_SEED)
        told = [entry.point for entry in outcomes if entry.state == "told"]
        shown["slices"] = slices.slice_figure(title, study, told, summary.recommended.point)
        shown["dependence"] = slices.dependence_figure(title, study, told, rng)
    held = [entry for entry in outcomes if entry.value is None or notebook.counts(entry)]
    shown["parallel"] = coordinates.parallel_figure(title, study.space, held, study.sign)
    (style,) = drawing.styles([run.method])
    shown["eta"] = figures.eta_figure(title, {run.method: [run]}, {run.method: style})
    return shown


def _summary(notebook: Notebook, summary: Summary) -> str:
    """The best observed and the recommended point, beside one another."""
    best, found = summary.best, summary.recommended
    columns: dict[str, list[Any]] = {}
    names = notebook.study.space.names
    if best is not None:
        columns["best observed"] = [best.value, *(best.point.get(name) for name in names)]
    if found is not None:
        predicted = measured(found.mean, found.deviation)
        columns["recommended"] = [predicted, *(found.point.get(name) for name in names)]
    rows = [
        [Cell(name, strong=True), *(Cell(_text(value)) for value in values)]
        for name, *values in zip(("value", *names), *columns.values(), strict=True)
    ]
    if found is not None and found.feasible is not None:
        cells = [Cell("feasible", strong=True)]
        cells += [Cell("yes")] if best is not None else []
        rows.append([*cells, Cell(f"with probability {found.feasible:.2g}")])
    noise = f"<p>Noise: {escape(str(summary.noise))}.</p>" if summary.noise is not None else ""
    listed = [("", False), *((name, True) for name in columns)]
    return page.table(listed, rows, sortable=False) + noise


def _importance(summary: Summary) -> str:
    """The section of what matters; nothing before there is a model."""
    if summary.importance is None:
        return ""
    rows = [
        [
            Cell(name, name, strong=True),
            Cell(f"{found.effect:.1%}", found.effect),
            Cell(f"{found.low:.1%} … {found.high:.1%}", found.low),
        ]
        for name, found in summary.importance.items()
    ]
    columns = [("parameter", False), ("total effect", True), ("90% interval", True)]
    return page.section("importance", "What matters", page.table(columns, rows), EFFECTS)


def _table(notebook: Notebook) -> str:
    """Every point, sortable, with what has become of it."""
    space, entries = notebook.study.space, list(notebook.entries.values())
    numeric = [not isinstance(parameter, Categorical) for parameter in space.parameters]
    columns = [("id", True), *zip(space.names, numeric, strict=True)]
    about = names_of(notebook.study.constraints)
    columns += [("value", True), *((name, True) for name in about)]
    columns += [("seconds", True), ("outcome", False)]
    best = notebook.best
    rows = []
    for entry in entries:
        outcome = entry.reason if entry.state == "failed" else entry.state
        before = [Cell(_text(x), x) for x in (entry.id, *(entry.point.get(n) for n in space.names))]
        value = Cell(
            _text(entry.value), entry.value, strong=best is not None and entry.value == best.value
        )
        if entry.state == "told" and not notebook.counts(entry):
            outcome = "told, infeasible"
        measured = [(entry.constraints or {}).get(name) for name in about]
        after = [Cell(_text(x), x) for x in (*measured, entry.seconds, outcome)]
        rows.append([*before, value, *after])
    return page.table(columns, rows)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return digits(value)
