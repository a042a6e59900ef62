"""The whole probe stage, over links that answer from a script."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from netprobe.agent.wire.answers import Closed, Listening, Seen, Walked
from netprobe.agent.wire.host_messages import (
    Egress,
    EgressOrder,
    PacketCounts,
    PacketCountsOrder,
    Resolved,
    ResolveOrder,
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    CloseOrder,
    ListenOrder,
    ProbeOrder,
    RateOrder,
    SeenOrder,
    WalkOrder,
)
from netprobe.agent.wire.parts import OrderArrivals
from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Evidence
from netprobe.model.inventory import Host, Inventory, Vantage
from netprobe.model.plan import Plan
from netprobe.model.ports import Ports
from netprobe.model.result import HostReport
from netprobe.plan.expand import make_plan
from netprobe.probe import collect as collect_module
from netprobe.probe.agents.live_fleet import open_fleet
from netprobe.probe.collect import ListedFlows, collect, list_hosts
from netprobe.probe.destination import Destination
from netprobe.probe.flows.listeners import Origins
from netprobe.probe.flows.room import Room
from netprobe.probe.flows.work import STOPPED, PlanPlace, Want, WantKey, Work
from netprobe.probe.settings import ProbeSettings
from netprobe.vantage.launch import Launcher
from netprobe.vantage.link import AgentLink
from tests.patience import PATIENCE_S
from tests.plan.conftest import TODAY, chosen_matrix, requirement
from tests.plan.conftest import host as plan_host
from tests.probe.fakes import HELLO, kind, listening_block, reply, routed
from tests.probe.links import FakeLink, start_by

PORTS = ((5, 9),)


def plan_of(*names: str) -> Plan:
    """Every host probes every other."""
    hosts = [
        plan_host(name, "node", addresses=(f"10.0.0.{number}",))
        for number, name in enumerate(names, 1)
    ]
    wanted = requirement("x", "node", "node", tcp=PORTS)
    return make_plan([chosen_matrix([wanted])], Inventory(tuple(hosts)), TODAY)


class World:
    """The run of a plan; ``start`` may hold up or fail the start of a host, and ``probe`` an order.

    ``most``: how many destinations had their listeners open at once.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
        self.plan = plan
        self.links: dict[str, FakeLink] = {}
        self.reports: list[HostReport] = []
        self.emitted: list[tuple[Want, list[Evidence]]] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.failing: set[str] = set()
        # What the agents answer otherwise than here.
        self.scripts: dict[type[Any], Any] = {}
        self.stops_at: Callable[[str, ProbeOrder], bool] = lambda source, order: False
        self.stopped = asyncio.Event()
        # Set once so many flows have been emitted.
        self.enough = asyncio.Event()
        self.count = 0
        self.most = 0
        self._open = 0
        start_by(monkeypatch, self._start)

    async def _start(self, one: Host) -> AgentLink:
        if one.name in self.gates:
            await self.gates[one.name].wait()
        if one.name in self.failing:
            raise AgentError("no-python", f"{one.name}: no Python")
        # Without the right to capture.
        hello = HELLO._replace(net_raw=False)
        link = self.links[one.name] = FakeLink(one.name, self._scripts(), hello)
        made = link._make_outcomes

        async def stream(order: Any, answer: type[Any]) -> Any:
            link.sent.append(order)
            await asyncio.sleep(0)
            if self.stops_at(one.name, order):
                self.stopped.set()
                await asyncio.Event().wait()
            for found in made(order):
                yield found

        link.stream = stream  # type: ignore[method-assign]  # one that can be held up
        return link

    def _scripts(self) -> dict[type[Any], Any]:
        names = [host.name for host in Work(self.plan).sources]
        addresses = {host.addresses[0].text: host.name for host in Work(self.plan).destinations}

        def probe(order: ProbeOrder) -> Any:
            index = names.index(addresses[order.dst])
            answer = kind(op="answer", answer="nonce", by=index, ttl=60)
            silence = kind(failure="no-answer")
            return reply(order, answer if order.blocks[0].mode == "nonce" else silence)

        def listen(order: ListenOrder) -> Listening:
            self._open += 1
            self.most = max(self.most, self._open)
            return Listening(order.id, [listening_block(up=block.ports) for block in order.blocks])

        def close(order: CloseOrder) -> Closed:
            self._open -= 1
            return Closed(order.id)

        return {
            ProbeOrder: probe,
            ListenOrder: listen,
            CloseOrder: close,
            RouteOrder: routed(),
            PacketCountsOrder: lambda order: PacketCounts(order.id, None, None, None),
            EgressOrder: lambda order: Egress(order.id, "eth0", None, None, None, True, None),
            WalkOrder: lambda order: Walked(order.id, [], False, None, None),
            SeenOrder: lambda order: Seen(
                order.id,
                [OrderArrivals(number, [(1, 65535)], [], None) for number in order.orders],
                [], [], [],
            ),
            **self.scripts,
        }  # fmt: skip

    async def run(
        self, settings: ProbeSettings | None = None, done: dict[WantKey, Ports] | None = None
    ) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self._collect(settings, done)

    async def interrupt(self, when: asyncio.Event | None = None) -> None:
        """Cancel the run at this moment, or before its first step."""
        running = asyncio.create_task(self._collect(None, None))
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.sleep(0)
            if when is not None:
                await when.wait()
            for _ in range(20):
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    async def _collect(self, settings: ProbeSettings | None, done: Any) -> None:
        async with open_fleet(list_hosts(self.plan), Launcher(), self.reports.append) as fleet:
            await collect(self.plan, settings or ProbeSettings(), fleet, self._emit, done)

    def _emit(self, want: Want, found: list[Evidence]) -> None:
        self.emitted.append((want, found))
        if len(self.emitted) == self.count:
            self.enough.set()

    @property
    def orders(self) -> Counter[PlanPlace]:
        """How often every flow was emitted."""
        return Counter(want.order for want, _ in self.emitted)

    def words(self) -> Counter[str]:
        """What became of the ports of all flows."""
        found: Counter[str] = Counter()
        for _, some in self.emitted:
            for one in some:
                word = one.untested[0] if one.untested else one.outcome and one.outcome.answer
                found[word or "silent"] += port_sets.count(one.ports)
        return found


