"""A MkDocs hook: pages made at the build, links into the repository, mathematics as MathML.

- ``reference/keys.md`` comes from the schema and ``reference/commands.md`` from the parser, so that
  they cannot go stale;
- ``results/`` is part of the site, and a link to it from ``docs/`` works on both sides;
- formulae become MathML, which browsers draw without a script, so the site needs no network.
"""

from __future__ import annotations

import argparse
import html
import os
import re
from pathlib import Path
from typing import Any

from keys import keys_page
from latex2mathml.converter import convert
from mkdocs.structure.files import File

import fitbo
from fitbo.cli.parser import parser
from fitbo.config.campaign import json_schema

ROOT = Path(__file__).parents[2]
SHOWN = (".md", ".png", ".csv")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
FUNCTION = re.compile(r"<mi>(?:log|exp)</mi>(?!<mo[^>]*>&#x00028;)")  # without a parenthesis
OUTSIDE = re.compile(r"\]\((?:\.\./)*(results/|CONTRIBUTING\.md|CHANGELOG\.md)")
COMMANDS = """\
# Commands

What `fitbo COMMAND --help` of fitbo {version} prints. Exit codes: 0, 1 if studies failed, 2 for a
mistake, 130 for Ctrl-C.

```text
{top}```
"""


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are made, and the results."""
    made = {
        "reference/keys.md": keys_page(json_schema(), fitbo.__version__),
        "reference/commands.md": commands_page(),
    }
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text().replace("](docs/", "](/")
        files.append(File.generated(config, name.lower(), content=text))
    for path in sorted((ROOT / "results").rglob("*")):
        if path.suffix in SHOWN:
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links out of ``docs/`` become links from the root of the site."""
    return OUTSIDE.sub(lambda link: f"](/{link[1].lower()}", markdown)


def on_page_content(text: str, page: Any, config: Any, files: Any) -> str:
    """Formulae as MathML."""
    return FORMULA.sub(lambda found: mathml(found[2], found[1] == "div"), text)


def mathml(source: str, block: bool) -> str:
    """One formula; what the converter does not know stays a backslash, which is an error here."""
    made = convert(html.unescape(source.strip()), display="block" if block else "inline")
    if "\\" in made:
        raise ValueError(f"a formula that cannot be converted: {source}")
    return FUNCTION.sub(r'\g<0><mspace width="0.17em" />', made)


def commands_page() -> str:
    """The help of every command."""
    os.environ["COLUMNS"] = "100"
    top = parser()
    (commands,) = (a for a in top._actions if isinstance(a, argparse._SubParsersAction))
    text = COMMANDS.format(version=fitbo.__version__, top=top.format_help())
    for name, command in commands.choices.items():
        text += f"\n## fitbo {name}\n\n```text\n{command.format_help()}```\n"
    return text
