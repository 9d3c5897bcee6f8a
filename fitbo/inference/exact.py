"""Whether the function has noise, where nobody said so: what a point evaluated twice tells.

A model that infers noise from values at different points explains structure away as noise, and one
that is sure of having none follows lucky values. Two values at one point settle it: they are equal
to the last bit, or they differ. So with ``deterministic="auto"`` the best point of the initial
design is evaluated once more, which costs one evaluation. Values so coarse that different points of
the design have the same one can agree by chance: then nothing is settled, and noise is inferred.
"""

from __future__ import annotations

from collections.abc import Sequence

from fitbo.mixture import Array


def repeated(points: Sequence[Array]) -> bool:
    """Whether one of the points (d,) is there twice."""
    return len({u.tobytes() for u in points}) < len(points)


def verdict(
    points: Sequence[Array], values: Sequence[float], stds: Sequence[float] = ()
) -> tuple[bool, int]:
    """Whether repeated values say that there is no noise, and since how many values they do.

    Without a repetition there may be noise; one pair that differs proves it, as does a value that
    states a standard deviation of its own (``stds``, NaN where none is stated).
    """
    stated = (n for n, std in enumerate(stds, start=1) if std == std)
    first = next(stated, None)
    if first is not None:
        return False, first
    seen: dict[bytes, float] = {}
    exact, since = False, 0
    for n, (u, y) in enumerate(zip(points, values, strict=True), start=1):
        key = u.tobytes()
        if key not in seen:
            seen[key] = y
        elif seen[key] != y:
            return False, n if exact else 0
        elif not exact and len(set(seen.values())) == len(seen):
            exact, since = True, n
    return exact, since
