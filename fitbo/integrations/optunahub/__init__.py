"""The folder that OptunaHub wants for ``FitboSampler``; copy it to ``package/samplers/fitbo``.

    optunahub.load_module("samplers/fitbo").FitboSampler(seed=0)

The sampler itself is the installed package's, which ``requirements.txt`` names.
"""

from fitbo.integrations.optuna import FitboSampler

__all__ = ["FitboSampler"]
