"""What a YAML file says: frozen dataclasses, errors that name the line, the JSON Schema.

Imports: the optimiser, ``problems`` and ``objectives``; yaml is imported in ``decode`` only.
Add here: a new key of a file, as a field with its type, its bounds and a line of documentation.
"""
