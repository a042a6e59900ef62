"""What a host on its own asks further, within its budgets."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.batch.autonomy import Autonomy
from netprobe.agent.wire.answers import Done, EchoOutcomes, ProbeOutcomes
from netprobe.agent.wire.batch import HostBudgets
from netprobe.agent.wire.host_messages import EgressOrder, Routed, RouteOrder
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder, StoryOrder, WalkOrder
from netprobe.agent.wire.parts import EchoRun, OutcomeKind, OutcomeRun
from netprobe.agent.wire.questions import NONCES, UNKNOWN_MS
from tests.agent.rig import echo_order, order
from tests.batch.support import start

TARGET = "192.0.2.9"
SOURCE = "192.0.2.1"
MANY = HostBudgets(looks=100, walks=10, routes=10, stories=10)
OPEN = OutcomeKind("answer", None, None, True, "nonce", 3, None, 64, 1, None, None, None)
SILENT = OPEN._replace(failure="no-answer", answer=None)
REFUSED = OPEN._replace(op="connect", failure="refused", answer=None)
UNANSWERED = OPEN._replace(answer="silent")


def host(budgets: HostBudgets = MANY, *orders: Any) -> Autonomy:
    """A host whose own orders have ids from 900."""
    return Autonomy(start(budgets=budgets, own_ids=(900, 999)), [("go", list(orders))])


def tcp(*ports: tuple[int, int], **more: Any) -> ProbeOrder:
    """A look of the plan at ports where an agent listens."""
    return order(1, "tcp", TARGET, ports, host=3, mode="nonce", **more)


def outcome(asked: Any, *runs: tuple[int, int, OutcomeKind]) -> list[Any]:
    """The answers that end an order: what became of which ports."""
    kinds = [kind for _, _, kind in runs]
    found = [OutcomeRun(first, last, n, [90], 1) for n, (first, last, _) in enumerate(runs)]
    return [ProbeOutcomes(asked.id, [(1, 1)], kinds, found, []), Done(asked.id, False)]


def of_kind(orders: list[Any], kind: type[Any]) -> list[Any]:
    """Those orders that are of one kind."""
    return [one for one in orders if isinstance(one, kind)]


def test_silent_ports_alone_are_asked_again() -> None:
    """With the waits and the looks of a check, and never ports that answered or were refused."""
    asked = tcp((80, 90))
    alone = host(MANY, asked)
    more = list(
        alone.follow(asked, outcome(asked, (80, 84, OPEN), (85, 86, REFUSED), (87, 90, SILENT)))
    )

    again = next(one for one in of_kind(more, ProbeOrder) if alone.is_again(one))
    assert again.blocks[0].ports == [(87, 90)]
    assert (again.first_ms, again.look_ms, again.looks) == (UNKNOWN_MS, UNKNOWN_MS, 7)
    assert sum(map(alone.is_again, more)) == 1


def test_the_way_to_an_address_is_asked_once() -> None:
    """Route, queue of the own device, echo, a control port; and of silence one walk a protocol."""
    first = tcp((80, 80))
    second = first._replace(id=2, proto="udp")
    alone = host(MANY, first, second)
    more = list(alone.follow(first, outcome(first, (80, 80, SILENT))))
    later = list(alone.follow(second, outcome(second, (80, 80, SILENT))))

    for kind in (RouteOrder, EgressOrder, EchoOrder):
        assert [len(of_kind(orders, kind)) for orders in (more, later)] == [1, 0]
    walks = [(one.proto, one.port) for one in of_kind(more + later, WalkOrder)]
    assert walks == [("tcp", 80), ("udp", 80)]


def test_what_was_refused_is_neither_asked_again_nor_walked_to() -> None:
    """Its answer is known; the way there may still be."""
    asked = tcp((80, 80))
    more = list(host(MANY, asked).follow(asked, outcome(asked, (80, 80, REFUSED))))

    assert {type(one) for one in more} == {RouteOrder, EgressOrder, EchoOrder, ProbeOrder}
    (control,) = of_kind(more, ProbeOrder)
    assert control.blocks[0].ports == [(64999, 64999)]


def test_a_second_look_that_stays_silent_asks_nothing_more() -> None:
    """One look again for each order: a host that is alone ends."""
    asked = tcp((80, 80))
    alone = host(MANY, asked)
    more = alone.follow(asked, outcome(asked, (80, 80, SILENT)))
    again = next(one for one in more if alone.is_again(one))

    assert list(alone.follow(again, outcome(again, (80, 80, SILENT)))) == []


@pytest.mark.parametrize("budget", HostBudgets._fields)
def test_a_budget_that_is_spent_ends_its_kind_alone(budget: str) -> None:
    """Looks count ports: three do not fit into a budget of two, and all others are asked."""
    asked = tcp((80, 82))
    limits = MANY._replace(**{budget: 2 if budget == "looks" else 0})
    alone = host(limits, asked)
    more = list(alone.follow(asked, outcome(asked, (80, 82, SILENT))))
    more += alone.follow(RouteOrder(900, TARGET, None), [routed(SOURCE, None)])
    more += alone.list_tells()

    absent = {
        "looks": not any(map(alone.is_again, more)),
        "walks": not of_kind(more, WalkOrder),
        "routes": not of_kind(more, RouteOrder),
        "stories": not of_kind(more, StoryOrder),
    }
    assert absent == {name: name == budget for name in HostBudgets._fields}


def routed(source: str | None, dev_mtu: int | None) -> Routed:
    """What the kernel says of the way to the target."""
    return Routed(900, source, "eth0", None, dev_mtu, None, None)


def test_ids_end_and_nothing_is_asked_then() -> None:
    """No id is given twice: the merge knows orders by them."""
    asked = tcp((80, 80))
    alone = Autonomy(start(budgets=MANY, own_ids=(900, 902)), [("go", [asked])])
    more = list(alone.follow(asked, outcome(asked, (80, 80, SILENT))))

    assert [one.id for one in more] == [900, 901, 902]


def test_packets_of_full_size_have_that_of_the_own_device() -> None:
    """Once for an address; what is as large as the script's is not sent again."""
    sized = order(5, "udp", TARGET, [(80, 80)], host=3, mode="nonce", size=1500)
    alone = host(MANY, sized)

    (larger,) = alone.follow(RouteOrder(900, TARGET, None), [routed(SOURCE, 9000)])
    assert (larger.size, larger.dst, larger.blocks) == (9000, TARGET, sized.blocks)
    assert list(alone.follow(RouteOrder(900, TARGET, None), [routed(SOURCE, 9000)])) == []
    same = host(MANY, sized)
    assert list(same.follow(RouteOrder(900, TARGET, None), [routed(SOURCE, 1500)])) == []


