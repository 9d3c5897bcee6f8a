"""Posterior samples by an affine-invariant ensemble [1], with diagnostics of their quality.

    P      int        parameters, each on a log scale
    W      int        walkers, at least 2 P
    T      int        steps of a chain
    M      int        samples kept, ``n_samples``
    chain  (T, W, P)  every walker at every step
    start  (W, P)     the walkers before

The moves are differential evolution (0.6), stretch (0.3) and differential evolution with a jump of
a full difference (0.1), which can carry walkers between modes. Largest tau in steps over four
seeds, P = 12, W = 48, 6000 steps, on a Gaussian of condition 100 and on a funnel whose scale is
exp(v/2), v ~ N(0, 1):

    stretch 126-136 and 135-150;  DE 39-41 and 256-324;  this mix 52-55 and 164-183;
    0.7, 0.2, 0.1: 47-48 and 153-196;  0.55, 0.4, 0.05: 55-58 and 150-158.

DE alone suits the one target, stretch the other; the three mixes are similar, and the share of the
jump was not tuned. The walk and KDE moves cost 4 to 20 times as much per step. emcee's snooker move
is left out: emcee 3.1.6 scales its step by the distance to the pivot and halves the exponent of the
Jacobian, and left the Gaussian with 0.59 of its variance and the funnel's mean at -2.4. Written as
in [2] it is right, but no better than the stretch move.

A sequence of slowly changing targets, such as a growing dataset makes, is followed as in sequential
Monte Carlo [4]: the walkers, draws from the last target, are resampled by the ratio of the new
density to the old one, which makes them draws from the new target, and a few moves separate the
copies. One ensemble of M walkers then serves as M samples. Root mean square error of the samples'
means, in posterior standard deviations, along the data of two studies (Styblinski-Tang in five
dimensions, Levy in four), at n = 20, 30, 40, 60 and 80 and over three seeds; 200 independent draws
would have 0.07:

    200 walkers, resampled, 5 moves: 0.06-0.21;  8 moves: 0.08-0.15;
    not resampled, 5 moves: 0.29-1.14;  10 moves: 0.09-0.58;
    24 walkers, not resampled, 70 moves of which 5 ensembles are kept: 0.09-0.37.

[1] Foreman-Mackey, Hogg, Lang, Goodman, emcee: the MCMC hammer, PASP 125 (2013).
[2] ter Braak, Vrugt, Differential evolution Markov chain with snooker updater, Stat. Comput. 18
    (2008).
[3] Vrugt et al., Accelerating Markov chain Monte Carlo simulation by differential evolution with
    self-adaptive randomized subspace sampling, IJNSNS 10 (2009): outlier chains.
[4] Chopin, A sequential particle filter method for static models, Biometrika 89 (2002).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from fitbo.checks import finite, whole
from fitbo.mixture import Array
from fitbo.sampling import chains
from fitbo.sampling.walkers import (
    Density,
    LogDensity,
    Restart,
    degenerate,
    left_behind,
    resample,
    seat,
)

logger = logging.getLogger(__name__)

DRIFT = 3.0  # t-statistic beyond which a quantity still drifts
STUCK = 0.01  # acceptance below which an ensemble is not moving; a healthy one accepts 0.2 to 0.4
FAR_BURN_IN = 20  # steps at least, if the weights alone do not reach the new target


@dataclass(frozen=True)
class Diagnostics:
    """How far the samples can be trusted.

    ``autocorrelation_time`` and ``r_hat`` are the largest over the parameters, and
    ``effective_sample_size`` the smallest. A run much shorter than tau can only bound tau from
    below, and its R-hat, which compares single walkers, is then large even at equilibrium.
    ``survivors`` is the effective share of the walkers that resampling kept: 1 if there was none.
    """

    acceptance: float
    autocorrelation_time: float
    effective_sample_size: float
    r_hat: float
    survivors: float
    drift: float
    settled: bool
    burn_in: int
    restarts: int
    rescued: int
    evaluations: int
    invalid: int


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Walkers ``log_theta`` (W, P) and their ``log_density`` (W,): where the next call starts.

    Who keeps one for later may note the number of values ``n`` that its density was given, the
    ``samples`` (M, P) drawn with it, and their diagnostics.
    """

    log_theta: Array
    log_density: Array
    n: int = 0
    samples: Array | None = None
    diagnostics: Diagnostics | None = None


