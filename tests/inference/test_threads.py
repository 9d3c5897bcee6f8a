"""The linear algebra of a study runs on one thread, and other code keeps its own number."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from fitbo.inference.settings import Settings
from fitbo.inference.threads import one_thread
from fitbo.space import Space
from fitbo.study import Study


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_one_thread_inside_and_as_before_outside() -> None:
    np.linalg.cholesky(np.eye(3))
    with threadpool_limits(2, user_api="blas"):
        assert one_thread(blas_threads)() == {1}
        assert blas_threads() == {2}


def test_a_studys_entropy_runs_on_one_thread() -> None:
    seen: set[int] = set()

    def entropy(mixture):
        seen.update(blas_threads())
        return np.log(mixture.variance)

    study = Study(
        Space([(0, 1)]), Settings(n_initial=2, n_samples=12, entropy=entropy, deterministic=False)
    )
    with threadpool_limits(2, user_api="blas"):
        for _ in range(3):
            x = study.ask()[0]
            study.tell(x, float(x[0]))
    assert seen == {1}


def test_the_users_error_settings_are_for_the_objective() -> None:
    study = Study(Space([(0, 1)]), Settings(n_initial=2, n_samples=12, entropy="memel"))
    with np.errstate(all="raise"):
        for _ in range(4):
            x = study.ask()[0]
            study.tell(x, float(x[0]) ** 2)
        study.recommend()
        assert np.geterr()["under"] == "raise"
