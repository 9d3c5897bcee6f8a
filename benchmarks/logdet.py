"""The paper's log-determinant experiments, remade, and every method side by side.

    python benchmarks/logdet.py table1        # kernel matrices, about ten minutes on two cores
    python benchmarks/logdet.py laplacian     # a million nodes, about four minutes, 3 GB
    python benchmarks/logdet.py products      # finite-element matrices; needs pyamg
    python benchmarks/logdet.py --matrix FILE.mtx     # all methods on a Matrix Market file

Each writes a table (md and csv) and a figure under results/logdet/. One thread throughout.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import csv
import platform
import resource
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import scipy
import scipy.sparse as sp
from scipy import optimize
from scipy.io import mmread

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from fitbo.logdet import logdet
from fitbo.logdet.bounds import Bounds, resolve
from fitbo.logdet.meme import maxent_spectrum, spectral_density
from fitbo.logdet.omxnt import scale_iteratively
from fitbo.logdet.operator import as_operator
from fitbo.logdet.taylor import unit_powers
from fitbo.logdet.trace import chebyshev_moments, in_family, probe_blocks

RESULTS = Path(__file__).parent.parent / "results" / "logdet"
NOISE = 1e-8
# kappa, length-scale, and the paper's relative errors of MEMe, Chebyshev and Lanczos.
PRINTED = [
    (3e1, 0.05, 0.0014, 0.0037, 0.0024),
    (1.1e3, 0.15, 0.0522, 0.0104, 0.0024),
    (1.0e5, 0.25, 0.0387, 0.0795, 0.0072),
    (2.4e6, 0.35, 0.0263, 0.2302, 0.0196),
    (8.3e7, 0.45, 0.0284, 0.3439, 0.0502),
    (4.2e8, 0.55, 0.0256, 0.4089, 0.0646),
    (4.3e9, 0.65, 0.00048, 0.5049, 0.0838),
    (1.4e10, 0.75, 0.0086, 0.5049, 0.1050),
    (4.2e10, 0.85, 0.0177, 0.5358, 0.1199),
]
PIVOTS = 100
SLOW_DRAWS = 2
BLUE, ORANGE, GREEN, RED, GREY, PURPLE = (
    "#1f5fa8",
    "#d9822b",
    "#2c8a57",
    "#b8383b",
    "#7a7a7a",
    "#7b4fa3",
)
plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})


def versions() -> str:
    return (
        f"one thread, Python {platform.python_version()}, numpy {np.__version__}, "
        f"scipy {scipy.__version__}"
    )


def write(name: str, rows: list[dict[str, Any]], lines: Iterable[str]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    text = "\n".join(lines) + "\n"
    (RESULTS / f"{name}.md").write_text(text)
    print(text)


# --- Table 1 ------------------------------------------------------------------------------------


def kernel_matrix(inputs: np.ndarray, lengthscale: float) -> np.ndarray:
    """GPy's squared-exponential kernel, plus noise."""
    import GPy

    kernel = GPy.kern.RBF(inputs.shape[1], variance=1.0, lengthscale=lengthscale)
    return np.asarray(kernel.K(inputs)) + NOISE * np.eye(len(inputs))


def condition(K: np.ndarray) -> float:
    values = np.linalg.eigvalsh(K)
    return float(values[-1] / max(values[0], NOISE))


def calibrated(unit: np.ndarray, lengthscale: float, kappa: float) -> float:
    """The standard deviation of the inputs that gives this condition number."""

    def miss(log_sd: float) -> float:
        K = kernel_matrix(np.exp(log_sd) * unit, lengthscale)
        return float(np.log(condition(K) / kappa))

    low, high = np.log(lengthscale * 0.05), np.log(lengthscale * 10)
    return float(np.exp(optimize.brentq(miss, low, high, xtol=2e-3)))


