"""The travelling Python as a folder: Debian's CPython, its libraries, its loader and its libc."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from release.debian import PYTHON, Package, fetch_packages, locked_packages, read_package
from release.left_out import EXTENSIONS, STDLIB, is_left_out
from release.places import BUILD, Arch, ReleaseError, key_of, own_arch, run_program

LIBRARY = "lib/python3.11"
DYNLOAD = f"{LIBRARY}/lib-dynload"
PACKAGES = f"{LIBRARY}/dist-packages"
# The interpreter itself; what is called `python` is a script that starts the loader with it.
PROGRAM, LOADER, LIBRARIES = "lib/python", "lib/ld.so", "lib"

_LIBRARY_OF_C = re.compile(
    r"(libc|libm|libdl|libpthread|librt|libutil|libresolv|libnss_[a-z]+)\.so\.\d+"
)
# What cannot be compiled by itself, because others read it as a text, or never do.
_COMPILE = r"""
import importlib.util, json, marshal, os, sys
flags = {"hashed": 1, "plain": 0}[sys.argv[2]]
for name, target in json.loads(sys.stdin.read()):
    with open(os.path.join(sys.argv[1], name), "rb") as file:
        source = file.read()
    code = compile(source, name, "exec", dont_inherit=True)
    hashed = importlib.util.source_hash(source) if flags else bytes(8)
    data = importlib.util.MAGIC_NUMBER + flags.to_bytes(4, "little") + hashed + marshal.dumps(code)
    os.makedirs(os.path.dirname(os.path.join(sys.argv[1], target)), exist_ok=True)
    with open(os.path.join(sys.argv[1], target), "wb") as file:
        file.write(data)
"""


def build_interpreter(arch: Arch, folder: Path) -> None:
    """Lay out the travelling Python: its standard library as bytecode, without packages."""
    if arch == own_arch():
        shutil.copytree(host_interpreter(), folder, dirs_exist_ok=True)
    else:
        copy_sources(arch, folder)
    root = folder / LIBRARY
    names = [str(path.relative_to(folder)) for path in sorted(root.rglob("*.py"))]
    compile_modules(folder, [(name, f"{name}c") for name in names], "plain")
    for name in names:
        (folder / name).unlink()


def copy_sources(arch: Arch, folder: Path) -> None:
    """Lay out the travelling Python with its standard library as sources."""
    packages = locked_packages(arch, PYTHON)
    fetch_packages(packages)
    for package in packages:
        for name, content in read_package(package):
            target = _place_of(name, package, arch)
            if target is not None and isinstance(content, bytes):
                _write_file(folder / target, content)


def _write_file(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent.name == LIBRARIES and ".so." in path.name:
        # Libraries lie flat, each under the name by which programs ask for it.
        path = path.with_name(_read_dynamic(content, "DT_SONAME")[0])
    path.write_bytes(content)
    path.chmod(0o755 if content[:4] == b"\x7fELF" else 0o644)


def _place_of(name: str, package: Package, arch: Arch) -> str | None:
    """Give where a file of a package belongs, None where it stays away."""
    folder, _, base = name.rpartition("/")
    if name == "usr/bin/python3.11":
        return PROGRAM
    if name.startswith(f"usr/{DYNLOAD}/"):
        return None if is_left_out(EXTENSIONS, base) else f"{DYNLOAD}/{base}"
    if name.startswith(f"usr/{LIBRARY}/"):
        inner = name.removeprefix(f"usr/{LIBRARY}/")
        return None if is_left_out(STDLIB, inner) else f"{LIBRARY}/{inner}"
    if package.name == "libc6" and re.fullmatch(r"ld-linux-.*\.so\.\d", base):
        return LOADER if folder == f"lib/{arch.triplet}" else None
    if folder not in (f"lib/{arch.triplet}", f"usr/lib/{arch.triplet}") or ".so" not in base:
        return None
    if package.name == "libc6" and not _LIBRARY_OF_C.fullmatch(base):
        return None
    if base.startswith("libexpatw"):
        return None
    return f"{LIBRARIES}/{base}"


def python_command(folder: Path) -> list[str]:
    """Give the words that start the Python of a folder of this machine's architecture."""
    start = [f"{folder}/{LOADER}", "--library-path", f"{folder}/{LIBRARIES}"]
    return [
        *start,
        "--argv0",
        f"{folder}/bin/python",
        f"{folder}/{PROGRAM}",
        "-I",
        "-B",
        "-X",
        "utf8",
    ]


def compile_modules(folder: Path, names: Iterable[tuple[str, str]], kind: str) -> None:
    """Let the travelling Python compile modules: each a source and its target below the folder.

    ``kind``: ``plain``, or ``hashed``: the source stays beside it, and Python does not check it for
    changes.
    """
    argv = [*python_command(host_interpreter()), "-S", "-c", _COMPILE, str(folder), kind]
    run_program(argv, input=json.dumps(list(names)))


def host_interpreter() -> Path:
    """Give the travelling Python of this machine, as sources; it is laid out once."""
    arch = own_arch()
    packages = "\n".join(map(str, locked_packages(arch, PYTHON)))
    sources = (Path(__file__), Path(__file__).with_name("left_out.py"))
    key = key_of(packages, *(path.read_text(encoding="utf-8") for path in sources))
    folder = BUILD / "interpreter" / f"{arch}-{key}"
    if not folder.exists():
        fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
        copy_sources(arch, fresh)
        if folder.exists():
            shutil.rmtree(fresh)
        else:
            fresh.rename(folder)
    return folder


def check_needs(folder: Path) -> None:
    """Check that no program or library here needs one from elsewhere. Raises ReleaseError."""
    lacking = [
        f"{path.relative_to(folder)} needs {name}"
        for path in _list_programs(folder)
        for name in needed_libraries(path)
        if not (folder / LIBRARIES / name).exists() and not name.startswith("ld-linux")
    ]
    if lacking:
        raise ReleaseError(f"the travelling Python is not whole: {'; '.join(lacking)}")


def _list_programs(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (".so" in path.name or path == folder / PROGRAM):
            yield path


def needed_libraries(path: Path) -> list[str]:
    """List the libraries that a program or library names as needed."""
    return _read_dynamic(path.read_bytes(), "DT_NEEDED")


def _read_dynamic(content: bytes, tag: str) -> list[str]:
    """Give the values of one kind of entry for the loader."""
    every = ELFFile(io.BytesIO(content)).iter_segments()
    segments = [one for one in every if isinstance(one, DynamicSegment)]
    attribute = tag.removeprefix("DT_").lower()
    return [getattr(one, attribute) for part in segments for one in part.iter_tags(tag)]


def without_symbols(content: bytes) -> bytes:
    """Give a program without what only debuggers read: all behind the last part that is loaded."""
    elf = ELFFile(io.BytesIO(content))
    end = max(one["p_offset"] + one["p_filesz"] for one in elf.iter_segments())
    # No table of sections: its offset (8 bytes at 40), its size and the index of its names.
    return content[:40] + bytes(8) + content[48:60] + bytes(4) + content[64:end]
