"""One thread for the linear algebra of a study, and numpy's own settings for its arithmetic.

Its matrices are small and come in stacks: several threads spend longer meeting than multiplying,
and parallel studies would share the cores twice over. And a user's ``np.seterr(all="raise")`` is
meant for the objective: here an exponential may well be zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with BLAS held to one thread, and numpy warning by default, while it runs."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        usual = np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
        with usual, _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited


@cache
def _controller() -> Any:
    """Made once: it looks through every library loaded, which takes longer than to set them."""
    import scipy.linalg  # noqa: F401  (so that its own BLAS is among those found)
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()
