"""Where things are built, and what every file of a release is stamped with."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from functools import cache
from pathlib import Path

import netprobe

ROOT = Path(__file__).parents[1]
# Kept between builds, and never committed: with it a build needs no network.
BUILD = ROOT / "build" / "release"
DIST = ROOT / "dist"
VERSION = netprobe.__version__
# Of a tree without git and without SOURCE_DATE_EPOCH: zip files know no earlier time.
_NO_TIME = 315_532_800


class ReleaseError(Exception):
    """Something cannot be built on this machine; the text says why, and what to do."""


class Arch(str):
    """A machine as ``uname -m`` says it, with its other names."""

    __slots__ = ()

    @property
    def debian(self) -> str:
        """As Debian says it."""
        return {"x86_64": "amd64", "aarch64": "arm64"}[self]

    @property
    def triplet(self) -> str:
        """As folders and extension modules of Debian say it."""
        return f"{self}-linux-gnu"


ARCHES = (Arch("x86_64"), Arch("aarch64"))


def own_arch() -> Arch:
    """Give the architecture of this machine. Raises ReleaseError where nothing is built for it."""
    machine = platform.machine()
    if machine not in ARCHES:
        raise ReleaseError(f"this machine is {machine}; a build runs on {' or '.join(ARCHES)}")
    return Arch(machine)


@cache
def source_date() -> int:
    """Give the time of everything that is built: SOURCE_DATE_EPOCH, else that of the commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given:
        return int(given)
    done = subprocess.run(
        ["git", "log", "-1", "--format=%ct"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else _NO_TIME


def key_of(*texts: str) -> str:
    """Give a short name for what is made of these texts, by which it is kept."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def run_program(argv: list[str], **options: object) -> str:
    """Run a program and give what it prints. Raises ReleaseError with its last words."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    except FileNotFoundError:
        raise ReleaseError(f"{argv[0]} is not installed") from None
    if done.returncode:
        words = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise ReleaseError(f"{Path(argv[0]).name}: {words}")
    return str(done.stdout)
