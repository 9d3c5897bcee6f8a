"""A file: problems x methods x seeds, each triple one study; and how they are run.

    load("configs/quickstart.yaml", ["budget=50", "methods[0].samples=100"])  -> Campaign
    campaign.studies()                       one ``StudyConfig`` for each problem, method and seed
    to_dict(campaign)                        plain JSON types, of which from_dict makes it again
    json_schema()                            for editors

A file of one study is the case of one problem, one method and one seed: it has the keys of its
black box (``objective``, ``space``, ...), ``method`` and ``seed`` in place of the three lists. The
fields below are the keys of the file, each with its type, its bounds and its documentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from fitbo import decode
from fitbo.checks import assign
from fitbo.config.executor import SERIAL, Executor
from fitbo.config.method import LABEL, Count, Initial, Label, MethodConfig, NonNegative, Seed, Text
from fitbo.config.objective import Positive
from fitbo.config.problem import BLACK_BOX, BlackBox, ProblemConfig, included, with_base
from fitbo.decode import ConfigError, Node, Range, check

# What may change while a study goes on: how its objective is run, and what things are called.
CHANGEABLE = ("timeout", "retries", "keep", "isolate")
INCIDENTAL = ("label", "minimum", "maximum", "base")


@dataclass(frozen=True, kw_only=True)
class Campaign(BlackBox):
    """Every method on every problem from every seed, or one study of a black box."""

    name: Annotated[Label, "the directory of the results; left out: the file's name"] = "study"
    problems: Annotated[
        tuple[ProblemConfig, ...] | None,
        "what is minimised: test functions, black boxes, files of studies",
    ] = None
    methods: Annotated[tuple[MethodConfig, ...] | None, "what is compared; left out: method"] = None
    method: Annotated[MethodConfig | None, "how the next point is chosen; left out: remaining"] = (
        None
    )
    seeds: Annotated[
        Annotated[int, Range(1, 10_000)] | tuple[Seed, ...] | None,
        "repetitions: a count n for 0 .. n - 1, or a list; left out: seed",
    ] = None
    seed: Annotated[Seed | None, "determines the design and all randomness; left out: 0"] = None
    budget: Annotated[Count, "evaluations of each study, initial design and failures included"]
    initial: Annotated[Initial, "the points evaluated first"] = field(default_factory=Initial)
    noise_std: Annotated[NonNegative, "std of the noise, for test functions that state none"] = 0.0
    time_limit: Annotated[
        Positive | None,
        "seconds that a study may run in total; after that no evaluation is started",
    ] = None
    target: Annotated[
        float | None, "a value at or below which a study is over; with maximize, at or above"
    ] = None
    tolerance: Annotated[
        NonNegative | None,
        "a study is over when its minimum is expected to lie less than this below the best value",
    ] = None
    max_failures: Annotated[Count | None, "failures with which a study ends"] = None
    executor: Annotated[
        Executor | None,
        "where studies run; in a file of one study, where its evaluations run; left out: "
        "processes, and serial for one study",
    ] = None
    evaluations: Annotated[
        Executor | None, "for several studies: where the evaluations of each run; left out: serial"
    ] = None
    output: Annotated[
        Text,
        "results go to <output>/<name>, from the directory that fitbo runs in, not this file's",
    ] = "results"

    def __post_init__(self) -> None:
        check(self)
        if isinstance(self.seeds, int):
            assign(self, seeds=tuple(range(self.seeds)))
        for one, many in (("space", "problems"), ("method", "methods"), ("seed", "seeds")):
            if getattr(self, many) == ():
                raise ValueError(f"{many} must not be empty")
            if getattr(self, one) is not None and getattr(self, many) is not None:
                raise ValueError(f"{one} must be left out beside {many}: give one of the two")
        if self.single:
            self._check_single()
        else:
            self._check_several()
        for study in self.studies()[:: len(self.all_methods)]:
            if self.budget < study.n_initial and (not self.single or self.initial.n):
                whose = "" if self.single else f" of {study.problem.label}"
                raise ValueError(
                    f"budget must be at least the initial design{whose}, {study.n_initial}, "
                    f"got {self.budget}"
                )

    def _check_single(self) -> None:
        for name, count in (("methods", len(self.all_methods)), ("seeds", len(self.all_seeds))):
            if count > 1:
                where = "put the space under problems"
                raise ValueError(f"{name} must be one where space is given, got {count}: {where}")
        if self.evaluations is not None:
            raise ValueError("evaluations must be left out of one study: it has executor")
        if self.noise_std:
            raise ValueError(
                "noise_std must be left out of one study: it is added to test functions; a known "
                "noise of the objective is method.noise_std"
            )

    def _check_several(self) -> None:
        if self.problems is None:
            raise ValueError("problems must name what is minimised, or space state it, got neither")
        for key in BLACK_BOX:
            if getattr(self, key) != decode.keys_of(BlackBox)[key].default:
                raise ValueError(f"{key} must be left out beside problems: give it to one")
        labels = {
            "problems": [str(problem.label) for problem in self.all_problems],
            "methods": [str(method.label) for method in self.all_methods],
        }
        for name, listed in labels.items():
            first: dict[str, int] = {}
            for i, label in enumerate(listed):
                j = first.setdefault(label.casefold(), i)  # as some file systems see it
                if j != i:
                    raise ValueError(
                        f"{name}[{i}].label must be unique, got {label!r} as in {name}[{j}]: "
                        f"give one of them another label"
                    )
        for i, seed in enumerate(self.all_seeds):
            if seed in self.all_seeds[:i]:
                raise ValueError(f"seeds[{i}] must be distinct from the others, got {seed} again")
        if self.place.kind == "threads":
            raise ValueError(
                "executor must be serial, processes or dask for studies, got threads: "
                "evaluations may run in threads"
            )
        if self.place.address is not None and self.place.workers is not None:
            raise ValueError("executor.workers must be left out: the address's cluster has its own")

    @property
    def single(self) -> bool:
        """Whether this is a file of one study."""
        return self.space is not None

    @cached_property
    def all_problems(self) -> tuple[ProblemConfig, ...]:
        """The problems, or the one black box."""
        if self.single:
            given = {key: getattr(self, key) for key in BLACK_BOX}
            return (ProblemConfig(label=self.name, base=self.base, **given),)
        return tuple(
            replace(each, base=self.base) if each.black_box and each.base is None else each
            for each in self.problems or ()
        )

    @cached_property
    def all_methods(self) -> tuple[MethodConfig, ...]:
        """The methods, or the one."""
        return self.methods or (self.method or MethodConfig(),)

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds, or the one."""
        return self.seeds if isinstance(self.seeds, tuple) else (self.seed or 0,)

    @property
    def place(self) -> Executor:
        """Where studies run; in a file of one study, where its evaluations run."""
        return self.executor or (SERIAL if self.single else Executor())

    @property
    def directory(self) -> Path:
        """Where the results go."""
        return Path(self.output) / self.name

    def studies(self) -> list[StudyConfig]:
        """The grid of studies, seeds outermost, so that every method has some results early."""
        pairs = [
            (problem, method.settled(problem.reals))
            for problem in self.all_problems
            for method in self.all_methods
        ]
        return [StudyConfig(self, *pair, seed) for seed in self.all_seeds for pair in pairs]


