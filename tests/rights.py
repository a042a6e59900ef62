"""What this process may do and which programs it finds: the kernel is asked, never who the user is.

    python -m tests.rights

prints the rights that are missing here, with the kernel's reasons.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.lab import userns
from tests.lab.netlab import NOBODY, Lab, LabError, become_nobody, find_program

_CAPABILITY_VERSION = 0x20080522
_PACKAGES = Path(__file__).parent / "lab" / "packages.sh"


class Right(NamedTuple):
    """A right: ``use`` uses it once and raises OSError or LabError where the kernel refuses."""

    use: Callable[[], None]
    given_by: str
    # Whether the root of a user namespace has it, whoever made the namespace.
    in_namespace: bool = False


class Lack(NamedTuple):
    """Why something cannot be done here, and what would make it possible."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}; needs {self.remedy}"


@functools.cache
def lack_of(need: str) -> Lack | None:
    """What is missing for a right or a program; None where it is there. Asks once a process.

    Raises ValueError for a word that is neither a right nor a program of ``packages.sh``.
    """
    if need in RIGHTS:
        return _lack_of_right(need)
    package = _packages().get(need)
    if package is None:
        raise ValueError(f"{need}: neither a right ({', '.join(RIGHTS)}) nor in {_PACKAGES}")
    if find_program(need) is not None:
        return None
    return Lack(f"{need} is not installed", f"`make lab-packages` as root (Debian: {package})")


def missing_rights() -> list[str]:
    """The rights that this process has not."""
    return [name for name in RIGHTS if lack_of(name) is not None]


@contextlib.contextmanager
def without_rights() -> Iterator[None]:
    """Let this thread act without any capability for a while, as a user without rights would."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    # Effective, permitted and inheritable ones, in two halves.
    before = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    dropped = (ctypes.c_uint32 * 6)(*before)
    dropped[0] = dropped[3] = 0
    assert libc.capset(header, dropped) == 0
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0


def _lack_of_right(name: str) -> Lack | None:
    right = RIGHTS[name]
    try:
        right.use()
    except (OSError, LabError) as problem:
        return Lack(f"no {name} here ({_words_of(problem)})", _remedy(right))
    return None


def _remedy(right: Right) -> str:
    if not right.in_namespace:
        return right.given_by
    if userns.MARK not in os.environ and userns.why_not() is None:
        return "the user namespace that `make test` enters"
    return f"{right.given_by}, or a kernel that allows user namespaces"


def _words_of(problem: OSError | LabError) -> str:
    if isinstance(problem, OSError):
        return os.strerror(problem.errno or errno.EIO)
    # What is in between has names that differ from process to process.
    first = str(problem).partition("\n")[0]
    return f"{re.split('[: ]', first)[0]}: {first.rpartition(': ')[2]}"


@functools.cache
def _packages() -> dict[str, str]:
    pairs: list[tuple[str, str]] = re.findall(
        r"([\w./-]+)=([a-z][a-z0-9.+-]+)", _PACKAGES.read_text(encoding="utf-8")
    )
    return dict(pairs)


def _build_lab() -> None:
    with Lab() as lab:
        lab.namespace("try").nft("table inet try { }")


def _steer_packets() -> None:
    with Lab() as lab:
        queue = "/sys/class/net/lo/queues/rx-0/rps_cpus"
        lab.namespace("try").run("tee", queue, text="1")


def _mount() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with tempfile.TemporaryDirectory() as folder:
        if libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, None) != 0:
            raise OSError(ctypes.get_errno(), "mount")
        libc.umount(folder.encode())


def _open_raw() -> None:
    for family in (socket.AF_INET, socket.AF_INET6):
        socket.socket(family, socket.SOCK_RAW, 253).close()


def _open_packet() -> None:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()


def _open_echo() -> None:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).close()
    except PermissionError:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()


def _open_tunnel_device() -> None:
    os.close(os.open("/dev/net/tun", os.O_RDWR))


def _look_into_process() -> None:
    with subprocess.Popen(["sleep", "60"], user=NOBODY, group=NOBODY, extra_groups=[]) as process:
        try:
            os.readlink(f"/proc/{process.pid}/exe")
        finally:
            process.kill()


def _add_users() -> None:
    become_nobody()
    with tempfile.TemporaryFile(dir="/etc"), Path("/etc/passwd").open("ab"):
        pass


RIGHTS = {
    "namespaces": Right(_build_lab, "root with CAP_SYS_ADMIN and CAP_NET_ADMIN", in_namespace=True),
    "mounts": Right(_mount, "root with CAP_SYS_ADMIN", in_namespace=True),
    "packet steering": Right(_steer_packets, "the machine's own root with CAP_NET_ADMIN"),
    "raw sockets": Right(_open_raw, "root with CAP_NET_RAW", in_namespace=True),
    "echo sockets": Right(_open_echo, "root or net.ipv4.ping_group_range", in_namespace=True),
    "tunnel devices": Right(_open_tunnel_device, "a /dev/net/tun that may be opened"),
    "other users": Right(become_nobody, "root with CAP_SETUID and CAP_SETGID"),
    "processes of others": Right(_look_into_process, "root with CAP_SYS_PTRACE", in_namespace=True),
    "new users": Right(_add_users, "root that may change /etc/passwd"),
}

if __name__ == "__main__":
    for name in missing_rights():
        print(f"{name}: {lack_of(name)}")
