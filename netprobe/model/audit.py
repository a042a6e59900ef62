"""The result of ``audit ports``: who listens where, and what the registry says to it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from netprobe.model.host_key import HostKey
from netprobe.model.matrix import SettingValue

AuditKind = Literal[
    "no-entry", "wrong-owner", "retired", "not-local", "outside-ranges", "two-owners",
    "undeclared", "unregistered", "silent", "unseen-owner", "unlisted-pod", "local-in-range",
]  # fmt: skip
# A violation decides the exit status (1), so does what nobody could see (3); advice does not.
AuditWeight = Literal["violation", "unseen", "advice"]


class SocketHolder(Struct, frozen=True):
    """Who has a socket: the kernel's name of the process, its program file, and where it runs.

    ``process`` is ``kernel`` for the kernel itself (then ``pid`` is 0). ``unit`` is a unit of
    systemd, ``pod`` is ``namespace/name`` or, where no file of pods names it, the pod's uid.
    """

    process: str
    program: str | None = None
    pid: int = 0
    unit: str | None = None
    pod: str | None = None
    container: str | None = None

    @property
    def name(self) -> str:
        """The program, and what it calls itself where that is another name."""
        if not self.program or self.process in self.program:
            return self.program or self.process
        return f"{self.process} ({self.program})"

    @property
    def home(self) -> str | None:
        """Where it runs: its pod, unit or container."""
        return f"pod {self.pod}" if self.pod else self.unit or self.container


class HostSocket(Struct, frozen=True):
    """A socket that listens; ``holder`` is None where nobody could see who has it."""

    protocol: str
    address: str
    port: int
    holder: SocketHolder | None


class AuditedPort(Struct, frozen=True):
    """A listening port of a host: its sockets, and the rows that register it for this host."""

    protocol: str
    port: int
    addresses: tuple[str, ...]
    holders: tuple[SocketHolder, ...]
    rows: tuple[str, ...]


class AuditFinding(Struct, frozen=True):
    """What is wrong with a port of a host. ``rows`` are those of the matrices that speak of it,
    ``pod`` is the pod whose declaration is meant, if one is."""

    kind: AuditKind
    weight: AuditWeight
    host: str
    protocol: str
    port: int
    because: str
    remedy: str
    addresses: tuple[str, ...] = ()
    holders: tuple[SocketHolder, ...] = ()
    rows: tuple[str, ...] = ()
    pod: str | None = None


class AuditedHost(Struct, frozen=True):
    """A host: ``looked-at``, ``failed`` (``words`` say why), or ``none`` where no way leads onto
    it. ``roles`` are those of the matrices; ``host_key``: ssh does not trust its key."""

    name: str
    roles: tuple[str, ...]
    state: Literal["looked-at", "failed", "none"]
    words: str = ""
    ports: tuple[AuditedPort, ...] = ()
    notes: tuple[str, ...] = ()
    host_key: HostKey | None = None


class AuditedMatrix(Struct, frozen=True):
    """A matrix that the sockets were compared with, and its settings."""

    name: str
    settings: dict[str, SettingValue]


class PortAudit(Struct, frozen=True):
    """A whole run of ``audit ports``."""

    started_at: str
    elapsed_s: float
    matrices: tuple[AuditedMatrix, ...]
    hosts: tuple[AuditedHost, ...]
    findings: tuple[AuditFinding, ...]
    notes: tuple[str, ...] = ()

    def of_weight(self, weight: AuditWeight) -> tuple[AuditFinding, ...]:
        """Give the findings of a weight, in their order."""
        return tuple(one for one in self.findings if one.weight == weight)