@dataclass(frozen=True)
class StudyConfig:
    """One study of a file: a problem, a method, a seed; the rest is its campaign's."""

    campaign: Campaign
    problem: ProblemConfig
    method: MethodConfig
    seed: int
    root: Path = Path()  # what a relative output is relative to
    file: Path | None = None  # its journal, if that is not where the campaign's are

    @property
    def title(self) -> str:
        if self.campaign.single:
            return self.campaign.name
        return f"{self.problem.label} / {self.method.label} / {self.seed}"

    @property
    def directory(self) -> Path:
        """Where its journal is: the results' folder, or that of a problem and a method in it."""
        folder = self.root / self.campaign.directory
        if self.campaign.single:
            return folder
        return folder / str(self.problem.label) / str(self.method.label)

    @property
    def journal(self) -> Path:
        return (
            self.file or self.directory / f"{'study' if self.campaign.single else self.seed}.jsonl"
        )

    @property
    def scratch(self) -> Path:
        """Where its evaluations have their scratch directories."""
        return self.directory / ("scratch" if self.campaign.single else f"{self.seed}.scratch")

    @property
    def evaluations(self) -> Executor:
        """Where its evaluations run."""
        campaign = self.campaign
        return campaign.place if campaign.single else campaign.evaluations or SERIAL

    @property
    def n_initial(self) -> int:
        """Points of the initial design."""
        n = self.campaign.initial.n
        return 2 * self.problem.size if n is None else n

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise of a test function: its own, or the campaign's."""
        own = self.problem.noise_std
        return self.campaign.noise_std if own is None else own

    def described(self) -> dict[str, Any]:
        """What the study is, as plain data for a journal's header."""
        keys = decode.encode(self.problem)
        if self.problem.black_box:
            # Journals older than these keys.
            usual: dict[str, Any] = {"direction": "minimize", "maximum": None}
            usual["outcome_constraints"] = []
            stated = [k for k in BLACK_BOX if k not in usual or keys[k] != usual[k]]
            kept = {k: keys[k] for k in ("label", *stated)}
            if kept["objective"] is not None:
                stays = kept["objective"].items()
                kept["objective"] = {k: v for k, v in stays if k not in CHANGEABLE}
        else:
            kept = {k: v for k, v in keys.items() if k not in (*BLACK_BOX, "base")}
            kept["noise_std"] = self.noise_std
        return {
            "problem": kept,
            "method": decode.encode(self.method),
            "seed": self.seed,
            "initial": {**decode.encode(self.campaign.initial), "n": self.n_initial},
        }


