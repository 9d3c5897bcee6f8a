"""What ``minimize`` returns: scipy's ``OptimizeResult``, printed in ten lines, with figures."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from fitbo.checks import one_of
from fitbo.inference.importance import Importance
from fitbo.mixture import Array
from fitbo.objectives.outcome import clip
from fitbo.records.notebook import Notebook
from fitbo.screen import digits, interval, measured, short
from fitbo.space.outcomes import names_of
from fitbo.study import OPTIMA, Study

WIDEST = 100  # characters of a line
FIGURES = ("progress", "slices", "dependence")


class Result(OptimizeResult):
    """The result of ``minimize`` or ``maximize``.

    x, fun                          the best observed where all outcome constraints hold, and its
                                    value
    x_recommended, fun_recommended  where the posterior mean is best, and that mean
    feasible                        the probability that the outcome constraints hold there; None
                                    if there are none
    x_iters, func_vals              all points with values in the order they came, and the values
    failures                        the points without a value, and why
    message, success                what ended the search; false if interrupted, or if all failed
    minimum, remaining              where the function's minimum is thought to lie, its 5%, 50% and
                                    95% quantiles, and how far below the best value it is expected
    traceback                       of the last evaluation, if the first ones all failed
    nfev, study                     evaluations, and the study itself
    """

    x: Any
    fun: float
    x_recommended: Any
    fun_recommended: float
    deviation: float  # of the predicted mean
    feasible: float | None
    x_iters: Any
    func_vals: Array
    failures: list[tuple[Any, str]]
    message: str
    success: bool
    traceback: str
    nfev: int
    study: Study
    notebook: Notebook

    @classmethod
    def of(
        cls, notebook: Notebook, message: str, ended: bool, nfev: int, trace: str = ""
    ) -> Result:
        """The result of a notebook whose loop has ended, or was interrupted."""
        study = notebook.study
        known, nothing = len(study.y) > 0, (None, np.nan)
        found, held = study.recommend() if known else None, bool(study.feasible.any())
        result = cls()
        result.x, result.fun = study.best_observed if held else nothing
        result.x_iters, result.func_vals = study.X, study.y
        result.x_recommended, result.fun_recommended = (found.x, found.mean) if found else nothing
        result.deviation = found.deviation if found else np.nan
        result.feasible = found.feasible if found else None
        result.nfev, result.failures, result.study = nfev, study.failures, study
        result.success, result.message, result.traceback = held and ended, message, trace
        if known and not held:
            result.message += "; the outcome constraints hold at no point evaluated"
        if study.failures and not known and not trace:
            first = study.failures[0][1]
            result.message += f"; every evaluation failed, the first by {first!r:.200}"
        result.notebook = Notebook(study, rows=notebook.rows)
        return result

    def __repr__(self) -> str:
        return "\n".join(f"{name:>11}: {text}" for name, text in self._lines().items())

    __str__ = __repr__

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:right">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in self._lines().items()
        )
        return f"<table>{rows}</table>"

    def to_dataframe(self) -> Any:
        """Every outcome in the order they came, a row each: the parameters, value, reason."""
        try:
            import pandas as pd  # not needed for anything else
        except ImportError:
            raise ImportError("to_dataframe needs pandas: pip install pandas") from None
        names = list(self.study.space.names)
        outcomes = self.notebook.outcomes
        about = names_of(self.study.constraints)
        rows = [
            {**entry.point, "value": entry.value, "reason": entry.reason}
            | {name: (entry.constraints or {}).get(name) for name in about}
            for entry in outcomes
        ]
        frame = pd.DataFrame(rows, columns=[*names, "value", *about, "reason"])
        return frame.astype({"value": float})

    def plot(self, kind: str = "progress") -> Any:
        """A matplotlib ``Figure``: "progress", "slices" or "dependence"."""
        from fitbo.report import slices  # matplotlib takes half a second to import

        one_of("kind", kind, FIGURES)
        study, outcomes, name = self.study, self.notebook.outcomes, "fitbo"
        if kind == "progress":
            counts = self.notebook.counts
            return slices.progress_figure(name, outcomes, study.n_initial, study.sign, counts)
        if len(study.y) < 2:
            raise ValueError(f"{kind} needs two values, got {len(study.y)}")
        told = [entry.point for entry in outcomes if entry.state == "told"]
        if kind == "slices":
            point = self.notebook.plain(self.x_recommended)
            return slices.slice_figure(name, study, told, point)
        return slices.dependence_figure(name, study, told, np.random.default_rng(0))

    @property
    def minimum(self) -> tuple[float, ...] | None:
        """5%, 50% and 95% quantiles of the function's minimum, or of its maximum.

        None if there is nothing to draw it from: with fewer than two different values, with
        outcome constraints, which a lower place may break, or by GPy's surrogate.
        """
        study = self.study
        told = len(study.y) > 1 and not (study.level or study.constraints)
        return tuple(study.minimum_quantiles().tolist()) if told and study.fit().has_paths else None

    @property
    def remaining(self) -> float | None:
        """How far the minimum is expected to lie below the best value known; None as above."""
        return None if self.minimum is None else self.study.remaining()

    def importance(self) -> dict[str, Importance]:
        """Which parameters matter: total effects with 90% intervals, the largest first."""
        return self.study.importance()

    def _lines(self) -> dict[str, str]:
        """What is worth seeing, by its name: ten lines at most."""
        n, failed = self.nfev, len(self.failures)
        known = {}
        if self.minimum is not None:
            still = f", {self.remaining:.2g} still to gain"
            known = {OPTIMA[self.study.direction]: interval(self.minimum) + still}
        lines = {
            "message": str(self.message),
            "success": str(self.success),
            "fun": f"{self.fun:.6g}",
            "x": _point(self.x),
            "recommended": _point(self.x_recommended),
            "predicted": measured(self.fun_recommended, self.deviation)
            + ("" if self.feasible is None else f", feasible with {self.feasible:.2g}"),
            **known,
            "nfev": f"{n}, {failed} failed" if failed else str(n),
            "seed": str(self.study.settings.seed),
        }
        shown = {name: clip(text, WIDEST) for name, text in lines.items()}
        trace = self.traceback.strip().splitlines()
        return shown | ({"traceback": clip(" | ".join(trace[-3:]), WIDEST)} if trace else {})


def _point(x: Any) -> str:
    if x is None:
        return "none"
    if isinstance(x, dict):
        return short(x)
    return f"[{' '.join(map(digits, x.tolist()))}]"
