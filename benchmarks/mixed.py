"""A mixed problem at 60 evaluations: fitbo beside Optuna's TPE and GPSampler, and random search.

    python -m pip install -e ".[peers]"
    python benchmarks/mixed.py                     # writes results/mixed/
    python benchmarks/mixed.py --seeds 2 --only fitbo tpe

The problem has two real parameters, two integers, one category of four and one parameter on a
logarithmic scale, as the training of a small network has: ``loss`` below. Its minimum is zero. Each
choice of the category has its own offset and its own best place for the rest, and the second-best
choice is easier than the best; the learning rate's best value depends on an integer. A run has
solved it when its best loss is below ``SOLVED``, which is below the offset of every wrong choice.

All optimisers start from ten evaluations of their own choosing, Optuna's default for both of its
samplers, and are otherwise as their documentation uses them.
"""

from __future__ import annotations

from common import ROOT, one_thread, versions, write

one_thread()

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fitbo
from fitbo.space import Categorical, Integer, Real, Space

RESULTS = ROOT / "results" / "mixed"
SOLVED = 0.1
N_START = 10

SPACE = Space(
    {
        "momentum": Real(0.0, 1.0),
        "dropout": Real(0.0, 0.8),
        "layers": Integer(1, 12),
        "width": Integer(4, 64, step=4),
        "activation": Categorical(["relu", "tanh", "gelu", "elu"]),
        "rate": Real(1e-5, 1.0, log=True),
    }
)
# choice: offset, and the best momentum, dropout, layers and width
CHOICES = {
    "relu": (0.2, 0.5, 0.3, 5, 32),
    "tanh": (0.5, 0.2, 0.6, 3, 16),
    "gelu": (0.0, 0.85, 0.15, 8, 48),
    "elu": (0.35, 0.6, 0.4, 9, 24),
}


def loss(point: dict[str, Any]) -> float:
    """Zero at its minimum, 0.2 to 6 at most random points."""
    offset, momentum, dropout, layers, width = CHOICES[point["activation"]]
    a, b = point["momentum"] - momentum, point["dropout"] - dropout
    n, w = (point["layers"] - layers) / 11, (point["width"] - width) / 60
    best_rate = -2.0 - 0.12 * (point["layers"] - layers)
    r = np.log10(point["rate"]) - best_rate
    curved = 3 * a * a + 2 * (b + 0.5 * a) ** 2 + 2 * n * n + (w - 0.5 * n) ** 2
    rate = 0.3 * r * r / (1 + 0.2 * abs(r))
    return float(offset + curved + rate + 0.15 * (1 - np.cos(6 * np.pi * a)))


# Values in order, and the loss where the optimiser would have one go.
Runner = Callable[[int, int], tuple[np.ndarray, float]]


def fitbo_study(**settings: Any) -> Runner:
    def run(seed: int, n: int) -> tuple[np.ndarray, float]:
        result = fitbo.minimize(loss, SPACE, n_calls=n, n_initial=N_START, seed=seed, **settings)
        return np.asarray(result.func_vals), loss(result.x_recommended)

    return run


def optuna_study(make: Callable[[Any, int], Any]) -> Runner:
    def run(seed: int, n: int) -> tuple[np.ndarray, float]:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study = optuna.create_study(sampler=make(optuna.samplers, seed))
            study.optimize(objective, n_trials=n)
        return np.array([t.value for t in study.trials]), study.best_value

    return run


def objective(trial: Any) -> float:
    point: dict[str, Any] = {}
    for name, p in zip(SPACE.names, SPACE.parameters, strict=True):
        match p:
            case Real():
                point[name] = trial.suggest_float(name, p.low, p.high, log=p.log)
            case Integer():
                point[name] = trial.suggest_int(name, p.low, p.high, step=p.step)
            case Categorical():
                point[name] = trial.suggest_categorical(name, p.choices)
    return loss(point)


METHODS: dict[str, Runner] = {
    "fitbo": fitbo_study(),
    "fitbo-logei": fitbo_study(acquisition="logei"),
    "tpe": optuna_study(lambda samplers, seed: samplers.TPESampler(seed=seed)),
    "gp": optuna_study(
        lambda samplers, seed: samplers.GPSampler(seed=seed, deterministic_objective=True)
    ),
    "random": optuna_study(lambda samplers, seed: samplers.RandomSampler(seed=seed)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--only", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in range(arguments.seeds):
        for name in arguments.only:
            started = time.perf_counter()
            try:
                values, recommended = METHODS[name](seed, arguments.budget)
            except ImportError as error:
                print(f"{name} is left out: {error}; pip install 'fitbo[peers]'")
                continue
            seconds = time.perf_counter() - started
            best = np.minimum.accumulate(values)
            row = {"method": name, "seed": seed, "seconds": round(seconds, 2)}
            row |= {"recommended": recommended}
            rows.append(row | {f"best_{k}": best[k - 1] for k in marks(arguments.budget)})
            ends = f"{best[-1]:.4f}, recommended {recommended:.4f}"
            print(f"{name:12} seed {seed}: {ends}, {seconds:.1f} s", flush=True)
    write(arguments.output, "table", table(rows, arguments.budget), rows, data="runs")


def marks(budget: int) -> list[int]:
    return [*range(10, budget, 10), budget]


def table(rows: list[dict[str, Any]], budget: int) -> list[str]:
    """Markdown."""
    seeds = len({row["seed"] for row in rows})
    run = [name for name in METHODS if any(row["method"] == name for row in rows)]
    only = "" if len(run) == len(METHODS) else f" --only {' '.join(run)}"
    lines = [
        "# A mixed problem",
        "",
        f"Made by `python benchmarks/mixed.py --seeds {seeds} --budget {budget}{only}`, one "
        f"thread, {versions('numpy', 'optuna', 'torch')}.",
        f"Best loss after so many evaluations, median of {seeds} seeds (the minimum is 0), and how",
        f"many runs came below {SOLVED:g}. 'recommended' is the loss at the point that the",
        "optimiser recommends in the end, for Optuna the best observed.",
        "",
        f"| method | {' | '.join(map(str, marks(budget)))} | recommended | solved | seconds |",
        f"| --- | {' | '.join('---' for _ in marks(budget))} | --- | --- | --- |",
    ]
    for name in METHODS:
        mine = [row for row in rows if row["method"] == name]
        if not mine:
            continue
        medians = [np.median([row[f"best_{k}"] for row in mine]) for k in marks(budget)]
        solved = sum(row[f"best_{budget}"] < SOLVED for row in mine)
        seconds = np.median([row["seconds"] for row in mine])
        medians.append(np.median([row["recommended"] for row in mine]))
        lines.append(
            f"| {name} | {' | '.join(f'{m:.3g}' for m in medians)} | {solved} of {len(mine)} "
            f"| {seconds:.1f} |"
        )
    return lines


if __name__ == "__main__":
    main()