def all_orders(plan: Plan) -> Counter[PlanPlace]:
    work = Work(plan)
    return Counter(want.order for host in work.destinations for want in work.wants(host))


async def test_every_flow_is_emitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And every agent is ended."""
    world = World(monkeypatch, plan_of("a", "b", "c"))

    await world.run()

    assert world.orders == all_orders(world.plan)
    assert len(world.orders) == 6
    assert world.words() == {"nonce": 6 * 5}
    assert all(link.closed for link in world.links.values())
    assert [report.state for report in world.reports] == ["agent"] * 3


async def test_a_host_that_does_not_start_fails_its_own_flows_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a source it tests nothing; as a destination it is probed without listeners."""
    monkeypatch.setattr(collect_module, "PROMPT_S", PATIENCE_S)
    world = World(monkeypatch, plan_of("a", "b", "c"))
    world.failing = {"b"}

    await world.run()

    assert world.orders == all_orders(world.plan)
    assert world.words() == {"nonce": 10, "no-python": 10, "silent": 10}


async def test_late_sources_do_not_hold_prompt_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is probed; the rest follows in a round of its own."""
    monkeypatch.setattr(collect_module, "PROMPT_S", 0.01)
    world = World(monkeypatch, plan_of("a", "b", "late"))
    gate = world.gates["late"] = asyncio.Event()
    settings = ProbeSettings(ready_s=0.01)
    origins: dict[str, list[Origins]] = {}
    real = Destination.run

    async def run(self: Destination, wants: list[Want], *, holds: bool = False) -> None:
        origins.setdefault(wants[0].flow.destination.name, []).append(self.origins)
        await real(self, wants, holds=holds)

    monkeypatch.setattr(Destination, "run", run)
    # a and b to each other, and both to the late one, which has no listeners yet.
    world.count = 4
    running = asyncio.create_task(world.run(settings))

    async with asyncio.timeout(PATIENCE_S):
        await world.enough.wait()
        assert {want.flow.source.name for want, _ in world.emitted} == {"a", "b"}
        assert not running.done()
        gate.set()
        await running

    assert world.orders == all_orders(world.plan)
    assert world.words()["nonce"] == 4 * 5
    # Of a packet that comes late, earlier sources may be the senders.
    assert sorted(map(len, origins.values())) == [1, 2, 2]
    assert all(one is some[0] for some in origins.values() for one in some)


async def test_a_destination_has_as_long_as_ever_after_a_late_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where all agents start slowly, none goes without its listeners for that."""
    world = World(monkeypatch, plan_of("a", "b"))
    a, b = (world.gates.setdefault(name, asyncio.Event()) for name in ("a", "b"))
    running = asyncio.create_task(world.run(ProbeSettings(ready_s=10)))

    await asyncio.sleep(20)
    a.set()
    await asyncio.sleep(5)
    b.set()
    await running

    assert world.words() == {"nonce": 2 * 5}


