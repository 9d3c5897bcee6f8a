"""Functions and programs that misbehave, and values of any size: parts of faults_attacks.py."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from common import ONE_THREAD, ROOT

BODIES = [
    *(
        "raise ValueError('x')",
        "raise asyncio.CancelledError()",
        "raise GeneratorExit",
        "raise Odd('x')",
    ),
    *(
        "raise Mute()",
        "raise Silent()",
        "raise SystemExit(3)",
        "sys.exit(0)",
        "raise StopIteration",
    ),
    *(
        "raise MemoryError",
        "return None",
        "return 'x'",
        "return np.ma.masked",
        "return 1j",
        "return []",
    ),
    *(
        "return np.array([])",
        "return np.array([1.0], dtype=object)",
        "return np.array([1j])",
        "return Liar()",
    ),
    *(
        "return float('nan')",
        "return float('inf')",
        "return 10**400",
        "return True",
        "return np.float32(1)",
    ),
    *(
        "os.fork() or time.sleep(0); return 1.0",
        "os._exit(11)",
        "os.kill(os.getpid(), 9)",
        "os.abort()",
    ),
    *(
        "shutil.rmtree(scratch); return 1.0",
        "os.chdir('/'); return 1.0",
        "os.mkfifo(scratch / 'traceback.txt'); 1 / 0",
    ),
    *(
        "recurse()",
        "raise RecursionError",
        "raise BaseExceptionGroup('g', [SystemExit(1)])",
        "warnings.warn('w'); return 1.0",
    ),
    *(
        "sys.stdout = None; return 1.0",
        "print(chr(27) + '[31m'); return 1.0",
        "raise OSError(5, 'io')",
    ),
    *(
        "sys.stdout.write('x' * 200000); return 1.0",
        "threading.Thread(target=print).start(); return 1.0",
    ),
]
PROGRAMS = [
    *(
        "rm stdout; mkfifo stdout; echo 1",
        "rm stdout stderr; echo 1; exit 3",
        "cd ..; rm -r 0*; echo 1",
    ),
    *(
        "kill -9 $$",
        "kill -11 $$",
        "sleep 60",
        "trap '' TERM; sleep 60",
        "kill -STOP $$",
        "echo nan",
    ),
    *(
        "printf '\\377\\000'",
        "echo 1 & echo 2",
        "setsid sleep 1 & echo 1",
        "exec >&-; echo 1",
        "yes | head -c 99999",
    ),
    *(
        "rm pid point.json; mkfifo pid; echo 1",
        "exit 255",
        "echo '1_5'",
        "ulimit -c 0; kill -6 $$",
        "true",
        "cat; echo 1",
    ),
]
HEAD = """\
import asyncio, os, shutil, sys, threading, time, warnings
import numpy as np
class Odd(BaseException): pass
class Mute(Exception):
    def __str__(self): raise ValueError
class Silent(BaseException):
    def __str__(self): raise KeyError
class Liar:
    def __repr__(self): raise SystemError
def recurse(): return recurse()
def f(x, n, scratch):
    if n > 5:
        return x
    """
FILE = """\
objective: {objective}
space:
  x: {{type: real, low: 0, high: 1}}
  n: {{type: integer, low: 1, high: 9}}
