"""The journals of a campaign in one compressed file, read wherever a folder of them is.

    pack(folder)           ``journals.tar.xz`` in the folder, in place of its journals
    unpack(folder)         the journals again, which is what a campaign that goes on needs
    journals(path)         every journal at or below a path: (path, bytes), archived ones too

Journals are packed in today's format; nothing is removed before the archive has been read back.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from fitbo.records.journal import Journal, parsed, read, state_path, sync_directory

ARCHIVE = "journals.tar.xz"
SUFFIX = ".jsonl"


def pack(folder: Path) -> Path:
    """Replace the journals below a folder by one archive; its path."""
    found = sorted(file for file in folder.rglob(f"*{SUFFIX}") if b"\n" in file.read_bytes())
    if not found:
        raise ValueError(f"{folder} must hold journals (*{SUFFIX}) to pack, and there are none")
    archive = folder / ARCHIVE
    held = dict(_members(archive)) if archive.exists() else {}
    held |= {file.relative_to(folder).as_posix(): _todays(file) for file in found}
    part = archive.with_suffix(".part")
    with tarfile.open(part, "w:xz", preset=9) as tar:
        for name, data in sorted(held.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    if dict(_members(part)) != held:
        raise OSError(f"{part} could not be read back: nothing was removed")
    part.replace(archive)
    sync_directory(folder)
    for file in found:
        file.unlink()
        state_path(file).unlink(missing_ok=True)
        for parent in [p for p in file.parents if folder in p.parents]:
            with suppress(OSError):  # not empty
                parent.rmdir()
    return archive


def unpack(folder: Path) -> int:
    """Write the archived journals where they were, those that are there already apart; how many."""
    count = 0
    for name, data in _members(folder / ARCHIVE) if (folder / ARCHIVE).exists() else ():
        file = folder / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_suffix(".part")
            part.write_bytes(data)
            part.replace(file)
            count += 1
    return count


def journals(path: Path) -> Iterator[tuple[Path, bytes]]:
    """Every journal at or below a path, in order; a file beside an archive is the newer of two."""
    if path.is_file():
        archived = path.name.endswith(".tar.xz")
        pairs = _members(path) if archived else [(path.name, path.read_bytes())]
        yield from ((path.parent / name, data) for name, data in pairs)
        return
    # By os.walk, which passes over what vanishes meanwhile: scratch directories of a run.
    files = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
    packed = {
        archive.parent / name: data
        for archive in files
        if archive.name == ARCHIVE
        for name, data in _members(archive)
    }
    found = {file for file in files if file.suffix == SUFFIX}
    for file in sorted({*packed, *found}):
        yield file, file.read_bytes() if file in found else packed[file]


def journal_at(path: Path) -> Journal:
    """The journal at a path, from the archive above it if there is no such file."""
    if path.exists():
        return read(path)
    for folder in path.parents:
        for name, data in _members(folder / ARCHIVE) if (folder / ARCHIVE).exists() else ():
            if folder / name == path:
                return parsed(data, path)
    raise ValueError(f"there is no journal {path}")


def _todays(file: Path) -> bytes:
    """A journal's bytes, in today's format."""
    journal = read(file)
    lines = [journal.header, *journal.rows]
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines).encode()


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(archive, "r:xz") as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                inside = not path.is_absolute() and ".." not in path.parts
                file = tar.extractfile(member)
                if inside and file is not None and path.suffix == SUFFIX:
                    yield str(path), file.read()
    except (tarfile.TarError, EOFError) as error:
        raise ValueError(f"{archive} must be an archive of journals: {error}") from None