def literal(K: np.ndarray, rng: np.random.Generator, m: int = 30, d: int = 50) -> float:
    """The paper's Algorithms 1-3 as printed, with the errata that keep them from running at all.

    Power moments of K / lambda_u with lambda_u from Gershgorin, scipy's Newton-CG from a = 0 on a
    grid of 1e-4 over (0, 1], jitter 1e-8. Corrected: the probe is kept and has E[z z^T] = I, and q
    is scaled to mass one before E[log].
    """
    n = len(K)
    top = abs(K).sum(1).max()
    mu = np.zeros(m + 1)
    for z in probe_blocks(n, d, rng):
        power = z
        mu[0] += z.shape[1]
        for i in range(1, m + 1):
            power = K @ power / top
            mu[i] += np.vdot(z, power) / n
    mu /= d
    step = 1e-4
    x = step * np.arange(1, 10001)
    phi = x[:, None] ** np.arange(m + 1)

    def masses(a: np.ndarray) -> np.ndarray:
        return step * np.exp(np.minimum(-1 - phi @ a, 500.0))

    with np.errstate(all="ignore"):
        found = optimize.minimize(
            lambda a: masses(a).sum() + a @ mu,
            np.zeros(m + 1),
            jac=lambda a: mu - masses(a) @ phi,
            hess=lambda a: (phi * masses(a)[:, None]).T @ phi + 1e-8 * np.eye(m + 1),
            method="Newton-CG",
            options={"maxiter": 300, "xtol": 1e-8},
        )
    q = masses(found.x)
    return float(n * (q @ np.log(x)) / q.sum() + n * np.log(top))


def grid_floor(K: np.ndarray) -> float:
    """The least that any density on the paper's grid can answer: all mass at 1e-4 lambda_u."""
    return float(len(K) * np.log(1e-4 * abs(K).sum(1).max()))


def estimates(K: np.ndarray, truth: float, seed: int, slow: bool) -> dict[str, float]:
    """Signed relative error of everything on one matrix; nan for the slow if they are not asked.

    The slow ones err by far more than their scatter, so a few draws tell.
    """

    def error(value: float) -> float:
        return (value - truth) / abs(truth)

    def run(**options: Any) -> float:
        return error(logdet(K, seed=seed, **options))

    floor = {"bounds": (NOISE, None)}
    _, few = logdet(K, "lanczos", n_moments=30, seed=seed, return_info=True, **floor)
    _, many = logdet(K, "lanczos", n_moments=60, seed=seed, return_info=True, **floor)
    best, info = logdet(K, n_moments=60, prior="ritz", seed=seed, return_info=True, **floor)
    return {
        "literal": error(literal(K, np.random.default_rng(seed))) if slow else np.nan,
        "grid floor": max(0.0, error(grid_floor(K))),
        "flat, 30 moments": run(n_moments=30, **floor) if slow else np.nan,
        "flat, 60 moments": run(n_moments=60, **floor) if slow else np.nan,
        "log, 60 moments": run(n_moments=60, prior="log", **floor) if slow else np.nan,
        "best": error(best),
        "best, its standard error": info.standard_error / abs(truth),
        "lanczos": run(method="lanczos", n_moments=60, **floor),
        "lanczos, 5 x 300": run(method="lanczos", n_moments=600, n_probes=5, **floor),
        "chebyshev": run(method="chebyshev", n_moments=60, **floor),
        # 46 probes, so that with the pivots and tr S^2 it has no more products than Lanczos.
        "best, deflated": run(n_moments=60, n_probes=46, prior="ritz", deflation=PIVOTS, **floor),
        "lanczos, deflated": run(method="lanczos", n_moments=60, deflation=PIVOTS, **floor),
        "least from 30 moments": error(few.bracket[0]),
        "most from 30 moments": error(few.bracket[1]),
        "least from 60 moments": error(many.bracket[0]),
        "most from 60 moments": error(many.bracket[1]),
    }


def one_draw(task: tuple[str, int, int]) -> dict[str, Any]:
    """One row of the table on one draw of inputs and probes."""
    inputs, index, draw = task
    kappa, lengthscale, printed, printed_chebyshev, printed_lanczos = PRINTED[index]
    unit = np.random.default_rng([draw, 6]).standard_normal((1000, 6))
    sd = 0.3 if inputs == "sd 0.3" else calibrated(unit, lengthscale, kappa)
    K = kernel_matrix(sd * unit, lengthscale)
    truth = logdet(K, "cholesky")
    row = {
        "inputs": inputs,
        "lengthscale": lengthscale,
        "draw": draw,
        "sd": sd,
        "kappa": condition(K),
        "logdet": truth,
        "printed": printed,
        "printed chebyshev": printed_chebyshev,
        "printed lanczos": printed_lanczos,
        **estimates(K, truth, 1000 + draw, slow=draw < SLOW_DRAWS),
    }
    print(inputs, lengthscale, draw, f"{row['best']:.4f} {row['lanczos']:.4f}", flush=True)
    return row


