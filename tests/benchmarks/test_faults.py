"""The short version of ``benchmarks/faults.py``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.campaigns import ENVIRONMENT

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faults.py"


def test_three_kills_lose_nothing(tmp_path: Path) -> None:
    """This seed's three kills come after the first new value of a journal."""
    arguments = ["--kills", "3", "--seed", "3", "--seeds", "1", "--budget", "14"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments, "--output", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    table = (tmp_path / "table.md").read_text()
    *_, total = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert total[:2] == ["| all", "3"]
    assert int(total[3]) > 0  # values were written between the kills
    assert total[6:] == ["0", "0 |"]
    assert "apart from the seconds: 0." in table
