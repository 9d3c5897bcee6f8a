"""One iteration of a study: what was told, the posterior, the next point, what remains to gain.

Imports: every package of the optimiser and of the mathematics.
Add here: a step between data and suggestion that is neither a model, a sampler nor an acquisition.
"""
