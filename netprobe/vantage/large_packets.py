"""Why a start stays silent although the host is there: its way may carry small packets only.

Where larger ones vanish without a word, a connection opens and then hangs: ssh in its exchange of
keys, or later, with the agent's program. So the login is tried once more with few algorithms, whose
names make small packets, and lines of two sizes are sent each way.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from netprobe.vantage.process import AgentProcess

BEGIN_LINE: Final = b"NETPROBE-LINES"
SMALL, LARGE = 100, 4000
# How long a login and an answer may take: TCP has sent again what got lost several times by then.
ANSWER_S = 10.0
END_S = 0.2
READ_BYTES = 4096
MOST_BYTES = 1 << 20

# POSIX sh in one line, as `vantage.script` has it: it tells the length of each line, and gives a
# long line where it is asked for one.
LINES_SCRIPT: Final = (
    f"echo {BEGIN_LINE.decode()}; while read -r x; do case $x in "
    f"long) printf %{LARGE}d 0; echo; echo was long;; *) echo has ${{#x}};; esac; done"
)

# Where large packets vanish: on the way to the host, or back.
Hole = Literal["there", "back"]


class AskedLine(NamedTuple):
    """A line to send, what answers it, and what it means where that does not come."""

    sent: bytes
    answer: bytes
    hole: Hole | None


LINES: Final = (
    AskedLine(b"x" * SMALL, b"has %d" % SMALL, None),
    AskedLine(b"x" * LARGE, b"has %d" % LARGE, "there"),
    AskedLine(b"long", b"was long", "back"),
)


async def find_hole(argv: Sequence[str], answer_s: float = ANSWER_S) -> Hole | None:
    """Find the way on which only small packets get through; None: none was found.

    ``argv`` carries out the script of this module on the host.
    """
    try:
        process = await AgentProcess.spawn(argv)
    except OSError:
        return None
    try:
        talk = _LineTalk(process, answer_s)
        if not await talk.hears(BEGIN_LINE):
            return None
        for line in LINES:
            process.stdin.write(line.sent + b"\n")
            if not await talk.hears(line.answer):
                return line.hole
        return None
    except EOFError:
        return None  # the host has hung up: no packet was lost
    finally:
        await process.end(END_S)


def word_hole(hole: Hole, target: str) -> str:
    """Word what was found, and how to see it; ``target`` is what ssh was to reach."""
    direction = "to it" if hole == "there" else "from it"
    return (
        f"with small packets the login works, and lines of {SMALL} bytes get through, but none of "
        f"{LARGE:,} bytes {direction}: large packets vanish on the way; {_word_ping(target)}"
    )


class _LineTalk:
    """What the script has answered so far."""

    def __init__(self, process: AgentProcess, answer_s: float) -> None:
        self._process = process
        self._answer_s = answer_s
        self._heard = b""

    async def hears(self, word: bytes) -> bool:
        """Tell whether a word comes in time. Raises EOFError where the command ends."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._answer_s):
                while word + b"\n" not in self._heard:
                    data = await self._process.stdout.read(READ_BYTES)
                    if not data or len(self._heard) > MOST_BYTES:
                        raise EOFError
                    self._heard += data
                return True
        return False


# linux/in.h, linux/in6.h: numbers that the socket module does not name.
IP_MTU, IPV6_MTU = 14, 24
USUAL_MTU = 1500
# What ping adds to the bytes that it is asked for: headers of IP and ICMP.
_PING_HEADERS = {socket.AF_INET: 28, socket.AF_INET6: 48}
# Every network carries that much.
_LEAST = {socket.AF_INET: 548, socket.AF_INET6: 1232}


def _word_ping(host: str) -> str:
    """Word the two commands that show the hole, by the MTU of this machine's way there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    large = _find_mtu(host, family) - _PING_HEADERS[family]
    return (
        f"`ping -M do -s {large} {host}` gets no answer, and `ping -M do -s {_LEAST[family]} "
        f"{host}` does"
    )


def _find_mtu(host: str, family: socket.AddressFamily) -> int:
    six = family == socket.AF_INET6
    level, option = (socket.IPPROTO_IPV6, IPV6_MTU) if six else (socket.IPPROTO_IP, IP_MTU)
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect((host, 9))
        return sock.getsockopt(level, option)
    return USUAL_MTU
