"""The commands on one study, kept by hand: ask, tell, status, import, export."""

from __future__ import annotations

import json
import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from fitbo.cli.codes import FAILED, OK
from fitbo.cli.display import assignment, new_study, print_points, print_status, print_studies, say
from fitbo.cli.files import results_of
from fitbo.config.build import build_space, build_study
from fitbo.config.campaign import StudyConfig, load
from fitbo.inference.ledger import averaged
from fitbo.objectives.outcome import clip
from fitbo.records import table
from fitbo.records.archive import SUFFIX, journal_at
from fitbo.records.events import GIVEN, Entry, Point, entries_of
from fitbo.records.journal import Busy
from fitbo.records.notebook import Notebook, notebook_of, open_notebook, read_notebook
from fitbo.records.replay import observation
from fitbo.runs import standing
from fitbo.screen import short
from fitbo.space import Exhausted
from fitbo.space.outcomes import hold, measured, names_of, outcome_constraints

# Seconds to wait for other processes, of which each may have to choose a point first.
ATTEMPTS = 4  # at an answer while others write
PATIENCE = {"ask": 60.0, "tell": 60.0, "import": 60.0}


def ask(options: Namespace, console: Console, errors: Console) -> int:
    """``fitbo ask``."""
    study = _one(options.study, "ask")
    if options.n < 1:
        raise ValueError(f"-n must be at least 1, got {options.n}")
    asked, code = list[Entry](), OK
    # Thinking takes a while and the journal is locked for writing only: if somebody has told or
    # asked meanwhile, think again, and the last time with the lock.
    thought = read_notebook(study)
    for left in reversed(range(ATTEMPTS)):
        points, over = _suggested(thought, options.n) if left else ([], None)
        with _opened(study, "ask", options, errors, thought) as notebook:
            if left and notebook.rows != thought.rows:
                thought = replace(notebook, writer=None)
                continue
            if not left:
                points, over = _suggested(notebook, options.n)
            asked = [notebook.ask("ask", x) for x in points]
            begun = notebook.begun()
            break
    if over is not None:
        say(errors, over)
        code = FAILED
    if begun > study.campaign.budget:
        budget = study.campaign.budget
        say(errors, f"note: the budget is {budget}, and this is evaluation {begun}")
    if options.json:
        for entry in asked:
            print(json.dumps({"id": entry.id, "point": entry.point}, ensure_ascii=False))
    elif asked:
        print_points(console, {entry.id: entry.point for entry in asked})
        point = " ".join(assignment(name, value) for name, value in asked[0].point.items())
        command = f"fitbo tell {shlex.quote(options.study)}"
        names = names_of(outcome_constraints(study.problem.outcome_constraints))
        more = f" --constraints {' '.join(f'{name}=Y' for name in names)}" if names else ""
        say(console, f"\nto tell: {command} --id {asked[0].id} --value Y{more}")
        say(console, f"     or: {command} --set {point} --value Y{more}")
    return code


def _suggested(notebook: Notebook, n: int) -> tuple[list[Any], str | None]:
    """The next n points of a study, and why there are not as many, if so."""
    points: list[Any] = []
    try:
        for _ in range(n):
            points.append(notebook.warm().ask(1)[0])
    except Exhausted as error:
        return points, str(error)
    return points, None


def tell(options: Namespace, console: Console, errors: Console) -> int:
    """``fitbo tell``."""
    study = _one(options.study, "tell")
    # What can be wrong is found before a journal is made.
    found = _observation(study, options)
    space = build_space(study.problem)
    point = None if options.set is None else table.parse_point(space, _assignments(options.set))
    if not study.journal.exists() and point is None:
        raise ValueError(
            f"--id must be of a point of the study, none yet, got {options.id}: "
            f"there is no journal {study.journal.resolve()}"
        )
    if not study.journal.exists() and options.forget:
        raise ValueError("--forget must be of a point that was asked for, and none was")
    with _opened(study, "tell", options, errors) as notebook:
        known = dict(notebook.entries)
        if point is not None:
            entry = _meant(notebook, point)
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
        note = _record(notebook, entry, found, reason)
        pending = len(notebook.pending())
    if entry.id not in known:
        note = ", a point that was not asked for"
        if before:
            note = f", once more at the point of {before[-1]} (--id {before[-1]} corrects that)"
    what = "forgotten" if options.forget else "failed" if found is None else _shown(found)
    say(console, f"{entry.id}: {what}{note}; {pending} pending")
    return OK


