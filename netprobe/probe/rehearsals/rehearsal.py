"""What a rehearsal is, and what it knows of the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field

from netprobe.errors import AgentError
from netprobe.model.evidence import Evidence, RehearsedFacts
from netprobe.model.plan import Block, Flow, Plan, Skipped, find_row
from netprobe.model.ports import PortRange, Ports
from netprobe.model.reasons import find_reason
from netprobe.model.result import Result
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.work import family_of

# Matrix, row, protocol, source, destination, family of addresses.
RowKey = tuple[str, str, str, str, str, int]
# Of a key, whether packets to these ports of this address arrived.
PortArrivals = dict[tuple[str, PortRange], bool]

# Gets what is left out on purpose, and how many ports.
SkipFlow = Callable[[Skipped, int], None]


class NotPlayedError(Exception):
    """A flow that is not rehearsed. ``reason``: of a result that is not tested; None: it is skipped
    on purpose, and the text says why."""

    def __init__(self, reason: str | None, words: str) -> None:
        super().__init__(words)
        self.reason = reason


class RowArrivals(Struct, frozen=True):
    """Whether the packets of rows arrived in this run, as their own probes tell; each port by
    itself, because a firewall may stop one port of a row and not the others.

    ``rows``: those that are rehearsed; of others nothing is kept.
    """

    known: dict[RowKey, PortArrivals] = field(default_factory=dict)
    rows: set[tuple[str, str]] = field(default_factory=set)

    def expect(self, plan: Plan) -> None:
        """Keep from now on what becomes of the rows that this plan rehearses."""
        self.rows.update(
            (block.matrix, find_row(block.requirement.id))
            for block in plan.blocks
            if block.rehearsal is not None
        )

    def note(self, found: Iterable[Evidence]) -> None:
        """Remember what became of the probes of rows."""
        for one in found:
            arrived = _has_arrived(one)
            if arrived is not None:
                self._note_ports(_key_of(one.flow, one.address), one.address, one.ports, arrived)

    def note_kept(self, result: Result) -> None:
        """Remember what became of them in the earlier run that this one goes on with."""
        arrived = _had_arrived(result)
        if arrived is not None:
            key = (
                result.matrix, result.requirement, result.protocol, result.source,
                result.destination, family_of(result.address),
            )  # fmt: skip
            self._note_ports(key, result.address, result.ports, arrived)

    def _note_ports(self, key: RowKey, address: str, ports: Ports, arrived: bool) -> None:
        if key[:2] in self.rows:
            noted = self.known.setdefault(key, {})
            # What has no ports has one flow.
            noted.update(((address, part), arrived) for part in ports or ((0, 0),))

    def of_row(self, flow: Flow, address: str, port: int) -> bool | None:
        """Tell whether the row's own packets arrived at this port there; None: nobody knows."""
        noted = self.known.get(_key_of(flow, address), {})
        return _find_common(
            arrived for (end, ports), arrived in noted.items()
            if end == address and ports[0] <= port <= ports[1]
        )  # fmt: skip

    def of_way_back(self, flow: Flow, address: str, port: int) -> bool | None:
        """Tell the same of the row's packets from the destination to the source's addresses."""
        matrix, row, protocol, source, destination, family = _key_of(flow, address)
        noted = self.known.get((matrix, row, protocol, destination, source, family), {})
        return _find_common(
            arrived for (_, ports), arrived in noted.items() if ports[0] <= port <= ports[1]
        )


def _find_common(fates: Iterable[bool]) -> bool | None:
    """Give what all of them are; None: there is none, or they differ."""
    different = {*fates}
    return different.pop() if len(different) == 1 else None


def _has_arrived(one: Evidence) -> bool | None:
    if one.outcome is None:
        return None
    if one.outcome.answer is not None or (one.witness is not None and one.witness.socket):
        return True
    return False if one.listener.state == "ours" else None


def _had_arrived(result: Result) -> bool | None:
    if result.verdict == "pass":
        return True
    # What else is kept of a row failed for certain.
    if find_reason(result.reason).of_port:
        return None
    return result.where == ("return-path",)


def _key_of(flow: Flow, address: str) -> RowKey:
    block = flow.block
    return (
        block.matrix, find_row(block.requirement.id), block.protocol, flow.source.name,
        flow.destination.name, family_of(address),
    )  # fmt: skip


class Stage(Struct, frozen=True):
    """One flow that is rehearsed: its address and port, the agents, and what the run knows."""

    flow: Flow
    address: str
    port: int
    source_address: str | None
    fleet: Fleet
    arrivals: RowArrivals


class Rehearsal(ABC):
    """A part of the platform that agents play for a moment."""

    @abstractmethod
    async def try_alone(self, agent: AgentMethods, block: Block, fleet: Fleet) -> str | None:
        """Try what one host can do by itself, and give what it lacks; None: nothing.

        Raises AgentError.
        """

    def name_group(self, stage: Stage) -> tuple[object, ...]:
        """Give what flows share that are played together."""
        block = stage.flow.block
        back_ends = tuple(host.name for host in block.back_ends)
        end = stage.flow.destination.name, stage.address
        return *end, block.protocol, stage.port, back_ends


class PairRehearsal(Rehearsal):
    """One that is played for each flow by itself."""

    @abstractmethod
    async def play(self, stage: Stage) -> RehearsedFacts:
        """Play it for one flow, and give what was seen. All that was made is gone then.

        Raises NotPlayedError, and AgentError where an agent is gone.
        """


# What a flow's part in a rehearsal of several showed, or why it showed nothing.
Played = RehearsedFacts | NotPlayedError | AgentError


class TogetherRehearsal(Rehearsal):
    """One that is played once for several flows, such as all to one port of an address."""

    @abstractmethod
    def list_ports(self, stage: Stage) -> tuple[int, ...]:
        """List the TCP ports that it needs of each back end, for itself alone."""

    @abstractmethod
    async def play_together(self, stages: Sequence[Stage]) -> list[Played]:
        """Play it, and give what was seen of each flow. All that was made is gone then.

        Raises NotPlayedError, and AgentError where an agent is gone that all need.
        """
