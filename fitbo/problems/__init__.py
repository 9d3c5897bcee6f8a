"""Test problems: functions with a known domain, minimum and minimisers.

    problem("hartmann6")                               a family by its name
    problem("ackley", dim=5), problem("ackley5")       the dimension as argument or as suffix
    problem("gp_draw", dim=3, seed=7, noise_std=0.1)   options of the family, noise

A new family is one function and its maker, and one line in ``PROBLEMS``.
"""

from __future__ import annotations

import re
from typing import Any

from fitbo.checks import nearest, whole
from fitbo.problems.black_box import Family, Problem
from fitbo.problems.gp_draw import make_gp_draw
from fitbo.problems.synthetic import (
    make_ackley,
    make_branin,
    make_eggholder,
    make_forrester,
    make_goldstein_price,
    make_hartmann3,
    make_hartmann6,
    make_levy,
    make_michalewicz,
    make_rastrigin,
    make_rosenbrock,
    make_six_hump_camel,
    make_styblinski_tang,
)

ANY = (1, None)

PROBLEMS: dict[str, Family] = {
    "michalewicz": Family(
        "steep valleys between plateaux, separable; m sets the steepness",
        make_michalewicz,
        5,
        ANY,
        {"m": 10},
    ),
    "hartmann6": Family("four Gaussian wells on the 6-cube", make_hartmann6, 6, (6, 6)),
    "hartmann3": Family("four Gaussian wells on the 3-cube", make_hartmann3, 3, (3, 3)),
    "branin": Family("a curved valley with three equal minima", make_branin, 2, (2, 2)),
    "eggholder": Family("many deep ridges, the minimum on an edge", make_eggholder, 2, (2, 2)),
    "ackley": Family("a funnel under ripples", make_ackley, 5, ANY),
    "levy": Family("a bowl under waves", make_levy, 5, ANY),
    "rosenbrock": Family("a long curved valley", make_rosenbrock, 4, (2, None)),
    "rastrigin": Family("a bowl on a lattice of minima, separable", make_rastrigin, 4, ANY),
    "styblinski_tang": Family("2^d wells of a quartic, separable", make_styblinski_tang, 4, ANY),
    "six_hump_camel": Family("six minima, two of them global", make_six_hump_camel, 2, (2, 2)),
    "goldstein_price": Family(
        "the logarithm of Goldstein and Price's polynomial", make_goldstein_price, 2, (2, 2)
    ),
    "forrester": Family("one dimension: a global and a local minimum", make_forrester, 1, (1, 1)),
    "gp_draw": Family(
        "a draw from a Gaussian-process prior; its minimum is the lowest found",
        make_gp_draw,
        2,
        (1, 6),
        {"seed": 0, "lengthscale": 0.3, "kernel": "matern52"},
    ),
}


def problem(
    name: str, *, dim: int | None = None, noise_std: float = 0.0, **options: Any
) -> Problem:
    """A problem by the name of its family; the dimension may be a suffix of the name.

    The problem is named after its family, with the dimension appended where that is free, so that
    ``problem(p.name)`` is p again up to options and noise.
    """
    family_name, dim = _family(name, dim)
    family = PROBLEMS[family_name]
    for option in options:
        if option not in family.options:
            known = ", ".join(family.options) or "none"
            raise ValueError(
                f"{family_name} takes the options {known}, got {option!r}"
                + nearest(option, family.options)
            )
    full = f"{family_name}{dim}" if family.free else family_name
    fun, bounds, minimum, minimisers = family.make(dim, **options)
    return Problem(full, fun, bounds, minimum, minimisers, noise_std)  # type: ignore[arg-type]


def _family(name: str, dim: int | None) -> tuple[str, int]:
    """The family and the dimension that a name and an optional dimension ask for."""
    if not isinstance(name, str):
        raise ValueError(f"problem must be a name, got {name!r}")
    if dim is not None:
        whole("dim", dim, least=1)
    base, asked = name, dim
    if name not in PROBLEMS:
        stem, digits = re.fullmatch(r"(.*?)_?(\d*)", name, re.ASCII | re.DOTALL).groups()  # type: ignore[union-attr]
        if stem not in PROBLEMS or not 1 <= len(digits) <= 6:
            raise ValueError(
                f"problem must be one of {', '.join(PROBLEMS)}, got {name!r}"
                + nearest(name, PROBLEMS)
            )
        base, asked = stem, int(digits)
        if dim is not None and dim != asked:
            raise ValueError(f"{name!r} and dim={dim} disagree; give the dimension once")
    family = PROBLEMS[base]
    if asked is None:
        return base, family.dim
    if not family.allows(asked):
        low, high = family.dims
        if not family.free:
            near = [other for other in PROBLEMS if other == base.rstrip("0123456789") + str(asked)]
            also = f", or {near[0]!r}" if near else ""
            raise ValueError(f"{base} has dimension {low}, got dim={asked}; leave dim out{also}")
        span = f"at least {low}" if high is None else f"{low} to {high}"
        raise ValueError(f"{base} takes dimensions of {span}, got dim={asked}")
    return base, asked


__all__ = ["PROBLEMS", "Family", "Problem", "problem"]
