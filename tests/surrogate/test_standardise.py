import numpy as np
import pytest
from numpy.testing import assert_allclose

from fitbo import Mixture
from fitbo.surrogate import Standardiser
from fitbo.surrogate.standardise import CEILING

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1.0, 1e6, 1e150, 1e300])
def test_ordinary_data_get_mean_zero_and_deviation_one(scale):
    y = scale * (3 + RNG.standard_normal(50))
    z = Standardiser.fit(y)(y)
    assert z.mean() == pytest.approx(0, abs=1e-9)
    assert z.std() == pytest.approx(1)


@pytest.mark.parametrize("y", [[3.0], [0.0, 0.0], [1e300] * 5, [0.1] * 7, [-2.0, -2.0 - 4e-16]])
def test_constant_data_are_zero_and_not_amplified_rounding(y):
    z = Standardiser.fit(y)(y)
    np.testing.assert_allclose(z, 0, atol=1e-14)


def test_one_outlier_does_not_flatten_the_rest():
    y = np.append(RNG.standard_normal(30), 1e12)
    z = Standardiser.fit(y)(y)
    assert 0.05 < z[:30].std() < 1
    assert CEILING < z[30] < 40


def test_one_low_value_is_not_sent_away():
    """On a background that is nearly flat: it is what is sought, and priors must reach it."""
    y = np.append(1e-5 * RNG.standard_normal(12), -1.0)
    z = Standardiser.fit(y)(y)
    assert z[:12].std() > 1e-6
    assert z.min() >= -CEILING - 1e-9


def test_twelve_orders_of_magnitude_stay_ordered_and_bounded():
    y = np.logspace(-6, 6, 40)
    z = Standardiser.fit(y)(y)
    assert (np.diff(z) > 0).all()
    assert abs(z).max() < 20


def test_half_equal_values_fall_back_to_the_deviation():
    y = np.array([0.0] * 8 + [1.0, 5.0])
    assert Standardiser.fit(y).scale == pytest.approx(y.std())


def test_the_inverse_returns_the_observations():
    y = np.append(RNG.standard_normal(30), [50.0, 1e5])
    standardiser = Standardiser.fit(y)
    np.testing.assert_allclose(standardiser.inverse(standardiser(y)), y, rtol=1e-9)


def test_the_map_is_smooth_at_the_ceiling():
    standardiser, step = Standardiser(0.0, 1.0), 1e-6
    below, at, above = standardiser([CEILING - step, CEILING, CEILING + step])
    assert (above - at) / (at - below) == pytest.approx(1, abs=1e-5)


def test_a_mixture_returns_to_the_units_of_y():
    standardiser = Standardiser(2.0, 3.0)
    restored = standardiser.restore(Mixture([[0.0, 1.0]], [[1.0, 4.0]]))
    np.testing.assert_allclose(restored.means, [[2.0, 5.0]])
    np.testing.assert_allclose(restored.variances, [[9.0, 36.0]])


@pytest.mark.parametrize(
    ("y", "match"), [([], "shape"), ([[1.0]], "shape"), ([np.nan], "finite"), ([np.inf], "finite")]
)
def test_bad_observations_are_named(y, match):
    with pytest.raises(ValueError, match=match):
        Standardiser.fit(y)


def test_a_scale_must_be_positive():
    with pytest.raises(ValueError, match="positive"):
        Standardiser(0.0, 0.0)


@pytest.mark.parametrize("size", [1e300, 1e160, 1e-160, 1e-300])
def test_values_of_any_size_keep_their_differences(size: float) -> None:
    """Their means return to y's units; variances are the nearest numbers there are."""
    y = size * np.array([0.1, 0.4, 0.2, 0.9])
    scale = Standardiser.fit(y)
    z = scale(y)
    assert_allclose(z, Standardiser.fit(y / size)(y / size), rtol=1e-12, atol=1e-14)
    restored = scale.restore(Mixture(z[:, None], np.ones((4, 1))))
    assert_allclose(restored.mean, y, rtol=1e-12)
    assert np.isfinite(restored.variance).all()
    assert (restored.variance > 0).all()


def test_the_smallest_doubles_have_a_scale() -> None:
    """0 and 5e-324 ended a search: their scale was rounded to zero."""
    assert np.isfinite(Standardiser.fit([0.0, 5e-324])([0.0, 5e-324])).all()
