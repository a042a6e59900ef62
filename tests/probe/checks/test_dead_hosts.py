"""A router's "host unreachable": of a dead host, or a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.host_messages import (
    Egress,
    EgressOrder,
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    EchoOrder,
    ProbeOrder,
)
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.agent.wire.questions import CONTROL_PORTS
from netprobe.model.evidence import CheckConclusion, Icmp, Listener, Outcome, ResetOrigin
from netprobe.model.notes import ConclusionNote
from netprobe.probe.checks import next_hops
from netprobe.probe.checks.check import Scene
from netprobe.probe.checks.next_hops import TRIES, DeadHosts
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import (
    ROUTER,
    SOURCE,
    TARGET,
    look,
    make_observation,
    make_scene,
    make_task,
)
from tests.probe.fakes import HELLO, FakeAgent, host, icmp, kind, reply, routed

SILENT = kind(failure="no-answer")


def word(elapsed_ms: int, op: str = "connect", code: int = 1) -> OutcomeKind:
    """A router's word after so long."""
    found = icmp(3, code, ROUTER)
    return kind(op=op, failure="host-unreachable", icmp=found, elapsed_ms=elapsed_ms)


def heard(elapsed_ms: int | None, port: int = 443) -> Observation:
    """A flow that had the word in its first probe."""
    error = Icmp(3, 1, ROUTER, "router", 64)
    outcome = Outcome("connect", "host-unreachable", error, elapsed_ms=elapsed_ms)
    return make_observation(outcome, make_task("tcp", ((port, port + 3),)))


def agent(tcp: list[OutcomeKind] | OutcomeKind, echo: OutcomeKind = SILENT) -> FakeAgent:
    """A source that hears these upon its further TCP probes, and this upon echo requests."""
    kinds: Iterator[OutcomeKind] = iter(tcp if isinstance(tcp, list) else [tcp] * 99)
    return FakeAgent(
        SOURCE,
        {
            ProbeOrder: lambda order: reply(order, next(kinds)),
            EchoOrder: lambda order: reply(order, echo),
            RouteOrder: routed(),
        },
    )


def make_scene_with_neighbours(source: FakeAgent, target: FakeAgent | None = None) -> Scene:
    """Two more agents are on the destination's network: c hears d there, and nobody else. The
    source reaches d."""

    def ask(order: EgressOrder) -> Egress:
        word, link = ("known", "d0") if order.dst == "10.0.0.10" else ("failed", None)
        return Egress(0, "eth0", order.dst, word, link, True, None)

    neighbours = [
        FakeAgent(
            host(name, address),
            {RouteOrder: routed(source=address), EgressOrder: ask},
            hello=HELLO._replace(links=[f"{name}0"]),
        )
        for name, address in (("c", "10.0.0.9"), ("d", "10.0.0.10"))
    ]
    scene = make_scene(source, target, *neighbours)
    echo = Outcome("answer", None, answer="echo")
    scene.prober.answered.note_answer(SOURCE.name, "10.0.0.10", echo)
    return scene


@pytest.mark.parametrize(
    ("tcp", "echo", "said"),
    [
        # Somebody is there.
        (SILENT, kind(op="answer", answer="echo"), "refusing-host"),
        (kind(failure="refused"), SILENT, "refusing-host"),
        (kind(failure="refused", icmp=icmp(3, 13, ROUTER)), SILENT, "refusing-host"),
        (kind(answer="unasked"), word(3100, "answer"), "refusing-host"),
        # The router kept everybody waiting.
        (word(3100), SILENT, "router-gives-up"),
        (SILENT, word(600, "answer"), "router-gives-up"),
        # At once, each time.
        (word(2), word(2, "answer"), "refusing-host"),
        # A firewall's late prohibition, and silence, are no dead host's.
        (word(3100, code=13), SILENT, "refusing-host"),
        (SILENT, SILENT, "refusing-host"),
    ],
)
async def test_an_early_word_is_tried_with_ports_that_nobody_needs(
    tcp: OutcomeKind, echo: OutcomeKind, said: str
) -> None:
    """With a full bucket at the router a dead neighbour takes three seconds."""
    (found,) = await look(DeadHosts(), make_scene(agent(tcp, echo)), heard(200))

    assert found.concluded == said
    last = found.trail[-1]
    assert (last.name, last.note) == ("dead-host", ConclusionNote(said))


