"""Noise that is known: of all values, of single ones, of several at a point."""

from __future__ import annotations

import numpy as np
import pytest

from fitbo import Integer, Real, Settings, Study
from fitbo.inference.ledger import averaged
from fitbo.inference.pending import believing
from fitbo.inference.propose import by_knowledge

QUICK = {"n_samples": 20, "n_initial": 4, "max_burn_in": 20}


def told(study: Study, n: int = 14, noise: float = 0.0, **more: object) -> Study:
    rng = np.random.default_rng(1)
    for x in rng.random((n, 2)):
        y = float(np.sin(5 * x[0]) + x[1] ** 2 + noise * rng.standard_normal())
        study.tell(x, y, **more)
    return study


def study(**settings: object) -> Study:
    return Study([(0, 1), (0, 1)], Settings(**(QUICK | settings)))


def test_several_values_are_their_mean_and_its_standard_error() -> None:
    mean, error = averaged([1.0, 2.0, 4.0])
    assert mean == pytest.approx(7 / 3)
    assert error == pytest.approx(np.std([1, 2, 4], ddof=1) / 3**0.5)
    assert averaged([1.0, 2.0, 4.0], noise_std=0.6) == pytest.approx((7 / 3, 0.6 / 3**0.5))
    assert averaged([1.0, 1.0], noise_std=0.6) == pytest.approx((1.0, 0.6 / 2**0.5))


@pytest.mark.parametrize("y", [2.0, [2.0], [2.0, 2.0], np.float64(2.0)])
def test_one_value_and_equal_ones_say_nothing_of_the_noise(y: object) -> None:
    assert averaged(y) == (2.0, None)


@pytest.mark.parametrize("noise_std", [0.05, 0.4])
def test_a_known_level_is_what_every_value_states(noise_std: float) -> None:
    fitted = told(study(noise_std=noise_std)).fit()
    expected = np.square(noise_std / fitted.scale.scale)
    assert fitted.surrogate.stated == pytest.approx(expected)
    assert fitted.surrogate.theta.noise_variance.max() < 1e-3 * expected  # nothing is inferred
    assert fitted.surrogate.noise_variance == pytest.approx(expected, rel=1e-3)


def test_a_value_of_its_own_std_has_that_instead() -> None:
    ours = told(study(noise_std=0.1), 6)
    ours.tell([0.5, 0.5], 1.0, std=0.3)
    ours.tell([0.6, 0.5], [1.0, 1.5, 1.3, 1.2])
    fitted = ours.fit()
    found = np.sqrt(fitted.surrogate.stated) * fitted.scale.scale
    assert found == pytest.approx([*[0.1] * 6, 0.3, 0.05])


def test_stds_survive_bordering_the_region_and_a_rebuilt_study() -> None:
    """To the last bit: the same values told at once, and one by one with fits between."""
    ours, again = study(local=1), study(local=1)
    points = np.random.default_rng(2).random((9, 2))
    for i, x in enumerate(points):
        std = 0.1 * i if i % 2 else None
        ours.tell(x, float(x.sum()), std=std)
        again.tell(x, float(x.sum()), std=std)
        if i == 6:
            ours.fit()
            again.ensemble = ours.ensemble
    assert ours.ask().tolist() == again.ask().tolist()
    model, _ = ours._local()
    own = np.sqrt(model.surrogate.stated) * model.scale.scale
    assert own[1::2] == pytest.approx(0.1 * np.arange(1, 9, 2))
    assert (own[::2] == 0).all()


def test_pending_points_are_believed_with_the_known_level() -> None:
    ours = told(study(noise_std=0.2), 8)
    points = ours.ask(3)
    assert len({tuple(x) for x in points}) == 3


def test_the_inferred_level_is_near_the_truth() -> None:
    ours = told(study(n_samples=60), 60, noise=0.3)
    assert 0.15 < ours.noise_level() < 0.5
    assert told(study(noise_std=0.2)).noise_level() == 0.2
    assert told(study(deterministic=True)).noise_level() == 0.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise_std": 0.0}, "noise_std must be positive"),
        ({"noise_std": -1.0}, "noise_std must be positive"),
        ({"noise_std": np.nan}, "noise_std must be finite"),
        ({"noise_std": "much"}, "noise_std must be finite"),
        ({"noise_std": 0.1, "deterministic": True}, "left out if deterministic"),
    ],
)
def test_a_bad_level_is_one_sentence(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**settings)


