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
from typing import Annotated, Any, ClassVar, Literal

from fitbo import decode, problems
from fitbo.checks import assign
from fitbo.config.method import Label, NonNegative, bounded, check_owners
from fitbo.config.objective import ObjectiveConfig, Parameter
from fitbo.decode import ConfigError, Key, Node, Pattern, Range, Registry, check
from fitbo.objectives.command import PROVIDED, check_placeholders
from fitbo.space import Space
from fitbo.space.outcomes import OutcomeConstraint
from fitbo.study import OPTIMA

NAME = Pattern(r"[A-Za-z_][A-Za-z0-9_]{0,59}", "letters, digits and _, a digit not first")
# What a study is, wherever it runs.
BLACK_BOX = (
    *("objective", "space", "constraints", "outcome_constraints"),
    *("direction", "minimum", "maximum"),
)
OWNERS = dict.fromkeys((*BLACK_BOX, "base"), "a black box")
OWNERS |= dict.fromkeys(("dim", "noise_std"), "a test function")
Dim = Annotated[int, Range(1, 1000)]


@dataclass(frozen=True, kw_only=True)
class BlackBox:
    """The keys of a black box, in a problem of a campaign or at the top of a study's file."""

    objective: Annotated[ObjectiveConfig | None, "what is minimised; left out: ask and tell"] = None
    space: Annotated[dict[str, Parameter] | None, "the parameters by name"] = None
    constraints: Annotated[
        tuple[str, ...], 'what points must satisfy: ["x + y <= 1"], in parameters and arithmetic'
    ] = ()
    outcome_constraints: Annotated[
        tuple[str, ...],
        'what evaluations must come to: ["temperature <= 80"], a name, <= or >=, and a number; '
        "the objective returns the name's value beside its own",
    ] = ()
    direction: Annotated[
        Literal["minimize", "maximize"], "whether low values or high ones are sought"
    ] = "minimize"
    minimum: Annotated[float | None, "its minimum if that is known, for regret curves"] = None
    maximum: Annotated[float | None, "the same, if it is maximised"] = None
    base: Annotated[str | None, "the directory of relative paths; left out: this file's"] = None


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
    options = {} if name is None else problems.PROBLEMS[_family(name)[0]].options
    plain = (bool, int, float, str)
    return {
        option: Key(bounded(option, type(value)) if type(value) in plain else Any, value)
        for option, value in options.items()
    }


@dataclass(frozen=True)
class ProblemConfig(BlackBox):
    """What is minimised; a bare name is a test function or the path of a study's file."""

    name: Annotated[str | None, "a test function, perhaps with its dimension: ackley5"] = None
    label: Annotated[
        Label | None,
        "its directory and title; left out: made of name, dimension and noise, or the objective's",
    ] = None
    dim: Annotated[Dim | None, "its dimension, where that is free; left out: the usual one"] = None
    noise_std: Annotated[
        NonNegative | None,
        "standard deviation of the noise added to a test function; left out: the campaign's",
    ] = None
    options: dict[str, Any] = field(default_factory=dict)
    bare: ClassVar[str] = "name"
    registry: ClassVar[Registry] = Registry(
        names=problems.PROBLEMS,
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
        check_owners(self, OWNERS, "a black box" if self.black_box else "a test function")
        if self.space is None:
            self._resolve_test_function(str(self.name))
        else:
            self._check_black_box(self.space)
        assign(self, label=self.label or self._default_label())
        decode.check_value("label", self.label, Label)

    @property
    def black_box(self) -> bool:
        """Whether it is the user's own."""
        return self.space is not None

    @property
    def size(self) -> int:
        """How many parameters it has."""
        return len(self.space) if self.space is not None else (self.dim or 1)

    @property
    def reals(self) -> bool:
        """Whether every parameter is a real number, as those of test functions are."""
        return all(p.build().continuous for p in (self.space or {}).values())

    def _resolve_test_function(self, name: str) -> None:
        family, suffix = _family(name)
        if suffix is not None and self.dim not in (None, suffix):
            raise ValueError(f"dim must be {suffix} for {name!r}, got {self.dim}")
        usual = problems.PROBLEMS[family]
        dim = suffix if suffix is not None else self.dim or usual.dim
        decode.check_value("dim", dim, Dim)
        options = {**usual.options, **self.options}
        assign(self, name=family, dim=dim, options=options)
        try:
            problems.problem(family, dim=dim, noise_std=self.noise_std or 0.0, **options)
        except (TypeError, ArithmeticError, MemoryError) as error:
            raise ValueError(f"{family} cannot be made with these options: {error}") from None

    @property
    def optimum(self) -> float | None:
        """The best value that there is, if that is known."""
        optimum: float | None = getattr(self, OPTIMA[self.direction])
        return optimum

    def _check_black_box(self, space: dict[str, Parameter]) -> None:
        for direction, optimum in OPTIMA.items():
            if direction != self.direction and getattr(self, optimum) is not None:
                raise ValueError(f"{optimum} must be left out: the direction is {self.direction}")
        if not space:
            raise ValueError("space must not be empty")
        for name in space:
            if not NAME.admits(name):
                raise ValueError(f"space must have names{NAME}, got {decode.shown(name)}")
        parameters = {name: parameter.build() for name, parameter in space.items()}
        try:
            Space(parameters)
        except ValueError as error:
            name, _, text = str(error).partition(": when ")
            raise ValueError(f"space.{name}.when {text}" if text else str(error)) from None
        for i, constraint in enumerate(self.constraints):
            try:
                Space(parameters, constraints=[constraint])
            except ValueError as error:
                text = str(error).removeprefix("constraint ")
                raise ValueError(f"constraints[{i}] {text}") from None
        for i, text in enumerate(self.outcome_constraints):
            try:
                about = OutcomeConstraint(text).name
            except ValueError as error:
                message = str(error).removeprefix("outcome constraint ")
                raise ValueError(f"outcome_constraints[{i}] {message}") from None
            if about in space:
                raise ValueError(
                    f"outcome_constraints[{i}] must be about an outcome, got the parameter "
                    f"{about!r}: put it under constraints, or call the outcome something else"
                )
        if self.objective is not None and self.objective.command is not None:
            self._check_placeholders(self.objective, space)

    def _check_placeholders(self, objective: ObjectiveConfig, space: dict[str, Parameter]) -> None:
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
        unused = [f"{{{name}}}" for name in space if name not in used]
        if unused and "point" not in used:
            raise ValueError(
                f"objective.command must mention every parameter, or {{point}} for a file of them, "
                f"got none of {', '.join(unused)}"
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
    if not isinstance(node.value, str) or not node.value.endswith((".yaml", ".yml")):
        return node
    file = directory / node.value
    try:
        study = decode.parse(decode.read(file), str(file))
    except ConfigError as error:
        if file.is_file():
            raise
        raise ConfigError(f"there is no file {file}", node.where, path) from error
    if not isinstance(study.value, dict) or "space" not in study.value:
        message = f"expected the file of one study, but {file} has no space"
        raise ConfigError(message, node.where, path)
    keys = {key: item for key, item in study.value.items() if key in BLACK_BOX}
    found = Node(keys, study.where, {key: study.keys[key] for key in keys})
    named = study.value.get("name")
    found = decode.with_entry(found, "label", named.value if named else file.stem)
    return with_base(found, study, file.parent)


def with_base(node: Node, study: Node, directory: Path) -> Node:
    """A mapping with the ``base`` of a study's file, from the file's own directory."""
    given = study.value.get("base")
    below = given.value if given is not None and isinstance(given.value, str) else ""
    return decode.with_entry(node, "base", str((directory / below).resolve()))
