"""The tables and figures of ``bbob.py``: what ``report`` and ``compare`` print and write.

``report`` takes each dimension by itself, as COCO does, and the runs that every method has
completed. It writes ``report.md``, ``runs.csv`` with every run, and ``ecdf-d<d>.png``: the share of
the targets reached over evaluations per dimension, for all functions and for each group.

``compare A B`` prints the differences of log10 regret, B - A, on the runs that both have completed,
over dimensions and instances; negative is in favour of B.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import versions, write
from ecdf import (
    GROUPS,
    Key,
    Score,
    clustered,
    group_of,
    interval,
    key_of,
    marks,
    ranks,
    score_of,
    wins,
)
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from fitbo.mixture import Array
from fitbo.report import drawing
from fitbo.report.drawing import looks
from fitbo.report.history import load
from fitbo.report.palette import Style, styles

Scores = dict[str, dict[Key, Score]]  # method -> its runs
OURS_FIRST = "fitbo"


def scores_of(folder: Path, chosen: argparse.Namespace, methods: Sequence[str] = ()) -> Scores:
    """The complete runs of a folder, of the dimensions, instances and functions chosen."""
    found: Scores = {}
    for run in load([folder]):
        dim, function, instance = key = key_of(run)
        wanted = ((dim, chosen.dims), (instance, chosen.instances), (function, chosen.functions))
        inside = all(among is None or value in among for value, among in wanted)
        if inside and run.complete and (not methods or run.method in methods):
            found.setdefault(run.method, {})[key] = score_of(run)
    return dict(sorted(found.items(), key=lambda item: (OURS_FIRST not in item[0], item[0])))


def common_keys(scores: Scores, dim: int | None = None) -> list[Key]:
    """The problems on which every method has a complete run."""
    shared = set.intersection(*(set(runs) for runs in scores.values())) if scores else set()
    return sorted(key for key in shared if dim in (None, key[0]))


def final(scores: Scores, keys: Sequence[Key], at: int = -1) -> Array:
    """log10 regret of each method on each problem after so many evaluations, (N, k)."""
    return np.array([[runs[key].log_regret[at] for runs in scores.values()] for key in keys])


def command_of(chosen: argparse.Namespace) -> str:
    """What makes the same report again."""
    given = {"methods": chosen.methods, "dims": chosen.dims, "instances": chosen.instances}
    parts = ["python benchmarks/bbob.py report", f"--split {chosen.split}"]
    for name, values in given.items():
        joined = ("," if name == "instances" else " ").join(map(str, values or ()))
        parts += [f"--{name} {joined}"] if values else []
    return " ".join(parts)


def report(chosen: argparse.Namespace) -> int:
    folder = chosen.output / chosen.split
    try:
        scores = scores_of(folder, chosen, chosen.methods or ())
    except ValueError as error:
        return refused(str(error))
    absent = [name for name in chosen.methods or () if name not in scores]
    if absent or not scores:
        what = ", ".join(absent) or "any method"
        return refused(f"{folder} must hold complete runs of {what}, and has none")
    to = chosen.to or folder
    lines = [
        f"# BBOB, {chosen.split} split",
        "",
        f"Made by `{command_of(chosen)}`:",
        "noise-free, 2d Sobol points (the same for every method) and 20d evaluations. Regret is",
        "that of the best observed. A target is a regret of 10^2, 10^1.8, ..., 10^-8. Standard",
        "errors and intervals (95%) treat the functions as independent, not the instances.",
        "Seconds are of the clock: they compare only where the machine did nothing else.",
        f"{versions('ioh', 'numpy')}.",
    ]
    style = dict(zip(scores, styles(list(scores)), strict=True))
    for dim in sorted({key[0] for runs in scores.values() for key in runs}):
        here = {name: runs for name, runs in scores.items() if any(k[0] == dim for k in runs)}
        keys = common_keys(here, dim)
        lines += ["", f"## {dim} dimensions", ""]
        counts = [f"{name} {sum(k[0] == dim for k in runs)}" for name, runs in here.items()]
        lines += [f"Complete runs: {', '.join(counts)}."]
        if not keys:
            lines += ["", "No problem has been completed by all of them."]
            continue
        picture = f"ecdf-d{dim}.png"
        lines += [*dimension(here, keys, dim), "", f"![Targets reached]({picture})"]
        to.mkdir(parents=True, exist_ok=True)
        (to / picture).write_bytes(drawing.image(ecdf_figure(here, keys, dim, style)))
    write(to, "report", lines, rows_of(scores), data="runs")
    return 0


def dimension(scores: Scores, keys: Sequence[Key], dim: int) -> list[str]:
    """The tables of one dimension, in Markdown."""
    at, functions, names = marks(dim), [key[1] for key in keys], list(scores)
    last = final(scores, keys)
    rank = ranks(last)
    order = np.argsort(rank.mean(0), kind="stable")
    lines = [
        "",
        f"{len(keys)} problems that all have completed, {instances(keys)}. 'worse': runs whose "
        "recommended point is worse than the best observed (by more than 5%).",
        "",
        f"| method | mean rank of {len(names)} | targets at {' / '.join(map(str, at))} "
        "| worse | s per suggestion |",
        "| --- | --- | --- | --- | --- |",
    ]
    for i in order:
        runs = [scores[names[i]][key] for key in keys]
        shares = [np.mean([run.reached[n - 1] for run in runs]) for n in at]
        worse = [np.mean([run.worse(by) for run in runs]) for by in (1e-9, 0.05)]
        lines.append(
            f"| {names[i]} | {shown(*clustered(rank[:, i], functions))} "
            f"| {' / '.join(f'{s:.3f}' for s in shares)} | {worse[0]:.1%} ({worse[1]:.1%}) "
            f"| {np.mean([run.seconds for run in runs]):.3g} |"
        )
    header = " | ".join(names[j] for j in order)
    lines += ["", "Win rate of the row against the column, ties counted half, and its interval:"]
    lines += ["", f"| | {header} |", f"| --- |{' --- |' * len(names)}"]
    for i in order:
        cells = []
        for j in order:
            won = wins(last[:, i], last[:, j])
            low, high = interval(won, functions)
            cells.append("" if i == j else f"{won.mean():.2f} ({low:.2f}-{high:.2f})")
        lines.append(f"| {names[i]} | {' | '.join(cells)} |")
    lines += ["", f"Mean rank, and targets reached at {at[-1]}, by group of functions:", ""]
    groups = [g for g, members in GROUPS.items() if any(f in members for f in functions)]
    lines += [f"| method | {' | '.join(groups)} |", f"| --- |{' --- |' * len(groups)}"]
    for i in order:
        cells = []
        for group in groups:
            mine = [n for n, f in enumerate(functions) if f in GROUPS[group]]
            reached = np.mean([scores[names[i]][keys[n]].reached[-1] for n in mine])
            cells.append(f"{rank[mine, i].mean():.2f}, {reached:.3f}")
        lines.append(f"| {names[i]} | {' | '.join(cells)} |")
    return lines


def instances(keys: Sequence[Key]) -> str:
    count = len({key[2] for key in keys})
    return f"{count} instance{'s' * (count > 1)}"


def shown(mean: float, error: float) -> str:
    return f"{mean:.2f} +- {error:.2f}"


def rows_of(scores: Scores) -> list[dict[str, Any]]:
    """Every run, for the CSV."""
    return [
        {
            "method": method,
            "dim": dim,
            "function": function,
            "instance": instance,
            "group": group_of(function),
            **{f"regret_{n // dim}d": f"{run.regret[n - 1]:.6g}" for n in marks(dim)},
            **{f"targets_{n // dim}d": round(run.reached[n - 1], 4) for n in marks(dim)},
            "recommended": f"{run.recommended:.6g}",
            "seconds": f"{run.seconds:.4g}",
        }
        for method, runs in scores.items()
        for (dim, function, instance), run in sorted(runs.items())
    ]


@looks
def ecdf_figure(
    scores: Scores, keys: Sequence[Key], dim: int, style: Mapping[str, Style]
) -> Figure:
    """The share of targets reached over evaluations per dimension: all functions, each group."""
    panels = {"all functions": range(1, 25), **GROUPS}
    figure, axes = drawing.grid(len(panels), 0.6, 2.6, sharex=True)
    n = np.arange(1, 22 * dim + 1) / dim
    for panel, (title, members) in zip(axes.flat, panels.items(), strict=True):
        mine = [key for key in keys if key[1] in members]
        for method, runs in scores.items() if mine else ():
            share = np.mean([runs[key].reached for key in mine], axis=0)
            panel.step(n, share, where="post", lw=1.7, label=method, **style[method])
        panel.set_title(title)
        panel.set_xscale("log")
        panel.set_xlim(1, 22)
        panel.xaxis.set_major_locator(FixedLocator([1, 2, 5, 10, 20]))
        panel.xaxis.set_minor_locator(NullLocator())
        panel.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        panel.axvspan(1, 2, color=drawing.MUTED, alpha=0.09, lw=0, zorder=0)
    lines = axes.flat[0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside lower center", ncols=min(5, len(scores)))
    for panel in axes[-1]:
        panel.set_xlabel("evaluations / dimension")
    for panel in axes[:, 0]:
        panel.set_ylabel("share of targets")
    rest = f"targets 10^2 to 10^-8, {instances(keys)}; grey: the initial design"
    drawing.title_line(figure, f"BBOB in {dim} dimensions", rest)
    return figure


def compare(chosen: argparse.Namespace) -> int:
    """Print paired differences of log10 regret between two methods."""
    pair: Scores = {}
    for name in chosen.methods:
        where, _, label = name.rpartition(":")
        folder = Path(where) if where else chosen.output / chosen.split
        try:
            pair[name] = scores_of(folder, chosen, [label])[label]
        except ValueError as error:
            return refused(str(error))
        except KeyError:
            return refused(f"{folder} must hold complete runs of {label}, and has none")
    keys = common_keys(pair)
    if not keys:
        return refused(f"{' and '.join(pair)} have completed no problem in common")
    a, b = pair
    functions = [key[1] for key in keys]
    curves = [(key[0], *(pair[name][key].log_regret for name in (a, b))) for key in keys]
    by_mark = [
        [y[marks(dim)[i] - 1] - x[marks(dim)[i] - 1] for dim, x, y in curves] for i in range(3)
    ]
    last = np.array(by_mark[-1])
    print(f"log10 regret, {b} - {a}, on {len(keys)} problems that both have completed.\n")
    print("| function | 6d | 12d | 22d | better - same - worse |")
    print("| --- | --- | --- | --- | --- |")
    sets = {f"f{f:02d}": [f] for f in sorted(set(functions))}
    sets |= {g: list(m) for g, m in GROUPS.items() if set(m) & set(functions)}
    sets |= {f"{d} dimensions": [] for d in sorted({key[0] for key in keys})}
    for name, members in {**sets, "all": list(range(1, 25))}.items():
        rows = [i for i, (d, f, _) in enumerate(keys) if f in members or name == f"{d} dimensions"]
        cells = []
        for change in by_mark:
            mine = np.array(change)[rows]
            # Within one function the instances and dimensions are what varies.
            cluster = rows if len(members) == 1 else [functions[i] for i in rows]
            mean, error = clustered(mine, cluster)
            cells.append(f"{mean:+.2f} +- {error:.2f}")
        same = np.abs(last[rows]) < 1e-9
        better = (last[rows] < 0) & ~same
        tally = f"{better.sum()} - {same.sum()} - {(~better & ~same).sum()}"
        print(f"| {name} | {' | '.join(cells)} | {tally} |")
    for name, runs in pair.items():
        worse = np.mean([runs[key].worse(1e-9) for key in keys])
        reached = [
            np.mean([runs[key].reached[marks(key[0])[i] - 1] for key in keys]) for i in range(3)
        ]
        seconds = np.mean([runs[key].seconds for key in keys])
        print(
            f"\n{name}: targets {' / '.join(f'{r:.3f}' for r in reached)}, recommended worse than "
            f"observed in {worse:.1%}, {seconds:.2g} s per suggestion"
        )
    return 0


def refused(why: str) -> int:
    print(why, file=sys.stderr)
    return 2
