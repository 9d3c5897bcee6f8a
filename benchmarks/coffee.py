"""The coffee example over seeds: how many evaluations fail, and how often the target is reached.

    python benchmarks/coffee.py                    # writes results/coffee/
    python benchmarks/coffee.py --seeds 4
    python benchmarks/coffee.py --set method.acquisition=logei --output build/coffee

``configs/blackbox_command.yaml`` as it is shipped, its program run for every evaluation. Its best
cups lie next to the temperature from which fine grounds clog the filter, so an optimiser that does
not learn where evaluations fail spends its budget there. What counts are the evaluations after the
twentieth: by then there is something to have learnt from.
"""

from __future__ import annotations

from common import ROOT, one_thread, versions, write

one_thread()

import argparse
import tempfile
from pathlib import Path
from typing import Any

from fitbo.config.campaign import load
from fitbo.records.notebook import Notebook
from fitbo.runs.study import run

CONFIG = ROOT / "configs" / "blackbox_command.yaml"
RESULTS = ROOT / "results" / "coffee"
LEARNT = 20  # evaluations after which failures count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="as fitbo run")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in range(arguments.seeds):
        with tempfile.TemporaryDirectory() as folder:
            settings = [f"seed={seed}", f"output={folder}", "max_failures=40", *arguments.set]
            (study,) = load(CONFIG, settings).studies()
            notebook = run(study)
            assert notebook is not None  # it was given no stop
            rows.append(counted(notebook, seed, study.campaign.target))
        print(*rows[-1].values(), flush=True)
    write(arguments.output, "table", table(rows), rows, data="runs")


def counted(notebook: Notebook, seed: int, target: float | None) -> dict[str, Any]:
    """What one study came to."""
    outcomes = notebook.outcomes
    best = min(entry.value for entry in outcomes if entry.value is not None)
    late = outcomes[LEARNT:]
    return {
        "seed": seed,
        "evaluations": len(outcomes),
        "failed": sum(entry.state == "failed" for entry in outcomes),
        "late": len(late),
        "late_failed": sum(entry.state == "failed" for entry in late),
        "best": best,
        "reached": target is not None and best <= target,
    }


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Markdown."""
    total = {name: sum(row[name] for row in rows) for name in rows[0]}
    share = total["late_failed"] / max(1, total["late"])
    return [
        "# Coffee: failures and the target",
        "",
        f"Made by `python benchmarks/coffee.py --seeds {len(rows)}`, one thread, "
        f"{versions('numpy', 'scipy', 'emcee')}.",
        "",
        f"- reached the target: {total['reached']} of {len(rows)} seeds",
        f"- failed after evaluation {LEARNT}: {total['late_failed']} of {total['late']} "
        f"evaluations, {share:.1%}",
        f"- failed in all: {total['failed']} of {total['evaluations']}",
    ]


if __name__ == "__main__":
    main()
