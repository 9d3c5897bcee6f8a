"""What a line of a journal may say; another program, or a hand, may have changed it.

    check_header(header)     a ValueError of one sentence, which begins with the wrong key
    check_row(row)           the same for an event
    Order().check(row)       the same for an event after those before it

Keys that are not known are left alone: a later version may have written them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fitbo.decode import nearest, shown
from fitbo.records.events import ETA_QUANTILES, OUTCOMES, Point, Row

MOST = 2**53  # of a count: what a double holds exactly
LARGEST = sys.float_info.max
SCALARS = (str, int, float, bool, type(None))
Test = Callable[[Any], bool]


def _number(value: Any) -> bool:
    return type(value) in (int, float) and -LARGEST <= value <= LARGEST


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MOST


def _text(value: Any) -> bool:
    if type(value) is not str:
        return False
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)


def _scalar(value: Any) -> bool:
    return type(value) in SCALARS and (type(value) is not float or _number(value))


def _point(value: Any) -> bool:
    return type(value) is dict and bool(value) and all(map(_scalar, value.values()))


def _optional(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _mapping(test: Test) -> Test:
    return lambda value: type(value) is dict and all(map(test, value.values()))


def _list(test: Test, length: int | None = None) -> Test:
    return lambda value: (
        type(value) is list and len(value) == (length or len(value)) and all(map(test, value))
    )


def _recommendation(value: Any) -> bool:
    numbers = all(_number(value.get(key, 0.0)) for key in ("mean", "deviation", "f"))
    return numbers and _point(value.get("point"))


NUMBER = (_number, "a finite number")
COUNT = (_count, "a whole number of at least 0")
TEXT = (_text, "text")
POINT = (_point, "a mapping of parameters to values")
MAYBE_NUMBER = (_optional(_number), "a finite number or null")
SECONDS = (_optional(_mapping(_scalar)), "a mapping of numbers")
RECOMMENDED = (
    lambda value: type(value) is dict and _recommendation(value),
    "a mapping of point, mean, deviation",
)
QUANTILES = (_list(_number, len(ETA_QUANTILES)), f"a list of {len(ETA_QUANTILES)} finite numbers")
VECTOR = (_optional(_list(_number)), "a list of finite numbers")

Rules = dict[str, tuple[Test, str]]
EVENT: Rules = {
    "id": (lambda value: _count(value) and value > 0, "a whole number of at least 1"),
    "point": POINT,
    "value": NUMBER,
    "std": (lambda value: _number(value) and value >= 0, "a finite number of at least 0"),
    "values": (_list(_number), "a list of finite numbers"),
    "constraints": (_mapping(_optional(_number)), "a mapping of finite numbers or null"),
    "was": (_scalar, "a number or text"),
    "reason": TEXT,
    "source": TEXT,
    "f": MAYBE_NUMBER,
    "seconds": MAYBE_NUMBER,
    "elapsed": NUMBER,
    "attempts": COUNT,
    "run": COUNT,
    "notes": (_mapping(_text), "a mapping of texts"),
    "scratch": (_list(_text), "a list of texts"),
    "budget": COUNT,
    "fitted": COUNT,
    "moved": COUNT,
    "in_model": COUNT,
    "eta": QUANTILES,
    "minimum": QUANTILES,
    "mcmc": SECONDS,
    "suggestion_seconds": SECONDS,
    "recommended": RECOMMENDED,
    "objective": (lambda value: type(value) is dict, "a mapping"),
}
LEGACY: Rules = {  # a row of a campaign of format 1
    "n": COUNT,
    "x": VECTOR,
    "y": MAYBE_NUMBER,
    "f": MAYBE_NUMBER,
    "x_recommended": VECTOR,
    "f_recommended": MAYBE_NUMBER,
    "eta": (lambda value: value is None or QUANTILES[0](value), QUANTILES[1]),
    "seconds": SECONDS,
    "mcmc": SECONDS,
    "reason": (_optional(_text), "text"),
    "budget": COUNT,
}
HEADER: Rules = {
    "format": (lambda value: value in (1, 2) and type(value) is int, "1 or 2"),
    "campaign": (_optional(_text), "text"),
    "budget": (_optional(_count), COUNT[1]),
    "study": (lambda value: type(value) is dict, "a mapping"),
}
MAPPING = (lambda value: type(value) is dict, "a mapping")
STUDY: Rules = {
    "problem": MAPPING,
    "method": MAPPING,
    "initial": (lambda value: type(value) is dict and "n" in value, "a mapping with n"),
    "seed": COUNT,
}
NEEDED = {  # of an event, and what it must not have beside
    "asked": (("id", "point"), ()),
    "told": (("id", "point", "value"), ("reason",)),
    "failed": (("id", "point", "reason"), ("value",)),
    "again": (("id",), ()),
    "forgotten": (("id",), ()),
    "corrected": (("id", "point"), ()),
    "stopped": (("reason",), ()),
    "recommended": ((), ()),
    "objective": (("objective",), ()),
}


def check_header(header: Row) -> None:
    """What a header in today's format must have; one without a study may be another's."""
    _check(header, HEADER, ("format",))
    study = header.get("study")
    if study is not None:
        _check(study, STUDY, tuple(STUDY), "study.")
        _check(study["initial"], {"n": (_optional(_count), COUNT[1])}, (), "study.initial.")
        rules = {"label": (_optional(_text), "text"), "minimum": MAYBE_NUMBER}
        rules["space"] = (_optional(MAPPING[0]), MAPPING[1])
        _check(study["problem"], rules, (), "study.problem.")


def check_row(row: Row) -> None:
    """What an event must have, whatever was before it."""
    if "event" not in row and "n" in row:
        _check(row, LEGACY, ())
        return
    event = row.get("event")
    if type(event) is not str or event not in NEEDED:
        hint = nearest(str(event), NEEDED)
        raise ValueError(f"event must be one of {', '.join(NEEDED)}, got {shown(event)}{hint}")
    needed, barred = NEEDED[event]
    _check(row, EVENT, needed)
    for key in barred:
        if key in row:
            raise ValueError(f"{key} must not be there: the event is {event}")
    if event == "corrected" and ("value" in row) == ("reason" in row):
        raise ValueError("value or reason must be there, and not both: the event is corrected")


def _check(row: Row, rules: Rules, needed: tuple[str, ...], where: str = "") -> None:
    for key in needed:
        if key not in row:
            raise ValueError(f"{where}{key} must be {rules[key][1]}, and is missing")
    for key, value in row.items():
        rule = rules.get(key)
        if rule is not None and not rule[0](value):
            raise ValueError(f"{where}{key} must be {rule[1]}, got {shown(value)}")


@dataclass
class Order:
    """Events one after another: a correction follows an outcome, and a fit follows a value."""

    points: dict[int, Point] = field(default_factory=dict)  # of everything asked for or told
    settled: dict[int, bool] = field(default_factory=dict)  # whether an outcome has a value

    def check(self, row: Row) -> None:
        """Take in one more event, which ``check_row`` has passed."""
        event, number = row["event"], row.get("id", 0)
        known = self.points.get(number)
        if event == "asked" and known is not None:
            raise ValueError(f"id must be new, got {number} again")
        if event in ("again", "forgotten") and known is None:
            raise ValueError(f"id must be of a point that was asked for, got {number}")
        if event == "corrected" and number not in self.settled:
            raise ValueError(f"id must be of a point with an outcome, got {number}")
        if known is not None and row.get("point", known) != known:
            raise ValueError(f"point must be that of {number} before, {shown(known)}")
        if "fitted" in row and not any(self.settled.values()):
            raise ValueError(f"fitted must follow a value, got {row['fitted']} before any")
        if event in ("asked", *OUTCOMES):
            self.points[number] = row["point"]
        if event == "forgotten":
            self.settled.pop(number, None)
        elif event == "corrected" or (event in OUTCOMES and number not in self.settled):
            self.settled[number] = "value" in row
