"""fitbo inside other tools; each package needs the extra of its name, as in ``fitbo[optuna]``.

Imports: the optimiser, ``study`` and the tool in question, which no other package imports.
Add here: one package per tool.
"""
