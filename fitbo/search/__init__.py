"""Where an acquisition is largest: candidates, multi-start ascent, integers and categories.

Imports: ``space`` and the packages below it; it knows nothing of models or of what it maximises.
Add here: a better maximiser of a function on the unit cube or on a mixed space.
"""
