"""The published table of fully Bayesian expected improvement [1], and fitbo by the same protocol.

    python benchmarks/published.py                       # writes results/published/
    python benchmarks/published.py --problems branin ackley:5 --seeds 3

Every study has 2d points of a Latin hypercube and 200 evaluations in all, without noise. Compared
is the median regret of the best value observed: of the 51 runs of [1], fully Bayesian expected
improvement, as printed there, and of the seeds here, each with its own design. The journals are
a campaign's, ``results/published/<problem>/fitbo/<seed>.jsonl``; run the same command again to go
on where a killed one stopped.

[1] De Ath, Everson, Fieldsend, How Bayesian should Bayesian optimisation be?, GECCO 2021 companion,
    arXiv 2105.00894.
"""

from __future__ import annotations

from common import ROOT, prepare_workers, versions, write

prepare_workers()

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from fitbo.config.campaign import StudyConfig, from_dict
from fitbo.config.executor import Executor
from fitbo.records import archive
from fitbo.report.history import Runs, group, load
from fitbo.runs.executors import run_all

RESULTS = ROOT / "results" / "published"
BUDGET = 200
PUBLISHED = {
    "branin": 1.5e-4,
    "eggholder": 32.0,
    "ackley:5": 1.96,
    "michalewicz:5": 0.24,
    "styblinski_tang:5": 1.0,
    "hartmann6": 1.3e-3,
    "rosenbrock:7": 276.0,
    "ackley:10": 3.5,
    "michalewicz:10": 2.76,
    "rosenbrock:10": 1350.0,
    "styblinski_tang:10": 80.0,
}


def studies_of(problem: str, seeds: int, output: Path) -> list[StudyConfig]:
    """The studies of ``name`` or ``name:dim``."""
    name, _, dim = problem.partition(":")
    described: dict[str, Any] = {"name": name, "label": problem.replace(":", "-")}
    described |= {"dim": int(dim)} if dim else {}
    campaign = from_dict(
        {
            "name": output.name,
            "problems": [described],
            "methods": [{"label": "fitbo", "deterministic": True}],
            "seeds": seeds,
            "budget": BUDGET,
            "initial": {"design": "latin"},
            "output": str(output.parent),
        }
    )
    return list(campaign.studies())


def table(runs: Runs) -> list[str]:
    """Markdown."""
    lines = [
        "# The published table",
        "",
        f"Made by `python benchmarks/published.py`, {versions('numpy')}: 2d points of a Latin",
        "hypercube and 200 evaluations in all, without noise; regret of the best value observed.",
        "Published: De Ath, Everson, Fieldsend (2021), fully Bayesian expected improvement, median",
        "of 51 runs.",
        "",
        "| problem | published median | fitbo's median | quartiles | worst | seeds | below |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    below = 0
    for problem, published in PUBLISHED.items():
        done = [r for r in runs.get(problem.replace(":", "-"), {}).get("fitbo", []) if r.complete]
        if not done:
            continue
        regrets = np.maximum([run.simple[-1] for run in done], 0.0)  # below is rounding
        low, median, high = np.quantile(regrets, [0.25, 0.5, 0.75])
        below += median < published
        cells = [problem, f"{published:.2g}", f"{median:.2g}", f"{low:.2g} to {high:.2g}"]
        cells += [f"{regrets.max():.2g}", str(len(done)), "yes" if median < published else "no"]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", f"Below the published median on {below} of {len(lines) - 9} problems."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", choices=list(PUBLISHED), default=list(PUBLISHED))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    output = arguments.output.resolve()
    archive.unpack(output)
    every = [
        study
        for problem in arguments.problems
        for study in studies_of(problem, arguments.seeds, output)
    ]
    every.sort(key=lambda study: study.seed)
    for study, error in run_all(every, Executor(kind="processes", workers=arguments.workers)):
        if error is not None:
            raise error
        print(study.title, flush=True)
    write(output, "table", table(group(load([output]))))


if __name__ == "__main__":
    main()
