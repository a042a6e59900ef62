"""What a program says of itself on a connection: its banner, else its certificate."""

from __future__ import annotations

from collections.abc import Iterable

from netprobe.model.konnectivity import Pipe
from netprobe.protocols.base import printable
from netprobe.protocols.services.hearing import PATIENCE, ServiceRequest, describe, hear_tls
from netprobe.protocols.services.tls_talk import Patience

# Who greets, does so when it accepts. Who is slower answers the ClientHello with its banner.
BANNER_S = 1.0
# A look that no verdict depends on is short: a program that greets does so at once.
GLANCE_BANNER_S = 0.1
MOST_SHOWN = 80
# Programs that are known by the beginning of their banner (RFC 4253, section 4.2).
_GREETINGS = {"sshd": "SSH-", "dropbear": "SSH-"}
GREETING_PROCESSES = frozenset(_GREETINGS)
_ENDS = {"fin": "it closed the connection", "reset": "it reset the connection"}


async def hear_greeting(pipe: Pipe, host: str, glance_s: float | None) -> str:
    """Give the first line of the banner, else what answers a ClientHello, in one phrase.

    ``glance_s``: no verdict depends on it, and this is how long an answer may take; None: it is
    waited for like every other answer that decides.
    """
    banner_s, patience = BANNER_S, PATIENCE
    if glance_s is not None:
        banner_s, patience = GLANCE_BANNER_S, Patience(glance_s, glance_s, glance_s)
    event = await pipe.receive(banner_s)
    if event.kind == "data":
        first = event.data.split(b"\n")[0].decode("utf-8", "replace")
        return printable(first.strip())[:MOST_SHOWN] or "bytes that are no text"
    if event.over:
        return _ENDS.get(event.kind, "the connection failed")
    heard = await hear_tls(pipe, ServiceRequest(host, path=None), patience)
    if heard.spoke_tls:
        return describe(heard, None)
    return (heard.foreign or "")[:MOST_SHOWN] or "it said nothing"


def is_greeting_of(said: str, processes: Iterable[str]) -> bool:
    """Tell whether one of these programs greets so."""
    starts = (_GREETINGS[name] for name in processes if name in _GREETINGS)
    return any(said.startswith(start) for start in starts)
