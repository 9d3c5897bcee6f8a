"""The paper's grid Laplacian, entropy and error by number of moments. Part of ``logdet.py``."""

from __future__ import annotations

import resource
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import versions, write

from fitbo.logdet import UnseenEigenvaluesWarning, logdet
from fitbo.logdet.bounds import Bounds, resolve
from fitbo.logdet.meme import maxent_spectrum, spectral_density
from fitbo.logdet.omxnt import scale_iteratively
from fitbo.logdet.operator import as_operator
from fitbo.logdet.taylor import unit_powers
from fitbo.logdet.trace import chebyshev_moments, in_family
from fitbo.report import drawing
from fitbo.report.drawing import looks
from fitbo.report.palette import COLOURS

BLUE, ORANGE = COLOURS[0], COLOURS[4]


def grid_laplacian(side: int, seed: int | None = None) -> sp.csr_array:
    """Laplacian of a side x side grid with node 0 grounded; log-normal conductances if seeded."""
    index = np.arange(side * side).reshape(side, side)
    i = np.concatenate([index[:, :-1].ravel(), index[:-1].ravel()])
    j = np.concatenate([index[:, 1:].ravel(), index[1:].ravel()])
    weights = np.ones(len(i))
    if seed is not None:
        weights = np.exp(np.random.default_rng(seed).standard_normal(len(i)))
    half = sp.coo_array((weights, (i, j)), shape=(side * side, side * side)).tocsr()
    adjacency = half + half.T
    return (sp.diags_array(adjacency.sum(1)) - adjacency).tocsr()[1:, 1:]


def matrix_tree(side: int) -> float:
    """log det of the unit grid: by the matrix-tree theorem, prod of nonzero eigenvalues over n."""
    angle = np.pi * np.arange(side) / side
    eigenvalues = (4 - 2 * np.cos(angle)[:, None] - 2 * np.cos(angle)).ravel()[1:]
    return float(np.log(eigenvalues).sum() - np.log(side * side))


