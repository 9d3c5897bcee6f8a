"""The paper's two tables of mixture entropies, remade: accuracy and time of every backend.

    python benchmarks/entropy.py            # a minute or two; writes results/entropy/
    python benchmarks/entropy.py --redraw   # accuracy_time.png alone, from the table there

One thread throughout, all in this one process. The times in the tables are the best of several
runs; those behind the speed ratios are medians over rounds in which all take turns.
"""

from __future__ import annotations

from common import ROOT, one_thread, peak_memory, read, versions, write

one_thread()

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import integrate

from fitbo.entropy import MC, MM, VUB, Entropy, Huber, MEMe, MEMeL, Quad
from fitbo.inference.settings import Settings
from fitbo.mixture import Mixture
from fitbo.report import drawing
from fitbo.report.drawing import looks
from fitbo.report.palette import COLOURS, styles
from fitbo.space import Space
from fitbo.study import Study

RESULTS = ROOT / "results" / "entropy"


@dataclass(frozen=True)
class Row:
    """A method and what the paper prints for it: fractional errors and seconds at M = 200, 400."""

    name: str
    backend: Entropy
    paper_error: tuple[float, float] | None = None
    paper_seconds: tuple[float, float] | None = None


ROWS = [
    Row("MEMeL-10", MEMeL(10), (1.01e-2, 0.85e-2), (1.70e-2, 1.75e-2)),
    Row("MEMeL-30", MEMeL(30), (0.50e-2, 0.36e-2), (4.18e-2, 4.66e-2)),
    Row("MEMe-10", MEMe(10), (1.24e-2, 1.38e-2), (1.38e-2, 1.48e-2)),
    Row("MEMe-30", MEMe(30), (1.13e-2, 1.06e-2), (2.59e-2, 3.21e-2)),
    Row("MEMeL-10, no windows", MEMeL(10, windows=0), (1.01e-2, 0.85e-2), (1.70e-2, 1.75e-2)),
    Row("MEMeL-30, no windows", MEMeL(30, windows=0), (0.50e-2, 0.36e-2), (4.18e-2, 4.66e-2)),
    Row("MEMe-10, no windows", MEMe(10, windows=0), (1.24e-2, 1.38e-2), (1.38e-2, 1.48e-2)),
    Row("MEMe-30, no windows", MEMe(30, windows=0), (1.13e-2, 1.06e-2), (2.59e-2, 3.21e-2)),
    Row("VUB", VUB(), (22.0e-2, 29.1e-2), (12.9e-2, 50.7e-2)),
    Row("Huber-2", Huber(2), (24.7e-2, 35.5e-2), (20.9e-2, 82.2e-2)),
    Row("MC-100", MC(100), (1.60e-2, 2.72e-2), (10.6e-2, 40.1e-2)),
    Row("MM", MM(), (2.78e-2, 3.22e-2), (2.71e-5, 2.87e-5)),
    Row("Quad 1e-6", Quad(1e-6)),
]


def spread_mixtures(m: int, n: int, seed: int) -> Mixture:
    """Mixtures of any size with the spread of FITBO's, for the growth curves.

    Log-deviations are normal about a common level; their width is itself drawn, so that the ratio
    of largest to smallest deviation reaches several hundred. Means scatter by about a deviation
    and lean to the side of the wider components, as the surrogate's parabola makes them.
    """
    rng = np.random.default_rng(seed)
    width = 0.29 * np.exp(0.6 * np.clip(rng.standard_normal((n, 1)), -2, 2))
    s = np.exp(rng.normal(0, 1, (n, 1)) + width * rng.standard_normal((n, m)))
    typical = np.median(s, axis=1, keepdims=True)
    scatter = rng.uniform(0.1, 1.0, (n, 1)) * typical
    lean = rng.uniform(0.0, 1.0, (n, 1)) * (s - typical)
    return Mixture(scatter * rng.standard_normal((n, m)) + lean, s**2)


