"""fitbo as an Optuna sampler: ``optuna.create_study(sampler=FitboSampler(seed=1))``."""

from fitbo.integrations.optuna.sampler import FitboSampler

__all__ = ["FitboSampler"]
