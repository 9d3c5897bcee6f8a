"""The release: a wheel and an sdist are built, and the wheel is used where no repository is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import optunahub
import pytest
import yaml

import fitbo
from tests.environments import environment

ROOT = Path(__file__).parents[1]
MODEL = """\
def train(rate: float = 0.01, depth: int = 4):
    return (rate - 0.1) ** 2 + (depth - 3) ** 2
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and with the wheel that the sdist makes."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel and what it needs, but not this folder."""
    return environment(tmp_path_factory.mktemp("release") / "env", next(built.glob("*.whl")))


def outside(python: Path, *arguments: str, cwd: Path) -> str:
    """What a command prints, run where only the wheel can be imported."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [python, "-P", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_what_is_shipped(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.name == f"fitbo-{fitbo.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as file:
        shipped = set(file.namelist())
    tops = {name.split("/")[0] for name in shipped}
    assert tops == {"fitbo", f"fitbo-{fitbo.__version__}.dist-info"}
    tracked = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "fitbo").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert tracked <= shipped
    with tarfile.open(sdist) as file:
        inside = {name.split("/", 1)[1] for name in file.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "configs/quickstart.yaml"} <= (
        inside
    )


def test_the_wheel_runs_a_study_without_the_repository(installed: Path, tmp_path: Path) -> None:
    where = outside(installed, "-c", "import fitbo; print(fitbo.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parents[1])
    said = outside(installed, "-m", "fitbo", "--version", cwd=tmp_path)
    assert said == f"fitbo {fitbo.__version__}\n"
    (tmp_path / "model.py").write_text(MODEL)
    outside(installed, "-m", "fitbo", "new", "study", "--python", "model.py:train", cwd=tmp_path)
    short = ["--set", "budget=8", "--set", "method={samples: 20}"]
    outside(installed, "-m", "fitbo", "run", "study.yaml", *short, cwd=tmp_path)
    assert (tmp_path / "results/study/report.html").is_file()


def test_one_version_everywhere() -> None:
    version = fitbo.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == version
    newest = re.search(
        r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M
    )
    assert newest
    assert newest.groups() == (version, citation["date-released"])


def test_classifiers_begin_where_the_package_does() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    minors = [int(m) for m in re.findall(r":: 3\.(\d+)", "\n".join(project["classifiers"]))]
    assert project["requires-python"] == f">=3.{minors[0]}"
    assert minors == list(range(minors[0], minors[-1] + 1))


def test_optunahub_loads_the_sampler_from_its_folder() -> None:
    folder = ROOT / "fitbo" / "integrations" / "optunahub"
    module = optunahub.load_local_module("optunahub", registry_root=str(folder.parent))
    assert module.FitboSampler(seed=0)
    _, front, text = (folder / "README.md").read_text().split("---\n", 2)
    said = yaml.safe_load(front)
    assert set(said) == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert "sampler" in said["tags"]
    assert "- FitboSampler" in text
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    major = int(fitbo.__version__.split(".")[0])
    assert (folder / "requirements.txt").read_text() == f"fitbo[optuna]>={major}.0,<{major + 1}\n"