def _meant(notebook: Notebook, point: Point) -> Entry:
    """The pending entry of a point, or of the one that is shown with the same digits; or a new."""
    entry = notebook.entry_of(point, "tell")
    alike = [each for each in notebook.pending() if short(each.point) == short(point)]
    return alike[0] if entry not in alike and len(alike) == 1 else entry


def _observation(study: StudyConfig, options: Namespace) -> dict[str, Any] | None:
    """What ``--value``, ``--std`` and ``--constraints`` say; None without a value."""
    if options.value is None:
        for name in ("std", "constraints"):
            if getattr(options, name) is not None:
                raise ValueError(f"--{name} must be left out beside --failed and --forget")
        return None
    texts = _assignments(options.constraints or [], "--constraints")
    constraints = build_study(study).constraints
    named = {name: table.parse_measured(name, text) for name, text in texts.items()}
    found: dict[str, Any] = {"constraints": measured(constraints, named) or None}
    values = [table.parse_value(text) for text in options.value]
    found["value"], found["std"] = averaged(values, study.method.noise_std)
    if len(values) > 1:
        found["values"] = values
    if options.std is not None:
        if len(values) > 1:
            raise ValueError("--std must be left out beside several values: they state their own")
        found["std"] = table.parse_std(options.std)
    if found["std"] is not None and study.method.deterministic is True:
        raise ValueError("the method is deterministic: give one value, without --std")
    return found


def _shown(found: Mapping[str, Any]) -> str:
    std = found.get("std")
    return f"{found['value']:g}" if std is None else f"{found['value']:g} ± {std:.2g}"


def _record(
    notebook: Notebook, entry: Entry, found: dict[str, Any] | None, reason: str | None
) -> str:
    """Write the outcome at a point, neither for forgotten; what there is to say of what it was."""
    forgotten = found is None and reason is None
    if entry.state in ("told", "failed"):
        keys = ("value", "std", "constraints")
        now = {} if found is None else observation(**{key: found[key] for key in keys})
        same = all(now.get(key) == getattr(entry, key) for key in keys)
        if same and reason == entry.reason:
            return ", as it was"
        if forgotten:
            notebook.forget(entry)
        else:
            notebook.correct(entry, reason=reason, source="tell", **(found or {"value": None}))
        was = f"{entry.value:g}" if entry.value is not None else f"failed, {entry.reason}"
        return f", corrected: was {was.removesuffix(', failed')}"
    if forgotten and entry.state == "forgotten":
        return ", as it was"
    if forgotten:
        notebook.forget(entry)
    elif found is not None:
        notebook.told(entry, **found, source="tell")
    else:
        notebook.failed(entry, str(reason), source="tell")
    return "" if entry.state == "pending" else ", corrected: was forgotten"


def status(options: Namespace, console: Console, errors: Console) -> int:
    """``fitbo status``: of one study everything, of a campaign a line for each of its studies."""
    notebook: Notebook | None
    if Path(options.study).suffix == SUFFIX:
        notebook = _by_its_journal(Path(options.study))
    else:
        campaign = load(options.study)
        notebook = read_notebook(campaign.studies()[0]) if campaign.single else None
    if notebook is None:
        lines = [_line(study) for study in campaign.studies()]
        if not options.json:
            print_studies(console, campaign, lines)
    else:
        study: Any = notebook.config
        campaign = study.campaign
        if not notebook.rows and not options.json:
            say(console, f"{campaign.name}: nothing asked and nothing told yet")
            return OK
        summary = standing.status(notebook)
        lines = [_plain(study, summary)]
        if not options.json:
            print_status(console, campaign, summary)
    if options.json:
        for line in lines:
            print(json.dumps(line, ensure_ascii=False))
    return OK


def _by_its_journal(path: Path) -> Notebook:
    """The notebook of a study as its journal describes it, of that name and budget."""
    journal = journal_at(path.resolve())
    notebook = notebook_of(journal, path)
    assert notebook.config is not None  # noqa: S101 (of the journal's header)
    campaign = notebook.config.campaign
    stated = (row.get("budget") for row in (journal.header, *journal.rows))
    budget = max(campaign.budget, *(each for each in stated if isinstance(each, int)))
    campaign = replace(campaign, name=journal.header.get("campaign", "study"), budget=budget)
    return replace(notebook, config=replace(notebook.config, campaign=campaign, file=path))


