"""The parts of a black box in a file: a parameter of its space, its objective."""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from fitbo import decode
from fitbo.checks import assign
from fitbo.config.method import Count, Text, check_owners
from fitbo.decode import Choice, Key, Pattern, Range, Registry, check
from fitbo.objectives.command import written
from fitbo.objectives.value import Value
from fitbo.space import Categorical, Integer, Real

Positive = Annotated[float, Range(1e-9, 1e12)]


def _range_keys(number: type) -> dict[str, Key]:
    return {
        "low": Key(number, MISSING, "the least value"),
        "high": Key(number, MISSING, "the greatest value"),
        "log": Key(bool, False, "whether its logarithm is what is searched"),
    }


STEP = Key(Count, 1, "the gap between values, from low on")
WHEN = Key(
    Text | None, None, "the condition under which it exists: optimiser == 'sgd'; left out: always"
)
REAL_STEP = Key(Positive | None, None, f"{STEP.doc}; left out: any number")
CHOICES = Key(tuple[bool | int | float | str, ...], MISSING, "text, numbers, true or false")
PARAMETERS: dict[str, tuple[Any, dict[str, Key], str]] = {
    "real": (
        Real,
        _range_keys(float) | {"step": REAL_STEP, "when": WHEN},
        "a real number, low <= x <= high",
    ),
    "integer": (
        Integer,
        _range_keys(int) | {"step": STEP, "when": WHEN},
        "a whole number, low <= n <= high",
    ),
    "categorical": (
        Categorical,
        {"choices": CHOICES, "when": WHEN},
        "one of several choices, of which none is nearer to another",
    ),
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of the space, with the keys of its type."""

    type: Annotated[str, "what its values are", Choice(PARAMETERS)]
    options: dict[str, Any] = field(default_factory=dict)
    registry: ClassVar[Registry] = Registry(
        names=PARAMETERS,
        keys=lambda name: PARAMETERS[name][1],
        about=lambda name: PARAMETERS[name][2],
        by="type",
    )

    def __post_init__(self) -> None:
        check(self)
        # What is left out is not noted: journals older than a key have none of it.
        assign(self, options={k: v for k, v in self.options.items() if v is not None})
        choices = self.options.get("choices")
        if choices is not None and len(choices) < 2:
            raise ValueError(f"choices must be two or more, got {len(choices)}")
        # On the command line and in tables a choice is known by its text alone.
        texts: dict[str, Any] = {}
        for i, choice in enumerate(choices or ()):
            text = written(choice)
            if text != text.strip():
                raise ValueError(f"choices[{i}] must not begin or end with a blank, got {choice!r}")
            if text in texts:
                raise ValueError(
                    f"choices[{i}] must be distinct from the others as text, "
                    f"got {choice!r} beside {texts[text]!r}"
                )
            texts[text] = choice
        self.build()

    def build(self) -> Real | Integer | Categorical:
        """The parameter of the library."""
        return PARAMETERS[self.type][0](**self.options)


@dataclass(frozen=True)
class ObjectiveConfig:
    """What is minimised: a Python function or a program."""

    python: Annotated[
        Text | None,
        "package.module:function, or path.py:function from this file's directory; called with the "
        "parameters by name, or with one mapping of them, as its signature says",
    ] = None
    kwargs: Annotated[dict[str, Any], "for python: further arguments by name"] = field(
        default_factory=dict
    )
    isolate: Annotated[bool, "for python: each call in its own process, as with a timeout"] = False
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
    timeout: Annotated[Positive | None, "seconds after which an attempt is ended: a failure"] = None
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
        owners = {"kwargs": "python", "isolate": "python", "value": "command", "env": "command"}
        check_owners(self, owners, "command" if self.python is None else "python")
        if self.command is not None:
            if not self.command or not self.command[0]:
                raise ValueError("command must begin with a program, got nothing")
            assign(self, value=self.value or Value())
            for name in self.env:
                if "=" in name or "\x00" in name or not name:
                    raise ValueError(f"env must be names of variables, got {decode.shown(name)}")

    @property
    def title(self) -> str:
        """A label: the function's name, or the program's."""
        program, *_ = self.command or [""]
        named = self.python.rpartition(":")[2] if self.python else Path(program).stem
        return re.sub(r"[^A-Za-z0-9._+=-]+", "-", named).strip("-._+=")[:60]
