"""Outcome constraints: fitbo beside Optuna's GPSampler with ``constraints_func``.

    python -m pip install -e ".[test]"
    python benchmarks/constrained.py                     # writes results/constrained/
    python benchmarks/constrained.py --first 100 --seeds 3 --only fitbo --output /tmp/try

Two design problems whose constraints are known by evaluation only:

    beam     the welded beam of [1]: cost of a weld h, l and a bar t, b under limits on the shear
             stress, the bending stress, the deflection and the buckling load, and h <= b. The least
             cost known is 1.72485 (0.20573, 3.47049, 9.03662, 0.20573) [2, 3]
    vessel   the pressure vessel of [4], with thicknesses that may be any number: cost of a shell
             and heads under limits on both thicknesses and on the volume. The least cost known is
             5885.33 (0.77817, 0.38465, 40.31962, 200) [3]

Every method has 80 evaluations, its own defaults, and is told that there is no noise. Counted is
whether the best feasible value is within 5% of the least known. Runs that ``runs.csv`` has are not
made again. fitbo was developed on seeds from 100 on.

[1] Ragsdell, Phillips, Optimal design of a class of welded structures using geometric programming,
    J. Engineering for Industry 98 (1976); in the form of [2], which is the one in common use.
[2] Coello Coello, Use of a self-adaptive penalty approach for engineering optimization problems,
    Computers in Industry 41 (2000).
[3] Gandomi, Yang, Alavi, Cuckoo search algorithm, Engineering with Computers 29 (2013), and the
    continuous relaxation of its vessel; both minimisers are checked by tests/benchmarks.
[4] Sandgren, Nonlinear integer and discrete programming in mechanical design optimization,
    J. Mechanical Design 112 (1990).
"""

from __future__ import annotations

from common import ROOT, one_thread, versions, write

one_thread()

import argparse
import csv
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fitbo

RESULTS = ROOT / "results" / "constrained"
WITHIN = 0.05
Evaluated = tuple[float, dict[str, float]]


@dataclass(frozen=True)
class Design:
    """A cost to be minimised where all constraints, written as fitbo's, hold."""

    fun: Callable[[Sequence[float]], Evaluated]
    bounds: tuple[tuple[float, float], ...]
    constraints: tuple[str, ...]
    minimum: float
    minimiser: tuple[float, ...]


def beam(x: Sequence[float]) -> Evaluated:
    h, l, t, b = map(float, x)  # noqa: E741 - as in the literature
    load, length, young, shear_modulus = 6000.0, 14.0, 30e6, 12e6
    moment = load * (length + l / 2)
    radius = math.sqrt(l * l / 4 + ((h + t) / 2) ** 2)
    polar = 2 * math.sqrt(2) * h * l * (l * l / 12 + ((h + t) / 2) ** 2)
    direct, torsion = load / (math.sqrt(2) * h * l), moment * radius / polar
    shear = math.sqrt(direct**2 + direct * torsion * l / radius + torsion**2)
    edge = math.sqrt(young / (4 * shear_modulus))
    buckling = 4.013 * young * t * b**3 / 6 / length**2 * (1 - t / (2 * length) * edge)
    measured = {
        "shear": shear,
        "bending": 6 * load * length / (b * t * t),
        "overhang": h - b,
        "deflection": 4 * load * length**3 / (young * t**3 * b),
        "buckling": buckling,
    }
    return 1.10471 * h * h * l + 0.04811 * t * b * (14 + l), measured


def vessel(x: Sequence[float]) -> Evaluated:
    shell, head, r, length = map(float, x)
    cost = 0.6224 * shell * r * length + 1.7781 * head * r * r
    cost += 3.1661 * shell**2 * length + 19.84 * shell**2 * r
    volume = math.pi * r * r * length + 4 / 3 * math.pi * r**3
    return cost, {"shell": shell - 0.0193 * r, "head": head - 0.00954 * r, "volume": volume}


DESIGNS = {
    "beam": Design(
        beam,
        ((0.1, 2.0), (0.1, 10.0), (0.1, 10.0), (0.1, 2.0)),
        (
            *("shear <= 13600", "bending <= 30000", "overhang <= 0"),
            *("deflection <= 0.25", "buckling >= 6000"),
        ),
        1.7248523,
        (0.20572964, 3.47048867, 9.03662391, 0.20572964),
    ),
    "vessel": Design(
        vessel,
        ((0.0625, 6.1875), (0.0625, 6.1875), (10.0, 200.0), (10.0, 200.0)),
        ("shell >= 0", "head >= 0", "volume >= 1296000"),
        5885.3328,
        (0.77816864, 0.38464916, 40.3196187, 200.0),
    ),
}


