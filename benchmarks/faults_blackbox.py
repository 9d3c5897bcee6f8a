"""A black box of which three evaluations in ten fail, and a study of it that is killed half-way.

    python benchmarks/faults_blackbox.py                       # five seeds; writes results/faults/
    python benchmarks/faults_blackbox.py --seeds 2 --budget 20

The program is this file itself, ``--evaluate``: Hartmann's function of three variables and a
choice, which by its seed raises, hangs, prints garbage, prints nan or is killed. Each study is a
real ``python -m fitbo run``, two evaluations at a time, ended by SIGKILL when half of its outcomes
are there, and then run again to its end. Random search (``acquisition: random``) has the same
budget, faults and kill. Since the seed of an evaluation decides its fate, every line of a
journal can be checked against what must have happened:

unaccounted   points asked for without an outcome, or with more than one
wrong         outcomes that are not what the seed decides, or values that are not the function's

The exit code is 1 unless both are zero and fitbo's median regret is below random search's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "results" / "faults"
SHARE = 0.3  # of evaluations that fail
FAULTS = ("raise", "hang", "garbage", "nan", "killed")
REASONS = {  # how the reason of each begins
    "raise": "exit code 1: RuntimeError: out of memory",
    "hang": "timeout after",
    "garbage": "stdout is not JSON",
    "nan": "the value is nan",
    "killed": "killed by SIGKILL",
}
MINIMUM = -3.862779787332660
METHODS = {"fitbo": "{{samples: {samples}}}", "random": "{{acquisition: random, samples: 10}}"}
STUDY = """\
name: {name}
objective:
  command: ["{{python}}", {program}, --evaluate, "{{x}}", "{{y}}", "{{z}}", "{{kind}}", "{{seed}}"]
  value: {{stdout: json, key: loss}}
  timeout: {timeout}
space:
  x: {{type: real, low: 0, high: 1}}
  y: {{type: real, low: 0, high: 1}}
  z: {{type: real, low: 0, high: 1}}
  kind: {{type: categorical, choices: [plain, worse, worst]}}
budget: {budget}
seed: {seed}
method: {method}
executor: {{kind: threads, workers: {workers}}}
output: {output}
"""
ALPHA = (1.0, 1.2, 3.0, 3.2)
A = ((3, 10, 30), (0.1, 10, 35), (3, 10, 30), (0.1, 10, 35))
P = (
    (0.3689, 0.1170, 0.2673),
    (0.4699, 0.4387, 0.7470),
    (0.1091, 0.8732, 0.5547),
    (0.0381, 0.5743, 0.8828),
)
PENALTY = {"plain": 0.0, "worse": 0.3, "worst": 0.8}


def function(x: float, y: float, z: float, kind: str) -> float:
    """Hartmann's function in three dimensions, and a penalty for the choice."""
    total = 0.0
    for alpha, a, p in zip(ALPHA, A, P, strict=True):
        distance = sum(w * (v - c) ** 2 for w, v, c in zip(a, (x, y, z), p, strict=True))
        total += alpha * math.exp(-distance)
    return PENALTY[kind] - total


def fate(seed: int) -> str | None:
    """What goes wrong with the evaluation of this seed, if anything does."""
    rng = random.Random(seed)  # noqa: S311
    return rng.choice(FAULTS) if rng.random() < SHARE else None


def evaluate(texts: Sequence[str]) -> None:
    """The program."""
    x, y, z = map(float, texts[:3])
    fault = fate(int(texts[4]))
    if fault == "raise":
        raise RuntimeError("out of memory")
    if fault == "hang":
        time.sleep(3600)
    if fault == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "garbage":
        print("%$ loss={{{ 1.0")
        return
    loss = math.nan if fault == "nan" else function(x, y, z, texts[3])
    print(json.dumps({"loss": loss}))


@dataclass(frozen=True)
class Result:
    """What one study came to."""

    method: str
    seed: int
    faults: Counter[str]
    told: int
    again: int
    unaccounted: int
    wrong: int
    regret: float  # of the best value
    recommended: float  # of the point that the study recommends at its end


