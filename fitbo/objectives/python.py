"""A Python function as an objective: named by a string, imported where it is evaluated.

    PythonObjective("package.module:function", {"epochs": 3}, base=Path("."))
    PythonObjective("./model.py:train")

The function is called with the parameters and ``kwargs`` by name. If it has a parameter ``seed`` or
``scratch`` that neither of them fills, it receives the evaluation's seed or an empty directory.
With ``isolate`` or a ``timeout`` it runs in a new interpreter, which can be killed and may crash.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from fitbo.checks import nearest
from fitbo.objectives.outcome import (
    FULL,
    Failed,
    Observation,
    clip,
    described,
    failure,
    machine,
    observed,
    returned,
    traced,
)
from fitbo.objectives.process import run_program

EXTRAS = ("seed", "scratch")
TASK, RESULT = "task.json", "result.json"
CHILD = "import sys; from fitbo.objectives.python import run_task; run_task(*sys.argv[1:])"


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
    cwd: Path | None = None  # of a process of its own; None: the scratch directory

    @property
    def isolated(self) -> bool:
        """Whether each call has a process of its own, which can be ended and may die."""
        return self.isolate or self.timeout is not None

    def __call__(self, point: Mapping[str, Any], seed: int, scratch: Path) -> Observation:
        given, base = {**self.kwargs, **point}, str(self.base.resolve())
        if self.isolated:
            task = {"target": self.python, "base": base, "given": given, "seed": seed}
            return _call_in_child(task, scratch.resolve(), self.timeout, self.cwd)
        # A copy, as a function may change what it is given.
        return call(self.python, base, deepcopy(given), seed, scratch)


def call(target: str, base: str, given: Mapping[str, Any], seed: int, scratch: Path) -> Observation:
    """What the function returns, called with ``given`` and, where it asks for them, the extras."""
    function = load(target, base)
    wanted = set(getattr(_signature(function), "parameters", ())) - set(given)
    offered = {"seed": seed, "scratch": scratch}
    extras = {name: offered[name] for name in wanted & set(offered)}
    return returned(lambda: function(**given, **extras))


def _call_in_child(
    task: Mapping[str, Any], scratch: Path, timeout: float | None, cwd: Path | None
) -> Observation:
    # The child has another working directory: absolute paths keep the same modules importable.
    env = {"PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path)}
    with ExitStack() as files:
        with machine(scratch):
            (scratch / TASK).write_text(json.dumps(task) + "\n", encoding="utf-8")
            result = files.enter_context((scratch / RESULT).open("w+b", 0))
        command = [sys.executable, "-c", CHILD, str(scratch), str(result.fileno())]
        passed = [result.fileno()]
        run_program(command, scratch, env, timeout, passed=passed, cwd=cwd)
        result.seek(0)
        text = result.read()
    if not text:
        raise Failed("the function ended its process and returned nothing")
    found = json.loads(text)
    if found.get("errno") in FULL:
        raise OSError(found["errno"], found["reason"])
    if "reason" in found:
        raise Failed(str(found["reason"]))
    return observed(found)


def run_task(scratch: str, descriptor: str) -> None:
    """The child's side: from TASK to the descriptor of RESULT, written completely or not at all."""
    folder = Path(scratch)
    task = json.loads((folder / TASK).read_text(encoding="utf-8"))
    result: dict[str, Any]
    try:
        result = asdict(call(**task, scratch=folder))
    except BaseException as error:  # noqa: BLE001 (whatever the function raises is a reason)
        result = {"reason": failure(error), "errno": getattr(error, "errno", None)}
        sys.stderr.write(traced(error))
    os.write(int(descriptor), json.dumps(result).encode() + b"\n")


@cache
def load(target: str, base: str) -> Callable[..., Any]:
    """The function that ``target`` names; a ValueError says what is wrong with it."""
    where, name, path = _split(target, base)
    try:
        module = _from_file(path) if path else _from_path(where, base)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        guard = "; put what is not for an import under if __name__ == '__main__':"
        raise ValueError(
            f"python must name a module that can be imported, got {where!r}: "
            f"{described(error)}{guard if isinstance(error, SystemExit) else ''}"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        names = [key for key, value in vars(module).items() if callable(value)]
        found = "which is not a function" if function is not None else "which is not there"
        raise ValueError(
            f"python must name a function of {where}, got {name!r}, {found}{nearest(name, names)}"
        )
    return function


def check_defined(target: str, base: str) -> None:
    """The same as far as it can be said without running anything; of a module it is not."""
    where, name, path = _split(target, base)
    if path is None:
        return
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"python must name a module of Python, got {where!r}: {error}") from None
    made = [node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.Name | ast.alias)]
    names = {getattr(node, key, None) for node in made for key in ("name", "asname", "id")}
    known = [each for each in names if isinstance(each, str)]
    if name not in known and "*" not in known:
        hint = nearest(name, known)
        raise ValueError(
            f"python must name a function of {where}, got {name!r}, which is not there{hint}"
        )


def _split(target: str, base: str) -> tuple[str, str, Path | None]:
    """Module, function, and the module's file where it is named by that; or a ValueError."""
    where, _, name = target.rpartition(":")
    if not (where and name.isidentifier()):
        wanted = "package.module:function or path.py:function"
        raise ValueError(f"python must be {wanted}, got {clip(repr(target), 80)}")
    path = Path(base, where).resolve() if where.endswith(".py") else None
    if path and not path.is_file():
        raise ValueError(f"python must name a file that exists, got {where!r}: there is no {path}")
    return where, name, path


def check_signature(
    function: Callable[..., Any], parameters: Collection[str], kwargs: Collection[str], target: str
) -> None:
    """A ValueError unless the function can be called with the parameters and kwargs by name."""
    both = [name for name in kwargs if name in parameters]
    if both:
        raise ValueError(f"kwargs must not name parameters of the space, got {', '.join(both)}")
    signature = _signature(function)
    if signature is None:
        return
    names = [*parameters, *kwargs]
    extras = [name for name in EXTRAS if name in signature.parameters]
    try:
        signature.bind(**dict.fromkeys([*names, *extras]))
    except TypeError as error:
        raise ValueError(
            f"python must name a function of {', '.join(names)}; "
            f"{target} has the signature {clip(str(signature), 120)}: {error}"
        ) from None


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # a built-in function may have none
        return None


def _from_path(name: str, base: str) -> ModuleType:
    for folder in (os.getcwd(), base):  # the working directory, and that of the study's file
        if folder not in sys.path:
            sys.path.insert(0, folder)
    return importlib.import_module(name)


def _from_file(path: Path) -> ModuleType:
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # for imports from the same directory
    name = f"fitbo_objective_{path.stem}_{abs(hash(str(path))):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses and pickle look there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
