"""Small campaigns, their journals without the timings, and the processes that write them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import yaml

from fitbo.config.campaign import Campaign, StudyConfig, from_dict
from fitbo.runs.study import run

SMALL: dict[str, Any] = {
    "name": "small",
    "problems": ["branin"],
    "methods": [{"label": "MM", "acquisition": "fitbo", "entropy": "mm", "samples": 12}],
    "seeds": 1,
    "budget": 7,
    "initial": {"n": 3},
    "executor": "serial",
}
MANY: dict[str, Any] = {"problems": ["branin", "forrester"], "seeds": 2}
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.getcwd()}


def campaign(output: Path, **changes: Any) -> Campaign:
    return from_dict({**SMALL, "output": str(output), **changes})


def one_study(output: Path, **changes: Any) -> StudyConfig:
    return campaign(output, **changes).studies()[0]


def complete(study: StudyConfig, stop: Callable[[], bool] = lambda: False) -> bool:
    """Run a study; whether it came to its end."""
    return run(study, stop=stop, patience=0.0) is not None


def write_config(output: Path, **changes: Any) -> Path:
    """A file of that campaign, beside its results."""
    path = output.with_suffix(".yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({**SMALL, "output": str(output), **changes}))
    return path


TIMES = rb', "(seconds|elapsed|suggestion_seconds)": (\{[^{}]*\}|[0-9.e-]+)'


def timeless(path: Path) -> bytes:
    """A journal's bytes but for what was timed."""
    return re.sub(TIMES, b"", path.read_bytes())


def journals(output: Path) -> dict[str, bytes]:
    """Every journal below a folder, by its path there, without the seconds."""
    return {str(p.relative_to(output)): timeless(p) for p in sorted(output.rglob("*.jsonl"))}


def n_told(path: Path) -> int:
    return path.read_bytes().count(b'"event": "told"') if path.exists() else 0


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """What the condition returns once it is true; an error if it never is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{condition} was not met in {seconds} seconds")


def start(arguments: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """``python -m fitbo`` with these arguments, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "fitbo", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        start_new_session=True,
        **options,
    )


def alive(group: int) -> list[str]:
    """The processes of a group that have not ended; what nobody has reaped has."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {' '.join(process.cmdline())}")
        except (psutil.Error, ProcessLookupError):  # it ended while we looked
            continue
    return found


def holder(path: Path) -> psutil.Process | None:
    """The descendant of this process that has a file open."""
    for process in psutil.Process().children(recursive=True):
        try:
            if any(file.path == str(path) for file in process.open_files()):
                return process
        except psutil.Error:
            continue
    return None
