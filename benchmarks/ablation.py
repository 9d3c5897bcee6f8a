"""Does a change help where it was not tuned? Variants side by side on the development suite.

    python benchmarks/ablation.py                  # the names of the questions
    python benchmarks/ablation.py kernel --seeds 5 # writes results/ablation/kernel.md and .csv
    python benchmarks/ablation.py kernel --fresh   # forgets what that table has
    python benchmarks/ablation.py --rank results/development/peers     # any journals, side by side

The suite is Branin, Eggholder, Hartmann-3, Levy-4, Ackley-5, Styblinski-Tang-5 and draws from a
Gaussian process; Hartmann-6D and Michalewicz-5D, which we report, are not in it. Every variant gets
the same designs, 2d points, and ``--extra`` evaluations more. Variants are compared by their mean
rank over problems and seeds in the last immediate regret, regrets below 1e-6 being ties, and by the
paired differences of its logarithm from the first variant's. The journals are kept below
``build/ablation``: a run that was stopped goes on where it was. Studies that the table has are not
made again, so that one of many seeds grows over several runs; it is written after each study.
"""

from __future__ import annotations

from common import ROOT, one_thread, read, write

one_thread()

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
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

Row = dict[str, Any]
COLUMNS = ("problem", "variant", "seed", "immediate regret", "simple regret", "seconds")

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

# Without noise, and without a trust region: the acquisition function chooses every evaluation.
ALONE = {"deterministic": True, "local": 0}
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
            "logei": {"acquisition": "logei"} | ALONE,
            **{
                f"remaining-{n}": {"acquisition": "remaining", "moments": n} | ALONE
                for n in (2, 4, 10)
            },
            "mes": {"acquisition": "mes"} | ALONE,
            "jes": {"acquisition": "jes"} | ALONE,
            "fitbo": {"acquisition": "fitbo"} | ALONE,
            "fitbo-alone": {"acquisition": "fitbo", "exploit": 0} | ALONE,
        },
    ),
    "marginal": (
        "Does a better entropy lower the regret, where the gain is about f*, theta integrated out?",
        {
            name: {"acquisition": "mes-marginal", "entropy": name} | ALONE
            for name in ("quad", "memel", "mm")
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


def rows_of(runs: Runs) -> list[Row]:
    """What counts of each complete run."""
    return [
        {
            "problem": label,
            "variant": variant,
            "seed": run.seed,
            "immediate regret": float(f"{run.immediate[-1]:.6g}"),
            "simple regret": float(f"{run.simple[-1]:.6g}"),
            "seconds": float(f"{np.nanmean(run.seconds):.3g}"),
        }
        for label, methods in runs.items()
        for variant, each in methods.items()
        for run in each
        if run.complete
    ]


def earlier(question: str, extra: int) -> list[Row]:
    """The rows of the table as it is, if its runs were as long."""
    if not (RESULTS / f"{question}.csv").exists():
        return []
    length = f"2d + {extra} evaluations"
    if length not in (RESULTS / f"{question}.md").read_text():
        sys.exit(f"results/ablation/{question}.md is not of {length}: give --fresh to begin anew")
    columns = {"seconds": np.nan}  # which older tables do not have
    rows = [columns | row | {"seed": int(row["seed"])} for row in read(RESULTS, question)]
    return [{name: row[name] for name in COLUMNS} for row in rows]


def table(rows: Sequence[Row], variants: Sequence[str]) -> list[str]:
    """Medians of log10 immediate regret, mean ranks, and differences from the first variant.

    Of the problems and seeds that every variant has.
    """
    cases: dict[str, dict[int, dict[str, Row]]] = {}
    for row in rows:
        cases.setdefault(row["problem"], {}).setdefault(row["seed"], {})[row["variant"]] = row
    lines = [
        "| problem | " + " | ".join(variants) + " |",
        "| --- |" + " --- |" * len(variants),
    ]
    regrets, seconds = [], []
    for label, seeds in sorted(cases.items()):
        whole = [[case[v] for v in variants] for case in seeds.values() if {*variants} <= {*case}]
        if not whole:
            continue
        regrets.append(np.array([[row["immediate regret"] for row in case] for case in whole]))
        seconds.append(np.mean([[row["seconds"] for row in case] for case in whole], axis=0))
        medians = np.median(np.log10(np.maximum(regrets[-1], TIE)), axis=0)
        cells = " | ".join(f"{m:.2f}" for m in medians)
        lines.append(f"| {label} ({len(whole)} seeds) | {cells} |")
    if not regrets:
        return lines
    every = np.maximum(np.concatenate(regrets), TIE)
    lines.append(f"| **mean rank** | {' | '.join(with_errors(rankdata(every, axis=1)))} |")
    # Every variant has the same designs, noise and seeds of its chains: compared pair by pair.
    logs = np.log10(every)
    paired = ["0", *with_errors(logs[:, 1:] - logs[:, :1])]
    lines.append(f"| mean log10 regret less {variants[0]}'s | {' | '.join(paired)} |")
    cells = " | ".join(f"{s:.2f}" for s in np.mean(seconds, axis=0))
    lines.append(f"| seconds per suggestion | {cells} |")
    return lines


def with_errors(rows: Any) -> list[str]:
    """Mean and standard error of each column."""
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
    return [f"{m:.2f} ± {e:.2f}" for m, e in zip(mean, error, strict=True)]


def variants_in(rows: Sequence[Row], order: Sequence[str]) -> list[str]:
    """Those variants, in this order, that there are rows of."""
    return [name for name in order if any(row["variant"] == name for row in rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("question", nargs="?", choices=QUESTIONS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--extra", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], help="run these variants")
    parser.add_argument("--fresh", action="store_true", help="forget what the table has")
    parser.add_argument("--rank", type=Path, help="only rank the methods of these journals")
    arguments = parser.parse_args()
    if arguments.rank is not None:
        rows = rows_of(group(load([arguments.rank])))
        print("\n".join(table(rows, sorted({row["variant"] for row in rows}))))
        return
    if arguments.question is None:
        for name, (question, variants) in QUESTIONS.items():
            print(f"{name:14}{question} {', '.join(variants)}")
        return
    question = arguments.question
    rows = [] if arguments.fresh else earlier(question, arguments.extra)
    made = {(row["problem"], row["variant"], row["seed"]) for row in rows}
    grid = campaigns(question, arguments.seeds, arguments.extra, arguments.only)
    every = [study for campaign in grid for study in campaign.studies()]
    every = [s for s in every if (s.problem.label, s.method.label, s.seed) not in made]
    every.sort(key=lambda study: study.seed)
    about, order = QUESTIONS[question]
    executor = Executor(kind="processes", workers=arguments.workers)
    for study, error in run_all(every, executor):
        if error is not None:
            raise error
        print(study.title, flush=True)
        own = [run for run in load([study.directory]) if run.seed == study.seed]
        rows += rows_of(group(own))
        seeds = 1 + max(row["seed"] for row in rows)
        lines = [
            f"# {about}",
            "",
            f"Median log10 immediate regret after 2d + {arguments.extra} evaluations. Made by",
            f"`python benchmarks/ablation.py {question} --seeds {seeds}`; every regret is in",
            f"`{question}.csv`.",
            "",
            *table(rows, variants_in(rows, list(order))),
        ]
        with redirect_stdout(None):
            write(RESULTS, question, lines, rows)
    print("\n".join(table(rows, variants_in(rows, list(order)))))


if __name__ == "__main__":
    main()
