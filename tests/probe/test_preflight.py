"""``check --hosts``: what every agent can do, and who holds the ports that the plan needs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import HelloLine, Listening
from netprobe.agent.wire.orders import HeldOrder
from netprobe.agent.wire.parts import HeldPorts, RouterHeard
from netprobe.agent.wire.segment_messages import SegmentHeard, SegmentHearOrder
from netprobe.errors import AgentError
from netprobe.judge.holder import say_held
from netprobe.model.inventory import Host, Inventory
from netprobe.model.plan import Plan
from netprobe.model.result import HostFacts, HostReport
from netprobe.model.struct_json import to_json
from netprobe.plan.expand import make_plan
from netprobe.probe.preflight import check_hosts
from netprobe.vantage.launch import Launcher
from netprobe.vantage.link import AgentLink
from tests.plan.conftest import TODAY, chosen_matrix, requirement
from tests.plan.conftest import host as plan_host
from tests.probe.fakes import HELLO, listening_block
from tests.probe.links import FakeLink, start_by

HOSTS = (
    plan_host("a", "node", addresses=("10.0.0.1",)),
    plan_host("b", "external", addresses=("10.0.0.2",)),
    plan_host("c", "external", addresses=("10.0.0.3",)),
)


def plan(limited_to: frozenset[str] = frozenset()) -> Plan:
    """a probes b and c."""
    wanted = requirement("x", "node", "external", tcp=((2379, 2380),))
    made = make_plan([chosen_matrix([wanted])], Inventory(HOSTS), TODAY)
    return replace(made, limited_to=limited_to)


def held(process: str, port: int, loopback: bool = False) -> HeldPorts:
    address = "127.0.0.1" if loopback else "10.0.0.2"
    return HeldPorts(port, port, process, process, 8, address, loopback)


class Bench:
    """Agents without a process, and what was told while they were checked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, held_at_b: Any) -> None:
        self.told: list[HostReport] = []
        self.links: dict[str, FakeLink] = {}
        self.hellos: dict[str, HelloLine] = {}
        self.heard: list[RouterHeard] = []
        answers = {"b": held_at_b, "c": lambda order: Listening(order.id, [listening_block()])}

        async def start(one: Host) -> AgentLink:
            if one.name == "c" and held_at_b is None:
                raise AgentError("no-python", "c: no Python")
            scripts: dict[type, Any] = {HeldOrder: answers[one.name]} if one.name in answers else {}
            scripts[SegmentHearOrder] = lambda order: SegmentHeard(order.id, self.heard, None)
            self.links[one.name] = FakeLink(one.name, scripts, self.hellos.get(one.name, HELLO))
            return self.links[one.name]

        start_by(monkeypatch, start)

    async def check(self, wanted: Plan) -> tuple[HostReport, ...]:
        return await check_hosts(wanted, Launcher(), self.told.append, say_held)


async def test_every_host_of_the_plan_is_reported_in_its_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A destination's report says who holds the ports that it needs; nothing is probed."""
    etcd = listening_block(held=[held("etcd", 2379), held("etcd", 2380, loopback=True)])
    bench = Bench(monkeypatch, lambda order: Listening(order.id, [etcd]))

    reports = await bench.check(plan())

    assert [(report.name, report.state) for report in reports] == [
        ("a", "agent"), ("b", "agent"), ("c", "agent"),
    ]  # fmt: skip
    assert [report.facts.held for report in reports] == [
        None,
        ("tcp 2379: etcd (pid 8) on 10.0.0.2", "tcp 2380: etcd (pid 8) on 127.0.0.1"),
        (),
    ]
    assert reports[1].facts.taken == ("tcp 2379: etcd (pid 8) on 10.0.0.2",)
    assert reports[1].facts.doubtful == ("tcp 2380: etcd (pid 8) on 127.0.0.1",)
    assert sorted(report.name for report in bench.told) == ["a", "b", "c"]
    assert {report.name: report for report in bench.told} == {
        report.name: report for report in reports
    }
    (order,) = bench.links["b"].orders(HeldOrder)
    assert [(block.address, block.ports) for block in order.blocks] == [
        ("10.0.0.2", [(2379, 2380)])
    ]
    assert all(link.closed for link in bench.links.values())


async def test_only_the_hosts_that_the_user_asked_for_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The peers of limited flows are none of them."""
    bench = Bench(monkeypatch, lambda order: Listening(order.id, [listening_block()]))

    reports = await bench.check(plan(limited_to=frozenset({"b"})))

    assert [report.name for report in reports] == ["b"]
    assert list(bench.links) == ["b"]


async def test_an_agent_that_is_lost_meanwhile_is_reported_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the words of the loss."""

    def lose(order: HeldOrder) -> Any:
        raise AgentError("agent-lost", "killed")

    bench = Bench(monkeypatch, lose)

    (_, report, _) = await bench.check(plan())

    assert (report.name, report.state, report.words) == ("b", "lost", "killed")


async def test_addresses_that_are_not_as_the_inventory_says_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The way onto c leads to b, and b has an address of a."""
    bench = Bench(monkeypatch, lambda order: Listening(order.id, [listening_block()]))
    at_b = HELLO._replace(machine="2", addresses=["10.0.0.2", "10.0.0.1"])
    bench.hellos = {"a": HELLO._replace(machine="1", addresses=["10.0.0.1"]), "b": at_b, "c": at_b}

    reports = await bench.check(plan())

    assert {report.name: report.facts.strange for report in reports} == {
        "a": ("its address 10.0.0.1 is on b, c too",),
        "b": (),
        "c": (
            "it does not have the address 10.0.0.3",
            "the way onto it leads to the same machine as that onto b",
        ),
    }
    assert not {"machine", "addresses", "links"} & set(to_json(reports[0].facts))


async def test_routers_of_the_inventory_are_none_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A router on a, which is heard from its address and, over IPv6, from one that only its agent
    knows: where that is not asked, it is perhaps a's."""
    bench = Bench(monkeypatch, lambda order: Listening(order.id, [listening_block()]))
    bench.heard = [
        RouterHeard("VRRPv3", 51, 100, sender, "02:00:00:00:00:01", "e0")
        for sender in ("10.0.0.1", "fe80::1", "10.0.0.9")
    ]
    bench.hellos = {
        one.name: HELLO._replace(addresses=[one.addresses[0].text, f"fe80::{place}"])
        for place, one in enumerate(HOSTS, 1)
    }
    foreign = "from 10.0.0.9 (02:00:00:00:00:01): it has no address of the inventory's hosts"
    maybe = "from fe80::1 (02:00:00:00:00:01): perhaps a host of the inventory, of which no agent"
    for report in await bench.check(plan()):
        assert [foreign in one for one in report.facts.heard] == [True]
    (report,) = await bench.check(plan(frozenset({"b"})))
    assert [maybe in one or foreign in one for one in report.facts.heard] == [True, True]


async def test_a_host_without_an_agent_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its report has the words of the start."""
    bench = Bench(monkeypatch, None)
    bench_plan = plan(limited_to=frozenset({"c"}))

    (report,) = await bench.check(bench_plan)

    assert (report.state, report.words) == ("failed", "c: no Python")
    assert report.facts == HostFacts()
