"""The scripts of ``benchmarks/``, in short versions."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


def module(name: str) -> ModuleType:
    """A script of ``benchmarks/``, imported."""
    if str(SCRIPTS) not in sys.path:
        sys.path.insert(0, str(SCRIPTS))  # where a script finds the modules beside it
    return importlib.import_module(name)
