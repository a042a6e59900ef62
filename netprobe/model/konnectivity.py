"""The result of ``diagnose konnectivity``: one diagnosis a worker, and the causes they share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from netprobe.model.story import Facts, Step

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


class ResolvedName(NamedTuple):
    """The name that a worker asked for, and the addresses that it got."""

    host: str
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
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


@dataclass(frozen=True, slots=True)
class CommonCause:
    """Workers that share one cause, of how many."""

    code: str
    outcome: TunnelOutcome
    where: TunnelPlace | None
    title: str
    remedy: str
    workers: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True)
class TunnelReport:
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
