"""What the benchmarks share: one thread, versions, tables, and ``fitbo run`` as a process.

They are run as ``python benchmarks/<name>.py``, so that Python finds this file beside them:

    from common import ROOT, one_thread, versions, write

    one_thread()

    import numpy as np

Nothing here imports numpy, for ``one_thread`` has to come before it.
"""

from __future__ import annotations

import csv
import os
import platform
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
COUNTS = ("M", "n", "probes", "moments", "products", "draw")  # columns of whole numbers
LIBRARIES = ("OMP", "OPENBLAS", "MKL", "RAYON")  # Rayon: of what is written in Rust
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in LIBRARIES}


def one_thread() -> None:
    """One thread for linear algebra, here and in the processes started from here.

    The libraries read these variables once, as they are loaded.
    """
    if "numpy" in sys.modules and os.environ.get("OMP_NUM_THREADS") != "1":
        raise RuntimeError("one_thread() must precede numpy, which is imported: call it earlier")
    os.environ.update(ONE_THREAD)


def prepare_workers() -> None:
    """One thread for processes started from here, which keep the memory that they were given.

    glibc gives torch's large arrays back to the system and asks for them again at each step, which
    is a third of the time of JES.
    """
    os.environ.update(ONE_THREAD, MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_=str(1 << 33))


def versions(*packages: str) -> str:
    """``Python 3.11.7, numpy 2.4.6``: of Python and of those packages that are installed."""
    found = [f"Python {platform.python_version()}"]
    for name in packages:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # a peer that was left out
            continue
    return ", ".join(found)


def write(
    folder: Path,
    name: str,
    lines: Sequence[str],
    rows: Sequence[Mapping[str, Any]] = (),
    data: str | None = None,
) -> None:
    """Print the lines, write them to ``name``.md, and the rows, if any, to ``data or name``.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text("\n".join(lines) + "\n")
    if rows:
        with (folder / f"{data or name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    print("\n".join(lines))


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of ``name``.csv, numbers as numbers."""

    def value(text: str) -> Any:
        try:
            return float(text)
        except ValueError:
            return text

    with (folder / f"{name}.csv").open(newline="") as file:
        rows = [{key: value(text) for key, text in row.items()} for row in csv.DictReader(file)]
    return [{k: int(v) if k in COUNTS else v for k, v in row.items()} for row in rows]


def peak_memory(run: Callable[[], object]) -> float:
    """Megabytes allocated at the worst moment of a run."""
    tracemalloc.start()
    run()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 1e6


def fitbo_run(
    config: Path, *options: str, settings: Sequence[str] = (), path: Sequence[Path] = ()
) -> dict[str, Any]:
    """Arguments of ``subprocess`` for ``fitbo run`` with this source, one thread and no report.

    settings   each for a ``--set``
    path       folders to import from before the source
    """
    overrides = [part for each in settings for part in ("--set", each)]
    command = [sys.executable, "-m", "fitbo", "run", str(config), "--no-report"]
    importable = os.pathsep.join(map(str, [*path, ROOT]))
    return {
        "args": [*command, *options, *overrides],
        "env": {**os.environ, **ONE_THREAD, "PYTHONPATH": importable},
        "stdout": subprocess.DEVNULL,
    }
