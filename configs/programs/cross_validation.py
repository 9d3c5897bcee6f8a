"""A model's cross-validated loss, to be minimised over its hyperparameters."""

from __future__ import annotations

import warnings


def loss(C: float, gamma: float, kernel: str, degree: int, folds: int = 3) -> float:
    """One minus the accuracy of a support vector machine on scikit-learn's breast cancer data."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, y = load_breast_cancer(return_X_y=True)
    machine = SVC(C=C, gamma=gamma, kernel=kernel, degree=degree, max_iter=100_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)  # no value is better than a wrong one
        scores = cross_val_score(make_pipeline(StandardScaler(), machine), X, y, cv=folds)
    return 1.0 - float(scores.mean())
