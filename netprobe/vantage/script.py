"""The shell script that finds a Python on the host, and becomes the agent's bootstrap.

It is POSIX sh in one line without exclamation marks or backslashes, so that it survives any login
shell as one single-quoted word.
"""

from __future__ import annotations

from netprobe.agent.wire.frames import NO_PYTHON_LINE, NO_PYTHON_STATUS
from netprobe.vantage.pack import BOOTSTRAP

# Printed before sudo starts: what ends between this line and READY was ended by sudo.
SUDO_LINE = b"NETPROBE-SUDO"

# Stands on stderr before the path of a Python that is of no use, and before its own output.
USELESS_LINE = "NETPROBE-USELESS"

_NEWEST_MINOR = 15
_OLDEST_MINOR = 6
# A python3 that is too old (or a stub that only prints advice) is passed over. It is asked by -V,
# for which it need not start: running a line of code would double what the start of an agent costs.
_NEW_ENOUGH = f"Python?3.[{_OLDEST_MINOR}-9]*|Python?3.[1-9][0-9]*"


def pythons() -> tuple[str, ...]:
    """List where a Python may be, in the order in which they are tried."""
    numbered = (f"python3.{minor}" for minor in range(_NEWEST_MINOR, _OLDEST_MINOR - 1, -1))
    return ("python3", "/usr/libexec/platform-python", *numbered)


def agent_script(sudo: str = "", bootstrap: str = BOOTSTRAP) -> str:
    """Make the script; ``sudo`` is the command that makes it root where it is not root already.

    With sudo nothing on the host dumps a core that a password could be in: not this shell, and not
    sudo and the agent, which inherit its limit.
    """
    become = "s=; b=; "
    if sudo:
        become += (
            f'ulimit -c 0; [ $(id -u) -eq 0 ] || {{ s="{sudo}"; echo {SUDO_LINE.decode()}; }}; '
        )
    return (
        f"{become}"
        f"for p in {' '.join(pythons())}; do "
        "p=$(command -v $p) || continue; v=$($p -I -S -V </dev/null 2>&1); case $v in "
        f"{_NEW_ENOUGH}) "
        'exec $s $p -I -S -c "' + bootstrap + '";; '
        # Of several useless Pythons the first is the one that people mean.
        "*) b=${b:-$p: $v};; esac; done; "
        # Unquoted: what it printed becomes one line.
        f"set -f; echo {USELESS_LINE} $b >&2; "
        # Which Python can be sent depends on the machine.
        f"echo {NO_PYTHON_LINE.decode()} $(uname -m); exit {NO_PYTHON_STATUS}"
    )
