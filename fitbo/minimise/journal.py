"""The journal of a call: the study that was described in Python, as a file describes one.

So a call's journal is one like any other: ``fitbo export run.jsonl`` and ``fitbo report run.jsonl``
read it. What cannot be written down as text, such as a constraint that is a function, is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from fitbo.acquisition.baselines import needs
from fitbo.config.campaign import StudyConfig, from_dict
from fitbo.config.method import LABEL, entropy_keys
from fitbo.decode import ConfigError
from fitbo.entropy import BACKENDS
from fitbo.inference.settings import Settings
from fitbo.records.journal import Busy
from fitbo.records.notebook import Notebook, open_notebook
from fitbo.space import Categorical, Integer, Space
from fitbo.study import Study

SAMPLER = ("thin", "min_burn_in", "max_burn_in")
SAME = (
    "acquisition",
    "rule",
    "etas",
    "exploit",
    "deterministic",
    "replicates",
    "noise_std",
    "local",
)  # in a file as in the settings
OWN = (
    "entropy",
    "n_initial",
    "design",
    "n_samples",
    "surrogate",
    "kernel",
    "resolution",
    "beta",
    "moments",
)


@contextmanager
def kept(
    path: str | os.PathLike[str] | None, fresh: Callable[[], Study], n_calls: int
) -> Iterator[Notebook]:
    """The notebook of a new study, or of one that the journal at ``path`` has begun."""
    if path is None:
        yield Notebook(fresh())
        return
    config = described(Path(path), fresh(), n_calls)
    try:
        with open_notebook(config, build=lambda _: fresh(), running="alone") as notebook:
            notebook.warm()
            yield notebook
    except Busy as error:
        raise ValueError(
            f"journal {error}: wait until it has ended, or give another file"
        ) from None


def described(path: Path, study: Study, n_calls: int) -> StudyConfig:
    """The study as a file would describe it."""
    s, name = study.settings, path.stem if LABEL.admits(path.stem) else "study"
    data: dict[str, Any] = {
        "name": name,
        "space": _space(study.space),
        "constraints": [_text(constraint) for constraint in study.space.constraints],
        "outcome_constraints": [constraint.text for constraint in study.constraints],
        "direction": study.direction,
        "method": _method(s),
        "seed": s.seed,
        "budget": max(n_calls, study.n_initial),
        "initial": {"design": s.design, "n": study.n_initial},
    }
    try:
        config = from_dict(data, str(path)).studies()[0]
    except ConfigError as error:
        raise ValueError(f"journal cannot describe this study: {error}") from None
    return replace(config, file=path)


def _text(constraint: Any) -> str:
    if isinstance(constraint, str):
        return constraint
    raise ValueError(
        f"journal needs constraints that can be written down, got the function "
        f"{getattr(constraint, '__name__', constraint)!r}: write it as an expression"
    )


def _space(space: Space) -> dict[str, Any]:
    described = {}
    for name, parameter in zip(space.names, space.parameters, strict=True):
        kind = "categorical" if isinstance(parameter, Categorical) else "real"
        kind = "integer" if isinstance(parameter, Integer) else kind
        usual = {field.name: field.default for field in fields(parameter)}
        given = {key: value for key, value in asdict(parameter).items() if value != usual[key]}
        described[name] = {"type": kind, **given}
    return described


def _method(settings: Settings) -> dict[str, Any]:
    """The method of a file that makes these settings."""
    usual = Settings()
    for field in fields(Settings):
        known = (*SAMPLER, *SAME, *OWN, "seed")
        if field.name not in known and getattr(settings, field.name) != getattr(usual, field.name):
            raise ValueError(f"journal cannot describe {field.name}: leave one of the two out")
    method: dict[str, Any] = {name: getattr(settings, name) for name in SAME}
    method["samples"] = settings.n_samples
    method["surrogate"] = {"kind": settings.surrogate, "kernel": settings.kernel_name}
    method["sampler"] = {name: getattr(settings, name) for name in SAMPLER}
    if needs(settings.acquisition, "entropy"):
        method["entropy"] = _entropy(settings.entropy)
    if settings.acquisition == "fitbo":
        method["resolution"] = settings.resolution
    if settings.acquisition == "lcb":
        method["beta"] = settings.beta
    if settings.acquisition == "remaining":
        method["moments"] = settings.moments
    return method


def _entropy(entropy: Any) -> Any:
    if isinstance(entropy, str):
        return entropy
    for name, kind in BACKENDS.items():
        if type(entropy) is kind:
            return {"name": name} | {key: getattr(entropy, key) for key in entropy_keys(name)}
    raise ValueError(
        f"journal needs an entropy that can be written down, got {entropy!r:.60}: give its name"
    )
