"""Every Python block of the README runs, and every block of the how-to in a folder of its section.

In the how-to a block whose first line is a comment with a file's name is that file, the lines of a
``sh`` block are commands, and what a section's blocks define its later ones use.
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
README, HOWTO = ROOT / "README.md", ROOT / "docs" / "howto.md"
FENCED = re.compile(r"```(\w+)\n(.*?)```", flags=re.DOTALL)
BLOCKS = [text for kind, text in FENCED.findall(README.read_text()) if kind == "python"]
SECTIONS = {part.splitlines()[0]: part for part in HOWTO.read_text().split("\n## ")[1:]}


def test_there_are_blocks_and_no_blanks() -> None:
    assert BLOCKS
    assert SECTIONS
    for text in (README.read_text(), HOWTO.read_text()):
        assert not re.search(r"\b[A-Z]{3,}_[A-Z]+\b", text), "a blank left to fill"


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_block_runs(block: str) -> None:
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102


@pytest.mark.parametrize("title", SECTIONS)
def test_section_runs(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    ran = 0
    for kind, text in FENCED.findall(SECTIONS[title]):
        file = re.match(r"#!?\s*(\S+\.\w+)\n", text)
        if file:
            Path(file[1]).write_text(text.partition("\n")[2])
            os.chmod(file[1], 0o700)
        elif kind == "python":
            exec(compile(text, f"howto.md, {title}", "exec"), names)  # noqa: S102
        elif kind == "sh":
            for line in text.strip().splitlines():
                command, *arguments = shlex.split(line, comments=True)
                assert command == "fitbo"
                assert main(arguments) == 0, line
        ran += 1
    assert ran, "a section has an example"


def test_pictures_exist() -> None:
    paths = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README.read_text())
    assert paths
    for path in paths:
        assert (README.parent / path).is_file(), path