method: {{samples: 12}}
budget: 4
initial: {{n: 4}}
output: {folder}/out
"""


def objectives(count: int, folder: Path) -> tuple[list[str], bool]:
    """Bodies of a function, in process and isolated, and programs; run until one ends by itself."""
    kinds = [(b, i) for b in BODIES for i in (False, True)] + [(p, None) for p in PROGRAMS]
    sums: Counter[str] = Counter(
        {"kinds": 0, "tracebacks": 0, "hangs": 0, "forked": 0, "unfinished": 0}
    )
    for k, (body, isolate) in enumerate(kinds[:: max(1, len(kinds) // count)]):
        home = folder / str(k)
        home.mkdir(parents=True)
        (home / "m.py").write_text(HEAD + body.replace("; return", "\n    return") + "\n")
        (home / "p.sh").write_text(body + "\n")
        what = f'{{python: "./m.py:f", isolate: {str(bool(isolate)).lower()}}}'
        if isolate is None:
            what = '{command: [sh, "{study}/p.sh", "{x}", "{n}"], timeout: 3}'
        (home / "s.yaml").write_text(FILE.format(objective=what, folder=home))
        command = [
            sys.executable,
            "-m",
            "fitbo",
            "run",
            str(home / "s.yaml"),
            "--quiet",
            "--no-report",
        ]
        sums["kinds"] += 1
        for _ in range(6):  # each death of the process costs one
            try:
                done = subprocess.run(
                    command,
                    env={**ONE_THREAD, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
                    capture_output=True,
                    text=True,
                    timeout=300,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                sums["hangs"] += 1
                break
            sums["tracebacks"] += "Traceback" in done.stderr
            if done.returncode in (0, 1, 2):
                break
        lines = (home / "out" / "s" / "study.jsonl").read_text().splitlines()[1:]
        events = Counter(json.loads(line)["event"] for line in lines)
        sums["forked"] += events["asked"] > 4
        nothing_works = done.returncode == 1 and events["failed"] == 3 and not events["told"]
        sums["unfinished"] += events["told"] + events["failed"] != 4 and not nothing_works
        print(k, repr(body), isolate, done.returncode, dict(events), flush=True)
    return [f"| {what} | {n} |" for what, n in [("", ""), ("---", "---"), *sums.items()]], not any(
        n for what, n in sums.items() if what != "kinds"
    )


def base(x: np.ndarray) -> float:
    return float((x[0] - 0.3) ** 2 + (x[1] - 0.6) ** 2)


VALUES = {
    "constant 1e300": lambda x, i: 1e300,
    "constant -1e300": lambda x, i: -1e300,
    "constant 0": lambda x, i: 0.0,
    "constant 1e-300": lambda x, i: 1e-300,
    "times 1e300": lambda x, i: 1e300 * base(x),
    "times -1e300": lambda x, i: -1e300 * base(x),
    "times 1e-300": lambda x, i: 1e-300 * base(x),
    "times 1e160": lambda x, i: 1e160 * base(x),
    "0 and 5e-324": lambda x, i: 5e-324 * (i % 2),
    "one outlier of 1e200": lambda x, i: 1e200 if i == 3 else base(x),
    "first of 1e300": lambda x, i: 1e300 if i == 0 else base(x),
    "one of -1e200": lambda x, i: -1e200 if i == 3 else base(x),
    "largest double": lambda x, i: sys.float_info.max if x[0] > 0.7 else base(x),
    "NaN": lambda x, i: float("nan") if x[0] > 0.5 else base(x),
    "only NaN": lambda x, i: float("nan"),
    "inf": lambda x, i: float("inf") if i % 3 else base(x),
    "plus 1e300": lambda x, i: 1e300 + base(x),
    "plus 1e16": lambda x, i: 1e16 + base(x),
    "over 600 decades": lambda x, i: base(x) * 10.0 ** (300 * (2 * x[0] - 1)),
    "minus that": lambda x, i: -base(x) * 10.0 ** (300 * (2 * x[0] - 1)),
}


def numbers(count: int, folder: Path) -> tuple[list[str], bool]:
    """Searches of nine calls; sensible is a finite mean within the range of the values of its own.

    Around the range of what was told there is room of once that range; no warning may be raised.
    """
    import fitbo

    warnings.simplefilter("error")
    sums: dict[str, Counter[str]] = {name: Counter() for name in VALUES}
    for seed, (name, value) in itertools.islice(
        ((s, each) for s in itertools.count() for each in VALUES.items()), count
    ):
        calls = itertools.count()
        try:
            found = fitbo.minimize(
                lambda x, value=value, calls=calls: value(x, next(calls)),
                [(0, 1), (0, 1)],
                n_calls=9,
                n_initial=5,
                n_samples=16,
                seed=seed,
            )
        except ValueError as error:
            sums[name]["one clear error"] += 1
            print(name, error, flush=True)
            continue
        except Exception as error:  # noqa: BLE001 (what is counted)
            sums[name]["traceback"] += 1
            print(name, repr(error), flush=True)
            continue
        y, mean = found.func_vals / 4, found.fun_recommended / 4
        span = max([np.ptp(y), 1e-6 * abs(y).max(), 1e-300 if y.any() else 1e-6]) if len(y) else 0.0
        sensible = not len(y) or (np.isfinite(mean) and y.min() - span <= mean <= y.max() + span)
        sums[name]["sensible" if sensible else "wrong"] += 1
    columns = ("sensible", "one clear error", "wrong", "traceback")
    lines = [f"| values | {' | '.join(columns)} |", "| --- " * 5 + "|"]
    lines += [f"| {name} | {' | '.join(str(n[c]) for c in columns)} |" for name, n in sums.items()]
    return lines, not any(n["wrong"] or n["traceback"] for n in sums.values())
