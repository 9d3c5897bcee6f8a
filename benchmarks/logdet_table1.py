"""The paper's Table 1: squared-exponential kernel matrices. Part of ``logdet.py``."""

from __future__ import annotations

import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from common import versions, write
from scipy import optimize

from fitbo.logdet import UnseenEigenvaluesWarning, logdet
from fitbo.logdet.trace import probe_blocks
from fitbo.report import drawing
from fitbo.report.drawing import MUTED, looks
from fitbo.report.palette import COLOURS

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
INPUTS = {
    "sd 0.3": "Inputs of standard deviation 0.3",
    "printed kappa": "Inputs scaled so that the condition number is the printed one",
}
# Those of the estimates below that the table shows, and their headings.
METHODS = {
    "literal": "literal",
    "grid floor": "grid floor",
    "flat, 30 moments": "flat 30",
    "flat, 60 moments": "flat 60",
    "log, 60 moments": "log 60",
    "default": "default",
    "default, 60 moments": "default 60",
    "best": "**best**",
    "lanczos": "Lanczos",
    "lanczos, 5 x 300": "Lanczos 5 x 300",
    "chebyshev": "Chebyshev",
    "best, deflated": "best, deflated",
    "lanczos, deflated": "Lanczos, deflated",
}
PIVOTS = 100
SLOW_DRAWS = 2
BLUE, RED, GREEN, PURPLE, ORANGE, *_ = COLOURS


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

    def by_default(**options: Any) -> tuple[float, bool]:
        """The error, and whether it came with a warning."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UnseenEigenvaluesWarning)
            return run(**options), bool(caught)

    floor = {"bounds": (NOISE, None)}
    default, warned = by_default()
    longer, longer_warned = by_default(n_moments=60)
    _, few = logdet(K, "lanczos", n_moments=30, seed=seed, return_info=True, **floor)
    _, many = logdet(K, "lanczos", n_moments=60, seed=seed, return_info=True, **floor)
    best, info = logdet(K, n_moments=60, prior="ritz", seed=seed, return_info=True, **floor)
    return {
        "literal": error(literal(K, np.random.default_rng(seed))) if slow else np.nan,
        "grid floor": max(0.0, error(grid_floor(K))),
        "flat, 30 moments": run(n_moments=30, prior="flat", **floor) if slow else np.nan,
        "flat, 60 moments": run(n_moments=60, prior="flat", **floor) if slow else np.nan,
        "log, 60 moments": run(n_moments=60, prior="log", **floor) if slow else np.nan,
        "default": default,
        "default, warned": warned,
        "default, 60 moments": longer,
        "default, 60 moments, warned": longer_warned,
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
    shown = " ".join(f"{row[key]:.4f}" for key in ("default", "best", "lanczos"))
    print(inputs, lengthscale, draw, shown, flush=True)
    return row


def table1(folder: Path, draws: int, jobs: int) -> None:
    """Draw by draw, written after each."""
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(jobs) as pool:
        for draw in range(draws):
            tasks = [(inputs, i, draw) for inputs in INPUTS for i in range(len(PRINTED))]
            rows += pool.map(one_draw, tasks)
            write(folder, "table1", table(rows, draw + 1), rows)
    draw_errors(folder, rows)
    draw_spectrum(folder)


def mean_error(rows: list[dict[str, Any]], key: str) -> float:
    return float(np.nanmean([abs(float(row[key])) for row in rows]))


def groups(rows: list[dict[str, Any]], inputs: str) -> list[list[dict[str, Any]]]:
    return [
        [r for r in rows if r["inputs"] == inputs and float(r["lengthscale"]) == printed[1]]
        for printed in PRINTED
    ]


def table(rows: list[dict[str, Any]], draws: int) -> list[str]:
    """Markdown."""
    used = versions("numpy", "scipy")
    lines = [
        "# Table 1: squared-exponential kernel matrices, n = 1000",
        "",
        f"Made by `python benchmarks/logdet.py table1 --draws {draws}`, one thread, {used}.",
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
        "- *default*: `logdet(K)` with no options, which is 750 products and no bound given;",
        "  *default 60*: `logdet(K, n_moments=60)`, 1500 products. A * marks a warning that",
        "  eigenvalues are unseen, in any draw.",
        '- *best*: `prior="ritz"`, 1500 products as Lanczos (50 probes of 30 steps) and Chebyshev',
        "  (degree 60). *Lanczos 5 x 300*: the same 1500 products, spent on long runs alone.",
        f"- *deflated*: after {PIVOTS} pivots of pivoted Cholesky, both within 1600 products.",
        "- *30 moments allow*: Radau's and Gauss's rules. Every spectrum in [noise, inf) with the",
        "  probes' 30 moments has a log-determinant in this range (signed relative errors, mean",
        "  over draws), so no method can know better from the moments alone.",
    ]
    return lines + [line for inputs in INPUTS for line in section(rows, inputs)]


def section(rows: list[dict[str, Any]], inputs: str) -> list[str]:
    """The table itself, for one way of scaling the inputs, and what it comes to."""
    heads = ["l", "kappa", "printed MEMe", "printed Lanczos", *METHODS.values()]
    heads += ["30 moments allow", "best wins"]
    lines = ["", f"## {INPUTS[inputs]}", "", f"| {' | '.join(heads)} |"]
    lines.append("| --- " * len(heads) + "|")
    won, won_deflated, worst = 0, 0, 0.0
    for group in groups(rows, inputs):
        kappa = np.exp(np.mean([np.log(float(r["kappa"])) for r in group]))
        cells = [f"{group[0]['lengthscale']}", f"{kappa:.1e}"]
        cells += [f"{float(group[0][key]):.4f}" for key in ("printed", "printed lanczos")]
        error = {key: mean_error(group, key) for key in METHODS}
        warned = {key: any(r.get(f"{key}, warned") for r in group) for key in METHODS}
        cells += [
            f"**{e:.4f}**" if key == "best" else f"{e:.4f}" + "*" * warned[key]
            for key, e in error.items()
        ]
        low = np.mean([float(r["least from 30 moments"]) for r in group])
        high = np.mean([float(r["most from 30 moments"]) for r in group])
        cells.append(f"{low:+.3f} .. {high:+.3f}")
        wins = sum(abs(float(r["best"])) <= abs(float(r["lanczos"])) for r in group)
        cells.append(f"{wins} of {len(group)}")
        won += error["best"] <= error["lanczos"]
        won_deflated += error["best, deflated"] <= error["lanczos, deflated"]
        worst = max(worst, error["best"])
        lines.append("| " + " | ".join(cells) + " |")
    return [
        *lines,
        "",
        f"Best at or below Lanczos, by mean error, in {won} of 9 rows, with the same deflation "
        f"in {won_deflated} of 9; its largest mean error is {worst:.4f}.",
    ]


@looks
def draw_errors(folder: Path, rows: list[dict[str, Any]]) -> None:
    figure = drawing.blank(4.4, 11.0)
    axes = figure.subplots(1, 2, sharey=True)
    styles = {
        "printed": ("paper's MEMe, as printed", MUTED, "x--"),
        "literal": ("its literal recipe", RED, "v-"),
        "flat, 60 moments": ("MEMe, flat prior", ORANGE, "s-"),
        "lanczos": ("Lanczos, 50 x 30", GREEN, "^-"),
        "lanczos, 5 x 300": ("Lanczos, 5 x 300", PURPLE, "D:"),
        "default": ("logdet(K), half the products", BLUE, "o:"),
        "best": ('MEMe, prior="ritz"', BLUE, "o-"),
    }
    for axis, inputs in zip(axes, INPUTS, strict=True):
        for key, (label, colour, style) in styles.items():
            if key not in rows[0]:  # of a table that was made before there was one
                continue
            points = [
                (np.mean([float(r["kappa"]) for r in g]), mean_error(g, key))
                for g in groups(rows, inputs)
            ]
            axis.loglog(*zip(*points, strict=True), style, color=colour, label=label, ms=5, lw=1.5)
        axis.axhline(0.03, color="k", lw=0.7, alpha=0.4)
        axis.set(xlabel="condition number")
        drawing.powers_of_ten(axis.xaxis, axis.yaxis)
    axes[0].set(ylabel="relative error of log det", title="inputs of deviation 0.3")
    axes[1].set(title="inputs scaled to the printed condition number")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center")
    (folder / "table1.png").write_bytes(drawing.image(figure))


@looks
def draw_spectrum(folder: Path) -> None:
    """One kernel matrix's eigenvalues and what each prior makes of them."""
    unit = np.random.default_rng([0, 6]).standard_normal((1000, 6))
    K = kernel_matrix(0.3 * unit, 0.65)
    eigenvalues = np.linalg.eigvalsh(K)
    figure = drawing.blank(4.0, 7.6)
    axis = figure.subplots()
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
    drawing.powers_of_ten(axis.xaxis)
    axis.title.set_fontsize(9.5)
    axis.legend()
    (folder / "spectrum.png").write_bytes(drawing.image(figure))
