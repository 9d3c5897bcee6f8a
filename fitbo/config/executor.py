"""Where studies or evaluations run, as a file describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from fitbo.config.method import check_owners
from fitbo.decode import Pattern, Range, check


@dataclass(frozen=True)
class Executor:
    """Where studies or evaluations run; a bare name is the kind: ``threads``."""

    kind: Annotated[
        Literal["serial", "threads", "processes", "dask"],
        "serial: one after another; threads: evaluations of programs; processes: studies, or "
        "evaluations of Python functions, on this machine's cores; dask: on a cluster",
    ] = "processes"
    workers: Annotated[
        Annotated[int, Range(1, 10_000)] | None, "how many at a time; left out: as many as cores"
    ] = None
    address: Annotated[
        Annotated[str, Pattern(r"[!-~]{1,400}", "1 to 400 characters, none a space")] | None,
        "for dask: the scheduler, tcp://host:8786; left out: a cluster on this machine",
    ] = None
    bare: ClassVar[str] = "kind"

    def __post_init__(self) -> None:
        check(self)
        check_owners(self, {"address": "dask"}, self.kind)
        if self.kind == "serial" and self.workers not in (None, 1):
            raise ValueError(f"workers must be 1 or left out for serial, got {self.workers}")


SERIAL = Executor("serial")
