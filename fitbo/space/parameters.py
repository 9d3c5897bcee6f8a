"""The kinds of parameter: a real number, an integer, one of some choices; named as in Optuna.

Each kind knows its ``width`` w, the number of its coordinates in the cube that the model sees, and
its ``size``, the number of its values. With n points,

    place(v)     (n,) in [0, 1], uniform   ->  (n, w), values of equal (or log-equal) probability
    snap(C)      (n, w) in the cube        ->  (n, w), the code of the nearest value
    decode(C)    (n, w) in the cube        ->  (n,) values
    encode(x)    one value                 ->  (w,), or a ``ValueError`` that says what was expected
    plain(x)     one value, of any type    ->  a float, an int, or the choice itself

``encode`` after ``decode`` is ``snap``: what is evaluated is what is modelled.

**Scale of categories.** K choices are the vertices ``HOT e_k`` of a simplex, HOT = 1/sqrt(2). Two
choices are then ``sqrt(2) HOT = 1`` apart, as the two ends of a real parameter are, so one prior on
lengthscales suits both. Every coordinate has its own lengthscale, so the model can learn that one
choice is unlike the rest: ``r^2`` between choices j, k is ``(1/l_j^2 + 1/l_k^2)/2``. Two choices
need one coordinate only, 0 or 1, at the same distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fitbo.checks import assign
from fitbo.mixture import Array
from fitbo.space.numeric import Integer, Real, check_when

HOT = math.sqrt(0.5)


@dataclass(frozen=True)
class Categorical:
    """One of ``choices``, which have no order: strings, numbers, booleans or None."""

    choices: tuple[Any, ...]
    when: str | None = None
    continuous: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.choices, str) or not hasattr(self.choices, "__iter__"):
            raise ValueError(f"choices must be a list, got {self.choices!r:.80}")
        choices = tuple(self.choices)
        if not choices:
            raise ValueError("choices must not be empty")
        for i, choice in enumerate(choices):
            if choice is not None and not isinstance(choice, str | bool | int | float):
                raise ValueError(
                    f"choices must be strings, numbers, booleans or None, got {choice!r:.80}: "
                    f"use a name for it, and look the name up in the objective"
                )
            if isinstance(choice, float) and not math.isfinite(choice):
                raise ValueError(f"choices must be finite, got {choice}")
            if any(_same(choice, other) for other in choices[:i]):
                raise ValueError(f"choices must differ, got {choice!r} twice")
        check_when(self.when)
        assign(self, choices=choices)

    @property
    def size(self) -> int:
        return len(self.choices)

    @property
    def width(self) -> int:
        return self.size if self.size > 2 else 1

    @property
    def codes(self) -> Array:
        """The choices in the cube, (K, w)."""
        return HOT * np.eye(self.size) if self.size > 2 else np.arange(float(self.size))[:, None]

    def place(self, v: Array) -> Array:
        return self.codes[np.minimum((v * self.size).astype(np.intp), self.size - 1)]

    def snap(self, C: Array) -> Array:
        return self.codes[self._which(C)]

    def decode(self, C: Array) -> np.ndarray:
        column = np.empty(len(C), dtype=object)
        column[:] = [self.choices[k] for k in self._which(C)]
        return column

    def plain(self, x: Any) -> Any:
        return self.choices[self._index(x)]

    def encode(self, x: Any) -> Array:
        return self.codes[self._index(x)].copy()

    def neighbours(self, C: Array) -> Array:
        """Every choice: (n, w) -> (n, K, w)."""
        return np.broadcast_to(self.codes, (len(C), *self.codes.shape))

    def _index(self, x: Any) -> int:
        for k, choice in enumerate(self.choices):
            if _same(x, choice):
                return k
        known = ", ".join(repr(choice) for choice in self.choices)
        raise ValueError(f"it must be one of {known:.200}, got {x!r:.80}")

    def _which(self, C: Array) -> np.ndarray:
        if self.size > 2:
            return C.argmax(1)
        return (C[:, 0] >= 0.5).astype(np.intp) if self.size == 2 else np.zeros(len(C), np.intp)


Parameter = Real | Integer | Categorical


def _same(a: Any, b: Any) -> bool:
    """Whether they are equal, where True differs from 1, and 1 does not differ from 1.0."""
    if isinstance(a, np.generic):
        a = a.item()
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
