"""Virtual environments for the tests of what an installed package does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def environment(home: Path, wheel: Path, *folders: Path) -> Path:
    """The interpreter of a new environment: the wheel, what this one has, and the folders."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    interpreter = home / "bin" / "python"
    site = next((home / "lib").glob("python*/site-packages"))
    # The packages of this environment, but not its .pth files: an editable fitbo is not there.
    seen = [path for path in sys.path if path.endswith("site-packages")]
    (site / "here.pth").write_text("\n".join([*seen, *map(str, folders)]))
    install = [sys.executable, "-m", "pip", "--python", str(interpreter), "install", "--no-index"]
    subprocess.run([*install, "--no-deps", "-q", str(wheel)], check=True)
    return interpreter
