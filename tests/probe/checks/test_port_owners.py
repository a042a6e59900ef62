"""Refusals of ports that somebody held when the round began: does he hold them still?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from netprobe.agent.wire.answers import Listening
from netprobe.agent.wire.orders import HeldOrder
from netprobe.agent.wire.parts import HeldPorts, ListeningBlock
from netprobe.model.evidence import Icmp, Listener, Outcome
from netprobe.model.ports import Ports
from netprobe.probe.checks.port_owners import Checked, check_holders, tasks_of, undecided
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import ROUTER, SOURCE, TARGET, make_observation, make_task
from tests.probe.fakes import FakeAgent, FakeFleet, host, listening_block

REFUSED = Outcome("connect", "refused")
ETCD = Listener("live", "etcd (pid 8) on 10.0.0.2")


def refused(ports: Ports = ((2379, 2380),), **change: Any) -> Observation:
    """A refusal of ports that etcd held when the round began."""
    facts = {"outcome": REFUSED, "listener": ETCD, **change}
    task = facts.pop("task", None) or make_task("tcp", ports)
    return make_observation(facts.pop("outcome"), task, **facts)


def held(*ports: int, process: str = "etcd", pid: int = 8) -> ListeningBlock:
    found = [
        HeldPorts(port, port, process, process, pid, "10.0.0.2", loopback=False) for port in ports
    ]
    return listening_block(held=found)


def holders(
    block: ListeningBlock, lost: bool = False
) -> tuple[Callable[[list[Observation]], Awaitable[Checked]], FakeAgent]:
    """The look at a destination whose agent says this now."""
    target = FakeAgent(TARGET, {HeldOrder: lambda order: Listening(order.id, [block])}, lost=lost)
    return partial(check_holders, FakeFleet([FakeAgent(SOURCE), target]), target), target


def ports_of(checked: Checked) -> tuple[list[Ports], list[Ports]]:
    return [one.ports for one in checked.standing], [one.ports for one in checked.moved]


async def test_a_holder_that_is_still_there_refused_by_itself() -> None:
    """Then the refusal stands."""
    look, target = holders(held(2379, 2380))

    assert ports_of(await look([refused()])) == ([((2379, 2379),), ((2380, 2380),)], [])
    (order,) = target.orders(HeldOrder)
    assert [(block.address, block.ports) for block in order.blocks] == [
        ("10.0.0.2", [(2379, 2380)])
    ]


async def test_a_port_that_has_another_holder_or_none_is_probed_again() -> None:
    """Its own kernel refused it, as of any free port."""
    look, _ = holders(held(2380))
    assert ports_of(await look([refused()])) == ([((2380, 2380),)], [((2379, 2379),)])

    look, _ = holders(held(2379, 2380, pid=9))
    assert ports_of(await look([refused()])) == ([], [((2379, 2379),), ((2380, 2380),)])


async def test_where_nobody_can_tell_everything_is_probed_again() -> None:
    """The agent was lost meanwhile: these are ports of a host without one."""
    look, _ = holders(held(2379), lost=True)

    assert ports_of(await look([refused()])) == ([], [((2379, 2380),)])


@pytest.mark.parametrize(
    ("change", "doubtful"),
    [
        ({}, True),
        ({"outcome": Outcome("answer", "refused", Icmp(3, 3, "10.0.0.2", "destination"))}, True),
        ({"outcome": Outcome("answer", "refused", Icmp(3, 13, ROUTER, "router"))}, False),
        ({"outcome": Outcome("proxy", None, refusal="refused")}, False),
        ({"outcome": Outcome("connect", "no-answer")}, False),
        ({"outcome": Outcome("connect", None, answer="unasked")}, False),
        ({"outcome": None}, False),
        ({"listener": "loopback"}, False),
        ({"listener": "ours"}, False),
        ({"listener": "closed"}, False),
    ],
)
async def test_only_refusals_of_held_ports_are_doubtful(
    change: dict[str, Any], doubtful: bool
) -> None:
    """Without one nobody is asked."""
    look, target = holders(held())

    standing, moved = ports_of(await look([refused(**change)]))

    assert (bool(target.asked), bool(moved), bool(standing)) == (doubtful, doubtful, not doubtful)


def test_each_flow_is_probed_again_once() -> None:
    """Pieces of one task are joined; others keep apart by source, protocol, probe and name."""
    alike = [refused(((1, 1),)), refused(((5, 5),)), refused(((2, 2),))]
    others = [
        refused(task=make_task("tcp", ((9, 9),), source=host("c", "10.0.0.3"))),
        refused(task=make_task("udp", ((9, 9),))),
        refused(task=make_task("tcp", ((9, 9),), probe="etcd")),
        refused(task=make_task("tcp", ((9, 9),), probe="etcd", sni="etcd.lab.test")),
        refused(task=make_task("tcp", ((9, 9),), target=host("b", "10.0.0.4"))),
    ]

    found = tasks_of([*alike, *others])

    assert found[0].ports == ((1, 2), (5, 5))
    assert [task.ports for task in found[1:]] == [((9, 9),)] * 5


def test_a_holder_that_changes_with_every_look_decides_nothing() -> None:
    """The flow is untested, and the words name the host."""
    found = undecided(refused(), "b")

    assert found.outcome is None
    assert found.untested is not None
    assert found.untested[0] == "holder-changed"
    assert "the port on b changed" in found.untested[1]
