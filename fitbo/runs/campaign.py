"""A campaign: every method on every problem from every seed, each study with its own journal.

    tasks(campaign)                  the grid
    run_study(task)                  one study, from wherever its journal ends to its budget
    <output>/<name>/<problem>/<method>/<seed>.jsonl

A study is resumed by replaying its journal. What each evaluation needs besides the journal is the
sampler's ensemble one fit earlier; the last two are kept beside the journal in ``<seed>.state.npz``
while the study runs. That file is only a shortcut: without it, or with one that a kill has torn,
the fits are made again, and since all randomness comes from (seed, evaluation, purpose) they are
the same fits. So does a study that was complete go on when its budget grows: its header stays as it
was, and the rows that follow name the new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fitbo
from fitbo.config.build import build_problem, build_settings
from fitbo.config.campaign import Campaign, ProblemConfig, differences, to_dict
from fitbo.config.method import MethodConfig
from fitbo.problems import Problem
from fitbo.records import ensembles
from fitbo.records.events import ETA_QUANTILES
from fitbo.records.journal import (
    FORMAT,
    ConfigChanged,
    Journal,
    Writer,
    lasting,
    made_by,
    state_path,
)
from fitbo.sampling import Ensemble
from fitbo.study import Study

NOISE_STREAM = 100  # apart from the purposes of a study


@dataclass(frozen=True)
class Task:
    """One study of a campaign: a problem, a method, a seed."""

    campaign: Campaign
    problem: ProblemConfig
    method: MethodConfig
    seed: int
    base: Path = Path()  # what a relative output is relative to

    @property
    def path(self) -> Path:
        """Where its journal is."""
        campaign = self.base / self.campaign.directory
        folder = campaign / str(self.problem.label) / str(self.method.label)
        return folder / f"{self.seed}.jsonl"

    @property
    def title(self) -> str:
        return f"{self.problem.label} / {self.method.label} / {self.seed}"


def tasks(campaign: Campaign) -> list[Task]:
    """The grid of studies, seeds outermost, so that every method has some results early on."""
    return [
        Task(campaign, problem, method, seed)
        for seed in campaign.seeds
        for problem in campaign.problems
        for method in campaign.methods
    ]


def run_study(task: Task, stop: Callable[[], bool] = lambda: False) -> bool:
    """Run one study to its budget or until ``stop()``; whether it is complete.

    A journal that another process is writing raises ``Busy``, and one that was
    written for another configuration ``ConfigChanged``.
    """
    problem = build_problem(task.campaign, task.problem)
    with Writer(task.path) as writer:
        if writer.journal is None:
            state_path(task.path).unlink(missing_ok=True)  # of a journal since removed
            writer.append(header(task, problem))
            rows: list[dict[str, Any]] = []
            budget = task.campaign.budget
        else:
            check_same(writer.journal, header(task, problem), task.path)
            rows, budget = writer.journal.rows, int(writer.journal.header["budget"])
        if len(rows) >= task.campaign.budget:
            state_path(task.path).unlink(missing_ok=True)
            return True
        study, state = replay(task, problem, rows, ensembles.load(state_path(task.path)))
        lowest = min([row["f"] for row in rows], default=np.inf)
        for n in range(len(rows) + 1, task.campaign.budget + 1):
            if stop():
                return False
            before = study.ensemble
            row = evaluate(study, problem, n, lowest)
            lowest = min(lowest, row["f"])
            if task.campaign.budget != budget:
                row = {"n": n, "budget": task.campaign.budget, **row}
            if before is not None:
                # Before the row: whichever of the two a kill prevents, the other is still right.
                state = {k: e for k, e in state.items() if k == n - 1} | {n: before}
                ensembles.save(state_path(task.path), state)
            writer.append(row)
        state_path(task.path).unlink(missing_ok=True)
    return True


def evaluate(study: Study, problem: Problem, n: int, lowest: float) -> dict[str, Any]:
    """Ask, evaluate, tell: the journal's row of the n-th evaluation."""
    x = study.ask()[0]
    suggesting = {name: study.seconds.pop(name, 0.0) for name in ("search", "entropy")}
    rng = np.random.default_rng([study.settings.seed, NOISE_STREAM, n])
    started = time.perf_counter()
    y, f = problem.observe(x, rng), problem(x)
    objective = time.perf_counter() - started
    study.tell(x, y)
    chosen = n >= study.n_initial  # until then there is no posterior to recommend by
    recommended = study.recommend().x if chosen else study.best_observed[0]
    f_recommended = problem(recommended)
    return {
        "n": n,
        "x": x.tolist(),
        "y": y,
        "f": f,
        "x_recommended": recommended.tolist(),
        "f_recommended": f_recommended,
        "simple_regret": min(lowest, f) - problem.minimum,
        "immediate_regret": abs(f_recommended - problem.minimum),
        "eta": study.eta_quantiles(ETA_QUANTILES).tolist() if chosen else None,
        "mcmc": _plain(asdict(study.fit().samples.diagnostics)) if chosen else None,
        "seconds": {
            "mcmc": study.seconds.pop("mcmc", 0.0),
            **suggesting,
            "recommend": study.seconds.pop("recommend", 0.0),
            "objective": objective,
        },
    }


def replay(
    task: Task,
    problem: Problem,
    rows: list[dict[str, Any]],
    state: Mapping[int, Ensemble],
) -> tuple[Study, dict[int, Ensemble]]:
    """The study as it was after these rows, and the ensemble its last fit started from, by n.

    ``state`` may hold that ensemble; without it every fit is made again.
    """
    settings = build_settings(task.campaign, task.problem, task.method, task.seed)
    study = Study(problem.space, settings)
    saved = state.get(len(rows))
    start = None
    for n, row in enumerate(rows, start=1):
        study.tell(row["x"], row["y"])
        last = n == len(rows)
        if n >= study.n_initial and (last or saved is None):
            study.ensemble = start = saved or study.ensemble
            study.fit()
    return study, {} if start is None else {len(rows): start}


def header(task: Task, problem: Problem) -> dict[str, Any]:
    """The journal's first line: what the study is, and what it was made with."""
    config = to_dict(task.campaign)
    problems, methods = task.campaign.problems, task.campaign.methods
    described = {
        **config["problems"][problems.index(task.problem)],
        "dim": problem.dim,
        "noise_std": problem.noise_std,
        "minimum": problem.minimum,
    }
    return {
        "format": FORMAT,
        "fitbo": fitbo.__version__,
        "campaign": task.campaign.name,
        "problem": described,
        "method": config["methods"][methods.index(task.method)],
        "seed": task.seed,
        "budget": task.campaign.budget,
        "initial": {**config["initial"], "n": task.campaign.n_initial(task.problem)},
        "versions": made_by(),
    }


def check_same(journal: Journal, new: Mapping[str, Any], path: Path) -> None:
    """Raise ``ConfigChanged`` where the journal's header describes another study than ``new``.

    A budget may grow: no point depends on it. It may not shrink below what the journal was made
    for or has reached, as what it holds would then be more than was asked for.
    """
    old, new = lasting(journal.header), lasting(new)
    if "budget" in old:
        old["budget"] = max(old["budget"], len(journal.rows))
        if new["budget"] > old["budget"]:
            old["budget"] = new["budget"]
    changed = differences(old, new)
    if changed:
        grow = "" if old.get("budget") == new["budget"] else "; a budget can only grow"
        raise ConfigChanged(
            f"{path} was made by another configuration: {'; '.join(changed)}{grow}. Give the "
            f"campaign another name or output, or move its results away"
        )


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no infinities: a statistic that is not finite is null."""
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in values.items()
    }
