"""How a study stands by its notebook: what is known, what it recommends, whether it is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fitbo.inference.importance import Importance
from fitbo.records.events import GIVEN, Entry, Point
from fitbo.records.notebook import Notebook
from fitbo.runs.limits import limits_of
from fitbo.study import Study


@dataclass(frozen=True)
class Recommended:
    """Where the posterior mean is best, the mean there and its standard deviation.

    ``feasible`` is the probability that the outcome constraints hold there, if there are any.
    """

    point: Point
    mean: float
    deviation: float
    feasible: float | None = None

    def described(self) -> dict[str, Any]:
        """As plain data."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Noise:
    """The standard deviation of the noise, and whether it is stated, inferred or deterministic.

    ``own`` values of the study state a standard deviation of their own.
    """

    std: float
    source: str
    own: int = 0

    def __str__(self) -> str:
        if self.source == "deterministic":
            return "none: deterministic"
        own = f", beside what {self.own} values state" if self.own else ""
        return f"std {self.std:.2g}, {self.source}{own}"


@dataclass(frozen=True)
class Summary:
    """How a study stands: counts, the best observed, the recommendation, why it stopped."""

    told: int
    failed: int
    pending: tuple[Entry, ...]
    best: Entry | None
    recommended: Recommended | None
    minimum: tuple[float, ...] | None  # 5%, 50% and 95% of the posterior of the best value
    remaining: float | None  # how far it is expected to be from the best one known
    stopped: str | None
    importance: Mapping[str, Importance] | None = None  # total effects, the largest first
    noise: Noise | None = None
    given: int = 0  # outcomes known before, of those told and failed: they use no budget
    feasible: int | None = None  # how many values are of points where the outcome constraints hold


def recommend(notebook: Notebook) -> Recommended:
    """What the posterior recommends now; this needs a value."""
    return _recommended(notebook, consulted(notebook))


def _recommended(notebook: Notebook, study: Study) -> Recommended:
    found = study.recommend()
    mean, deviation = float(found.mean), float(found.deviation)
    return Recommended(notebook.plain(found.x), mean, deviation, found.feasible)


def summarise(notebook: Notebook, stopped: str | None = None) -> Summary:
    """How the study stands; a recommendation needs two values."""
    told = sum(map(_is_told, notebook.entries.values()))
    known, minimum, remaining = told > 1, None, None
    study = consulted(notebook) if known else notebook.study
    if known and study.fit().has_paths:
        remaining = study.remaining()
        if not study.constraints:  # with them a lower place may be infeasible
            minimum = tuple(study.minimum_quantiles().tolist())
    return Summary(
        told=told,
        failed=sum(entry.state == "failed" for entry in notebook.entries.values()),
        pending=tuple(notebook.pending()),
        best=notebook.best,
        recommended=_recommended(notebook, study) if known else None,
        minimum=minimum,
        remaining=remaining,
        stopped=stopped or notebook.stopped,
        importance=study.importance() if known else None,
        noise=noise_of(study) if known else None,
        given=sum(entry.source == GIVEN for entry in notebook.outcomes),
        feasible=sum(map(notebook.counts, notebook.outcomes)) if study.constraints else None,
    )


def noise_of(study: Study) -> Noise:
    """What is known about the noise of a study that has values."""
    settings = study.acting
    source = "inferred" if settings.noise_std is None else "stated"
    source = "deterministic" if settings.deterministic is True else source
    return Noise(study.noise_level(), source, int(np.isfinite(study.stds).sum()))


def _is_told(entry: Entry) -> bool:
    return entry.state == "told"


def status(notebook: Notebook) -> Summary:
    """How a study stands that is not being run: also why it should go no further, if so."""
    config, reason = notebook.config, None
    if config is not None and not notebook.pending():
        reason = limits_of(config.campaign).reached(notebook, notebook.elapsed)
    return summarise(notebook, reason)


def consulted(notebook: Notebook) -> Study:
    """The study whose posterior is consulted.

    A copy, where its fit is one that no suggestion needs: if the next fit started from it, that
    would differ from the fit of a study that was never consulted. But while a problem whose minimum
    is known is run, every suggestion is preceded by a recommendation.
    """
    study, config = notebook.warm(), notebook.config
    always = config is not None and not config.problem.black_box and not study.level
    if study.needs_fit or (always and len(notebook.outcomes) >= study.n_initial):
        return study
    known = len(study.y), len(study.failures), len(study.pending)
    of, then, copy = notebook.aside or (None, (), study)
    if of is not study or then != known:  # a corrected value makes another study
        copy = replace(study, seconds={})
        notebook.aside = study, known, copy
    return copy
