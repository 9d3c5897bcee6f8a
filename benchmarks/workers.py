"""Four workers on a slow objective: time against the ideal, regret against one worker's.

    python benchmarks/workers.py                        # writes results/workers/
    python benchmarks/workers.py --budget 20 --seeds 1  # a look

The objective is Hartmann-6D, which is solved, and Ackley-5D, which is not, after a sleep of one
second, on a pool of processes. The ideal time of
n evaluations on k workers is ceil(n/k) seconds; what is above it is the optimiser's own thinking
while workers are idle, and the pool's. The sequential run does not sleep, for its regret is the
same; the simple regret of both is that of the best value observed, and below 1e-6 they tie.

Where the regret falls by a factor with each evaluation, as it does in a trust region, knowing three
values fewer is a factor of regret, whatever the time that it saves. So evaluations are compared
too: those that each took to the regret that both have reached, the larger of their last ones.
"""

from __future__ import annotations

from common import ROOT, one_thread, versions, write

one_thread()

import argparse
import math
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import fitbo
from fitbo.problems import problem

RESULTS = ROOT / "results" / "workers"
TIE = 1e-6
REGRETS = "regret", "sequential_regret"
EVALUATIONS = "evaluations", "sequential_evaluations"


def objective(x: np.ndarray, name: str, seconds: float) -> float:
    time.sleep(seconds)
    return problem(name)(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", default=["hartmann6", "ackley5"])
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows = [
        run(arguments, name, seed) for seed in range(arguments.seeds) for name in arguments.problems
    ]
    write(arguments.output, "table", table(rows, arguments), rows, data="runs")


def run(arguments: argparse.Namespace, name: str, seed: int) -> dict[str, Any]:
    made = problem(name)
    n, k = arguments.budget, arguments.workers
    common: dict[str, Any] = {"n_calls": n, "seed": seed, "n_samples": arguments.samples}
    with ProcessPoolExecutor(k, mp_context=get_context("spawn")) as pool:
        awake = partial(objective, name=name, seconds=0.5)
        list(pool.map(awake, [np.zeros(made.dim)] * 2 * k))
        started = time.perf_counter()
        marks: list[float] = []
        together = fitbo.minimize(
            partial(objective, name=name, seconds=arguments.seconds),
            made.bounds,
            executor=pool,
            n_workers=k,
            callback=lambda _: marks.append(time.perf_counter() - started),
            **common,
        )
    alone = fitbo.minimize(made, made.bounds, **common)
    ideal = math.ceil(n / k) * arguments.seconds
    regrets = [np.minimum.accumulate(r.func_vals) - made.minimum for r in (together, alone)]
    common_regret = max(TIE, *(float(each[-1]) for each in regrets))
    took = [int(np.argmax(each <= common_regret)) + 1 for each in regrets]
    row = {
        "problem": name,
        "seed": seed,
        "seconds": marks[-1],
        "ideal": ideal,
        "ratio": marks[-1] / ideal,
        "regret": float(regrets[0][-1]),
        "sequential_regret": float(regrets[1][-1]),
        "evaluations": took[0],
        "sequential_evaluations": took[1],
    }
    print(", ".join(f"{key} {value:.4g}" for key, value in row.items() if key != "problem"), name)
    return row


def table(rows: list[dict[str, Any]], arguments: argparse.Namespace) -> list[str]:
    """Markdown."""
    lines = [
        "# Several workers",
        "",
        f"Made by `python benchmarks/workers.py --budget {arguments.budget} --workers "
        f"{arguments.workers} --seconds {arguments.seconds:g} --seeds {arguments.seeds} --samples "
        f"{arguments.samples}`, {versions('numpy')}, {os.cpu_count()} cores.",
        "",
        "Regrets below 1e-6 count as 1e-6. Evaluations: to the regret that both runs have reached.",
        "",
        "| problem | workers | time / ideal time | median regret | sequential | median ratio "
        "| median evaluations | sequential | median ratio |",
        "| --- |" + " --- |" * 8,
    ]
    for name in arguments.problems:
        mine = [row for row in rows if row["problem"] == name]
        floored = np.array([[max(row[key], TIE) for key in REGRETS] for row in mine])
        ratio, regret, sequential, higher, took, alone, longer = (
            float(np.median(each))
            for each in (
                [row["ratio"] for row in mine],
                *floored.T,
                floored[:, 0] / floored[:, 1],
                *([row[key] for row in mine] for key in EVALUATIONS),
                [row["evaluations"] / row["sequential_evaluations"] for row in mine],
            )
        )
        lines.append(
            f"| {name} | {arguments.workers} | {ratio:.2f} | {regret:.3g} | {sequential:.3g} "
            f"| {higher:.2f} | {took:.0f} | {alone:.0f} | {longer:.2f} |"
        )
    return lines


if __name__ == "__main__":
    main()
