"""From a study's configuration to the objects that run it."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from fitbo import problems
from fitbo.config.campaign import StudyConfig
from fitbo.config.problem import ProblemConfig
from fitbo.decode import ConfigError
from fitbo.inference.settings import Settings
from fitbo.objectives import CommandObjective, Objective, PythonObjective
from fitbo.objectives.command import missing
from fitbo.objectives.python import check_defined, check_signature
from fitbo.objectives.python import load as load_function
from fitbo.problems import Problem
from fitbo.space import Space
from fitbo.study import Study


def build_study(study: StudyConfig) -> Study:
    """The study itself, without any values."""
    problem = study.problem
    return Study(
        build_space(problem),
        build_settings(study),
        direction=problem.direction,
        outcome_constraints=problem.outcome_constraints,
    )


def build_space(problem: ProblemConfig) -> Space:
    """The space of a test function or of a black box."""
    if problem.space is None:
        return build_problem(problem).space
    parameters = {name: parameter.build() for name, parameter in problem.space.items()}
    return Space(parameters, problem.constraints)


def build_problem(problem: ProblemConfig, noise_std: float = 0.0) -> Problem:
    """The test function, with noise of this standard deviation."""
    return _problem(str(problem.name), problem.dim, noise_std, tuple(problem.options.items()))


@cache
def _problem(name: str, dim: int, noise_std: float, options: tuple[Any, ...]) -> Problem:
    return problems.problem(name, dim=dim, noise_std=noise_std, **dict(options))


def build_settings(study: StudyConfig) -> Settings:
    """How the study chooses; what the file leaves out is the library's default."""
    method = study.method
    same = ["acquisition", "rule", "resolution", "etas", "exploit", "beta", "moments"]
    same += ["deterministic", "noise_std", "replicates", "local"]
    chosen = method.sampler.given | {name: getattr(method, name) for name in same}
    if method.entropy is not None:
        chosen["entropy"] = method.entropy.build()
    return Settings(
        n_initial=study.n_initial,
        design=study.campaign.initial.design,
        n_samples=method.samples,
        surrogate=method.surrogate.kind,
        kernel=method.surrogate.kernel,
        seed=study.seed,
        **{name: value for name, value in chosen.items() if value is not None},
    )


def build_objective(problem: ProblemConfig) -> Objective:
    """The black box; its relative paths are taken from its ``base``."""
    objective = problem.objective
    if objective is None:
        raise ValueError(
            f"{problem.label} has no objective to run: add one to its file, "
            f"or use fitbo ask and fitbo tell"
        )
    kind = CommandObjective if objective.python is None else PythonObjective
    names = [f.name for f in fields(kind) if f.name not in ("base", "cwd", "names")]
    given: dict[str, Any] = {name: getattr(objective, name) for name in names}
    if kind is PythonObjective:
        given["names"] = tuple(problem.space or ())
    return kind(**given, base=Path(problem.base or "").resolve())


def check_objective(
    problem: ProblemConfig, where: str, path: str = "", imports: bool = True
) -> None:
    """A ConfigError unless the function can be called, or the program is there.

    Without ``imports`` no code of the function's module runs: only whether its file is there, and
    defines the name, is checked.
    """
    objective = problem.objective
    if objective is None:
        return
    base = Path(problem.base or "").resolve()
    if objective.command is not None:
        wrong = missing(objective.command[0], base)
        if wrong is not None:
            raise ConfigError(wrong, where, f"{path}objective.command[0]")
        return
    target = str(objective.python)
    try:
        if not imports:
            check_defined(target, str(base))
            return
        function = load_function(target, str(base))
        space = problem.space or {}
        always = [name for name, parameter in space.items() if "when" not in parameter.options]
        check_signature(function, list(space), list(objective.kwargs), target, always)
    except ValueError as error:
        key, _, rest = str(error).partition(" ")
        raise ConfigError(rest, where, f"{path}objective.{key}") from None
