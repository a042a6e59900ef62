"""The part of a plan that the user chose: --limit, --from, --to, --only, --protocol."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.model.inventory import Host, Inventory
from netprobe.model.matrix import ChosenMatrix, fold_role
from netprobe.model.names import word_unknown
from netprobe.model.plan import ABOUT_HOSTS, PATH_MTU, Block, Plan
from netprobe.plan.expand import hosts_by_role
from netprobe.plan.path_mtu import path_mtu_blocks
from netprobe.plan.planned import keep_requirements
from netprobe.plan.unable import count_unable

PROTOCOLS = ("tcp", "udp", "icmp", "ipproto")


class Selection(Struct, frozen=True):
    """Hosts or roles (``limit``, ``from_``, ``to``), requirement ids, protocols; empty: all.

    ``limit`` keeps flows that touch the host or role at either end.
    """

    limit: tuple[str, ...] = ()
    from_: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    protocol: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(words for _, words in self._given_options())

    def __str__(self) -> str:
        return " ".join(
            f"{option} {word}" for option, words in self._given_options() for word in words
        )

    def _given_options(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return (
            ("--limit", self.limit),
            ("--from", self.from_),
            ("--to", self.to),
            ("--only", self.only),
            ("--protocol", self.protocol),
        )


def select(
    plan: Plan, selection: Selection, chosen: Sequence[ChosenMatrix], inventory: Inventory
) -> Plan:
    """Give the selected part of the plan. Raises RequestError that lists every unknown name."""
    if not selection:
        return plan
    names = _Names(chosen, inventory)
    problems = list(names.problems(selection))
    if problems:
        raise RequestError("\n".join(problems))
    numbered = _select_blocks(plan.blocks, selection, names)
    unable = _select_blocks(plan.unable, selection, names)
    skipped = plan.skipped
    if selection.only:
        skipped = tuple(
            item for item in skipped if _is_named((item.matrix, item.requirement), selection.only)
        )
    requirements = keep_requirements(plan.requirements, (*numbered, *unable))
    selected = replace(
        plan,
        blocks=numbered,
        skipped=count_unable(skipped, unable),
        requirements=requirements,
        unable=unable,
    )
    words = f"{selection}: {selected.flow_count():,} of {plan.flow_count():,} flows"
    limited_to = frozenset(names.hosts(selection.limit))
    some_ports = bool(selection.only or selection.protocol)
    return replace(selected, selection=words, limited_to=limited_to, some_ports=some_ports)


def _select_blocks(
    blocks: Iterable[Block], selection: Selection, names: _Names
) -> tuple[Block, ...]:
    if selection.only:
        blocks = tuple(_select_requirements(blocks, selection.only))
    parts = (part for one in blocks for part in _select_parts_of_block(one, selection, names))
    return tuple(replace(part, index=index) for index, part in enumerate(parts))


def _select_requirements(blocks: Iterable[Block], only: tuple[str, ...]) -> Iterator[Block]:
    """The blocks of these requirements; an overlay's always with the path MTU that it needs."""
    for _, of_matrix in groupby(blocks, lambda block: block.matrix):
        named = [
            block for block in of_matrix if any(_is_named(row, only) for row in block.names_of_rows)
        ]
        yield from named
        if PATH_MTU not in only:
            yield from path_mtu_blocks(named)


def _is_named(row: tuple[str, str], only: tuple[str, ...]) -> bool:
    """Tell whether ``--only`` names a row: by its id, or with its matrix, ``kubeadm:api``."""
    return row[1] in only or ":".join(row) in only


class _Names:
    """Looks up the names of hosts, roles and requirements."""

    def __init__(self, chosen: Sequence[ChosenMatrix], inventory: Inventory) -> None:
        self._hosts: dict[str, set[str]] = {host.name: {host.name} for host in inventory.hosts}
        self._requirements: set[str] = {PATH_MTU}
        self._rows = {
            f"{one.matrix.name}:{row.id}" for one in chosen for row in one.matrix.requirements
        }
        for one in chosen:
            self._requirements |= {requirement.id for requirement in one.matrix.requirements}
            for role, hosts in hosts_by_role(one.matrix, inventory).items():
                self._hosts.setdefault(fold_role(role), set()).update(host.name for host in hosts)
        for host in inventory.hosts:
            for role in host.roles:
                self._hosts.setdefault(fold_role(role), set()).add(host.name)

    def hosts(self, words: Iterable[str]) -> set[str]:
        """Give the host names that these hosts and roles stand for."""
        return {name for word in words for name in self._hosts[self._key_of(word)]}

    def _key_of(self, word: str) -> str:
        return word if word in self._hosts else fold_role(word)

    def problems(self, selection: Selection) -> Iterator[str]:
        """Give one sentence for every unknown word."""
        ends = (("--limit", selection.limit), ("--from", selection.from_), ("--to", selection.to))
        for option, words in ends:
            keys = map(self._key_of, words)
            yield from _word_unknown_names(option, keys, self._hosts, "host or role")
        of_hosts = [word for word in selection.only if word in ABOUT_HOSTS]
        rows = [word for word in selection.only if word not in (*ABOUT_HOSTS, *self._rows)]
        yield from _word_unknown_names("--only", rows, self._requirements, "requirement")
        for word in of_hosts:
            yield (
                f"--only {word}: no row has this result: each run tells it of the hosts that it "
                "probes from, whatever their rows; choose one of their rows (--only dns ..., or "
                f"--from HOST), and the report has {word} too"
            )
        for word in selection.protocol:
            if word.partition("/")[0] not in PROTOCOLS:
                yield f"--protocol {word}: expected one of {', '.join(PROTOCOLS)}"


def _word_unknown_names(
    option: str, words: Iterable[str], known: Collection[str], kind: str
) -> Iterator[str]:
    for word in words:
        if word not in known:
            yield f"{option} {word}: {word_unknown(kind, word, known)}"


def _select_parts_of_block(block: Block, selection: Selection, names: _Names) -> Iterator[Block]:
    # "ipproto" stands for "ipproto/4" too.
    protocols = {block.protocol, block.protocol.partition("/")[0]}
    if selection.protocol and not protocols & set(selection.protocol):
        return
    if selection.from_:
        block = replace(block, sources=_keep_hosts(block.sources, names.hosts(selection.from_)))
    if selection.to:
        block = _keep_destinations(block, names.hosts(selection.to))
    for part in _limit_to_hosts(block, selection, names):
        if part.pair_count():
            yield part


def _limit_to_hosts(block: Block, selection: Selection, names: _Names) -> Iterator[Block]:
    if not selection.limit:
        yield block
        return
    limit = names.hosts(selection.limit)
    yield replace(block, sources=_keep_hosts(block.sources, limit))
    others = tuple(host for host in block.sources if host.name not in limit)
    yield _keep_destinations(replace(block, sources=others), limit)


def _keep_hosts(hosts: tuple[Host, ...], names: set[str]) -> tuple[Host, ...]:
    return tuple(host for host in hosts if host.name in names)


def _keep_destinations(block: Block, names: set[str]) -> Block:
    ends = tuple(end for end in block.destinations if end[0].name in names)
    return replace(block, destinations=ends)
