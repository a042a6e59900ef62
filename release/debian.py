"""Packages of Debian, pinned by their hashes: CPython, its libraries, and what the image holds."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from release.places import ARCHES, BUILD, Arch, ReleaseError, run_program

LOCK = Path(__file__).with_name("debian.lock")
# What the travelling Python is made of, each with what it brings.
PYTHON = ("libbz2-1.0", "libc6", "libexpat1", "libffi8", "libgcc-s1", "liblzma5",
          "libpython3.11-minimal", "libpython3.11-stdlib", "libsqlite3-0", "libssl3", "libuuid1",
          "python3.11-minimal", "zlib1g")  # fmt: skip
# What the image has beside it: a shell, and ssh with its libraries.
IMAGE = ("busybox-static", "libcom-err2", "libgssapi-krb5-2", "libk5crypto3", "libkeyutils1",
         "libkrb5-3", "libkrb5support0", "libpcre2-8-0", "libselinux1",
         "openssh-client")  # fmt: skip
_DEBS = BUILD / "debs"


class Package(NamedTuple):
    """A line of debian.lock."""

    arch: str
    name: str
    version: str
    sha256: str

    @property
    def path(self) -> Path:
        """Where its file is kept."""
        return _DEBS / f"{self.name}_{self.version.replace(':', '%3a')}_{self.arch}.deb"


def locked_packages(arch: Arch, names: tuple[str, ...] = PYTHON) -> list[Package]:
    """Give the pinned packages of these names for an architecture."""
    lines = LOCK.read_text(encoding="utf-8").splitlines()
    every = [Package(*line.split()) for line in lines if line and not line.startswith("#")]
    found = {one.name: one for one in every if one.arch == arch.debian}
    return [found[name] for name in names]


def fetch_packages(packages: list[Package]) -> None:
    """Get the files that are not kept yet. Raises ReleaseError where one is not to be had."""
    missing = [one for one in packages if not one.path.exists()]
    if not missing:
        return
    _DEBS.mkdir(parents=True, exist_ok=True)
    apt = _Apt(missing[0].arch)
    for one in missing:
        try:
            apt.run("download", f"{one.name}={one.version}", cwd=_DEBS)
        except ReleaseError as error:
            raise ReleaseError(
                f"{one.name} {one.version} ({one.arch}) of release/debian.lock is not to be had "
                f"here ({error}); `make lock-debian` takes what Debian offers today"
            ) from None
        _check_hash(one)


def _check_hash(package: Package) -> None:
    found = hashlib.sha256(package.path.read_bytes()).hexdigest()
    if found != package.sha256:
        package.path.unlink()
        raise ReleaseError(f"{package.path.name}: its SHA-256 is {found}, debian.lock has another")


def read_package(package: Package) -> Iterator[tuple[str, bytes | str]]:
    """Give path and content of every file of a package; of a link the target, as a text."""
    argv = ["dpkg-deb", "--fsys-tarfile", str(package.path)]
    raw = _run_binary(argv)
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            file = tar.extractfile(member) if member.isfile() else None
            if file is not None:
                yield name, file.read()
            elif member.issym():
                yield name, member.linkname


def _run_binary(argv: list[str]) -> bytes:
    try:
        return subprocess.run(argv, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise ReleaseError(f"{argv[0]}: {error}") from None


def write_lock() -> None:
    """Pin what Debian offers today, with the hashes of its signed lists."""
    lines = [
        "# Made by `make lock-debian` from the signed lists of Debian 12: see docs/release.md."
    ]
    for arch in ARCHES:
        apt = _Apt(arch.debian)
        names = sorted({*PYTHON, *IMAGE})
        printed = apt.run("download", "--print-uris", *names)
        found = []
        for line in printed.splitlines():
            match = re.fullmatch(r"'.*' ([^_]+)_(.+)_[^_]+\.deb \d+ SHA256:([0-9a-f]{64})", line)
            if match is None:
                raise ReleaseError(f"apt-get download --print-uris says {line!r}")
            found.append(f"{arch.debian} {match[1]} {match[2].replace('%3a', ':')} {match[3]}")
        lines += sorted(found)
    LOCK.write_text("\n".join(lines) + "\n", encoding="utf-8")


class _Apt:
    """apt-get with lists of its own: the machine's other architectures are left alone."""

    def __init__(self, arch: str) -> None:
        folder = BUILD / "apt" / arch
        for name in ("lists/partial", "archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        config = {
            "Dir::State": folder, "Dir::State::lists": folder / "lists",
            "Dir::State::status": folder / "status", "Dir::Cache": folder,
            "APT::Architecture": arch, "APT::Architectures": arch,
            "Acquire::Languages": "none", "Acquire::Retries": "2", "APT::Sandbox::User": "root",
        }  # fmt: skip
        (folder / "apt.conf").write_text(
            "".join(f'{key} "{value}";\n' for key, value in config.items()), encoding="utf-8"
        )
        self._environment = os.environ | {"APT_CONFIG": str(folder / "apt.conf"), "LC_ALL": "C"}
        self.run("update", "-qq")

    def run(self, *words: str, cwd: Path | None = None) -> str:
        """Run it. Raises ReleaseError."""
        return run_program(["apt-get", "-qq", *words], env=self._environment, cwd=cwd)
