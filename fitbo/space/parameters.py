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
from numpy.typing import ArrayLike

from fitbo.checks import assign
from fitbo.mixture import Array

HOT = math.sqrt(0.5)
LARGEST_INTEGER = 2**53  # beyond it a double does not hold every integer


@dataclass(frozen=True)
class Real:
    """``low <= x <= high``; with ``log``, uniform in log x, which needs low > 0."""

    low: float
    high: float
    log: bool = False
    width: ClassVar[int] = 1
    size: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        low, high = (_number(name, getattr(self, name)) for name in ("low", "high"))
        _check_range(low, high, self.log)
        if not math.isfinite(high - low):
            raise ValueError(f"high - low must be finite, got low={low:g} and high={high:g}")
        assign(self, low=low, high=high)

    def place(self, v: Array) -> Array:
        return v[:, None]

    def snap(self, C: Array) -> Array:
        return np.clip(C, 0.0, 1.0)

    def decode(self, C: Array) -> Array:
        u = C[:, 0]
        if self.log:
            a, b = math.log(self.low), math.log(self.high)
            x = np.where(u <= 0, self.low, np.where(u >= 1, self.high, np.exp(a * (1 - u) + b * u)))
        else:
            x = self.low * (1 - u) + self.high * u
        return np.clip(x, self.low, self.high)  # which it exceeds by rounding only

    def plain(self, x: Any) -> float:
        return float(x)

    def encode(self, x: Any) -> Array:
        x = _number("it", x)
        if not self.low <= x <= self.high:
            raise ValueError(f"it must lie in [{self.low:g}, {self.high:g}], got {x:g}")
        if self.log:
            if math.isinf(self.high / self.low):
                a, b = math.log(self.low), math.log(self.high)
                u = (math.log(x) - a) / (b - a)
            else:  # the ratio keeps the digits of a narrow range
                u = math.log(x / self.low) / math.log(self.high / self.low)
        else:
            u = (x - self.low) / (self.high - self.low)
        return np.clip([u], 0.0, 1.0)


@dataclass(frozen=True)
class Integer:
    """``low, low + step, ...`` up to ``high``; with ``log``, uniform in log x: low > 0, step 1."""

    low: int
    high: int
    log: bool = False
    step: int = 1
    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            assign(self, **{name: _integer(name, getattr(self, name))})
        _check_range(self.low, self.high, self.log)
        if self.step < 1:
            raise ValueError(f"step must be at least 1, got {self.step}")
        if self.log and self.step != 1:
            raise ValueError(f"log needs a step of 1, got step={self.step}")

    @property
    def size(self) -> int:
        return (self.high - self.low) // self.step + 1

    @property
    def last(self) -> int:
        """The largest value: ``high``, or less than a step below it."""
        return self.low + self.step * (self.size - 1)

    @property
    def spacing(self) -> float:
        """The smallest distance between two values in the cube: that of the last two."""
        ends = self._code([self.last - self.step, self.last])
        return float(ends[1] - ends[0]) if self.size > 1 else math.inf

    @property
    def codes(self) -> Array:
        """The values in the cube, (size, 1)."""
        return self._code(self.low + self.step * np.arange(self.size))[:, None]

    def place(self, v: Array) -> Array:
        if self.log:
            a, b = math.log(self.low - 0.5), math.log(self.high + 0.5)
            return self._code(np.rint(np.exp(a + (b - a) * v)))[:, None]
        return self._code(self.low + self.step * np.floor(v * self.size))[:, None]

    def snap(self, C: Array) -> Array:
        return self._code(self.decode(C))[:, None]

    def decode(self, C: Array) -> Array:
        u = np.clip(C[:, 0], 0.0, 1.0)
        if self.log:
            x = np.rint(self.low * (self.high / self.low) ** u)
        else:
            x = self.low + self.step * np.rint(u * (self.size - 1))
        return np.clip(x, self.low, self.last).astype(np.int64)

    def plain(self, x: Any) -> int:
        return int(x)

    def encode(self, x: Any) -> Array:
        x = _integer("it", x)
        if not self.low <= x <= self.last or (x - self.low) % self.step:
            by = f" in steps of {self.step}" if self.step > 1 else ""
            raise ValueError(f"it must be an integer from {self.low} to {self.last}{by}, got {x}")
        return self._code(np.array([x]))

    def neighbours(self, C: Array) -> Array:
        """One step down and up, and a twelfth of all steps down and up: (n, w) -> (n, 4, w)."""
        strides = np.array([-1, 1, -max(2, self.size // 12), max(2, self.size // 12)])
        return self._code(self.decode(C)[:, None] + self.step * strides)[:, :, None]

    def _code(self, x: ArrayLike) -> Array:
        """Values to the cube; done here only, so that equal values have equal codes."""
        x = np.clip(np.asarray(x, dtype=np.float64), self.low, self.last)
        if self.size == 1:
            return np.zeros(x.shape)
        if self.log:
            return np.clip(np.log(x / self.low) / math.log(self.high / self.low), 0.0, 1.0)
        return (x - self.low) / (self.last - self.low)


@dataclass(frozen=True)
class Categorical:
    """One of ``choices``, which have no order: strings, numbers, booleans or None."""

    choices: tuple[Any, ...]

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


def _check_range(low: float, high: float, log: bool) -> None:
    if not low < high:
        raise ValueError(f"low must be below high, got low={low:.15g} and high={high:.15g}")
    if log and low <= 0:
        raise ValueError(f"log needs low > 0, got low={low:.15g}")


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool | np.bool_ | str | bytes):
        raise ValueError(f"{name} must be a number, got {value!r:.80}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a number, got {value!r:.80}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    return number


def _integer(name: str, value: Any) -> int:
    number = _number(name, value)
    if number != math.floor(number):
        raise ValueError(f"{name} must be an integer, got {value!r:.80}")
    if abs(number) > LARGEST_INTEGER:
        raise ValueError(f"{name} must not exceed 2^53, got {value!r:.80}")
    return int(number)
