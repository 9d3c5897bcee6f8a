"""Maximisation of an acquisition function: candidates, multi-start ascent, mixed spaces.

Imports: ``space`` and the packages below it; it knows nothing of models or of what it maximises.
Add here: a better maximiser of a function on the unit cube or on a mixed space.
"""
