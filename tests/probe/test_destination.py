"""One destination from the first packet to the evidence of every flow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from netprobe.agent.wire.answers import (
    Capturing,
    Closed,
    Egress,
    Listening,
    Resolved,
    ReturnPath,
    Seen,
    TxCounted,
    Walked,
)
from netprobe.agent.wire.orders import (
    CaptureOrder,
    CloseOrder,
    EchoOrder,
    EgressOrder,
    HeldOrder,
    ListenOrder,
    ProbeOrder,
    ResolveOrder,
    ReturnPathOrder,
    RouteOrder,
    SeenOrder,
    TxCountOrder,
    WalkOrder,
)
from netprobe.agent.wire.parts import HeldPorts, OrderArrivals, OutcomeKind
from netprobe.errors import AgentError
from netprobe.judge.verdict import Rules, judge
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Evidence, Outcome
from netprobe.model.inventory import Address, Host
from netprobe.model.plan import PATH_MTU
from netprobe.model.ports import Ports
from netprobe.probe import destination as destination_module
from netprobe.probe.agents.decode import ProbeReply
from netprobe.probe.destination import Destination, interrupted
from netprobe.probe.flows.address_locks import Alone
from netprobe.probe.flows.reachability import Answered
from netprobe.probe.flows.work import STOPPED, Task, Want
from netprobe.probe.settings import ProbeSettings
from tests.probe.builders import (
    ROUTER,
    SOURCE,
    TARGET,
    make_observation,
    make_task,
    make_want,
)
from tests.probe.fakes import (
    FakeAgent,
    FakeFleet,
    Script,
    host,
    icmp,
    kind,
    listening_block,
    reply,
    routed,
)

SILENCE = kind(failure="no-answer", left=True)
REFUSED = kind(failure="refused")
UNASKED = kind(answer="unasked")
ECHO = kind(op="answer", answer="echo", ttl=60)
TIME_S = 10.0

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

    async def probe(self, order: ProbeOrder | EchoOrder) -> ProbeReply:
        found = await super().probe(order)
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
    ) -> None:
        self.log: list[Any] = []
        self.emitted: list[tuple[Want, list[Evidence]]] = []
        self.final = 0
        self.held: list[HeldPorts] = []
        self.answered = Answered()
        self.source = Source(source, self._noting(self._source_scripts(tell, echo)))
        self.target = FakeAgent(TARGET, self._noting(self._target_scripts()))
        if not with_agent:
            self.target = FakeAgent(TARGET, hello=None)
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
            WalkOrder: lambda order: Walked(order.id, [], False, None),
            TxCountOrder: lambda order: TxCounted(order.id, 64, 64, "eth0"),
            EgressOrder: lambda order: Egress(order.id, "eth0", None, None, None),
            CaptureOrder: lambda order: Capturing(order.id, "not-permitted"),
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
            return Seen(order.id, heard, [], [])

        return {
            ListenOrder: listen,
            HeldOrder: hold,
            SeenOrder: see,
            CloseOrder: lambda order: Closed(order.id),
            RouteOrder: routed(source="10.0.0.2"),
            CaptureOrder: lambda order: Capturing(order.id, "not-permitted"),
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
            TARGET, self.fleet, settings or ProbeSettings(), self.answered, Alone(),
            lambda want, found: self.emitted.append((want, found)),
        )  # fmt: skip

    async def run(self, *wants: Want, settings: ProbeSettings | None = None) -> list[Evidence]:
        """The evidence of these flows; each is emitted once, after the end was told."""

        def end() -> None:
            assert self.emitted == []
            self.final += 1

        async with asyncio.timeout(TIME_S):
            await self.make(settings).run(wants, end)
        assert self.final == 1
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


async def test_listeners_of_ours_answer_the_probes() -> None:
    """They are opened before the probes and closed after them."""
    world = World()

    (found,) = await world.run(make_want("tcp", ((5, 9),)))

    assert (found.address, found.ports, found.listener.state) == ("10.0.0.2", ((5, 9),), "ours")
    assert found.outcome is not None
    assert (found.outcome.answer, found.outcome.answered_by) == ("nonce", "b")
    assert (found.has_address, found.control_answered, found.host_up) == (True, True, True)
    assert found.witness is not None
    assert found.witness.socket
    assert [type(order) for order in world.log] == [ListenOrder, ProbeOrder, SeenOrder, CloseOrder]
    assert verdicts([found]) == {"pass"}
    assert [entry.name for entry in found.trail] == ["probe", "arrivals"]
    # Where all was answered nobody needs to ask whose the address is.
    assert world.target.orders(RouteOrder) == []


async def test_without_an_agent_the_ports_are_only_connected_to() -> None:
    """What listens there nobody knows."""
    world = World(lambda mode, port: UNASKED if port == 5 else REFUSED, with_agent=False)

    found = await world.run(make_want("tcp", ((5, 6),)))

    assert answers(found) == {((5, 5),): "unasked", ((6, 6),): "refused"}
    assert {one.listener.state for one in found} == {"unknown"}
    assert {block.mode for order in world.sent(ProbeOrder) for block in order.blocks} == {"connect"}
    assert not found[0].has_address
    assert_whole(world)


@pytest.mark.parametrize("order", [ListenOrder, SeenOrder])
async def test_an_agent_that_is_lost_in_a_round_spoils_nothing(order: type[Any]) -> None:
    """Its ports are probed again without listeners, and the flows say that it was lost.

    The listeners are asked at the end: a nonce that came before does not count.
    """
    world = World(open_to_us)
    world.lose_target_at(order)

    found = await world.run(make_want("tcp", ((5, 9),)))

    assert {one.listener.state for one in found} == {"lost"}
    assert answers(found) == {((5, 9),): "no-answer"}
    assert "pass" not in verdicts(found)
    modes = [one.blocks[0].mode for one in world.sent(ProbeOrder)]
    assert modes.count("nonce") == (0 if order is ListenOrder else 1)
    assert_whole(world)


async def test_an_agent_that_is_lost_during_the_probes_is_noticed() -> None:
    """Whether the listeners were there to the end is always asked."""
    world = World(open_to_us)
    answer = world.source.scripts[ProbeOrder]

    def lose(order: ProbeOrder) -> Any:
        world.target.lost = True
        return answer(order)

    world.source.scripts[ProbeOrder] = lose

    found = await world.run(make_want())

    assert [one.listener.state for one in found] == ["lost"]
    assert "pass" not in verdicts(found)


async def test_a_slow_start_holds_nobody_up() -> None:
    """A host that is not ready by then is probed without listeners."""
    world = World(lambda mode, port: UNASKED)

    async def never() -> None:
        await asyncio.Event().wait()

    world.target.wait_ready = never  # type: ignore[method-assign]  # a script

    (found,) = await world.run(make_want(), settings=ProbeSettings(ready_s=0.01))

    assert found.listener.state == "unknown"


async def test_denied_ports_are_looked_at_before_any_listener_is_open() -> None:
    """Our own listeners would answer them."""
    world = World()
    denied = make_want("tcp", ((22, 22),), order=(1, 0, 0), expect="denied")

    await world.run(make_want("tcp", ((22, 23),)), denied)

    kinds = (ProbeOrder, ListenOrder, SeenOrder, CloseOrder)
    assert [type(order) for order in world.log if isinstance(order, kinds)] == [
        ProbeOrder, ListenOrder, ProbeOrder, SeenOrder, CloseOrder,
    ]  # fmt: skip
    (first, second) = world.sent(ProbeOrder)
    assert (first.blocks[0].mode, first.blocks[0].ports) == ("connect", [(22, 22)])
    assert second.blocks[0].ports == [(22, 23)]
    (_, by_denied) = world.emitted
    assert [one.listener.state for one in by_denied[1]] == ["unknown"]
    assert answers(by_denied[1]) == {((22, 22),): "refused"}


async def test_requirements_that_share_packets_get_their_own_ports() -> None:
    """One probe is evidence for all who want it, and for nobody else."""
    world = World()
    first, second = make_want("tcp", ((1, 5),)), make_want("tcp", ((4, 5), (8, 9)), order=(1, 0, 0))

    await world.run(first, second)

    assert [[one.ports for one in found] for _, found in world.emitted] == [
        [((1, 5),)],
        [((4, 5),), ((8, 9),)],
    ]
    assert len(world.sent(ProbeOrder)) == 1


async def test_what_an_earlier_run_knows_is_not_emitted_again() -> None:
    """Its final results are kept."""
    world = World()

    found = await world.run(make_want("tcp", ((1, 9),), kept={"10.0.0.2": ((2, 8),)}))

    assert [one.ports for one in found] == [((1, 1),), ((9, 9),)]


async def test_without_listening_only_the_holders_are_asked() -> None:
    """--no-listen opens nothing on anybody's host."""
    world = World()

    (found,) = await world.run(make_want(), settings=ProbeSettings(listen=False))

    assert world.sent(ListenOrder) == []
    assert len(world.sent(HeldOrder)) == 1
    assert found.listener.state == "closed"


