"""A campaign as a file describes it: problems x methods x seeds, and how they are run.

    load("configs/quickstart.yaml", ["budget=50", "methods[0].samples=100"])  -> Campaign
    to_dict(campaign)                        plain JSON types, everything resolved
    from_dict(to_dict(campaign)) == campaign
    differences(old, new)                    which keys of two such dicts differ, and how
    json_schema()                            for editors

The fields below are the keys of the file, each with its type, its bounds and its reason; how they
are decoded, and how an error finds its line, is ``fitbo.decode``. A method's are in
``fitbo.config.method``; those of a problem are the options of its family in
``fitbo.problems.PROBLEMS``.
What is None after loading is left to the library.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from fitbo import decode, problems
from fitbo.config.method import (
    LABEL,
    MOST,
    PRINTABLE,
    SEED,
    Initial,
    MethodConfig,
    Place,
    Workers,
    bounded,
)
from fitbo.decode import ConfigError, Key, Range, Registry, Short, check


def _family(name: str) -> tuple[str, int | None]:
    """``ackley5`` -> ackley, 5; a name of the registry is never split."""
    if name in problems.PROBLEMS:
        return name, None
    stem, digits = re.fullmatch(r"(.*?)([0-9]*)", name, re.DOTALL).groups()  # type: ignore[union-attr]
    if stem in problems.PROBLEMS and 0 < len(digits) <= 4:
        return stem, int(digits)
    known = ", ".join(problems.PROBLEMS)
    hint = decode.nearest(stem if stem else name, problems.PROBLEMS)
    raise ValueError(
        f"name must be one of {known}, perhaps with a dimension behind it, "
        f"got {decode.shown(name)}{hint}"
    )


def _problem_keys(name: str) -> dict[str, Key]:
    options = problems.PROBLEMS[_family(name)[0]].options
    return {option: Key(_hint_of(option, value), value) for option, value in options.items()}


def _hint_of(option: str, default: Any) -> Any:
    """The hint of a problem's option, of which only the default is known."""
    kind = type(default)
    return bounded(option, kind) if kind in (bool, int, float, str) else Any


@dataclass(frozen=True)
class ProblemConfig:
    """What is minimised; a bare name is enough: ``hartmann6``, ``ackley5``."""

    name: Annotated[str, "the problem, with its dimension behind it if you like: ackley5"]
    label: Annotated[
        Annotated[str, LABEL] | None,
        "its directory and its title; left out: made of name, dimension and noise",
    ] = None
    dim: Annotated[
        Annotated[int, Range(1, 1000)] | None,
        "its dimension, where it is free; left out: its usual one",
    ] = None
    noise_std: Annotated[
        Annotated[float, Range(0)] | None,
        "deviation of the noise on each observation; left out: the campaign's",
    ] = None
    options: dict[str, Any] = field(default_factory=dict)
    bare: ClassVar[str] = "name"
    registry: ClassVar[Registry] = Registry(
        names=lambda: tuple(problems.PROBLEMS),
        keys=_problem_keys,
        about=lambda name: str(problems.PROBLEMS[name].description),
        suffix="[0-9]{0,4}",
    )

    def __post_init__(self) -> None:
        check(self)
        family, suffix = _family(self.name)
        if suffix is not None and self.dim not in (None, suffix):
            raise ValueError(f"dim must be {suffix} for {self.name!r}, got {self.dim}")
        dim = suffix if self.dim is None else self.dim
        dim = problems.PROBLEMS[family].dim if dim is None else dim
        decode.check_value("dim", dim, Annotated[int, Range(1, 1000)])
        options = {**problems.PROBLEMS[family].options, **self.options}
        for name, value in (("name", family), ("dim", dim), ("options", options)):
            object.__setattr__(self, name, value)
        _built(family, dim, self.noise_std or 0.0, options)
        if self.label is None:
            object.__setattr__(self, "label", self._default_label())
        decode.check_value("label", self.label, Annotated[str, LABEL])

    def _default_label(self) -> str:
        usual = problems.PROBLEMS[self.name]
        label = self.name
        if usual.free:
            label += str(self.dim)
        for option, value in self.options.items():
            if value != usual.options.get(option):
                label += f"-{option}={value}"
        return label + (f"-noise={self.noise_std:g}" if self.noise_std else "")


def _built(name: str, dim: int, noise_std: float, options: dict[str, Any]) -> None:
    """A ValueError unless the problem can be made."""
    try:
        problems.problem(name, dim=dim, noise_std=noise_std, **options)
    except (TypeError, ArithmeticError, MemoryError) as error:
        raise ValueError(f"{name} cannot be made with these options: {error}") from None


