"""Conditional spaces: fitbo and ``FitboSampler`` beside Optuna's TPE and random search, mean ranks.

    python -m pip install -e ".[test]"
    python benchmarks/conditional.py                     # writes results/conditional/
    python benchmarks/conditional.py --seeds 2 --only tpe fitbo

Two problems of scikit-learn, the cross-validated log-loss of a classifier whose first choice
decides which of its parameters exist:

    svm   digits (every third image): the kernel is linear, poly, rbf or sigmoid; gamma exists for
          three of them, degree for poly, coef0 for poly and sigmoid
    mlp   wine: the solver is lbfgs, sgd or adam; momentum and the schedule exist for sgd, a rate
          for sgd and adam, the decay's power for the schedule invscaling, two betas for adam

Optuna's samplers see the objective as it is usually written, ``suggest_*`` in ``if``s; fitbo has
the same space with ``when``. All have ten evaluations of their own choosing first, Optuna's
default. Ranks are of the best value in the end, on each problem and seed; ties share a rank. Runs
that ``runs.csv`` has, of the same budget, are not made again.
"""

from __future__ import annotations

from common import ROOT, one_thread, read, versions, write

one_thread()

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

import fitbo
from fitbo import Categorical, Integer, Real

RESULTS = ROOT / "results" / "conditional"
N_START, FOLDS = 10, 3
SMOOTH = "kernel in ['poly', 'rbf', 'sigmoid']"
STOCHASTIC = "solver in ['sgd', 'adam']"

SPACES = {
    "svm": {
        "kernel": Categorical(["linear", "poly", "rbf", "sigmoid"]),
        "C": Real(1e-3, 1e3, log=True),
        "gamma": Real(1e-5, 10.0, log=True, when=SMOOTH),
        "degree": Integer(2, 5, when="kernel == 'poly'"),
        "coef0": Real(-2.0, 2.0, when="kernel in ['poly', 'sigmoid']"),
    },
    "mlp": {
        "solver": Categorical(["lbfgs", "sgd", "adam"]),
        "alpha": Real(1e-6, 10.0, log=True),
        "width": Integer(2, 64, log=True),
        "learning_rate_init": Real(1e-5, 1.0, log=True, when=STOCHASTIC),
        "momentum": Real(0.0, 0.99, when="solver == 'sgd'"),
        "learning_rate": Categorical(["constant", "invscaling"], when="solver == 'sgd'"),
        "power_t": Real(0.1, 0.9, when="learning_rate == 'invscaling'"),
        "beta_1": Real(0.5, 0.99, when="solver == 'adam'"),
        "beta_2": Real(0.9, 0.9999, when="solver == 'adam'"),
    },
}