async def test_many_ports_need_several_rounds() -> None:
    """One after the other; what has no ports goes with the first."""
    world = World()
    world.target._hello = world.target._hello and world.target._hello._replace(nofile=8)

    await world.run(
        make_want("tcp", ((1, 5),)),
        make_want("icmp", (), order=(1, 0, 0)),
    )

    assert [order.blocks[0].ports for order in world.sent(ListenOrder)] == [
        [(1, 2)], [(3, 4)], [(5, 5)],
    ]  # fmt: skip
    assert len(world.sent(CloseOrder)) == 3
    assert len(world.sent(EchoOrder)) == 1
    assert len({order.id for order in world.sent(ListenOrder)}) == 3
    assert_whole(world)


async def test_nothing_to_listen_on_needs_no_listen_order() -> None:
    """The kernel answers echo."""
    world = World()

    (found,) = await world.run(make_want("icmp", ()))

    assert world.sent(ListenOrder) == []
    assert found.listener.state == "closed"
    assert found.ports == ()


def holder(port: int, pid: int = 8) -> HeldPorts:
    return HeldPorts(port, port, "etcd", pid, "10.0.0.2", loopback=False)


async def test_a_port_whose_holder_went_away_gets_a_listener_of_ours() -> None:
    """Its refusal was that of a free port."""
    world = World()
    listen = world.target.scripts[ListenOrder]

    def held_at_first(order: ListenOrder) -> Any:
        if len(world.sent(ListenOrder)) == 0:
            world.log.append(order)
            return Listening(order.id, [listening_block(held=[holder(443)])])
        return listen(order)

    world.target.scripts[ListenOrder] = held_at_first

    (found,) = await world.run(make_want())

    assert (found.listener.state, answers([found])) == ("ours", {((443, 443),): "nonce"})
    assert [type(order) for order in world.log if isinstance(order, ListenOrder | HeldOrder)] == [
        ListenOrder, HeldOrder, ListenOrder,
    ]  # fmt: skip


