"""The part of a release that is the same for every netprobe: the Python, and its packages."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from release.components import write_licences
from release.debian import PYTHON, locked_packages
from release.interpreter import (
    PACKAGES,
    build_interpreter,
    check_needs,
    compile_modules,
    without_symbols,
)
from release.left_out import WHEELS, is_left_out
from release.payload import list_files
from release.places import BUILD, Arch, key_of
from release.wheels import fetch_wheels, needed_requirements, unpack_wheels

_HERE = Path(__file__).parent
# How the loader starts Python; {0} is the folder of a release, as a shell names it.
START = (
    '"{0}/lib/ld.so" --library-path "{0}/lib" --argv0 "{0}/bin/python" "{0}/lib/python" '
    "-I -B -X utf8"
)
# The sources of netprobe travel, too: it sends its agent as sources.
_WITH_SOURCES = "netprobe/"


def base_folder(arch: Arch) -> Path:
    """Give what is the same for every netprobe: the Python, and its packages. It is kept."""
    pinned = [*map(str, locked_packages(arch, PYTHON)), *needed_requirements().values()]
    pinned += [
        (_HERE / name).read_text(encoding="utf-8")
        for name in ("interpreter.py", "base.py", "left_out.py", "wheels.py")
    ]
    folder = BUILD / "base" / f"{arch}-{key_of(*pinned)}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent))
        lay_out_base(arch, fresh)
        fresh.rename(folder)
    return folder


def lay_out_base(arch: Arch, folder: Path) -> None:
    """Lay out the travelling Python and the packages that netprobe needs."""
    build_interpreter(arch, folder)
    packages = folder / PACKAGES
    unpack_wheels(fetch_wheels(arch), packages)
    for name, path in list(list_files(packages)):
        if path.is_file() and is_left_out(WHEELS, name):
            path.unlink()
        elif path.suffix == ".so":
            path.write_bytes(without_symbols(path.read_bytes()))
    shutil.copyfile(_HERE / "sitecustomize.py", packages / "sitecustomize.py")
    write_licences(arch, folder / "share/doc/netprobe")
    compile_packages(folder, packages)
    check_needs(folder)
    (folder / "bin").mkdir()
    text = (_HERE / "launcher.sh").read_text(encoding="utf-8")
    for name, module in (("python", ""), ("netprobe", "-m netprobe ")):
        words = {"START": START.format("$np_dir"), "MODULE": module}
        (folder / "bin" / name).write_text(fill_in(text, words), encoding="utf-8")
        (folder / "bin" / name).chmod(0o755)


def compile_packages(folder: Path, packages: Path) -> None:
    """Compile the modules of the packages."""
    place = packages.relative_to(folder).as_posix()
    names = [f"{place}/{name}" for name, _ in list_files(packages) if name.endswith(".py")]
    kept = [one for one in names if one.removeprefix(f"{place}/").startswith(_WITH_SOURCES)]
    compile_modules(folder, [(one, _bytecode_beside(one)) for one in kept], "hashed")
    alone = sorted(set(names) - set(kept))
    compile_modules(folder, [(one, f"{one}c") for one in alone], "plain")
    for name in alone:
        (folder / name).unlink()


def _bytecode_beside(source: str) -> str:
    folder, _, name = source.rpartition("/")
    return f"{folder}/__pycache__/{name.removesuffix('.py')}.cpython-311.pyc"


def fill_in(text: str, words: dict[str, str]) -> str:
    """Put words into a text, each for its name between two at signs."""
    for key, value in words.items():
        text = text.replace(f"@{key}@", value)
    return text
