"""A name that an installed package adds is known to files, to ``fitbo list`` and to the schema."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from fitbo.shelf import Shelf
from tests.environments import environment

PLUGIN = '''\
"""A tiny package of names for fitbo."""

from dataclasses import dataclass

import numpy as np

from fitbo.acquisition.baselines import LogExpectedImprovement
from fitbo.entropy import MM
from fitbo.problems import Family
from fitbo.surrogate.stationary import RBF


@dataclass(frozen=True)
class Doubled(MM):
    """Twice the entropy of moment matching."""

    factor: float = 2.0


@dataclass(frozen=True, eq=False)
class Eager(LogExpectedImprovement):
    """The improvement under another name."""


def _make(dim, height=1.0):
    return (lambda X: height * (X**2).sum(1)), [(-1.0, 2.0)] * dim, 0.0, np.zeros((1, dim))


PIT = Family("a pit of any dimension", _make, 2, (1, None))
SMOOTH = RBF()
'''
POINTS = """\
[fitbo.entropies]
doubled = tiny_names:Doubled
[fitbo.acquisitions]
eager = tiny_names:Eager
[fitbo.problems]
pit = tiny_names:PIT
branin = tiny_names:PIT
[fitbo.kernels]
smooth = tiny_names:SMOOTH
broken = tiny_names:NOTHING
"""
CONFIG = """\
problems: [pit3, branin]
methods:
  - {label: D, entropy: {name: doubled, factor: 3.0}, samples: 10, surrogate: smooth}
  - {acquisition: eager, samples: 10}
budget: 8
initial: {n: 6}
executor: serial
"""


def wheel(folder: Path) -> Path:
    path = folder / "tiny_names-1.0-py3-none-any.whl"
    info = "tiny_names-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("tiny_names.py", PLUGIN)
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-names\nVersion: 1.0\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/entry_points.txt", POINTS)
        file.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has what this one has, and the package."""
    folder = tmp_path_factory.mktemp("plugin")
    return environment(folder / "env", wheel(folder), Path(__file__).parents[1])


def fitbo(python: Path, *arguments: Any, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [python, "-m", "fitbo", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def test_a_package_s_names_are_listed_and_in_the_schema(python: Path, tmp_path: Path) -> None:
    listed = fitbo(python, "list", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert "doubled          Twice the entropy of moment matching." in listed.stdout
    assert "pit              a pit of any dimension" in listed.stdout
    assert "eager            The improvement under another name." in listed.stdout
    assert "broken           cannot be loaded from the package tiny-names" in listed.stdout
    schema = fitbo(python, "schema", cwd=tmp_path).stdout
    properties = json.dumps(json.loads(schema)["properties"])
    for name in ("doubled", "factor", "eager", "pit"):
        assert f'"{name}"' in properties or f"^{name}" in properties


def test_a_campaign_runs_by_a_package_s_names(python: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(CONFIG)
    done = fitbo(python, "run", "tiny.yaml", "--no-report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.jsonl"))
    assert found == [
        f"results/tiny/{problem}/{method}/0.jsonl"
        for problem in ("branin", "pit3")
        for method in ("D", "EAGER")
    ]
    header = json.loads((tmp_path / found[0]).read_text().split("\n")[0])["study"]
    assert header["problem"]["minimum"] == pytest.approx(0.397887)  # ours, and not the package's
    assert header["method"]["entropy"] == {"name": "doubled", "factor": 3.0}


def test_a_package_that_is_broken_is_named(python: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(CONFIG.replace("smooth", "broken"))
    done = fitbo(python, "validate", "bad.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "broken cannot be loaded from the package tiny-names" in done.stderr.replace("\n", " ")
    (tmp_path / "bad.yaml").write_text(CONFIG.replace("doubled", "doubledd"))
    done = fitbo(python, "validate", "bad.yaml", cwd=tmp_path)
    assert "did you mean 'doubled'?" in done.stderr


def test_without_packages_a_shelf_is_its_own_dict() -> None:
    shelf = Shelf("fitbo.nothing", {"a": 1, "b": 2})
    assert dict(shelf) == {"a": 1, "b": 2}
    assert len(shelf) == 2
    assert "a" in shelf
    assert "c" not in shelf
    with pytest.raises(KeyError):
        _ = shelf["c"]
