"""Numeric parameters: a real number, on a grid if it has a step, and an integer.

``when`` is the condition under which one exists (see ``conditions``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import assign
from fitbo.mixture import Array

ON_GRID = 1e-6  # of a step, by which a value may miss the grid
LARGEST_INTEGER = 2**53  # beyond it a double does not hold every integer


@dataclass(frozen=True)
class Real:
    """``low <= x <= high``; with ``log``, uniform in log x, which needs low > 0.

    With ``step`` only ``low, low + step, ...`` up to ``high``, on a linear scale, each value with
    the decimals that low and step have.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None
    when: str | None = None
    width: ClassVar[int] = 1

    def __post_init__(self) -> None:
        low, high = (_number(name, getattr(self, name)) for name in ("low", "high"))
        _check_range(low, high, self.log)
        if not math.isfinite(high - low):
            raise ValueError(f"high - low must be finite, got low={low:g} and high={high:g}")
        assign(self, low=low, high=high)
        check_when(self.when)
        if self.step is not None:
            step = _number("step", self.step)
            if self.log:
                raise ValueError(f"step must be left out with log, got {step:g}")
            if not 0 < step <= high - low:
                most = f"at most high - low = {high - low:g}"
                raise ValueError(f"step must be above 0 and {most}, got {step:g}")
            if (high - low) / step > LARGEST_INTEGER:
                raise ValueError(f"step must leave at most 2^53 values, got {step:g}")
            assign(self, step=step)

    @cached_property
    def grid(self) -> Integer | None:
        """The numbers of the steps from low, if there are steps."""
        if self.step is None:
            return None
        # A little more, so that 0.3 is three steps of 0.1.
        return Integer(0, math.floor((self.high - self.low) / self.step * (1 + 1e-12) + 1e-9))

    @property
    def continuous(self) -> bool:
        return self.step is None

    @property
    def size(self) -> float:
        return math.inf if self.grid is None else self.grid.size

    @property
    def last(self) -> float:
        """The largest value: ``high``, or less than a step below it."""
        return self.high if self.grid is None else float(self._on_grid(self.grid.high))

    @property
    def spacing(self) -> float:
        """The smallest distance between two values in the cube."""
        return 0.0 if self.grid is None else self.grid.spacing

    @property
    def codes(self) -> Array:
        """The values of a grid in the cube, (size, 1)."""
        return _steps(self).codes

    def neighbours(self, C: Array) -> Array:
        """Of a grid, as an integer's: (n, w) -> (n, 4, w)."""
        return _steps(self).neighbours(C)

    def place(self, v: Array) -> Array:
        return v[:, None] if self.grid is None else self.grid.place(v)

    def snap(self, C: Array) -> Array:
        return np.clip(C, 0.0, 1.0) if self.grid is None else self.grid.snap(C)

    def decode(self, C: Array) -> Array:
        if self.grid is not None:
            return self._on_grid(self.grid.decode(C))
        u = C[:, 0]
        if self.log:
            a, b = math.log(self.low), math.log(self.high)
            x = np.where(u <= 0, self.low, np.where(u >= 1, self.high, np.exp(a * (1 - u) + b * u)))
        else:
            x = self.low * (1 - u) + self.high * u
        return np.clip(x, self.low, self.high)  # which it exceeds by rounding only

    def plain(self, x: Any) -> float:
        return float(x) if self.grid is None else float(self.decode(self.encode(x)[None])[0])

    def encode(self, x: Any) -> Array:
        x = _number("it", x)
        if not self.low <= x <= self.high:
            raise ValueError(f"it must lie in [{self.low:g}, {self.high:g}], got {x:g}")
        if self.grid is not None and self.step is not None:
            steps = (x - self.low) / self.step
            if abs(steps - round(steps)) > ON_GRID or round(steps) > self.grid.high:
                near = min(round(steps), self.grid.high)
                raise ValueError(
                    f"it must be one of {self.low:.15g}, {self._on_grid(1):.15g}, ..., "
                    f"{self.last:.15g}, got {x:.15g}: the nearest is {self._on_grid(near):.15g}"
                )
            return self.grid.encode(round(steps))
        if self.log:
            if math.isinf(self.high / self.low):
                a, b = math.log(self.low), math.log(self.high)
                u = (math.log(x) - a) / (b - a)
            else:  # the ratio keeps the digits of a narrow range
                u = math.log(x / self.low) / math.log(self.high / self.low)
        else:
            u = (x - self.low) / (self.high - self.low)
        return np.clip([u], 0.0, 1.0)

    def _on_grid(self, steps: ArrayLike) -> Any:
        """Values so many steps from low, without digits that come of rounding."""
        step = self.step or 0.0
        places = max(_decimals(self.low), _decimals(step))
        return np.round(self.low + step * np.asarray(steps, dtype=np.float64), places)


@dataclass(frozen=True)
class Integer:
    """``low, low + step, ...`` up to ``high``; with ``log``, uniform in log x: low > 0, step 1."""

    low: int
    high: int
    log: bool = False
    step: int = 1
    when: str | None = None
    width: ClassVar[int] = 1
    continuous: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            assign(self, **{name: _integer(name, getattr(self, name))})
        _check_range(self.low, self.high, self.log)
        if self.step < 1:
            raise ValueError(f"step must be at least 1, got {self.step}")
        if self.log and self.step != 1:
            raise ValueError(f"log needs a step of 1, got step={self.step}")
        check_when(self.when)

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


def check_when(when: Any) -> None:
    """An error unless it is the text of a condition, or None."""
    if when is not None and not (isinstance(when, str) and when.strip()):
        raise ValueError(
            f"when must be an expression, such as \"kernel == 'rbf'\", got {when!r:.80}"
        )


def _steps(parameter: Real) -> Integer:
    if parameter.grid is None:
        raise ValueError(f"only a grid has codes and neighbours: give a step, got {parameter}")
    return parameter.grid


def _decimals(value: float) -> int:
    """Digits after the point of a number as it is written."""
    exponent = Decimal(repr(value)).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


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
