"""The study that the rows of a journal make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from fitbo.config.build import build_study
from fitbo.config.campaign import StudyConfig
from fitbo.records import events
from fitbo.records.events import Row, entries_of
from fitbo.records.headers import x_of
from fitbo.sampling import Ensemble
from fitbo.space.outcomes import names_of
from fitbo.study import Study

Build = Callable[[StudyConfig], Study]


def replay(
    config: StudyConfig,
    rows: Sequence[Row],
    fits: bool = True,
    build: Build = build_study,
    saved: Ensemble | None = None,
) -> Study:
    """The study as it was after these rows; ``saved`` is what its sampler came to last."""
    study = build(config)
    right = events.amended(rows)
    marked = [row.get("moved", row["fitted"]) for row in right if "fitted" in row]
    if fits and marked:
        told = sum(row.get("event") == "told" for row in right)
        study.ensemble = saved if saved is not None and max(marked) <= saved.n <= told else None
    again = fits and study.ensemble is None
    for row in right:
        event = row.get("event")
        if event == "told":
            tell_row(study, x_of(study.space, row["point"]), row)
        elif event == "failed":
            study.fail(x_of(study.space, row["point"]), row["reason"])
        if again and "fitted" in row:
            study.fit()
    study.seconds.clear()
    for entry in entries_of(rows).values():
        if entry.state == "pending":
            study.expect(x_of(study.space, entry.point))
    return study


def observation(
    value: float, std: float | None, constraints: Mapping[str, float | None] | None
) -> dict[str, Any]:
    """What a row says about a value: JSON has no NaN, so what is not known is null."""
    row: dict[str, Any] = {"value": value} | ({} if std is None else {"std": std})
    if constraints:
        known = {k: v if v is not None and isfinite(v) else None for k, v in constraints.items()}
        row["constraints"] = known
    return row


def tell_row(study: Study, x: Any, row: Row) -> None:
    """Tell the study what a row says: a std only counts if there may be noise, and what an outcome
    constraint is about is not known if it is not there.
    """
    std = None if study.settings.deterministic is True else row.get("std")
    about = dict.fromkeys(names_of(study.constraints)) | (row.get("constraints") or {})
    study.tell(x, row["value"], std, about)