async def test_a_port_whose_holder_changes_with_every_look_decides_nothing() -> None:
    """Some rounds, and then the flow is untested."""
    world = World()
    pids = iter(range(100))

    def restless(order: ListenOrder | HeldOrder) -> Any:
        world.log.append(order)
        return Listening(order.id, [listening_block(held=[holder(443, next(pids))])])

    world.target.scripts |= {ListenOrder: restless, HeldOrder: restless}

    (found,) = await world.run(make_want())

    assert found.outcome is None
    assert found.untested is not None
    assert found.untested[0] == "holder-changed"
    assert len(world.sent(ListenOrder)) == 1 + destination_module.HOLDER_LOOKS


async def test_a_holder_that_comes_to_rest_decides_after_all() -> None:
    """The last look counts, too."""
    world = World()
    # Of every round: who held the port at its begin, and after the refusal.
    pids = iter([1, 2, 3, 4, 5, 6, 7, 7])

    def restless(order: ListenOrder | HeldOrder) -> Any:
        return Listening(order.id, [listening_block(held=[holder(443, next(pids))])])

    world.target.scripts |= {ListenOrder: restless, HeldOrder: restless}

    (found,) = await world.run(make_want())

    assert (found.listener.owner, answers([found])) == (
        "etcd (pid 7) on 10.0.0.2", {((443, 443),): "refused"},
    )  # fmt: skip


