"""A Python function as an objective: named by a string, imported where it is evaluated.

    PythonObjective("package.module:function", {"epochs": 3}, base=Path("."))
    PythonObjective("./model.py:train")

The function is called with the parameters and ``kwargs`` by name; if it has a parameter ``seed`` or
``scratch`` that neither of them fills, it gets the evaluation's seed or an empty directory.
Isolated, it runs in an interpreter of its own, which can be ended and may die without harm.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from fitbo.decode import nearest
from fitbo.objectives.outcome import Failed, clip, number
from fitbo.objectives.process import run_program

EXTRAS = ("seed", "scratch")


@dataclass(frozen=True)
class PythonObjective:
    """``module:function`` or ``path.py:function``, called with the point by name."""

    python: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    retries: int = 0
    keep: bool = False
    isolate: bool = False
    base: Path = field(default_factory=Path)

    def __call__(self, point: Mapping[str, Any], seed: int, scratch: Path) -> float:
        if self.isolate or self.timeout is not None:
            return self._in_child(point, seed, scratch.resolve())
        function = load(self.python, str(self.base.resolve()))
        given = {**deepcopy(dict(self.kwargs)), **point}  # a function may change what it is given
        return number(function(**given, **extras(function, given, seed, scratch)))

    def _in_child(self, point: Mapping[str, Any], seed: int, scratch: Path) -> float:
        task = {
            "python": self.python,
            "base": str(self.base.resolve()),
            "given": {**self.kwargs, **point},
            "seed": seed,
        }
        (scratch / "task.json").write_text(json.dumps(task) + "\n", encoding="utf-8")
        # What can be imported here can be imported there, which has another working directory.
        env = {"PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path)}
        command = [sys.executable, "-m", "fitbo.objectives.child", str(scratch)]
        run_program(command, scratch, env, self.timeout)
        try:
            result = json.loads((scratch / "result.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise Failed("the function ended its process and returned nothing") from None
        if "reason" in result:
            raise Failed(str(result["reason"]))
        return number(result["value"])


def extras(
    function: Callable[..., Any], given: Collection[str], seed: int, scratch: Path
) -> dict[str, Any]:
    """What the function asks for by name beyond the parameters: the seed, a directory."""
    offered = {"seed": seed, "scratch": scratch}
    try:
        wanted = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a built-in function has none
        return {}
    return {name: value for name, value in offered.items() if name in wanted and name not in given}


@cache
def load(target: str, base: str) -> Callable[..., Any]:
    """The function that ``target`` names; a ValueError says what is wrong with it."""
    where, colon, name = target.rpartition(":")
    if not (colon and where and name.isidentifier()):
        raise ValueError(
            f"python must be package.module:function or path.py:function, "
            f"got {clip(repr(target), 80)}"
        )
    try:
        module = _module(where, base)
    except (Exception, SystemExit) as error:
        if isinstance(error, FileNotFoundError) and where.endswith(".py"):
            raise ValueError(
                f"python must name a file that exists, got {where!r}: "
                f"there is no {Path(base, where)}"
            ) from None
        raise ValueError(
            f"python must name a module that can be imported, got {where!r}: "
            f"{type(error).__name__}: {clip(str(error), 200)}{_guard(error)}"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        names = [key for key, value in vars(module).items() if callable(value)]
        found = "which is not a function" if function is not None else "which is not there"
        raise ValueError(
            f"python must name a function of {where}, got {name!r}, {found}{nearest(name, names)}"
        )
    return function


def _guard(error: BaseException) -> str:
    ended = isinstance(error, SystemExit)
    return "; put what is not for an import under if __name__ == '__main__':" if ended else ""


def check_signature(
    function: Callable[..., Any], parameters: Collection[str], kwargs: Collection[str], target: str
) -> None:
    """A ValueError unless the function can be called with the parameters and kwargs by name."""
    both = [name for name in kwargs if name in parameters]
    if both:
        raise ValueError(f"kwargs must not name parameters of the space, got {', '.join(both)}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    given = dict.fromkeys([*parameters, *kwargs])
    given |= {name: None for name in EXTRAS if name in signature.parameters}
    try:
        signature.bind(**given)
    except TypeError as error:
        raise ValueError(
            f"python must name a function of {', '.join([*parameters, *kwargs])}; "
            f"{target} has the signature {clip(str(signature), 120)}: {error}"
        ) from None


def _module(where: str, base: str) -> ModuleType:
    if not where.endswith(".py"):
        for folder in (os.getcwd(), base):  # a module beside the study's file, or from here
            if folder not in sys.path:
                sys.path.insert(0, folder)
        return importlib.import_module(where)
    path = Path(base, where).resolve()
    if not path.is_file():
        raise FileNotFoundError(path)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # for what it imports from beside it
    name = f"fitbo_objective_{path.stem}_{abs(hash(str(path))):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses and pickles look there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
