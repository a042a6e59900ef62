"""What manifests say of addresses and proxies becomes hosts of the inventory, and their proxies."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from itertools import chain, count

from msgspec import Struct
from msgspec.structs import replace

from netprobe.load.manifest.said import AddressSaid, Origin, ProxySaid
from netprobe.load.yaml.wording import listed
from netprobe.model.inventory import Address, Host, Inventory, Proxy, Vantage
from netprobe.model.matrix import Matrix, fold_role
from netprobe.model.names import names_text

_NAMES_SHOWN = 6
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class RoleBook(Struct, frozen=True):
    """The roles of the chosen matrices: what a word means, and what stands in for what.

    ``cover`` holds, for each role, the roles that all its rows name too: a host of one of these
    serves what the role serves.
    """

    words: Mapping[str, Set[str]]
    cover: Mapping[str, Set[str]]

    def of_host(self, host: Host) -> set[str]:
        """Give all roles of a host, also implied ones; without matrices its own words."""
        own = {fold_role(role) for role in host.roles}
        return own.union(*(self.words.get(word, frozenset()) for word in own))

    def knows(self, role: str) -> bool:
        """Tell whether any matrix knows the word."""
        return fold_role(role) in self.words


def make_role_book(matrices: Sequence[Matrix]) -> RoleBook:
    """Read the roles of all matrices."""
    words: dict[str, set[str]] = {}
    cover: dict[str, set[str]] = {}
    for matrix in matrices:
        for word, role in matrix.role_words().items():
            words.setdefault(word, set()).update(matrix.with_implied([role]))
        for requirement in matrix.requirements:
            ends = set(requirement.destinations)
            for role in ends:
                cover[role] = cover.get(role, ends) & ends - {role}
    return RoleBook(words, cover)


def add_hosts(
    inventory: Inventory, said: Sequence[AddressSaid], book: RoleBook
) -> tuple[Inventory, list[str]]:
    """Add the hosts that the inventory lacks, and to its own the roles that they lack; and notes.

    A host of a manifest is a destination only: nobody said how to get onto it.
    """
    hosts = {host.name: host for host in inventory.hosts}
    notes: list[str] = []
    taken = list(inventory.taken)
    for name, some in _group_by_host(said, book).items():
        known = _find_host(name, some, inventory.hosts)
        if known is not None:
            notes += _word_strange(some, hosts[known.name])
            lacks = _merge_roles(hosts, known, _roles_of(some, book), book)
        else:
            rivals = {
                role: _find_rivals(role, some, inventory.hosts, book)
                for role in _roles_of(some, book)
            }
            notes += _word_rivals(some, rivals)
            own = _add_host(hosts, name, some, [role for role in rivals if not rivals[role]])
        for origin, mine in _group_by_origin(some).items():
            roles = _roles_of(mine, book)
            gives = (
                _word_known(known, [role for role in roles if role in lacks])
                if known is not None
                else _word_new(own, {role: rivals[role] for role in roles})
            )
            taken.append(origin.taken(gives))
    return replace(inventory, hosts=tuple(hosts.values()), taken=tuple(taken)), notes


def _roles_of(some: Sequence[AddressSaid], book: RoleBook) -> list[str]:
    return list(dict.fromkeys(role for one in some for role in one.roles if book.knows(role)))


def _group_by_origin(some: Sequence[AddressSaid]) -> dict[Origin, list[AddressSaid]]:
    """Each line of a manifest tells what became of its own roles."""
    return {one.origin: [other for other in some if other.origin == one.origin] for one in some}


def _word_strange(some: Sequence[AddressSaid], known: Host) -> Iterator[str]:
    strange = {one.address.text: one for one in some if one.address not in known.addresses}
    if strange:
        theirs = listed(one.text for one in known.addresses)
        yield (
            f"{next(iter(strange.values())).origin.place}: {known.name} is at {listed(strange)} "
            f"here and at {theirs} in the inventory, which counts"
        )


def _group_by_host(said: Sequence[AddressSaid], book: RoleBook) -> dict[str, list[AddressSaid]]:
    """Group by the host's own name, else by address."""
    groups: dict[tuple[str, str], list[AddressSaid]] = {}
    for one in said:
        if not any(map(book.knows, one.roles)):
            continue
        key = ("name", one.name) if one.name else ("address", one.address.text.lower())
        groups.setdefault(key, []).append(one)
    found: dict[str, list[AddressSaid]] = {}
    for (kind, _), some in groups.items():
        name = some[0].name if kind == "name" else _make_name(some[0].owner, _roles_of(some, book))
        found[_make_unique(_NO_NAME.sub("-", name).strip("-.") or "host", found)] = some
    return found


def _make_unique(name: str, taken: Container[str]) -> str:
    """Give the name, or the first of name-2, name-3 ... that nobody has."""
    numbered = (f"{name}-{number}" for number in count(2))
    return next(one for one in chain([name], numbered) if one not in taken)


def _make_name(owner: str, roles: Sequence[str]) -> str:
    """``hc1-hcp-apiserver``; of several roles what they have in common: ``hc1-hcp``."""
    if len(roles) == 1:
        return roles[0] if roles[0].startswith(owner) else f"{owner}-{roles[0]}"
    heads = {role.partition("-")[0] for role in roles}
    tails = {role.rpartition("-")[2] for role in roles}
    common = heads if len(heads) == 1 else tails if len(tails) == 1 else {roles[0]}
    return f"{owner}-{min(common)}"


