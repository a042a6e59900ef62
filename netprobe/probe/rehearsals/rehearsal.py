"""What a rehearsal is, and what it knows of the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from netprobe.errors import AgentError
from netprobe.model.balanced import BalancerFacts
from netprobe.model.evidence import Evidence
from netprobe.model.plan import Block, Flow
from netprobe.model.rehearsed import OverlayFacts
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.work import family_of

# What agents saw that played something.
RehearsedFacts = OverlayFacts | BalancerFacts
# Matrix, row, source, destination, family of addresses.
RowKey = tuple[str, str, str, str, int]


class NotPlayedError(Exception):
    """A flow that is not rehearsed. ``reason``: of a result that is not tested; None: it is skipped
    on purpose, and the text says why."""

    def __init__(self, reason: str | None, words: str) -> None:
        super().__init__(words)
        self.reason = reason


class RowArrivals(Struct, frozen=True):
    """Whether the packets of rows arrived in this run, as their own probes tell."""

    known: dict[RowKey, bool] = field(default_factory=dict)

    def note(self, found: Iterable[Evidence]) -> None:
        """Remember what became of the probes of rows."""
        for one in found:
            arrived = _has_arrived(one)
            if arrived is not None:
                self.known[_key_of(one.flow, one.address)] = arrived

    def of_row(self, flow: Flow, address: str) -> bool | None:
        """Tell whether the row's own packets arrived there; None: nobody knows."""
        return self.known.get(_key_of(flow, address))

    def of_way_back(self, flow: Flow, address: str) -> bool | None:
        """Tell the same of the row's packets from the destination to the source."""
        matrix, row, source, destination, family = _key_of(flow, address)
        return self.known.get((matrix, row, destination, source, family))


def _has_arrived(one: Evidence) -> bool | None:
    if one.outcome is None:
        return None
    if one.outcome.answer is not None or (one.witness is not None and one.witness.socket):
        return True
    return False if one.listener.state == "ours" else None


def _key_of(flow: Flow, address: str) -> RowKey:
    row = flow.block.requirement.id.partition("/")[0]
    return (
        flow.block.matrix, row, flow.source.name, flow.destination.name, family_of(address),
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
    """One that is played once for all flows to one port of an address."""

    @abstractmethod
    async def play_together(self, stages: Sequence[Stage]) -> list[Played]:
        """Play it, and give what was seen of each flow. All that was made is gone then.

        Raises NotPlayedError, and AgentError where an agent is gone that all need.
        """
