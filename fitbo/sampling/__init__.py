"""Posterior samples of the hyperparameters: the ensemble sampler and its convergence diagnostics.

Imports: ``checks``, the array type of ``mixture``, and emcee, which no other package imports.
Add here: another sampler of a log-density, with the signature of ``sample``.
"""

from fitbo.sampling.ensemble import Diagnostics, Ensemble, Samples, sample

__all__ = ["Diagnostics", "Ensemble", "Samples", "sample"]
