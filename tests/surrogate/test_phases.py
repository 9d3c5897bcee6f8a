"""Cosines and sines against numpy's, and what would betray a wrong quarter turn."""

from __future__ import annotations

import numpy as np
import pytest

from fitbo.surrogate.phases import CACHED, cos_sin


@pytest.mark.parametrize("scale", [1e-12, 1.0, 40.0, 1e4])
def test_they_are_numpys_to_the_rounding_of_the_angle(scale: float) -> None:
    x = scale * np.random.default_rng(0).standard_normal((3, CACHED // 2 + 7))
    cos, sin = cos_sin(x)
    rounding = 4 * np.finfo(float).eps * np.maximum(1, abs(x))
    assert (abs(cos - np.cos(x)) <= rounding).all()
    assert (abs(sin - np.sin(x)) <= rounding).all()


def test_every_quarter_turn_has_its_signs() -> None:
    x = 0.5 * np.pi * np.arange(-9, 10)
    cos, sin = cos_sin(x)
    np.testing.assert_allclose(cos, np.cos(x), atol=1e-14)
    np.testing.assert_allclose(sin, np.sin(x), atol=1e-14)


def test_small_angles_keep_their_relative_accuracy() -> None:
    x = np.array([0.0, 1e-300, -1e-20, 1e-9])
    np.testing.assert_allclose(cos_sin(x)[1], x, rtol=1e-15)


def test_no_angles() -> None:
    cos, sin = cos_sin(np.empty((2, 0)))
    assert cos.shape == sin.shape == (2, 0)
