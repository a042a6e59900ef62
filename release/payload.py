"""Folders as packed bytes: the same bytes for the same files, in parts that are kept apart."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Zip files know no earlier time. It is the same for every release, so that what did not change
# keeps its bytes.
FILE_TIME = 315_532_800
_BLOCK = 4096


class Part(NamedTuple):
    """A part of a payload: packed, and what is in it.

    ``names`` are all files and folders, ``sums`` the lines that sha256sum would print.
    """

    packed: bytes
    names: tuple[str, ...]
    sums: tuple[str, ...]
    unpacked_bytes: int


def list_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Give every folder and file below a folder, with its name there, in order of the names."""
    for path in sorted(folder.rglob("*"), key=lambda one: one.relative_to(folder).as_posix()):
        yield path.relative_to(folder).as_posix(), path


def add_member(
    tar: tarfile.TarFile, name: str, data: bytes | None, mode: int, when: int = FILE_TIME
) -> None:
    """Add a file, or a folder where there are no data; it names no user and no machine."""
    member = tarfile.TarInfo(name)
    member.mode, member.mtime = mode, when
    if data is None:
        member.type = tarfile.DIRTYPE
    else:
        member.size = len(data)
    tar.addfile(member, None if data is None else io.BytesIO(data))


def sum_line(path: Path, folder: Path) -> str:
    """Give the line that sha256sum prints of a file of this folder."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{digest}  {path.relative_to(folder).as_posix()}"


def mode_of(path: Path) -> int:
    """Give the mode of a file of a release: whatever the umask was, all may read."""
    return 0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644


def pack_part(folder: Path, *, is_last: bool = False) -> Part:
    """Pack a folder as a part of a tar; gzip and tar take parts one behind the other for one."""
    raw = io.BytesIO()
    tar = tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115
    names, sums, size = [], [], 0
    for name, path in list_files(folder):
        if any(letter in name for letter in " \t\n\\'\"*?["):
            raise ValueError(f"{name!r}: a shell would take it for something else")
        data = None if path.is_dir() else path.read_bytes()
        add_member(tar, name, data, mode_of(path))
        names.append(name)
        if data is not None:
            sums.append(sum_line(path, folder))
        size += _BLOCK if data is None else -(-len(data) // _BLOCK) * _BLOCK
    end = tar.offset
    if is_last:
        tar.close()
        end = len(raw.getvalue())
    packed = gzip.compress(raw.getvalue()[:end], 9, mtime=0)
    return Part(packed, tuple(names), tuple(sums), size)


def keep_part(part: Part, path: Path) -> None:
    """Keep a part in a file."""
    lines = [str(part.unpacked_bytes), *part.names, "", *part.sums]
    head = "\n".join(lines).encode()
    fresh = path.with_suffix(".new")
    fresh.write_bytes(len(head).to_bytes(8, "big") + head + part.packed)
    fresh.rename(path)


def load_part(path: Path) -> Part:
    """Read a part that was kept."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "big")
    size, *names = data[8:end].decode().split("\n")
    at = names.index("")
    return Part(data[end:], tuple(names[:at]), tuple(names[at + 1 :]), int(size))