def fitbo_mixtures(m: int, n: int, seed: int) -> Mixture:
    """The paper's mixtures: what FITBO predicts, with m samples, during a run on Branin.

    At each of eight stages of one optimisation, n/8 random candidates and their predictive mixtures
    of y, in standardised units.
    """
    study = Study(Space([(-5, 10), (0, 15)]), Settings(n_samples=m, seed=seed))
    rng = np.random.default_rng(seed)
    stages = range(5, 37, 4)
    kept: list[Mixture] = []
    for told in range(max(stages) + 1):
        if told in stages:
            surrogate = study.fit().surrogate
            kept.append(surrogate.predict(rng.random((n // len(stages), 2)), noise=True))
        x = study.ask()[0]
        study.tell(x, branin(x))
    return Mixture(
        np.concatenate([mixture.means for mixture in kept]),
        np.concatenate([mixture.variances for mixture in kept]),
    )


def branin(x: np.ndarray) -> float:
    a, b = x
    ridge = (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2
    return float(ridge + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10)


def best_of(run: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of several runs, after one to warm up."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def seconds(backend: Entropy, mixture: Mixture, repeats: int) -> float:
    """Best time of one value over a batch."""
    return best_of(lambda: backend(mixture), repeats)


def accuracy(n: int, repeats: int) -> tuple[list[dict[str, object]], list[str]]:
    """The paper's tables: every row at M = 200 and M = 400; and how spread the mixtures are."""
    table: list[dict[str, object]] = []
    spreads: list[str] = []
    for column, m in enumerate((200, 400)):
        mixture = fitbo_mixtures(m, n, seed=m)
        ratio = mixture.deviations.max(1) / mixture.deviations.min(1)
        reach = mixture.deviations * 8
        span = (mixture.means + reach).max(1) - (mixture.means - reach).min(1)
        span = span / mixture.deviations.min(1)
        spreads.append(
            f"M = {m}: ratio of largest to smallest deviation, median {np.median(ratio):.1f}, most "
            f"{ratio.max():.0f}; range over smallest deviation, median {np.median(span):.0f}, most "
            f"{span.max():.0f}."
        )
        truth = Quad(1e-11)(mixture)
        mm_error = abs(MM()(mixture) - truth).mean()
        for row in ROWS:
            error = row.backend(mixture) - truth
            fractional = abs(error / truth)
            table.append(
                {
                    "method": row.name,
                    "M": m,
                    "fractional error": fractional.mean(),
                    "sd": fractional.std(),
                    "paper": row.paper_error[column] if row.paper_error else "",
                    "error, nats": abs(error).mean(),
                    "share of MM": abs(error).mean() / mm_error,
                    "lowest, nats": error.min(),
                    "microseconds": 1e6 * seconds(row.backend, mixture, repeats) / n,
                    "paper, microseconds": 1e6 * row.paper_seconds[column]
                    if row.paper_seconds
                    else "",
                }
            )
    return table, spreads


def speed(repeats: int) -> list[tuple[str, str]]:
    """MEMeL-10 on 1000 mixtures of M = 400 against quadrature, by value and with gradients."""
    mixture = fitbo_mixtures(400, 1000, seed=7)
    memel, quad = MEMeL(10), Quad(1e-6)
    some = 20
    contestants: list[Callable[[], object]] = [
        lambda: memel(mixture),
        lambda: quad(mixture),
        lambda: memel.value_and_grad(mixture),
        lambda: quad.value_and_grad(mixture),
        lambda: [scipy_entropy(mixture, i) for i in range(some)],
    ]
    # In turns, so that a slow spell of the machine falls on all of them alike.
    rounds = [[best_of(run, 1) for run in contestants] for _ in range(repeats)]
    fast, slow, fast_gradient, slow_gradient, loop = np.median(rounds, axis=0)
    loop *= 1000 / some
    memory = peak_memory(contestants[0])
    memory_gradient = peak_memory(contestants[2])
    return [
        ("MEMeL-10, value, microseconds a mixture", f"{fast * 1e3:.0f}"),
        ("MEMeL-10, value and gradient", f"{fast_gradient * 1e3:.0f}"),
        ("Quad at 1e-6, value", f"{slow * 1e3:.0f}"),
        ("Quad at 1e-6, value and gradient", f"{slow_gradient * 1e3:.0f}"),
        ("a loop of scipy.integrate.quad, value", f"{loop * 1e3:.0f}"),
        ("Quad / MEMeL-10, value", f"{slow / fast:.1f} x"),
        ("Quad / MEMeL-10, value and gradient", f"{slow_gradient / fast_gradient:.1f} x"),
        ("scipy loop / MEMeL-10, value", f"{loop / fast:.0f} x"),
        ("MEMeL-10, peak memory beyond inputs, value", f"{memory:.0f} MB"),
        ("MEMeL-10, peak memory beyond inputs, value and gradient", f"{memory_gradient:.0f} MB"),
    ]


def scipy_entropy(mixture: Mixture, i: int) -> float:
    """One mixture by scipy's adaptive quadrature; a density is one vectorised sum."""
    m, s = mixture.means[i], mixture.deviations[i]
    height = mixture.weights[i] / (s * np.sqrt(2 * np.pi))

    def integrand(y: float) -> float:
        p = height @ np.exp(-0.5 * ((y - m) / s) ** 2)
        return -p * np.log(p) if p > 0 else 0.0

    low, high = (m - 6.3 * s).min(), (m + 6.3 * s).max()
    middle = float(np.median(m))
    left = integrate.quad(integrand, low, middle, epsabs=5e-7, epsrel=0, limit=500)[0]
    return left + integrate.quad(integrand, middle, high, epsabs=5e-7, epsrel=0, limit=500)[0]


def scaling(repeats: int) -> dict[str, tuple[list[int], list[float]]]:
    """Seconds of MEMeL against M, B and m, one at a time from M = 400, B = 500, m = 10."""
    out: dict[str, tuple[list[int], list[float]]] = {}
    sizes = [50, 100, 200, 400, 800, 1600]
    times = [seconds(MEMeL(10), spread_mixtures(k, 500, 1), repeats) for k in sizes]
    out["M"] = sizes, times
    sizes = [125, 250, 500, 1000, 2000, 4000]
    times = [seconds(MEMeL(10), spread_mixtures(400, k, 1), repeats) for k in sizes]
    out["B"] = sizes, times
    mixture = spread_mixtures(50, 100, 1)
    sizes = [10, 20, 40, 80, 160]
    times = []
    for k in sizes:
        iterations = MEMeL(k).value_and_info(mixture)[1].iterations.sum()
        times.append(seconds(MEMeL(k), mixture, 2) / iterations)
    out["m (time per Newton step of one mixture)"] = sizes, times
    return out


def exponent(sizes: list[int], times: list[float]) -> float:
    """Slope in log-log over the upper half, where overheads no longer count."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0])


def report(
    table: list[dict[str, object]],
    spreads: list[str],
    figures: list[tuple[str, str]],
    growth: dict[str, tuple[list[int], list[float]]],
) -> None:
    lines = [
        "# Entropy of Gaussian mixtures",
        "",
        f"Made by `python benchmarks/entropy.py`, one thread, {versions('numpy', 'scipy')}.",
        "80 mixtures for each M, predicted by FITBO in the course of a run on Branin.",
        "*share of MM* is the mean absolute error divided by moment matching's; *lowest* is the",
        "smallest value minus truth, so at or above zero for a bound. The paper's columns are its",
        "own mixtures and its own MATLAB on its own machine.",
        "",
        *spreads,
    ]
    for m in (200, 400):
        lines += [
            "",
            f"## M = {m}",
            "",
            "| method | fractional error | paper | error, nats | share of MM | lowest, nats | "
            "time, µs | paper, µs |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        for row in table:
            if row["M"] == m:
                paper = f"{row['paper']:.1e}" if row["paper"] else ""
                slow = f"{row['paper, microseconds']:.0f}" if row["paper, microseconds"] else ""
                lines.append(
                    f"| {row['method']} "
                    f"| {row['fractional error']:.1e} ± {row['sd']:.1e} | {paper} "
                    f"| {row['error, nats']:.1e} | {row['share of MM']:.3f} "
                    f"| {row['lowest, nats']:.0e} "
                    f"| {row['microseconds']:.0f} | {slow} |"
                )
    lines += ["", "## Speed, 1000 mixtures of M = 400", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {value} |" for name, value in figures]
    lines += ["", "## Growth of MEMeL's time", "", "| in | exponent |", "| --- | --- |"]
    lines += [f"| {name} | {exponent(*growth[name]):.2f} |" for name in growth]
    write(RESULTS, "table", lines, table)
    draw(table, growth)


def draw(table: list[dict[str, object]], growth: dict[str, tuple[list[int], list[float]]]) -> None:
    draw_accuracy(table)
    draw_growth(growth)


@looks
def draw_accuracy(table: list[dict[str, object]]) -> None:
    """Every method at its time and error, named where it is."""
    rows = [row for row in table if row["M"] == 400]
    place = ("microseconds", "error, nats")
    ends = {str(row["method"]): tuple(row[key] for key in place) for row in rows}
    style = dict(zip(ends, styles(list(ends)), strict=True))
    figure = drawing.blank(4.6)
    axes = figure.subplots()
    for name, (x, y) in ends.items():
        axes.loglog(x, y, "o", ms=9, color=style[name]["color"], mec="white", mew=0.9, zorder=3)
    axes.set(xlabel="microseconds per mixture", ylabel="mean absolute error, nats")
    drawing.label_ends(axes, ends, style)
    drawing.powers_of_ten(axes.xaxis, axes.yaxis)
    rest = "accuracy against time, 80 mixtures of M = 400 that FITBO predicted"
    drawing.title_line(figure, "Entropy backends", rest)
    (RESULTS / "accuracy_time.png").write_bytes(drawing.image(figure))


@looks
def draw_growth(growth: dict[str, tuple[list[int], list[float]]]) -> None:
    figure = drawing.blank(3.3, 10.5)
    panels = figure.subplots(1, 3)
    for axes, (name, (sizes, times)) in zip(panels, growth.items(), strict=True):
        axes.loglog(sizes, times, "o-", color=COLOURS[0], ms=5)
        axes.set(xlabel=name, title=f"exponent {exponent(sizes, times):.2f}")
        drawing.powers_of_ten(axes.xaxis, axes.yaxis)
    panels[0].set_ylabel("seconds")
    drawing.title_line(figure, "MEMeL", "how its time grows")
    (RESULTS / "scaling.png").write_bytes(drawing.image(figure))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9, help="runs of which the best counts")
    parser.add_argument("--redraw", action="store_true", help="accuracy_time.png from table.csv")
    given = parser.parse_args()
    if given.redraw:
        draw_accuracy(read(RESULTS, "table"))
        return
    repeats = given.repeats
    report(*accuracy(80, repeats), speed(repeats), scaling(repeats))


if __name__ == "__main__":
    main()