def excess(design: Design, measured: dict[str, float]) -> list[float]:
    """By how much each constraint is broken, as Optuna has it: not positive where it holds."""
    from fitbo.space.outcomes import outcome_constraints

    return [c.excess(measured[c.name]) for c in outcome_constraints(design.constraints)]


def by_fitbo(design: Design, seed: int, n: int) -> np.ndarray:
    def fun(x: Any) -> dict[str, Any]:
        value, measured = design.fun(x)
        return {"value": value, "constraints": measured}

    result = fitbo.minimize(
        fun,
        design.bounds,
        n_calls=n,
        seed=seed,
        deterministic=True,
        outcome_constraints=design.constraints,
    )
    return np.where(result.study.feasible, result.func_vals, np.inf)


def by_optuna(design: Design, seed: int, n: int) -> np.ndarray:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    values: list[float] = []

    def objective(trial: Any) -> float:
        x = [trial.suggest_float(f"x{i}", *pair) for i, pair in enumerate(design.bounds)]
        value, measured = design.fun(x)
        broken = excess(design, measured)
        trial.set_user_attr("broken", broken)
        values.append(value if max(broken) <= 0 else math.inf)
        return value

    sampler = optuna.samplers.GPSampler(
        seed=seed,
        deterministic_objective=True,
        constraints_func=lambda trial: trial.user_attrs["broken"],
    )
    optuna.create_study(sampler=sampler).optimize(objective, n_trials=n)
    return np.array(values)


METHODS = {"fitbo": by_fitbo, "GPSampler": by_optuna}


def main() -> None:
    import warnings

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--budget", type=int, default=80)
    parser.add_argument("--problems", nargs="+", choices=list(DESIGNS), default=list(DESIGNS))
    parser.add_argument("--only", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*is an experimental feature")
    rows = known(arguments.output / "runs.csv")
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for problem in arguments.problems:
            for method in arguments.only:
                case = {"problem": problem, "method": method, "seed": str(seed)}
                case |= {"budget": str(arguments.budget)}
                if any(case.items() <= row.items() for row in rows):
                    continue
                started = time.perf_counter()
                values = METHODS[method](DESIGNS[problem], seed, arguments.budget)
                spent = time.perf_counter() - started
                rows.append(case | summary(DESIGNS[problem], values, spent))
                print(*rows[-1].values(), flush=True)
                write(arguments.output, "table", table(rows), rows, data="runs")
    write(arguments.output, "table", table(rows), rows, data="runs")


def known(path: Path) -> list[dict[str, str]]:
    """The runs that have been made."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def summary(design: Design, values: np.ndarray, seconds: float) -> dict[str, str]:
    """What one run came to; infeasible values are infinite."""
    near = np.flatnonzero(values <= (1 + WITHIN) * design.minimum)
    return {
        "best": f"{values.min():.8g}",
        "half": f"{values[: len(values) // 2].min():.8g}",
        "reached": str(int(near[0]) + 1) if near.size else "",
        "feasible": str(int(np.isfinite(values).sum())),
        "seconds": f"{seconds:.1f}",
    }


def table(rows: Sequence[dict[str, str]]) -> list[str]:
    """Markdown."""
    budgets = "/".join(dict.fromkeys(row["budget"] for row in rows))
    lines = [
        "# Outcome constraints",
        "",
        f"Made by `python benchmarks/constrained.py`, one thread, "
        f"{versions('numpy', 'scipy', 'optuna', 'torch')}; {budgets} evaluations.",
        "",
        "| problem | method | seeds | within 5% | evaluations to that, median | best feasible: "
        "median, worst | least known | feasible evaluations |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for problem, design in DESIGNS.items():
        for method in METHODS:
            own = [r for r in rows if (r["problem"], r["method"]) == (problem, method)]
            if not own:
                continue
            best = np.array([float(row["best"]) for row in own])
            reached = [float(row["reached"] or "inf") for row in own]
            share = np.mean([int(row["feasible"]) / int(row["budget"]) for row in own])
            lines.append(
                f"| {problem} | {method} | {len(own)} | {np.isfinite(reached).sum()} | "
                f"{np.median(reached):.3g} | {np.median(best):.5g}, {best.max():.5g} | "
                f"{design.minimum:.5g} | {share:.0%} |"
            )
    return lines


if __name__ == "__main__":
    main()
