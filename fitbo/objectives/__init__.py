"""Black boxes of the user: Python functions and programs, evaluated so that any failure is data.

Imports: ``checks`` and ``decode`` only; no numpy, so that a child process starts quickly.
Add here: one file per kind of black box, a frozen dataclass that satisfies ``Objective``.

    evaluate(objective, point, seed, scratch) -> Outcome      a value, or the reason for a failure

``python.PythonObjective`` calls a function by its name. ``command.CommandObjective`` runs a program
in its own directory and process group, and reads its value as ``value.Value`` says.
"""

from fitbo.objectives.command import CommandObjective
from fitbo.objectives.outcome import Failed, Objective, Outcome, evaluate
from fitbo.objectives.process import end_all, end_left_over
from fitbo.objectives.python import PythonObjective
from fitbo.objectives.value import Value

__all__ = [
    "CommandObjective",
    "Failed",
    "Objective",
    "Outcome",
    "PythonObjective",
    "Value",
    "end_all",
    "end_left_over",
    "evaluate",
]
