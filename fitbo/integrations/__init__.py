"""fitbo inside other people's tools; each package needs the extra of its name.

Imports: the optimiser and ``study``, and the tool in question.
Add here: one package per tool.
"""
