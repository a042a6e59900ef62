"""The Python for hosts that have none, made of the travelling one instead of the machine's."""

from __future__ import annotations

import json
import posixpath
import shutil
from importlib import resources
from pathlib import Path, PurePath

from netprobe.vantage.runtime.build import agent_modules
from netprobe.vantage.runtime.file import MANIFEST, RuntimeManifest, check_runtime, write_manifest
from release.debian import locked_packages
from release.interpreter import (
    DYNLOAD,
    LIBRARIES,
    LOADER,
    PROGRAM,
    host_interpreter,
    needed_libraries,
    python_command,
)
from release.payload import list_files
from release.places import Arch, own_arch, run_program

# getaddrinfo of an older libc loads them by name, so nothing says that they are needed.
_NAME_LIBRARIES = ("libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2")


def lay_out_runtime(arch: Arch, interpreter: Path, folder: Path) -> None:
    """Lay out what ``join.py`` makes the Python for hosts without one of, in a folder of a release.

    ``interpreter`` is the travelling Python for them. The modules are compiled by that of this
    machine: bytecode knows no architecture.
    """
    share = folder / "share/netprobe"
    pieces = share / f"runtime-{arch}"
    pieces.mkdir(parents=True)
    program = resources.files("netprobe.vantage.runtime").joinpath("inside.py").read_text("utf-8")
    argv = [*python_command(host_interpreter()), "-S", "-c", program, str(pieces)]
    found = json.loads(run_program([*argv, ",".join(agent_modules())]))
    (package,) = locked_packages(arch, ("python3.11-minimal",))
    source = f"{package.name} {package.version} of Debian"
    manifest = RuntimeManifest(arch, found["version"], source, agent_modules())
    (pieces / MANIFEST).write_bytes(write_manifest(manifest))
    shared = _find_programs(arch, interpreter, found)
    own = {name: f"share/netprobe/{pieces.name}/{name}" for name, path in list_files(pieces)
           if path.is_file()}  # fmt: skip
    files = {**own, **shared}
    folders = {parent.as_posix(): None for name in files for parent in PurePath(name).parents}
    members = sorted({**folders, **files}.items(), key=lambda one: (one[0] != MANIFEST, one[0]))
    text = json.dumps([one for one in members if one[0] != "."], indent=0)
    (share / f"runtime-{arch}.json").write_text(text + "\n", encoding="utf-8")
    shutil.copyfile(Path(__file__).with_name("join.py"), share / "join.py")


def join_runtime(arch: Arch, folder: Path) -> Path:
    """Join it, as whoever unpacks a release does, and give the file."""
    path = folder / f"share/netprobe/runtime-{arch}.tar.gz"
    run_program([*python_command(host_interpreter()), "-S", str(folder / "share/netprobe/join.py"),
                 str(folder), arch])  # fmt: skip
    check_runtime(path.read_bytes())
    return path


def _find_programs(arch: Arch, interpreter: Path, found: dict[str, object]) -> dict[str, str]:
    """Give the programs and libraries of a runtime, by their names in it and in a release."""
    dynload = str(found["dynload"])
    own, other = own_arch().triplet, arch.triplet
    extensions = [
        posixpath.basename(path).replace(own, other) for path in _texts_of(found["extensions"])
    ]
    programs = {"bin/python": PROGRAM, "ld.so": LOADER}
    programs |= {f"{dynload}/{name}": f"{DYNLOAD}/{name}" for name in extensions}
    needed = _list_libraries(interpreter, [interpreter / one for one in programs.values()])
    return programs | {f"so/{name}": f"{LIBRARIES}/{name}" for name in needed}


def _texts_of(value: object) -> list[str]:
    assert isinstance(value, list)
    return [str(one) for one in value]


def _list_libraries(interpreter: Path, programs: list[Path]) -> list[str]:
    """List the libraries that these need, and those that these libraries need."""
    found = set(_NAME_LIBRARIES)
    waiting = [*programs, *(interpreter / LIBRARIES / name for name in found)]
    while waiting:
        for name in needed_libraries(waiting.pop()):
            if name not in found and not name.startswith("ld-linux"):
                found.add(name)
                waiting.append(interpreter / LIBRARIES / name)
    return sorted(found)
