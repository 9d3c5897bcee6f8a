"""A griffe extension: the tables of names in our docstrings stay tables.

A docstring here lists symbols and fields as ``name    what it is``, one a line. Markdown would run
these lines together, so they become a block of preformatted text.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Docstring, Extension, Object

ROW = re.compile(r"[\w., *]*[\w*] {2,}\S")


class Definitions(Extension):
    """Indents paragraphs that are tables."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if isinstance(obj.docstring, Docstring):
            paragraphs = obj.docstring.value.split("\n\n")
            obj.docstring.value = "\n\n".join(map(preformatted, paragraphs))


def preformatted(paragraph: str) -> str:
    """The paragraph, indented by four if its first line is a row of a table."""
    if not ROW.match(paragraph):
        return paragraph
    return "\n".join(f"    {line}" for line in paragraph.replace("``", "").splitlines())