def table1(draws: int, jobs: int) -> None:
    """Draw by draw, written after each."""
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(jobs) as pool:
        for draw in range(draws):
            tasks = [
                (inputs, index, draw)
                for inputs in ("sd 0.3", "printed kappa")
                for index in range(len(PRINTED))
            ]
            rows += pool.map(one_draw, tasks)
            write("table1", rows, table1_lines(rows, draw + 1))
    draw_table1(rows)


def mean_error(rows: list[dict[str, Any]], key: str) -> float:
    return float(np.nanmean([abs(float(row[key])) for row in rows]))


def groups(rows: list[dict[str, Any]], inputs: str) -> list[list[dict[str, Any]]]:
    return [
        [r for r in rows if r["inputs"] == inputs and float(r["lengthscale"]) == printed[1]]
        for printed in PRINTED
    ]


def table1_lines(rows: list[dict[str, Any]], draws: int) -> list[str]:
    lines = [
        "# Table 1: squared-exponential kernel matrices, n = 1000",
        "",
        f"Made by `python benchmarks/logdet.py table1 --draws {draws}`, {versions()}.",
        f"Six-dimensional Gaussian inputs, GPy's kernel, noise 1e-8; {draws} independent draws of",
        "inputs and probes, the seeds 0, 1, ... in order. Entries are mean absolute relative",
        f"errors over the draws, of *literal*, *flat* and *log* over the first {SLOW_DRAWS}.",
        "",
        "- *printed*: the paper's MEMe and Lanczos.",
        "- *literal*: its recipe as printed (30 power moments from 30 products and 50 probes,",
        "  Newton-CG, grid 1e-4 on [0, 1]). *grid floor*: the least error that any density on that",
        "  grid can have, since none of its points lies below 1e-4 of the largest eigenvalue.",
        "- *flat*: our solve with a flat prior on [noise, lambda_u], 30 and 60 Legendre moments.",
        "- *log*: the same with q0 flat in log lambda, 60 moments.",
        '- *best*: `prior="ritz"`, 1500 products as Lanczos (50 probes of 30 steps) and Chebyshev',
        "  (degree 60). *Lanczos 5 x 300*: the same 1500 products, spent on long runs alone.",
        f"- *deflated*: after {PIVOTS} pivots of pivoted Cholesky, both within 1600 products.",
        "- *30 moments allow*: Radau's and Gauss's rules. Every spectrum in [noise, inf) with the",
        "  probes' 30 moments has a log-determinant in this range (signed relative errors, mean",
        "  over draws), so no method can know better from the moments alone.",
    ]
    for inputs in ("sd 0.3", "printed kappa"):
        title = (
            "Inputs of standard deviation 0.3"
            if inputs == "sd 0.3"
            else "Inputs scaled so that the condition number is the printed one"
        )
        lines += [
            "",
            f"## {title}",
            "",
            "| l | kappa | printed MEMe | printed Lanczos | literal | grid floor | flat 30"
            " | flat 60 | log 60 | **best** | Lanczos | Lanczos 5 x 300 | Chebyshev"
            " | best, deflated | Lanczos, deflated | 30 moments allow | best wins |",
            "| --- " * 17 + "|",
        ]
        won = won_deflated = 0
        for group in groups(rows, inputs):
            cells = [f"{group[0]['lengthscale']}"]
            cells.append(f"{np.exp(np.mean([np.log(float(r['kappa'])) for r in group])):.1e}")
            cells += [
                f"{float(group[0]['printed']):.4f}",
                f"{float(group[0]['printed lanczos']):.4f}",
            ]
            for key in (
                "literal",
                "grid floor",
                "flat, 30 moments",
                "flat, 60 moments",
                "log, 60 moments",
                "best",
                "lanczos",
                "lanczos, 5 x 300",
                "chebyshev",
                "best, deflated",
                "lanczos, deflated",
            ):
                value = f"{mean_error(group, key):.4f}"
                cells.append(f"**{value}**" if key == "best" else value)
            low = np.mean([float(r["least from 30 moments"]) for r in group])
            high = np.mean([float(r["most from 30 moments"]) for r in group])
            cells.append(f"{low:+.3f} .. {high:+.3f}")
            wins = sum(abs(float(r["best"])) <= abs(float(r["lanczos"])) for r in group)
            cells.append(f"{wins} of {len(group)}")
            won += mean_error(group, "best") <= mean_error(group, "lanczos")
            won_deflated += mean_error(group, "best, deflated") <= mean_error(
                group, "lanczos, deflated"
            )
            lines.append("| " + " | ".join(cells) + " |")
        worst = max(mean_error(group, "best") for group in groups(rows, inputs))
        lines += [
            "",
            f"Best at or below Lanczos, by mean error, in {won} of 9 rows, with the same deflation "
            f"in {won_deflated} of 9; its largest mean error is {worst:.4f}.",
        ]
    return lines


