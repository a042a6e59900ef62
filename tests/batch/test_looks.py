"""What one host's results say of its probes, looked up by what is asked."""

from __future__ import annotations

from typing import Any

from netprobe.agent.wire.answers import EchoOutcomes, ProbeOutcomes
from netprobe.agent.wire.parts import EchoRun, OutcomeKind, OutcomeRun, ProbeDestination
from netprobe.batch.looks import ENOUGH, HostLooks, TakenLook
from tests.agent.rig import echo_order, order
from tests.batch.support import KIND

HERE, THERE = "192.0.2.1", "192.0.2.2"
SILENT = KIND._replace(failure="no-answer", answer=None, packets=ENOUGH)


def told(asked: Any, *runs: tuple[int, int, OutcomeKind], place: int = 1) -> ProbeOutcomes:
    """What an order says of one of its destinations."""
    kinds = [kind for _, _, kind in runs]
    found = [OutcomeRun(first, last, n, [90], 1) for n, (first, last, _) in enumerate(runs)]
    return ProbeOutcomes(asked.id, [(place, place)], kinds, found, [])


def looks(*asked: tuple[Any, ProbeOutcomes | EchoOutcomes]) -> HostLooks:
    """All of a host's looks, without templates."""
    every = HostLooks()
    for one, answer in asked:
        every.add(one, (answer,), {})
    return every


def rows_of(taken: TakenLook) -> list[tuple[int, int, str | None]]:
    """Ports and what became of them."""
    return [(row.first, row.last, row.kind.answer or row.kind.failure) for row in taken.rows]


def tcp(number: int, *ports: tuple[int, int], **more: Any) -> Any:
    """An order of the host, or one that a merge asks with."""
    return order(number, "tcp", HERE, ports, mode="nonce", **more)


def test_a_look_is_found_by_what_was_sent() -> None:
    """Whatever ids and cuts of ports the merge has; the host's own ids name the packets."""
    asked = tcp(1, (80, 90))
    every = looks((asked, told(asked, (80, 84, KIND), (85, 90, SILENT))))
    taken = every.take(tcp(700, (83, 86)), {})

    assert rows_of(taken) == [(83, 84, "nonce"), (85, 86, "no-answer")]
    assert (taken.orders, taken.missing) == ([(1, ((83, 86),))], [])


def test_what_was_sent_otherwise_is_another_look() -> None:
    """Another size, TTL, port of its own or mode is missing, and says which ports."""
    asked = tcp(1, (80, 80))
    every = looks((asked, told(asked, (80, 80, KIND))))
    for other in (
        tcp(7, (80, 80), size=1500), tcp(7, (80, 80), min_ttl=65), tcp(7, (80, 80), sport=9),
        order(7, "udp", HERE, [(80, 80)], mode="nonce"), order(7, "tcp", THERE, [(80, 80)]),
    ):  # fmt: skip
        taken = every.take(other, {})
        assert rows_of(taken) == []
        assert [ports for _, ports in taken.missing] == [((80, 80),)]


def test_the_second_request_gets_the_second_look() -> None:
    """In the order in which they were asked; a third is missing."""
    first, second = tcp(1, (80, 80)), tcp(2, (80, 80))
    every = looks((first, told(first, (80, 80, SILENT))), (second, told(second, (80, 80, KIND))))
    taken = [every.take(tcp(7, (80, 80)), {}) for _ in range(3)]

    assert [rows_of(one) for one in taken] == [[(80, 80, "no-answer")], [(80, 80, "nonce")], []]
    assert taken[2].missing
    assert [row.kind.answer for row in every.find(taken[2].missing[0][0], ((80, 80),))] == [None]


def test_silence_at_too_few_looks_is_not_believed() -> None:
    """A port that was asked once may have lost its packet; one answer at any look is enough."""
    first, second = tcp(1, (80, 81)), tcp(2, (81, 81))
    once = SILENT._replace(packets=1)
    alone = looks((first, told(first, (80, 81, once))))
    answered = looks((first, told(first, (80, 81, once))), (second, told(second, (81, 81, KIND))))

    taken = alone.take(tcp(7, (80, 81)), {})
    assert (rows_of(taken), taken.is_doubtful) == ([], True)
    assert [ports for _, ports in taken.missing] == [((80, 81),)]
    assert rows_of(answered.take(tcp(7, (80, 81)), {})) == [(81, 81, "no-answer")]


def test_each_destination_of_an_order_has_its_own_looks() -> None:
    """Of a wide order and of echo requests, whose numbers may be others' orders."""
    wide = tcp(1, (80, 80))._replace(more=[ProbeDestination(2, THERE, 4, [])])
    pings = echo_order(5, HERE, THERE, numbers=[50, 51])
    every = HostLooks()
    every.add(wide, (told(wide, (80, 80, KIND)), told(wide, (80, 80, SILENT), place=2)), {})
    answer = EchoOutcomes(5, [KIND, SILENT], [EchoRun(1, 1, 0, [9], 1), EchoRun(2, 2, 1, [9], 1)])
    every.add(pings, (answer,), {})

    taken = every.take(order(7, "tcp", THERE, [(80, 80)], mode="nonce"), {})
    assert (rows_of(taken), taken.orders) == ([(80, 80, "no-answer")], [(2, ((80, 80),))])
    echo = every.take(echo_order(7, THERE), {})
    assert (rows_of(echo), echo.orders) == ([(0, 0, "no-answer")], [(51, ((0, 0),))])
    assert {key.proto for key in every.keys_to(THERE)} == {"tcp", "icmp"}
