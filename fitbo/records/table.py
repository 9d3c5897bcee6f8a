"""A study's points as text: one from the command line, many in a CSV file.

A file has a header row: the parameters' names and ``value``, in any order, and what outcome
constraints are about, empty where that is not known. A column ``std`` has the standard deviations
of the values, where they are known. A line without a value is a failure if ``reason`` says why. An
exported file can be imported: of its other columns only ``state`` counts, and points that were
never evaluated are skipped. A parameter that is named like a column which does not count replaces
that column; the column of one named value, std, state or reason is ``space.value`` and so on.

A column of any other name is an error, unless the caller chooses: ``ignore`` drops such columns,
``keep`` has the journal hold their texts as the row's ``notes``, and exports have them again.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from fitbo.decode import nearest, shown
from fitbo.objectives.command import written
from fitbo.objectives.outcome import clip
from fitbo.records.archive import journals
from fitbo.records.events import Point, entries_of, once
from fitbo.records.journal import parsed
from fitbo.records.notebook import Notebook
from fitbo.space import Categorical, Integer, Space
from fitbo.space.outcomes import names_of
from fitbo.study import Study

OUTCOME = ("value", "std", "state", "reason")  # of a point
WHICH = ("problem", "method", "seed")  # the study, where there are several
ABOUT = "constraints."
COLUMNS = ("id", *OUTCOME, "seconds", "source")
IMPORTED = "import"  # source of values from a table that spend the budget; others are ``GIVEN``
EXTRA = ("refuse", "ignore", "keep")  # what becomes of a table's other columns
UNEVALUATED = ("pending", "forgotten")
MOST_ERRORS = 20
MOST_BYTES = 64 << 20


class Line(NamedTuple):
    """One line of a table: a point with its value, or the reason why it has none."""

    point: Point
    value: float | None
    reason: str | None = None
    std: float | None = None
    constraints: dict[str, float] | None = None
    notes: Mapping[str, str] = MappingProxyType({})  # by column, of those that are kept


def column_of(name: str) -> str:
    """A parameter's column in a table."""
    return f"space.{name}" if name in OUTCOME else name


def parse_point(space: Space, texts: Mapping[str, str]) -> Point:
    """The point that these texts describe, each read by its parameter's type; or a ValueError."""
    for name in texts:
        if name not in space.names:
            hint = nearest(name, space.names) or f"; expected {', '.join(space.names)}"
            raise ValueError(f"there is no parameter {shown(name)}{hint}")
    pairs = list(zip(space.names, space.parameters, strict=True))
    absent = [name for name, p in pairs if name not in texts and p.when is None]
    if absent:
        raise ValueError(f"the point must have a value for {', '.join(absent)}")
    # An empty cell is how a table has a parameter that does not exist there.
    given = [(n, p) for n, p in pairs if p.when is None or texts.get(n, "").strip()]
    point = {name: _parsed(name, parameter, texts[name].strip()) for name, parameter in given}
    space.check(point)
    return space.plain_values(point)


def parse_value(text: str) -> float:
    """A finite number, or a ValueError."""
    value = _float("value", text)
    if not math.isfinite(value):
        raise ValueError(f"value must be finite, got {value}: tell it as --failed")
    return value


def parse_std(text: str) -> float:
    """A standard deviation, or a ValueError."""
    value = _float("std", text)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"std must be finite and at least 0, got {value}")
    return value


def parse_measured(name: str, text: str) -> float:
    """What an outcome constraint is about; NaN if it could not be measured."""
    return _float(f"constraints.{name}", text) if text.strip() else math.nan


def constraint_column(name: str, names: Iterable[str]) -> str:
    """The column of what an outcome constraint is about, beside parameters of these names."""
    plain = name not in (*map(column_of, names), *COLUMNS, *WHICH)
    return name if plain else f"{ABOUT}{name}"