async def test_an_address_that_the_host_has_is_not_down() -> None:
    """A late "host unreachable" may be a firewall's that waited for its turn."""
    late = kind(failure="host-unreachable", icmp=icmp(3, 1, ROUTER), elapsed_ms=3100)
    world = World(lambda mode, port: late, echo=kind(op="answer", failure="no-answer"))
    world.held = [holder(443)]
    settings = ProbeSettings(listen=False)

    (found,) = await world.run(make_want(), settings=settings)
    assert (found.has_address, found.host_down) == (True, False)

    world.emitted, world.final = [], 0
    world.target.scripts[RouteOrder] = routed(source="10.0.0.99")
    world.target._routes = {}
    (found,) = await world.run(make_want(), settings=settings)
    assert (found.has_address, found.host_down) == (False, True)


async def test_the_host_says_which_silent_addresses_are_its_own() -> None:
    """Then it is up, and silence is no dead host's."""
    world = World(lambda mode, port: SILENCE, echo=kind(op="answer", failure="no-answer"))
    world.held = [holder(443)]

    found = await world.run(make_want(), settings=ProbeSettings(listen=False))

    assert {one.listener.state for one in found} == {"live"}
    assert {(one.has_address, one.host_up) for one in found} == {(True, True)}


async def test_an_address_that_the_host_does_not_have_is_translated_on_the_way() -> None:
    """Its agent sends to it from another address."""
    world = World(lambda mode, port: SILENCE, echo=kind(op="answer", failure="no-answer"))
    world.held = [holder(443)]
    world.target.scripts[RouteOrder] = routed(source="10.0.0.99")

    found = await world.run(make_want(), settings=ProbeSettings(listen=False))

    assert {(one.has_address, one.host_up) for one in found} == {(False, False)}


async def test_a_dead_host_explains_the_silence_of_its_other_ports() -> None:
    """A check concluded it of one flow; it is known of the pair."""
    word = kind(failure="host-unreachable", icmp=icmp(3, 1, ROUTER), elapsed_ms=3100)
    world = World(
        lambda mode, port: word if port == 5 else SILENCE,
        echo=kind(op="answer", failure="no-answer"),
        with_agent=False,
    )
    # It is asked again, and the router keeps everybody waiting again.
    found = await world.run(make_want("tcp", ((5, 6),)))

    by_ports = {one.ports: one for one in found}
    assert by_ports[(5, 5),].concluded == "dead-host"
    assert by_ports[(6, 6),].conclusion is None
    assert {one.host_down for one in found} == {True}
    assert_whole(world)


async def test_a_path_and_flows_of_one_pair_are_separate_results() -> None:
    """The flows tell which packets arrive."""
    world = World()
    path = make_want("icmp", (), order=(1, 0, 0), probe=PATH_MTU)

    await world.run(make_want("udp", ((5, 5),)), path)

    (_, (flow,)), (_, (measured,)) = world.emitted
    assert answers([flow]) == {((5, 5),): "nonce"}
    assert measured.outcome == Outcome(PATH_MTU, None)
    assert measured.mtu is not None
    assert (measured.mtu.path, measured.mtu.needed) == (1500, 1500)


NAMED = replace(TARGET, addresses=(Address("b.example.com", None),))


