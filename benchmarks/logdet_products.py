"""Every method at equal matrix products: finite elements, or a matrix of your own.

Part of ``logdet.py``, which runs it.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import versions, write
from scipy.io import mmread

from fitbo.logdet import UnseenEigenvaluesWarning, logdet
from fitbo.report import drawing
from fitbo.report.drawing import MUTED, looks
from fitbo.report.palette import COLOURS

BLUE, RED, GREEN, PURPLE, ORANGE, *_ = COLOURS
CONTESTANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "MEMe, flat": {"method": "meme", "prior": "flat"},
    "MEMe, ritz": {"method": "meme", "prior": "ritz"},
    "Lanczos": {"method": "lanczos"},
    "Chebyshev": {"method": "chebyshev"},
    "Taylor": {"method": "taylor"},
    "OMxnt": {"method": "omxnt"},
}


def finite_elements() -> dict[str, sp.csr_array]:
    """Real matrices that PyAMG ships, and two that it generates; its unit_square is singular."""
    from pyamg.gallery import diffusion_stencil_2d, linear_elasticity, load_example, stencil_grid

    stencil = diffusion_stencil_2d(epsilon=0.01, theta=np.pi / 6, type="FE")
    found = {
        f"{name} (ships with PyAMG)": load_example(name)["A"]
        for name in ("airfoil", "bar", "knot", "unit_cube")
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
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UnseenEigenvaluesWarning)
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


def products(folder: Path, seeds: int) -> None:
    rows: list[dict[str, Any]] = []
    used = versions("numpy", "scipy")
    lines = [
        "# Accuracy against matrix products",
        "",
        f"Made by `python benchmarks/logdet.py products --seeds {seeds}`, one thread, {used}.",
        f"30 probes, no knowledge of the spectrum given; mean absolute relative error over {seeds}",
        "seeds, at equal products per probe. The best of each column is bold. *default*: no prior",
        "named, which chooses between the next two by what the first products show.",
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
    write(folder, "products", lines, rows)
    draw(folder, rows)


@looks
def draw(folder: Path, rows: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(r["matrix"] for r in rows))
    columns = 4
    lines = -(-(len(names) + 1) // columns)
    figure = drawing.blank(3.0 * lines, 12.0)
    axes = figure.subplots(lines, columns, sharex=True)
    colours = ("k", ORANGE, BLUE, GREEN, PURPLE, MUTED, RED)
    panels = list(np.ravel(axes))
    for axis, name in zip(panels, names, strict=False):
        for label, colour, marker in zip(CONTESTANTS, colours, "*so^Dxv", strict=True):
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
        drawing.powers_of_ten(axis.yaxis)
        axis.set_xticks([5, 10, 20], ["5", "10", "20"])
        axis.minorticks_off()
    for axis in panels[len(names) :]:
        axis.axis("off")
    panels[-1].legend(*panels[0].get_legend_handles_labels(), loc="center")
    figure.supxlabel("products for each of 30 probes")
    figure.supylabel("relative error of log det")
    (folder / "products.png").write_bytes(drawing.image(figure))


def any_matrix(path: Path, n_probes: int, exact: bool) -> None:
    matrix = sp.csr_array(mmread(path))
    truth = logdet(matrix, "cholesky") if exact else None
    print(f"{path.name}: n = {matrix.shape[0]}, {matrix.nnz} entries, log det = {truth}")
    for row in contest(matrix, truth, [30], n_probes, 1):
        print(
            f"{row['method']:12s} {row['log det']:.8g}  relative error {row['relative error']:.1e}"
            f"  products {row['products']}  {row['seconds']:.2f} s"
        )