@dataclass(frozen=True)
class Executor(Place):
    """Where the studies run; a bare name is the kind: ``processes``."""

    kind: Annotated[
        Literal["serial", "processes", "dask"],
        "serial: one after another; processes: on this machine's cores; dask: on a cluster",
    ] = "processes"
    workers: Annotated[Workers, "studies at a time; left out: as many as cores"] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.address is not None and self.workers is not None:
            raise ValueError("workers must be left out with an address: that cluster has its own")


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Every method on every problem from every seed, each a study with the same budget."""

    name: Annotated[str, "the directory of the results; left out: the file's name", LABEL] = (
        "campaign"
    )
    problems: Annotated[tuple[ProblemConfig, ...], "what is minimised"]
    methods: Annotated[tuple[MethodConfig, ...], "what is compared"]
    seeds: Annotated[
        tuple[Annotated[int, SEED], ...],
        "repetitions: a count n for 0 .. n - 1, or a list; a seed fixes the design and all chance",
        Short(Annotated[int, Range(1, 10_000)], lambda n: tuple(range(n))),
    ]
    budget: Annotated[
        int, "evaluations of each study in all, the initial design included", Range(1, MOST)
    ]
    initial: Annotated[Initial, "the points evaluated first"] = field(default_factory=Initial)
    noise_std: Annotated[
        float, "deviation of the noise, for problems that state none", Range(0)
    ] = 0.0
    executor: Annotated[Executor, "where the studies run"] = field(default_factory=Executor)
    output: Annotated[
        str,
        "results go to <output>/<name>, from the directory that fitbo runs in, not this file's",
        PRINTABLE,
    ] = "results"

    def __post_init__(self) -> None:
        check(self)
        for name in ("problems", "methods", "seeds"):
            if not getattr(self, name):
                raise ValueError(f"{name} must not be empty")
        for name in ("problems", "methods"):
            first: dict[str, int] = {}  # in any case: some file systems do not distinguish it
            for i, label in enumerate(item.label for item in getattr(self, name)):
                j = first.setdefault(label.casefold(), i)
                if j != i:
                    raise ValueError(
                        f"{name}[{i}].label must be unique, got {label!r} as in {name}[{j}]: "
                        f"give one of them another label"
                    )
        places: dict[int, int] = {}
        for i, seed in enumerate(self.seeds):
            if places.setdefault(seed, i) != i:
                raise ValueError(f"seeds[{i}] must be distinct from the others, got {seed} again")
        for problem in self.problems:
            if self.budget < self.n_initial(problem):
                raise ValueError(
                    f"budget must be at least the initial design of {problem.label}, "
                    f"{self.n_initial(problem)}, got {self.budget}"
                )

    def n_initial(self, problem: ProblemConfig) -> int:
        """Points of the initial design on a problem."""
        return self.initial.n or 2 * (problem.dim or 1)

    def noise(self, problem: ProblemConfig) -> float:
        """Deviation of the noise on a problem: its own if stated."""
        return self.noise_std if problem.noise_std is None else problem.noise_std

    @property
    def directory(self) -> Path:
        """Where the results go."""
        return Path(self.output) / self.name


def load(path: str | Path, overrides: Sequence[str] = ()) -> Campaign:
    """The campaign of a YAML file, with ``key.path=value`` overrides; else one ConfigError."""
    return _campaign(decode.read(path), str(path), Path(path).stem, overrides)


def loads(text: str, name: str = "<string>", overrides: Sequence[str] = ()) -> Campaign:
    """The campaign of a YAML text; ``name`` is what errors call it."""
    stem = Path(name).stem
    return _campaign(text, name, stem if LABEL.admits(stem) else "campaign", overrides)


def to_dict(campaign: Campaign) -> dict[str, Any]:
    """Plain JSON types, everything resolved, keys in a stable order."""
    return dict(decode.encode(campaign))


def from_dict(data: Any, where: str = "<dict>") -> Campaign:
    """The campaign of a dict made by ``to_dict``, validated as a file is."""
    return _decoded(decode.nodes_of(data, where))


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """``methods[1].samples: was 200, is 50`` for each key at which two such dicts differ."""
    return decode.differences(old, new)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a campaign's file, draft 2020-12."""
    return decode.json_schema(Campaign, "A fitbo campaign")


def _campaign(text: str, source: str, name: str, overrides: Sequence[str]) -> Campaign:
    node = decode.parse(text, source)
    for assignment in overrides:
        node = decode.override(node, Campaign, assignment)
    if isinstance(node.value, dict) and "name" not in node.value:
        if not LABEL.admits(name):
            message = (
                f"the file's own name, {decode.shown(name)}, cannot serve: expected text{LABEL}"
            )
            raise ConfigError(message, source, "name")
        node = decode.with_entry(node, "name", name)
    return _decoded(node)


def _decoded(node: decode.Node) -> Campaign:
    campaign = decode.decode(node, Campaign)
    assert isinstance(campaign, Campaign)  # noqa: S101 (for the type checker)
    return campaign
