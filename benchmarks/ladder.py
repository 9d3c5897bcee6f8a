"""Do the rungs of the remaining regret, or entropies of the gain about f*, choose differently?

    python benchmarks/ladder.py        # writes results/ablation/ladder.md and .csv

Along one run of each problem of the development suite (see ``ablation.py``), chosen by expected
improvement, the same candidates are ranked under common random numbers: the same samples of the
hyperparameters and the same minima of their paths,

- by the entropy of the regret that remains (``fitbo.acquisition.remaining``) with 1, 2, 4 and 10
  moments, of which the first is expected improvement, from one path of each sample or several;
- by what a value tells about f* with the hyperparameters integrated out
  (``fitbo.acquisition.marginal``), its mixture entropies by moment matching, by MEMeL with ten
  moments and by quadrature.

Two ways to rank agree if their rank correlation is one and their best candidates are the same.
"""

from __future__ import annotations

import argparse
from itertools import combinations

from common import one_thread, write

one_thread()

import numpy as np
from exact_gain import RESULTS, candidates, posteriors
from scipy.stats import spearmanr

from fitbo import Settings, Study
from fitbo.acquisition.marginal import MarginalGain
from fitbo.acquisition.remaining import RemainingRegret
from fitbo.entropy import MM, MEMeL, Quad
from fitbo.inference.best import incumbents, thinned
from fitbo.inference.minimum import draw_minima
from fitbo.inference.propose import PATHS
from fitbo.mixture import Array

RUNGS = (1, 2, 4, 10)
ENTROPIES = {"mm": MM(), "memel-10": MEMeL(n_moments=10), "quad": Quad(tol=1e-5)}


def values(study: Study) -> dict[str, dict[str, Array]]:
    """What each way of either family makes of the same candidates."""
    fit = study.fit()
    surrogate, rng = thinned(fit), np.random.default_rng(len(study.y))
    best = incumbents(fit)
    U = candidates(best, rng)
    F = np.stack([draw_minima(surrogate, study.space, best, rng).f for _ in range(PATHS)])
    mixture, floor = surrogate.predict(U), surrogate.eta
    noise = np.repeat(surrogate.noise_variance, surrogate.etas)
    few, many = (
        {f"{m}": RemainingRegret(fit.best, floor, f, m)(mixture) for m in RUNGS} for f in (F[0], F)
    )
    gains = {name: MarginalGain(F, floor, noise, e)(mixture) for name, e in ENTROPIES.items()}
    return {"moments, one path": few, f"moments, {PATHS} paths": many, "entropy": gains}


def compared(by: dict[str, Array]) -> dict[str, tuple[float, bool, float]]:
    """Of each pair: rank correlation, whether their best differ, and what is kept.

    Kept is how far the first's best candidate lies below the second's, of the second's spread
    between its best and its median.
    """
    out = {}
    for a, b in combinations(by, 2):
        one, two = by[a], by[b]
        span = two.max() - np.median(two)
        kept = 1 - (two.max() - two[one.argmax()]) / span
        differ = bool(one.argmax() != two.argmax())
        out[f"{a} / {b}"] = (float(spearmanr(one, two).statistic), differ, float(kept))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--after", type=int, nargs="*", default=[5, 20, 50])
    arguments = parser.parse_args()
    rows = []
    settings = Settings(acquisition="logei", seed=0)
    for label, n, study in posteriors(settings, arguments.after):
        for family, by in values(study).items():
            for pair, (rank, differ, kept) in compared(by).items():
                facts = {"problem": label, "n": n, "family": family, "pair": pair}
                scores = {"rank correlation": f"{rank:.4f}", "kept": f"{kept:.4f}"}
                rows.append({**facts, **scores, "best differs": int(differ)})
        print(label, n, flush=True)
    pairs = dict.fromkeys((row["family"], row["pair"]) for row in rows)
    after = " ".join(map(str, arguments.after))
    lines = [
        "# Do further moments, or better entropies, choose another candidate?",
        "",
        f"Made by `python benchmarks/ladder.py --after {after}`: one run of each problem of the",
        "development suite, 384 candidates, the same samples and path minima for all. *Kept*: what",
        "the second gives to the first's best candidate, 1 being its own best and 0 its median.",
        "",
        "| family | pair | posteriors | rank correlation: median | lowest | best differs "
        "| kept: median | lowest |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for family, pair in pairs:
        mine = [row for row in rows if (row["family"], row["pair"]) == (family, pair)]
        rank, kept = (
            np.array([float(r[key]) for r in mine]) for key in ("rank correlation", "kept")
        )
        differ = sum(int(row["best differs"]) for row in mine)
        lines.append(
            f"| {family} | {pair} | {len(mine)} | {np.median(rank):.3f} | {rank.min():.3f} "
            f"| {differ} | {np.median(kept):.3f} | {kept.min():.3f} |"
        )
    write(RESULTS, "ladder", lines, rows)


if __name__ == "__main__":
    main()