def read_table(path: Path, study: Study, extra: str = "refuse") -> list[Line]:
    """The lines of a CSV file; or a ValueError that names every wrong line.

    ``extra`` is what becomes of columns that are none of ours: one of ``EXTRA``.
    """
    data = path.read_bytes()
    if len(data) > MOST_BYTES:
        raise ValueError(f"{path} must have at most {MOST_BYTES >> 20} MiB, got {len(data)} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}:{line}: expected text in UTF-8") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines, errors, columns, kept = list[Line](), list[str](), list[str](), list[str]()
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not columns:
                columns = _columns(cells, study, f"{path}:{reader.line_num}", extra == "refuse")
                known = {*_wanted(study), *COLUMNS, *WHICH}
                kept = [name for name in columns if name and name not in known and extra == "keep"]
                continue
            try:
                if len(cells) != len(columns):
                    raise ValueError(f"expected {len(columns)} cells, got {len(cells)}")
                row = dict(zip(columns, cells, strict=True))
                if row.get("state", "").strip() not in UNEVALUATED:
                    notes = {name: row[name].strip() for name in kept if row[name].strip()}
                    lines.append(_line(row, study)._replace(notes=notes))
            except ValueError as error:
                errors.append(f"{path}:{reader.line_num}: {error}")
    except csv.Error as error:
        errors.append(f"{path}:{reader.line_num}: not CSV: {error}")
    if not columns:
        raise ValueError(f"{path} must begin with a row of names, got nothing")
    if errors:
        more = len(errors) - MOST_ERRORS
        listed = errors[:MOST_ERRORS] + ([f"and {more} more"] if more > 0 else [])
        raise ValueError("nothing was imported:\n" + "\n".join(listed))
    return lines


def take_in(notebook: Notebook, lines: Iterable[Line], source: str = IMPORTED) -> tuple[int, int]:
    """Tell a table's lines; how many were new, and how many the notebook had already.

    It had a value even if that was corrected or withdrawn since: the value does not come back.
    With the source ``GIVEN`` they spend no budget.
    """

    def key(point: Mapping[str, Any], value: float | None) -> tuple[Any, ...]:
        return (*(str(point.get(name)) for name in notebook.study.space.names), value)

    known: dict[tuple[Any, ...], list[int]] = {}
    for row in notebook.rows:
        if row.get("event") in ("told", "failed", "corrected"):
            known.setdefault(key(row["point"], row.get("value")), []).append(row["id"])
    new, seen = 0, set[int]()
    with notebook.writer.together() if notebook.writer is not None else nullcontext():
        for line in lines:
            alike = known.get(key(line.point, line.value), [])
            same = next((n for n in alike if n not in seen), None)
            if same is not None:
                seen.add(same)
                continue
            new += 1
            entry = notebook.entry_of(line.point, source)
            more = {"source": source} | ({"notes": dict(line.notes)} if line.notes else {})
            if line.value is not None:
                notebook.told(entry, line.value, line.std, line.constraints, **more)
            else:
                notebook.failed(entry, line.reason or "failed", **more)
    return new, len(seen)


