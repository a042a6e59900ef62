"""A real agent over a link that answers from a script."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from netprobe.agent.wire.answers import (
    Closed,
    Listening,
    Seen,
    StoryTold,
    Walked,
)
from netprobe.agent.wire.host_messages import (
    Egress,
    EgressOrder,
    Nameservers,
    NameserversOrder,
    Resolved,
    ResolveOrder,
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
    StoryOrder,
    TemplatesOrder,
    WalkOrder,
)
from netprobe.agent.wire.parts import ProbeBlock, WalkHop
from netprobe.errors import AgentError
from netprobe.probe.agents import agent as agent_module
from netprobe.probe.agents.agent import Agent
from netprobe.probe.agents.decode import ProbeReply
from netprobe.probe.agents.templates import Templates
from netprobe.probe.settings import Timing
from netprobe.vantage.stream import Target
from tests.patience import PATIENCE_S
from tests.probe.builders import SOURCE
from tests.probe.fakes import HELLO, kind, reply, routed
from tests.probe.links import FakeLink

OPEN = kind(answer="unasked")
TIMING = Timing(400, 900, 2)


def order(number: int = 1, ports: tuple[int, int] = (5, 6), template: int = 0) -> ProbeOrder:
    return ProbeOrder(
        number, "tcp", None, "10.0.0.2", None, [ProbeBlock([ports], "nonce", template)], *TIMING,
        pace=None, min_ttl=None, ttl=None, size=None, host=None, sport=None, more=[],
    )  # fmt: skip


class Bench:
    """An agent that is ready, and its link."""

    def __init__(self, scripts: dict[type[Any], Any] | None = None, **hello: Any) -> None:
        self.link = FakeLink("a", scripts, HELLO._replace(**hello))
        self.templates = Templates()
        self.agent = Agent(SOURCE, 0, self.templates)
        self.agent.link = self.link
        self.agent.settled.set()


PROBING = {
    ProbeOrder: lambda order: reply(order, OPEN),
    EchoOrder: lambda order: reply(order, kind(op="answer", answer="echo")),
    RouteOrder: routed(),
}


async def test_templates_are_sent_before_an_order_that_needs_them() -> None:
    """Each once; what comes later is sent later."""
    bench = Bench(PROBING)
    first = bench.templates.request(b"a")
    await bench.agent.probe(order(1, template=first))
    await bench.agent.probe(order(2, template=first))
    bench.templates.request(b"b")
    await bench.agent.route("10.0.0.2", None)

    known = bench.templates.after(0)
    assert bench.link.sent == [
        TemplatesOrder([known[0]]),
        order(1, template=first),
        order(2, template=first),
        TemplatesOrder([known[1]]),
        RouteOrder(0, "10.0.0.2", None),
    ]


async def test_every_agent_learns_all_templates() -> None:
    """Their numbers are those of the run."""
    first, second = Bench(PROBING), Bench(PROBING)
    second.agent.templates = first.templates
    first.templates.request(b"a")

    for bench in (first, second):
        await bench.agent.probe(order())

    assert first.link.sent == second.link.sent


async def test_a_route_is_asked_once() -> None:
    """For each address and each source address."""
    bench = Bench(PROBING)

    first = await bench.agent.route("10.0.0.2", None)
    assert await bench.agent.route("10.0.0.2", None) is first
    await bench.agent.route("10.0.0.2", "10.0.0.9")
    await bench.agent.route("10.0.0.3", None)

    assert bench.link.sent == [
        RouteOrder(0, "10.0.0.2", None),
        RouteOrder(0, "10.0.0.2", "10.0.0.9"),
        RouteOrder(0, "10.0.0.3", None),
    ]


async def test_the_outcomes_of_an_order_are_joined() -> None:
    """The agent tells them as they come; the first message has the port of the probes."""
    refused = kind(failure="refused")
    answer = reply(order(), lambda port: OPEN if port == 5 else refused)
    bench = Bench({ProbeOrder: lambda _: ProbeReply(answer.rows, 40000)})

    found = await bench.agent.probe(order())

    assert [row.ports for row in found.rows] == [((5, 5),), ((6, 6),)]
    assert found.own_port == 40000


async def test_an_order_that_ends_without_all_outcomes_loses_the_agent() -> None:
    """What was asked and not told is known to nobody, and no number of outcomes is enough."""
    row = reply(order(), OPEN).rows[0]
    for rows in ([], [row._replace(last=5)]):
        bench = Bench({ProbeOrder: lambda order, rows=rows: ProbeReply(rows)})

        with pytest.raises(AgentError, match="it sent Done: before the outcome of port"):
            await bench.agent.probe(order())
        assert bench.agent.refused is not None


async def test_an_echo_order_that_ends_without_all_outcomes_loses_the_agent() -> None:
    """Everybody who waits for an outcome of the batch learns it."""
    bench = Bench({EchoOrder: lambda order: ProbeReply([])})
    orders = [EchoOrder(n, [f"10.0.0.{n}"], None, 400, 900, 2, None, []) for n in (2, 3)]

    found = await asyncio.gather(
        *(bench.agent.probe(one) for one in orders), return_exceptions=True
    )

    assert [isinstance(one, AgentError) for one in found] == [True, True]
    assert "before the outcome of destination 1 and 1 more" in str(found[0])


async def test_an_answer_that_breaks_a_rule_loses_the_agent() -> None:
    """At once, and nothing that it said is believed from then on."""
    bench = Bench({WalkOrder: lambda order: Walked(order.id, [], True, None, None)})
    assert bench.agent.refused is None

    with pytest.raises(AgentError, match="it sent Walked: a walk that arrived without a hop"):
        await bench.agent.walk("udp", "10.0.0.2", 5, None, 16)

    assert not bench.agent.alive
    assert "a walk that arrived" in str(bench.agent.refused)


async def test_an_agent_is_lost_whose_answer_nobody_can_work_on() -> None:
    """The words name the exception, and call it a bug of ours."""
    bench = Bench()

    error = bench.agent.lose(IndexError("list index out of range"))

    assert error.reason == "agent-lost"
    assert "IndexError: list index out of range; a bug in netprobe" in str(error)
    assert bench.agent.refused is error
    bench.agent.link = None
    assert bench.agent.lose(IndexError("again")).reason == "agent-lost"


async def test_an_agent_that_is_lost_by_itself_is_still_believed() -> None:
    """What it told before its host went down stands."""
    bench = Bench()
    bench.link.lose()

    assert bench.agent.refused is None


async def test_echo_orders_of_one_moment_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every asker gets its own answer."""
    bench = Bench(PROBING)
    orders = [EchoOrder(n, [f"10.0.0.{n}"], None, 400, 900, 2, None, []) for n in (2, 3)]

    found = await asyncio.gather(*(bench.agent.probe(one) for one in orders))

    assert [len(one.rows) for one in found] == [1, 1]
    assert [one.dsts for one in bench.link.orders(EchoOrder)] == [["10.0.0.2", "10.0.0.3"]]


