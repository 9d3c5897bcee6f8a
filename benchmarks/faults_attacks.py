"""Attacks on a study other than kills: each is counted, and a table written to results/faults.

    python benchmarks/faults.py --attack journal     # removed or replaced during a run, 20 ways
    python benchmarks/faults.py --attack disk        # full at a random moment; needs unshare
    python benchmarks/faults.py --attack rows        # journals with well-formed but changed rows
    python benchmarks/faults.py --attack numbers     # 1e300, 5e-324, outliers, NaN
    python benchmarks/faults.py --attack objectives  # functions and programs that misbehave
    python benchmarks/faults.py --attack hands       # ask and tell by several processes at once
    python benchmarks/faults.py --attack dask        # workers killed

``--count`` is how many; the exit code is 1 unless what must be zero is. Every study is a real
``python -m fitbo`` except those of ``rows``, which call the commands in this process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from common import ONE_THREAD, ROOT, one_thread, versions, write

one_thread()

import faults_objectives
import faults_rows

RESULTS = ROOT / "results" / "faults"
SPACE = """\
space:
  x: {type: real, low: 0, high: 1}
  n: {type: integer, low: 1, high: 9}
method: {samples: 16}
"""
ENV = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT)}


def study(folder: Path, function: str, text: str = "budget: 12\ninitial: {n: 12}\n") -> Path:
    """The file of a study of ``f(x, n)``, whose calls are counted in the file ``calls``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(
        "import os, pathlib, subprocess, sys, time\nhere = pathlib.Path(__file__).parent\n"
        "def note(x):\n    with open(here / 'calls', 'a') as calls:\n        print(x, file=calls)\n"
        "    return len((here / 'calls').read_text().split())\n" + function
    )
    path = folder / "s.yaml"
    path.write_text(f'objective: {{python: "./model.py:f"}}\n{SPACE}{text}output: {folder}/out\n')
    return path


def fitbo(*arguments: object, timeout: float = 900) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fitbo", *map(str, arguments)]
    return subprocess.run(
        command, env=ENV, capture_output=True, text=True, timeout=timeout, check=False
    )


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def told(rows: list[dict[str, Any]]) -> list[float]:
    return [row["value"] for row in rows if row["event"] == "told"]


WAYS = [
    *("rm study.jsonl", "rm -r ../s", "cp study.jsonl j; mv j study.jsonl", "mv study.jsonl k"),
    *("mv ../s ../t", ": > study.jsonl", "truncate -s 300 study.jsonl", "echo x >> study.jsonl"),
    *("head -n 3 study.jsonl > j; mv j study.jsonl", "head -n 3 study.jsonl > j; cp j study.jsonl"),
    *("rm study.jsonl; mkdir study.jsonl", "rm study.jsonl; ln -s /dev/null study.jsonl"),
    *("rm study.jsonl; mkfifo study.jsonl", "rm -r ../s; touch ../s", "rm -r ../../out"),
    *("sed -i 's/told/told/' study.jsonl", "sed 's/0/1/' study.jsonl > j; cat j > study.jsonl"),
    *(
        "sort study.jsonl > j; mv j study.jsonl",
        "gzip study.jsonl",
        "tac study.jsonl > j; mv j study.jsonl",
    ),
]


def journal(count: int, folder: Path) -> tuple[list[str], bool]:
    """Each way at the fourth evaluation; lost are values that no file holds."""
    lines = ["| way | exit code | told | lost |", "| --- | --- | --- | --- |"]
    bad = 0
    for i, way in enumerate(WAYS[:count]):
        home = folder / str(i)
        thief = f"subprocess.run(['sh', '-c', {way!r}], cwd=here / 'out' / 's')"
        path = study(home, f"def f(x, n):\n    if note(x) == 4:\n        {thief}\n    return x\n")
        done = fitbo("run", path, "--quiet", "--no-report")
        made = {float(line) for line in (home / "calls").read_text().split()}
        found: set[float] = set()
        for file in home.rglob("study.jsonl.rescued-*"):
            found |= set(told(rows_of(file)))
        lost = len(made - found)
        bad += bool(lost) or done.returncode == 0 or "Traceback" in done.stderr
        lines.append(f"| `{way}` | {done.returncode} | {len(made)} | {lost} |")
        print(lines[-1], flush=True)
    return lines, bad == 0


