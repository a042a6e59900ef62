"""Run a command where it may build labs: as it is, or as root of a user namespace of its own.

    python tests/lab/userns.py COMMAND...

Where the kernel allows neither, the command runs as it is and its labs skip themselves.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
# There, /run is an empty folder of ours, because ``ip netns`` keeps its files in it, and /etc is a
# copy, because it reads /etc/netns, and because some programs want /etc to be root's.
_PREPARE = """
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/netns /run/etc
cp -a /etc/. /run/etc 2>/run/not-copied || true
mount --bind /run/etc /etc
ip link set lo up
exec "$@"
"""
_TRY = "ip netns add np-$$ && ip netns exec np-$$ nft list ruleset && ip netns delete np-$$"
_MAY_BUILD = ["sh", "-c", _TRY]
_ONLY = "--only-there"
MARK = "NETPROBE_LAB_USERNS"


def command_inside(argv: list[str]) -> list[str]:
    """The command that runs ``argv`` as root of new user, mount and network namespaces."""
    return [sys.executable, __file__, _ONLY, *argv]


def why_not() -> str | None:
    """None where a lab can be built in a user namespace, else the kernel's own words."""
    return _failure_of(command_inside(_MAY_BUILD))


def _failure_of(command: list[str]) -> str | None:
    environment = dict(os.environ) | {"PATH": _path()}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or ["it ended without a reason"])[-1]


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def enter(argv: list[str]) -> None:
    """Become ``argv`` in a user namespace; does not return.

    Raises OSError where the kernel makes none.
    """
    _become_root_of_a_namespace()
    environment = dict(os.environ) | {"PATH": _path(), MARK: "1"}
    os.execvpe("sh", ["sh", "-c", _PREPARE, "sh", *argv], environment)


def _become_root_of_a_namespace() -> None:
    """Let a process that stays outside map the users: only there it may map all of them."""
    reader, writer = os.pipe()
    owner = os.getpid()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(writer)
            if os.read(reader, 1):
                _map_users(owner)
                status = 0
        finally:
            os._exit(status)
    os.close(reader)
    made = ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET)
    problem = ctypes.get_errno()
    with open(writer, "wb") as end:
        end.write(b"" if made else b".")
    mapped = os.waitpid(child, 0)[1] == 0
    if made or not mapped:
        raise OSError(problem, f"user namespace: {os.strerror(problem)}")


def _map_users(owner: int) -> None:
    """All users as they are, where that is allowed (a container's root), else oneself as root."""
    for kind, oneself in (("uid", os.geteuid()), ("gid", os.getegid())):
        mapped = Path(f"/proc/{owner}/{kind}_map")
        try:
            mapped.write_text(_every(kind))
        except OSError:
            if kind == "gid":
                Path(f"/proc/{owner}/setgroups").write_text("deny")
            mapped.write_text(f"0 {oneself} 1\n")


def _every(kind: str) -> str:
    lines = Path(f"/proc/self/{kind}_map").read_text().splitlines()
    ranges = [line.split() for line in lines]
    return "".join(f"{first} {first} {count}\n" for first, _, count in ranges)


def main(argv: list[str]) -> None:
    """Run the command inside where that is needed and possible, else as it is."""
    if argv[0] == _ONLY:
        try:
            enter(argv[1:])
        except OSError as problem:
            raise SystemExit(problem.strerror) from None
    if _failure_of(_MAY_BUILD) is not None:
        reason = why_not()
        if reason is None:
            enter(argv)
        print(f"No user namespace for the labs: {reason}", file=sys.stderr, flush=True)
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main(sys.argv[1:])
