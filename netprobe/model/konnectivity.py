"""The result of ``diagnose konnectivity``: one diagnosis a worker, and the causes they share.

Events of a stream that an agent opened: how it opened, what came, and when. No judgement.

Times are the agent's own, in milliseconds: since the stream opened, since it last sent a byte, and
since it last received one (None where that never happened). ``tcp`` are numbers of TCP_INFO.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct, field

from netprobe.agent.wire.parts import IcmpFact
from netprobe.model.story import Facts, Step

# ``timeout``: nothing came in the time that was given; the stream lives on, unless ``failure`` says
# that the kernel gave up. ``failed``: any other errno, which ``failure`` names.
EventKind = Literal["data", "fin", "reset", "timeout", "failed"]

# In the order in which they are looked at; the columns of the table over several workers.
STAGES = (
    "clock", "names", "route", "tcp", "proxy", "tls-small", "tls-agent-size", "mtu", "identity",
    "control-sni", "http2", "fan-out", "hold",
)  # fmt: skip
# Those that each address of the server has for itself.
ADDRESS_STAGES = STAGES[2:]

# ``fault``: the tunnel cannot come up, or not reliably; ``unsure``: the evidence allows more.
TunnelOutcome = Literal["ok", "fault", "unsure", "not-tested"]
# The part that has the fault. ``credentials``, ``certificate`` and ``clock`` are not faults of the
# network.
FaultKind = Literal[
    "none", "names", "routing", "loss", "firewall", "mtu", "inspection", "proxy", "edge", "server",
    "certificate", "credentials", "clock", "request",
]  # fmt: skip
# The place where a fault is. Two where nothing that was seen tells them apart.
TunnelPlace = Literal[
    "worker", "name service", "path", "destination", "proxy", "load balancer", "server",
    "path or destination", "path or load balancer", "load balancer or server",
]  # fmt: skip


class Opened(Struct, frozen=True):
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


class Event(Struct, frozen=True):
    """One thing that happened on a stream.

    ``soft`` names an errno that ended nothing: the kernel heard an ICMP error about the open
    connection. ``icmp`` is that error where the kernel said which (it does while connecting only).
    """

    kind: EventKind
    data: bytes = b""
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


class ResolvedName(NamedTuple):
    """The name that a worker asked for, and the addresses that it got."""

    host: str
    addresses: tuple[str, ...]


class Diagnosis(Struct, frozen=True):
    """One worker's verdict. ``stage`` is the first that failed, None where none did.

    ``because`` is the evidence in a sentence, ``title`` the cause without this worker's numbers,
    so that workers with one cause share it; ``fine`` lists what is proven to work, ``open`` what
    this run could not prove; ``logs`` is the line that konnectivity-agent logs about it, "" where
    nobody saw one. ``warnings`` are faults that do not stop the agent. ``flow``: the address and
    the port that were silent, None where somebody answered; ``explain`` are the words that look
    further into that. ``skew_s``: how far the worker's clock is ahead of ours.
    """

    worker: str
    code: str
    outcome: TunnelOutcome
    kind: FaultKind
    stage: str | None
    title: str
    because: str
    remedy: str
    logs: str = ""
    where: TunnelPlace | None = None
    warnings: tuple[str, ...] = ()
    flow: tuple[str, str] | None = None
    explain: str = ""
    via: str = "direct"
    skew_s: float | None = None
    resolved: ResolvedName | None = None
    evidence: Facts = field(default_factory=dict)
    fine: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    stages: tuple[Step, ...] = ()


class CommonCause(Struct, frozen=True):
    """Workers that share one cause, of how many."""

    code: str
    outcome: TunnelOutcome
    where: TunnelPlace | None
    title: str
    remedy: str
    workers: tuple[str, ...]
    total: int


class TunnelReport(Struct, frozen=True):
    """A whole run of ``diagnose konnectivity``. ``notes`` compare the workers with each other."""

    server: str
    port: int
    publishing: str
    flavour: str | None
    hostname: str | None
    started_at: str
    elapsed_s: float
    diagnoses: tuple[Diagnosis, ...]
    causes: tuple[CommonCause, ...]
    notes: tuple[str, ...] = ()
    interrupted: bool = False
