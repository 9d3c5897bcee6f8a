"""The entropy of Gaussian mixtures, by any of eight methods or by your own function.

    backend(mixture)                  -> H in nats, (...,)
    backend.value_and_grad(mixture)   -> H, dH/dmeans, dH/dvariances

Imports: ``checks``, ``mixture`` and ``maxent`` only.
Add here: one file per method, and one line in ``BACKENDS``.
"""

from __future__ import annotations

from collections.abc import Callable

from fitbo.checks import one_of
from fitbo.entropy.custom import Custom
from fitbo.entropy.huber import Huber
from fitbo.entropy.meme import MEMe, MEMeC, MEMeInfo, MEMeL
from fitbo.entropy.moment_matching import MM
from fitbo.entropy.monte_carlo import MC
from fitbo.entropy.protocol import Entropy
from fitbo.entropy.quadrature import Quad
from fitbo.entropy.vub import VUB
from fitbo.mixture import Array, Mixture
from fitbo.shelf import Shelf

BACKENDS: Shelf[Callable[..., Entropy]] = Shelf(
    "fitbo.entropies",
    {
        "quad": Quad,
        "mm": MM,
        "mc": MC,
        "vub": VUB,
        "huber": Huber,
        "meme": MEMe,
        "memel": MEMeL,
        "memec": MEMeC,
    },
)


def backend(entropy: str | Entropy | Callable[[Mixture], Array]) -> Entropy:
    """A backend from its name, from itself, or from any function of a mixture."""
    if isinstance(entropy, str):
        one_of("entropy", entropy, BACKENDS)
        return BACKENDS[entropy]()
    if isinstance(entropy, type) or not callable(entropy):
        raise ValueError(
            f"entropy must be a name or a callable of a mixture, got {entropy!r}; "
            f"the names are {', '.join(BACKENDS)}"
        )
    return entropy if isinstance(entropy, Entropy) else Custom(entropy)


__all__ = [
    "BACKENDS",
    "MC",
    "MM",
    "VUB",
    "Custom",
    "Entropy",
    "Huber",
    "MEMe",
    "MEMeC",
    "MEMeInfo",
    "MEMeL",
    "Quad",
    "backend",
]
