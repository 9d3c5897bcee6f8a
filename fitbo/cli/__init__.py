"""The command line: arguments in, words out; everything else is done in the packages below.

Imports: everything below; matplotlib only when a report is written, as it is slow to import.
Add here: a command, as one function in ``files`` or ``study`` and its arguments in ``parser``.
"""

from fitbo.cli.parser import main

__all__ = ["main"]