@pytest.mark.parametrize(
    ("elapsed_ms", "said"),
    # The kernel repeats a SYN after one and two seconds: a refusal of that one is quick.
    [(1000, "refusing-host"), (1200, "refusing-host"), (1201, "router-gives-up"),
     (2100, "refusing-host"), (2500, "router-gives-up"), (3000, "router-gives-up"),
     (3100, "router-gives-up"), (499, "refusing-host"), (500, "router-gives-up")],
)  # fmt: skip
async def test_a_word_just_after_a_repeated_syn_is_a_quick_one(elapsed_ms: int, said: str) -> None:
    """The first SYN found no answer left in the firewall's bucket."""
    (found,) = await look(DeadHosts(), make_scene(agent(word(elapsed_ms))), heard(200))

    assert found.concluded == said


@pytest.mark.parametrize(
    ("outcome", "forged", "concerned"),
    [
        (Outcome("connect", "no-answer"), None, True),
        (Outcome("connect", "refused"), None, True),
        (Outcome("connect", "refused"), False, False),
        (Outcome("connect", "refused"), True, False),
        (Outcome("answer", None, answer="unasked"), None, False),
    ],
)
async def test_who_lives_on_the_network_is_asked_of_all_that_proves_nothing(
    outcome: Outcome, forged: bool | None, concerned: bool
) -> None:
    """A router may refuse flows in the name of a host that is dead, or drop them."""
    seen = replace(make_observation(outcome), reset=ResetOrigin(forged))
    scene = make_scene_with_neighbours(agent(SILENT))

    (found,) = await look(DeadHosts(), scene, seen)

    assert found.concluded == ("host-down" if concerned else None)


async def test_who_has_answered_is_not_asked_for() -> None:
    """Another flow of the pair was answered."""
    silent = make_observation(Outcome("connect", "no-answer"))
    near = FakeAgent(host("c", "10.0.0.9"), {})
    scene = make_scene(agent(SILENT), None, near)
    scene.prober.answered.note_answer("a", "10.0.0.2", Outcome("answer", None, answer="echo"))

    (found,) = await look(DeadHosts(), scene, silent)

    assert found.concluded is None
    assert near.asked == []


@pytest.mark.parametrize("elapsed_ms", [2, 3100])
async def test_an_agent_on_the_hosts_network_knows_better(elapsed_ms: int) -> None:
    """It got no answer to its own ARP requests; then no time need pass."""
    source = agent(SILENT)
    scene = make_scene_with_neighbours(source)

    found = await look(DeadHosts(), scene, heard(elapsed_ms, 100), heard(elapsed_ms, 200))

    assert {one.conclusion for one in found} == {CheckConclusion("host-down", "c")}
    assert source.asked == []


async def test_what_tells_nothing_is_asked_some_times() -> None:
    """One try may fall into somebody else's wait."""
    source = agent([word(2), word(2), word(3100)])

    (found,) = await look(DeadHosts(), make_scene(source), heard(200))

    assert found.concluded == "router-gives-up"
    assert len(source.orders(ProbeOrder)) == len(source.orders(EchoOrder)) == TRIES
    assert {order.blocks[0].ports[0][0] for order in source.orders(ProbeOrder)} == {
        CONTROL_PORTS[0]
    }
    # A dead neighbour is given up after three seconds.
    assert all(order.look_ms > 3060 for order in source.orders(ProbeOrder))


@pytest.mark.parametrize(
    ("again", "said"),
    [
        ([word(2), word(2), word(2)], "refusing-host"),
        ([word(2), word(2), word(3100)], "router-gives-up"),
        ([word(2), SILENT], "router-gives-up"),
        ([word(500)], "router-gives-up"),
    ],
)
async def test_a_late_word_is_a_refusal_only_if_it_comes_at_once_every_time(
    again: list[OutcomeKind], said: str
) -> None:
    """A router that answers others already says even a refusal late."""
    source = agent(again)

    (found,) = await look(DeadHosts(), make_scene(source), heard(3100))

    assert found.concluded == said
    assert [order.blocks[0].ports for order in source.orders(ProbeOrder)] == (
        [[(443, 443)]] * len(again)
    )
    # Every look is told, before what was concluded from them.
    assert [entry.name for entry in found.trail] == ["probe"] * len(again) + ["dead-host"]


async def test_one_flow_stands_for_all_of_a_pair() -> None:
    """An early word among late ones is the one to try; all have the conclusion."""
    source = agent(word(2), kind(op="answer", answer="echo"))

    found = await look(DeadHosts(), make_scene(source), heard(3100, 100), heard(10, 200))

    assert [one.concluded for one in found] == ["refusing-host", "refusing-host"]
    assert len(source.orders(EchoOrder)) == 1


@pytest.mark.parametrize(("elapsed_ms", "asks_echo"), [(1499, True), (1500, False)])
async def test_what_is_early(elapsed_ms: int, asks_echo: bool) -> None:
    """Less than half of a dead neighbour's three seconds."""
    source = agent(word(2), word(2, "answer"))

    await look(DeadHosts(), make_scene(source), heard(elapsed_ms))

    assert bool(source.orders(EchoOrder)) is asks_echo