def test_a_full_sized_packet_without_answer_is_waited_for_longer() -> None:
    """The other end may be busy with all others; the second wait is the last."""
    sized = order(5, "udp", TARGET, [(80, 80)], host=3, mode="nonce", size=1500)
    alone = host(MANY, sized)
    (again,) = alone.follow(sized, outcome(sized, (80, 80, SILENT)))

    assert (again.size, again.first_ms, again.look_ms) == (1500, 6000, 6000)
    assert list(alone.follow(again, outcome(again, (80, 80, SILENT)))) == []


def test_the_stories_of_failed_flows_are_told_at_the_end() -> None:
    """Of what failed alone, from the address that the kernel sends from; nonces apart."""
    asked = tcp((80, 83))
    alone = host(MANY, asked)
    list(
        alone.follow(asked, outcome(asked, (80, 81, SILENT), (82, 82, UNANSWERED), (83, 83, OPEN)))
    )
    assert list(alone.list_tells()) == []
    list(alone.follow(RouteOrder(900, TARGET, None), [routed(SOURCE, None)]))

    connects, nonces = alone.list_tells()
    assert (connects.proto, connects.asker, connects.target) == ("tcp", SOURCE, TARGET)
    assert connects.ports == [(80, 81), (82, 82)]
    assert (nonces.proto, nonces.ports, nonces.numbers) == (NONCES, [(82, 82)], [asked.id])


def test_an_echo_that_fails_is_asked_again_at_that_address_alone() -> None:
    """Its story is that of all echo requests to this address."""
    asked = echo_order(1, "192.0.2.8", TARGET, numbers=[77], src=SOURCE)
    answers = [
        EchoOutcomes(1, [OPEN, SILENT], [EchoRun(1, 1, 0, [9], 1), EchoRun(2, 2, 1, [9], 1)]),
        Done(1, False),
    ]
    alone = host(MANY, asked)
    more = list(alone.follow(asked, answers))

    (again,) = [one for one in more if alone.is_again(one)]
    assert (again.dsts, again.looks, again.numbers) == ([TARGET], 3, [again.id])
    (story,) = alone.list_tells()
    assert (story.proto, story.target, story.numbers, story.ports) == ("icmp", TARGET, [], [])