def draw_table1(rows: list[dict[str, Any]]) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", sharey=True)
    styles = {
        "printed": ("paper's MEMe, as printed", GREY, "x--"),
        "literal": ("its literal recipe", RED, "v-"),
        "flat, 60 moments": ("MEMe, flat prior", ORANGE, "s-"),
        "lanczos": ("Lanczos, 50 x 30", GREEN, "^-"),
        "lanczos, 5 x 300": ("Lanczos, 5 x 300", PURPLE, "D:"),
        "best": ('MEMe, prior="ritz"', BLUE, "o-"),
    }
    for axis, inputs in zip(axes, ("sd 0.3", "printed kappa"), strict=True):
        for key, (label, colour, style) in styles.items():
            points = [
                (np.mean([float(r["kappa"]) for r in g]), mean_error(g, key))
                for g in groups(rows, inputs)
            ]
            axis.loglog(*zip(*points, strict=True), style, color=colour, label=label, ms=5, lw=1.5)
        axis.axhline(0.03, color="k", lw=0.7, alpha=0.4)
        axis.set(xlabel="condition number")
        axis.grid(alpha=0.25)
    axes[0].set(ylabel="relative error of log det", title="inputs of deviation 0.3")
    axes[1].set(title="inputs scaled to the printed condition number")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    figure.savefig(RESULTS / "table1.png", dpi=130)
    draw_spectrum()


def draw_spectrum() -> None:
    """One kernel matrix's eigenvalues and what each prior makes of them."""
    unit = np.random.default_rng([0, 6]).standard_normal((1000, 6))
    K = kernel_matrix(0.3 * unit, 0.65)
    eigenvalues = np.linalg.eigvalsh(K)
    figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axis.step(eigenvalues, np.arange(1, 1001) / 1000, color="k", lw=2.5, alpha=0.35, label="true")
    for prior, colour in (("flat", ORANGE), ("log", GREEN), ("ritz", BLUE)):
        _, info = logdet(
            K, n_moments=60, prior=prior, bounds=(NOISE, None), seed=1000, return_info=True
        )
        x = np.geomspace(1e-8, eigenvalues[-1], 2000)
        axis.plot(x, info.density.cdf(x), color=colour, lw=1.5, label=f'prior="{prior}"')
    axis.set(
        xscale="log",
        xlabel="eigenvalue",
        ylabel="share of eigenvalues below",
        title="Squared-exponential kernel, length-scale 0.65, inputs of deviation 0.3",
        xlim=(1e-8, 1e3),
    )
    axis.title.set_fontsize(10)
    axis.legend(frameon=False)
    axis.grid(alpha=0.25)
    figure.savefig(RESULTS / "spectrum.png", dpi=130)


# --- The grid -----------------------------------------------------------------------------------


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


