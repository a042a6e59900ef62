"""A destination and its source, both fake agents, and the evidence that is emitted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from netprobe.agent.wire.answers import (
    Closed,
    Listening,
    Seen,
    Walked,
)
from netprobe.agent.wire.host_messages import (
    Egress,
    EgressOrder,
    ReturnPath,
    ReturnPathOrder,
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    CloseOrder,
    EchoOrder,
    HeldOrder,
    ListenOrder,
    ProbeOrder,
    SeenOrder,
    WalkOrder,
)
from netprobe.agent.wire.parts import HeldPorts, OrderArrivals, OutcomeKind
from netprobe.errors import AgentError
from netprobe.judge.verdict import Rules, judge
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Evidence
from netprobe.model.inventory import Host
from netprobe.model.ports import Ports
from netprobe.probe.agents.decode import Heard, ProbeReply
from netprobe.probe.destination import Destination
from netprobe.probe.flows.address_locks import Alone
from netprobe.probe.flows.reachability import Answered
from netprobe.probe.flows.work import FlowLedger, Want
from netprobe.probe.settings import ProbeSettings
from tests.patience import PATIENCE_S
from tests.probe.builders import (
    SOURCE,
    TARGET,
)
from tests.probe.fakes import (
    FakeAgent,
    FakeFleet,
    FakePipe,
    Script,
    kind,
    listening_block,
    reply,
    routed,
)

SILENCE = kind(failure="no-answer", left=True)
REFUSED = kind(failure="refused")
UNASKED = kind(answer="unasked")
ECHO = kind(op="answer", answer="echo", ttl=60)

# What a port says to a mode of probe: ``tell(mode, port)``.
Tell = Callable[[str, int], OutcomeKind]


def open_to_us(mode: str, port: int) -> OutcomeKind:
    """Our listeners answer; a firewall drops everything else."""
    return kind(op="answer", answer="nonce", by=1, ttl=60) if mode == "nonce" else SILENCE


def open_to_nonces(mode: str, port: int) -> OutcomeKind:
    """Our listeners answer; without one nothing listens."""
    return kind(op="answer", answer="nonce", by=1, ttl=60) if mode == "nonce" else REFUSED


class Source(FakeAgent):
    """An agent that can be held up before the answer of an order."""

    def __init__(self, host: Host, scripts: dict[type[Any], Script]) -> None:
        super().__init__(host, scripts)
        self.stops_at: Callable[[Any], bool] = lambda order: False
        self.waits = asyncio.Event()

    async def probe(self, order: ProbeOrder | EchoOrder, heard: Heard | None = None) -> ProbeReply:
        found = await super().probe(order, heard)
        if self.stops_at(order):
            self.waits.set()
            await asyncio.Event().wait()
        return found


class World:
    """A source and a destination, and the evidence that was emitted. ``log`` has every order."""

    def __init__(
        self,
        tell: Tell = open_to_nonces,
        echo: OutcomeKind = ECHO,
        *others: FakeAgent,
        with_agent: bool = True,
        source: Host = SOURCE,
        target: Host = TARGET,
    ) -> None:
        self._host = target
        self.log: list[Any] = []
        self.emitted: list[tuple[Want, list[Evidence]]] = []
        self.held: list[HeldPorts] = []
        self.answered = Answered()
        self.source = Source(source, self._noting(self._source_scripts(tell, echo)))
        self.source.pipes = lambda _: FakePipe(failure="refused")
        self.target = FakeAgent(target, self._noting(self._target_scripts()))
        if not with_agent:
            self.target = FakeAgent(target, hello=None)
        self.fleet = FakeFleet([self.source, self.target, *others])

    def _noting(self, scripts: dict[type[Any], Script]) -> dict[type[Any], Script]:
        def note(script: Script) -> Script:
            def carry_out(order: Any) -> Any:
                self.log.append(order)
                return script(order)

            return carry_out

        return {kind: note(script) for kind, script in scripts.items()}

    def _source_scripts(self, tell: Tell, echo: OutcomeKind) -> dict[type[Any], Script]:
        return {
            ProbeOrder: lambda order: reply(order, lambda port: tell(order.blocks[0].mode, port)),
            EchoOrder: lambda order: reply(order, echo),
            RouteOrder: routed(),
            WalkOrder: lambda order: Walked(order.id, [], False, None, None),
            EgressOrder: lambda order: Egress(order.id, "eth0", None, None, None, True, None),
        }

    def _target_scripts(self) -> dict[type[Any], Script]:
        def listen(order: ListenOrder) -> Listening:
            return Listening(
                order.id, [listening_block(up=block.ports or [(0, 0)]) for block in order.blocks]
            )

        def hold(order: HeldOrder) -> Listening:
            return Listening(order.id, [listening_block(held=self.held)] * len(order.blocks))

        def see(order: SeenOrder) -> Seen:
            asked = {one.id: one for one in self.source.orders(ProbeOrder)}
            heard = [
                OrderArrivals(number, asked[number].blocks[0].ports, ["10.0.0.1"], None)
                for number in order.orders
                if number in asked and asked[number].blocks[0].mode == "nonce"
            ]
            return Seen(order.id, heard, [], [], [])

        return {
            ListenOrder: listen,
            HeldOrder: hold,
            SeenOrder: see,
            CloseOrder: lambda order: Closed(order.id),
            RouteOrder: routed(source="10.0.0.2"),
            ReturnPathOrder: lambda order: ReturnPath(
                order.id, "eth0", None, "known", None, [], None
            ),
        }

    def lose_target_at(self, order: type[Any]) -> None:
        """The destination's agent is lost when it gets this order."""

        def lose(_: Any) -> Any:
            self.target.lost = True
            raise AgentError("agent-lost", "gone")

        self.target.scripts[order] = lose

    def make(self, settings: ProbeSettings | None = None) -> Destination:
        return Destination(
            self._host, self.fleet, settings or ProbeSettings(), self.answered, Alone(),
            lambda want, found: self.emitted.append((want, found)),
        )  # fmt: skip

    async def run(self, *wants: Want, settings: ProbeSettings | None = None) -> list[Evidence]:
        """The evidence of these flows; each is emitted once."""
        # What was told of a want in another world was told there.
        fresh = [replace(one, ledger=FlowLedger(dict(one.ledger.ports))) for one in wants]
        async with asyncio.timeout(PATIENCE_S):
            await self.make(settings).run(fresh)
        assert [want for want, _ in self.emitted] == list(wants)
        return self.evidence

    @property
    def evidence(self) -> list[Evidence]:
        return [one for _, found in self.emitted for one in found]

    def sent(self, kind: type[Any]) -> list[Any]:
        return [order for order in self.log if isinstance(order, kind)]


def verdicts(found: list[Evidence]) -> set[str]:
    """What the judge makes of it."""
    return {result.verdict for one in found for result in judge(one, (0, 0, 0), Rules())}


def answers(found: list[Evidence]) -> dict[Ports, str | None]:
    """What came back, by ports."""
    return {
        one.ports: None if one.outcome is None else one.outcome.answer or one.outcome.failure
        for one in found
    }


def assert_whole(world: World) -> None:
    """Every port of every flow has evidence, once."""
    for want, found in world.emitted:
        ports = want.flow.block.ports
        assert port_sets.union(one.ports for one in found) == port_sets.normalise(ports)
        assert sum(port_sets.count(one.ports) for one in found) == port_sets.count(ports)
        assert found
