import numpy as np
import pytest
from scipy import integrate, stats

from fitbo.surrogate import Prior, default_prior


def test_it_is_the_product_of_normals_on_the_logs():
    prior = default_prior(3)
    log_theta = np.random.default_rng(0).standard_normal((8, 6))
    expected = stats.norm(prior.location, prior.scale).logpdf(log_theta).sum(1)
    np.testing.assert_allclose(prior(log_theta), expected, rtol=1e-12)


@pytest.mark.parametrize("column", range(4))
def test_it_integrates_to_one_in_each_parameter(column):
    """With the others at their medians, where their factor is known."""
    prior = default_prior(1)
    others = np.delete(prior.scale, column)
    at_median = np.prod(1 / (np.sqrt(2 * np.pi) * others))

    def density(value):
        log_theta = prior.location.copy()
        log_theta[column] = value
        return float(np.exp(prior(log_theta[None])[0])) / at_median

    total, _ = integrate.quad(
        density, *(prior.location[column] + 40 * np.array([-1, 1])), limit=200
    )
    assert total == pytest.approx(1, abs=1e-8)


def test_it_integrates_to_one_jointly():
    """By importance sampling from a wider normal: a lost constant would show."""
    rng, d = np.random.default_rng(1), 2
    prior = default_prior(d)
    wide = Prior(prior.location + 0.2, 1.3 * prior.scale)
    draws = wide.sample(rng, 200_000)
    weights = np.exp(prior(draws) - wide(draws))
    assert weights.mean() == pytest.approx(1, abs=5 * weights.std() / np.sqrt(len(draws)))


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
