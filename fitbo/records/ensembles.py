"""The sampler's last ensemble on disk, beside a journal: a shortcut, never a need.

A study is rebuilt from its journal alone; what takes time are the moves of its sampler on the way.
With the ensemble of the last move none has to be made again. Without it (the file is absent, torn
or of another study) all are made again, with the same results.
"""

from __future__ import annotations

import json
import logging
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from fitbo.sampling import Diagnostics, Ensemble

logger = logging.getLogger(__name__)


def save(path: Path, ensemble: Ensemble) -> None:
    """Write an ensemble that notes its ``n``, ``samples`` and ``diagnostics``."""
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(
            file,
            log_theta=ensemble.log_theta,
            log_density=ensemble.log_density,
            n=np.array(ensemble.n),
            samples=np.asarray(ensemble.samples),
            diagnostics=np.array(json.dumps(ensemble.diagnostics and asdict(ensemble.diagnostics))),
        )
    part.replace(path)


def load(path: Path) -> Ensemble | None:
    """What ``save`` wrote, or nothing."""
    try:
        # Opened here, since np.load leaves a torn file open.
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("log_theta", "log_density", "samples")}
            facts = json.loads(str(file["diagnostics"]))
            return Ensemble(**arrays, n=int(file["n"]), diagnostics=facts and Diagnostics(**facts))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        logger.warning("%s cannot be read (%s): its fits are made again", path, error)
        return None