def export_table(path: Path) -> tuple[str, int]:
    """Every point below a path with what has become of it, as CSV, and how many there are.

    ``path`` is a journal, a folder of them or an archive; the studies of a campaign are
    distinguished by columns for problem, method and seed.
    """
    found = [(file, parsed(data, file)) for file, data in journals(path) if b"\n" in data]
    if not found:
        raise ValueError(f"{path} must hold a study's journal (*.jsonl), and there is none")
    names: dict[str, None] = {}
    measured: dict[str, None] = {}
    notes: dict[str, None] = {}
    lines: list[dict[str, Any]] = []
    for file, journal in found:
        if "study" not in journal.header:
            raise ValueError(f"{file} must be the journal of a study, and it is another's")
        study = journal.header["study"]
        common = {part: study[part].get("label") for part in ("problem", "method")}
        common["seed"] = study["seed"]
        names |= dict.fromkeys(study["problem"].get("space") or ())
        rows = once(journal.rows)
        noted = {row["id"]: row["notes"] for row in rows if row.get("notes")}
        notes |= dict.fromkeys(name for each in noted.values() for name in each)
        for entry in entries_of(rows).values():
            names |= dict.fromkeys(entry.point)
            cells = {column: getattr(entry, column) for column in COLUMNS}
            cells["reason"] = clip(entry.reason or "")  # another program may have written it
            measured |= dict.fromkeys(entry.constraints or ())
            cells |= {f"{ABOUT}{name}": v for name, v in (entry.constraints or {}).items()}
            if entry.seconds is not None:
                cells["seconds"] = f"{entry.seconds:g}"
            point = {column_of(name): written(value) for name, value in entry.point.items()}
            lines.append(noted.get(entry.id, {}) | common | cells | point)
    own = [column_of(name) for name in names]
    kept = [column for column in COLUMNS if column not in own]
    if not any(line["std"] is not None for line in lines):
        kept.remove("std")
    first = kept.index("value")
    about = {f"{ABOUT}{name}": constraint_column(name, names) for name in measured}
    lines = [{about.get(column, column): cell for column, cell in ln.items()} for ln in lines]
    columns = [*(WHICH if len(found) > 1 else ()), *kept[:first], *own, *kept[first:]]
    columns += about.values()
    columns += [name for name in notes if name not in columns]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue(), len(lines)


def _parsed(name: str, parameter: Any, text: str) -> Any:
    if isinstance(parameter, Categorical):
        choices = [written(choice) for choice in parameter.choices]
        if text in choices:
            return parameter.choices[choices.index(text)]
        hint = nearest(text, choices)
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {shown(text)}{hint}")
    number = _float(name, text)
    if isinstance(parameter, Integer):
        if not number.is_integer():
            raise ValueError(f"{name} must be a whole number, got {shown(text)}")
        return int(number)
    return number


def _float(name: str, text: str) -> float:
    """A number as everybody writes it: Python also takes 1_5 for 15, and digits of any script."""
    try:
        if "_" in text or not text.isascii():
            raise ValueError
        return float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {shown(text)}") from None


def _wanted(study: Study) -> list[str]:
    """The columns that a table must have, but for parameters that may be absent."""
    names = study.space.names
    about = [constraint_column(name, names) for name in names_of(study.constraints)]
    return [*map(column_of, names), "value", *about]


def _columns(cells: Sequence[str], study: Study, where: str, strict: bool) -> list[str]:
    columns, space, wanted = [cell.strip() for cell in cells], study.space, _wanted(study)
    pairs = zip(space.names, space.parameters, strict=True)
    may_lack = {column_of(name) for name, p in pairs if p.when is not None}
    for name in wanted:
        if name not in columns and name not in may_lack:
            every = ", ".join(wanted)
            raise ValueError(f"{where}: the header must name {every}; {name} is missing")
    for i, name in enumerate(columns):
        if strict and name not in wanted and name not in COLUMNS:
            hint = nearest(name, wanted) or "; --extra ignore drops it, --extra keep keeps it"
            raise ValueError(f"{where}: unknown column {shown(name)}{hint}")
        if name in columns[:i]:
            raise ValueError(f"{where}: the column {shown(name)} is given twice")
    return columns


def _line(cells: Mapping[str, str], study: Study) -> Line:
    space = study.space
    named = {name: column_of(name) for name in space.names}
    point = parse_point(space, {name: cells[c] for name, c in named.items() if c in cells})
    text, reason = cells["value"].strip(), clip(cells.get("reason", ""))
    if text:
        std = parse_std(cells["std"]) if cells.get("std", "").strip() else None
        if std is not None and study.settings.deterministic is True:
            raise ValueError("std must be empty: the study is deterministic")
        names = names_of(study.constraints)
        about = {n: parse_measured(n, cells[constraint_column(n, space.names)]) for n in names}
        return Line(point, parse_value(text), std=std, constraints=about or None)
    if not reason:
        raise ValueError("the value is missing; a failure needs a column reason that says why")
    return Line(point, None, reason)
