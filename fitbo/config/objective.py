"""The parts of a study's file: a parameter of its space, its objective."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from fitbo import decode
from fitbo.config.method import MOST, PRINTABLE
from fitbo.decode import Key, Pattern, Range, Registry, check
from fitbo.objectives.command import written
from fitbo.objectives.value import Value
from fitbo.space import Categorical, Integer, Real

POSITIVE = Range(1e-9, 1e12)

PARAMETERS: dict[str, tuple[Any, str, dict[str, Key]]] = {
    "real": (
        Real,
        "a real number, low <= x <= high",
        {
            "low": Key(float, MISSING, "the least value"),
            "high": Key(float, MISSING, "the greatest value"),
            "log": Key(bool, False, "whether its logarithm is what is searched"),
        },
    ),
    "integer": (
        Integer,
        "a whole number, low <= n <= high",
        {
            "low": Key(int, MISSING, "the least value"),
            "high": Key(int, MISSING, "the greatest value"),
            "log": Key(bool, False, "whether its logarithm is what is searched"),
            "step": Key(Annotated[int, Range(1, MOST)], 1, "the gap between values, from low on"),
        },
    ),
    "categorical": (
        Categorical,
        "one of several choices, of which none is nearer to another",
        {
            "choices": Key(
                tuple[bool | int | float | str, ...], MISSING, "text, numbers, true or false"
            )
        },
    ),
}


def _parameter_keys(kind: str) -> Mapping[str, Key]:
    if kind not in PARAMETERS:
        hint = decode.nearest(kind, PARAMETERS)
        raise ValueError(
            f"type must be one of {', '.join(PARAMETERS)}, got {decode.shown(kind)}{hint}"
        )
    return PARAMETERS[kind][2]


@dataclass(frozen=True)
class Parameter:
    """One parameter of the space, with the keys of its type."""

    type: Annotated[Literal["real", "integer", "categorical"], "what its values are"]
    options: dict[str, Any] = field(default_factory=dict)
    registry: ClassVar[Registry] = Registry(
        names=lambda: tuple(PARAMETERS),
        keys=_parameter_keys,
        about=lambda name: PARAMETERS[name][1],
        by="type",
    )

    def __post_init__(self) -> None:
        check(self)
        low, high = self.options.get("low"), self.options.get("high")
        if low is not None and high is not None and not low < high:
            raise ValueError(f"low must be below high, got {low!r} and {high!r}")
        if self.options.get("log") and low is not None and low <= 0:
            raise ValueError(f"low must be positive with log, got {low!r}")
        choices = self.options.get("choices")
        if choices is not None:
            if len(choices) < 2:
                raise ValueError(f"choices must be two or more, got {len(choices)}")
            for i, choice in enumerate(choices):
                if any(choice == other and type(choice) is type(other) for other in choices[:i]):
                    raise ValueError(f"choices[{i}] must be distinct, got {choice!r} again")
                # On the command line and in tables a choice is known by its text alone.
                text = written(choice)
                if text != text.strip():
                    raise ValueError(
                        f"choices[{i}] must not begin or end with a blank, got {choice!r}"
                    )
                alike = [other for other in choices[:i] if written(other) == text]
                if alike:
                    raise ValueError(
                        f"choices[{i}] must be written otherwise than the rest, "
                        f"got {choice!r} beside {alike[0]!r}"
                    )
        self.build()

    def build(self) -> Real | Integer | Categorical:
        """The parameter of the library."""
        kind = PARAMETERS[self.type][0]
        return kind(**self.options)


@dataclass(frozen=True)
class ObjectiveConfig:
    """What is minimised: a Python function or a program."""

    python: Annotated[
        Annotated[str, PRINTABLE] | None,
        "package.module:function, or path.py:function from this file's directory; called with the "
        "parameters",
    ] = None
    kwargs: Annotated[dict[str, Any], "for python: further arguments by name"] = field(
        default_factory=dict
    )
    isolate: Annotated[
        bool, "for python: in a process of its own each time, as it is anyway with a timeout"
    ] = False
    command: Annotated[
        tuple[Annotated[str, Pattern(r"[^\x00]*", "characters other than NUL")], ...] | None,
        "a program and its arguments, {name} standing for a parameter; no shell; ./program is from "
        "this file's directory",
    ] = None
    value: Annotated[
        Value | None, "for command: where its value is; left out: stdout's last number-only line"
    ] = None
    env: Annotated[dict[str, str], "for command: environment variables, with placeholders too"] = (
        field(default_factory=dict)
    )
    timeout: Annotated[
        Annotated[float, POSITIVE] | None, "seconds, after which an attempt is ended and has failed"
    ] = None
    retries: Annotated[int, "further attempts after one that failed", Range(0, 100)] = 0
    keep: Annotated[bool, "whether scratch directories are kept after success too"] = False

    def __post_init__(self) -> None:
        check(self)
        if (self.python is None) == (self.command is None):
            got = "neither" if self.python is None else "both"
            raise ValueError(f"expected either python or command, got {got}")
        try:
            json.dumps(self.kwargs, allow_nan=False)
        except ValueError:
            raise ValueError("kwargs must be finite numbers, text, lists or mappings") from None
        if self.command is not None:
            if not self.command or not self.command[0]:
                raise ValueError("command must begin with a program, got nothing")
            if self.value is None:
                object.__setattr__(self, "value", Value())
            for name in ("kwargs", "isolate"):
                if getattr(self, name):
                    raise ValueError(f"{name} must be left out: it is for python, not for command")
            for name in self.env:
                if "=" in name or "\x00" in name or not name:
                    raise ValueError(f"env must be names of variables, got {decode.shown(name)}")
        else:
            for name in ("value", "env"):
                if getattr(self, name):
                    raise ValueError(f"{name} must be left out: it is for command, not for python")

    @property
    def title(self) -> str:
        """A label: the function's name, or the program's."""
        named = str(self.python).rpartition(":")[2] if self.python else Path(self.command[0]).stem  # type: ignore[index]
        return re.sub(r"[^A-Za-z0-9._+=-]+", "-", named).strip("-._+=")[:60]
