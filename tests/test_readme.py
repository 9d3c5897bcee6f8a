"""Every Python block of the README runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_there_are_blocks_and_no_blanks() -> None:
    assert BLOCKS
    assert not re.search(r"\b[A-Z]{3,}_[A-Z]+\b", README.read_text()), "a blank left to fill"


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_block_runs(block: str) -> None:
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102


def test_pictures_exist() -> None:
    paths = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README.read_text())
    assert paths
    for path in paths:
        assert (README.parent / path).is_file(), path
