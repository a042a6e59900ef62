"""The matrices as a registry of ports: for each host the rows, the ranges, the ports given up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from netprobe.model.audit import SocketHolder
from netprobe.model.inventory import Inventory
from netprobe.model.matrix import ChosenMatrix, DocumentedPorts, PortEntry, Requirement, SettingRef
from netprobe.model.ports import PortRange
from netprobe.plan.conditions import holds, why_not
from netprobe.plan.expand import roles_by_host

# The kernel keeps so much of the name of a process (TASK_COMM_LEN, less the NUL).
COMM_LENGTH = 15

WirePorts = tuple[str, PortRange]


class RegistryRow(Struct, frozen=True):
    """A requirement of a matrix, read as the registry entry of its ports.

    ``why_not`` says why the requirement does not count for this host; None: it counts.
    """

    name: str
    purpose: str
    wires: tuple[WirePorts, ...]
    names: tuple[str, ...]
    local: bool
    why_not: str | None = None

    def has(self, protocol: str, port: int) -> bool:
        """Tell whether the row has this port."""
        return _is_among(self.wires, protocol, port)

    def allows(self, holder: SocketHolder) -> bool:
        """Tell whether the row names this process; ``_`` is ``-``, and ``*`` is any text."""
        known = [_fold_name(word) for word in (holder.program, holder.process) if word]
        return any(
            fnmatchcase(word, _fold_name(name)) or word == _fold_name(name[:COMM_LENGTH])
            for name in self.names
            for word in known
        )


class SetApart(Struct, frozen=True):
    """Ports of a documented range, or ports that were given up."""

    wires: tuple[WirePorts, ...]
    purpose: str


class Registry(Struct, frozen=True):
    """What the matrices say about the ports of one host."""

    matrices: tuple[str, ...]
    roles: tuple[str, ...]
    rows: tuple[RegistryRow, ...]
    ranges: tuple[SetApart, ...]
    retired: tuple[SetApart, ...]

    def rows_of(self, protocol: str, port: int, *, here: bool) -> tuple[RegistryRow, ...]:
        """Give the rows of a port: those for this host, or those for others only."""
        found = (row for row in self.rows if row.has(protocol, port))
        return tuple(row for row in found if (row.why_not is None) == here)

    def given_up(self, protocol: str, port: int) -> str | None:
        """Give the words about a port that was given up; None where it was not."""
        return next((o.purpose for o in self.retired if _is_among(o.wires, protocol, port)), None)

    def is_in_range(self, protocol: str, port: int) -> bool:
        """Tell whether a documented range has the port, or nothing is documented at all."""
        return not self.ranges or any(_is_among(o.wires, protocol, port) for o in self.ranges)


def registries(chosen: Sequence[ChosenMatrix], inventory: Inventory) -> dict[str, Registry]:
    """Give what the matrices say for each host that has a role of theirs, in inventory order."""
    found: dict[str, Registry] = {}
    roles = [(one, roles_by_host(one.matrix, inventory)) for one in chosen]
    ranges = tuple(_set_apart((one, group) for one in chosen for group in one.matrix.ranges))
    retired = tuple(_set_apart((one, group) for one in chosen for group in one.matrix.retired))
    several = len(chosen) > 1
    for host in inventory.hosts:
        mine = tuple(dict.fromkeys(role for _, by_host in roles for role in by_host[host.name]))
        rows = tuple(
            _make_row(one, requirement, by_host[host.name], several)
            for one, by_host in roles
            for requirement in one.matrix.requirements
            if requirement.tcp or requirement.udp
        )
        if mine:
            names = tuple(one.matrix.name for one in chosen)
            found[host.name] = Registry(names, mine, rows, ranges, retired)
    return found


def _make_row(
    one: ChosenMatrix, requirement: Requirement, roles: Sequence[str], several: bool
) -> RegistryRow:
    reason = why_not(requirement, one)
    if reason is None and not set(roles).intersection(requirement.destinations):
        reason = f"only for {' or '.join(requirement.destinations)}"
    return RegistryRow(
        f"{one.matrix.name}:{requirement.id}" if several else requirement.id,
        requirement.purpose,
        tuple(wires_of(requirement, one)),
        (*requirement.process, *requirement.owner),
        requirement.expect == "denied",
        reason,
    )


def _set_apart(groups: Iterable[tuple[ChosenMatrix, DocumentedPorts]]) -> Iterable[SetApart]:
    for one, group in groups:
        if holds(group.when, one):
            yield SetApart(tuple(wires_of(group, one)), group.purpose)


def wires_of(rows: Requirement | DocumentedPorts, chosen: ChosenMatrix) -> Iterable[WirePorts]:
    """Give the protocols and port ranges, settings filled in."""
    listed: Mapping[str, tuple[PortEntry, ...]] = {"tcp": rows.tcp, "udp": rows.udp}
    for protocol, entries in listed.items():
        for entry in entries:
            if isinstance(entry, SettingRef):
                port = chosen.settings[entry.setting]
                assert isinstance(port, int)
                yield protocol, (port, port)
            else:
                yield protocol, entry


def _is_among(wires: Iterable[WirePorts], protocol: str, port: int) -> bool:
    return any(name == protocol and first <= port <= last for name, (first, last) in wires)


def _fold_name(name: str) -> str:
    return name.replace("_", "-")
