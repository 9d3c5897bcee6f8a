"""One thread for the linear algebra of a study, and numpy's default handling of its errors.

Its matrices are small and come in stacks: several threads would spend more time on synchronisation
than on products, and parallel studies would compete for the cores. And a user's
``np.seterr(all="raise")`` is meant for the objective: here an exponential may underflow to zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The function, run with BLAS limited to one thread and numpy's default error handling."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        usual = np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
        with usual, _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited


@cache
def _controller() -> Any:
    """Made once: to inspect every loaded library takes longer than to set its threads."""
    import scipy.linalg  # noqa: F401  (so that its own BLAS is among those found)
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()