async def test_every_address_of_a_name_is_a_result() -> None:
    """The trail says what the source's resolver answered."""
    world = World(with_agent=False)
    world.source.scripts[ResolveOrder] = lambda order: Resolved(
        order.id, ["10.0.0.2", "10.0.0.3"], None, ""
    )

    found = await world.run(make_want(target=NAMED))

    assert [one.address for one in found] == ["10.0.0.2", "10.0.0.3"]
    assert {one.trail[0].name for one in found} == {"name"}


async def test_a_name_that_the_source_cannot_resolve_is_a_result_of_its_own() -> None:
    """Nothing is sent."""
    world = World()
    world.source.scripts[ResolveOrder] = lambda order: Resolved(order.id, [], "no-name", "no such")

    (found,) = await world.run(make_want(target=NAMED))

    assert found.outcome == Outcome("resolve", "name-not-resolved", said="no such")
    assert world.sent(ProbeOrder) == []


@pytest.mark.parametrize("with_agent", [True, False])
@pytest.mark.parametrize(
    "want",
    [
        make_want("tcp", ((5, 9),)),
        make_want("udp", ((8472, 8472),), probe="vxlan"),
        make_want("icmp", ()),
        make_want("ipproto/4", ()),
        make_want("icmp", (), probe=PATH_MTU),
        make_want("tcp", ((5, 9),), expect="denied"),
        make_want(target=NAMED),
    ],
)
async def test_what_nobody_measured_never_passes(want: Want, with_agent: bool) -> None:
    """The source's agent is lost: its flows are not tested, whatever they are."""
    world = World(with_agent=with_agent)
    world.source.lost = True

    found = await world.run(want)

    assert [one.outcome for one in found] == [None] * len(found)
    assert {one.untested for one in found} == {("agent-lost", "the agent of a was lost")}
    assert verdicts(found) == {"not-tested"}
    assert_whole(world)


@pytest.mark.parametrize("order", [ListenOrder, SeenOrder, CloseOrder])
@pytest.mark.parametrize(
    "want",
    [
        make_want("udp", ((8472, 8472),), probe="vxlan"),
        make_want("ipproto/4", ()),
        make_want("tcp", ((5, 9),)),
    ],
)
async def test_whatever_is_lost_every_flow_is_emitted_once(want: Want, order: type[Any]) -> None:
    """And one-way packets, which nobody saw arrive, pass nothing."""
    world = World(lambda mode, port: kind(op="send") if mode == "send" else SILENCE)
    world.lose_target_at(order)

    found = await world.run(want)

    assert "pass" not in verdicts(found)
    assert_whole(world)


async def test_a_bug_of_the_destinations_agent_counts_as_its_loss() -> None:
    """The listeners' word is missing, though the agent is there."""
    world = World()

    def fail(_: Any) -> Any:
        raise AgentError("agent-fault", "a bug")

    world.target.scripts[SeenOrder] = fail

    found = await world.run(make_want())

    assert [one.listener.state for one in found] == ["lost"]
    assert world.sent(CloseOrder) != []


async def interrupt(world: World, *wants: Want) -> list[Evidence]:
    """Cancel the destination while an order is out."""
    ended: list[int] = []
    running = asyncio.create_task(world.make().run(wants, lambda: ended.append(1)))
    async with asyncio.timeout(TIME_S):
        await world.source.waits.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert ended == [1]
    assert [want for want, _ in world.emitted] == list(wants)
    return world.evidence


async def test_an_interrupt_keeps_what_is_proven() -> None:
    """A nonce needs no second look; everything else is not final yet."""
    world = World(lambda mode, port: open_to_nonces(mode, port) if port == 5 else SILENCE)
    world.source.stops_at = lambda order: isinstance(order, ProbeOrder) and order.proto == "udp"

    await interrupt(
        world, make_want("tcp", ((5, 6),)), make_want("udp", ((7, 7),), order=(1, 0, 0))
    )

    (_, tcp), (_, udp) = world.emitted
    assert answers(tcp) == {((5, 5),): "nonce", ((6, 6),): None}
    assert [one.untested for one in tcp] == [None, STOPPED]
    assert [one.untested for one in udp] == [STOPPED]
    assert_whole(world)


