"""The scale on which the priors are stated: z = (y - location)/scale.

The standard deviation of y alone is a poor scale when y spans many orders of magnitude: one value
of 1e12 leaves all others at the same z. So

- the scale is the standard deviation, but at most ``CAP`` times the normal-equivalent interquartile
  range (unless that is zero: half of the values are equal), and at least such that the lowest value
  lies within ``CEILING`` scales of the median, because low values are sought; the location is the
  mean, or the median where the cap holds;
- above ``CEILING`` scales the map bends to ``z -> c + log(1 + z - c)``, once differentiable and
  increasing. In a search for minima a value that high says 'not here', and its size is noise.

Below the ceiling the map is affine, so predictions near the minimum return to y's units exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fitbo.checks import finite
from fitbo.mixture import Array, Mixture

CAP = 10.0
CEILING = 5.0
NORMAL_IQR = 1.3489795003921634  # interquartile range of a standard normal
SMALL = 1e-100  # of equal values: beside them a scale of one is no scale
TINY = 1e-306  # of a scale: below it doubles have few digits
ROUNDING = 16 * np.finfo(float).eps  # a spread below this share of |y| is rounding


@dataclass(frozen=True)
class Standardiser:
    """An increasing map of observations to the priors' scale; ``scale > 0``."""

    location: float
    scale: float

    def __post_init__(self) -> None:
        finite("location", self.location)
        finite("scale", self.scale)
        if not self.scale > 0:
            raise ValueError(f"scale must be positive, got {self.scale}")

    @classmethod
    def fit(cls, y: ArrayLike) -> Standardiser:
        """From observations (n,), n >= 1; a scale of one where they are all equal."""
        y = observations(y)
        size = abs(y).max()
        if size == 0:
            return cls(0.0, 1.0)
        unit = y / size  # squares of the largest doubles overflow; those of unit do not
        spread = unit.std()
        if spread <= ROUNDING:
            return cls(float(y[0]), 1.0 if size > SMALL else max(float(size), TINY))
        low, high = np.quantile(unit, [0.25, 0.75])
        middle = np.median(unit)
        robust = CAP * (high - low) / NORMAL_IQR
        if robust > ROUNDING:
            robust = max(robust, (middle - unit.min()) / CEILING)
        capped = robust > ROUNDING and robust < spread
        scale, centre = (robust, middle) if capped else (spread, unit.mean())
        return cls(float(centre * size), max(float(scale * size), TINY))

    def __call__(self, y: ArrayLike) -> Array:
        """Observations to standardised values, any shape."""
        z = np.asarray(y, dtype=np.float64) / self.scale - self.location / self.scale
        return np.where(z > CEILING, CEILING + np.log1p(np.maximum(z - CEILING, 0.0)), z)

    def slope(self, y: ArrayLike) -> Array:
        """dz/dy, any shape: what the standard deviation of a value is multiplied by."""
        z = np.asarray(y, dtype=np.float64) / self.scale - self.location / self.scale
        return 1 / (self.scale * (1 + np.maximum(z - CEILING, 0.0)))

    def inverse(self, z: ArrayLike) -> Array:
        """Standardised values to observations, any shape."""
        z = np.asarray(z, dtype=np.float64)
        bent = CEILING + np.expm1(np.maximum(z - CEILING, 0.0))
        return self.location + self.scale * np.where(z > CEILING, bent, z)

    def restore(self, mixture: Mixture) -> Mixture:
        """A mixture over z as one over y, by the map's affine part: exact below the ceiling.

        Where the square of the scale is no number, variances are the nearest that are.
        """
        if SMALL < self.scale < 1 / SMALL:
            variances = self.scale**2 * mixture.variances
        else:
            kind = np.finfo(np.float64)
            with np.errstate(over="ignore", under="ignore"):
                variances = (self.scale * mixture.variances) * self.scale
            variances = np.clip(variances, kind.tiny, kind.max)
        return Mixture(self.location + self.scale * mixture.means, variances, mixture.weights)


def observations(y: ArrayLike) -> Array:
    """y as a finite float64 array of shape (n,), n >= 1, or an error."""
    array = np.asarray(y, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"y must have shape (n,) with n >= 1, got {array.shape}")
    finite("y", array)
    return array
