"""Requirements × hosts → blocks of flows, and everything that is skipped, with the reason.

The names that name servers are asked for: settings whose value is a name, and its addresses. Where
the plan asks no name server for them, all sources look them up as their programs do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date

from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.model.inventory import Family, Host, Inventory
from netprobe.model.matrix import (
    DNS_NAME,
    ChosenMatrix,
    Matrix,
    PortEntry,
    Requirement,
    SettingRef,
    Waiver,
    fold_role,
)
from netprobe.model.plan import AnyOf, AskedName, Block, Plan, PlannedMatrix, Skipped
from netprobe.model.ports import Ports
from netprobe.plan.conditions import holds, why_not
from netprobe.plan.families import group_by_families, list_families, speaks_family
from netprobe.plan.idle import note_idle_hosts
from netprobe.plan.merge import merge_blocks
from netprobe.plan.path_mtu import path_mtu_blocks
from netprobe.plan.planned import list_requirements
from netprobe.plan.together import list_contradictions
from netprobe.plan.unable import count_unable, is_needed

WILDCARD = "*."

NAMES_SHOWN = 5
NAMELESS = (
    "without a name the router's own answer cannot be told from the service's, so nothing was "
    "asked: give --set {setting}=NAME"
)
FREE = "nobody has its address yet (`free: true`); --rehearse=segment asks whether that is so"
MULTICAST = (
    "the packets go to the multicast group {group} in truth, and netprobe sends from host to host: "
    "that these get through does not prove that the network carries the group"
)


def list_asked_names(
    requirement: Requirement, chosen: ChosenMatrix, members: Mapping[str, tuple[Host, ...]]
) -> tuple[AskedName, ...]:
    """List the names for a row of name servers; other rows have none.

    Raises RequestError where a setting holds no name.
    """
    if requirement.probe != "dns" or requirement.expect == "denied":
        return ()
    return tuple(_read_names(chosen, members))


def _read_names(
    chosen: ChosenMatrix, members: Mapping[str, tuple[Host, ...]]
) -> Iterator[AskedName]:
    for name, setting in chosen.matrix.settings.items():
        value = chosen.settings[name]
        if setting.resolves_to is None or not isinstance(value, str) or not value:
            continue
        plain = value.rstrip(".")
        if not DNS_NAME.fullmatch(plain.removeprefix(WILDCARD)):
            raise RequestError(f"setting {name}: {value!r} is no DNS name")
        hosts = {host.name: host for role in setting.resolves_to for host in members[role]}
        addresses = [one for host in hosts.values() for one in host.addresses]
        # Which addresses a host has that is given by its own name, nobody says.
        known = all(one.family for one in addresses)
        expected = tuple(dict.fromkeys(one.text for one in addresses)) if known else ()
        yield AskedName(name, plain.lower(), expected)


def make_plan(
    chosen: Sequence[ChosenMatrix],
    inventory: Inventory,
    today: date,
    notes: Sequence[str] = (),
) -> Plan:
    """Plan every requirement of the chosen matrices. ``today`` decides which waivers still hold."""
    blocks: list[Block] = []
    roles: dict[str, dict[str, None]] = {}
    skipped: list[Skipped] = []
    unable: list[Block] = []
    all_notes = list(notes)
    for one in chosen:
        expansion = _Expansion(one, inventory, today)
        items = [item for each in one.matrix.requirements for item in expansion.expand(each)]
        mine = [item for item in items if isinstance(item, Block)]
        skipped += [item for item in items if isinstance(item, Skipped)]
        if not any(block.names for block in mine):
            names = expansion.list_names()
            mine = [replace(block, names=names) if _is_asked(block) else block for block in mine]
        blocks += [*mine, *path_mtu_blocks(mine)]
        unable += (block for each in one.matrix.requirements for block in expansion.unable(each))
        for name, some in roles_by_host(one.matrix, inventory).items():
            roles.setdefault(name, {}).update(dict.fromkeys(some))
        all_notes += expansion.expired_waivers()
        if not mine:
            all_notes += expansion.missing_roles()
    every = [*blocks, *unable]
    all_notes += [*list_contradictions(chosen, every), *note_idle_hosts(roles, every)]
    merged = _merge_and_number(unable)
    return Plan(
        tuple(map(_plan_matrix, chosen)),
        _merge_and_number(blocks),
        count_unable(skipped, merged),
        tuple(all_notes),
        requirements=list_requirements(every),
        unable=merged,
        roles={name: tuple(some) for name, some in roles.items()},
        taken=inventory.taken,
        listed=inventory.hosts,
    )


def _merge_and_number(blocks: Sequence[Block]) -> tuple[Block, ...]:
    merged = merge_blocks(blocks)
    return tuple(replace(block, index=index) for index, block in enumerate(merged))


def _plan_matrix(chosen: ChosenMatrix) -> PlannedMatrix:
    matrix = chosen.matrix
    names = tuple(name for name, one in matrix.settings.items() if one.resolves_to is not None)
    return PlannedMatrix(matrix.name, chosen.settings, matrix.document, names)


def _is_asked(block: Block) -> bool:
    return block.requirement.expect == "allowed"


def hosts_by_role(matrix: Matrix, inventory: Inventory) -> dict[str, tuple[Host, ...]]:
    """For every role of the matrix its hosts, in inventory order; roles may imply others."""
    members: dict[str, list[Host]] = {name: [] for name in matrix.roles}
    roles = roles_by_host(matrix, inventory)
    for host in inventory.hosts:
        for role in roles[host.name]:
            members[role].append(host)
    return {role: tuple(hosts) for role, hosts in members.items()}


def roles_by_host(matrix: Matrix, inventory: Inventory) -> dict[str, tuple[str, ...]]:
    """For every host its roles of the matrix: its own first, then what they imply."""
    words = matrix.role_words()
    return {
        host.name: matrix.with_implied(words.get(fold_role(role), "") for role in host.roles)
        for host in inventory.hosts
    }


class _Expansion:
    """One matrix over one inventory."""

    def __init__(self, chosen: ChosenMatrix, inventory: Inventory, today: date) -> None:
        self._chosen = chosen
        self._matrix = chosen.matrix
        self._members = hosts_by_role(chosen.matrix, inventory)
        self._today = today
        self._closed = {
            host.name: name
            for name, role in self._matrix.roles.items()
            if role.vantage == "none"
            for host in self._members[name]
        }

    def list_names(self) -> tuple[AskedName, ...]:
        """List the names that settings give; none where one of them holds no name."""
        try:
            return tuple(_read_names(self._chosen, self._members))
        except RequestError:
            return ()  # no name server is asked for it

    def expired_waivers(self) -> list[str]:
        """Give a note for every waiver that holds no more."""
        return [
            f"{self._matrix.name}: the waiver of {waiver.requirement} expired on {waiver.until}; "
            f"it decides again ({waiver.reason})"
            for waiver in self._matrix.waivers.values()
            if not self._is_valid_today(waiver)
        ]

    def missing_roles(self) -> list[str]:
        """Give a note on what hosts lack, for a matrix that is left without a flow."""
        asked = [one for one in self._matrix.requirements if why_not(one, self._chosen) is None]
        whole = (one for one in asked if self._role_without_host(one) is None)
        sources = [host for one in whole for host in self._hosts_with_roles(one.sources)]
        if sources and all(host.vantage.kind == "none" for host in sources):
            why = "no probe can start on any of its hosts (vantage: none, or of a manifest alone)"
            return [f"{self._matrix.name} has nothing to test: {why}"]
        wanted = (
            role
            for one in asked
            for role in (*one.sources, *one.destinations)
            if not self._members[role]
        )
        roles = ", ".join(dict.fromkeys(wanted))
        if not roles:
            return []
        return [
            f"{self._matrix.name} has nothing to test: no host has the role {roles}; Ansible's "
            "groups are roles, and `roles_map:` or --role ROLE=ROLE says what others stand for"
        ]

    def _is_valid_today(self, waiver: Waiver) -> bool:
        return waiver.until is None or self._today.isoformat() <= waiver.until

    def _waiver_that_holds(self, requirement: Requirement) -> Waiver | None:
        waiver = self._matrix.waivers.get(requirement.id)
        return waiver if waiver is not None and self._is_valid_today(waiver) else None

    def expand(self, requirement: Requirement) -> Iterator[Block | Skipped]:
        """Give the blocks of one requirement, or why there are none."""
        reason = why_not(requirement, self._chosen)
        if reason is not None:
            yield self._make_skipped(requirement, reason)
            return
        roles = self._role_without_host(requirement)
        if roles is not None:
            skipped = self._make_skipped(requirement, f"no host has the role {roles}")
            waiver = self._waiver_that_holds(requirement)
            yield replace(skipped, roles=roles) if is_needed(requirement, waiver) else skipped
            return
        sources = self._hosts_with_roles(requirement.sources)
        for host in sources:
            if host.vantage.kind == "none":
                yield self._make_skipped(requirement, self._why_unable(host), source=host.name)
        able = tuple(host for host in sources if host.vantage.kind != "none")
        if able:
            yield from self._blocks_between_hosts(requirement, able)

    def unable(self, requirement: Requirement) -> Iterator[Block]:
        """Give the flows of a requirement that start where nothing can run."""
        if why_not(requirement, self._chosen) or self._role_without_host(requirement):
            return
        sources = self._hosts_with_roles(requirement.sources)
        closed = tuple(host for host in sources if host.vantage.kind == "none" and host.is_probed)
        found = self._blocks_between_hosts(requirement, closed) if closed else ()
        yield from (one for one in found if isinstance(one, Block))

    def _why_unable(self, host: Host) -> str:
        """Say why nothing can run on a source."""
        role = None if host.own_vantage else self._closed.get(host.name)
        if role is None:
            return "the source is declared vantage: none"
        return f"nothing can run on the source: its role {role} is vantage: none"

    def _hosts_with_roles(self, roles: Iterable[str]) -> tuple[Host, ...]:
        """The hosts that have any of the roles, each once, in the order of the first role's."""
        unique = {host.name: host for role in roles for host in self._members[role]}
        return tuple(unique.values())

    def _role_without_host(self, requirement: Requirement) -> str | None:
        """Give the roles of one end where no host has any."""
        for roles in (requirement.sources, requirement.destinations):
            if not self._hosts_with_roles(roles):
                return " or ".join(roles)
        return None

    def _blocks_between_hosts(
        self, requirement: Requirement, sources: tuple[Host, ...]
    ) -> Iterator[Block | Skipped]:
        every = self._hosts_with_roles(requirement.destinations)
        destinations = tuple(host for host in every if host.is_probed)
        for host in every:
            if not host.is_probed:
                yield replace(self._make_skipped(requirement, FREE), destination=host.name)
        # A requirement with ``expect: denied`` is about other hosts, so a host never tests itself.
        local = self._matrix.local and requirement.expect == "allowed"
        names = {host.name for host in destinations}
        both = [host.name for host in sources if host.name in names]
        if both and not local:
            reason = f"source and destination are one host: {_list_some_names(both)}"
            yield self._make_skipped(requirement, reason)
        yield from self._without_family(requirement, sources, destinations)
        for existing, some in self._by_existence(requirement, destinations):
            for wire in self._ports_by_protocol(requirement):
                for family in list_families(requirement):
                    block = self._make_block(requirement, wire, family, (sources, some), local)
                    if block.pair_count():
                        yield replace(block, existing=existing)

    def _by_existence(
        self, requirement: Requirement, hosts: tuple[Host, ...]
    ) -> Iterator[tuple[bool, tuple[Host, ...]]]:
        """Part the destinations by whether what listens there runs before the installation."""
        if requirement.existing is not None:
            yield requirement.existing, hosts
            return
        roles = (role for role in requirement.destinations if self._matrix.roles[role].existing)
        running = {host.name for host in self._hosts_with_roles(roles)}
        for existing in (True, False):
            some = tuple(host for host in hosts if (host.name in running) == existing)
            if some:
                yield existing, some

    def _ports_by_protocol(self, requirement: Requirement) -> Iterator[tuple[str, Ports]]:
        for protocol, entries in (("tcp", requirement.tcp), ("udp", requirement.udp)):
            if entries:
                yield protocol, tuple(sorted({self._port_range(entry) for entry in entries}))
        if requirement.icmp:
            yield "icmp", ()
        for number in requirement.ipproto:
            yield f"ipproto/{number}", ()

    def _port_range(self, entry: PortEntry) -> tuple[int, int]:
        if isinstance(entry, SettingRef):
            port = self._chosen.settings[entry.setting]
            assert isinstance(port, int)
            return (port, port)
        return entry

    def _make_block(
        self,
        requirement: Requirement,
        wire: tuple[str, Ports],
        family: Family | None,
        hosts: tuple[tuple[Host, ...], tuple[Host, ...]],
        local: bool,
    ) -> Block:
        sources, destinations = hosts
        protocol, ports = wire
        ends = tuple(
            (host, address)
            for host in destinations
            for address in host.addresses
            if address.family == family
        )
        starts = tuple(host for host in sources if family is None or speaks_family(host, family))
        sni = self._server_name_of(requirement)
        return Block(
            0, self._matrix.name, requirement, protocol, ports, family, starts, ends, local,
            self._warnings_that_hold(requirement, nameless=sni == "" and family is not None),
            self._waiver_that_holds(requirement),
            sni=sni, names=list_asked_names(requirement, self._chosen, self._members),
            overlay_mtu=self._matrix.overlay_mtu,
            any_of=AnyOf(self._matrix.name, requirement.any_of) if requirement.any_of else None,
        )  # fmt: skip

    def _server_name_of(self, requirement: Requirement) -> str | None:
        """Give the name that TLS asks for. Raises RequestError where the setting holds no name."""
        wanted = requirement.sni
        if not isinstance(wanted, SettingRef):
            return wanted
        name = self._chosen.settings[wanted.setting]
        assert isinstance(name, str)
        if name and not DNS_NAME.fullmatch(name):
            raise RequestError(f"setting {wanted.setting}: {name!r} is no DNS name")
        return name

    def _warnings_that_hold(self, requirement: Requirement, *, nameless: bool) -> tuple[str, ...]:
        found = tuple(warn.text for warn in requirement.warnings if holds(warn.when, self._chosen))
        if requirement.multicast is not None:
            found = (*found, MULTICAST.format(group=requirement.multicast))
        if nameless and isinstance(requirement.sni, SettingRef):
            return (*found, NAMELESS.format(setting=requirement.sni.setting))
        return found

    def _without_family(
        self, requirement: Requirement, sources: tuple[Host, ...], destinations: tuple[Host, ...]
    ) -> Iterator[Skipped]:
        """Hosts are grouped by the families they list: a thousand hosts have three such groups."""
        only = requirement.family
        asked = "address family" if only is None else f"IPv{only} address"
        for source_families, starts in group_by_families(sources).items():
            for end_families, ends in group_by_families(destinations).items():
                usable = end_families & {*list_families(requirement)}
                if (
                    None in usable
                    or usable & source_families
                    or (usable and None in source_families)
                ):
                    continue
                reason = (
                    f"no common {asked}: {_word_hosts(starts, source_families)} and "
                    f"{_word_hosts(ends, end_families)}"
                )
                yield self._make_skipped(requirement, reason)

    def _make_skipped(
        self, requirement: Requirement, reason: str, source: str | None = None
    ) -> Skipped:
        return Skipped(self._matrix.name, requirement.id, reason, source=source)


def _word_hosts(names: Sequence[str], families: frozenset[Family | None]) -> str:
    listed = ", ".join(sorted(f"IPv{family}" if family else "by name" for family in families))
    return f"{_list_some_names(names)} ({listed})"


def _list_some_names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"
