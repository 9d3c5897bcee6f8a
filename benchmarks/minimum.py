"""Does the interval of the minimum hold it? And is the regret of a stopped run what it says?

    python benchmarks/minimum.py --seeds 10 --workers 2      # writes results/minimum/

Twelve problems with known minima, 60 evaluations each. After each run the posterior of f*, the
minimum of the function, is compared with the truth: the share of runs whose 50% and 90% intervals
hold it, within the accuracy to which a minimum is known (1e-6 of the range of the values told).
Along each run, the first evaluation at which the expected remaining improvement fell below 1e-3 of
the range of the values told is where a search with that tolerance would have stopped: the share of
those whose regret was below it then.
"""

from __future__ import annotations

from common import ROOT, one_thread, write

one_thread()

import argparse
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from fitbo.inference.settings import Settings
from fitbo.problems import problem
from fitbo.study import Study

RESULTS = ROOT / "results" / "minimum"
BUDGET, TOLERANCE, ROUNDING = 60, 1e-3, 1e-6
CHECKED = 5  # evaluations between two looks at what remains
PROBLEMS: dict[str, dict[str, Any]] = {
    "forrester": {"name": "forrester"},
    "branin": {"name": "branin"},
    "six-hump-camel": {"name": "six_hump_camel"},
    "eggholder": {"name": "eggholder"},
    "hartmann3": {"name": "hartmann3"},
    "levy4": {"name": "levy", "dim": 4},
    "ackley5": {"name": "ackley", "dim": 5},
    "rosenbrock3": {"name": "rosenbrock", "dim": 3},
    "styblinski-tang5": {"name": "styblinski_tang", "dim": 5},
    "hartmann6": {"name": "hartmann6"},
    "draw2": {"name": "gp_draw", "dim": 2, "seed": 5},
    "draw4": {"name": "gp_draw", "dim": 4, "seed": 6, "lengthscale": 0.5},
}


def run(label: str, seed: int) -> dict[str, Any]:
    f = problem(**PROBLEMS[label])
    study = Study(f.space, Settings(seed=seed, deterministic=True))
    stopped, regret_then, asked = 0, np.nan, np.nan
    for n in range(1, BUDGET + 1):
        x = study.ask()[0]
        study.tell(x, float(f(x)))
        if n > study.n_initial and n % CHECKED == 0 and not stopped:
            bound = TOLERANCE * float(np.ptp(study.y))
            if study.remaining() < bound:
                stopped, regret_then = n, study.best_observed[1] - f.minimum
                asked = bound
    q = study.minimum_quantiles((0.05, 0.25, 0.5, 0.75, 0.95)) - f.minimum
    slack = ROUNDING * float(np.ptp(study.y))
    return {
        "problem": label,
        "seed": seed,
        "regret": study.best_observed[1] - f.minimum,
        **{f"q{p}": float(v) for p, v in zip((5, 25, 50, 75, 95), q, strict=True)},
        "in90": bool(q[0] - slack <= 0 <= q[4] + slack),
        "in50": bool(q[1] - slack <= 0 <= q[3] + slack),
        "stopped": stopped,
        "regret when stopped": float(regret_then),
        "tolerance": float(asked),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    tasks = [(label, seed) for seed in range(arguments.seeds) for label in PROBLEMS]
    with ProcessPoolExecutor(arguments.workers) as pool:
        rows = list(pool.map(run, *zip(*tasks, strict=True)))
    write(RESULTS, "table", table(rows, arguments.seeds), rows)


def table(rows: list[dict[str, Any]], seeds: int) -> list[str]:
    """Markdown."""
    lines = [
        "# The interval of the minimum",
        "",
        f"Made by `python benchmarks/minimum.py --seeds {seeds}`: {BUDGET} evaluations each.",
        "Counts of runs; the median of f* less the true minimum; runs that a tolerance of",
        f"{TOLERANCE:g} of the range would have stopped, and those of them whose regret was below.",
        "",
        "| problem | runs | in 50% | in 90% | median f* | regret | stopped | kept their word |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for label in [*PROBLEMS, "all"]:
        own = [row for row in rows if label in (row["problem"], "all")]
        stopped = [row for row in own if row["stopped"]]
        kept = sum(row["regret when stopped"] <= row["tolerance"] for row in stopped)
        middle = [f"{np.median([row[key] for row in own]):.1e}" for key in ("q50", "regret")]
        counts = [len(own), sum(row["in50"] for row in own), sum(row["in90"] for row in own)]
        cells = [label, *map(str, counts), *middle, str(len(stopped)), str(kept)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
