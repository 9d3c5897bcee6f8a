"""How a study stands by its notebook: what is known, what it recommends, whether it is over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fitbo.records.events import Entry, Point
from fitbo.records.notebook import Notebook, plain
from fitbo.study import Study


@dataclass(frozen=True)
class Recommended:
    """The minimiser of the posterior mean, and what it is predicted to be worth."""

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
    eta: tuple[float, float, float] | None  # 5%, 50% and 95% of the posterior of the minimum
    stopped: str | None


def summarise(notebook: Notebook, stopped: str | None = None) -> Summary:
    """How the study stands; a recommendation needs two values."""
    study = notebook.study
    entries = list(notebook.entries.values())
    told = [entry for entry in entries if entry.state == "told"]
    known = len(told) > 1
    if sum(entry.order >= 0 for entry in entries) < study.n_initial:
        # A fit that no suggestion needs: the next one would start from it, and so be another.
        study = replace(study, seconds={})
    eta = study.eta_quantiles((0.05, 0.5, 0.95)) if known else None
    return Summary(
        told=len(told),
        failed=sum(entry.state == "failed" for entry in entries),
        pending=tuple(entry for entry in entries if entry.state == "pending"),
        best=min(told, key=lambda entry: entry.value or 0.0, default=None),
        recommended=_recommendation(study) if known else None,
        eta=None if eta is None else (float(eta[0]), float(eta[1]), float(eta[2])),
        stopped=stopped or notebook.stopped,
    )


def status(notebook: Notebook) -> Summary:
    """The same of a study that nobody runs: also why it should go no further, if so."""
    outcomes = sum(entry.order >= 0 for entry in notebook.entries.values())
    waiting = bool(notebook.pending())
    reason = None if waiting else stop_reason(notebook, notebook.elapsed, outcomes)
    return summarise(notebook, reason)


def stop_reason(notebook: Notebook, elapsed: float, begun: int) -> str | None:
    """Why no further evaluation should begin; None to go on."""
    config, study = notebook.config, notebook.study
    outcomes = [entry for entry in notebook.entries.values() if entry.order >= 0]
    failures = sum(entry.state == "failed" for entry in outcomes)
    best = min([entry.value for entry in outcomes if entry.value is not None], default=np.inf)
    if config.target is not None and best <= config.target:
        return f"the target of {config.target:g} is reached: {best:g}"
    if config.max_failures is not None and failures >= config.max_failures:
        last = max((e for e in outcomes if e.state == "failed"), key=lambda entry: entry.order)
        return (
            f"{failures} evaluations failed, and max_failures is {config.max_failures}; "
            f"the last: {last.reason}"
        )
    if begun >= config.budget:
        return f"the budget of {config.budget} evaluations is spent"
    if config.time_limit is not None and elapsed >= config.time_limit:
        return f"the time limit of {config.time_limit:g} s is passed"
    if config.tolerance is not None and len(study.y) >= study.n_initial:
        left = study.remaining()
        if left < config.tolerance:
            return (
                f"the improvement still expected, {left:.3g}, is below "
                f"the tolerance of {config.tolerance:g}"
            )
    return None


def _recommendation(study: Study) -> Recommended:
    found = study.recommend()
    point: Any = found.x
    return Recommended(plain(point), float(found.mean), float(found.deviation))
