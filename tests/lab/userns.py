"""Run a command as root of a user namespace of its own, so that labs work without being root.

    python tests/lab/userns.py COMMAND...

Where the kernel allows no user namespace, the command runs as it is and its labs skip themselves.
"""

from __future__ import annotations

import os
import subprocess
import sys

# There, /run is an empty folder of ours, because ``ip netns`` keeps its files in it.
_PREPARE = 'mount -t tmpfs tmpfs /run && mkdir /run/netns && ip link set lo up && exec "$@"'
_TRY = "ip netns add np-try && ip netns exec np-try nft list ruleset && ip netns delete np-try"
MARK = "NETPROBE_LAB_USERNS"


def command_inside(argv: list[str]) -> list[str]:
    """The command that runs ``argv`` as root of new user, mount and network namespaces."""
    return ["unshare", "-Urnm", "sh", "-c", _PREPARE, "sh", *argv]


def why_not() -> str | None:
    """None where a lab can be built in a user namespace, else the kernel's own words."""
    environment = _environment()
    try:
        done = subprocess.run(
            command_inside(["sh", "-c", _TRY]),
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
    except OSError as problem:
        return str(problem)
    if done.returncode == 0:
        return None
    return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "unshare failed"


def enter(argv: list[str]) -> None:
    """Become ``argv`` in a user namespace; does not return."""
    environment = _environment() | {MARK: "1"}
    command = command_inside(argv)
    os.execvpe(command[0], command, environment)


def _environment() -> dict[str, str]:
    return dict(os.environ) | {"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}


def main(argv: list[str]) -> None:
    """Run the command inside where that is possible, else say why not and run it as it is."""
    reason = why_not()
    if reason is None:
        enter(argv)
    print(f"No user namespace for the labs: {reason}", file=sys.stderr, flush=True)
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main(sys.argv[1:])
