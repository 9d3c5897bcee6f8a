"""One iteration of a study: settings, the posterior, the next point, when to stop.

Imports: every package of the optimiser and of the mathematics.
Add here: a step between data and suggestion that is neither a model, a sampler nor an acquisition.
"""