@pytest.mark.parametrize("elapsed_ms", [200, 3100])
async def test_the_routers_bucket_is_full_before_it_is_tried(
    monkeypatch: pytest.MonkeyPatch, elapsed_ms: int
) -> None:
    """What the run has asked until now has emptied it."""
    monkeypatch.setattr(next_hops, "REFILL_S", 0.02)
    source = agent(word(2), word(2, "answer"))
    asked_s: list[float] = []
    for script, answer in list(source.scripts.items()):

        def note(order: Any, answer: Any = answer) -> Any:
            asked_s.append(asyncio.get_running_loop().time())
            return answer(order)

        source.scripts[script] = note
    began_s = asyncio.get_running_loop().time()

    await look(DeadHosts(), make_scene(source), heard(elapsed_ms))

    assert min(asked_s) - began_s >= 0.015


@pytest.mark.parametrize("elapsed_ms", [0, 200, 1500, 3100])
@pytest.mark.parametrize("answer", [word(2), word(3100)])
async def test_the_measured_time_stays(elapsed_ms: int, answer: OutcomeKind) -> None:
    """The conclusion is a field of its own."""
    seen = heard(elapsed_ms)

    (found,) = await look(DeadHosts(), make_scene(agent(answer)), seen)

    assert found.conclusion is not None
    assert found.outcome == seen.outcome


async def test_the_source_is_quiet_before_a_late_word_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is still out takes the router's answers."""
    source = agent(word(2))
    order: list[str] = []

    async def quiet() -> None:
        order.append(f"quiet after {len(source.asked)}")

    monkeypatch.setattr(source, "quiet", quiet)
    await look(DeadHosts(), make_scene(source), heard(3100))

    assert order == ["quiet after 0"]


@pytest.mark.parametrize(
    ("change", "concerned"),
    [
        ({}, True),
        ({"listener": "live"}, True),
        ({"listener": "ours"}, True),
        # A translation may have put the address there.
        ({"origin": "destination"}, True),
        ({"origin": "destination", "code": 13}, False),
        ({"origin": "source"}, False),
        ({"code": 13}, False),
        ({"code": 0}, False),
    ],
)
def test_a_routers_host_unreachable_concerns_the_check(
    change: dict[str, Any], concerned: bool
) -> None:
    """Prohibitions are refusals already. A listener of ours shows that the host lives, and not that
    its link does."""
    error = Icmp(3, change.get("code", 1), ROUTER, change.get("origin", "router"))
    outcome = Outcome("connect", "host-unreachable", error)
    seen = make_observation(outcome, listener=change.get("listener", "unknown"))

    assert DeadHosts().concerns(seen) is concerned


def test_an_errno_alone_is_nobodys_word() -> None:
    """Without the ICMP error nobody knows who said it."""
    assert not DeadHosts().concerns(make_observation(Outcome("connect", "host-unreachable")))
    assert not DeadHosts().concerns(make_observation(None))


@pytest.mark.parametrize(
    ("address", "said"), [("10.0.0.2", None), ("10.0.0.77", CheckConclusion("host-down", "c"))]
)
async def test_an_agent_proves_that_its_own_address_is_up(
    address: str, said: CheckConclusion | None
) -> None:
    """An inventory may give its host an address that nobody has: the agent proves nothing then."""
    target = FakeAgent(TARGET, {RouteOrder: routed(source=address)})
    scene = make_scene_with_neighbours(agent(SILENT), target)
    held = Listener("live") if said is None else Listener("ours", nat=True)

    (found,) = await look(DeadHosts(), scene, replace(heard(200), listener=held))

    assert found.conclusion == said


async def test_a_host_that_lives_may_be_cut_off() -> None:
    """Its agent may be reached by another way: a late word is of a router whose neighbour keeps
    quiet."""
    target = FakeAgent(TARGET, {RouteOrder: routed(source="10.0.0.2")})
    scene = make_scene_with_neighbours(agent(SILENT), target)

    (found,) = await look(DeadHosts(), scene, replace(heard(3100), listener=Listener("ours")))

    assert found.conclusion == CheckConclusion("host-down", "c")


@pytest.mark.parametrize("elapsed_ms", [200, 700])
async def test_where_the_source_is_lost_its_word_stands_as_it_was_heard(elapsed_ms: int) -> None:
    """Nobody concludes anything from what nobody could ask."""
    source = agent(SILENT)
    source.lost = True
    seen = heard(elapsed_ms)

    assert await look(DeadHosts(), make_scene(source), seen) == [seen]
