"""Events of a stream that an agent opened: how it opened, what came, and when. No judgement.

Times are the agent's own, in milliseconds: since the stream opened, since it last sent a byte, and
since it last received one (None where that never happened). ``tcp`` are numbers of TCP_INFO.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from netprobe.agent.wire.parts import IcmpFact

# ``timeout``: nothing came in the time that was given; the stream lives on, unless ``failure`` says
# that the kernel gave up. ``failed``: any other errno, which ``failure`` names.
EventKind = Literal["data", "fin", "reset", "timeout", "failed"]


@dataclass(frozen=True, slots=True)
class Opened:
    """How a stream opened; ``failure`` is a name of agent/wire/failures.py, or None.

    ``left`` False: no packet left the host; ``syns`` how many SYNs were sent into silence.
    """

    failure: str | None
    icmp: IcmpFact | None = None
    left: bool | None = None
    syns: int | None = None
    rtt_ms: float | None = None
    elapsed_ms: float = 0.0
    local: str | None = None
    tcp: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened on a stream.

    ``soft`` names an errno that ended nothing: the kernel heard an ICMP error about the open
    connection. ``icmp`` is that error where the kernel said which (it does while connecting only).
    """

    kind: EventKind
    data: bytes = field(default=b"", repr=False)
    elapsed_ms: float = 0.0
    since_sent_ms: float | None = None
    failure: str | None = None
    icmp: IcmpFact | None = None
    soft: str | None = None
    tcp: Mapping[str, int] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.kind in ("fin", "reset", "failed") or self.failure is not None


class IdleClock:
    """Measures idle time by the agent's clock: since when no byte had passed either way."""

    def __init__(self) -> None:
        self.idle_ms = 0.0
        self._heard_ms = 0.0

    def note(self, event: Event) -> None:
        """Take the next event of the stream."""
        sent_ms = event.elapsed_ms - (event.since_sent_ms or 0.0) if event.since_sent_ms else 0.0
        self.idle_ms = event.elapsed_ms - max(self._heard_ms, sent_ms)
        if event.kind == "data":
            self._heard_ms = event.elapsed_ms


class Pipe(typing.Protocol):
    """A byte stream as protocols see it; an agent's stream is one."""

    async def send(self, data: bytes) -> None:
        """Send bytes; waits where too many are on their way."""
        ...

    async def receive(self, limit_s: float) -> Event:
        """Give the next event; ``timeout`` where nothing comes within the limit."""
        ...


class OpenedPipe(Pipe, typing.Protocol):
    """A stream as it was opened; a failure in ``opened`` says that nothing can be sent on it."""

    opened: Opened
