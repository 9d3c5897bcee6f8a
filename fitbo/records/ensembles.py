"""The sampler's last ensemble on disk, beside a journal: a shortcut, never a need.

A study is rebuilt from its journal alone; what takes time are the moves of its sampler on the way.
With the ensemble of the last move none has to be made again. Without it (the file is absent, torn
or of another study) all are made again, with the same results.
"""

from __future__ import annotations

import json
import logging
import math
import zipfile
import zlib
from dataclasses import asdict
from pathlib import Path

import numpy as np

from fitbo.checks import finite
from fitbo.sampling import Diagnostics, Ensemble

logger = logging.getLogger(__name__)

LARGEST = 1 << 28  # bytes of an array
UNREADABLE = (
    *(OSError, ValueError, KeyError, TypeError, EOFError, MemoryError, RecursionError),
    *(OverflowError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error),
)


def save(path: Path, ensemble: Ensemble) -> None:
    """Write an ensemble that notes its ``n``, ``samples`` and ``diagnostics``."""
    part = path.with_suffix(".part")
    try:
        with part.open("wb") as file:
            facts = json.dumps(ensemble.diagnostics and asdict(ensemble.diagnostics))
            np.savez(
                file,
                log_theta=ensemble.log_theta,
                log_density=ensemble.log_density,
                n=np.array(ensemble.n),
                samples=np.asarray(ensemble.samples),
                diagnostics=np.array(facts),
            )
    except OSError as error:  # a full disk gets its room back
        part.unlink(missing_ok=True)
        why = f"{error.strerror}; nothing told is lost: make room, and run again"
        raise OSError(error.errno, why, str(path)) from error
    part.replace(path)


def load(path: Path) -> Ensemble | None:
    """What ``save`` wrote, or nothing."""
    try:
        with zipfile.ZipFile(path) as file:
            theta, density, samples = (
                _array(file, name) for name in ("log_theta", "log_density", "samples")
            )
            alike = theta.ndim == samples.ndim == 2 and theta.shape[1] == samples.shape[1]
            if not alike or density.shape != theta.shape[:1]:
                raise ValueError("its arrays do not belong together")
            finite("log_theta", theta)
            finite("samples", samples)
            facts = json.loads(str(_array(file, "diagnostics")))
            known = facts and Diagnostics(**facts)
            return Ensemble(theta, density, int(_array(file, "n")), samples, known)
    except FileNotFoundError:
        return None
    except UNREADABLE as error:
        logger.warning("%s cannot be read (%s): its fits are made again", path, error)
        return None


def _array(file: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array that is as large as it says; np.load would make room for whatever it says."""
    with file.open(f"{name}.npy") as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError(f"{name} is of another version")
        shape, by_column, kind = np.lib.format.read_array_header_1_0(member)
        size = math.prod(shape) * kind.itemsize
        if kind.kind not in "fiU" or size > LARGEST:
            raise ValueError(f"{name} is said to be {kind} of shape {shape}")
        data = member.read(LARGEST)
    if len(data) != size:
        raise ValueError(f"{name} must have {size} bytes, got {len(data)}")
    return np.frombuffer(data, kind).reshape(shape, order="F" if by_column else "C").copy("K")