@cache
def data(problem: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, standardised, and classes."""
    from sklearn.datasets import load_digits, load_wine

    X, y = (load_digits if problem == "svm" else load_wine)(return_X_y=True)
    X, y = (X[::3], y[::3]) if problem == "svm" else (X, y)
    return (X - X.mean(0)) / np.maximum(X.std(0), 1e-9), y


def loss(problem: str, point: Mapping[str, Any]) -> float:
    """The cross-validated log-loss; of the SVM by its decision values as logits."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedKFold
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC

    given = dict(point)
    if problem == "svm":
        model: Any = SVC(**given, max_iter=20_000)
    else:
        width = given.pop("width")
        model = MLPClassifier((width,), **given, max_iter=100, random_state=0)
    X, y = data(problem)
    losses = []
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", ConvergenceWarning)  # a limited budget is the problem
            warnings.simplefilter("ignore", RuntimeWarning)
            model.fit(X[train], y[train])
            scores = model.decision_function(X[test]) if problem == "svm" else None
            p = softmax(scores) if scores is not None else model.predict_proba(X[test])
        losses.append(-np.log(np.clip(p[np.arange(len(test)), y[test]], 1e-6, 1)).mean())
    return float(np.mean(losses))


def softmax(scores: np.ndarray) -> np.ndarray:
    shifted = np.exp(scores - scores.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


def svm(trial: Any) -> dict[str, Any]:
    """The point as an objective for Optuna asks for it: only what exists."""
    kernel = trial.suggest_categorical("kernel", ["linear", "poly", "rbf", "sigmoid"])
    point = {"kernel": kernel, "C": trial.suggest_float("C", 1e-3, 1e3, log=True)}
    if kernel != "linear":
        point["gamma"] = trial.suggest_float("gamma", 1e-5, 10.0, log=True)
    if kernel == "poly":
        point["degree"] = trial.suggest_int("degree", 2, 5)
    if kernel in ("poly", "sigmoid"):
        point["coef0"] = trial.suggest_float("coef0", -2.0, 2.0)
    return point


def mlp(trial: Any) -> dict[str, Any]:
    """The same for the network."""
    solver = trial.suggest_categorical("solver", ["lbfgs", "sgd", "adam"])
    point = {"solver": solver, "alpha": trial.suggest_float("alpha", 1e-6, 10.0, log=True)}
    point["width"] = trial.suggest_int("width", 2, 64, log=True)
    if solver != "lbfgs":
        rate = trial.suggest_float("learning_rate_init", 1e-5, 1.0, log=True)
        point["learning_rate_init"] = rate
    if solver == "sgd":
        point["momentum"] = trial.suggest_float("momentum", 0.0, 0.99)
        schedule = trial.suggest_categorical("learning_rate", ["constant", "invscaling"])
        point["learning_rate"] = schedule
        if schedule == "invscaling":
            point["power_t"] = trial.suggest_float("power_t", 0.1, 0.9)
    if solver == "adam":
        point["beta_1"] = trial.suggest_float("beta_1", 0.5, 0.99)
        point["beta_2"] = trial.suggest_float("beta_2", 0.9, 0.9999)
    return point


SUGGESTED = {"svm": svm, "mlp": mlp}
Runner = Callable[[str, int, int], np.ndarray]


def direct(problem: str, seed: int, n: int) -> np.ndarray:
    result = fitbo.minimize(
        lambda point: loss(problem, point), SPACES[problem], n_calls=n, n_initial=N_START, seed=seed
    )
    return np.asarray(result.func_vals)


def optuna_study(make: Callable[[Any, int], Any]) -> Runner:
    def run(problem: str, seed: int, n: int) -> np.ndarray:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        study = optuna.create_study(sampler=make(optuna.samplers, seed))
        study.optimize(lambda trial: loss(problem, SUGGESTED[problem](trial)), n_trials=n)
        return np.array([trial.value for trial in study.trials])

    return run


def sampler(samplers: Any, seed: int) -> Any:
    from fitbo.integrations.optuna import FitboSampler

    return FitboSampler(seed=seed, n_startup_trials=N_START, warn_independent_sampling=False)


METHODS: dict[str, Runner] = {
    "fitbo": direct,
    "FitboSampler": optuna_study(sampler),
    "tpe": optuna_study(lambda samplers, seed: samplers.TPESampler(seed=seed)),
    "random": optuna_study(lambda samplers, seed: samplers.RandomSampler(seed=seed)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", type=int, default=50)
    parser.add_argument("--problems", nargs="+", choices=list(SPACES), default=list(SPACES))
    parser.add_argument("--only", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows = earlier(arguments.output, arguments.budget)
    made = {(row["problem"], row["method"], int(row["seed"])) for row in rows}
    for seed in range(arguments.seeds):
        for problem in arguments.problems:
            for name in arguments.only:
                if (problem, name, seed) in made:
                    continue
                started = time.perf_counter()
                values = METHODS[name](problem, seed, arguments.budget)
                row = {"problem": problem, "method": name, "seed": seed, "best": values.min()}
                row |= {"half": values[: arguments.budget // 2].min(), "budget": arguments.budget}
                rows.append(row | {"seconds": round(time.perf_counter() - started, 1)})
                print(*rows[-1].values(), flush=True)
            write(arguments.output, "table", table(rows, arguments.budget), rows, data="runs")


def earlier(folder: Path, budget: int) -> list[dict[str, Any]]:
    """The runs made before, if they were as long."""
    rows = read(folder, "runs") if (folder / "runs.csv").exists() else []
    if any(row["budget"] != budget for row in rows):
        raise SystemExit(f"{folder} has runs of another budget than {budget}: choose an --output")
    return [row | {"seed": int(row["seed"]), "budget": budget} for row in rows]


def ranks(rows: list[dict[str, Any]], column: str = "best") -> dict[str, np.ndarray]:
    """Each method's ranks over problems and seeds that all methods have finished."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cases: dict[tuple[str, int], dict[str, float]] = {}
    for row in rows:
        cases.setdefault((row["problem"], row["seed"]), {})[row["method"]] = row[column]
    whole = [case for case in cases.values() if len(case) == len(methods)]
    ranked = np.array([rankdata([case[m] for m in methods]) for case in whole])
    return {m: ranked[:, i] for i, m in enumerate(methods)} if len(whole) else {}


def table(rows: list[dict[str, Any]], budget: int) -> list[str]:
    """Markdown."""
    seeds, found = len({row["seed"] for row in rows}), ranks(rows)
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    lines = [
        "# Conditional spaces",
        "",
        f"Made by `python benchmarks/conditional.py --seeds {seeds} --budget {budget}`, one "
        f"thread, {versions('numpy', 'optuna', 'scikit-learn')}.",
        f"Mean rank (and its standard error) of the best log-loss after {budget} evaluations over "
        "problems and seeds, 1 is best; medians of that loss.",
        "",
        f"| method | mean rank | {' | '.join(problems)} | seconds |",
        f"| --- | --- | {' | '.join('---' for _ in problems)} | --- |",
    ]
    for name, ranked in found.items():
        mine = [row for row in rows if row["method"] == name]
        medians = [np.median([r["best"] for r in mine if r["problem"] == p]) for p in problems]
        error = ranked.std(ddof=1) / np.sqrt(len(ranked)) if len(ranked) > 1 else np.nan
        seconds = np.median([row["seconds"] for row in mine])
        cells = " | ".join(f"{m:.4g}" for m in medians)
        lines.append(f"| {name} | {ranked.mean():.2f} ± {error:.2f} | {cells} | {seconds:.0f} |")
    return lines


if __name__ == "__main__":
    main()