STORY = StoryOrder(0, "tcp", None, "10.0.0.1", "10.0.0.2", [(5, 5)], True, [], [])


@pytest.mark.parametrize(
    ("ask", "sent", "answer"),
    [
        (
            lambda agent: agent.walk("udp", "10.0.0.2", 5, None, 16, 3),
            WalkOrder(0, "udp", "10.0.0.2", 5, None, 16, 3),
            Walked(1, [WalkHop(1, "10.0.0.2")], True, None, None),
        ),
        (
            lambda agent: agent.return_path("10.0.0.2", "10.0.0.1"),
            ReturnPathOrder(0, "10.0.0.2", "10.0.0.1"),
            ReturnPath(1, None, None, None, None, [], None),
        ),
        (
            lambda agent: agent.egress("10.0.0.2", None, 5),
            EgressOrder(0, "10.0.0.2", None, 5),
            Egress(1, None, None, None, None, None, None),
        ),
        (
            lambda agent: agent.resolve("x.example.com"),
            ResolveOrder(0, "x.example.com"),
            Resolved(1, [], None, ""),
        ),
        (lambda agent: agent.nameservers(), NameserversOrder(0), Nameservers(1, [])),
        (lambda agent: agent.listen(9, []), ListenOrder(9, []), Listening(9, [])),
        (lambda agent: agent.held(9, []), HeldOrder(9, []), Listening(9, [])),
        (
            lambda agent: agent.seen(9, [1], rest=False),
            SeenOrder(0, 9, [1], rest=False),
            Seen(1, [], [], [], []),
        ),
        (lambda agent: agent.close_round(9), CloseOrder(9), Closed(9)),
        (
            lambda agent: agent.tell_story(STORY),
            STORY,
            StoryTold(1, True, None, [], [], [], heard=True, awake=True, lost=0, full=False),
        ),
    ],
)
async def test_every_method_sends_its_order(
    ask: Callable[[Agent], Awaitable[Any]], sent: Any, answer: Any
) -> None:
    """The answer is that of the order; rounds bring their own numbers."""
    bench = Bench({type(sent): lambda _: answer})

    assert await ask(bench.agent) is answer
    assert bench.link.sent == [sent]


async def test_a_service_is_asked_by_an_order_of_its_own() -> None:
    """Its number is none of the run's, and its request is a template."""
    bench = Bench(PROBING)

    first = await bench.agent.ask_service("udp", "10.0.0.2", 53, b"who", TIMING)
    await bench.agent.ask_service("udp", "10.0.0.2", 53, b"who", TIMING)

    assert first == [OPEN]
    (templates,) = bench.link.orders(TemplatesOrder)
    assert [item.request for item in templates.items] == [b"who"]
    one, other = bench.link.orders(ProbeOrder)
    assert one.blocks == [ProbeBlock([(53, 53)], "bytes", 1)]
    assert (one.first_ms, one.look_ms, one.looks, one.host) == (400, 900, 2, None)
    assert other.id > one.id >= 1 << 30