@pytest.mark.parametrize(
    ("y", "std", "message"),
    [
        (1.0, -0.1, "std must be finite and at least 0"),
        (1.0, np.inf, "std must be finite"),
        (1.0, "wide", "std must be finite"),
        ([1.0, 2.0], 0.1, "std must be left out beside several"),
        ([], None, "y must be a number, or a list"),
        ([[1.0]], None, "y must be a number, or a list"),
        ([1.0, np.nan], None, "y must be finite"),
        (["a", "b"], None, "y must be a number, or a list"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_entered(
    y: object, std: object, message: str
) -> None:
    ours = study()
    (x,) = ours.ask()
    with pytest.raises(ValueError, match=message):
        ours.tell(x, y, std=std)
    assert len(ours.y) == 0
    assert len(ours.pending) == 1


@pytest.mark.parametrize(("y", "std"), [(1.0, 0.1), ([1.0, 2.0], None)])
def test_a_deterministic_study_refuses_noise(y: object, std: float | None) -> None:
    ours = study(deterministic=True)
    with pytest.raises(ValueError, match="deterministic study must be one number without a std"):
        ours.tell([0.5, 0.5], y, std=std)
    ours.tell([0.5, 0.5], [1.0, 1.0])
    assert ours.y.tolist() == [1.0]


@pytest.mark.parametrize(
    ("settings", "noise", "knows"),
    [
        ({"deterministic": False}, 0.2, True),
        ({"noise_std": 0.2}, 0.2, True),
        ({"deterministic": True}, 0.0, False),
        ({"deterministic": False, "acquisition": "logei"}, 0.2, False),
        ({"deterministic": False, "surrogate": "gpy"}, 0.2, False),
    ],
)
def test_with_noise_what_is_recommended_counts(
    settings: dict[str, object], noise: float, knows: bool
) -> None:
    """The knowledge gradient, and a kernel of sampled smoothness where none other is named."""
    ours = told(study(**settings), noise=noise)
    assert by_knowledge(ours.fit(), ours.acting, ours.space) == knows
    assert (ours.acting.kernel_name == "smooth") == knows
    assert ours.settings.kernel is None


def test_noise_that_is_not_there_is_not_reckoned_with() -> None:
    ours = told(study(deterministic=False, noise_std=1e-6))
    assert not by_knowledge(ours.fit(), ours.acting, ours.space)


def test_other_kernels_stay_and_integers_are_as_before() -> None:
    assert study(deterministic=False, kernel="matern32").acting.kernel_name == "matern32"
    mixed = Study([Integer(0, 9), Real(0, 1)], Settings(**QUICK, deterministic=False))
    assert mixed.acting.kernel_name == "additive"


def test_the_recommendation_gains_from_values_on_the_slopes() -> None:
    """A bowl with noise: values are not all sought at its bottom, which is known better for it."""
    ours, rng = study(noise_std=0.3, n_samples=50, seed=3), np.random.default_rng(5)
    for _ in range(24):
        x = ours.ask()[0]
        ours.tell(x, float(4 * np.square(x - 0.4).sum() + 0.3 * rng.standard_normal()))
    distance = np.linalg.norm(np.array(ours.X)[12:] - 0.4, axis=1)
    assert np.median(distance) > 0.1  # where f is 0.04 above its minimum, an eighth of the noise
    assert np.linalg.norm(ours.recommend().x - 0.4) < np.median(distance)


def test_what_remains_counts_from_what_would_be_recommended() -> None:
    """Values on the slopes lie above the bottom, which is known well enough."""
    ours, rng = study(noise_std=0.05, n_samples=50, seed=1), np.random.default_rng(2)
    for angle in np.linspace(0, 2 * np.pi, 40, endpoint=False):
        x = 0.5 + 0.35 * np.array([np.cos(angle), np.sin(angle)])
        ours.tell(x, float(4 * np.square(x - 0.45).sum() + 0.05 * rng.standard_normal()))
    lowest = ours.fit().surrogate.predict(np.array(ours._cube)).mean.min() * ours.fit().scale.scale
    recommended = ours.recommend().mean - ours.fit().scale.location
    assert ours.remaining() < 0.5 * (lowest - recommended)


def test_pending_points_are_believed_with_the_noise_that_the_others_state() -> None:
    def certain(**how: float) -> float:
        ours = study(noise_std=how.get("noise_std"))
        rng = np.random.default_rng(2)
        for x in rng.random((12, 2)):
            value = float(x.sum() + 0.3 * rng.standard_normal())
            ours.tell(x, value, **({} if how else {"std": 0.3}))
        at = np.array([[0.31, 0.47]])
        return float(
            believing(ours.fit(), at, ours.acting, np.ones(1, bool))
            .surrogate.predict(at)
            .variance[0]
        )

    assert 0.5 < certain() / certain(noise_std=0.3) < 2


def test_noise_beside_what_values_state_is_what_is_left() -> None:
    ours = Study([(0, 1)] * 2, Settings(n_samples=20, max_burn_in=20, deterministic=False))
    rng = np.random.default_rng(0)
    for x in rng.random((24, 2)):
        ours.tell(x, float(10 * ((x - 0.3) ** 2).sum() + 0.3 * rng.standard_normal()), std=0.3)
    assert ours.noise_level() < 0.2


def test_values_too_large_to_average_are_refused() -> None:
    ours = Study([(0, 1)], Settings(n_samples=20))
    with pytest.raises(ValueError, match="several y must be at most 1e"):
        ours.tell([0.5], [1e308, 1.1e308])
    with pytest.raises(ValueError, match="std must be at most 1e"):
        ours.tell([0.5], 1.0, std=1e200)
    assert not len(ours.y)
