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
    from fitbo.minimise import minimize
    from fitbo.mixture import Mixture
    from fitbo.space import Categorical, Exhausted, Integer, Real, Space
    from fitbo.study import Study

__version__ = "0.1.0.dev0"

_HOME = {
    "BACKENDS": "fitbo.entropy",
    "Basis": "fitbo.maxent",
    "Categorical": "fitbo.space",
    "Entropy": "fitbo.entropy",
    "Exhausted": "fitbo.space",
    "Integer": "fitbo.space",
    "MaxEntDensity": "fitbo.maxent",
    "Mixture": "fitbo.mixture",
    "Real": "fitbo.space",
    "Settings": "fitbo.inference.settings",
    "Space": "fitbo.space",
    "Study": "fitbo.study",
    "backend": "fitbo.entropy",
    "minimize": "fitbo.minimise",
    "solve": "fitbo.maxent",
}

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
    "minimize",
    "solve",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fitbo' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