def load(path: str | Path, overrides: Sequence[str] = ()) -> Campaign:
    """The campaign of a YAML file, with ``key.path=value`` overrides; else one ConfigError."""
    return loads(decode.read(path), str(path), overrides, Path(path).parent)


def loads(
    text: str, name: str = "<string>", overrides: Sequence[str] = (), base: Path | None = None
) -> Campaign:
    """The campaign of a YAML text; ``name`` is what errors call it."""
    node = decode.parse(text, name)
    for assignment in overrides:
        node = decode.override(node, Campaign, assignment)
    if isinstance(node.value, dict):
        stem = Path(name).stem
        if "name" not in node.value and LABEL.admits(stem):
            node = decode.with_entry(node, "name", stem)
        elif "name" not in node.value and base is not None:
            shown = decode.shown(stem)
            message = f"the file's own name, {shown}, cannot be used: expected text{LABEL}"
            raise ConfigError(message, name, "name")
        if base is not None:
            node = with_base(node, node, base)
    return _decoded(node, base or Path())


def to_dict(campaign: Campaign) -> dict[str, Any]:
    """Plain JSON types, resolved but for what depends on a problem, keys in a stable order."""
    return dict(decode.encode(campaign))


def from_dict(data: Any, where: str = "<dict>") -> Campaign:
    """The campaign of a dict made by ``to_dict``, validated as a file is."""
    return _decoded(decode.nodes_of(data, where), Path())


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a file, draft 2020-12."""
    return decode.json_schema(Campaign, "A fitbo campaign or study")


def _decoded(node: Node, base: Path) -> Campaign:
    """The campaign, with the problems of other files in their places."""
    listed = node.value.get("problems") if isinstance(node.value, dict) else None
    if listed is not None and isinstance(listed.value, list):
        items = [included(x, base, f"problems[{i}]") for i, x in enumerate(listed.value)]
        node = replace(node, value={**node.value, "problems": replace(listed, value=items)})
    campaign: Campaign = decode.decode(node, Campaign)
    return campaign