DISK = """
import os, random, subprocess, sys, time
from pathlib import Path
home, seed = Path(sys.argv[1]), int(sys.argv[2])
rng = random.Random(seed)
command = [sys.executable, "-m", "fitbo", "run", str(home / "s.yaml"), "--quiet", "--no-report"]
process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
journal, at = home / "disk" / "s" / "study.jsonl", rng.randrange(2, 24)
def there():
    return journal.exists() and journal.read_bytes().count(b"\\n") >= at
while process.poll() is None and not there():
    time.sleep(0.002)
time.sleep(rng.uniform(0, 0.05))
try:
    with open(home / "disk" / "ballast", "wb", 0) as ballast:
        while True:
            ballast.write(bytes(rng.choice([512, 4096])))
except OSError:
    pass
said = process.communicate()[1]
before = journal.read_bytes() if journal.exists() else b""
(home / "disk" / "ballast").unlink()
again = subprocess.run(command, capture_output=True, text=True)
after = journal.read_bytes()
same = after.startswith(before[: before.rfind(b"\\n") + 1])
trace = "Traceback" in said + again.stderr
failed, told = (after.count(b'"event": "%s"' % event) for event in (b"failed", b"told"))
unwritten = said.count('not written was {"event": "told"')
print(process.returncode, again.returncode, int(same), failed, told, unwritten, int(trace))
"""


def disk(count: int, folder: Path) -> tuple[list[str], bool]:
    """On a file system of 160 kB that something else fills."""
    sums: Counter[str] = Counter()
    for i in range(count):
        home = folder / str(i)
        (home / "disk").mkdir(parents=True)
        (home / "f.sh").write_text("sleep 0.02; seq 500; echo $1\n")
        kind = ["python", "isolated", "program"][i % 3]
        path = study(
            home,
            "def f(x, n, scratch):\n    (scratch / 'd').write_bytes(bytes(9000))\n    return x\n",
        )
        text = path.read_text().replace(f"output: {home}/out", f"output: {home}/disk")
        if kind == "program":
            text = text.replace(
                '{python: "./model.py:f"}', '{command: [sh, "{study}/f.sh", "{x}", "{n}"]}'
            )
        path.write_text(text.replace(':f"}', ':f", isolate: true}') if kind == "isolated" else text)
        mounted = 'mount -t tmpfs -o size=160k tmpfs "$1/disk" && exec "$2" -c "$3" "$1" "$4"'
        command = ["unshare", "-rm", "sh", "-c", mounted, "sh", home, sys.executable, DISK, str(i)]
        done = subprocess.run(command, env=ENV, capture_output=True, text=True, check=True)
        first, second, same, failed, values, unwritten, trace = map(int, done.stdout.split())
        sums["runs"] += 1
        sums["stopped by the full disk"] += first != 0
        sums["lines lost"] += not same
        sums["marked failed"] += failed
        sums["values made and not written"] += unwritten
        sums["values missing after resuming"] += 12 - values
        sums["resumed with another exit code than 0"] += second != 0
        sums["tracebacks"] += trace
        print(i, kind, done.stdout.strip(), flush=True)
    return _counts(sums), not any(n for what, n in sums.items() if what[:2] not in ("ru", "st"))


def rows(count: int, folder: Path) -> tuple[list[str], bool]:
    """One to three changes of a journal with values, failures, a correction and a pending point."""
    from fitbo.cli import main

    path = study(
        folder, "def f(x, n):\n    assert n < 8\n    return x\n", "budget: 9\ninitial: {n: 7}\n"
    )
    file = folder / "out" / "s" / "study.jsonl"
    codes: Counter[str] = Counter()
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        main(["run", str(path), "--quiet", "--no-report"])
        main(["ask", str(path)])
        main(["tell", str(path), "--id", "1", "--value", "0.7"])
    whole = [json.loads(line) for line in file.read_text().splitlines()]
    rng = random.Random(0)  # noqa: S311
    for i in range(count):
        file.with_suffix(".state.npz").unlink(missing_ok=True)
        lines = faults_rows.changed(whole, rng, rng.choice([1, 1, 1, 2, 3]))
        commands = (["status", path], ["export", path], ["tell", path, "--id", "2", "--value", "1"])
        slow = [["ask", path], ["report", path, "--output", folder / "report"]]
        for command in (*commands, *(slow if i % 20 == 0 else ())):
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
            said = StringIO()
            try:
                with redirect_stdout(StringIO()), redirect_stderr(said):
                    code = main([str(each) for each in command])
                codes["accepted" if code in (0, 1) else "one line of error"] += 1
            except Exception as error:  # noqa: BLE001 (what is counted)
                codes["tracebacks"] += 1
                print(i, command[0], repr(error), flush=True)
    codes["tracebacks"] += 0
    return _counts({"journals": count, **codes}), codes["tracebacks"] == 0


