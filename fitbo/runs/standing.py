"""How a study stands by its notebook: what is known, what it recommends, whether it is over."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fitbo.records.events import Entry, Point
from fitbo.records.notebook import Notebook
from fitbo.runs.limits import limits_of
from fitbo.study import Study


@dataclass(frozen=True)
class Recommended:
    """The minimiser of the posterior mean, the mean there and its standard deviation."""

    point: Point
    mean: float
    deviation: float


@dataclass(frozen=True)
class Summary:
    """How a study stands: counts, the best observed, the recommendation, why it stopped."""

    told: int
    failed: int
    pending: tuple[Entry, ...]
    best: Entry | None
    recommended: Recommended | None
    eta: tuple[float, ...] | None  # 5%, 50% and 95% of the posterior of eta
    stopped: str | None


def recommend(notebook: Notebook) -> Recommended:
    """What the posterior recommends now; this needs a value."""
    found = _consulted(notebook).recommend()
    return Recommended(notebook.plain(found.x), float(found.mean), float(found.deviation))


def summarise(notebook: Notebook, stopped: str | None = None) -> Summary:
    """How the study stands; a recommendation needs two values."""
    entries = list(notebook.entries.values())
    told = [entry for entry in entries if entry.state == "told"]
    known = len(told) > 1
    eta = _consulted(notebook).eta_quantiles((0.05, 0.5, 0.95)).tolist() if known else None
    return Summary(
        told=len(told),
        failed=sum(entry.state == "failed" for entry in entries),
        pending=tuple(entry for entry in entries if entry.state == "pending"),
        best=min(told, key=lambda entry: entry.value or 0.0, default=None),
        recommended=recommend(notebook) if known else None,
        eta=None if eta is None else tuple(eta),
        stopped=stopped or notebook.stopped,
    )


def status(notebook: Notebook) -> Summary:
    """The same of a study that nobody runs: also why it should go no further, if so."""
    config = notebook.config
    reason = None
    if config is not None and not notebook.pending():
        reason = limits_of(config.campaign).reached(notebook, notebook.elapsed)
    return summarise(notebook, reason)


def _consulted(notebook: Notebook) -> Study:
    """The study to ask what it believes.

    In the initial design a copy: the next fit would start from one that no suggestion needs, and
    so be another than that of a study that was never consulted.
    """
    study = notebook.warm()
    if len(notebook.outcomes) < study.n_initial:
        return replace(study, seconds={})
    return study
