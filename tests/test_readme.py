"""Every block of the README and of the documentation runs.

A block whose first line is a comment with a file's name is that file, the lines of a ``sh`` block
are commands, and what a section's blocks define its later ones use. A section has a folder of its
own; a tutorial is one section.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from fitbo.cli import main

ROOT = Path(__file__).parent.parent
README, DOCS = ROOT / "README.md", ROOT / "docs"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
FENCED = re.compile(r"```(\w+)\n(.*?)```", flags=re.DOTALL)
FILE = re.compile(r"#!?\s*(\S+\.\w+)\n")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
MADE = {"keys.md", "commands.md", "contributing.md", "changelog.md"}  # when the site is built
NOT_RUN = {"text"}  # what something prints, and formulae


def sections(page: Path) -> dict[str, str]:
    """The text of each section of a page that has blocks, by page and title."""
    text = page.read_text()
    parts = [text] if page.parent.name == "tutorials" else text.split("\n## ")
    name = page.relative_to(ROOT).as_posix()
    return {f"{name}: {part.splitlines()[0]}": part for part in parts if FENCED.search(part)}


SECTIONS = {title: part for page in PAGES for title, part in sections(page).items()}


def names_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_there_are_blocks_and_no_blanks() -> None:
    assert len([title for title in SECTIONS if title.startswith("README.md")]) >= 2
    assert len([title for title in SECTIONS if title.startswith("docs/tutorials")]) >= 6
    for page in PAGES:
        assert not re.search(r"\b[A-Z]{3,}_[A-Z]+\b", FENCED.sub("", page.read_text())), page


def test_the_readme_is_short_and_begins_with_its_two_commands() -> None:
    lines = README.read_text().splitlines()
    assert len(lines) <= 150
    assert [line.strip() for line in lines if line.startswith("    ")][:2] == [
        "python -m pip install -e .  &&  fitbo run configs/quickstart.yaml",
        'python -m pip install -e ".[test]"  &&  pytest',
    ]


@pytest.mark.parametrize("title", SECTIONS)
def test_section_runs(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for kind, text in FENCED.findall(SECTIONS[title]):
        file = FILE.match(text)
        if file:
            Path(file[1]).write_text(text.partition("\n")[2])
            os.chmod(file[1], 0o700)
        elif kind == "python":
            exec(compile(text, title, "exec"), names)  # noqa: S102
        elif kind == "sh":
            for line in text.strip().splitlines():
                command, *arguments = shlex.split(line, comments=True)
                assert command == "fitbo"
                assert main(arguments) == 0, line
        else:
            assert kind in NOT_RUN, f"a block of {kind} without a file's name is run by nothing"


@pytest.mark.parametrize("page", PAGES, ids=names_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if not target.startswith(("https://", "http://")) and Path(target).name not in MADE:
            assert (page.parent / target).exists(), target


def test_the_readme_has_pictures() -> None:
    assert re.findall(r"!\[[^]]*\]\(([^)]+)\)", README.read_text())