def laplacian(side: int) -> None:
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for name, seed in (("unit weights", None), ("log-normal conductances", 0)):
        L = grid_laplacian(side, seed)
        n = L.shape[0]
        start = time.perf_counter()
        value, info = logdet(L, n_moments=30, n_probes=50, seed=0, return_info=True)
        seconds = time.perf_counter() - start
        used = memory()
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
        share = info.solve_seconds / seconds
        notes.append(
            f"| {name} | {truth:.1f} ({how}) | {abs(value - truth) / truth:.1e} "
            f"| {info.standard_error / truth:.1e} | {seconds:.1f} | {100 * share:.2f} "
            f"| {used:.2f} | {info.residual:.0e} |"
        )
        part = by_moments(few, bounds, n, truth, list(range(1, 31)), rival=True)
        rows += [{"matrix": name, "probes": 50, **row} for row in part]
        counts = [2, 5, 10, 20, 30, 40, 60, 80, 100, 120, 140, 160, 180, 200]
        part = by_moments(many, bounds, n, truth, counts, rival=False)
        rows += [{"matrix": name, "probes": 8, **row} for row in part]
    lines = [
        f"# Grid Laplacian, {side} x {side} nodes with one grounded",
        "",
        f"Made by `python benchmarks/logdet.py laplacian`, {versions()}.",
        "",
        "## `logdet(L, n_moments=30, n_probes=50)`",
        "",
        "| matrix | log det (truth by) | relative error | standard error | seconds"
        " | of which MaxEnt solve, % | peak memory, GB | residual |",
        "| --- " * 8 + "|",
        *notes,
        "",
        "Peak memory is of the whole process up to then, matrix and imports included.",
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
    write("laplacian", rows, lines)
    draw_laplacian(rows)


def draw_laplacian(rows: list[dict[str, Any]]) -> None:
    figure, axes = plt.subplots(2, 2, figsize=(9.5, 6.2), layout="constrained", sharex=True)
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
    for axis in axes.flat:
        axis.grid(alpha=0.25)
    for axis in axes[1]:
        axis.set(xlabel="number of moments")
    low = min(axis.get_ylim()[0] for axis in axes[:, 1])
    high = max(axis.get_ylim()[1] for axis in axes[:, 1])
    for axis in axes[:, 1]:
        axis.set_ylim(low, high)
    axes[0, 1].legend(frameon=False)
    figure.savefig(RESULTS / "laplacian.png", dpi=130)


# --- Accuracy against products ------------------------------------------------------------------

CONTESTANTS: dict[str, dict[str, Any]] = {
    "MEMe, flat": {"method": "meme"},
    "MEMe, ritz": {"method": "meme", "prior": "ritz"},
    "Lanczos": {"method": "lanczos"},
    "Chebyshev": {"method": "chebyshev"},
    "Taylor": {"method": "taylor"},
    "OMxnt": {"method": "omxnt"},
}


def finite_elements() -> dict[str, sp.csr_array]:
    """Real matrices that PyAMG ships, and two that it generates."""
    from pyamg.gallery import diffusion_stencil_2d, linear_elasticity, load_example, stencil_grid

    stencil = diffusion_stencil_2d(epsilon=0.01, theta=np.pi / 6, type="FE")
    found = {
        f"{name} (ships with PyAMG)": load_example(name)["A"]
        for name in ("airfoil", "bar", "knot", "unit_cube", "unit_square")
    }
    found["anisotropic diffusion, 200 x 200"] = stencil_grid(stencil, (200, 200), format="csr")
    found["linear elasticity, 80 x 80"] = linear_elasticity((80, 80))[0]
    return {name: sp.csr_array(matrix) for name, matrix in found.items()}


def contest(
    matrix: Any, truth: float | None, counts: list[int], n_probes: int, seeds: int
) -> list[dict[str, Any]]:
    """Every method at every number of moments; mean absolute relative error over seeds."""
    rows = []
    for label, options in CONTESTANTS.items():
        for m in counts:
            errors, values, products, seconds = [], [], 0, 0.0
            for seed in range(seeds):
                start = time.perf_counter()
                value, info = logdet(
                    matrix,
                    n_moments=m,
                    n_probes=n_probes,
                    seed=seed,
                    return_info=True,
                    **options,
                )
                seconds += (time.perf_counter() - start) / seeds
                products = info.products
                values.append(value)
                errors.append(np.nan if truth is None else abs(value - truth) / abs(truth))
            rows.append(
                {
                    "method": label,
                    "moments": m,
                    "products": products,
                    "log det": float(np.mean(values)),
                    "relative error": float(np.mean(errors)),
                    "seconds": seconds,
                }
            )
    return rows


def products(seeds: int) -> None:
    rows: list[dict[str, Any]] = []
    lines = [
        "# Accuracy against matrix products",
        "",
        f"Made by `python benchmarks/logdet.py products --seeds {seeds}`, {versions()}.",
        f"30 probes, no knowledge of the spectrum given; mean absolute relative error over {seeds}",
        "seeds, at equal products per probe. The best of each column is bold.",
    ]
    counts = [10, 20, 40]
    for name, matrix in finite_elements().items():
        try:
            truth = logdet(matrix, "cholesky")
        except ValueError as error:
            print(f"left out {name}: {error}")
            continue
        part = contest(matrix, truth, counts, 30, seeds)
        rows += [{"matrix": name, "n": matrix.shape[0], **row} for row in part]
        lines += [
            "",
            f"## {name}: n = {matrix.shape[0]}, log det = {truth:.6g}",
            "",
            "| products a probe | " + " | ".join(str(m // 2) for m in counts) + " |",
            "| --- " * (len(counts) + 1) + "|",
        ]
        best = {m: min(r["relative error"] for r in part if r["moments"] == m) for m in counts}
        for label in CONTESTANTS:
            cells = []
            for r in part:
                if r["method"] == label:
                    text = f"{r['relative error']:.1e}"
                    bold = r["relative error"] == best[r["moments"]]
                    cells.append(f"**{text}**" if bold else text)
            lines.append(f"| {label} | " + " | ".join(cells) + " |")
        print("\n".join(lines[-len(CONTESTANTS) - 4 :]))
    write("products", rows, lines)
    draw_products(rows)


def draw_products(rows: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(r["matrix"] for r in rows))
    columns = 4
    lines = -(-(len(names) + 1) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(13, 3.3 * lines), layout="constrained", sharex=True
    )
    colours = (ORANGE, BLUE, GREEN, PURPLE, GREY, RED)
    panels = list(np.ravel(axes))
    for axis, name in zip(panels, names, strict=False):
        for label, colour, marker in zip(CONTESTANTS, colours, "so^Dxv", strict=True):
            part = [r for r in rows if r["matrix"] == name and r["method"] == label]
            axis.loglog(
                [r["moments"] // 2 for r in part],
                [r["relative error"] for r in part],
                marker + "-",
                color=colour,
                ms=4.5,
                lw=1.4,
                label=label,
            )
        axis.set_title(f"{name}\nn = {part[0]['n']}", fontsize=9)
        axis.grid(alpha=0.25)
        axis.set_xticks([5, 10, 20], ["5", "10", "20"])
        axis.minorticks_off()
    for axis in panels[len(names) :]:
        axis.axis("off")
    panels[-1].legend(*panels[0].get_legend_handles_labels(), loc="center", frameon=False)
    figure.supxlabel("products for each of 30 probes")
    figure.supylabel("relative error of log det")
    figure.savefig(RESULTS / "products.png", dpi=120)


# --- Any matrix ---------------------------------------------------------------------------------


def any_matrix(path: Path, n_probes: int, exact: bool) -> None:
    matrix = sp.csr_array(mmread(path))
    truth = logdet(matrix, "cholesky") if exact else None
    print(f"{path.name}: n = {matrix.shape[0]}, {matrix.nnz} entries, log det = {truth}")
    for row in contest(matrix, truth, [30], n_probes, 1):
        print(
            f"{row['method']:12s} {row['log det']:.8g}  relative error {row['relative error']:.1e}"
            f"  products {row['products']}  {row['seconds']:.2f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=("table1", "laplacian", "products"))
    parser.add_argument("--draws", type=int, default=6, help="of inputs and probes, for table1")
    parser.add_argument("--jobs", type=int, default=2, help="processes, for table1")
    parser.add_argument("--seeds", type=int, default=2, help="sets of probes, for products")
    parser.add_argument("--side", type=int, default=1000, help="nodes a side, for laplacian")
    parser.add_argument("--matrix", type=Path, help="a Matrix Market file to run all methods on")
    parser.add_argument("--probes", type=int, default=50, help="for --matrix")
    parser.add_argument("--inexact", action="store_true", help="with --matrix: no Cholesky truth")
    given = parser.parse_args()
    if given.matrix is not None:
        try:
            any_matrix(given.matrix, given.probes, not given.inexact)
        except (OSError, ValueError) as error:
            parser.error(f"--matrix {given.matrix}: {error}")
    elif given.part == "table1":
        table1(given.draws, given.jobs)
    elif given.part == "laplacian":
        laplacian(given.side)
    elif given.part == "products":
        products(given.seeds)
    else:
        parser.error("name a part (table1, laplacian, products) or give --matrix FILE.mtx")


if __name__ == "__main__":
    main()
