"""Bundles: one file with the agent and the scripts of hosts, which any Python from 3.6 runs.

A bundle for each host, which holds no other host's key, and the plan for who merges.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from netprobe.batch.file_names import escape_first, safe_name
from netprobe.batch.limits import MOST_PLAN_BYTES
from netprobe.batch.script import HostScript, write_script
from netprobe.errors import RequestError
from netprobe.files import create_secret, open_file
from netprobe.vantage.pack import bundle
from netprobe.vantage.runtime.file import Runtime
from netprobe.vantage.runtime.script import runtime_prologue

SHEBANG = b"#!/usr/bin/env python3\n"
HEADER_MEMBER, PLAN_MEMBER = "header.json", "plan"
MOST_HEADER_BYTES = 64 * 1024
# A bundle has five members with short names, and ends with the end of their list.
MOST_MEMBERS, MOST_DIRECTORY_BYTES = 16, 4096
_END, _END_MAGIC = struct.Struct("<4s4H2LH"), b"PK\x05\x06"
# What zipfile and JSON raise of files that somebody or something changed.
_UNREADABLE = (
    KeyError, ValueError, EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error,
    struct.error,
)  # fmt: skip
# The least date that a zip file can have: equal requests make equal bundles.
_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16

# Python 2 must be able to read it, too, to say that it is too old.
_MAIN = """\
import sys
if sys.version_info < (3, 6):
    sys.stderr.write("netprobe: needs Python 3.6 or later; this is %d.%d\\n" % sys.version_info[:2])
    sys.exit(2)
import gc, os, zlib
gc.disable()
data = __loader__.get_data(os.path.join(__loader__.archive, "agent"))
parts = zlib.decompress(data).decode("utf-8").split(chr(0))
sources = dict(zip(parts[::2], parts[1::2]))
names = {"__name__": "netprobe_agent.boot"}
exec(compile(sources["boot"], "netprobe_agent/boot.py", "exec"), names)
names["boot"](sources, "batch.carried")
"""


# What holds the keys of all hosts, and is for none of them.
_PLAN_MAIN = """\
import sys
sys.stderr.write("netprobe: this is the plan of a run, for `netprobe merge`; "
                 "each host has a file of its own beside it\\n")
