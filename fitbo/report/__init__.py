"""How results are shown: regret over seeds, figures, one self-contained HTML page.

Imports: ``runs`` and everything below it; no other package imports matplotlib.
Add here: a figure (a function that returns a ``Figure``) and its caption.
"""
