"""Imports point downward only, and importing the package is cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fitbo

PACKAGE = Path(fitbo.__file__).parent

# Each layer may import itself and those before it in this list, never those after it.
LAYERS = [
    ["checks"],
    ["mixture", "constraints", "threads", "decode"],
    ["parameters", "normal"],
    ["space"],
    ["maxent", "objectives"],
    ["chains", "walkers"],
    ["entropy", "surrogate", "sampling", "logdet", "problems", "design"],
    ["information", "improvement", "maximise", "feasibility", "ensembles"],
    ["acquisition", "candidates"],
    ["search"],
    ["settings"],
    ["fit"],
    ["propose"],
    ["stopping"],
    ["study"],
    ["parallel"],
    ["minimise"],
    ["method"],
    ["journal", "config", "entries"],
    ["build", "regret"],
    ["drawing"],
    ["figures", "figure_1d"],
    ["campaign", "report_page", "integrations"],
    ["picture"],
    ["report"],
    ["executors", "display"],
    ["study_keys"],
    ["study_file"],
    ["study_build"],
    ["notebook"],
    ["standing"],
    ["laboratory", "study_table", "study_figures", "parallel_coordinates"],
    ["study_report", "study_display"],
    ["cli_notebook"],
    ["cli_study"],
    ["cli"],
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
FORBIDDEN = {  # of what the layers would allow
    "entropy": {"surrogate", "sampling", "logdet"},
    "surrogate": {"entropy", "sampling", "logdet"},
    "sampling": {"entropy", "surrogate", "logdet", "maxent", "problems"},
    "logdet": {"entropy", "surrogate", "sampling", "problems"},
}
# Only these modules may import these heavy or specialised packages.
ONLY_IN = {
    "GPy": {"surrogate/gpy.py"},
    "emcee": {"sampling.py"},
    "yaml": {"decode/nodes.py"},
    "matplotlib": {
        "drawing.py",
        "figures.py",
        "figure_1d.py",
        "picture.py",
        "study_figures.py",
        "parallel_coordinates.py",
        "study_report.py",
    },
    "distributed": {"executors.py"},
    "optuna": {"integrations/optuna.py", "integrations/optuna_trials.py"},
    "rich": {"display.py", "study_display.py", "cli.py", "cli_study.py", "cli_notebook.py"},
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


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downward(path: Path) -> None:
    here = part(path)
    if here in ("__init__", "__main__"):
        return
    for name in imported(path):
        root, _, rest = name.partition(".")
        if root == "fitbo" and rest:
            there = rest.split(".")[0]
            assert RANK[there] <= RANK[here], f"{here} imports {there}, of a later layer"
            assert there not in FORBIDDEN.get(here, set()), f"{here} must not know {there}"
        if root in ONLY_IN:
            assert str(path.relative_to(PACKAGE)) in ONLY_IN[root], f"{root} imported in {here}"


def test_every_part_has_one_layer() -> None:
    present = {part(path) for path in modules()} - {"__init__", "__main__"}
    assert sorted(name for layer in LAYERS for name in layer) == sorted(present)


def test_no_rule_is_idle() -> None:
    """One that the layers repeat, or for what is not there, would be read as a rule."""
    for here, names in FORBIDDEN.items():
        for there in names:
            assert RANK[there] <= RANK[here], f"the layers forbid {here} to know {there} already"
    for package, paths in ONLY_IN.items():
        for path in paths:
            roots = {name.partition(".")[0] for name in imported(PACKAGE / path)}
            assert package in roots, f"{path} no longer imports {package}"


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
