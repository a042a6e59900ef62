"""Builds a runtime of a Python of this machine: its interpreter, its libraries, and few modules."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from netprobe.errors import RequestError
from netprobe.vantage.pack import BOOTSTRAP, bundle
from netprobe.vantage.runtime.elf import Elf, read_elf
from netprobe.vantage.runtime.file import (
    MANIFEST,
    Runtime,
    RuntimeManifest,
    check_runtime,
    write_manifest,
)

# What is imported by C code, or by the standard library when it is needed: names of hosts, and
# tracebacks.
_UNSEEN = ("encodings.ascii", "encodings.idna", "encodings.latin_1", "encodings.utf_8", "linecache",
           "runpy", "traceback", "warnings", "zipimport")  # fmt: skip
# Of glibc before 2.34 the loader cannot know them: getaddrinfo loads them by name.
_NAME_LIBRARIES = ("libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2")
_BUILD_S = 60


def build_runtime(python: str | None = None) -> Runtime:
    """Build a runtime of this Python, or of the one at the path ``python``.

    Raises RequestError where it cannot be built, with the reason and what to do.
    """
    source = _find_base(python)
    elf = _read_program(source)
    with tempfile.TemporaryDirectory(prefix="netprobe-build-") as name:
        folder = Path(name)
        told = _run_inside(source, folder)
        _copy_programs(source, str(elf.loader), folder, told)
        manifest = RuntimeManifest(elf.arch, told["version"], source, agent_modules())
        _try_out(folder, told["found"], source)
        return check_runtime(pack_folder(folder, manifest))


@cache
def agent_modules() -> tuple[str, ...]:
    """List the modules of the standard library that the agent imports anywhere, or may need."""
    # What is shipped says it, without docstrings and comments; its own modules are relative.
    packed = zlib.decompress(bundle(batch=True).partition(b"\n")[2]).decode("utf-8")
    statements = re.split("[\n\0;]", f"{packed};{BOOTSTRAP}")
    names = {name for one in statements for name in _read_import(one.strip())}
    known = {one for one in names if one.partition(".")[0] in sys.stdlib_module_names}
    return tuple(sorted(known | set(_UNSEEN)))


def _read_import(statement: str) -> list[str]:
    """Give the modules that a statement imports; none where it is another one."""
    first, _, rest = statement.partition(" ")
    if first == "from":
        return [rest.partition(" import ")[0]]
    names = rest.split(",") if first == "import" else []
    return [name.split()[0] for name in names if name.split()]


def _find_base(python: str | None) -> str:
    """Find the interpreter itself: behind a virtual environment, and behind a shim."""
    asked = python or getattr(sys, "_base_executable", None) or sys.executable
    path = shutil.which(asked or "")
    if path is None:
        told = f"no Python can be run at {asked or 'sys.executable'}"
        raise RequestError(f"{told}: name an interpreter with --python")
    code = (
        "import sys,os;print(sys.version_info[:2]>=(3,6));"
        "print(os.path.realpath(getattr(sys,'_base_executable',None) or sys.executable))"
    )
    try:
        ok, _, base = _run_python([path, "-I", "-c", code], path).partition("\n")
    except RequestError:
        ok, base = "False", ""
    if ok != "True":
        raise RequestError(f"no runtime can be made of {path}: it is no Python 3.6 or later")
    return base.strip()


def _run_python(argv: list[str], python: str) -> str:
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=_BUILD_S, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RequestError(f"no runtime can be made of {python}: {error}") from None
    if done.returncode:
        words = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise RequestError(f"no runtime can be made of {python}: {words}")
    return done.stdout


def _run_inside(source: str, folder: Path) -> dict[str, Any]:
    """Let the Python write its modules into the folder and tell of itself."""
    program = resources.files("netprobe.vantage.runtime").joinpath("inside.py").read_text("utf-8")
    argv = [source, "-I", "-S", "-c", program, str(folder), ",".join(agent_modules())]
    told: dict[str, Any] = json.loads(_run_python(argv, source))
    return told


def _read_program(source: str) -> Elf:
    """Read the headers of an interpreter. Raises RequestError where no loader starts it."""
    elf = read_elf(Path(source).read_bytes())
    if elf is None or elf.loader is None:
        kind = "is no ELF program" if elf is None else "is linked statically, without a loader"
        raise RequestError(
            f"no runtime can be made of {source}: it {kind}; name a Python of a distribution or of "
            "pyenv with --python"
        )
    return elf


def _copy_programs(source: str, loader: str, folder: Path, told: dict[str, Any]) -> None:
    """Copy the interpreter, its extension modules, the loader, and all libraries of these."""
    (folder / "bin").mkdir()
    (folder / "so").mkdir()
    _copy_stripped(source, folder / "bin/python")
    _copy_stripped(loader, folder / "ld.so")
    extensions = told["extensions"]
    for path in extensions:
        _copy_stripped(path, folder / told["dynload"] / Path(path).name)
    for name, path in _find_libraries(loader, [source, *extensions]):
        _copy_stripped(path, folder / "so" / name)


def _find_libraries(loader: str, programs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Give name and path of every library that the loader would load for these programs."""
    seen: dict[str, str] = {}
    for program in programs:
        argv = [loader, "--list", program]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_BUILD_S)
        for line in done.stdout.splitlines():
            name, arrow, rest = line.strip().partition(" => ")
            path = rest.rpartition(" (")[0]
            if arrow and rest.startswith("not found"):
                raise RequestError(f"no runtime can be made: {program} needs {name}, not found")
            if arrow and path and os.path.basename(path) != os.path.basename(loader):
                seen.setdefault(os.path.basename(name), path)
    if "libc.so.6" in seen:
        beside = Path(seen["libc.so.6"]).parent
        seen.update({one: str(beside / one) for one in _NAME_LIBRARIES if (beside / one).exists()})
    yield from sorted(seen.items())


