"""A journal's first line: which study it belongs to, and whether that is this one.

header(config)                the line that a new journal begins with
check_same(journal, config)   ``ConfigChanged`` if it belongs to another study
config_of(journal, path)      the study that it belongs to
"""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import fitbo
from fitbo.config.build import build_problem, build_space
from fitbo.config.campaign import INCIDENTAL, StudyConfig, from_dict
from fitbo.config.method import LABEL
from fitbo.decode import differences
from fitbo.records.events import Point, entries_of
from fitbo.records.journal import FORMAT, ConfigChanged, Journal
from fitbo.space import Space

VERSIONED = ("numpy", "scipy", "emcee")  # what decides the numbers


def header(config: StudyConfig) -> dict[str, Any]:
    """The journal's first line: what the study is, and the versions that it was made with."""
    study = config.described()
    if not config.problem.black_box:
        study["problem"]["minimum"] = build_problem(config.problem).minimum
    versions = {"python": platform.python_version()} | {name: version(name) for name in VERSIONED}
    return {
        "format": FORMAT,
        "fitbo": fitbo.__version__,
        "campaign": config.campaign.name,
        "budget": config.campaign.budget,
        "study": study,
        "versions": versions,
    }


def check_same(journal: Journal, config: StudyConfig) -> None:
    """``ConfigChanged`` if a journal does not belong to this study."""
    path = config.journal
    if not isinstance(journal.header.get("study"), dict):
        raise ConfigChanged(f"{path} is not the journal of a study: give this one another name")
    old, new = (_lasting(each) for each in (study_of(journal), header(config)["study"]))
    changed = [line.removeprefix("problem.") for line in differences(old, new)]
    if not any(row.get("event") == "told" for row in journal.rows):
        # What was evaluated is only known to fail: its correction is no other study.
        changed = [line for line in changed if not line.startswith("objective")]
    order, now = (", ".join(each["problem"].get("space") or ()) for each in (old, new))
    if not changed and order != now:  # which coordinate belongs to which parameter
        changed = [f"space: was in the order {order}, is {now}"]
    if changed:
        source, then = config.directory, "fitbo import that into the renamed study"
        if config.file is not None:  # of a call
            source, then = config.file, "give that as x0 and y0 to another"
        raise ConfigChanged(
            f"{path} was made by another configuration: {'; '.join(changed)}. Set that as it was, "
            f"give the study or campaign another name or output, or move its results away; to keep "
            f"its evaluations, "
            f"fitbo export {shlex.quote(str(source))} old.csv and {then}"
        )


def study_of(journal: Journal) -> Any:
    """What a journal's header says about its study, with the objective as it was corrected last."""
    study = journal.header.get("study")
    corrected = [row for row in journal.rows if row.get("event") == "objective"]
    if not corrected or not isinstance(study, dict):
        return study
    return {**study, "problem": {**study["problem"], "objective": corrected[-1]["objective"]}}


def config_of(journal: Journal, path: Path) -> StudyConfig:
    """The study to which a journal belongs; ``path`` is where it lies."""
    study = study_of(journal)
    if not isinstance(study, dict) or not {"problem", "method", "seed", "initial"} <= set(study):
        raise ValueError(f"{path} must be the journal of a study, and its header describes none")
    problem = {key: value for key, value in study["problem"].items() if value is not None}
    data = {key: study[key] for key in ("method", "seed", "initial")}
    where = path.resolve().parent
    if path.name == "study.jsonl":
        data |= {key: value for key, value in problem.items() if key != "label"}
    else:
        where = where.parents[1] if len(where.parents) > 1 else where
        known = () if "space" in problem else ("minimum",)
        data["problems"] = [{k: v for k, v in problem.items() if k not in known}]
    data["budget"] = max(1, len(entries_of(journal.rows)), study["initial"]["n"] or 1)
    data["name"] = where.name if LABEL.admits(where.name) else "study"
    return from_dict({**data, "output": str(where.parent)}, str(path)).studies()[0]


def check_points(journal: Journal, config: StudyConfig) -> None:
    """An error that names the line of a point which is not in the study's space."""
    space, known = build_space(config.problem), dict[int, Point]()
    pairs = zip(space.names, space.parameters, strict=True)
    needed = {name for name, parameter in pairs if parameter.when is None}
    for row, line in zip(journal.rows, journal.lines, strict=True):
        point: Point = row.get("point", {})
        if not point or point == known.get(row["id"]):
            continue
        try:
            if not needed <= set(point) <= set(space.names):
                raise ValueError(f"it must have the parameters {', '.join(space.names)}")
            space.check(x_of(space, point))
        except ValueError as error:
            raise ValueError(
                f"{config.journal}:{line}: point must be in the study's space, and {error}: "
                f"something else has changed the line, restore the file or move it away"
            ) from None
        known[row["id"]] = point


def x_of(space: Space, point: Mapping[str, Any]) -> Any:
    """A point as a study and its objective take it: a dict, or an array without names."""
    if space.named:
        return dict(point)
    return np.array([point[name] for name in space.names], dtype=np.float64)


def _lasting(study: Mapping[str, Any]) -> dict[str, Any]:
    """What a header says about the study itself, which must not change.

    That there may be noise was the rule before it was found out: to say so is no change.
    """
    parts = {
        part: {k: v for k, v in study.get(part, {}).items() if k not in INCIDENTAL}
        for part in ("problem", "method")
    }
    if not parts["method"].get("deterministic"):
        parts["method"].pop("deterministic", None)
    return {**study, **parts}
