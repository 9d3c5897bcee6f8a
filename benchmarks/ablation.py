"""Does a change help where it was not tuned? Variants side by side on the development suite.

    python benchmarks/ablation.py                  # the names of the questions
    python benchmarks/ablation.py kernel --seeds 5 # writes results/ablation/kernel.md and .csv
    python benchmarks/ablation.py --rank results/development/peers     # any journals, side by side

The suite is Branin, Eggholder, Hartmann-3, Levy-4, Ackley-5, Styblinski-Tang-5 and draws from a
Gaussian process; Hartmann-6D and Michalewicz-5D, which we report, are not in it. Every variant gets
the same designs, 2d points, and ``--extra`` evaluations more. Variants are compared by their mean
rank over problems and seeds in the last immediate regret, regrets below 1e-6 being ties, and by the
paired differences of its logarithm from the first variant's. The journals
are kept below ``build/ablation``: a run that was stopped goes on where it was.
"""

from __future__ import annotations

from common import ROOT, one_thread, write

one_thread()

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from fitbo.config.campaign import Campaign, from_dict
from fitbo.config.executor import Executor
from fitbo.problems import problem
from fitbo.report.history import Runs, group, load
from fitbo.runs.executors import run_all

RESULTS = ROOT / "results" / "ablation"
JOURNALS = ROOT / "build" / "ablation"
TIE = 1e-6

SUITE: dict[str, dict[str, Any]] = {
    "branin": {"name": "branin"},
    "eggholder": {"name": "eggholder"},
    "hartmann3": {"name": "hartmann3"},
    "levy4": {"name": "levy", "dim": 4},
    "ackley5": {"name": "ackley", "dim": 5},
    "styblinski-tang5": {"name": "styblinski_tang", "dim": 5},
    "draw3": {"name": "gp_draw", "dim": 3, "seed": 1},
    "draw5": {"name": "gp_draw", "dim": 5, "seed": 2, "lengthscale": 0.5},
}

EXACT = {"deterministic": True}
# The question, and the variants that answer it; the first is what it is compared with.
QUESTIONS: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "kernel": (
        "Does an additive part of the kernel, its share sampled, help?",
        {
            "fitbo": {"acquisition": "fitbo", "surrogate": "matern52"},
            "fitbo-additive": {"acquisition": "fitbo", "surrogate": "additive"},
            "logei": {"acquisition": "logei", "surrogate": "matern52"},
            "logei-additive": {"acquisition": "logei", "surrogate": "additive"},
        },
    ),
    "acquisition": (
        "Does information about the minimum choose as well as expected improvement, without noise?",
        {
            "logei": {"acquisition": "logei"} | EXACT,
            **{
                f"remaining-{n}": {"acquisition": "remaining", "moments": n} | EXACT
                for n in (2, 4, 10)
            },
            "mes": {"acquisition": "mes"} | EXACT,
            "jes": {"acquisition": "jes"} | EXACT,
            "fitbo": {"acquisition": "fitbo"} | EXACT,
            "fitbo-alone": {"acquisition": "fitbo", "exploit": 0} | EXACT,
        },
    ),
    "turns": (
        "After each evaluation for the gain, how many for the largest expected improvement?",
        {
            **{f"exploit-{n}": {"acquisition": "fitbo", "exploit": n} for n in (3, 0, 1, 7)},
            "logei": {"acquisition": "logei"},
        },
    ),
    "entropy": (
        "Does a better mixture entropy lower the regret, where the gain alone chooses?",
        {
            label: {"entropy": label.lower(), "etas": 1, "exploit": 0}
            for label in ("Quad", "MEMeL", "MEMe", "Huber", "MC", "MM", "VUB")
        },
    ),
}


def campaigns(question: str, seeds: int, extra: int, only: list[str]) -> list[Campaign]:
    """One for each problem, as their budgets differ."""
    variants = QUESTIONS[question][1]
    return [
        from_dict(
            {
                "name": question,
                "problems": [{"label": label, **options}],
                "methods": [
                    {"label": name, **method}
                    for name, method in variants.items()
                    if not only or name in only
                ],
                "seeds": seeds,
                "budget": 2 * problem(**options).dim + extra,
                "output": str(JOURNALS),
            }
        )
        for label, options in SUITE.items()
    ]