async def test_a_dead_host_does_not_hold_a_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each late source is probed from once it is there, whatever becomes of the others."""
    monkeypatch.setattr(collect_module, "PROMPT_S", 0.01)
    world = World(monkeypatch, plan_of("a", "slow", "dead"))
    slow, dead = (world.gates.setdefault(name, asyncio.Event()) for name in ("slow", "dead"))
    world.failing = {"dead"}
    world.count = 4
    running = asyncio.create_task(world.run(ProbeSettings(ready_s=0.01, forks=1)))

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.sleep(0.05)
        slow.set()
        await world.enough.wait()
        assert {want.flow.source.name for want, _ in world.emitted} == {"a", "slow"}
        assert not running.done()
        dead.set()
        await running

    assert world.orders == all_orders(world.plan)
    assert world.words()["no-python"] == 2 * 5


async def test_a_dead_name_server_of_one_source_holds_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the others can probe is probed; and it is waited for once."""
    name = "x.example.com"
    ends = [plan_host("x", "external", addresses=(name,), vantage=Vantage("none"))]
    starts = [plan_host(name, "node", addresses=(f"10.0.0.{at}",)) for at, name in enumerate("ab")]
    wanted = requirement("x", "node", "external", tcp=PORTS)
    plan = make_plan([chosen_matrix([wanted])], Inventory((*starts, *ends)), TODAY)
    world = World(monkeypatch, plan)
    answers = {"a": asyncio.Event(), "b": asyncio.Event()}
    answers["b"].set()

    async def resolve(link: FakeLink, order: Any, answer: type[Any]) -> Any:
        if not isinstance(order, ResolveOrder):
            return await request(link, order, answer)
        link.sent.append(order)
        await answers[link.host].wait()
        found = ["10.0.0.9"] if link.host == "b" else []
        return Resolved(1, found, None if found else "name-not-resolved", "no answer")

    request = FakeLink.request
    monkeypatch.setattr(FakeLink, "request", resolve)
    world.scripts[ProbeOrder] = lambda order: reply(order, kind(failure="no-answer"))
    world.count = 1
    running = asyncio.create_task(world.run())

    async with asyncio.timeout(PATIENCE_S):
        await world.enough.wait()
        assert [want.flow.source.name for want, _ in world.emitted] == ["b"]
        assert not running.done()
        answers["a"].set()
        await running

    ((_, (found,)),) = world.emitted[1:]
    assert found.outcome is not None
    assert found.outcome.failure == "name-not-resolved"
    assert [link.orders(ResolveOrder) for link in world.links.values()] == [
        [ResolveOrder(0, name)]
    ] * 2


async def test_who_certainly_has_no_agent_is_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed start is known at once: nobody waits for it."""
    world = World(monkeypatch, plan_of("a", "b"))
    world.failing = {"a", "b"}

    await world.run()

    assert world.words() == {"no-python": 10}


@pytest.mark.parametrize("forks", [1, 2])
async def test_so_many_destinations_are_worked_on_at_once(
    monkeypatch: pytest.MonkeyPatch, forks: int
) -> None:
    """--forks bounds the listeners and the orders that are out."""
    world = World(monkeypatch, plan_of("a", "b", "c", "d"))

    await world.run(ProbeSettings(forks=forks))

    assert world.most == forks
    assert world.orders == all_orders(world.plan)


async def test_the_rate_holds_over_the_agents_that_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each has its share of all who may start, and more once it is known who did."""
    world = World(monkeypatch, plan_of("a", "b", "c"))
    world.failing = {"c"}
    stopped = world.stopped
    world.stops_at = lambda source, order: True
    running = asyncio.create_task(world._collect(ProbeSettings(rate=300), None))
    async with asyncio.timeout(PATIENCE_S):
        await stopped.wait()
        for _ in range(20):
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    rates = {name: link.orders(RateOrder) for name, link in world.links.items()}
    assert rates == {name: [RateOrder(100.0), RateOrder(150.0)] for name in ("a", "b")}


