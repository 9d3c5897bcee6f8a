"""A MkDocs hook: the tutorials are executed as notebooks, and their outputs are shown.

A tutorial is a Markdown page. Its ``python`` blocks are cells, the lines of ``sh`` blocks are
commands, and a block whose first line is a comment with a file's name is that file: as in
``tests/test_readme.py``, which runs them too. The executed notebook can be downloaded.
"""

from __future__ import annotations

import base64
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.structure.files import File
from nbclient import NotebookClient
from traitlets.config import Config

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", flags=re.DOTALL | re.MULTILINE)
NAME = re.compile(r"#!?\s*(\S+\.\w+)\n")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
SECONDS = 300
# One thread for each kernel, lines of a width that the page has, this interpreter's commands first.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "88"}


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page with the outputs of its cells, and a link to the notebook."""
    name = page.file.src_uri
    if not name.startswith("tutorials/"):
        return markdown
    notebook = notebook_of(markdown)
    execute(notebook)
    stem = name.removesuffix(".md")
    ipynb = nbformat.writes(notebook)
    files.append(File.generated(config, f"{stem}.ipynb", content=ipynb))
    cells = iter(cell for cell in notebook.cells if cell.cell_type == "code")
    pictures: list[bytes] = []
    text = BLOCK.sub(lambda block: shown(block, next(cells), stem, pictures), markdown)
    for i, picture in enumerate(pictures):
        files.append(File.generated(config, f"{stem}-{i}.png", content=picture))
    link = f"[Download this page as an executed notebook]({Path(stem).name}.ipynb).\n"
    return f"{text}\n---\n\n{link}"


def notebook_of(markdown: str) -> Any:
    """The page as a notebook: text and cells in turn."""
    notebook = nbformat.v4.new_notebook()
    at = 0
    for block in BLOCK.finditer(markdown):
        notebook.cells.append(nbformat.v4.new_markdown_cell(markdown[at : block.start()]))
        notebook.cells.append(nbformat.v4.new_code_cell(source_of(*block.groups())))
        at = block.end()
    notebook.cells.append(nbformat.v4.new_markdown_cell(markdown[at:]))
    return notebook


def source_of(kind: str, text: str) -> str:
    """What a cell of the notebook says for a block of the page."""
    file = NAME.match(text)
    if file:
        return f"%%writefile {file[1]}\n{text.partition(chr(10))[2]}"
    if kind == "sh":
        return f"%%script bash -e\n{text.rstrip()}"  # unlike !, an error if a command fails
    if kind == "python":
        return text.rstrip()
    raise ValueError(f"a block of {kind!r} in a tutorial needs a file's name in its first line")


def execute(notebook: Any) -> None:
    """Runs all cells in a folder of their own; an error ends the build."""
    environment = {**os.environ, **ENVIRONMENT}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w") as plain:
        # A kernel tells programs to write colours, which a page would show as escape sequences.
        print("unset FORCE_COLOR CLICOLOR_FORCE", file=plain, flush=True)
        environment["BASH_ENV"] = plain.name
        # Sockets in that folder: over TCP whoever is on the machine could read them.
        local = Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/.kernel"}})
        where = {"metadata": {"path": folder}}
        client = NotebookClient(
            notebook, timeout=SECONDS, startup_timeout=SECONDS, resources=where, config=local
        )
        client.execute(env=environment)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "text" in output:
                output.text = plainly(output.text, folder)


def plainly(text: str, folder: str) -> str:
    """Without escape sequences, and without the paths of the machine that built the page."""
    python = str(Path(sys.executable).parent)
    return ESCAPE.sub("", text).replace(folder, "/home/you").replace(f"{python}/", "")


def shown(block: re.Match[str], cell: Any, stem: str, pictures: list[bytes]) -> str:
    """A block as the page shows it: a file with its title, and what the cell gave."""
    kind, text = block.groups()
    file = NAME.match(text)
    if file:
        return f'```{kind} title="{file[1]}"\n{text.partition(chr(10))[2]}```\n'
    parts, printed = [block[0]], ""
    for output in cell.outputs:
        data = output.get("data", {})
        if output.output_type == "stream":
            printed += output.text
        elif "image/png" in data:
            parts.append(f"![output]({Path(stem).name}-{len(pictures)}.png)\n")
            pictures.append(base64.b64decode(data["image/png"]))
        elif "text/plain" in data:
            printed += data["text/plain"] + "\n"
    if printed.strip():
        parts.insert(1, f"```text\n{printed.rstrip()}\n```\n")
    return "\n".join(parts)
