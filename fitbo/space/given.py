"""What a space may be made of: names and parameters, pairs of numbers, scipy's ``Bounds``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fitbo.space.numeric import Real
from fitbo.space.parameters import Categorical, Parameter


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Puts the name before the message of an error."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def kind_of(name: str, kind: Any) -> Parameter:
    """The parameter; a pair of numbers stands for a real parameter's bounds."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"the name of a parameter must be a string, got {name!r:.80}")
    if isinstance(kind, tuple | list) and len(kind) == 2:
        with naming(name):
            return Real(*kind)
    if not isinstance(kind, Parameter):
        expected = "a Real, an Integer, a Categorical or a pair (low, high)"
        raise ValueError(f"{name} must be {expected}, got {kind!r:.80}")
    return kind


def numbered(bounds: Any) -> dict[str, Any]:
    """Pairs (low, high), numeric parameters or scipy's ``Bounds``, with the names x0, x1, ..."""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        bounds = np.stack(np.broadcast_arrays(*map(np.atleast_1d, (bounds.lb, bounds.ub))), axis=1)
    if isinstance(bounds, list | tuple) and any(isinstance(p, Parameter) for p in bounds):
        for i, p in enumerate(bounds):
            if isinstance(p, Categorical):
                raise ValueError(f"bounds[{i}] is a category: give a dict of names to parameters")
        return {f"x{i}": p for i, p in enumerate(bounds)}
    try:
        array = np.array(bounds, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be pairs of numbers, got {bounds!r:.80}") from None
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] != 2:
        raise ValueError(f"bounds must be pairs (low, high), one per dimension, got {bounds!r:.80}")
    return {f"x{i}": pair for i, pair in enumerate(array.tolist())}