def _copy_stripped(source: str, target: Path) -> None:
    """Copy a program without what only debuggers read, where binutils are here."""
    shutil.copyfile(source, target)
    target.chmod(0o700)
    strip = shutil.which("strip")
    if strip is not None:
        argv = [strip, "--strip-unneeded", str(target)]
        done = subprocess.run(argv, capture_output=True, check=False, timeout=_BUILD_S)
        if done.returncode:
            shutil.copyfile(source, target)


def _try_out(folder: Path, modules: Iterable[str], source: str) -> None:
    """Start what was built, as a host will, and import every module from it alone."""
    code = (
        "import sys\nsys.modules['_hashlib']=None\n"
        f"for name in {list(modules)!r}: __import__(name)\n"
        "print([m.__file__ for m in list(sys.modules.values()) if getattr(m,'__file__',None)\n"
        "       and not m.__file__.startswith(sys.argv[1])])"
    )
    words = [f"{folder}/ld.so", "--library-path", f"{folder}/so", f"{folder}/bin/python"]
    strays = _run_python([*words, "-I", "-S", "-c", code, str(folder)], source).strip()
    if strays != "[]":
        raise RequestError(f"no runtime can be made of {source}: it still reads {strays}")


def pack_folder(folder: Path, manifest: RuntimeManifest) -> bytes:
    """Pack it, the same bytes for the same files."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=6, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        _add_member(tar, MANIFEST, write_manifest(manifest))
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            _add_member(tar, name, None if path.is_dir() else path.read_bytes())
    return packed.getvalue()


def _add_member(tar: tarfile.TarFile, name: str, data: bytes | None) -> None:
    member = tarfile.TarInfo(name)
    member.mode = 0o700
    if data is None:
        member.type = tarfile.DIRTYPE
    else:
        member.size = len(data)
    tar.addfile(member, None if data is None else io.BytesIO(data))
