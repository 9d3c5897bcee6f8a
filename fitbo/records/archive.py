"""The journals of a campaign in one compressed file, read wherever a folder of them is.

    pack(folder)           ``journals.tar.xz`` in the folder, in place of its journals
    unpack(folder)         the journals again, as a campaign that continues needs them
    journals(path)         every journal at or below a path: (path, bytes), archived ones too

Journals are packed in today's format; nothing is removed before the archive has been read back.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from fitbo.records.journal import Journal, encoded, parsed, read, state_path, sync_directory

ARCHIVE = "journals.tar.xz"
SUFFIX = ".jsonl"


def pack(folder: Path) -> Path:
    """Replace the journals below a folder by one archive; returns its path."""
    found = sorted(file for file in folder.rglob(f"*{SUFFIX}") if b"\n" in file.read_bytes())
    if not found:
        raise ValueError(f"{folder} must hold journals (*{SUFFIX}) to pack, and there are none")
    archive = folder / ARCHIVE
    held = dict(_members(archive))
    for file in found:
        journal = read(file)
        lines = [journal.header, *journal.rows]
        held[file.relative_to(folder).as_posix()] = b"".join(map(encoded, lines))
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
    """Write the archived journals where they were, except those that are there; how many."""
    held = {folder / name: data for name, data in _members(folder / ARCHIVE)}
    absent = [file for file in held if not file.exists()]
    for file in absent:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_bytes(held[file])
        part.replace(file)
    return len(absent)


def journals(path: Path) -> Iterator[tuple[Path, bytes]]:
    """Every journal at or below a path, in order; a file takes precedence over an archived one."""
    if path.is_file():
        archived = path.name.endswith(".tar.xz")
        pairs = _members(path) if archived else [(path.name, path.read_bytes())]
        yield from ((path.parent / name, data) for name, data in pairs)
        return
    # By os.walk, which ignores what vanishes in the meantime: scratch directories of a run.
    files = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
    archives = [file for file in files if file.name == ARCHIVE]
    packed = {archive.parent / n: data for archive in archives for n, data in _members(archive)}
    found = {file for file in files if file.suffix == SUFFIX}
    for file in sorted({*packed, *found}):
        yield file, file.read_bytes() if file in found else packed[file]


def journal_at(path: Path) -> Journal:
    """The journal at a path, from the archive above it if there is no such file."""
    if path.exists():
        return read(path)
    for folder in path.parents:
        for name, data in _members(folder / ARCHIVE):
            if folder / name == path:
                return parsed(data, path)
    raise ValueError(f"there is no journal {path}")


def _members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The journals in an archive by their paths there; none if there is no archive."""
    if not archive.exists():
        return
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
