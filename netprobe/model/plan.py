"""The plan: what a run sends, as blocks that stay small however many hosts and ports there are.

A block is one requirement, one protocol and one address family with all its sources and
destinations. Its flows are walked, never listed: 1,000 hosts make millions of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from netprobe.model.coverage import Coverage
from netprobe.model.inventory import Address, Family, Host, Taken
from netprobe.model.matrix import Expect, Requirement, SettingValue, Waiver
from netprobe.model.ports import Ports
from netprobe.model.ports import count as count_ports
from netprobe.model.result import Also
from netprobe.model.shapes import LineText, Name, ProtocolText, RowId

# The ``probe`` of requirements that ask whether full-size packets get through.
PATH_MTU = "path-mtu"
# What is rehearsed, by the word of ``--rehearse``: the ``probe`` of requirements whose id is that
# of a row and this word (``vxlan/overlay``).
OVERLAY = "overlay"
BALANCER = "balancer"
# The one that is rehearsed for hosts, not for rows: its id is this word alone. Of rows of VRRP it
# rehearses the multicast, with another ``probe``.
SEGMENT = "segment"
MULTICAST = "multicast"
REHEARSALS = (OVERLAY, BALANCER, SEGMENT)
# What ``--quality`` measures of a row's way: it comes after all is probed, too.
QUALITY = "quality"
PLAYED_WORDS = (*REHEARSALS, MULTICAST, QUALITY)
# Results of one host, written only where it has that fault; no plan has them.
RESOLVER = "resolver"
CLOCK = "clock"
OF_HOSTS = (RESOLVER, CLOCK)
# What no matrix asks for by itself.
ADDED = (PATH_MTU, *OF_HOSTS, SEGMENT)
# Results that are about hosts and their addresses, from a host to itself: those of no flow.
ABOUT_HOSTS = (*OF_HOSTS, SEGMENT)


def find_row(requirement: str) -> str:
    """Give the id of the row that a requirement is, or is rehearsed for."""
    return requirement.partition("/")[0]


class AskedName(Struct, frozen=True):
    """A name that name servers are asked for, and the setting that gives it.

    A ``name`` such as ``*.apps.example.com`` stands for any name there. ``addresses`` are those
    that the inventory has for it; none: nobody says which it has.
    """

    setting: str
    name: str
    addresses: tuple[str, ...] = ()


class AnyOf(Struct, frozen=True):
    """Rows of a matrix that have one name as ``any_of``: one of them is enough for a pair."""

    matrix: Name
    name: Name


class Block(Struct, frozen=True):
    """One requirement × its hosts, for one protocol and one family.

    ``protocol`` is ``tcp``, ``udp``, ``icmp`` or ``ipproto/N``; the last two have no ``ports``.
    Its ranges are the requirement's entries, sorted but not joined: 2379 and 2380 stay two results.
    ``family`` is None where the destinations are names: the source resolves them.
    ``chosen`` holds for each source the places of its destinations where only a part is probed.
    ``places``: of a part of a block, the places of its sources and destinations in the whole.
    ``sni`` is the name that TLS asks for; empty where one is needed and no setting gives it.
    ``existing``: what listens at the destinations runs before the installation.
    ``names`` are what its name servers are asked for. ``any_of``: the rows that it is one of, of
    which one is enough; ``alone``: it is demanded by itself all the same. ``also``: the rows of
    other matrices that demand the same. ``overlay_mtu``: that of the pods' network, where the
    matrix says it. ``back_ends``: the hosts to which its destinations, which are balancers, hand
    connections on, or of a segment those that may ask; only of what is rehearsed. ``listed``:
    all addresses of the inventory, and ``no_dhcp``: their networks should have no DHCP server; only
    of what is rehearsed of segments. ``samples``: how many a way gets, and ``row_probe`` what its
    row sends; only of what ``--quality`` measures.
    """

    index: int
    matrix: Name
    requirement: Requirement
    protocol: ProtocolText
    ports: Ports
    family: Family | None
    sources: tuple[Host, ...]
    destinations: tuple[tuple[Host, Address], ...]
    local: bool = False
    warnings: tuple[str, ...] = ()
    waiver: Waiver | None = None
    chosen: tuple[tuple[int, ...], ...] | None = None
    sni: str | None = None
    existing: bool = False
    places: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    names: tuple[AskedName, ...] = ()
    any_of: AnyOf | None = None
    alone: bool = False
    also: tuple[Also, ...] = ()
    overlay_mtu: int | None = None
    back_ends: tuple[Host, ...] = ()
    listed: tuple[str, ...] = ()
    no_dhcp: bool = False
    samples: int | None = None
    row_probe: str | None = None

    @property
    def rehearsal(self) -> str | None:
        """What is rehearsed for its flows; None: they are probed."""
        probe = self.requirement.probe
        return probe if isinstance(probe, str) and probe in PLAYED_WORDS else None

    @property
    def group_name(self) -> Name | None:
        """The name of the rows of which one is enough; None where the flow decides by itself."""
        return None if self.any_of is None or self.alone else self.any_of.name

    @property
    def names_of_rows(self) -> tuple[tuple[Name, Name], ...]:
        """All names of its flows, each a matrix and a requirement: first the written one."""
        others = ((one.matrix, one.requirement) for one in self.also)
        return ((self.matrix, self.requirement.id), *others)

    def order(self, source: int, destination: int) -> tuple[int, int, int]:
        """Give the place in the plan of a pair, which all its ports share."""
        if self.places is None:
            return (self.index, source, destination)
        return (self.index, self.places[0][source], self.places[1][destination])

    def has_flow(self, source: int, destination: int) -> bool:
        """Tell whether the hosts at these places are two, or the matrix is ``local``."""
        return self.local or (self.sources[source].name != self.destinations[destination][0].name)

    def peers(self, source: int) -> Iterable[int]:
        """Give the places of the destinations that the source at this place probes."""
        if self.chosen is not None:
            return self.chosen[source]
        return (place for place in range(len(self.destinations)) if self.has_flow(source, place))

    def has_pair(self, source: int, destination: int) -> bool:
        """Tell whether the source at this place probes this destination."""
        if self.chosen is None:
            return self.has_flow(source, destination)
        peers = self.chosen[source]  # sorted
        at = bisect_left(peers, destination)
        return at < len(peers) and peers[at] == destination

    def keep_pairs(self, ports: Ports, pairs: Iterable[tuple[int, int]]) -> Block:
        """Give the part of the block with these ports and pairs of places.

        Its pairs keep their places in this block: ``order`` gives the same as before.
        """
        peers: dict[int, list[int]] = {}
        for source, end in sorted(pairs):
            peers.setdefault(source, []).append(end)
        used = sorted({end for some in peers.values() for end in some})
        place_of = {end: place for place, end in enumerate(used)}
        places = tuple(peers), tuple(used)
        if self.places is not None:
            places = (
                tuple(self.places[0][at] for at in peers),
                tuple(self.places[1][at] for at in used),
            )
        return replace(
            self,
            ports=ports,
            sources=tuple(self.sources[at] for at in peers),
            destinations=tuple(self.destinations[end] for end in used),
            chosen=tuple(tuple(place_of[end] for end in some) for some in peers.values()),
            places=places,
        )

    def flows(self) -> Iterator[Flow]:
        """Give every flow of the block, sources first, in plan order."""
        for place, source in enumerate(self.sources):
            for peer in self.peers(place):
                destination, address = self.destinations[peer]
                yield Flow(self, source, destination, address)

    def pair_count(self) -> int:
        """Tell how many (source, destination address) pairs there are, without walking them."""
        if self.chosen is not None:
            return sum(len(peers) for peers in self.chosen)
        total = len(self.sources) * len(self.destinations)
        if self.local:
            return total
        names = {source.name for source in self.sources}
        return total - sum(1 for destination, _ in self.destinations if destination.name in names)

    def flow_count(self) -> int:
        """Tell how many flows (pair and port) there are, without walking them."""
        return self.pair_count() * (count_ports(self.ports) or 1)


class Flow(Struct, frozen=True):
    """One source host, one destination address, one protocol; the ports are the block's."""

    block: Block
    source: Host
    destination: Host
    address: Address