async def test_without_a_rate_no_agent_is_slowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No order, no limit."""
    world = World(monkeypatch, plan_of("a", "b"))

    await world.run()

    assert [link.orders(RateOrder) for link in world.links.values()] == [[], []]


async def test_a_resumed_run_probes_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole flows are not there at all, others are asked for the ports that are open."""
    world = World(monkeypatch, plan_of("a", "b"))
    done: dict[WantKey, Ports] = {
        ("m", "x", "a", "b", "10.0.0.2", "tcp"): PORTS,
        ("m", "x", "b", "a", "10.0.0.1", "tcp"): ((5, 8),),
    }

    await world.run(done=done)

    ((want, (found,)),) = world.emitted
    assert (want.flow.source.name, found.ports) == ("b", ((9, 9),))


async def test_cancelled_before_any_agent_is_there_everything_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every flow is emitted, and no start goes on."""
    world = World(monkeypatch, plan_of("a", "b", "c"))
    world.gates = {name: asyncio.Event() for name in "abc"}

    await world.interrupt()

    assert world.orders == all_orders(world.plan)
    assert world.words() == {"stopped": 30}
    assert world.links == {}


async def test_cancelled_while_orders_are_out_what_is_proven_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One source hangs; what the other one had is kept, and each flow is emitted once."""
    world = World(monkeypatch, plan_of("a", "b", "c"))
    world.stops_at = lambda source, order: source == "a"

    await world.interrupt(world.stopped)

    assert world.orders == all_orders(world.plan)
    # c and b proved what they send to each other and to a; nothing is known of a's own flows.
    assert world.words() == {"nonce": 20, "stopped": 10}
    stopped = {
        want.flow.source.name
        for want, found in world.emitted
        if any(one.untested == STOPPED for one in found)
    }
    assert stopped == {"a"}
    assert all(link.closed for link in world.links.values())


async def test_cancelled_while_a_source_is_late_the_prompt_ones_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their evidence was emitted before, and is not emitted again."""
    monkeypatch.setattr(collect_module, "PROMPT_S", 0.01)
    world = World(monkeypatch, plan_of("a", "b", "late"))
    world.gates["late"] = asyncio.Event()
    # a and b to each other; the late one's listeners are waited for.
    world.count = 2

    await world.interrupt(world.enough)

    assert world.orders == all_orders(world.plan)
    words = world.words()
    assert words["nonce"] == 10
    assert words["stopped"] == 20


async def test_cancelled_at_any_moment_every_flow_is_emitted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is lost and nothing is told twice, whatever step is interrupted."""
    for steps in range(0, 120, 6):
        world = World(monkeypatch, plan_of("a", "b", "c"))
        running = asyncio.create_task(world._collect(None, None))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

        assert world.orders == (all_orders(world.plan) if steps else {}), steps
        assert sum(world.words().values()) == (30 if steps else 0), steps
        assert all(found for _, found in world.emitted), steps


def test_flows_without_evidence_are_known() -> None:
    """Whole destinations are told as such, others by their flows."""
    plan = plan_of("a", "b", "c")
    work = Work(plan)
    first, second, third = work.destinations
    listed = ListedFlows(work)
    assert Counter(want.order for want in listed.missing()) == all_orders(plan)

    told = [listed.wants(first)[0], *listed.wants(second)]
    for want in told:
        want.ledger.is_final = True
    listed.drop(third)
    assert list(listed.missing()) == listed.wants(first)[1:]

    listed.drop(first)
    assert list(listed.missing()) == []


