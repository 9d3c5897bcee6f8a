"""When a study ends: one set of rules for ``minimize``, studies and campaigns."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fitbo.config.campaign import Campaign
from fitbo.records.events import GIVEN
from fitbo.records.notebook import Notebook


@dataclass(frozen=True)
class Limits:
    """What ends a study; None means no limit.

    budget         evaluations in total, failed ones too
    max_failures   failures
    time_limit     seconds of running in total, after which no evaluation is started
    target         a value at or below this; if f is maximised, at or above
    tolerance      ``study.remaining()`` below this, after the initial design
    """

    budget: int | None = None
    max_failures: int | None = None
    time_limit: float | None = None
    target: float | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget < 0:
            raise ValueError(f"budget must not be negative, got {self.budget}")
        if self.max_failures is not None and self.max_failures < 1:
            raise ValueError(f"max_failures must be at least 1, got {self.max_failures}")
        for name in ("time_limit", "tolerance"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, got {value}")
        if self.target is not None and math.isnan(self.target):
            raise ValueError("target must be a number, got nan")

    def reached(self, notebook: Notebook, elapsed: float) -> str | None:
        """Why no further evaluation should be started; None to go on."""
        outcomes = notebook.outcomes
        told = sum(entry.value is not None for entry in outcomes)
        failures = [entry for entry in outcomes if entry.state == "failed"]
        best, sign = notebook.best, notebook.study.sign
        value = math.inf if best is None or best.value is None else sign * best.value
        if self.target is not None and value <= sign * self.target:
            return f"the target of {self.target:g} is reached: {sign * value:g}"
        if self.max_failures is not None and len(failures) >= self.max_failures:
            allowed = f"max_failures is {self.max_failures}; the last: {failures[-1].reason}"
            return f"{len(failures)} evaluations failed, and {allowed}"
        count = sum(entry.source != GIVEN for entry in outcomes)
        if self.budget is not None and count >= self.budget:
            return f"the budget of {self.budget} evaluations is spent"
        if self.time_limit is not None and elapsed >= self.time_limit:
            return f"the time limit of {self.time_limit:g} s is reached"
        if self.tolerance is not None and told >= notebook.study.n_initial:
            left = notebook.warm().remaining()
            if left < self.tolerance:
                below = f"below the tolerance of {self.tolerance:g}"
                return f"the expected remaining improvement, {left:.3g}, is {below}"
        return None


def limits_of(campaign: Campaign) -> Limits:
    """The limits that a file sets for each of its studies."""
    c = campaign
    return Limits(c.budget, c.max_failures, c.time_limit, c.target, c.tolerance or None)  # 0: never