class HostFlow(Struct, frozen=True):
    """What a result of one host is of: a flow from the host to itself, and its place in the plan.

    ``asked`` are names that its name servers are asked for, ``ends`` those of destinations that it
    resolves itself.
    """

    flow: Flow
    order: tuple[int, int, int]
    asked: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()


class Skipped(Struct, frozen=True):
    """A requirement, or a part of one, that is not tested on purpose, with the reason.

    ``source`` and ``destination`` are host names where the reason is about hosts, else None.
    ``flows``: how many required flows start at a source where nothing can run. ``roles``: of which
    no host has one, though a required row needs it.
    """

    matrix: Name
    requirement: RowId
    reason: str = ""
    source: LineText | None = None
    destination: LineText | None = None
    flows: int | None = None
    roles: str | None = None


class PlannedMatrix(Struct, frozen=True):
    """A matrix of the plan with the settings it was planned with, and the document it is of.

    ``names`` are the settings whose values hosts look up.
    """

    SPARSE: ClassVar = True

    name: Name
    settings: Mapping[Name, SettingValue] = field(default_factory=dict)
    document: Mapping[str, str] = field(default_factory=dict)
    names: tuple[Name, ...] = ()


class PlannedRequirement(Struct, frozen=True, kw_only=True):
    """A requirement of the plan with one of its protocols: what is to be opened between roles.

    ``from_`` and ``to`` are roles of the matrix, ``ports`` the whole ranges that it lists, also
    where only a part was probed. ``row`` is the table of the document. ``existing``: what listens
    there runs before the installation; None where that holds for some of its destinations only.
    ``waive`` is the waiver that held, as a matrix file has it: ``REASON, until DATE``. ``any_of``:
    the name of rows of which one is enough for a pair of hosts. ``question``: a word of all that
    changes an answer; where that of another run is the same, the row asks the same. Empty: not
    known, as in files of an older netprobe.
    """

    matrix: Name
    id: RowId
    from_: tuple[Name, ...]
    to: tuple[Name, ...]
    protocol: ProtocolText
    ports: Ports = ()
    purpose: str = ""
    row: str = ""
    optional: bool = False
    expect: Expect = "allowed"
    existing: bool | None = False
    waive: str | None = None
    any_of: Name | None = None
    question: str = ""


