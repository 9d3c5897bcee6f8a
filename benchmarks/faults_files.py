"""The files of the campaign and of the study that ``faults.py`` kills, as formats."""

from __future__ import annotations

CONFIG = """\
name: faults
problems: [{{name: branin, noise_std: 0.1}}, forrester]
methods:
  - {{label: MM, acquisition: fitbo, entropy: mm, samples: 16}}
  - {{label: LogEI, acquisition: logei, samples: 16}}
seeds: {seeds}
budget: {budget}
initial: {{n: 4}}
"""
STUDY = """\
name: faults
objective: {{python: "./model.py:f"}}
space:
  x: {{type: real, low: 0, high: 1}}
  n: {{type: integer, low: 1, high: 9}}
  c: {{type: categorical, choices: [a, b, c]}}
method: {{acquisition: fitbo, entropy: mm, samples: 16}}
seed: 3
budget: {budget}
initial: {{n: 4}}
"""
MODEL = """\
import os
import time

def f(x, n, c):
    log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(log, ("study " + repr([x, n, c]) + "\\n").encode())
    os.close(log)
    time.sleep(0.05)
    return (x - 0.3) ** 2 + 0.02 * (n - 4) ** 2 + 0.1 * "abc".index(c)
"""
# Python imports this in every process that it starts, workers too. The objective sleeps, so that
# some kills come while it is under way.
COUNTER = """\
import os
import sys
import time

def count():
    from fitbo.problems.black_box import Problem

    observe = Problem.observe

    def counted(self, x, rng):
        log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(log, (self.name + " " + repr([float(each) for each in x]) + "\\n").encode())
        os.close(log)
        time.sleep(0.02)
        return observe(self, x, rng)

    Problem.observe = counted

if not any("resource_tracker" in each for each in sys.orig_argv):  # which evaluates nothing
    count()
"""
