"""What is said about functions on a space, and about its end."""

from __future__ import annotations

from typing import Protocol

from fitbo.mixture import Array


class Differentiable(Protocol):
    """A function of points of the cube, (B, dim) -> (B,); with its gradient, (B,) and (B, dim)."""

    def __call__(self, U: Array) -> Array: ...

    def value_and_grad(self, U: Array) -> tuple[Array, Array]: ...


class Exhausted(Exception):
    """Every point of a finite space has been asked for: the study ends with this message."""
