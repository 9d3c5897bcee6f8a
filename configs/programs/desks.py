"""A noisy simulator: customers before some desks, and what a day of it costs.

    python desks.py --desks 3 --rate 1.2 --patience 10 --policy shortest --seed 7

Prints a log and ``cost = ...``. Needs Python's own library only.
"""

from __future__ import annotations

import argparse
import random

ARRIVALS = 2.0  # customers a minute
DAY = 240.0  # minutes


def simulate(desks: int, rate: float, patience: float, policy: str, rng: random.Random) -> float:
    """The cost of one day: wages, faster machines, waiting, and customers who left."""
    free = [0.0] * desks  # when each desk is free again
    now = waited = 0.0
    left = served = 0
    while (now := now + rng.expovariate(ARRIVALS)) < DAY:
        shortest = min(range(desks), key=free.__getitem__)
        desk = shortest if policy == "shortest" else rng.randrange(desks)
        wait = max(0.0, free[desk] - now)
        if wait > patience:
            left += 1
            continue
        free[desk] = max(free[desk], now) + rng.expovariate(rate)
        waited += wait
        served += 1
    wages, machines = 20.0 * desks, 30.0 * rate**2
    return wages + machines + 0.5 * waited + 2.0 * left


def main() -> None:
    """Simulate one day as the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--desks", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--patience", type=float, required=True)
    parser.add_argument("--policy", choices=["shortest", "any"], required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    rng = random.Random(options.seed)  # noqa: S311 (a simulation)
    print(f"a day with {options.desks} desks")
    cost = simulate(options.desks, options.rate, options.patience, options.policy, rng)
    print(f"cost = {cost:.6f} per day")


if __name__ == "__main__":
    main()
