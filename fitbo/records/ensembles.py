"""The sampler's last ensembles on disk, beside a journal: a shortcut, never a need.

A study is rebuilt from its journal alone; what takes time are the fits on the way. With the
ensemble from which the fit to n values started, only that one fit has to be made again. A file that
is absent, torn or of another study makes the others be made too, and they are the same.
"""

from __future__ import annotations

import logging
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fitbo.mixture import Array
from fitbo.sampling import Ensemble

logger = logging.getLogger(__name__)


def save(path: Path, starts: Mapping[int, Ensemble]) -> None:
    """Write the ensembles from which the fits to n values started, by n."""
    arrays: dict[str, Array] = {}
    for n, ensemble in starts.items():
        arrays[f"log_theta_{n}"] = ensemble.log_theta
        arrays[f"log_density_{n}"] = ensemble.log_density
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    os.replace(part, path)


def load(path: Path) -> dict[int, Ensemble]:
    """What ``save`` wrote, or nothing."""
    try:
        # Opened here, since of a torn one ``load`` leaves its own open.
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {
                int(name.removeprefix("log_theta_")): Ensemble(
                    file[name], file[name.replace("log_theta", "log_density")]
                )
                for name in file.files
                if name.startswith("log_theta_")
            }
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        if not isinstance(error, FileNotFoundError):
            logger.warning("%s cannot be read (%s): its fits are made again", path, error)
        return {}