def memory() -> float:
    """Peak resident size of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def by_moments(
    moments: np.ndarray, bounds: Bounds, n: int, truth: float, counts: list[int], rival: bool
) -> list[dict[str, Any]]:
    """Entropy and relative error of MEMe, and of OMxnt, against the number of moments."""
    rows = []
    for m in counts:
        mu = in_family(moments[: m + 1], "legendre")
        start = time.perf_counter()
        density, refine = maxent_spectrum(mu, "legendre", bounds)
        seconds = time.perf_counter() - start
        value = n * spectral_density(density, bounds, refine).expect(np.log)
        half_width = 0.5 * (bounds.upper - bounds.lower)
        rows.append(
            {
                "method": "meme",
                "moments": m,
                "entropy": float(density.entropy + np.log(half_width)),
                "relative error": abs(value - truth) / abs(truth),
                "residual": float(density.residual),
                "seconds": seconds,
            }
        )
        if rival:
            start = time.perf_counter()
            x, masses, residual = scale_iteratively(moments[: m + 1] @ unit_powers(m).T)
            seconds = time.perf_counter() - start
            value = n * float(masses @ np.log(bounds.upper * x))
            used = masses > 0
            entropy = -float(masses[used] @ np.log(masses[used] * len(x) / bounds.upper))
            rows.append(
                {
                    "method": "omxnt",
                    "moments": m,
                    "entropy": entropy,
                    "relative error": abs(value - truth) / abs(truth),
                    "residual": residual,
                    "seconds": seconds,
                }
            )
    return rows


def laplacian(folder: Path, side: int) -> None:
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    flat = {"n_moments": 30, "n_probes": 50, "prior": "flat"}
    for name, seed in (("unit weights", None), ("log-normal conductances", 0)):
        L = grid_laplacian(side, seed)
        n = L.shape[0]
        found = []
        for call, options in (('prior="flat"', flat), ("no options", {})):
            start = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UnseenEigenvaluesWarning)
                value, info = logdet(L, seed=0, return_info=True, **options)
            found.append((call, value, info, time.perf_counter() - start, memory(), bool(caught)))
        exact = as_operator(L)
        bounds = resolve(exact, None, np.random.default_rng(0))
        few = chebyshev_moments(exact, bounds, 30, 50, np.random.default_rng(0)).mean(0)
        many = chebyshev_moments(exact, bounds, 200, 8, np.random.default_rng(1)).mean(0)
        if seed is None:
            truth, how = matrix_tree(side), "matrix-tree theorem"
        else:
            start = time.perf_counter()
            truth = logdet(L, "cholesky")
            how = f"sparse Cholesky, {time.perf_counter() - start:.0f} s"
        notes += [
            f"| {name} | {call} | {truth:.1f} ({how}) | {abs(value - truth) / truth:.1e}"
            f"{'*' * warned} | {info.standard_error / truth:.1e} | {info.prior} | {info.products} "
            f"| {seconds:.1f} | {100 * info.solve_seconds / seconds:.2f} | {used:.2f} "
            f"| {info.residual:.0e} |"
            for call, value, info, seconds, used, warned in found
        ]
        part = by_moments(few, bounds, n, truth, list(range(1, 31)), rival=True)
        rows += [{"matrix": name, "probes": 50, **row} for row in part]
        counts = [2, 5, 10, 20, 30, 40, 60, 80, 100, 120, 140, 160, 180, 200]
        part = by_moments(many, bounds, n, truth, counts, rival=False)
        rows += [{"matrix": name, "probes": 8, **row} for row in part]
    used = versions("numpy", "scipy")
    lines = [
        f"# Grid Laplacian, {side} x {side} nodes with one grounded",
        "",
        f"Made by `python benchmarks/logdet.py laplacian`, one thread, {used}.",
        "",
        '## `logdet(L, n_moments=30, n_probes=50, prior="flat")` and `logdet(L)`',
        "",
        "| matrix | call | log det (truth by) | relative error | standard error | prior | products"
        " | seconds | of which MaxEnt solve, % | peak memory, GB | residual |",
        "| --- " * 11 + "|",
        *notes,
        "",
        "Peak memory is of the whole process up to then, matrix and imports included. A * marks a",
        "warning that eigenvalues are unseen.",
    ]
    for name in ("unit weights", "log-normal conductances"):
        lines += [
            "",
            f"## {name}: against the number of moments",
            "",
            "| moments | MEMe entropy | MEMe error | residual | OMxnt entropy | OMxnt error"
            " | residual |",
            "| --- " * 7 + "|",
        ]
        part = [r for r in rows if r["matrix"] == name and r["probes"] == 50]
        for m in (1, 2, 3, 4, 6, 8, 10, 12, 15, 20, 25, 30):
            ours, theirs = (
                next(r for r in part if r["moments"] == m and r["method"] == method)
                for method in ("meme", "omxnt")
            )
            lines.append(
                f"| {m} | {ours['entropy']:.5f} | {ours['relative error']:.1e} "
                f"| {ours['residual']:.0e} | {theirs['entropy']:.5f} "
                f"| {theirs['relative error']:.1e} | {theirs['residual']:.0e} |"
            )
        part = [r for r in rows if r["matrix"] == name and r["probes"] == 8]
        rises = max(float(x) for x in np.diff([r["entropy"] for r in part]))
        lines += [
            "",
            f"MEMe to m = 200 (8 probes): largest residual {max(r['residual'] for r in part):.0e}, "
            f"largest change of entropy from one m to the next {rises:.1e}, error at 200 moments "
            f"{part[-1]['relative error']:.1e}.",
        ]
    write(folder, "laplacian", lines, rows)
    draw(folder, rows)


@looks
def draw(folder: Path, rows: list[dict[str, Any]]) -> None:
    figure = drawing.blank(6.2)
    axes = figure.subplots(2, 2, sharex=True)
    styles = {"unit weights": (BLUE, "o-"), "log-normal conductances": (ORANGE, "s-")}
    for line, method, title in ((0, "omxnt", "OMxnt"), (1, "meme", "MEMe")):
        for name, (colour, style) in styles.items():
            part = [
                r
                for r in rows
                if r["matrix"] == name and r["method"] == method and r["probes"] == 50
            ]
            m = [r["moments"] for r in part]
            offset = part[0]["entropy"]
            axes[line, 0].plot(
                m, [r["entropy"] - offset for r in part], style, color=colour, ms=4, label=name
            )
            axes[line, 1].semilogy(
                m, [r["relative error"] for r in part], style, color=colour, ms=4, label=name
            )
        axes[line, 0].set(title=f"{title}: entropy", ylabel="nats above that at m = 1")
        axes[line, 1].set(title=f"{title}: relative error of log det")
    for axis in axes[1]:
        axis.set(xlabel="number of moments")
    low = min(axis.get_ylim()[0] for axis in axes[:, 1])
    high = max(axis.get_ylim()[1] for axis in axes[:, 1])
    for axis in axes[:, 1]:
        axis.set_ylim(low, high)
    for axis in axes[:, 1]:
        drawing.powers_of_ten(axis.yaxis)
    axes[0, 1].legend()
    (folder / "laplacian.png").write_bytes(drawing.image(figure))
