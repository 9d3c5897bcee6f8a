"""The command line: arguments in, words out; everything else is done in the packages below.

Imports: everything, most of it inside the commands so that ``fitbo --help`` stays quick.
Add here: a command, as one function in ``files`` or ``study`` and its arguments in ``parser``.
"""

from fitbo.cli.parser import main

__all__ = ["main"]