class Held:
    """A link whose probes end when they are told to."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.end = asyncio.Event()
        made = bench.link._make_outcomes

        async def stream(order: Any, answer: type[Any]) -> Any:
            await self.end.wait()
            if bench.link.lost.done():
                bench.link.lost.result()
            for found in made(order):
                yield found

        bench.link.stream = stream  # type: ignore[method-assign]  # a script


async def test_an_agent_is_quiet_while_no_probe_is_out() -> None:
    """Requests that are no probes take nothing from the routers' answers."""
    bench = Bench(PROBING)
    async with asyncio.timeout(PATIENCE_S):
        await bench.agent.quiet()

    held = Held(bench)
    probes = [asyncio.create_task(bench.agent.probe(order(n))) for n in (1, 2)]
    waiting = asyncio.create_task(bench.agent.quiet())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    probes[0].cancel()
    await asyncio.gather(probes[0], return_exceptions=True)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    held.end.set()
    async with asyncio.timeout(PATIENCE_S):
        await waiting
    assert probes[1].done()


async def test_a_lost_agent_is_quiet() -> None:
    """Its probes ended with it."""
    bench = Bench(PROBING)
    held = Held(bench)
    probe = asyncio.create_task(bench.agent.probe(order()))
    await asyncio.sleep(0)
    bench.link.lose()
    held.end.set()

    with pytest.raises(AgentError):
        await probe
    async with asyncio.timeout(PATIENCE_S):
        await bench.agent.quiet()


async def test_nobody_waits_for_ever_for_a_busy_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source with a large plan is never quiet."""
    monkeypatch.setattr(agent_module, "QUIET_S", 0.01)
    bench = Bench(PROBING)
    Held(bench)
    probe = asyncio.create_task(bench.agent.probe(order()))
    await asyncio.sleep(0)

    async with asyncio.timeout(PATIENCE_S):
        await bench.agent.quiet()

    assert not probe.done()
    probe.cancel()


async def test_orders_wait_for_the_start() -> None:
    """A start takes its time, and nobody asks before its end."""
    bench = Bench(PROBING)
    bench.agent.settled.clear()
    asked = asyncio.create_task(bench.agent.route("10.0.0.2", None))
    for _ in range(5):
        await asyncio.sleep(0)
    assert bench.link.sent == []

    bench.agent.settled.set()
    async with asyncio.timeout(PATIENCE_S):
        assert (await asked).source == "10.0.0.1"


@pytest.mark.parametrize("state", ["failed", "never started", "lost"])
async def test_without_an_agent_every_method_says_so(state: str) -> None:
    """The reason is that of the flows which are not tested."""
    bench = Bench(PROBING)
    reasons = {"failed": "no-python", "never started": "no-vantage", "lost": "agent-lost"}
    if state == "failed":
        bench.agent.error = AgentError("no-python", "no Python")
    if state == "lost":
        bench.link.lose()
    else:
        bench.agent.link = None

    for ask in (
        bench.agent.wait_ready(),
        bench.agent.probe(order()),
        bench.agent.probe(EchoOrder(1, ["10.0.0.2"], None, 400, 900, 2, None, [])),
        bench.agent.route("10.0.0.2", None),
        bench.agent.open_stream(Target("10.0.0.2", 5)).__aenter__(),
    ):
        with pytest.raises(AgentError) as caught:
            await ask
        assert caught.value.reason == reasons[state]
    assert not bench.agent.alive
    assert not bench.agent.records


async def test_an_agent_that_is_there_is_ready() -> None:
    """What it said of itself is known."""
    bench = Bench(PROBING)

    await bench.agent.wait_ready()

    assert bench.agent.alive
    assert bench.agent.hello == HELLO
    assert Agent(SOURCE, 0, Templates()).hello is None


@pytest.mark.parametrize(
    ("net_raw", "wanted", "records"),
    [(True, True, True), (False, True, False), (True, False, False)],
)
async def test_a_recorder_needs_raw_sockets(net_raw: bool, wanted: bool, records: bool) -> None:
    """Without the right to them there is no packet socket, and --no-recorder wants none."""
    agent = Bench(net_raw=net_raw).agent
    agent.recorder = wanted

    assert agent.records is records


@pytest.mark.parametrize(
    ("kernel", "hears"),
    [
        ("5.8.0", True), ("5.10.0-26-amd64", True), ("6.1", True), ("10.0.1", True),
        ("5.7.19", False), ("4.18.0-553.el8", False), ("3.10.0", False), ("", False), ("x", False),
        ("9" * 5000 + ".1", False),
    ],
)  # fmt: skip
async def test_which_kernels_hear_icmp_errors_of_tcp(kernel: str, hears: bool) -> None:
    """The error queue has them since Linux 5.8."""
    assert Bench(kernel=kernel).agent.hears_tcp_errors is hears


async def test_a_loss_in_the_middle_of_an_order_is_told() -> None:
    """What came before it is not half an answer."""
    bench = Bench({ProbeOrder: lambda one: reply(one, lambda port: kind(ttl=port))})
    made = bench.link._make_outcomes

    async def stream(order: Any, answer: type[Any]) -> Any:
        yield made(order)[0]
        bench.link.lose()
        bench.link.lost.result()

    bench.link.stream = stream  # type: ignore[method-assign]  # a script

    with pytest.raises(AgentError):
        await bench.agent.probe(order())
