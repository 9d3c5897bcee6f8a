"""A Python function as an objective: named by a string, imported where it is evaluated.

    PythonObjective("package.module:function", {"epochs": 3}, base=Path("."))
    PythonObjective("./model.py:train")

The function is called as its signature says: ``train(**point)`` if it takes the parameters by name,
``train(point)`` if it names none of them and has one argument for the mapping. Where both would do,
as for ``train(p=None, **more)``, they come by name; a function without a signature, such as some
built-in ones, gets the mapping. ``kwargs`` come by name. If it has a parameter ``seed`` or
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
    """``module:function`` or ``path.py:function``, called with the point.

    ``names`` are the parameters of the space, of which a point may lack some; its own if empty.
    """

    python: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    retries: int = 0
    keep: bool = False
    isolate: bool = False
    base: Path = field(default_factory=Path)
    cwd: Path | None = None  # of a process of its own; None: the scratch directory
    names: tuple[str, ...] = ()

    @property
    def isolated(self) -> bool:
        """Whether each call has a process of its own, which can be ended and may die."""
        return self.isolate or self.timeout is not None

    def __call__(self, point: Mapping[str, Any], seed: int, scratch: Path) -> Observation:
        task: dict[str, Any] = {"target": self.python, "base": str(self.base.resolve())}
        task |= {"point": dict(point), "kwargs": dict(self.kwargs), "seed": seed}
        task |= {"names": self.names or tuple(point)}
        if self.isolated:
            return _call_in_child(task, scratch.resolve(), self.timeout, self.cwd)
        return call(**deepcopy(task), scratch=scratch)  # as a function may change what it is given


def call(
    target: str,
    base: str,
    point: Mapping[str, Any],
    kwargs: Mapping[str, Any],
    names: Collection[str],
    seed: int,
    scratch: Path,
) -> Observation:
    """What the function returns at a point, with ``kwargs`` and the extras that it asks for."""
    function = load(target, base)
    by_name = takes_names(function, names, kwargs)
    known = {**kwargs, **(point if by_name else {})}
    offered = {"seed": seed, "scratch": scratch}
    more = {name: offered[name] for name in _extras(function) if name not in known}
    return returned(lambda: function(*(() if by_name else (point,)), **known, **more))


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
    function: Callable[..., Any],
    parameters: Collection[str],
    kwargs: Collection[str],
    target: str,
    always: Collection[str] | None = None,
) -> None:
    """A ValueError unless the function can be called with the parameters and kwargs.

    ``always`` are the parameters that no point lacks: the others need defaults.
    """
    both = [name for name in kwargs if name in parameters]
    if both:
        raise ValueError(f"kwargs must not name parameters of the space, got {', '.join(both)}")
    if not takes_names(function, parameters, kwargs):
        return
    for names in (parameters, parameters if always is None else always):
        wrong = _misfit(function, (), [*names, *kwargs])
        if wrong is not None:
            raise ValueError(
                f"python must name a function of {', '.join([*names, *kwargs])}, or of one mapping "
                f"of parameters; {target} has the signature "
                f"{clip(str(_signature(function)), 120)}: {wrong}"
            )


def takes_names(
    function: Callable[..., Any], parameters: Collection[str], kwargs: Collection[str]
) -> bool:
    """Whether a function takes the parameters by name; else it takes one mapping of them.

    If it names any of them, or neither would do, it is meant to take them by name: what does not
    fit is a mistake. The mapping is for an argument that neither ``kwargs`` nor an extra fills.
    """
    signature = _signature(function)
    if signature is None:
        return False
    named = signature.parameters
    first = next(iter(named), None)
    return (
        _misfit(function, (), [*parameters, *kwargs]) is None
        or any(name in named for name in parameters)
        or first in (*kwargs, *EXTRAS)
        or _misfit(function, (None,), kwargs) is not None
    )


def _misfit(
    function: Callable[..., Any], values: tuple[Any, ...], names: Collection[str]
) -> TypeError | None:
    """Why a function cannot be called with these values, names and extras; None if it can."""
    signature = _signature(function) or inspect.Signature()
    try:
        signature.bind(*values, **dict.fromkeys([*names, *_extras(function)]))
    except TypeError as error:
        return error
    return None


def _extras(function: Callable[..., Any]) -> list[str]:
    """Which of the extras a function has a parameter for."""
    signature = _signature(function)
    return [name for name in EXTRAS if signature is not None and name in signature.parameters]


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