def table(runs: Runs, variants: list[str]) -> list[str]:
    """Medians of log10 immediate regret, mean ranks, and differences from the first variant."""
    lines = [
        "| problem | " + " | ".join(variants) + " |",
        "| --- |" + " --- |" * len(variants),
    ]
    ranks, logs, seconds = [], [], []
    for label, methods in runs.items():
        common = set.intersection(*({r.seed for r in methods[v] if r.complete} for v in variants))
        last = np.array(
            [[r.immediate[-1] for r in methods[v] if r.seed in common] for v in variants]
        )
        logs.append(np.log10(np.maximum(last, TIE)))
        medians = np.median(logs[-1], axis=1)
        lines.append(
            f"| {label} ({len(common)} seeds) | " + " | ".join(f"{m:.2f}" for m in medians) + " |"
        )
        ranks += [rankdata(np.maximum(column, TIE)) for column in last.T]
        times = [np.concatenate([r.seconds for r in methods[v]]) for v in variants]
        seconds.append([np.nanmean(each) for each in times])
    lines.append(f"| **mean rank** | {' | '.join(with_errors(ranks))} |")
    # Every variant has the same designs, noise and seeds of its chains: compared pair by pair.
    every = np.concatenate(logs, axis=1).T
    paired = ["0", *with_errors(every[:, 1:] - every[:, :1])]
    lines.append(f"| mean log10 regret less {variants[0]}'s | {' | '.join(paired)} |")
    cells = [f"{s:.2f}" for s in np.mean(seconds, axis=0)]
    lines.append(f"| seconds per suggestion | {' | '.join(cells)} |")
    return lines


def with_errors(rows: Any) -> list[str]:
    """Mean and standard error of each column."""
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
    return [f"{m:.2f} ± {e:.2f}" for m, e in zip(mean, error, strict=True)]


def shared(runs: Runs, order: Sequence[str]) -> list[str]:
    """Those methods, in this order, that every problem has."""
    return [name for name in order if all(name in methods for methods in runs.values())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("question", nargs="?", choices=QUESTIONS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--extra", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], help="run these variants")
    parser.add_argument("--rank", type=Path, help="only rank the methods of these journals")
    arguments = parser.parse_args()
    if arguments.rank is not None:
        runs = group(load([arguments.rank]))
        print("\n".join(table(runs, shared(runs, sorted({m for ms in runs.values() for m in ms})))))
        return
    if arguments.question is None:
        for name, (question, variants) in QUESTIONS.items():
            print(f"{name:14}{question} {', '.join(variants)}")
        return
    question = arguments.question
    grid = campaigns(question, arguments.seeds, arguments.extra, arguments.only)
    every = [study for campaign in grid for study in campaign.studies()]
    every.sort(key=lambda study: study.seed)
    executor = Executor(kind="processes", workers=arguments.workers)
    for study, error in run_all(every, executor):
        if error is not None:
            raise error
        print(study.title, flush=True)
    grouped = group(load([JOURNALS / question]))
    about, variants = QUESTIONS[question]
    asked = f"{question} --seeds {arguments.seeds}"
    asked += f" --only {' '.join(arguments.only)}" if arguments.only else ""
    lines = [
        f"# {about}",
        "",
        f"Median log10 immediate regret after 2d + {arguments.extra} evaluations. Made by",
        f"`python benchmarks/ablation.py {asked}`; every regret is in `{question}.csv`.",
        "",
        *table(grouped, shared(grouped, list(variants))),
    ]
    rows = [
        {"problem": label, "variant": variant, "seed": run.seed}
        | {f"{name} regret": f"{getattr(run, name)[-1]:.6g}" for name in ("immediate", "simple")}
        for label, methods in grouped.items()
        for variant, runs in methods.items()
        for run in runs
    ]
    write(RESULTS, question, lines, rows)


if __name__ == "__main__":
    main()
