"""The paper's log-determinant experiments, remade, and every method side by side.

    python benchmarks/logdet.py table1        # kernel matrices, some minutes on two cores
    python benchmarks/logdet.py laplacian     # a million nodes, some minutes, 3 GB
    python benchmarks/logdet.py products      # finite-element matrices; needs pyamg
    python benchmarks/logdet.py --redraw              # the figures again, from the tables
    python benchmarks/logdet.py --matrix FILE.mtx     # all methods on a Matrix Market file

Each writes a table (md and csv) and a figure under results/logdet/. One thread throughout. This is
the command line; each part has a module of its own beside it, ``logdet_<part>.py``.
"""

from __future__ import annotations

from common import ROOT, one_thread, read

one_thread()

import argparse
from pathlib import Path

import logdet_laplacian
import logdet_products
import logdet_table1
from logdet_laplacian import laplacian
from logdet_products import any_matrix, products
from logdet_table1 import table1

RESULTS = ROOT / "results" / "logdet"


def redraw() -> None:
    """The figures from the tables that are there; the spectrum is computed."""
    for name, draw in (
        ("laplacian", logdet_laplacian.draw),
        ("products", logdet_products.draw),
        ("table1", logdet_table1.draw_errors),
    ):
        draw(RESULTS, read(RESULTS, name))
    logdet_table1.draw_spectrum(RESULTS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=("table1", "laplacian", "products"))
    parser.add_argument("--draws", type=int, default=6, help="of inputs and probes, for table1")
    parser.add_argument("--jobs", type=int, default=2, help="processes, for table1")
    parser.add_argument("--seeds", type=int, default=2, help="sets of probes, for products")
    parser.add_argument("--side", type=int, default=1000, help="nodes per side, for laplacian")
    parser.add_argument("--matrix", type=Path, help="a Matrix Market file to run all methods on")
    parser.add_argument("--probes", type=int, default=50, help="for --matrix")
    parser.add_argument("--inexact", action="store_true", help="with --matrix: no Cholesky truth")
    parser.add_argument("--redraw", action="store_true", help="the figures, from the tables there")
    given = parser.parse_args()
    if given.redraw:
        redraw()
    elif given.matrix is not None:
        try:
            any_matrix(given.matrix, given.probes, not given.inexact)
        except (OSError, ValueError) as error:
            parser.error(f"--matrix {given.matrix}: {error}")
    elif given.part == "table1":
        table1(RESULTS, given.draws, given.jobs)
    elif given.part == "laplacian":
        laplacian(RESULTS, given.side)
    elif given.part == "products":
        products(RESULTS, given.seeds)
    else:
        parser.error("name a part (table1, laplacian, products) or give --matrix FILE.mtx")


if __name__ == "__main__":
    main()