async def test_an_interrupt_closes_the_listeners() -> None:
    """They answered for a run that is over."""
    world = World()
    world.source.stops_at = lambda order: True

    found = await interrupt(world, make_want())

    assert [type(order) for order in world.log][-1] is CloseOrder
    assert [one.untested for one in found] == [STOPPED]


def finished(outcome: Outcome, task: Task, ports: Ports | None = None) -> Any:
    part = task if ports is None else replace(task, ports=ports)
    return replace(make_observation(outcome, part, listener="ours"), task=task)


NONCE = Outcome("answer", None, answer="nonce")


@pytest.mark.parametrize(
    ("outcome", "kept"),
    [
        (NONCE, True),
        (Outcome("answer", None, answer="echo"), True),
        (Outcome("connect", None, answer="unasked"), False),
        (Outcome("connect", "refused"), False),
        (Outcome("connect", "no-answer"), False),
        (Outcome("send", None), False),
    ],
)
def test_only_an_answer_that_needs_no_second_look_is_proven(outcome: Outcome, kept: bool) -> None:
    """Silence and refusals are not final before the checks."""
    task = make_task("tcp", ((5, 9),))

    found = interrupted([task], [finished(outcome, task, ((5, 6),))])

    expected: list[tuple[Ports, Any]] = [(((5, 6),), None), (((7, 9),), STOPPED)]
    assert [(one.ports, one.untested) for one in found] == (
        expected if kept else [(((5, 9),), STOPPED)]
    )


def test_a_denied_port_that_answered_is_not_final() -> None:
    """It would be a finding; a look at it is cut short."""
    task = make_task("tcp", ((5, 9),), expect="denied")

    assert [(one.ports, one.untested) for one in interrupted([task], [finished(NONCE, task)])] == [
        (((5, 9),), STOPPED)
    ]


def test_a_flow_without_ports_is_proven_or_stopped() -> None:
    """One answer is all there is."""
    task = make_task("icmp", ())
    echo = Outcome("answer", None, answer="echo")

    assert [one.untested for one in interrupted([task], [finished(echo, task)])] == [None]
    assert [one.untested for one in interrupted([task], [])] == [STOPPED]


def test_a_port_that_was_asked_again_is_proven_once() -> None:
    """A limit of new connections is measured against a port that is known to answer."""
    task = make_task("tcp", ((5, 9),))
    again = [finished(NONCE, task, ports) for ports in (((5, 6),), ((6, 6),), ((6, 7),))]

    found = interrupted([task], again)

    assert [(one.ports, one.untested) for one in found] == [
        (((5, 6),), None), (((7, 7),), None), (((8, 9),), STOPPED),
    ]  # fmt: skip
    echo = make_task("icmp", ())
    twice = [finished(Outcome("answer", None, answer="echo"), echo)] * 2
    assert len(interrupted([echo], twice)) == 1


def test_what_is_proven_of_one_flow_proves_no_other() -> None:
    """Flows differ by source, address, protocol, packet and the name that TLS asks for."""
    mine = make_task("tcp", ((443, 443),), probe="kube-apiserver", sni="a.lab.test")
    others = [
        make_task("tcp", ((443, 443),), probe="kube-apiserver", sni="b.lab.test"),
        make_task("tcp", ((443, 443),)),
        make_task("udp", ((443, 443),)),
        make_task("tcp", ((443, 443),), target=host("b", "10.0.0.3")),
        make_task("tcp", ((443, 443),), source=host("c", "10.0.0.1")),
    ]

    found = interrupted([mine, *others], [finished(NONCE, mine)])

    assert [one.untested for one in found if one.task is mine] == [None]
    assert [one.task for one in found if one.untested == STOPPED] == others
