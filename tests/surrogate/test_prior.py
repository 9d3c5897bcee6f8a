import numpy as np
import pytest
from scipy import stats

from fitbo.surrogate import Prior, default_prior


def test_it_is_the_product_of_normals_on_the_logs():
    prior = default_prior(3)
    log_theta = np.random.default_rng(0).standard_normal((8, 6))
    expected = stats.norm(prior.location, prior.scale).logpdf(log_theta).sum(1)
    np.testing.assert_allclose(prior(log_theta), expected, rtol=1e-12)


def test_the_table():
    """Medians and deviations as the module's docstring has them, at sqrt(d)/2 = 1."""
    prior = default_prior(4, n_shares=1)
    medians = [1, 1, 1, 1, 0.5, np.exp(-9), 0.3, 1]
    np.testing.assert_allclose(np.exp(prior.location), medians, rtol=1e-12)
    np.testing.assert_array_equal(prior.scale, [1.25, 1.25, 1.25, 1.25, 1, 3, 2, 2])


def test_draws_follow_it():
    prior = default_prior(2)
    draws = prior.sample(np.random.default_rng(2), 4000)
    for column, (location, scale) in enumerate(zip(prior.location, prior.scale, strict=True)):
        assert stats.kstest(draws[:, column], stats.norm(location, scale).cdf).pvalue > 1e-3


def test_lengthscales_grow_with_the_root_of_the_dimension():
    locations = [default_prior(d).location[0] for d in (1, 4, 16)]
    np.testing.assert_allclose(np.diff(locations), np.log(2))


def test_it_refuses_what_it_cannot_be():
    with pytest.raises(ValueError, match="d must be"):
        default_prior(0)
    with pytest.raises(ValueError, match="positive"):
        Prior(np.zeros(2), np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="share a shape"):
        Prior(np.zeros(2), np.ones(3))
    with pytest.raises(ValueError, match=r"\(M, 4\)"):
        default_prior(1)(np.zeros((2, 5)))
