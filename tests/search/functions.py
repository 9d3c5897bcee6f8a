"""Functions of points of a cube, as the search takes them."""

from __future__ import annotations

import numpy as np


class Function:
    """f and its gradient, with every point ever asked for."""

    def __init__(self, f, g=None):
        self.f, self.g, self.seen = f, g, []

    def __call__(self, X):
        self.seen.append(X.copy())
        return self.f(X)

    def value_and_grad(self, X):
        self.seen.append(X.copy())
        return self.f(X), self.g(X)

    @property
    def points(self):
        return np.concatenate(self.seen)
