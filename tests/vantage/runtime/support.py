"""Hosts without Python: this machine with a PATH of few programs, and roots with busybox only."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from netprobe.model.inventory import Host
from netprobe.vantage.runtime import script as runtime_script
from netprobe.vantage.runtime.build import build_runtime
from netprobe.vantage.runtime.cache import keep_runtime
from netprobe.vantage.runtime.file import Runtime, load_runtime
from netprobe.vantage.runtime.script import FOLDER_PREFIX, PLACES
from tests.vantage.support import command

# What the scripts use of a host.
PROGRAMS = ("sh", "dd", "gzip", "tar", "chmod", "mkdir", "rm", "uname", "id", "setsid")
# A mount table of its own with busybox alone in its root; it lives as long as its process.
_ROOT = """
mount --make-rprivate /
cd {root}
mount --rbind /dev dev && mount --rbind /proc proc && mount -t sysfs netprobe-lab sys
for place in {places}; do mount -t tmpfs -o {options} netprobe-lab .$place; done
exec chroot . sh -c 'echo ready; exec sleep 1000'
"""
# Everywhere that a runtime may go to.
EVERYWHERE = ("/run", "/dev/shm", "/tmp", "/var/lib", "/var/tmp", "/root")


def session_runtime(factory: pytest.TempPathFactory) -> Runtime:
    """The runtime of this Python, built once for all processes that test."""
    base = factory.getbasetemp()
    folder = base.parent if base.name.startswith("popen") else base
    path = folder / "runtime-of-tests.tar.gz"
    with open(folder / "runtime-lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            keep_runtime(build_runtime(), path)
    return load_runtime(str(path))


def lean_host(folder: Path, *, without: str = "", sudo: bool = False) -> Host:
    """This machine with a PATH that has no Python and few other programs."""
    folder.mkdir(exist_ok=True)
    for name in PROGRAMS:
        target = shutil.which(name)
        if name != without and target is not None:
            (folder / name).symlink_to(target)
    return command("env", f"PATH={folder}", sudo=sudo)


def other_machine(folder: Path, machine: str) -> None:
    """Let the lean host in this folder say that it is another machine."""
    (folder / "uname").unlink()
    (folder / "uname").write_text(f"#!/bin/sh\necho {machine}\n")
    (folder / "uname").chmod(0o755)


def take_own_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name the folders of this test's runtimes: others make theirs in the same places."""
    own = f"{FOLDER_PREFIX}{secrets.token_hex(4)}-"
    monkeypatch.setattr(runtime_script, "FOLDER_PREFIX", own)


def leftovers() -> list[str]:
    """Every folder of this test's runtimes that is on this machine now."""
    places = {os.path.expandvars(place) for place in PLACES}
    return [
        str(path)
        for place in places
        if place.startswith("/")
        for path in Path(place).glob(f"{runtime_script.FOLDER_PREFIX}*")
    ]


def has_busybox() -> bool:
    """Whether this machine has a busybox that needs no library."""
    path = shutil.which("busybox")
    if path is None:
        return False
    done = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    return "not a dynamic" in done.stdout + done.stderr


class BusyboxRoot:
    """A machine whose root holds busybox and nothing else, with tmpfs of these options on top.

    ``within`` are words that start it in a network namespace. ``close`` ends and removes it.
    """

    def __init__(
        self,
        options: str = "mode=0755",
        places: Sequence[str] = ("/run",),
        within: Sequence[str] = (),
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="netprobe-root-"))
        for name in (
            "bin",
            "dev",
            "proc",
            "sys",
            "run",
            "tmp",
            "root",
            "etc",
            "var/lib",
            "var/tmp",
        ):
            (self.folder / name).mkdir(parents=True)
        busybox = shutil.which("busybox")
        assert busybox is not None
        shutil.copy(busybox, self.folder / "bin/busybox")
        listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
        for name in set(listed.stdout.split()) - {"busybox"}:
            (self.folder / "bin" / name).symlink_to("busybox")
        text = _ROOT.format(root=self.folder, options=options, places=" ".join(places))
        self._process = subprocess.Popen(
            [*within, "unshare", "-m", "sh", "-ec", text],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    @property
    def enter(self) -> list[str]:
        """The words before a command that make it run there."""
        pid = str(self._process.pid)
        inside = ["nsenter", "-t", pid, "-m", "-n", f"-r/proc/{pid}/root"]
        return [*inside, "env", "-i", "PATH=/bin", "HOME=/root"]

    @property
    def host(self) -> Host:
        """A host of the inventory that is this machine."""
        return command(*self.enter)

    def left(self) -> list[str]:
        """Folders of this test's runtimes that are there now, as the machine itself names them."""
        prefix = runtime_script.FOLDER_PREFIX
        root = Path(f"/proc/{self._process.pid}/root")
        found = (root / place.lstrip("/") for place in EVERYWHERE)
        folders = (one for place in found for one in place.glob(f"{prefix}*"))
        return sorted("/" + str(one.relative_to(root)) for one in folders)

    def close(self) -> None:
        """End it; its mounts go with it."""
        self._process.kill()
        self._process.communicate()
        shutil.rmtree(self.folder)
