"""What is minimised, as a file describes it: a test function by its name, or a black box.

    problems:
      - hartmann6                                        a test function of ``fitbo.problems``
      - {name: michalewicz, dim: 5, noise_std: 0.03}
      - {label: reactor, objective: {...}, space: {...}, minimum: 0.0}
      - ./reactor.yaml                                   the problem of a study's own file

A file of one study has the keys of its black box at the top level instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from fitbo import decode, problems
from fitbo.config.method import LABEL, bounded
from fitbo.config.objective import ObjectiveConfig, Parameter
from fitbo.decode import ConfigError, Key, Node, Pattern, Range, Registry, check
from fitbo.objectives.command import PROVIDED, check_placeholders
from fitbo.space import Space

NAME = Pattern(r"[A-Za-z_][A-Za-z0-9_]{0,59}", "letters, digits and _, a digit not first")
FILES = (".yaml", ".yml")
BLACK_BOX = ("objective", "space", "constraints", "minimum")  # what a study's file says of its own
DIM = Annotated[int, Range(1, 1000)]

Objective = Annotated[
    ObjectiveConfig | None, "what is minimised; left out: for fitbo ask and fitbo tell"
]
Parameters = Annotated[dict[str, Parameter] | None, "the parameters by name"]
Constraints = Annotated[
    tuple[str, ...], 'what points must satisfy: ["x + y <= 1"], in parameters and arithmetic'
]
Base = Annotated[
    str | None, "the directory of the objective's relative paths; left out: this file's"
]
Minimum = Annotated[float | None, "the minimum of a black box if it is known, for regret curves"]


def _family(name: str) -> tuple[str, int | None]:
    """``ackley5`` -> ackley, 5; a name of the registry is never split."""
    try:
        return problems.split_name(name)
    except ValueError:
        hint = decode.nearest(name.rstrip("0123456789") or name, problems.PROBLEMS)
        raise ValueError(
            f"name must be one of {', '.join(problems.PROBLEMS)}, perhaps with a dimension after "
            f"it, or the path of a study's YAML file, got {decode.shown(name)}{hint}"
        ) from None


def _options(name: str | None) -> dict[str, Key]:
    """The further keys of a test function, of which only the defaults are known."""
    if name is None:
        return {}
    options = problems.PROBLEMS[_family(name)[0]].options
    plain = (bool, int, float, str)
    return {
        option: Key(bounded(option, type(value)) if type(value) in plain else Any, value)
        for option, value in options.items()
    }


@dataclass(frozen=True)
class ProblemConfig:
    """What is minimised; a bare name is a test function or the path of a study's file."""

    name: Annotated[
        str | None, "a test function, with its dimension after it if you like: ackley5"
    ] = None
    label: Annotated[
        Annotated[str, LABEL] | None,
        "its directory and title; left out: made of name, dimension and noise, or the objective's",
    ] = None
    dim: Annotated[
        DIM | None, "the dimension of a test function where it is free; left out: its usual one"
    ] = None
    noise_std: Annotated[
        Annotated[float, Range(0)] | None,
        "standard deviation of the noise added to a test function; left out: the campaign's",
    ] = None
    objective: Objective = None
    space: Parameters = None
    constraints: Constraints = ()
    minimum: Minimum = None
    base: Base = None
    options: dict[str, Any] = field(default_factory=dict)
    bare: ClassVar[str] = "name"
    registry: ClassVar[Registry] = Registry(
        names=lambda: tuple(problems.PROBLEMS),
        keys=_options,
        about=lambda name: str(problems.PROBLEMS[name].description),
        suffix="[0-9]{0,4}",
        path=r"\.ya?ml$",
    )

    def __post_init__(self) -> None:
        check(self)
        if (self.name is None) == (self.space is None):
            got = "neither" if self.name is None else "both"
            raise ValueError(f"expected a name or a space, got {got}")
        self._check_test_function() if self.space is None else self._check_black_box()
        if self.label is None:
            object.__setattr__(self, "label", self._default_label())
        decode.check_value("label", self.label, Annotated[str, LABEL])

    @property
    def black_box(self) -> bool:
        """Whether it is the user's own."""
        return self.space is not None

    @property
    def size(self) -> int:
        """How many parameters it has."""
        return len(self.space) if self.space is not None else (self.dim or 1)

    def build_space(self) -> Space:
        """The space of a black box, with its constraints."""
        parameters = {name: each.build() for name, each in (self.space or {}).items()}
        return Space(parameters, constraints=list(self.constraints))

    def _only(self, keys: tuple[str, ...], whose: str, this: str) -> None:
        for key in keys:
            if getattr(self, key) not in (None, ()):
                raise ValueError(f"{key} must be left out: it is for {whose}, and this is {this}")

    def _check_test_function(self) -> None:
        self._only((*BLACK_BOX, "base"), "a black box", "a test function")
        family, suffix = _family(str(self.name))
        if suffix is not None and self.dim not in (None, suffix):
            raise ValueError(f"dim must be {suffix} for {self.name!r}, got {self.dim}")
        usual = problems.PROBLEMS[family]
        dim = next(dim for dim in (suffix, self.dim, usual.dim) if dim is not None)
        decode.check_value("dim", dim, DIM)
        options = {**usual.options, **self.options}
        for name, value in (("name", family), ("dim", dim), ("options", options)):
            object.__setattr__(self, name, value)
        try:
            problems.problem(family, dim=dim, noise_std=self.noise_std or 0.0, **options)
        except (TypeError, ArithmeticError, MemoryError) as error:
            raise ValueError(f"{family} cannot be made with these options: {error}") from None

    def _check_black_box(self) -> None:
        self._only(("dim", "noise_std"), "a test function", "a black box")
        if not self.space:
            raise ValueError("space must not be empty")
        for name in self.space:
            if not NAME.admits(name):
                raise ValueError(f"space must have names{NAME}, got {decode.shown(name)}")
        parameters = {name: parameter.build() for name, parameter in self.space.items()}
        for i, constraint in enumerate(self.constraints):
            try:
                Space(parameters, constraints=[constraint])
            except ValueError as error:
                text = str(error).removeprefix("constraints[0]").removeprefix("constraint")
                raise ValueError(f"constraints[{i}] {text.strip(': ')}") from None
        if self.objective is not None and self.objective.command is not None:
            self._check_command(self.objective, self.space)

    def _check_command(self, objective: ObjectiveConfig, space: dict[str, Parameter]) -> None:
        for name in space:
            if name in PROVIDED:
                raise ValueError(
                    f"space.{name} must have another name: {{{name}}} means something else"
                )
        used: set[str] = set()
        texts = {f"objective.command[{i}]": text for i, text in enumerate(objective.command or ())}
        texts |= {f"objective.env.{name}": text for name, text in objective.env.items()}
        for where, text in texts.items():
            try:
                used |= check_placeholders(text, space)
            except ValueError as error:
                raise ValueError(f"{where} {error}") from None
        unused = [name for name in space if name not in used]
        if unused and "point" not in used:
            raise ValueError(
                f"objective.command must mention every parameter, or {{point}} for a file of them, "
                f"got none of {', '.join(f'{{{name}}}' for name in unused)}"
            )

    def _default_label(self) -> str:
        if self.name is None:
            return (self.objective and self.objective.title) or "black-box"
        usual = problems.PROBLEMS[self.name]
        label = self.name + (str(self.dim) if usual.free else "")
        for option, value in self.options.items():
            if value != usual.options.get(option):
                label += f"-{option}={value}"
        return label + (f"-noise={self.noise_std:g}" if self.noise_std else "")


def included(node: Node, directory: Path, path: str) -> Node:
    """An item of ``problems`` with the problem of a study's file in it, if it names one.

    The file's keys keep their own lines, so that an error in it is reported there.
    """
    if not isinstance(node.value, str) or not node.value.endswith(FILES):
        return node
    file = directory / node.value
    try:
        study = decode.parse(decode.read(file), str(file))
    except ConfigError as error:
        if file.is_file():
            raise
        raise ConfigError(f"there is no file {file}", node.where, path) from error
    if not isinstance(study.value, dict) or "space" not in study.value:
        raise ConfigError(
            f"expected the file of one study, but {file} has no space", node.where, path
        )
    keys = {key: item for key, item in study.value.items() if key in BLACK_BOX}
    found = Node(keys, study.where, {key: study.keys[key] for key in keys})
    named = study.value.get("name")
    found = decode.with_entry(found, "label", named.value if named else file.stem)
    return decode.with_entry(found, "base", str(file.parent.resolve()))