sys.exit(2)
"""

# The script's stdin is the script itself, at whose end the bundle stands.
_RUN_BUNDLE = (
    "import os,sys,zipimport as z,__main__ as m;"
    "sys.argv[0]=p=os.readlink('/proc/self/fd/0');"
    "m.__loader__=z.zipimporter(p);"
    "exec(m.__loader__.get_code('__main__'),m.__dict__)"
)

PLAN_NAME = "plan"


class OpenedBundle(Struct, frozen=True):
    """What a bundle holds for those who merge: its header, and the plan as it was put in."""

    header: Mapping[str, Any]
    plan: bytes


def pack_bundle(
    header: Mapping[str, Any], scripts: Iterable[HostScript], plan: bytes | None = None
) -> bytes:
    """Pack a bundle for these hosts. The same arguments give the same bytes.

    ``plan`` holds the keys of all hosts of the run; None: a bundle for hosts and nobody else.
    """
    _, _, agent = bundle(batch=True).partition(b"\n")
    stored = {"__main__.py": _MAIN.encode("ascii"), "agent": agent, "hosts": _pack_hosts(scripts)}
    return _pack_members(header, stored, {} if plan is None else {PLAN_MEMBER: plan})


def pack_plan(header: Mapping[str, Any], plan: bytes) -> bytes:
    """Pack what a merge needs of a run whose hosts have bundles of their own."""
    return _pack_members(header, {"__main__.py": _PLAN_MAIN.encode("ascii")}, {PLAN_MEMBER: plan})


def _pack_members(
    header: Mapping[str, Any], stored: Mapping[str, bytes], packed: Mapping[str, bytes]
) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in stored.items():
            _add_member(archive, name, content, zipfile.ZIP_STORED)
        _add_member(archive, HEADER_MEMBER, json.dumps(header).encode("ascii"))
        for name, content in packed.items():
            _add_member(archive, name, content)
    return SHEBANG + data.getvalue()


def bring_runtime(packed: bytes, runtime: Runtime) -> bytes:
    """Give a bundle as a shell script, ``run.sh``, that brings its own Python along.

    It is a bundle still: for ``open_bundle``, and for any Python that is there.
    """
    return runtime_prologue(runtime, _RUN_BUNDLE) + packed


def open_bundle(path: Path) -> OpenedBundle:
    """Read a bundle's header and plan. Raises RequestError where it is none, after bounded time and
    memory."""
    with open_file(str(path), "a file made by `netprobe bundle`") as file:
        try:
            _check_directory(file)
            with zipfile.ZipFile(file) as packed:
                header = json.loads(_read_member(packed, HEADER_MEMBER, MOST_HEADER_BYTES))
                if PLAN_MEMBER not in packed.namelist():
                    raise RequestError(
                        f"{path}: is for a host; give the plan.pyz that was made with it"
                    )
                return OpenedBundle(header, _read_member(packed, PLAN_MEMBER, MOST_PLAN_BYTES))
        except _UNREADABLE:
            raise RequestError(
                f"{path}: is no bundle, expected a file made by `netprobe bundle`"
            ) from None


def _check_directory(file: BinaryIO) -> None:
    """Raise ValueError where the list of members is longer than that of a bundle."""
    file.seek(-_END.size, os.SEEK_END)
    magic, _, _, _, members, size, _, _ = _END.unpack(file.read(_END.size))
    if magic != _END_MAGIC or members > MOST_MEMBERS or size > MOST_DIRECTORY_BYTES:
        raise ValueError("another archive")


def _read_member(packed: zipfile.ZipFile, name: str, most: int) -> bytes:
    """Unpack a member. Raises ValueError where it is larger, or packed as no bundle is."""
    if packed.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("another kind of packing")
    with packed.open(name) as member:
        data = member.read(most + 1)
    if len(data) > most:
        raise ValueError("a member that is too large")
    return data


def _add_member(
    packed: zipfile.ZipFile, name: str, data: bytes, how: int = zipfile.ZIP_DEFLATED
) -> None:
    member = zipfile.ZipInfo(name, _DATE)
    member.external_attr = _MODE
    packed.writestr(member, data, how)


def _pack_hosts(scripts: Iterable[HostScript]) -> bytes:
    """Give the table of hosts (its packed length as a line, then zlib of JSON), then scripts."""
    table: list[tuple[int, str, list[str], int, int]] = []
    packed: list[bytes] = []
    at = 0
    for script in sorted(scripts, key=lambda one: one.start.host):
        packed.append(zlib.compress(write_script(script), 9))
        start = script.start
        table.append((start.host, start.name, start.addresses, at, len(packed[-1])))
        at += len(packed[-1])
    head = zlib.compress(json.dumps(table).encode("ascii"), 9)
    return b"%d\n%s" % (len(head), head) + b"".join(packed)


def write_host_bundles(
    folder: Path,
    header: Mapping[str, Any],
    scripts: Sequence[HostScript],
    plan: bytes,
    runtime: Runtime | None = None,
) -> None:
    """Write a new folder (mode 0700): ``plan.pyz``, and for each host ``HOST.pyz``, which holds its
    own script and result key alone; with a runtime ``HOST.sh``. Files have mode 0600.

    Raises OSError, also where anything of it is there already.
    """
    folder.mkdir(mode=0o700, parents=True)
    create_secret(str(folder / f"{PLAN_NAME}.pyz"), pack_plan(header, plan))
    for script in scripts:
        packed = pack_bundle(header, [script])
        ending = "pyz" if runtime is None else "sh"
        data = packed if runtime is None else bring_runtime(packed, runtime)
        create_secret(str(folder / f"{name_bundle(script.start.name)}.{ending}"), data)


def name_bundle(host: str) -> str:
    """Give the name of a host's bundle, without its ending; no host has that of the plan."""
    name = safe_name(host)
    return escape_first(name) if name.lower() == PLAN_NAME else name
