"""What a caller gave, held to what can be used: silence, or an error of one sentence."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from numbers import Integral


def nearest(name: str, known: Collection[str]) -> str:
    """``; did you mean 'x'?`` if some name is near, else nothing."""
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


def finite(name: str, value: object) -> None:
    """An error unless ``value`` is a number, or an array of them, and none is NaN or infinite."""
    import numpy as np  # not for all: an objective's process has no need of it

    try:
        good = bool(np.isfinite(np.asarray(value, dtype=np.float64)).all())
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(f"{name} must be finite, got {value!r:.80}")


def _plain(name: str) -> str:
    """A name as one compares it: "Styblinski-Tang" is like "styblinski_tang"."""
    return re.sub(r"[^a-z0-9]+", "_", name[:80].lower())
