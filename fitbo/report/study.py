"""The page of one study: the best and the recommended point, figures, every evaluation."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from fitbo.records.events import Entry, Point
from fitbo.records.notebook import Notebook
from fitbo.report import coordinates, drawing, figures, page, slices
from fitbo.report.campaign import made_with
from fitbo.report.charts import Panel
from fitbo.report.curves import posterior_panels
from fitbo.report.evaluations import BLUE, GREEN, line_panels, parallel_panels, progress_panels
from fitbo.report.history import Run
from fitbo.report.page import Cell, Page
from fitbo.report.palette import styles
from fitbo.report.slices import Line, dependence_lines, slice_lines
from fitbo.runs.standing import Summary, consulted, summarise
from fitbo.screen import digits, measured, resolved
from fitbo.space import Categorical
from fitbo.space.outcomes import names_of
from fitbo.study import OPTIMA, bounded

CAPTIONS = {
    "progress": "Every value by its evaluation, and the best so far. The bar at the end is the "
    "posterior of f*, the optimum itself: its median, and 90% of it. The grey strip is the initial "
    "design.",
    "slices": "The posterior along each parameter with the others at the recommended point, which "
    "the dashed lines mark: mean of f and the band that holds 90% of it.",
    "dependence": "Partial dependence: the mean of f over the space for each value of a parameter. "
    "The band holds 90% of the hyperparameter samples' own curves.",
    "parallel": "Each evaluation as a line through the parameters' axes, the best strongest and "
    "in front.",
    "minimum": "What was believed of f*, the optimum, as evaluations came in: median, 50% and 90% "
    "bands, each held until the next was noted, against the best value told.",
    "eta": "What the journal holds for each evaluation is the posterior of η, the bound of the "
    "model's warp beyond the optimum, which is not the optimum: median, 50% and 90% bands, against "
    "the best value told.",
}
EFFECTS = (
    "The share of the variance of f over the space that is left when all other parameters are "
    "known. The interval is over the hyperparameter samples."
)
HINT = (
    "Point at a figure to read values and points, drag to zoom (two fingers on a screen), click a "
    "name to switch it off."
)
BACKGROUND_SEED = 0  # of the points that a dependence is averaged over


class View(NamedTuple):
    """What a study's page and its pictures show."""

    title: str
    notebook: Notebook
    run: Run
    summary: Summary
    outcomes: list[Entry]  # values as axes can hold them: as large as they are in the model
    slices: list[Line]
    dependence: list[Line]

    @property
    def told(self) -> list[Point]:
        return [entry.point for entry in self.outcomes if entry.state == "told"]

    @property
    def held(self) -> list[Entry]:
        """Failures, and the values where all outcome constraints hold."""
        return [e for e in self.outcomes if e.value is None or self.notebook.counts(e)]


def study_view(notebook: Notebook, run: Run, model: bool = True) -> View:
    """What there is to see; without the model what the journal says, which is at hand at once."""
    title = run.problem if notebook.config is None else notebook.config.title
    outcomes = [
        entry if entry.value is None else replace(entry, value=float(bounded(entry.value)))
        for entry in notebook.outcomes
    ]
    if not model:
        return View(title, notebook, run, _counted(notebook), outcomes, [], [])
    summary, study = summarise(notebook), consulted(notebook)
    slices, dependence = list[Line](), list[Line]()
    if summary.recommended is not None:
        slices = slice_lines(study, summary.recommended.point)
        dependence = dependence_lines(study, np.random.default_rng(BACKGROUND_SEED))
    return View(title, notebook, run, summary, outcomes, slices, dependence)


def _counted(notebook: Notebook) -> Summary:
    """How a study stands by its journal alone."""
    states = [entry.state for entry in notebook.entries.values()]
    return Summary(
        told=states.count("told"),
        failed=states.count("failed"),
        pending=tuple(notebook.pending()),
        best=notebook.best,
        recommended=None,
        minimum=None,
        remaining=None,
        stopped=notebook.stopped,
    )


def study_page(view: View) -> Page:
    """The study's page."""
    title, notebook, run, summary, *_ = view
    counts = {
        "evaluations": summary.told + summary.failed,
        "failed": summary.failed,
        "pending": len(summary.pending),
        "parameters": len(notebook.study.space.names),
    }
    facts = [f"{count} {what}" for what, count in counts.items() if count]
    stopped = f'<p class="note">Stopped: {escape(summary.stopped)}.</p>' if summary.stopped else ""
    listed = ("summary", "figures", "evaluations", "config")
    charts = _panels(view)
    drawn = "".join(page.figure(kind, f"{title}: {kind}", CAPTIONS[kind]) for kind in charts)
    return page.compose(
        title,
        charts,
        facts=escape(" · ".join([*facts, run.method])),
        links="".join(f'<a href="#{name}">{name.capitalize()}</a>' for name in listed),
        notes=stopped,
        sections=page.section("summary", "Summary", _summary(notebook, summary))
        + _importance(summary)
        + page.section("figures", "Figures", drawn, HINT)
        + page.section("evaluations", "Evaluations", _table(notebook), "Click a heading to sort."),
        config=page.details("Resolved configuration and versions", made_with([run])),
    )


def _panels(view: View) -> dict[str, list[Panel]]:
    """The figures of the page, by kind."""
    study, summary, run = view.notebook.study, view.summary, view.run
    style = dict(zip([run.method], styles([run.method]), strict=True))
    kind, posterior = posterior_panels({run.method: [run]}, style)
    point = summary.recommended.point if summary.recommended is not None else None
    told = view.told
    counts = view.notebook.counts
    values = view.outcomes, study.n_initial, study.sign
    progress = progress_panels(*values, summary.minimum, counts)
    found = {
        "progress": progress,
        "slices": line_panels(view.slices, study, told, BLUE, "mean and 90%", point),
        "dependence": line_panels(view.dependence, study, told, GREEN, "mean and 90% of samples"),
        "parallel": parallel_panels(study.space, view.held, study.sign),
        kind: posterior,
    }
    return {kind: panels for kind, panels in found.items() if panels}


def study_images(view: View) -> dict[str, bytes]:
    """The same figures as pictures, by kind."""
    title, notebook, run, summary, outcomes, *_ = view
    study = notebook.study
    shown: dict[str, Figure | None] = {}
    shown["progress"] = slices.progress_figure(
        title, outcomes, study.n_initial, study.sign, notebook.counts
    )
    if summary.recommended is not None:
        rng, told = np.random.default_rng(BACKGROUND_SEED), view.told
        at = summary.recommended.point
        shown["slices"] = slices.slice_figure(title, study, told, at, view.slices)
        shown["dependence"] = slices.dependence_figure(title, study, told, rng, view.dependence)
    shown["parallel"] = coordinates.parallel_figure(title, study.space, view.held, study.sign)
    (style,) = styles([run.method])
    methods = {run.method: [run]}
    kind, _ = figures.posterior_bands(methods)
    shown[kind] = figures.posterior_figure(title, methods, {run.method: style})
    return {kind: drawing.image(each) for kind, each in shown.items() if each is not None}


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
    if summary.minimum is not None:
        low, middle, high = (
            resolved(q, summary.minimum[2] - summary.minimum[0]) for q in summary.minimum
        )
        believed = [Cell(f"{OPTIMA[notebook.study.direction]}, f*", strong=True)]
        believed += [Cell("") for _ in columns]
        believed[-1] = Cell(f"{middle} [{low}, {high}]")
        rows.append(believed)
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
