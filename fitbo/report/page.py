"""HTML: the frame of a page, its style sheet, its one script, its tables and its figures.

A page needs nothing but itself: images are inlined, the only script sorts tables, and a content
security policy prevents other scripts and all downloads. Every text that comes from a journal is
escaped. The same journals give the same bytes: there is no date on a page.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src 'unsafe-inline'; script-src 'sha256-{{script_hash}}'; \
base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{title}}: fitbo report</title>
<style>{{style}}</style>
</head>
<body>
<main>
<header>
<p class="brand">fitbo report</p>
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
</main>
<script>{{script}}</script>
</body>
</html>
"""

STYLE = """
:root { --back: #f6f7f9; --card: #ffffff; --ink: #1f2328; --muted: #59636e; --rule: #d9dee4;
  --accent: #0072b2; --stripe: #f6f8fa; --note: #fff4d6; --note-ink: #5c4400; }
@media (prefers-color-scheme: dark) {
  :root { --back: #12161c; --card: #1b2129; --ink: #e6eaf0; --muted: #a3adba; --rule: #323a45;
    --accent: #6cb6e8; --stripe: #20272f; --note: #3b3113; --note-ink: #f5dc9a; }
  figure img { filter: brightness(.94); }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1140px; margin: 0 auto; padding: 2.2rem 1.2rem 4rem; }
.brand { margin: 0; color: var(--accent); font-weight: 600; font-size: .85rem;
  letter-spacing: .06em; }
h1 { margin: .1rem 0 .2rem; font-size: 2rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 2.6rem 0 .8rem; font-size: 1.3rem; overflow-wrap: anywhere; }
h3 { font-size: 1rem; }
.facts, .caption, figcaption { color: var(--muted); }
.facts { margin: 0; }
.caption, figcaption { font-size: .88rem; }
nav { display: flex; flex-wrap: wrap; gap: .4rem .6rem; margin-top: .9rem; }
nav a { color: var(--accent); text-decoration: none; border: 1px solid var(--rule);
  border-radius: 999px; padding: .1rem .8rem; font-size: .9rem; background: var(--card); }
nav a:hover { border-color: var(--accent); }
.note { background: var(--note); color: var(--note-ink); border-radius: 8px; padding: .6rem 1rem; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--rule);
  border-radius: 10px; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { padding: .5rem .7rem; text-align: left; white-space: nowrap; }
td { border-top: 1px solid var(--rule); font-variant-numeric: tabular-nums; }
td a { color: var(--accent); }
tbody tr:nth-child(even) { background: var(--stripe); }
.number { text-align: right; }
th { padding: 0; vertical-align: bottom; }
th button { all: unset; box-sizing: border-box; width: 100%; padding: .6rem .7rem; cursor: pointer;
  position: relative; font-weight: 600; color: var(--muted); white-space: normal;
  line-height: 1.3; }
th button:hover { color: var(--ink); }
th button:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
th button::after { position: absolute; margin-left: .1em; }
.still { padding: .6rem .7rem; }
th[aria-sort] button { color: var(--accent); }
th[aria-sort="ascending"] button::after { content: "\\2191"; }
th[aria-sort="descending"] button::after { content: "\\2193"; }
.dot { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .55em;
  box-shadow: 0 0 0 1.5px var(--card), 0 0 0 2px var(--rule); }
figure { margin: 0 0 1.4rem; background: var(--card); border: 1px solid var(--rule);
  border-radius: 10px; overflow: hidden; }
figure img { display: block; width: 100%; height: auto; background: #fff; padding: 12px 14px 8px; }
figcaption { padding: .6rem 1rem .75rem; border-top: 1px solid var(--rule); }
details { background: var(--card); border: 1px solid var(--rule); border-radius: 10px;
  padding: .6rem 1rem; margin-bottom: .8rem; }
summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
pre { overflow-x: auto; background: var(--stripe); border-radius: 8px; padding: .8rem 1rem;
  font: .82rem/1.5 ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace; }
@media print { body { background: #fff; } figure, table { break-inside: avoid; } }
"""

SCRIPT = """
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => heading.firstChild.addEventListener("click", () => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    headings.forEach(other => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const numeric = heading.classList.contains("number");
    const key = row => row.cells[column].dataset.value;
    const order = (a, b) => numeric ? a - b : a.localeCompare(b, "en", {numeric: true});
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [left, right] = [key(a), key(b)];
      if (left === "" || right === "") return (left === "") - (right === "");  // no value: last
      return down ? order(right, left) : order(left, right);
    });
    table.tBodies[0].append(...rows);
  }));
}
"""


class Cell(NamedTuple):
    """One cell of a table: its text, what it is sorted by, how it looks."""

    text: str
    key: Any = None
    strong: bool = False
    dot: str | None = None  # a colour
    link: str | None = None


def render(title: str, **parts: str) -> str:
    """The page; ``facts``, ``links``, ``notes``, ``sections`` and ``config`` are its HTML."""
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    known = {"title": escape(title), "style": STYLE, "script": SCRIPT, "script_hash": digest}
    # In one pass, so that a label that looks like a placeholder is left as it is.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: (known | parts)[match[1]], PAGE)


def section(name: str, title: str, body: str, caption: str = "") -> str:
    """A section with its heading; ``body`` is HTML, ``caption`` is text."""
    foot = f'<p class="caption">{escape(caption)}</p>' if caption else ""
    return f'<section id="{name}"><h2>{escape(title)}</h2>{body}{foot}</section>'


def figures(title: str, drawn: Mapping[str, bytes], captions: Mapping[str, str]) -> str:
    """Images by their kinds, each with its caption."""
    return "".join(
        f'<figure><img alt="{escape(title)}: {kind}" src="data:image/png;base64,'
        f'{base64.b64encode(data).decode()}"><figcaption>{escape(captions[kind])}</figcaption></figure>'
        for kind, data in drawn.items()
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
        f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def details(title: str, *parts: str) -> str:
    """What is folded away; the title is text, the parts are HTML."""
    return f"<details><summary>{escape(title)}</summary>{''.join(parts)}</details>"


def _cell(cell: Cell, css: str) -> str:
    inner = escape(cell.text)
    if cell.link is not None:
        inner = f'<a href="{escape(cell.link)}">{inner}</a>'
    if cell.strong:
        inner = f"<strong>{inner}</strong>"
    if cell.dot is not None:
        inner = f'<span class="dot" style="background:{escape(cell.dot)}"></span>{inner}'
    # The script sorts by the key; an empty one comes last.
    unknown = cell.key is None or (isinstance(cell.key, float) and not math.isfinite(cell.key))
    return f'<td{css} data-value="{"" if unknown else escape(str(cell.key))}">{inner}</td>'
