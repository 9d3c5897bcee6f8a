"""fitbo: fast information-theoretic Bayesian optimisation.

The public names below are imported when first used, so that ``import fitbo`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fitbo.entropy import BACKENDS, Entropy, backend
    from fitbo.inference.settings import Settings
    from fitbo.maxent import Basis, MaxEntDensity, solve
    from fitbo.minimise import maximize, minimize
    from fitbo.mixture import Mixture
    from fitbo.space import Categorical, Exhausted, Integer, Real, Space
    from fitbo.study import Study

__version__ = "1.0.0"

__all__ = [
    "BACKENDS",
    "Basis",
    "Categorical",
    "Entropy",
    "Exhausted",
    "Integer",
    "MaxEntDensity",
    "Mixture",
    "Real",
    "Settings",
    "Space",
    "Study",
    "backend",
    "maximize",
    "minimize",
    "solve",
]
_NAMES = {
    "entropy": ("BACKENDS", "Entropy", "backend"),
    "inference.settings": ("Settings",),
    "maxent": ("Basis", "MaxEntDensity", "solve"),
    "minimise": ("maximize", "minimize"),
    "mixture": ("Mixture",),
    "space": ("Categorical", "Exhausted", "Integer", "Real", "Space"),
    "study": ("Study",),
}


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"fitbo.{module}"), name)
    raise AttributeError(f"module 'fitbo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
