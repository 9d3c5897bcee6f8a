"""Checks of what a caller gave: each passes in silence, or raises an error of one sentence."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection
from numbers import Integral


def nearest(name: str, known: Collection[str]) -> str:
    """``; did you mean 'x'?`` if a known name is similar, else nothing."""
    plain = {_plain(each): each for each in known}
    near = difflib.get_close_matches(_plain(name), plain, n=1)
    return f"; did you mean {plain[near[0]]!r}?" if near else ""


def one_of(name: str, value: object, known: Collection[str]) -> None:
    """An error unless ``value`` is one of the names."""
    if not (isinstance(value, str) and value in known):
        hint = nearest(str(value), known)
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}{hint}")


def whole(name: str, value: object, least: int) -> None:
    """An error unless ``value`` is an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def finite(name: str, value: object, least: float = -math.inf) -> None:
    """An error unless ``value`` is a finite number of at least ``least``, or an array of them."""
    import numpy as np  # only here: the process that runs an objective does not need it

    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if not (np.isfinite(array) & (array >= least)).all():
        bound = f" and at least {least:g}" if math.isfinite(least) else ""
        got = (
            f"{array.min()} to {array.max()} in shape {array.shape}" if array.ndim else repr(value)
        )
        raise ValueError(f"{name} must be finite{bound}, got {got:.80}")


def assign(frozen: object, **values: object) -> None:
    """Set fields of a frozen dataclass, in its ``__post_init__``."""
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


def _plain(name: str) -> str:
    """A name as one compares it: "Styblinski-Tang" is like "styblinski_tang"."""
    return re.sub(r"[^a-z0-9]+", "_", name[:80].lower())
