"""One iteration of a study: settings, the posterior, the next point, the improvement that remains.

Imports: every package of the optimiser and of the mathematics.
Add here: a step between data and suggestion that is neither a model, a sampler nor an acquisition.
"""
