"""Sockets of a host against the registry: facts for the table, and words for its findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_address

from msgspec import Struct

from netprobe.audit.registry import Registry, RegistryRow
from netprobe.audit.sightings import INIT, HostView
from netprobe.audit.table import Bound, Entry, Meant, OwnerWord, PortFacts, rules_for
from netprobe.model.audit import AuditedPort, AuditFinding, HostSocket, SocketHolder
from netprobe.model.ports import normalise
from netprobe.model.ports import text as ports_text

_WILDCARDS = ("0.0.0.0", "::")


class PortSockets(Struct, frozen=True):
    """All sockets of a host on one port of a protocol, and the rows for this host."""

    protocol: str
    port: int
    sockets: tuple[HostSocket, ...]
    rows: tuple[RegistryRow, ...]

    @property
    def name(self) -> str:
        """The port as sentences say it."""
        return f"{self.protocol} {self.port}"

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses that are bound, each once."""
        return tuple(dict.fromkeys(one.address for one in self.sockets))

    @property
    def holders(self) -> tuple[SocketHolder, ...]:
        """One process for each owner: a program in one unit or pod is one owner."""
        found = {_identify_holder(o.holder): o.holder for o in reversed(self.sockets) if o.holder}
        return tuple(sorted(found.values(), key=lambda one: (one.pid, one.process)))

    def audited(self) -> AuditedPort:
        """Give it for the report."""
        rows = tuple(row.name for row in self.rows)
        return AuditedPort(self.protocol, self.port, self.addresses, self.holders, rows)


def ports_of(view: HostView, registry: Registry) -> tuple[PortSockets, ...]:
    """Give the listening ports of a host by protocol and number."""
    found: dict[tuple[str, int], list[HostSocket]] = {}
    for one in view.sockets:
        found.setdefault((one.protocol, one.port), []).append(one)
    return tuple(
        PortSockets(*key, tuple(sockets), registry.rows_of(*key, here=True))
        for key, sockets in sorted(found.items())
    )


def find_violations(
    view: HostView, registry: Registry, ports: Sequence[PortSockets]
) -> Iterator[AuditFinding]:
    """Hold every listening port against the registry."""
    for one in ports:
        facts = facts_of(one, view, registry)
        words = _make_words(one, registry)
        for rule in rules_for(facts):
            yield AuditFinding(
                rule.kind, rule.weight, view.name, one.protocol, one.port,
                rule.because.format(**words), rule.remedy.format(**words),
                one.addresses, one.holders, tuple(row.name for row in _rows_meant(one, registry)),
            )  # fmt: skip


def facts_of(one: PortSockets, view: HostView, registry: Registry) -> PortFacts:
    """Give the columns of the table for a port."""
    wanted: Meant = "unsaid"
    if one.rows:
        wanted = "local" if all(row.local for row in one.rows) else "others"
    bound: Bound = "loopback" if all(map(is_loopback, one.addresses)) else "open"
    inside = registry.is_in_range(one.protocol, one.port)
    return PortFacts(
        _find_entry(one, view, registry),
        _find_owner(one),
        wanted,
        bound,
        "undocumented" if not registry.ranges else "in" if inside else "out",
        "several" if len(one.holders) > 1 and not _is_shared(one) else "one",
    )


def is_client(one: PortSockets, view: HostView, registry: Registry) -> bool:
    """Tell whether the port is one that the kernel gave to a UDP client."""
    return _find_entry(one, view, registry) == "client"


def _find_entry(one: PortSockets, view: HostView, registry: Registry) -> Entry:
    if one.rows:
        return "here"
    if registry.given_up(one.protocol, one.port) is not None:
        return "retired"
    first, last = view.client_ports
    if one.protocol == "udp" and first <= one.port <= last:
        return "client"
    return "elsewhere" if registry.rows_of(one.protocol, one.port, here=False) else "none"


def _find_owner(one: PortSockets) -> OwnerWord:
    """Every socket must belong to a process that a row names; one that names nobody takes all."""
    if not one.rows or any(not row.names for row in one.rows):
        return "anybody"
    words = {_judge_holder(o.holder, one.rows) for o in one.sockets}
    order: tuple[OwnerWord, ...] = ("other", "unseen", "waiting", "named")
    return next(word for word in order if word in words)


def _judge_holder(holder: SocketHolder | None, rows: Sequence[RegistryRow]) -> OwnerWord:
    if holder is None:
        return "unseen"
    if any(row.allows(holder) for row in rows):
        return "named"
    is_systemd = holder.pid == INIT and "systemd" in (holder.process, holder.program)
    return "waiting" if is_systemd else "other"


def _is_shared(one: PortSockets) -> bool:
    """Tell whether rows name every owner, and no two of them are on one address."""
    named = [row for row in one.rows if row.names]
    by_address: dict[str, set[tuple[str | None, ...]]] = {}
    for socket in one.sockets:
        if socket.holder is None or not any(row.allows(socket.holder) for row in named):
            return False
        by_address.setdefault(socket.address, set()).add(_identify_holder(socket.holder))
    several = any(len(owners) > 1 for owners in by_address.values())
    return not several and by_address.keys().isdisjoint(_WILDCARDS)


def _rows_meant(one: PortSockets, registry: Registry) -> tuple[RegistryRow, ...]:
    return one.rows or registry.rows_of(one.protocol, one.port, here=False)


def _make_words(one: PortSockets, registry: Registry) -> dict[str, str]:
    rows = _rows_meant(one, registry)
    names = dict.fromkeys(name for row in rows for name in row.names)
    strangers = [
        holder for holder in one.holders if not any(row.allows(holder) for row in one.rows)
    ]
    return {
        "port": one.name,
        "who": ", ".join(map(word_holder, strangers or one.holders)) or "a process that is hidden",
        "holders": "; ".join(map(word_holder, one.holders)),
        "where": word_addresses(one),
        "matrices": " or ".join(registry.matrices),
        "rows": ", ".join(row.name for row in rows),
        "names": " or ".join(names) or "somebody",
        "elsewhere": "; ".join(f"{row.name}: {row.why_not}" for row in rows),
        "purpose": registry.given_up(one.protocol, one.port) or "",
        "ranges": word_ranges(registry, one.protocol),
    }


def word_ranges(registry: Registry, protocol: str) -> str:
    """Word the documented ranges of a protocol: ``tcp 9000-9999``."""
    found = [ports for one in registry.ranges for name, ports in one.wires if name == protocol]
    return f"{protocol} {ports_text(normalise(found))}" if found else f"none for {protocol}"


def word_addresses(one: PortSockets) -> str:
    """Word where a port is bound."""
    words = [
        "all addresses" if text in _WILDCARDS else f"[{text}]" if ":" in text else text
        for text in one.addresses
    ]
    return f"{one.name} of {', '.join(dict.fromkeys(words))}"


def word_holder(holder: SocketHolder) -> str:
    """Word a process: ``kubelet (pid 812, kubelet.service)``."""
    if not holder.pid:
        return f"the {holder.name}"
    parts = (f"pid {holder.pid}", holder.home)
    return f"{holder.name} ({', '.join(part for part in parts if part)})"


def is_loopback(address: str) -> bool:
    """Tell whether an address can be reached from its own host only."""
    return ip_address(address).is_loopback


def _identify_holder(holder: SocketHolder) -> tuple[str | None, ...]:
    """A pod is one owner, whatever runs in it; else it is the program in its unit."""
    if holder.pod is not None:
        return (holder.pod,)
    return (holder.program, holder.process, holder.unit, holder.container)