def _find_host(name: str, some: Sequence[AddressSaid], hosts: Sequence[Host]) -> Host | None:
    texts = {one.address.text.lower() for one in some}
    for host in hosts:
        if host.name == name and some[0].name:
            return host
        if texts & {address.text.lower() for address in host.addresses}:
            return host
    return None


def _find_rivals(
    role: str, some: Sequence[AddressSaid], hosts: Sequence[Host], book: RoleBook
) -> list[Host]:
    """Give the hosts of the inventory that serve what the role serves, at other addresses.

    Named hosts of a cluster have none: there are many of a role.
    """
    if some[0].name:
        return []
    wanted = {role} | book.cover.get(role, frozenset())
    return [host for host in hosts if wanted & book.of_host(host)]


def _add_host(
    hosts: dict[str, Host], name: str, some: Sequence[AddressSaid], roles: Sequence[str]
) -> str:
    """Add a host of these roles, if there are any; give its name."""
    if not roles:
        return ""
    own = _make_unique(name, hosts)
    addresses = tuple({one.address.text: one.address for one in some}.values())
    place = some[0].origin.place
    hosts[own] = Host(own, addresses, tuple(roles), Vantage("none"), place=place)
    return own


def _word_new(own: str, rivals: Mapping[str, Sequence[Host]]) -> str:
    """Word what became of the roles of a line: of those without rivals the host of this name."""
    used = [role for role, some in rivals.items() if not some]
    words = [f"host {own} ({listed(used)})"] if used else []
    words += [
        f"not used: the inventory has {_names_of(some)} for {role}"
        for role, some in rivals.items()
        if some
    ]
    return ", ".join(words)


def _names_of(hosts: Sequence[Host]) -> str:
    return names_text([host.name for host in hosts], _NAMES_SHOWN)


def _word_rivals(
    some: Sequence[AddressSaid], rivals: Mapping[str, Sequence[Host]]
) -> Iterator[str]:
    """Give a note for each role that the inventory has at another address, at the role's line.

    A name may well be that of an address in the inventory: only likes are compared.
    """
    for role, hosts in rivals.items():
        families = {address.family for host in hosts for address in host.addresses}
        for one in (one for one in some if role in one.roles):
            if one.address.family in families:
                yield (
                    f"{one.origin.place}: {one.address.text} is {role} here, "
                    f"and {_names_of(hosts)} of the inventory, which counts, has another address"
                )


def _merge_roles(
    hosts: dict[str, Host], known: Host, roles: Sequence[str], book: RoleBook
) -> list[str]:
    """Give the host of the inventory the roles that it lacks; give these."""
    host = hosts[known.name]
    has = book.of_host(host)
    lacks = [
        role
        for role in roles
        if not (book.words.get(fold_role(role), frozenset()) <= has)
        and not book.cover.get(role, frozenset()) & has
    ]
    if lacks:
        hosts[known.name] = replace(host, roles=(*host.roles, *lacks))
    return lacks


def _word_known(known: Host, lacks: Sequence[str]) -> str:
    if not lacks:
        return f"host {known.name}, as in the inventory"
    return f"host {known.name} of the inventory is {listed(lacks)} too"


def add_proxies(
    inventory: Inventory, said: Sequence[ProxySaid], book: RoleBook
) -> tuple[Inventory, list[str]]:
    """Give the proxies to the hosts that have none of their own; and notes."""
    hosts = {host.name: host for host in inventory.hosts}
    taken, notes = list(inventory.taken), []
    for one in said:
        able = (host for host in inventory.hosts if host.vantage.kind != "none")
        users = [host for host in able if book.of_host(host) & set(one.roles)]
        own = [host.name for host in users if host.proxy is not None and not one.service]
        got = [host.name for host in users if host.name not in own]
        for name in got:
            hosts[name] = _with_proxy(hosts[name], one.service, one.proxy)
        if own:
            notes.append(
                f"{one.origin.place}: {names_text(own, _NAMES_SHOWN)}: the inventory's own proxy "
                "counts"
            )
        what = f"proxy for {one.service} of" if one.service else "proxy of"
        if one.service and not (one.proxy.https_proxy or one.proxy.http_proxy):
            what = f"no proxy for {one.service} on"
        who = names_text(got, _NAMES_SHOWN) if got else f"no host: none is {listed(one.roles)}"
        taken.append(one.origin.taken(f"{what} {who}"))
    return replace(inventory, hosts=tuple(hosts.values()), taken=tuple(taken)), notes


def _with_proxy(host: Host, service: str, proxy: Proxy) -> Host:
    if service:
        return replace(host, proxies=((service, proxy), *host.proxies))
    return replace(host, proxy=proxy)


def addresses_of(hosts: Sequence[Host]) -> Iterator[tuple[str, Address]]:
    """Give each IP address of each host."""
    for host in hosts:
        for address in dict.fromkeys((*host.addresses, *host.source_addresses)):
            if address.family is not None:
                yield host.name, address