@dataclass(frozen=True, eq=False)
class Samples:
    """``log_theta`` (M, P), its ``log_density`` (M,), and the sampler's last ``ensemble``."""

    log_theta: Array
    log_density: Array
    ensemble: Ensemble
    diagnostics: Diagnostics


def sample(
    log_density: LogDensity,
    start: Array | Ensemble,
    rng: np.random.Generator,
    *,
    known: Array | None = None,
    restart: Restart | None = None,
    n_samples: int = 200,
    thin: int = 10,
    min_burn_in: int = 20,
    max_burn_in: int = 500,
    max_restarts: int = 3,
) -> Samples:
    """``n_samples`` states of an ensemble whose stationary distribution is ``exp(log_density)``.

    ``log_density`` maps (B, P) to (B,). -inf and NaN both mean a density of zero, and the NaN are
    counted as ``invalid``. ``restart(rng, n)`` draws (n, P) from the prior, by default a normal
    about ``start``. ``start`` is (W, P), or an ``Ensemble``: draws from the distribution whose
    log-density it states, to be resampled by the ratio of the two densities. Weights so uneven that
    too few walkers would survive are raised to a power below one, and the burn-in, of at least
    ``FAR_BURN_IN`` steps, does the rest. ``known`` (W,) is ``log_density`` at the start, if the
    caller has it already.

    Burn-in lasts ``min_burn_in`` steps and is then extended by half while its latter half still
    drifts, to at most ``max_burn_in`` steps after the start or the last restart. An ensemble that
    does not move or has collapsed is restarted about the best point seen, and single walkers left
    behind, which no move would recover, are put where others are.

    Then ``ceil(M / W)`` ensembles are kept, ``thin`` steps apart, and M states spread evenly over
    them are returned. A walker that stood still between two of them counts twice, as it should.
    """
    whole("n_samples", n_samples, least=1)
    whole("thin", thin, least=1)
    whole("min_burn_in", min_burn_in, least=1)
    whole("max_burn_in", max_burn_in, least=min_burn_in)
    former = start.log_density if isinstance(start, Ensemble) else None
    start = _validated(start.log_theta if isinstance(start, Ensemble) else start, former)
    density = Density(log_density, start.shape[1])
    draw = restart or (lambda rng, n: start.mean(0) + rng.standard_normal((n, start.shape[1])))
    restarts, rescued, survivors = 0, 0, 1.0

    if known is not None:
        density.note(start, known)
    x, log_p = start.copy(), density(start) if known is None else known.copy()
    if former is not None and np.isfinite(log_p).any():
        kept, survivors, near = resample(log_p - former, x.shape[1], rng)
        x, log_p = x[kept], log_p[kept]
        if not near:
            min_burn_in = min(max(min_burn_in, FAR_BURN_IN), max_burn_in)
    if degenerate(x) or not np.isfinite(log_p).any():
        restarts, log_p = 1, np.full(len(x), -np.inf)
    seat(x, log_p, density, draw, rng)

    sampler = _sampler(start.shape, density, rng)
    burn_in, steps, drift = 0, 0, np.inf  # all steps, and those since the last restart
    chain, log_ps = np.empty((0, *x.shape)), np.empty((0, len(x)))
    while steps < max_burn_in and drift > DRIFT:
        block = min(max(min_burn_in, steps // 2), max_burn_in - steps)
        new_chain, new_log_ps, acceptance = _advance(sampler, x, log_p, block)
        chain, log_ps = np.concatenate([chain, new_chain]), np.concatenate([log_ps, new_log_ps])
        x, log_p = chain[-1].copy(), log_ps[-1].copy()
        burn_in, steps = burn_in + block, steps + block
        if acceptance >= STUCK and not degenerate(x):
            half = steps // 2
            drift = chains.drift_statistic(np.dstack([chain[half:], log_ps[half:]]))
            lost = left_behind(log_ps[half:])
            if lost.any():
                donors = rng.choice(np.flatnonzero(~lost), lost.sum())
                x[lost], log_p[lost] = x[donors], log_p[donors]
                rescued, drift = rescued + len(donors), np.inf
        elif restarts < max_restarts:
            restarts, steps = restarts + 1, 0
            logger.info("restart %d: acceptance %.3f, best %s", restarts, acceptance, density.best)
            chain, log_ps, log_p = chain[:0], log_ps[:0], np.full(len(x), -np.inf)
            seat(x, log_p, density, draw, rng)

    ensembles = -(-n_samples // len(x))
    chain, log_ps, acceptance = _advance(sampler, x, log_p, ensembles * thin)
    kept = np.linspace(0, ensembles * len(x), n_samples, endpoint=False).astype(np.intp)
    effective = chains.effective_sample_size(chain, thin)
    diagnostics = Diagnostics(
        acceptance=acceptance,
        autocorrelation_time=float(chains.integrated_time(chains.autocorrelation(chain)).max()),
        effective_sample_size=float(min(effective.min(), n_samples)),
        r_hat=float(chains.split_r_hat(chain).max()),
        survivors=survivors,
        drift=float(drift),
        settled=bool(drift <= DRIFT),
        burn_in=burn_in,
        restarts=restarts,
        rescued=rescued,
        evaluations=density.evaluations,
        invalid=density.invalid,
    )
    logger.debug("%s", diagnostics)
    return Samples(
        log_theta=chain[thin - 1 :: thin].reshape(-1, x.shape[1])[kept],
        log_density=log_ps[thin - 1 :: thin].reshape(-1)[kept],
        ensemble=Ensemble(chain[-1].copy(), log_ps[-1].copy()),
        diagnostics=diagnostics,
    )


def _advance(sampler: Any, x: Array, log_p: Array, steps: int) -> tuple[Array, Array, float]:
    """``steps`` steps from x: chain (T, W, P), its log-densities (T, W), share accepted."""
    from emcee import State  # type: ignore[import-untyped]

    sampler.reset()
    state = State(x, log_prob=log_p, copy=True)
    sampler.run_mcmc(state, steps, skip_initial_state_check=True)
    accepted = float(sampler.acceptance_fraction.mean())
    return sampler.get_chain(), sampler.get_log_prob(), accepted


def _sampler(shape: tuple[int, ...], density: Density, rng: np.random.Generator) -> Any:
    """emcee's sampler, its copy of numpy's global random state replaced by one from ``rng``."""
    from emcee import EnsembleSampler
    from emcee.moves import DEMove, StretchMove  # type: ignore[import-untyped]

    moves = [(DEMove(), 0.6), (StretchMove(), 0.3), (DEMove(gamma0=1.0), 0.1)]
    sampler = EnsembleSampler(*shape, density, moves=moves, vectorize=True)
    # Not through the property ``random_state``, which ignores what it cannot set.
    sampler._random.seed(rng.integers(2**32, size=8, dtype=np.uint32))
    return sampler


def _validated(start: Array, former: Array | None) -> Array:
    start = np.array(start, dtype=np.float64)
    if start.ndim != 2 or start.shape[1] == 0:
        raise ValueError(f"start must have shape (W, P) with P >= 1, got shape {start.shape}")
    finite("start", start)
    W, P = start.shape
    if max(2 * P, 4) > W:
        raise ValueError(f"start must have W >= 2 P walkers, and at least 4, got W = {W}, P = {P}")
    if former is not None:
        finite("start.log_density", former)
        if np.shape(former) != (W,):
            raise ValueError(f"start.log_density must have shape ({W},), got {np.shape(former)}")
    return start
