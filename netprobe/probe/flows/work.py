"""Lists the flows to probe at each destination, and joins those with the same packets."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from netprobe.model import ports as port_sets
from netprobe.model.compared import PartlyCompared
from netprobe.model.evidence import Evidence
from netprobe.model.inventory import Address, Host
from netprobe.model.matrix import AnyProbe
from netprobe.model.plan import Block, Flow, Plan
from netprobe.model.ports import Ports
from netprobe.protocols.services.services import service_for

UNTOLD = ("no-result", "netprobe has no result for this flow: nobody told what became of it")
STOPPED = ("stopped", "the run was stopped before this flow was probed")

PlanPlace = tuple[int, int, int]
# source, address, protocol, probe, denied, existing, server name, proxy
TaskKey = tuple[str, str, str, AnyProbe | None, bool, bool, str | None, "Via | None"]
# matrix, requirement, source, destination, address, protocol: as ``report.record`` keys results.
WantKey = tuple[str, str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Via:
    """A proxy of the inventory: its URL, which may hold a password, and the words for a reader."""

    url: str = field(repr=False)
    said: str


class FlowLedger(Struct):
    """What has its results already: ports by address, () for a protocol without ports.

    ``is_final``: what is left gets its results now.
    """

    ports: dict[str, Ports] = msgspec.field(default_factory=dict)
    is_final: bool = False


class Want(PartlyCompared, frozen=True):
    """A flow of the plan that waits for evidence; ``order`` is its place in the plan.

    ``ledger``: what has its results, of this run or of an earlier one; all copies of the want share
    it. ``via`` is the proxy that the source's software uses for it, and ``notes`` say what decided
    that.
    """

    UNCOMPARED = ("ledger",)

    flow: Flow
    order: PlanPlace
    ledger: FlowLedger = msgspec.field(default_factory=FlowLedger)
    via: Via | None = None
    notes: tuple[str, ...] = ()

    @property
    def service(self) -> AnyProbe | None:
        """The service that the requirement asks, where one is spoken to over TLS or HTTP."""
        block = self.flow.block
        probe = block.requirement.probe
        known = block.protocol == "tcp" and block.requirement.expect == "allowed"
        return probe if known and service_for(probe) is not None else None

    @property
    def server_name(self) -> str | None:
        """The name that TLS asks for; empty where one is needed and nobody gave it."""
        if self.service is None:
            return None
        address, sni = self.flow.address, self.flow.block.sni
        return sni or (address.text if address.family is None else sni)

    def left(self, address: str) -> Ports | None:
        """The ports without results at an address; None: nothing is left, not even where there are
        no ports."""
        ports, known = self.flow.block.ports, self.ledger.ports
        return port_sets.subtract(ports, known[address]) or None if address in known else ports

    def left_of(self, ports: Ports, address: str) -> Ports | None:
        """Give those of these ports without results at an address; None as in ``left``."""
        mine, known = self.flow.block.ports, self.ledger.ports.get(address)
        if not mine:
            return () if known is None else None
        asked = port_sets.intersect(ports, mine)
        return port_sets.subtract(asked, port_sets.find_near(known or (), asked)) or None

    @property
    def is_left(self) -> bool:
        """Whether something lacks its result; of a name, whose addresses are not known, always."""
        address = self.flow.address
        return address.family is None or self.left(address.text) is not None

    def note_evidence(self, found: Iterable[Evidence]) -> None:
        """Note that the ports of its evidence have their results."""
        fresh = ((one.address, one.ports) for one in found)
        self.ledger.ports |= port_sets.union_by_key((*self.ledger.ports.items(), *fresh))

    def untested(self, why: tuple[str, str], ports: Ports | None = None) -> Evidence:
        """Make the evidence that nobody looked; ``ports`` None: at none of what is to be probed."""
        address = self.flow.address.text
        left = self.left(address) or () if ports is None else ports
        return Evidence(self.flow, address, left, outcome=None, untested=why)

    def with_untold(self, found: list[Evidence]) -> list[Evidence]:
        """Give its evidence, and of the ports that nobody told of that they are not tested."""
        if not found:
            # Of a name all addresses may be kept; which it has is not in the plan.
            all_kept = self.ledger.ports and self.flow.address.family is None
            return [] if all_kept else [self.untested(UNTOLD)]
        told = port_sets.union_by_key((one.address, one.ports) for one in found)
        rests = [
            (address, port_sets.subtract(self.left(address) or (), ports))
            for address, ports in told.items()
        ]
        untold = [replace(self.untested(UNTOLD, rest), address=a) for a, rest in rests if rest]
        return [*found, *untold]


class Task(PartlyCompared, frozen=True):
    """The same packets for one or more wants: source, address, protocol and what to send.

    ``ports`` is the union over the wants, empty where the protocol has none. ``denied`` tasks are
    probed before any listener of ours is open; for ``existing`` ones none is ever opened.
    ``server_name`` is as in ``Want``; with ``via`` the address may be a name, which only the proxy
    can resolve.
    """

    UNCOMPARED = ("wants",)

    source: Host
    address: str
    family: int
    protocol: str
    probe: AnyProbe | None
    denied: bool
    ports: Ports
    wants: tuple[Want, ...]
    server_name: str | None = None
    via: Via | None = None
    existing: bool = False

    @property
    def key(self) -> TaskKey:
        """What tells tasks apart: everything but the ports."""
        return (
            self.source.name, self.address, self.protocol, self.probe, self.denied, self.existing,
            self.server_name, self.via,
        )  # fmt: skip

    @property
    def pair(self) -> tuple[str, str]:
        """The names of its source and its address."""
        return (self.source.name, self.address)

    @property
    def is_name(self) -> bool:
        """Whether the address is a name, which only a proxy can resolve."""
        return self.via is not None and self.wants[0].flow.address.family is None


class Work:
    """The plan, seen from its destinations; holds references to blocks, never a list of flows.

    ``flow_count``: how many flows the plan has.
    """

    def __init__(self, plan: Plan, done: Mapping[WantKey, Ports] | None = None) -> None:
        self.flow_count = plan.flow_count()
        self._kept: dict[tuple[str, ...], dict[str, Ports]] = {}
        for key, ports in (done or {}).items():
            self._kept.setdefault((*key[:4], key[5]), {})[key[4]] = ports
        self._by_destination: dict[str, list[tuple[Block, int, Address]]] = {}
        self._hosts: dict[str, Host] = {}
        self._sources: dict[str, Host] = {}
        self._helpers: dict[str, Host] = {}
        self._chosen: dict[int, dict[int, list[int]]] = {}
        for block in plan.blocks:
            self._note_chosen(block)
            for index, (host, address) in enumerate(block.destinations):
                self._hosts.setdefault(host.name, host)
                self._by_destination.setdefault(host.name, []).append((block, index, address))
            self._sources.update((host.name, host) for host in block.sources)
            self._helpers.update((host.name, host) for host in block.back_ends)

    @property
    def destinations(self) -> tuple[Host, ...]:
        """Every host that is a destination, in plan order."""
        return tuple(self._hosts.values())

    @property
    def sources(self) -> tuple[Host, ...]:
        """Every host that probes start from."""
        return tuple(self._sources.values())

    @property
    def hosts(self) -> tuple[Host, ...]:
        """Every host that has a part: sources, destinations, and back ends that are played."""
        return tuple({**self._sources, **self._hosts, **self._helpers}.values())

    def wants(self, destination: Host) -> Iterator[Want]:
        """Give every flow towards the destination, in plan order."""
        for block, end_index, address in self._by_destination[destination.name]:
            for source_index in self._sources_of(block, end_index):
                source = block.sources[source_index]
                key = (block.matrix, block.requirement.id, source.name, destination.name)
                ledger = FlowLedger(dict(self._kept.get((*key, block.protocol), {})))
                flow = Flow(block, source, destination, address)
                want = Want(flow, block.order(source_index, end_index), ledger)
                if want.is_left:
                    yield want

    def _note_chosen(self, block: Block) -> None:
        """Note who probes each destination of a part: looking for it anew takes the square."""
        if block.chosen is not None and id(block.chosen) not in self._chosen:
            by_end = self._chosen[id(block.chosen)] = {}
            for source_index, ends in enumerate(block.chosen):
                for end_index in ends:
                    by_end.setdefault(end_index, []).append(source_index)

    def _sources_of(self, block: Block, end_index: int) -> Iterable[int]:
        if block.chosen is not None:
            return self._chosen[id(block.chosen)].get(end_index, ())
        return (at for at in range(len(block.sources)) if block.has_flow(at, end_index))


def join(wants: Iterable[Want], resolved: Mapping[tuple[str, str], tuple[str, ...]]) -> list[Task]:
    """Join wants that ask for the same packets.

    ``resolved`` gives, for (source name, name), the addresses that the source resolved.
    """
    groups: dict[TaskKey, list[Want]] = {}
    for want in wants:
        block = want.flow.block
        denied = block.requirement.expect == "denied"
        for address in addresses(want, resolved):
            key = (
                want.flow.source.name, address, block.protocol, block.requirement.probe, denied,
                block.existing, want.server_name, want.via,
            )  # fmt: skip
            if want.left(address) is not None:
                groups.setdefault(key, []).append(want)
    return [_make_task(key, members) for key, members in groups.items()]


def addresses(want: Want, resolved: Mapping[tuple[str, str], tuple[str, ...]]) -> tuple[str, ...]:
    """Give the IP addresses that the flow goes to; none where its name was not resolved.

    A name that a proxy resolves stays a name.
    """
    address = want.flow.address
    if address.family is not None or want.via is not None:
        return (address.text,)
    found = resolved.get((want.flow.source.name, address.text), ())
    family = want.flow.block.requirement.family
    return tuple(one for one in found if family is None or family_of(one) == family)


def is_left(task: Task, ports: Ports) -> bool:
    """Tell whether a want of the task lacks its result at one of these ports."""
    return any(want.left_of(ports, task.address) is not None for want in task.wants)


def list_left(tasks: Iterable[Task]) -> list[Task]:
    """Give the tasks, less the ports that have their results in every want."""
    found = []
    for task in tasks:
        lacking = [want.left_of(task.ports, task.address) for want in task.wants]
        if left := [ports for ports in lacking if ports is not None]:
            found.append(replace(task, ports=port_sets.union(left)))
    return found


def pick_wants(wants: Iterable[Want], places: Container[PlanPlace]) -> list[Want]:
    """Give those that stand at these places of the plan."""
    return [want for want in wants if want.order in places]


def family_of(address: str) -> int:
    """4 or 6; only an IPv6 address has a colon."""
    return 6 if ":" in address else 4


def _make_task(key: TaskKey, members: list[Want]) -> Task:
    _, address, protocol, probe, denied, existing, server_name, via = key
    ports = port_sets.normalise(entry for want in members for entry in want.left(address) or ())
    source = members[0].flow.source
    return Task(
        source, address, family_of(address), protocol, probe, denied, ports, tuple(members),
        server_name, via, existing,
    )  # fmt: skip
