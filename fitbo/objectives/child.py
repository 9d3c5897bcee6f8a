"""``python -m fitbo.objectives.child FOLDER``: one call of a function in a process of its own.

Reads ``task.json`` in the folder and writes ``result.json`` there, at once or not at all.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from fitbo.objectives.outcome import clip, number
from fitbo.objectives.python import extras, load


def main(folder: Path) -> None:
    """Evaluate the task of a folder."""
    task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    result: dict[str, Any]
    try:
        function, given = load(task["python"], task["base"]), task["given"]
        value = function(**given, **extras(function, given, task["seed"], folder))
        result = {"value": number(value)}
    except Exception as error:  # noqa: BLE001 (whatever the function raises is a reason)
        traceback.print_exc()
        kind = type(error).__name__
        text = clip(str(error))
        result = {"reason": text if kind == "Failed" else clip(f"{kind}: {text}")}
    part = folder / "result.part"
    part.write_text(json.dumps(result) + "\n", encoding="utf-8")
    os.replace(part, folder / "result.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