class Plan(Struct, frozen=True):
    """Everything that a run will send. ``notes`` are sentences for the reader.

    ``requirements`` are those of the blocks. ``roles`` gives, by the host's name, the roles of the
    matrices that it has: its own first, then what they imply.
    ``selection``: the filters, and how much of the whole plan they left; None without filters.
    ``limited_to``: the hosts that --limit stands for; empty without it.
    ``some_ports``: the filters may have left out ports between hosts that they kept.
    ``coverage``: how the plan covers a larger one; None where it is the whole.
    ``taken`` is what manifests gave it. ``unable`` are flows that are required and never probed:
    nothing can run at their sources, so that they are skipped. ``listed`` are all hosts of the
    inventory, also those that no flow touches.
    """

    matrices: tuple[PlannedMatrix, ...]
    blocks: tuple[Block, ...]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)
    selection: str | None = None
    limited_to: frozenset[str] = frozenset()
    some_ports: bool = False
    requirements: tuple[PlannedRequirement, ...] = ()
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coverage: Coverage | None = None
    taken: tuple[Taken, ...] = ()
    unable: tuple[Block, ...] = ()
    listed: tuple[Host, ...] = ()

    def hosts(self) -> Mapping[str, Host]:
        """Give every host of the plan by its name: destinations first, in plan order."""
        ends = (host for block in self.blocks for host, _ in block.destinations)
        starts = (host for block in self.blocks for host in (*block.sources, *block.back_ends))
        return {host.name: host for host in (*ends, *starts)}

    def flows(self) -> Iterator[Flow]:
        """Give every flow in plan order."""
        for block in self.blocks:
            yield from block.flows()

    def split_rehearsals(self) -> tuple[Plan, Plan]:
        """Give the plan of what is probed, and that of what is rehearsed."""
        probed = tuple(block for block in self.blocks if block.rehearsal is None)
        played = tuple(block for block in self.blocks if block.rehearsal is not None)
        return replace(self, blocks=probed), replace(self, blocks=played)

    def flow_count(self) -> int:
        """Tell how many flows (pair and port) the plan holds, without walking them."""
        return sum(block.flow_count() for block in self.blocks)

    def find_samples(self) -> int | None:
        """Give how many samples each measured way gets; None where they get different numbers, or
        none is measured."""
        numbers = {block.samples for block in self.blocks if block.samples is not None}
        return numbers.pop() if len(numbers) == 1 else None

    def count_names(self) -> int:
        """Count the names that hosts look up."""
        asked = {one.name for block in self.blocks for one in block.names}
        named = [block for block in self.blocks if block.family is None]
        return len(asked.union(end.text for block in named for _, end in block.destinations))


class PlanCost(Struct, frozen=True):
    """What a plan costs, estimated from counts; ``flows`` counts ports.

    ``seconds`` is about how long while nothing is blocked, ``seconds_dropped`` where something is
    dropped, both on idle hosts that share no processor. ``paced_udp_seconds`` is what UDP towards
    hosts without an agent takes of it: closed UDP ports may only be asked one a second.
    """

    flows: int
    packets: int
    listeners: int
    seconds: float
    seconds_dropped: float
    paced_udp_seconds: float


class PodPort(Struct, frozen=True):
    """A port of the node that a container declares."""

    protocol: str
    port: int
    container: str


class Pod(Struct, frozen=True):
    """One pod. ``uids`` are its own and, for a static pod, that by which its node knows it.

    ``ports`` are those that it declares on the node: of a pod in the host's network all, of
    another one its host ports, which no socket shows.
    """

    name: str
    uids: tuple[str, ...]
    node: str
    addresses: tuple[str, ...]
    host_network: bool
    running: bool
    ports: tuple[PodPort, ...]
