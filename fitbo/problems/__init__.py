"""Test problems: functions with a known domain, minimum and minimisers.

Imports: ``checks``, ``space`` and ``mixture`` (for the array type) only.
Add here: a function and its minimum (a ``Known``, see ``synthetic``), and one line in ``PROBLEMS``.

    problem("hartmann6")                               a family by its name
    problem("ackley", dim=5), problem("ackley5")       the dimension as an argument or a suffix
    problem("gp_draw", dim=3, seed=7, noise_std=0.1)   options of the family, noise
"""

from __future__ import annotations

import re
from typing import Any

from fitbo.checks import nearest, one_of, whole
from fitbo.problems import synthetic
from fitbo.problems.black_box import Family, Problem
from fitbo.problems.gp_draw import make_gp_draw
from fitbo.shelf import Shelf

__all__ = ["PROBLEMS", "Family", "Problem", "problem", "split_name"]

ANY = (1, None)

OWN: dict[str, Family] = {
    "michalewicz": Family(
        "steep valleys, separable; m sets the steepness", synthetic.make_michalewicz, 5, ANY
    ),
    "hartmann6": Family("four Gaussian wells on the 6-cube", synthetic.HARTMANN6, 6, (6, 6)),
    "hartmann3": Family("four Gaussian wells on the 3-cube", synthetic.HARTMANN3, 3, (3, 3)),
    "branin": Family("a curved valley with three equal minima", synthetic.BRANIN, 2, (2, 2)),
    "eggholder": Family("many deep ridges, the minimum on an edge", synthetic.EGGHOLDER, 2, (2, 2)),
    "ackley": Family("a funnel under ripples", synthetic.ACKLEY, 5, ANY),
    "levy": Family("a bowl under waves", synthetic.LEVY, 5, ANY),
    "rosenbrock": Family("a long curved valley", synthetic.ROSENBROCK, 4, (2, None)),
    "rastrigin": Family("a bowl on a lattice of minima, separable", synthetic.RASTRIGIN, 4, ANY),
    "styblinski_tang": Family(
        "2^d wells of a quartic, separable", synthetic.STYBLINSKI_TANG, 4, ANY
    ),
    "six_hump_camel": Family("six minima, two of them global", synthetic.SIX_HUMP_CAMEL, 2, (2, 2)),
    "goldstein_price": Family(
        "the logarithm of Goldstein and Price's polynomial", synthetic.GOLDSTEIN_PRICE, 2, (2, 2)
    ),
    "forrester": Family(
        "one dimension: a global and a local minimum", synthetic.FORRESTER, 1, (1, 1)
    ),
    "gp_draw": Family(
        "a draw from a Gaussian process; its minimum is the lowest found", make_gp_draw, 2, (1, 6)
    ),
}
PROBLEMS = Shelf("fitbo.problems", OWN)


def problem(
    name: str, *, dim: int | None = None, noise_std: float = 0.0, **options: Any
) -> Problem:
    """A problem by the name of its family; the dimension may be a suffix of the name.

    The problem has the name of its family, with the dimension appended where that is free, so that
    ``problem(p.name)`` is p again up to options and noise.
    """
    if dim is not None:
        whole("dim", dim, least=1)
    base, suffix = split_name(name)
    if dim is not None and suffix not in (None, dim):
        raise ValueError(f"{name!r} and dim={dim} disagree; give the dimension once")
    family = PROBLEMS[base]
    dim = dim or (family.dim if suffix is None else suffix)
    low, high = family.dims
    if dim < low or (high is not None and dim > high):
        if not family.free:
            other = base.rstrip("0123456789") + str(dim)
            also = f", or {other!r}" if other in PROBLEMS else ""
            raise ValueError(f"{base} has dimension {low}, got dim={dim}; leave dim out{also}")
        span = f"at least {low}" if high is None else f"{low} to {high}"
        raise ValueError(f"{base} takes dimensions of {span}, got dim={dim}")
    for option in options:
        if option not in family.options:
            known, hint = ", ".join(family.options) or "none", nearest(option, family.options)
            raise ValueError(f"{base} takes the options {known}, got {option!r}{hint}")
    full = f"{base}{dim}" if family.free else base
    return Problem(full, *family.make(dim, **options), noise_std)


def split_name(name: str) -> tuple[str, int | None]:
    """``ackley5`` or ``ackley_5`` -> ackley, 5; the name of a family is never split."""
    found = re.fullmatch(r"(.*?)_?([0-9]{1,6})", str(name), re.DOTALL)
    if found and found[1] in PROBLEMS and name not in PROBLEMS:
        return found[1], int(found[2])
    one_of("problem", name, PROBLEMS)
    return name, None