async def test_a_stuck_destination_keeps_no_other_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has more flows than there are to be at once, and the first one does not end."""
    monkeypatch.setattr(collect_module, "Room", partial(Room, 1))
    world = World(monkeypatch, plan_of("a", "b", "c"))
    world.stops_at = lambda source, order: order.dst == "10.0.0.1"
    world.count = 4
    running = asyncio.create_task(world.run())

    async with asyncio.timeout(PATIENCE_S):
        await world.enough.wait()
    assert {want.flow.destination.name for want, _ in world.emitted} == {"b", "c"}
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert world.orders == all_orders(world.plan)


async def test_listeners_that_are_gone_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that only they could answer ends with them, and the flows are asked without them."""
    world = World(monkeypatch, plan_of("a", "b"))
    world.stops_at = lambda source, order: source == "a" and order.blocks[0].mode == "nonce"
    running = asyncio.create_task(world.run())
    await world.stopped.wait()

    world.links["b"].lose()
    await running

    assert world.orders == all_orders(world.plan)
    (found,) = (one for want, some in world.emitted for one in some if want.flow.source.name == "a")
    assert found.listener.state == "lost"
    assert found.outcome is not None
    assert found.outcome.failure == "no-answer"


async def test_work_that_fails_at_a_destination_is_the_end_of_its_flows_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever nobody foresaw: the others go on, and its flows say what happened."""
    world = World(monkeypatch, plan_of("a", "b", "c"))
    rounds = Destination._run_round

    async def fail(self: Destination, *rest: Any) -> Any:
        if self._host.name == "b":
            raise ZeroDivisionError("odd")
        return await rounds(self, *rest)

    monkeypatch.setattr(Destination, "_run_round", fail)

    await world.run()

    assert world.orders == all_orders(world.plan)
    assert world.words() == {"nonce": 20, "netprobe-fault": 10}
    words = {
        (want.flow.destination.name, one.untested[1])
        for want, found in world.emitted
        for one in found
        if one.untested
    }
    ((name, text),) = words
    assert name == "b"
    assert text.startswith("the work at b failed (ZeroDivisionError: odd; a bug in netprobe")


async def test_a_fault_in_what_is_emitted_early_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its results are not missing: without an error the fault would only make runs slower."""
    world = World(monkeypatch, plan_of("a", "b"))
    failed = asyncio.Event()
    rounds = Destination._run_round

    async def fail(self: Destination) -> None:
        failed.set()
        raise ZeroDivisionError("odd")

    async def wait(self: Destination, *rest: Any) -> Any:
        await failed.wait()
        return await rounds(self, *rest)

    monkeypatch.setattr(collect_module, "PROVEN_S", 0.0)
    monkeypatch.setattr(Destination, "emit_proven", fail)
    monkeypatch.setattr(Destination, "_run_round", wait)

    with pytest.raises(BaseExceptionGroup) as caught:
        await world.run()

    assert caught.group_contains(ZeroDivisionError, match="odd")


async def test_results_that_have_nowhere_to_go_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full is no bug of one destination."""
    world = World(monkeypatch, plan_of("a", "b"))
    taken = world._emit

    def emit(want: Want, found: list[Evidence]) -> None:
        taken(want, found)
        raise OSError("full")

    monkeypatch.setattr(world, "_emit", emit)

    with pytest.raises(BaseExceptionGroup) as caught:
        await world.run()

    assert caught.group_contains(OSError, match="full")
    assert max(world.orders.values()) == 1


async def test_an_agent_that_gives_too_few_outcomes_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One source ends its orders early: all of its flows are not tested, and no others."""
    world = World(monkeypatch, plan_of("a", "b", "c"))
    whole = FakeLink._make_outcomes

    def make(link: FakeLink, order: Any) -> list[Any]:
        return [] if link.host == "a" else whole(link, order)

    monkeypatch.setattr(FakeLink, "_make_outcomes", make)

    await world.run()

    assert world.orders == all_orders(world.plan)
    lost = {want.flow.source.name for want, found in world.emitted if found[0].untested}
    assert lost == {"a"}
    assert world.words()["agent-lost"] == 10
    (report,) = (one for one in world.reports if one.state == "lost")
    assert (report.name, "before the outcome of port 5" in report.words) == ("a", True)
