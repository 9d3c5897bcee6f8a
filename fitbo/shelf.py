"""A registry: a literal dict of our own names, opened to those of installed packages.

A package adds a name by an entry point; the file, ``fitbo list`` and the schema then know it:

    [project.entry-points."fitbo.entropies"]
    mine = "my_package:MyEntropy"

The groups are ``fitbo.entropies``, ``fitbo.acquisitions``, ``fitbo.problems`` and
``fitbo.kernels``. Our own names cannot be replaced. Packages are looked for when a name is not ours
or when all are listed, and imported when one of their names is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

T = TypeVar("T")


class Shelf(Mapping[str, T], Generic[T]):
    """What is known by name: ``own``, and the entry points of ``group``."""

    def __init__(self, group: str, own: Mapping[str, T]) -> None:
        self.group, self._own = group, dict(own)

    @cached_property
    def _found(self) -> dict[str, EntryPoint]:
        """Names of installed packages, in order; of two alike the first."""
        found: dict[str, EntryPoint] = {}
        for point in sorted(entry_points(group=self.group), key=lambda each: each.name):
            if point.name not in self._own:
                found.setdefault(point.name, point)
        return found

    def __getitem__(self, name: str) -> T:
        if name not in self._own:
            point = self._found[name]
            try:
                self._own[name] = point.load()
            except Exception as error:
                package = point.dist.name if point.dist else point.value
                raise ValueError(
                    f"{name} cannot be loaded from the package {package}, which adds it to "
                    f"{self.group}: {type(error).__name__}: {error}"
                ) from error
        return self._own[name]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._found

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*self._own, *self._found])

    def __len__(self) -> int:
        return len({*self._own, *self._found})