def run_study(method: str, seed: int, options: argparse.Namespace, folder: Path) -> Result:
    name = f"{method}-{seed}"
    path = folder / f"{name}.yaml"
    path.write_text(
        STUDY.format(
            name=name,
            program=json.dumps(str(Path(__file__).resolve())),
            method=METHODS[method].format(samples=options.samples),
            output=json.dumps(str(folder)),
            seed=seed,
            budget=options.budget,
            timeout=options.timeout,
            workers=options.workers,
        )
    )
    journal = folder / name / "study.jsonl"
    run(path, journal, kill_at=options.budget // 2)
    run(path, journal)
    return checked(method, seed, journal, options.budget)


def run(path: Path, journal: Path, kill_at: int | None = None) -> None:
    """``fitbo run``; with ``kill_at``, until so many outcomes are there."""
    from common import fitbo_run  # not above: the tests load this file from elsewhere

    with subprocess.Popen(**fitbo_run(path, "--quiet")) as process:
        while kill_at is not None and process.poll() is None:
            if outcomes(journal) >= kill_at:
                process.kill()
            time.sleep(0.05)
    if kill_at is None and process.returncode != 0:
        raise RuntimeError(f"fitbo run {path} ended with {process.returncode}")


def outcomes(journal: Path) -> int:
    text = journal.read_text() if journal.exists() else ""
    return text.count('{"event": "told"') + text.count('{"event": "failed"')


def checked(method: str, seed: int, journal: Path, budget: int) -> Result:
    """Every line of the journal against what must have happened."""
    from fitbo.runs.study import seed_of

    rows = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    asked = {row["id"]: row["point"] for row in rows if row["event"] == "asked"}
    ends = [row for row in rows if row["event"] in ("told", "failed")]
    counts = Counter(row["id"] for row in ends)
    unaccounted = sum(counts[number] != 1 for number in asked) + abs(budget - len(ends))
    wrong, faults, best = 0, Counter[str](), math.inf
    for row in ends:
        fault = fate(seed_of(seed, row["id"]))
        if row["event"] == "failed":
            wrong += fault is None or not row["reason"].startswith(REASONS[fault])
            faults[fault or "none"] += 1
        else:
            value = function(**row["point"])
            wrong += fault is not None or abs(row["value"] - value) > 1e-12
            best = min(best, value)
    again = sum(row["event"] == "again" for row in rows)
    told = len(ends) - sum(faults.values())
    advice = next((row["recommended"]["point"] for row in rows[::-1] if "recommended" in row), None)
    advised = function(**advice) if advice is not None else math.nan
    return Result(
        method,
        seed,
        faults,
        told,
        again,
        unaccounted,
        wrong,
        best - MINIMUM,
        advised - MINIMUM,
    )


def written(results: Sequence[Result], options: argparse.Namespace, command: str) -> str:
    lines = [
        "# A black box that fails three times in ten",
        "",
        f"`{command}`: Hartmann-3D with a choice of three, {options.budget} evaluations, "
        f"{options.workers} at a time,",
        "each study killed (SIGKILL) when half of its outcomes are there and run again. "
        "Regret is that of the best",
        "value; beside it that of the point recommended at the end, by the same model for both.",
        "",
        "| study | told | failed | of them "
        + " | ".join(FAULTS)
        + " | repeated | unaccounted | wrong | regret | recommended |",
        "| --- |" + " --- |" * (len(FAULTS) + 7),
    ]
    for r in results:
        cells = [f"{r.method} {r.seed}", r.told, sum(r.faults.values())]
        cells += [r.faults[fault] for fault in FAULTS]
        cells += [r.again, r.unaccounted, r.wrong, f"{r.regret:.2g}", f"{r.recommended:.2g}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    by = {m: [r.regret for r in results if r.method == m] for m in METHODS}
    wins = sum(a < b for a, b in zip(by["fitbo"], by["random"], strict=True))
    lines += [
        "",
        f"Median regret: fitbo {median(by['fitbo']):.2g}, "
        f"random search {median(by['random']):.2g}; "
        f"fitbo is better from {wins} of {len(by['fitbo'])} seeds.",
        "",
    ]
    return "\n".join(lines)


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["--evaluate"]:
        evaluate(arguments[1:])
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--timeout", type=float, default=5.0)
    parser.add_argument("--output", type=Path, default=RESULTS / "blackbox.md")
    options = parser.parse_args(arguments)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seeds):
            for method in METHODS:
                result = run_study(method, seed, options, Path(folder))
                results.append(result)
                print(result, flush=True)
    text = written(results, options, " ".join(["python benchmarks/faults_blackbox.py", *arguments]))
    print(text)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")
    sound = all(r.unaccounted == r.wrong == 0 for r in results)
    regret = {m: median([r.regret for r in results if r.method == m]) for m in METHODS}
    return 0 if sound and regret["fitbo"] < regret["random"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