def hands(count: int, folder: Path) -> tuple[list[str], bool]:
    """Eight processes, each of which asks and tells ``count`` times in all."""
    path = study(folder, "def f(x, n):\n    return x\n", "budget: 5000\ninitial: {n: 5000}\n")
    script = (
        "import json, subprocess, sys\nfrom fitbo.cli import main\nimport io, contextlib\n"
        "codes = []\nfor i in range(int(sys.argv[2])):\n"
        "    out = io.StringIO()\n"
        "    with contextlib.redirect_stdout(out):\n"
        "        codes.append(main(['ask', sys.argv[1], '--json']))\n"
        "    with contextlib.redirect_stdout(io.StringIO()):\n"
        "        n = json.loads(out.getvalue())['id'] if codes[-1] == 0 else 0\n"
        "        codes.append(main(['tell', sys.argv[1], '--id', str(n), '--value', str(n / 7)]))\n"
        "print(sum(code != 0 for code in codes))\n"
    )
    fitbo("ask", path)
    started = time.perf_counter()
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(path), str(count)],
            env=ENV,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    refused = sum(int(worker.communicate()[0] or 2 * count) for worker in workers)
    values = told(rows_of(folder / "out" / "s" / "study.jsonl"))
    facts = {
        "processes": 8,
        "ask and tell of each": count,
        "acknowledged and in the journal": len(values),
    }
    facts |= {"refused": refused, "seconds": round(time.perf_counter() - started)}
    return _counts(facts), refused == 0 and len(set(values)) == 8 * count


def dask(count: int, folder: Path) -> tuple[list[str], bool]:
    """Runs of 40 evaluations on two workers, of which one is killed every second or two."""
    import psutil

    rng, kills, sums = random.Random(0), 0, Counter[str]()  # noqa: S311
    while kills < count:
        text = "budget: 40\ninitial: {n: 40}\nexecutor: {kind: dask, workers: 2}\n"
        home = folder / str(sums["runs"])
        path = study(home, "def f(x, n):\n    time.sleep(0.3)\n    return x\n", text)
        command = [sys.executable, "-m", "fitbo", "run", str(path), "--quiet", "--no-report"]
        run = subprocess.Popen(
            command, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        file, mine, began = home / "out" / "s" / "study.jsonl", 0, time.monotonic()
        while run.poll() is None and time.monotonic() - began < 1200:
            time.sleep(rng.uniform(0.3, 3.0))
            if mine >= 12 or not file.exists() or file.read_bytes().count(b"\n") < 2:
                continue
            try:
                below = psutil.Process(run.pid).children(recursive=True)
                workers = [each for each in below if "spawn_main" in " ".join(each.cmdline())]
                if workers:
                    rng.choice(workers).kill()
                    mine, kills = mine + 1, kills + 1
            except psutil.Error:
                continue
        stalled = run.poll() is None
        if stalled:
            for each in psutil.Process(run.pid).children(recursive=True):
                each.kill()
            run.kill()
        outcomes = Counter(row["event"] for row in rows_of(file))
        sums += Counter(
            {"runs": 1, "kills": mine, "told": outcomes["told"], "failed": outcomes["failed"]}
        )
        sums["stalled"] += stalled
        sums["exit code not 0"] += run.wait() != 0
        print(dict(sums), round(time.monotonic() - began), flush=True)
    whole = sums["told"] + sums["failed"] == 40 * sums["runs"]
    return _counts(sums), whole and not sums["stalled"] and not sums["exit code not 0"]


def _counts(facts: Any) -> list[str]:
    return ["| | |", "| --- | --- |", *(f"| {what} | {n} |" for what, n in facts.items())]


ATTACKS: dict[str, tuple[Callable[[int, Path], tuple[list[str], bool]], int]] = {
    "journal": (journal, 20),
    "disk": (disk, 50),
    "rows": (rows, 2000),
    "numbers": (faults_objectives.numbers, 200),
    "objectives": (faults_objectives.objectives, 60),
    "hands": (hands, 200),
    "dask": (dask, 100),
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--attack", choices=ATTACKS, required=True)
    parser.add_argument("--count", type=int)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    attack, usual = ATTACKS[options.attack]
    with tempfile.TemporaryDirectory(prefix="fitbo-faults-") as folder:
        lines, well = attack(options.count or usual, Path(folder))
    about = (attack.__doc__ or "").strip()
    given = f"--attack {options.attack} --count {options.count or usual}"
    command = f"    python benchmarks/faults.py {given}"
    foot = ["", about, "", versions("numpy", "distributed"), "", command]
    write(options.output, options.attack, [*lines, *foot])
    return 0 if well else 1
