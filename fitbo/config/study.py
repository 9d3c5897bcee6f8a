"""One study as a file describes it: a black box, its space, a budget, when to stop.

    load("study.yaml", ["budget=80"])        -> StudyFile, or one ConfigError that names the line
    is_study(node)                           whether a file is a study and not a campaign
    build_space(config)                      its parameters and constraints; the rest of what
                                             runs it is made by ``fitbo.config.study_build``
    fixed(config)                            what must not change while a study goes on

The fields below are the keys of the file. Only ``space`` and ``budget`` are required: without an
objective the study is for ``fitbo ask`` and ``fitbo tell``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from fitbo import decode
from fitbo.config.method import LABEL, MOST, PRINTABLE, SEED, Initial, MethodConfig, Place, Workers
from fitbo.config.objective import POSITIVE, ObjectiveConfig, Parameter
from fitbo.decode import ConfigError, Pattern, Range, check
from fitbo.objectives.command import PROVIDED, check_placeholders
from fitbo.space import Space

NAME = Pattern(r"[A-Za-z_][A-Za-z0-9_]{0,59}", "letters, digits and _, a digit not first")
# Keys of one kind of file only, should a study's lack its space and its objective.
STUDY_KEYS = ("constraints", "seed", "method")
CAMPAIGN_KEYS = ("problems", "methods", "seeds")
# What may change while a study goes on: where and how long it runs, and not what it is.
CHANGEABLE = (
    "name",
    "budget",
    "time_limit",
    "target",
    "tolerance",
    "max_failures",
    "executor",
    "output",
)
CHANGEABLE_OF_OBJECTIVE = ("timeout", "retries", "keep", "isolate")


@dataclass(frozen=True)
class StudyExecutor(Place):
    """Where evaluations run; a bare name is the kind: ``threads``."""

    kind: Annotated[
        Literal["serial", "threads", "processes", "dask"],
        "serial: one after another; threads: best for commands; processes: for Python functions; "
        "dask: on a cluster",
    ] = "serial"
    workers: Annotated[Workers, "evaluations at a time; left out: as many as cores"] = None


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """One optimisation of a black box of one's own."""

    name: Annotated[str, "the directory of the results; left out: the file's name", LABEL] = "study"
    objective: Annotated[
        ObjectiveConfig | None, "what is minimised; left out: for fitbo ask and fitbo tell"
    ] = None
    space: Annotated[dict[str, Parameter], "the parameters by their names"]
    constraints: Annotated[
        tuple[str, ...], 'what points must obey: ["x + y <= 1"], in parameters and arithmetic'
    ] = ()
    budget: Annotated[
        int, "evaluations in all, initial design and failures included", Range(1, MOST)
    ]
    seed: Annotated[int, "fixes the design and all chance", SEED] = 0
    method: Annotated[MethodConfig, "how the next point is chosen"] = field(
        default_factory=MethodConfig
    )
    initial: Annotated[Initial, "the points evaluated first"] = field(default_factory=Initial)
    time_limit: Annotated[
        Annotated[float, POSITIVE] | None, "seconds of running in all, after which none is begun"
    ] = None
    target: Annotated[float | None, "a value at or below which the study is over"] = None
    tolerance: Annotated[
        Annotated[float, Range(0)] | None,
        "over when the expected improvement of the best further evaluation is below this",
    ] = None
    max_failures: Annotated[
        Annotated[int, Range(1, MOST)] | None, "failures with which the study ends"
    ] = None
    executor: Annotated[StudyExecutor, "where evaluations run"] = field(
        default_factory=StudyExecutor
    )
    output: Annotated[
        str,
        "results go to <output>/<name>, from the directory that fitbo runs in, not this file's",
        PRINTABLE,
    ] = "results"

    def __post_init__(self) -> None:
        check(self)
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
                text = (
                    str(error).removeprefix("constraints[0]").removeprefix("constraint").strip(": ")
                )
                raise ValueError(f"constraints[{i}] {text}") from None
        build_space(self)
        if self.objective is not None and self.objective.command is not None:
            self._check_command(self.objective)
        if self.initial.n is not None and self.budget < self.initial.n:
            raise ValueError(
                f"budget must be at least the initial design, {self.initial.n}, got {self.budget}"
            )

    def _check_command(self, objective: ObjectiveConfig) -> None:
        for name in self.space:
            if name in PROVIDED:
                raise ValueError(
                    f"space.{name} must have another name: {{{name}}} means something else"
                )
        used: set[str] = set()
        texts = {f"objective.command[{i}]": text for i, text in enumerate(objective.command or ())}
        texts |= {f"objective.env.{name}": text for name, text in objective.env.items()}
        for where, text in texts.items():
            try:
                used |= check_placeholders(text, self.space)
            except ValueError as error:
                raise ValueError(f"{where} {error}") from None
        unused = [name for name in self.space if name not in used]
        if unused and "point" not in used:
            raise ValueError(
                f"objective.command must mention every parameter, or {{point}} for a file of them, "
                f"got none of {', '.join(f'{{{name}}}' for name in unused)}"
            )

    @property
    def directory(self) -> Path:
        """Where the results go."""
        return Path(self.output) / self.name

    @property
    def journal(self) -> Path:
        """Where its journal is."""
        return self.directory / "study.jsonl"


