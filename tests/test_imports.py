"""Imports point downward only, and importing the package is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fitbo

PACKAGE = Path(fitbo.__file__).parent

# Each package may import itself and those on the lines before its own, never those after.
LAYERS = """
    checks shelf
    mixture
    maxent
    entropy logdet
    space
    surrogate sampling
    acquisition search
    inference
    study
    decode
    problems objectives
    config
    records
    runs
    screen
    report
    minimise integrations
    cli
"""
# Only these packages may import what is heavy or specialised.
ONLY_IN = {
    "GPy": "surrogate",
    "emcee": "sampling",
    "yaml": "decode",
    "matplotlib": "report",
    "distributed": "runs",
    "optuna": "integrations",
    "rich": "cli screen",
    "pandas": "minimise",
    "IPython": "screen",
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            names.add(str(node.module))
            if node.module == "fitbo":
                names |= {f"fitbo.{alias.name}" for alias in node.names}
    return names


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


RANK = {name: rank for rank, line in enumerate(LAYERS.split("\n")) for name in line.split()}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downward(path: Path) -> None:
    here = part(path)
    if here in ("__init__", "__main__"):
        return
    for name in imported(path):
        root, _, rest = name.partition(".")
        if root == "fitbo" and rest:
            there = rest.split(".")[0]
            below = RANK[there] < RANK[here] or there == here
            assert below, f"{here} imports {there}, which is not below it"
        assert here in ONLY_IN.get(root, here).split(), f"{root} is imported in {here}"


def test_every_package_has_one_layer() -> None:
    present = {part(path) for path in modules()} - {"__init__", "__main__"}
    assert sorted(LAYERS.split()) == sorted(present)


def test_the_top_level_is_doors_and_rooms() -> None:
    top = [path for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")]
    assert len(top) <= 6, "a new module belongs in a room"


def test_every_package_says_what_it_is_for() -> None:
    for path in PACKAGE.glob("*/__init__.py"):
        said = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert said.count("\n") >= 2, f"{path} must say what lives there"


def test_import_brings_in_nothing_heavy() -> None:
    code = (
        "import sys, fitbo; "
        "bad = [m for m in ('numpy', 'scipy', 'matplotlib', 'GPy', 'emcee', 'torch', 'yaml')"
        " if m in sys.modules]; sys.exit(','.join(bad) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_public_names_resolve() -> None:
    for name in fitbo.__all__:
        assert getattr(fitbo, name) is not None
    assert set(fitbo.__all__) <= set(dir(fitbo))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fitbo.nothing
