"""The packages that netprobe needs: the wheels of requirements.lock, for any platform."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.places import BUILD, ROOT, Arch, ReleaseError, key_of, run_program

LOCK = ROOT / "requirements.lock"
OWN = "netprobe-matrix"
# Each may be older than the last one: pip is given all of them.
_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_24", "manylinux_2_17",
              "manylinux2014", "manylinux_2_12", "manylinux2010", "manylinux_2_5",
              "manylinux1")  # fmt: skip


@cache
def needed_requirements() -> dict[str, str]:
    """Give what netprobe needs, with its extras for tickets: a name, and its entry of the lock.

    Raises ReleaseError where the lock lacks one.
    """
    locked = dict(_read_lock())
    found: dict[str, str] = {}
    waiting = [Requirement(f"{OWN}[xlsx]")]
    while waiting:
        asked = waiting.pop()
        for one in _needs_of(asked):
            name = canonicalize_name(one.name)
            if name not in locked:
                raise ReleaseError(f"requirements.lock has no {name}: run `make lock`")
            if name not in found or one.extras:
                found[name] = locked[name]
                waiting.append(one)
    return dict(sorted(found.items()))


def _read_lock() -> Iterator[tuple[str, str]]:
    """Give name and entry, without its marker, of each package of the lock."""
    text = LOCK.read_text(encoding="utf-8").replace("\\\n", "")
    for line in text.splitlines():
        match = re.match(r"([A-Za-z0-9._-]+)==(\S+)", line)
        if match is not None:
            hashes = " ".join(re.findall(r"--hash=\S+", line))
            yield canonicalize_name(match[1]), f"{match[1]}=={match[2]} {hashes}"


def _needs_of(asked: Requirement) -> Iterator[Requirement]:
    """Give what an installed package needs on Linux under Python 3.11 with the asked extras."""
    target = {"python_version": "3.11", "python_full_version": "3.11.2", "sys_platform": "linux",
              "platform_system": "Linux", "os_name": "posix",
              "platform_python_implementation": "CPython",
              "implementation_name": "cpython"}  # fmt: skip
    for text in requires(asked.name) or ():
        one = Requirement(text)
        extras = asked.extras or {""}
        if one.marker is None or any(one.marker.evaluate({**target, "extra": e}) for e in extras):
            yield one


def fetch_wheels(arch: Arch, python: str = "3.11") -> list[Path]:
    """Get the wheels of everything for a platform and a Python; those that are kept cost nothing.

    Raises ReleaseError.
    """
    text = "".join(f"{entry}\n" for entry in needed_requirements().values())
    folder = BUILD / "wheels" / f"{key_of(text)}-{arch}-{python}"
    if not folder.exists():
        fresh = folder.with_suffix(".new")
        fresh.mkdir(parents=True, exist_ok=True)
        (fresh / "requirements.txt").write_text(text, encoding="utf-8")
        platforms = [word for one in _PLATFORMS for word in ("--platform", f"{one}_{arch}")]
        _run_pip("download", "--dest", str(fresh), "--require-hashes", "--no-deps",
                 "--only-binary", ":all:", "--implementation", "cp", "--python-version", python,
                 *platforms, "-r", str(fresh / "requirements.txt"))  # fmt: skip
        fresh.rename(folder)
    return sorted(folder.glob("*.whl"))


def unpack_wheels(wheels: Iterable[Path], folder: Path) -> None:
    """Unpack wheels into a folder, whatever platform they are for; their scripts stay away."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = [one for one in archive.namelist() if not re.match(r"[^/]+\.data/", one)]
            # It says where and how it was installed.
            archive.extractall(folder, [one for one in names if not one.endswith("/RECORD")])


def _run_pip(verb: str, *words: str) -> None:
    run_program(
        [sys.executable, "-m", "pip", verb, "--quiet", "--disable-pip-version-check", *words]
    )
