"""From a study's file to the objects that run it: its settings and its black box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fitbo.config.build import method_settings
from fitbo.config.study import StudyFile
from fitbo.decode import ConfigError
from fitbo.inference.settings import Settings
from fitbo.objectives.command import CommandObjective, missing
from fitbo.objectives.outcome import Objective
from fitbo.objectives.python import PythonObjective, check_signature
from fitbo.objectives.python import load as load_function
from fitbo.objectives.value import Value


def build_settings(config: StudyFile) -> Settings:
    """How the study chooses."""
    return method_settings(
        config.method, n_initial=config.initial.n, design=config.initial.design, seed=config.seed
    )


def build_objective(config: StudyFile, base: Path) -> Objective:
    """The black box; relative paths in it are taken from ``base``, the directory of the file."""
    objective = config.objective
    if objective is None:
        raise ValueError(
            f"{config.name} has no objective to run: add one to its file, "
            f"or use fitbo ask and fitbo tell"
        )
    common: dict[str, Any] = {
        "timeout": objective.timeout,
        "retries": objective.retries,
        "keep": objective.keep,
        "base": base,
    }
    if objective.command is not None:
        value = objective.value or Value()
        return CommandObjective(objective.command, value, env=objective.env, **common)
    return PythonObjective(
        str(objective.python), objective.kwargs, isolate=objective.isolate, **common
    )


def check_objective(config: StudyFile, base: Path, where: str = "") -> None:
    """A ConfigError unless the function can be called, or the program is there."""
    objective = config.objective
    if objective is None:
        return
    if objective.command is not None:
        problem = missing(objective.command[0], base)
        if problem is not None:
            raise ConfigError(problem, where, "objective.command[0]")
        return
    try:
        target = str(objective.python)
        function = load_function(target, str(base.resolve()))
        check_signature(function, list(config.space), list(objective.kwargs), target)
    except ValueError as error:
        key, _, rest = str(error).partition(" ")
        raise ConfigError(rest, where, f"objective.{key}") from None
