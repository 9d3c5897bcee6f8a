"""The scripts of ``fitbo completion``, run by the shells that are here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fitbo.cli import main
from fitbo.cli.completion import script
from fitbo.cli.parser import parser

BASH = shutil.which("bash")
COMMANDS = "ask completion export import list new pack report run schema status tell validate watch"


def completed(tmp_path: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    assert BASH is not None
    (tmp_path / "fitbo.bash").write_text(script(parser(), "bash"))
    listed = " ".join(f"'{word}'" for word in ("fitbo", *words))
    text = (
        f"set -u\nsource fitbo.bash\nCOMP_WORDS=({listed})\nCOMP_CWORD={len(words)}\n"
        'COMPREPLY=()\n_fitbo\nprintf "%s\\n" ${COMPREPLY[@]+"${COMPREPLY[@]}"}\n'
    )
    done = subprocess.run(
        [BASH, "-c", text], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stderr == ""
    return sorted(done.stdout.split())


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_bash_completes_commands_options_choices_and_files(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").touch()
    assert completed(tmp_path, "") == sorted(
        ["--help", "--verbose", "--version", *COMMANDS.split()]
    )
    assert completed(tmp_path, "wa") == ["watch"]
    assert completed(tmp_path, "report", "--p") == ["--pages"]
    assert completed(tmp_path, "report", "--pages", "") == ["all", "none", "own"]
    assert completed(tmp_path, "new", "s") == ["study"]
    assert completed(tmp_path, "--verbose", "list", "ke") == ["kernels"]
    assert completed(tmp_path, "run", "mi") == ["mine.yaml"]
    assert completed(tmp_path, "run", "--nothing") == []


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_bash_registers_it(tmp_path: Path) -> None:
    (tmp_path / "fitbo.bash").write_text(script(parser(), "bash"))
    told = subprocess.run(
        [str(BASH), "-c", "source fitbo.bash; complete -p fitbo"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert told.stdout.strip() == "complete -o filenames -F _fitbo fitbo"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS.split())
    where = shutil.which(shell)
    if where is not None:
        subprocess.run([where, "-n", "-c", text], check=True)
