"""HTML: the frame of a page, what it carries inside itself, its tables and its figures.

A page needs nothing but itself: the charting library, the script, the style sheet and the data of
the figures are inside (``assets/``). A content security policy admits that one script and that one
style sheet by their hashes, and neither other code nor any download. Every text that comes from a
journal is escaped, in HTML here and in the block of data as JSON without angle brackets. The same
journals give the same bytes: there is no date on a page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from fitbo.report.charts import Panel
from fitbo.report.palette import COLOURS

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{policy}}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{title}}</title>
<style>{{style}}</style>
</head>
<body>
<main>{{main}}</main>
<script id="data" type="application/json">{{data}}</script>
<script>{{script}}</script>
</body>
</html>
"""
MAIN = """
<header>
<p class="brand">fitbo {{brand}}</p>
<h1>{{title}}</h1>
<p class="facts">{{facts}}</p>
<nav>{{links}}</nav>
</header>
{{notes}}
{{sections}}
<section id="config">
<h2>How it was run</h2>
{{config}}
</section>
"""
LIVE = 'watch<span id="live" role="status">live</span>'
NO_SCRIPT = (
    "A script draws this figure. Without it: the same as a picture is in the folder figures."
)
ASSETS = Path(__file__).parent / "assets"
Charts = Mapping[str, Sequence[Panel]]  # by the keys of their figures


class Cell(NamedTuple):
    """One cell of a table: its text, what it is sorted by, how it looks."""

    text: str
    key: Any = None
    strong: bool = False
    dot: str | None = None  # a colour of the palette
    link: str | None = None


class Page(NamedTuple):
    """A page in its parts: its title, the HTML within <main>, the data of its figures."""

    title: str
    main: str
    charts: Charts

    def live(self) -> Page:
        """The page as it is while it follows its study."""
        return self._replace(title=_titled(self), main=self.main.replace("{{brand}}", LIVE, 1))

    def html(self, **live: Any) -> str:
        """The whole document; ``live`` is for a page that asks its server for what is new."""
        parts = {
            "policy": policy(bool(live)),
            "title": escape(_titled(self)),
            "style": _style(),
            "main": self.live().main if live else self.main.replace("{{brand}}", "report", 1),
            "data": json_block({"charts": self.charts, **live}),
            "script": _script(),
        }
        return _filled(PAGE, parts)


def _titled(made: Page) -> str:
    return f"{made.title}: fitbo report"


def compose(title: str, charts: Charts, **parts: str) -> Page:
    """A page; ``facts``, ``links``, ``notes``, ``sections`` and ``config`` are its HTML."""
    main = _filled(MAIN, {"title": escape(title), "brand": "{{brand}}", **parts})
    return Page(title, main, charts)


def policy(live: bool = False) -> str:
    """The content security policy: our script and style by hash; if live, our server's answers."""
    parts = ["default-src 'none'", f"script-src '{_digest(_script())}'"]
    parts += [f"style-src '{_digest(_style())}'"]
    parts += ["connect-src 'self'"] if live else []
    return "; ".join([*parts, "base-uri 'none'", "form-action 'none'"])


def json_block(value: Any) -> str:
    """JSON for a script element: no text in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", text)


def section(name: str, title: str, body: str, caption: str = "") -> str:
    """A section with its heading; ``body`` is HTML, ``caption`` is text."""
    foot = f'<p class="caption">{escape(caption)}</p>' if caption else ""
    return f'<section id="{name}"><h2>{escape(title)}</h2>{body}{foot}</section>'


def figure(key: str, title: str, caption: str) -> str:
    """Where the script draws the panels of this key; key and texts are plain."""
    return (
        f'<figure data-chart="{escape(key)}" aria-label="{escape(title)}"><div class="canvas">'
        f"<noscript>{NO_SCRIPT}</noscript></div><figcaption>{escape(caption)}</figcaption></figure>"
    )


def table(
    columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[Cell]], sortable: bool = True
) -> str:
    """A table; each column is a heading and whether it holds numbers."""
    classes = [' class="number"' if numeric else "" for _, numeric in columns]
    inner = '<button type="button">{}</button>' if sortable else '<div class="still">{}</div>'
    head = "".join(
        f'<th scope="col"{css}>{inner.format(escape(name))}</th>'
        for css, (name, _) in zip(classes, columns, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(_cell(c, css) for c, css in zip(row, classes, strict=True)) + "</tr>"
        for row in rows
    )
    kind = ' class="sortable"' if sortable else ""
    return (
        f'<div class="scroll" tabindex="0"><table{kind}><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def details(title: str, *parts: str) -> str:
    """What is folded away; the title is text, the parts are HTML."""
    return f"<details><summary>{escape(title)}</summary>{''.join(parts)}</details>"


def _filled(template: str, parts: Mapping[str, str]) -> str:
    # In one pass, so that a label that looks like a placeholder is left as it is.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def _cell(cell: Cell, css: str) -> str:
    inner = escape(cell.text)
    if cell.link is not None:
        inner = f'<a href="{escape(cell.link)}">{inner}</a>'
    if cell.strong:
        inner = f"<strong>{inner}</strong>"
    if cell.dot is not None:
        inner = f'<span class="dot c{COLOURS.index(cell.dot)}"></span>{inner}'
    # The script sorts by the key; an empty one comes last.
    unknown = cell.key is None or (isinstance(cell.key, float) and not math.isfinite(cell.key))
    return f'<td{css} data-value="{"" if unknown else escape(str(cell.key))}">{inner}</td>'


@cache
def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    licence = "/*! uPlot 1.6.32\n" + _asset("uPlot.LICENSE.txt") + "*/\n"
    parts = ("uPlot.iife.min.js", "scales.js", "panels.js", "figures.js", "page.js")
    return licence + "\n".join(map(_asset, parts))


@cache
def _style() -> str:
    dots = "".join(f".c{i} {{ background: {c}; }}\n" for i, c in enumerate(COLOURS))
    return _asset("uPlot.min.css") + "\n" + _asset("page.css") + dots


@cache
def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
