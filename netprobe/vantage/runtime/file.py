"""A runtime as a file: a compressed tar that says in its first member what it is."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from netprobe.errors import FileErrors, Problem
from netprobe.files import MIB, read_file
from netprobe.vantage.runtime.elf import read_elf

SCHEMA = "netprobe.runtime/1"
MANIFEST = "netprobe-runtime.json"
MAX_BYTES = 64 * MIB
_MAX_UNPACKED_BYTES = 256 * MIB
_KIND = "a runtime made by `netprobe runtime build`"
# What the host runs.
PROGRAMS = ("ld.so", "bin/python")


class RuntimeManifest(Struct, frozen=True):
    """What a runtime says of itself; ``modules`` are the ones that were asked for."""

    arch: str
    python: str
    built_from: str
    modules: tuple[str, ...]


class Runtime(Struct, frozen=True):
    """A checked runtime: ``payload`` is the compressed tar as it crosses the wire."""

    manifest: RuntimeManifest
    payload: bytes
    unpacked_bytes: int

    @property
    def arch(self) -> str:
        """The machine that it is for, as ``uname -m`` says it."""
        return self.manifest.arch


def write_manifest(manifest: RuntimeManifest) -> bytes:
    """Give the manifest as the text of its member."""
    return (json.dumps({"schema": SCHEMA, **asdict(manifest)}, indent=1) + "\n").encode("utf-8")


def load_runtime(path: str) -> Runtime:
    """Read and check a runtime. Raises FileErrors where the file is none, or is damaged."""
    payload = read_file(path, _KIND, MAX_BYTES)
    try:
        return check_runtime(payload)
    except ValueError as error:
        raise FileErrors([Problem(path, 0, 0, f"{error}, expected {_KIND}")]) from None


def check_runtime(payload: bytes) -> Runtime:
    """Check the bytes of a runtime. Raises ValueError; its text begins the sentence."""
    if payload[:4] == b"\x7fELF":
        raise ValueError("this is a program")
    if payload[:2] != b"\x1f\x8b":
        raise ValueError("this is no gzip file")
    members, total = _read_members(payload)
    manifest = _read_manifest(members)
    for name in PROGRAMS:
        elf = read_elf(members.get(name, b""))
        if elf is None:
            raise ValueError(f"its {name} is no program")
        if elf.arch != manifest.arch:
            raise ValueError(f"its {name} is for {elf.arch} and the rest for {manifest.arch}")
    return Runtime(manifest, payload, total)


def _read_members(payload: bytes) -> tuple[dict[str, bytes], int]:
    """Give the members that are looked at, and the bytes of all files."""
    wanted = (MANIFEST, *PROGRAMS)
    found: dict[str, bytes] = {}
    total = 0
    try:
        # Its end has a check sum, which tar would not read.
        with gzip.GzipFile(fileobj=io.BytesIO(payload)) as unzipped:
            raw = unzipped.read(_MAX_UNPACKED_BYTES + 1)
        if len(raw) > _MAX_UNPACKED_BYTES:
            raise ValueError(f"unpacked it is larger than {_MAX_UNPACKED_BYTES // MIB} MiB")
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            for member in tar:
                _check_member(member)
                total += -(-member.size // 4096) * 4096
                file = tar.extractfile(member) if member.name in wanted else None
                if file is not None:
                    found[member.name] = file.read()
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise ValueError(f"it is damaged or no tar file ({error})") from None
    return found, total


def _check_member(member: tarfile.TarInfo) -> None:
    """Refuse what a host would unpack elsewhere than in the runtime's own folder."""
    parts = member.name.split("/")
    if not (member.isfile() or member.isdir()) or "" in parts or ".." in parts:
        raise ValueError(f"its member {member.name!r:.60} is no plain file of a folder below")


def _read_manifest(members: Mapping[str, bytes]) -> RuntimeManifest:
    try:
        told: Any = json.loads(members[MANIFEST])
        if told.pop("schema") != SCHEMA:
            raise ValueError(f"this runtime is of another version of netprobe than {SCHEMA}")
        told["modules"] = tuple(map(str, told["modules"]))
        if not all(isinstance(told[name], str) for name in ("arch", "python", "built_from")):
            raise TypeError
        return RuntimeManifest(**told)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError):
        raise ValueError(f"it has no {MANIFEST} that can be read") from None