def _line(study: StudyConfig) -> dict[str, Any]:
    """How a study of a campaign stands, by its journal alone."""
    try:
        rows = journal_at(study.journal.resolve()).rows
    except ValueError:  # not begun
        rows = []
    entries = entries_of(rows).values()
    told = [entry for entry in entries if entry.value is not None]
    constraints = outcome_constraints(study.problem.outcome_constraints)
    values = [entry.value for entry in told if hold(constraints, entry.constraints or {})]
    best = min if study.problem.direction == "minimize" else max
    last = rows[-1] if rows else {}
    return {
        "problem": study.problem.label,
        "method": study.method.label,
        "seed": study.seed,
        "told": len(told),
        "failed": sum(entry.state == "failed" for entry in entries),
        "pending": sum(entry.state == "pending" for entry in entries),
        "best": best(values, default=None),  # type: ignore[type-var]
        "stopped": last.get("reason") if last.get("event") == "stopped" else None,
    }


def take_in(options: Namespace, console: Console, errors: Console) -> int:
    """``fitbo import``."""
    study = _one(options.study, "import")
    lines = table.read_table(options.table, build_study(study), options.extra)
    source = table.IMPORTED if options.spend else GIVEN
    with _opened(study, "import", options, errors) as notebook:
        new, old = table.take_in(notebook, lines, source)
    known = f"; {old} were there already" if old else ""
    say(console, f"{new} imported{known}")
    return OK


def export(options: Namespace, console: Console, errors: Console) -> int:
    """``fitbo export``: of a campaign with the columns problem, method and seed."""
    path, campaign = results_of(Path(options.study))
    if campaign is not None and campaign.single:
        read_notebook(campaign.studies()[0])  # an error if the journal is another study's
    text, count = table.export_table(path)
    if options.table is None:
        if sys.stdout.isatty():  # a choice may hold what moves the cursor or sets the title
            text = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
        print(text, end="")
    else:
        part = options.table.with_name(options.table.name + ".part")
        part.write_text(text, encoding="utf-8", newline="")
        os.replace(part, options.table)
        say(console, f"{count} lines to {options.table}")
    return OK


def _one(path: str, command: str) -> StudyConfig:
    """The study of a file of one; of a campaign's, an error that says which file to use."""
    campaign = load(path)
    if campaign.single:
        return campaign.studies()[0]
    own = [p for p in campaign.all_problems if p.black_box]
    where = f" such as a file with the space of {own[0].label}" if own else ""
    raise ValueError(
        f"{path} is a campaign of {len(campaign.studies())} studies, and {command} works on one: "
        f"give it a file of one study,{where} that has space, method and seed at its top level"
    )


@contextmanager
def _opened(
    study: StudyConfig,
    command: str,
    options: Namespace,
    errors: Console,
    known: Notebook | None = None,
) -> Iterator[Notebook]:
    """The study's notebook to write in, after waiting for other processes if need be."""

    def waiting() -> None:
        say(errors, f"waiting for another process that writes {study.journal}")

    patience = PATIENCE[command]
    try:
        with open_notebook(study, known=known, patience=patience, waiting=waiting) as notebook:
            if notebook.new:
                say(errors, new_study(study))
            yield notebook
    except Busy as error:
        raise ValueError(
            f"{error} still, after {patience:g} s, and nothing was recorded: when it has ended, "
            f"give the command again, {options.again}"
        ) from None


def _plain(study: StudyConfig, summary: standing.Summary) -> dict[str, Any]:
    """How a study stands, as JSON has it."""
    best, found = summary.best, summary.recommended
    return {
        "name": study.campaign.name,
        "journal": str(study.journal),
        "budget": study.campaign.budget,
        "told": summary.told,
        "failed": summary.failed,
        "given": summary.given,
        "pending": [{"id": e.id, "point": e.point} for e in summary.pending],
        "best": best and {"id": best.id, "point": best.point, "value": best.value},
        "recommended": found and found.described(),
        "feasible": summary.feasible,
        "minimum": summary.minimum,
        "remaining": summary.remaining,
        "stopped": summary.stopped,
        "noise": summary.noise and asdict(summary.noise),
        "importance": summary.importance
        and {name: found._asdict() for name, found in summary.importance.items()},
    }


def _assignments(texts: list[str], option: str = "--set") -> dict[str, str]:
    """``alpha=0.1`` -> alpha, 0.1."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"{option} must be NAME=VALUE, as in alpha=0.1, got {text!r}")
        if name.strip() in pairs:
            raise ValueError(f"{option} must name {name.strip()} once, got it twice")
        pairs[name.strip()] = value
    return pairs
