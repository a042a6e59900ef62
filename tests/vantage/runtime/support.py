"""Hosts without Python: this machine with a PATH of few programs, and roots with busybox only."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from netprobe.model.inventory import Host
from netprobe.vantage.runtime.build import build_runtime
from netprobe.vantage.runtime.cache import Runtimes, keep_runtime
from netprobe.vantage.runtime.file import Runtime, load_runtime
from netprobe.vantage.runtime.script import FOLDER_PREFIX, PLACES
from tests.vantage.support import command

# What the scripts use of a host.
PROGRAMS = ("sh", "dd", "gzip", "tar", "chmod", "mkdir", "rm", "uname", "id", "setsid")
# Mount table, then the root: what ``{root}`` has is private to the command and its children.
_ENTER = """
mount --make-rprivate /
mount -t tmpfs {options} netprobe-lab {root}/run
mount --rbind /dev {root}/dev && mount --rbind /proc {root}/proc
{more}
exec chroot {root} "$@"
"""


def shared_runtime(folder: Path) -> Runtime:
    """The runtime of this Python, built once for all processes that test."""
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


def leftovers(root: str = "") -> list[str]:
    """Every folder of a runtime that is on this machine, or below a root of it."""
    places = {os.path.expandvars(place) for place in PLACES}
    return [
        str(path)
        for place in places
        if place.startswith("/")
        for path in Path(root + place).glob(f"{FOLDER_PREFIX}*")
    ]


def has_busybox() -> bool:
    """Whether this machine has a busybox that needs no library."""
    path = shutil.which("busybox")
    if path is None:
        return False
    done = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    return "not a dynamic" in done.stdout + done.stderr


class BusyboxRoot:
    """A root folder that holds busybox and nothing else; ``close`` removes it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="netprobe-root-"))
        for name in ("bin", "dev", "proc", "run", "tmp", "root", "etc", "var/lib", "var/tmp"):
            (self.path / name).mkdir(parents=True)
        busybox = shutil.which("busybox")
        assert busybox is not None
        shutil.copy(busybox, self.path / "bin/busybox")
        listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
        for name in set(listed.stdout.split()) - {"busybox"}:
            (self.path / "bin" / name).symlink_to("busybox")

    def words(self, options: str = "", more: str = "") -> list[str]:
        """The command that runs another in this root, with a tmpfs of these options at /run."""
        given = f"-o {options}" if options else ""
        text = _ENTER.format(options=given, root=self.path, more=more)
        return ["env", "PATH=/bin:/usr/bin:/sbin:/usr/sbin", "unshare", "-m", "sh", "-ec", text,
                "enter"]  # fmt: skip

    def host(self, options: str = "", more: str = "") -> Host:
        """A host that is this root."""
        return command(*self.words(options, more))

    def mounted(self, options: str) -> str:
        """Lines that put a tmpfs of these options on every folder that a runtime may go to."""
        named = [place for place in PLACES if place.startswith("/")]
        there = [place for place in named if (self.path / place.lstrip("/")).is_dir()]
        folders = " ".join(shlex.quote(str(self.path) + place) for place in there)
        return (
            f"mkdir -p {self.path}/dev/shm 2>/dev/null || true\n"
            f"for f in {folders} {self.path}/dev/shm {self.path}/root; do "
            f"mount -t tmpfs -o {options} netprobe-lab $f; done"
        )

    def files(self) -> list[str]:
        """Folders of runtimes that are left in the root itself."""
        return leftovers(str(self.path))

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path)


def runtimes(runtime: Runtime) -> Runtimes:
    """What a run knows that was given this one."""
    return Runtimes([runtime])
