"""Black boxes of the user's own: a Python function or a program, evaluated without surprises.

    evaluate(objective, point, seed, scratch) -> Outcome      a value, or the reason of a failure

``python.PythonObjective`` calls a function by its name, ``command.CommandObjective`` runs a program
in a directory and a process group of its own and finds its value as ``value.Value`` says.
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
