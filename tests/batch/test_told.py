"""What one host's results say beside its probes, looked up by what is asked."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.answers import Listening, Seen, StoryTold, Walked
from netprobe.agent.wire.host_messages import Routed, RouteOrder
from netprobe.agent.wire.orders import ListenOrder, SeenOrder, StoryOrder, WalkOrder
from netprobe.agent.wire.parts import (
    HeldPorts,
    ListenBlock,
    ListeningBlock,
    OrderArrivals,
    SeenPackets,
    SeenRun,
    WalkHop,
)
from netprobe.batch.checked_lines import ResultsRefused
from netprobe.batch.results import HostRecording
from netprobe.batch.told import HostTold

HERE, THERE = "192.0.2.1", "192.0.2.2"
EMPTY = ListeningBlock([], [], [], [], [], [], False)


def told(*asked: tuple[Any, Any]) -> HostTold:
    """A host that was given these orders, and answered each of them once."""
    answers: dict[int, tuple[Any, ...]] = {}
    for order, answer in asked:
        answers[order.id] = (*answers.get(order.id, ()), answer)
    orders = tuple(dict.fromkeys(order.id for order, _ in asked))
    by_id = {order.id: order for order, _ in asked}
    found = tuple(by_id[one] for one in orders)
    return HostTold(HostRecording("a.npr", "a", None, orders=found, answers=answers), {})


def routed(number: int, device: str) -> Routed:
    """A route through a device."""
    return Routed(number, HERE, device, None, 1500, None, None)


def test_the_answers_to_one_question_come_in_turn() -> None:
    """Ids do not count; the last answer is given again, and what was not asked has none."""
    orders = [RouteOrder(number, THERE, None) for number in (1, 2)]
    host = told((orders[0], routed(1, "eth0")), (orders[1], routed(2, "eth1")))
    asked = RouteOrder(700, THERE, None)

    devices = [host.find_single(asked).dev for _ in range(3)]  # type: ignore[union-attr]
    assert devices == ["eth0", "eth1", "eth1"]
    assert host.find_single(RouteOrder(700, HERE, None)) is None


def test_a_walk_counts_for_every_port_and_for_shorter_ones() -> None:
    """Cut to the length that is asked; a shorter walk says nothing about a longer one."""
    hops = [WalkHop(ttl, f"192.0.2.{ttl}") for ttl in range(1, 4)]
    walk = WalkOrder(1, "tcp", THERE, 80, None, 16, 0)
    host = told((walk, Walked(1, hops, True, None, None)))

    whole = host.find_walk(walk._replace(id=7, port=443))
    cut = host.find_walk(walk._replace(id=7, max_ttl=2))
    assert whole is not None
    assert (len(whole.hops), whole.reached) == (3, True)
    assert cut is not None
    assert (len(cut.hops), cut.reached) == (2, False)
    assert host.find_walk(walk._replace(max_ttl=17)) is None
    assert host.find_walk(walk._replace(proto="udp")) is None


def test_listeners_are_found_port_by_port() -> None:
    """From several blocks; what the host was not asked to open is left over."""
    order = ListenOrder(
        1,
        [
            ListenBlock("tcp", HERE, [(80, 90)], None, 0),
            ListenBlock("tcp", HERE, [(100, 100)], None, 0),
            ListenBlock("udp", HERE, [(80, 90)], None, 0),
        ],
    )
    held = HeldPorts(85, 90, "sshd", "sshd", 7, HERE, False)
    blocks = [
        EMPTY._replace(up=[(80, 84)], held=[held]),
        EMPTY._replace(up=[(100, 100)], nat=True),
        EMPTY._replace(denied=[(80, 90)]),
    ]
    host = told((order, Listening(1, blocks)))
    found, rest = host.find_block(
        ListenOrder, ListenBlock("tcp", HERE, [(84, 86), (99, 101)], None, 0), b""
    )

    assert (found.up, found.denied, found.nat) == ([(84, 84), (100, 100)], [], True)
    assert [(one.first, one.last) for one in found.held] == [(85, 86)]
    assert rest == ((99, 99), (101, 101))
    assert [host.is_held("tcp", HERE, port) for port in (84, 85, 91)] == [False, True, False]
    assert not host.is_held("udp", HERE, 85)


def test_later_arrivals_hold_earlier_ones() -> None:
    """Of each order the last answer that speaks of it counts."""
    asked = [SeenOrder(number, 9, [5, 6], rest=True) for number in (1, 2)]
    early = [OrderArrivals(5, [(80, 80)], [HERE], None), OrderArrivals(6, [(1, 1)], [HERE], None)]
    late = [OrderArrivals(5, [(80, 81)], [HERE], None)]
    host = told((asked[0], Seen(1, early, [], [], [])), (asked[1], Seen(2, late, [], [], [])))

    assert {order: [one.ports for one in some] for order, some in host.arrivals().items()} == {
        5: [[(80, 81)]], 6: [[(1, 1)]],
    }  # fmt: skip


def story(number: int, ports: list[tuple[int, int]], numbers: list[int]) -> StoryOrder:
    """What a recorder is asked about some ports."""
    return StoryOrder(number, "udp", None, HERE, THERE, ports, True, numbers, [])


def saw(number: int, ports: list[tuple[int, int]], **more: Any) -> StoryTold:
    """The recorder saw requests for these ports."""
    run = SeenRun(ports, SeenPackets(1, 1, 0, 64, "eth0"), None, None, [])
    usual = StoryTold(number, True, None, [run], [], [], True, True, 0, False)
    return usual._replace(**more)


def test_a_story_is_joined_from_what_was_told_of_its_ports() -> None:
    """What was lost at either counts for both; a port that nobody was asked about leaves none."""
    host = told(
        (story(1, [(80, 89)], [5]), saw(1, [(80, 89)], lost=3)),
        (story(2, [(90, 99)], [6]), saw(2, [(90, 99)], heard=False)),
    )
    found, is_exact = host.find_story(story(7, [(85, 95)], []))

    assert found is not None
    assert sorted(entry for run in found.runs for entry in run.ports) == [(85, 89), (90, 95)]
    assert (found.lost, found.heard, is_exact) == (3, True, True)
    assert host.find_story(story(7, [(85, 100)], []))[0] is None
    assert host.find_story(story(7, [(85, 86)], [5]))[1] is True
    assert host.find_story(story(7, [(85, 86)], [6]))[1] is False


def test_an_answer_that_breaks_the_rules_refuses_the_results() -> None:
    """By the file's name and with the host that wrote it."""
    order = ListenOrder(1, [ListenBlock("tcp", HERE, [(80, 90)], None, 0)])
    with pytest.raises(ResultsRefused, match="breaks the rules of the wire") as refused:
        told((order, Listening(1, [EMPTY._replace(up=[(80, 91)])])))
    assert "a.npr" in str(refused.value)
