"""The commands by which a study is kept by hand: ask, tell, import, export."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from fitbo.cli.study_display import assignment, newly, print_points, say
from fitbo.config import study as study_file
from fitbo.config.study import StudyFile
from fitbo.records.journal import Busy, Running, read

if TYPE_CHECKING:
    from fitbo.records.events import Entry
    from fitbo.records.notebook import Notebook

OK, FAILED = 0, 1
# Seconds to wait for another process; longest where a value that somebody measured is at stake.
PATIENCE = {"ask": 30.0, "tell": 60.0, "import": 30.0}


def ask(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo ask``."""
    from fitbo.space import Exhausted

    config = study_file.load(options.study)
    if options.n < 1:
        raise ValueError(f"-n must be at least 1, got {options.n}")
    asked = []
    code = OK
    with _opened(config, "ask", options, errors) as notebook:
        try:
            for _ in range(options.n):
                asked.append(notebook.ask("ask"))
        except Exhausted as error:
            errors.print(str(error), markup=False, highlight=False)
            code = FAILED
        begun = sum(entry.state != "forgotten" for entry in notebook.entries.values())
    if begun > config.budget:
        errors.print(
            f"note: the budget is {config.budget}, and this is evaluation {begun}", highlight=False
        )
    if options.json:
        for entry in asked:
            print(json.dumps({"id": entry.id, "point": entry.point}, ensure_ascii=False))
    elif asked:
        print_points(console, {entry.id: entry.point for entry in asked})
        point = " ".join(assignment(name, value) for name, value in asked[0].point.items())
        say(
            console,
            f"\nto tell: fitbo tell {shlex.quote(options.study)} --id {asked[0].id} --value Y",
        )
        say(console, f"     or: fitbo tell {shlex.quote(options.study)} --set {point} --value Y")
    return code


def tell(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo tell``."""
    from fitbo.objectives.outcome import clip
    from fitbo.records.table import parse_point, parse_value

    config = study_file.load(options.study)
    space = study_file.build_space(config)
    # What can be wrong is found before a journal is made.
    value = None if options.value is None else parse_value(options.value)
    point = None if options.set is None else parse_point(space, _assignments(options.set))
    if not config.journal.exists() and point is None:
        raise ValueError(
            f"--id must be of a point of the study, none yet, got {options.id}: "
            f"there is no journal {config.journal.resolve()}"
        )
    if not config.journal.exists() and options.forget:
        raise ValueError("--forget must be of a point that was asked for, and none was")
    with _opened(config, "tell", options, errors) as notebook:
        known = notebook.entries
        if point is not None:
            entry = notebook.entry_of(point, "tell")
        elif options.id in known:
            entry = known[options.id]
        else:
            listed = f"1 to {max(known)}" if known else "none yet"
            raise ValueError(f"--id must be of a point of the study, {listed}, got {options.id}")
        before = [each.id for each in known.values() if each.point == entry.point]
        if options.forget and entry.id not in known:
            hint = f"; to withdraw what was told of it, --id {before[-1]}" if before else ""
            raise ValueError(f"--forget must be of a point that is pending, and this is not{hint}")
        reason = clip(options.failed) or "failed" if options.failed is not None else None
        note = _record(notebook, entry, value, reason)
        left = notebook.pending()
    if entry.id not in known:
        note = ", a point that was not asked for"
        if before:
            note = f", once more at the point of {before[-1]} (--id {before[-1]} corrects that)"
    what = "forgotten" if options.forget else ("failed" if value is None else f"{value:g}")
    say(console, f"{entry.id}: {what}{note}; {len(left)} pending")
    return OK


def _record(notebook: Notebook, entry: Entry, value: float | None, reason: str | None) -> str:
    """Write what came of a point, neither for forgotten; what there is to say of what it was."""
    if entry.state in ("told", "failed"):
        if (value, reason) == (entry.value, entry.reason):
            return ", as it was"
        if value is None and reason is None:
            notebook.forget(entry)
        else:
            notebook.correct(entry, value, reason, source="tell")
        was = f"{entry.value:g}" if entry.value is not None else f"failed, {entry.reason}"
        return f", corrected: was {was.removesuffix(', failed')}"
    if value is not None:
        notebook.told(entry, value, source="tell")
    elif reason is not None:
        notebook.failed(entry, reason, source="tell")
    elif entry.state == "pending":
        notebook.forget(entry)
    else:
        return ", as it was"
    return "" if entry.state == "pending" else ", corrected: was forgotten"


def take_in(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo import``."""
    from fitbo.records import table as study_table

    config = study_file.load(options.study)
    lines = study_table.read_table(options.table, study_file.build_space(config))
    with _opened(config, "import", options, errors) as notebook:
        new, old = study_table.take_in(notebook, lines)
    known = f"; {old} were there already" if old else ""
    say(console, f"{new} imported{known}")
    return OK


def export(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """``fitbo export``."""
    from fitbo.records.table import written_table

    names, entries = _kept(Path(options.study))
    text = written_table(names, entries.values())
    if options.table is None:
        print(text, end="")
    else:
        part = options.table.with_name(options.table.name + ".part")
        part.write_text(text, encoding="utf-8", newline="")
        os.replace(part, options.table)
        say(console, f"{len(entries)} lines to {options.table}")
    return OK


def _kept(path: Path) -> tuple[list[str], dict[int, Entry]]:
    """The parameters and the points of a study, by its file, its results' folder or its journal."""
    from fitbo.records.events import entries_of, once
    from fitbo.records.notebook import read_notebook

    journal = path / "study.jsonl" if path.is_dir() else path
    if journal.suffix == ".jsonl":  # what was kept is there, whatever the file says now
        if not journal.is_file():
            raise ValueError(f"{path} must hold a study's journal, study.jsonl, and there is none")
        held = read(journal)
        if "study" not in held.header:
            raise ValueError(f"{journal} must be the journal of a study, and it is another's")
        return list(held.header["study"]["space"]), entries_of(once(held.rows))
    config = study_file.load(path)
    if not config.journal.exists():
        raise ValueError(
            f"{config.name} has no journal yet, {config.journal}: run or tell it first"
        )
    return list(config.space), read_notebook(config, fits=False).entries


@contextmanager
def _opened(
    config: StudyFile, command: str, options: argparse.Namespace, errors: Console
) -> Iterator[Notebook]:
    """The study's notebook to write in, after waiting for other processes if need be."""
    from fitbo.records.notebook import open_notebook

    def waiting() -> None:
        say(errors, f"waiting for another process that writes {config.journal}")

    try:
        with open_notebook(
            config, fits=command == "ask", patience=PATIENCE[command], waiting=waiting
        ) as notebook:
            if notebook.new:
                say(errors, newly(config))
            yield notebook
    except Busy as error:
        still = "" if isinstance(error, Running) else f" still, after {PATIENCE[command]:g} s"
        raise ValueError(
            f"{error}{still}, and nothing was recorded: when it has ended, give the command again, "
            f"{options.again}"
        ) from None


def _assignments(texts: list[str]) -> dict[str, str]:
    """``alpha=0.1`` -> alpha, 0.1."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--set must be NAME=VALUE, as in alpha=0.1, got {text!r}")
        if name.strip() in pairs:
            raise ValueError(f"--set must name {name.strip()} once, got it twice")
        pairs[name.strip()] = value
    return pairs
