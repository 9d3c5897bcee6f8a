"""Every test as on a machine of one core, and at a terminal."""

from __future__ import annotations

import os
import signal
import threading

import pytest

# Linear algebra reads these as it is loaded, so this comes before anything that imports numpy.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")


@pytest.fixture(autouse=True)
def _ctrl_c() -> None:
    """A run that was started in the background ignores Ctrl-C, and so would all it starts."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
