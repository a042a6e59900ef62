"""Jump hosts for files of a release: roots with busybox alone, and the file of this checkout."""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from release.onefile import build_onefile, fingerprint, put_head
from release.payload import pack_part, sum_line
from release.places import BUILD, VERSION, Arch, ReleaseError, own_arch
from tests.needs import skip
from tests.patience import PATIENCE_S
from tests.vantage.runtime.support import BusyboxRoot

FILE = "/jump dir/netprobe.run"
CACHE = "root/.cache/netprobe"
# Stands for Python and netprobe where only the shell text is asked: it does what that text wants of
# its Python, and knows one command; of others it says the words.
_STAND_IN = f"""#!/bin/sh
while [ "$1" != utf8 ] && [ "$1" != -S ]; do shift; done
case $* in
*join.py*) ;;
*os.rename*) while [ $# -gt 2 ]; do shift; done; mv -n -T "$1" "$2" ;;
*--version) echo netprobe {VERSION} ;;
*) shift; echo "$@"; exit 77 ;;
esac
"""


class Ended(NamedTuple):
    """How a start of the file ended."""

    status: int
    stdout: str
    stderr: str


def onefile_of(arch: Arch) -> Path:
    """The file of this checkout, built once for all tests; skips the test that has none."""
    folder = BUILD / "tested"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{arch}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = folder / f"{fingerprint()}-{arch}.run"
        if not path.exists():
            try:
                data = build_onefile(arch)
            except ReleaseError as error:
                skip(
                    f"the file for {arch} cannot be built: {error}", "Debian's packages, or build/"
                )
            for old in folder.glob(f"*-{arch}.run"):
                old.unlink()
            path.write_bytes(data)
            path.chmod(0o755)
    return path


def make_small_file(folder: Path) -> Path:
    """Make a file of the same shell text with a stand-in for all that it brings: it takes no time
    to build."""
    tree = folder / "tree"
    loader = tree / "lib/ld.so"
    loader.parent.mkdir(parents=True)
    loader.write_text(_STAND_IN)
    loader.chmod(0o755)
    (tree / "SHA256SUMS").write_text(sum_line(loader, tree) + "\n")
    (tree / "NAMES").write_text("NAMES\nSHA256SUMS\nlib\nlib/ld.so\n")
    part = pack_part(tree, is_last=True)
    path = folder / "small.run"
    path.write_bytes(put_head(own_arch(), part.packed, part.unpacked_bytes))
    return path


class JumpHost(BusyboxRoot):
    """A machine with busybox and the file alone; in folders of ``places`` tmpfs of ``options`` are
    mounted."""

    def __init__(
        self,
        onefile: Path | bytes,
        options: str = "mode=0755",
        places: Sequence[str] = ("/run",),
        within: Sequence[str] = (),
    ) -> None:
        super().__init__(options, places, within)
        if "/dev/shm" not in places:
            # That of this machine is no part of the other one.
            mount = ["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", f"{self.folder}/dev/shm"]
            subprocess.run(["nsenter", "-t", self.enter[2], "-m", *mount], check=True)
        self.folder.chmod(0o755)
        data = onefile if isinstance(onefile, bytes) else onefile.read_bytes()
        path = self.folder / FILE.lstrip("/")
        path.parent.mkdir()
        path.write_bytes(data)
        path.chmod(0o755)

    @property
    def inside(self) -> Path:
        """Its root, with what is mounted there."""
        return Path(f"/proc/{self.enter[2]}/root")

    def command(
        self, *words: str, env: Mapping[str, str] | None = None, user: int = 0
    ) -> list[str]:
        """The words that run a command there as a user, with this environment alone."""
        given = {"PATH": "/bin", "HOME": "/root"} if env is None else dict(env)
        pid = self.enter[2]
        start = ["nsenter", "-t", pid, "-m", "-n", f"-r/proc/{pid}/root", "-w/proc/self/root"]
        pairs = [f"{key}={value}" for key, value in given.items()]
        other = [f"-S{user}", f"-G{user}"] if user else []
        return [*start, *other, "/bin/env", "-i", *pairs, *words]

    def run(
        self, *words: str, env: Mapping[str, str] | None = None, user: int = 0, file: str = FILE
    ) -> Ended:
        """Start the file there with these words."""
        argv = self.command(file, *words, env=env, user=user)
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return Ended(done.returncode, done.stdout, done.stderr)

    def unpacked(self) -> list[str]:
        """Every folder of an unpacked file there, and what is left of one."""
        found = (self.inside.glob(f"{place}/*netprobe*/*") for place in _PLACES)
        return sorted("/" + str(one.relative_to(self.inside)) for each in found for one in each)

    def put(self, name: str, text: str, mode: int = 0o644) -> None:
        """Write a file there."""
        path = self.inside / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)


_PLACES = ("root/.cache", "dev/shm", "run", "tmp", "var/tmp", "home/*/.cache", "home/*")