def load(path: str | Path, overrides: Sequence[str] = ()) -> StudyFile:
    """The study of a YAML file, with ``key.path=value`` overrides; else one ConfigError."""
    return loads(decode.read(path), str(path), overrides)


def loads(text: str, name: str = "<string>", overrides: Sequence[str] = ()) -> StudyFile:
    """The study of a YAML text; ``name`` is what errors call it."""
    node = decode.parse(text, name)
    for assignment in overrides:
        node = decode.override(node, StudyFile, assignment)
    if isinstance(node.value, dict) and "name" not in node.value:
        stem = Path(name).stem
        if not LABEL.admits(stem):
            if name != "<string>":
                message = (
                    f"the file's own name, {decode.shown(stem)}, cannot serve: expected text{LABEL}"
                )
                raise ConfigError(message, name, "name")
            stem = "study"
        node = decode.with_entry(node, "name", stem)
    return _decoded(node)


def from_dict(data: Any, where: str = "<dict>") -> StudyFile:
    """The study of a dict made by ``to_dict``."""
    return _decoded(decode.nodes_of(data, where))


def to_dict(config: StudyFile) -> dict[str, Any]:
    """Plain JSON types, everything resolved."""
    return dict(decode.encode(config))


def is_study(path: str | Path) -> bool:
    """Whether a YAML file is of one study, by its keys; a campaign's, or none at all, is not."""
    try:
        node = decode.parse(decode.read(path), str(path))
    except ConfigError:
        return False
    keys = node.value if isinstance(node.value, dict) else {}
    if "space" in keys or "objective" in keys:
        return True
    if any(key in keys for key in CAMPAIGN_KEYS):
        return False
    return any(key in keys for key in STUDY_KEYS)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a study's file, draft 2020-12."""
    return decode.json_schema(StudyFile, "A fitbo study")


def fixed(config: StudyFile) -> dict[str, Any]:
    """What a study is, as plain data: the file without what may change while it goes on."""
    data = {key: value for key, value in to_dict(config).items() if key not in CHANGEABLE}
    if data["objective"] is not None:
        kept = data["objective"].items()
        data["objective"] = {k: v for k, v in kept if k not in CHANGEABLE_OF_OBJECTIVE}
    return data


def build_space(config: StudyFile) -> Space:
    """The space, with its constraints."""
    parameters = {name: parameter.build() for name, parameter in config.space.items()}
    return Space(parameters, constraints=list(config.constraints))


def _decoded(node: decode.Node) -> StudyFile:
    config = decode.decode(node, StudyFile)
    assert isinstance(config, StudyFile)  # noqa: S101 (for the type checker)
    return config
