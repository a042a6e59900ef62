"""Outcomes are folded into runs, and every port is in exactly one of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from netprobe.agent.probers.outcomes import (
    FLUSH_PORTS,
    DestinationOutcomes,
    Outcomes,
    fold,
    kind,
)
from netprobe.agent.wire.parts import EchoRun

REFUSED = kind("connect", "refused")
OPEN = kind("connect", answer="unasked")


def test_one_outcome_of_a_range_is_one_run() -> None:
    """2,768 node ports that all refuse are one run with the median round trip."""
    spans = [(port, port, 0, port % 3, 1) for port in range(32767, 29999, -1)]

    assert fold(spans) == [(30000, 32767, 0, 1, 1)]


def test_spans_and_single_ports_fold_together() -> None:
    """What came as a range counts with every port of it: in the run, and in its median."""
    spans = [(10, 19, 0, 7, 1), (21, 21, 0, 9, 1), (20, 20, 0, 8, 2), (1, 3, 1, -1, 1)]

    assert fold(spans) == [
        (1, 3, 1, None, 1),
        (10, 21, 0, 7, 2),
    ]


def test_a_different_port_splits_a_run() -> None:
    """A hole, another kind and the rest are three runs."""
    spans = [(1, 1, 0, 5, 1), (2, 2, 0, 5, 1), (3, 3, 1, 9, 2), (4, 4, 0, -1, 1), (6, 6, 0, 7, 3)]

    assert fold(spans) == [
        (1, 2, 0, 5, 1),
        (3, 3, 1, 9, 2),
        (4, 4, 0, None, 1),
        (6, 6, 0, 7, 3),
    ]


@given(st.dictionaries(st.integers(1, 300), st.tuples(st.integers(0, 2), st.integers(1, 3))))
def test_every_port_is_in_exactly_one_run(found: dict[int, tuple[int, int]]) -> None:
    """Unfolding the runs gives back each port with its kind."""
    spans = [(port, port, index, 10, attempts) for port, (index, attempts) in found.items()]
    seen: dict[int, int] = {}
    for first, last, index, _, _ in fold(spans):
        for port in range(first, last + 1):
            assert port not in seen
            seen[port] = index

    assert seen == {port: index for port, (index, _) in found.items()}


def test_kinds_are_sent_once() -> None:
    """A message names each kind once; its runs refer to it by its place."""
    sent: list[Any] = []
    outcomes = Outcomes(lambda *told: sent.append(told))
    for port in (1, 2, 3):
        outcomes.add(port, OPEN if port == 2 else REFUSED, 0.001, 1)
    outcomes.flush()
    outcomes.flush()

    (message,) = sent
    assert message == (
        [REFUSED, OPEN],
        [(1, 1, 0, 1000, 1), (2, 2, 1, 1000, 1), (3, 3, 0, 1000, 1)],
        None,
    )


def test_syn_counts_do_not_split_runs() -> None:
    """Timer jitter counts 5 SYNs here and 6 there; the run says the least."""
    sent: list[Any] = []
    outcomes = Outcomes(lambda *told: sent.append(told))
    silent = kind("connect", "no-answer", left=True)
    for port, syns in ((1, 6), (2, 5), (3, 6)):
        outcomes.add(port, silent, None, 2, syns)
    outcomes.flush()

    assert sent[0][1] == [(1, 3, 0, None, 2)]
    assert sent[0][0] == [silent._replace(packets=5)]


def test_a_big_order_reports_as_it_goes() -> None:
    """Memory does not grow with the order: a full batch is sent."""
    sent: list[Any] = []
    outcomes = Outcomes(lambda *told: sent.append(told))
    for port in range(FLUSH_PORTS):
        outcomes.add(port, REFUSED, None, 1)

    assert len(sent) == 1
    assert len(outcomes) == 0


def test_destinations_keep_their_own_round_trips_and_counts() -> None:
    """Neighbours of one kind are one run with a list; another number of packets is another kind."""
    sent: list[Any] = []
    outcomes = DestinationOutcomes(lambda *told: sent.append(told))
    echo, silent = kind("answer", answer="echo"), kind("answer", "no-answer")
    for place, what, rtt_s, looks, packets in (
        (3, echo, 0.003, 1, None),
        (1, echo, 0.001, 1, None),
        (2, echo, None, 1, None),
        (4, echo, 0.004, 2, None),
        (5, silent, None, 2, 6),
        (6, silent, None, 2, 5),
        (8, silent, None, 2, 5),
    ):
        outcomes.add(place, what, rtt_s, looks, packets)
    outcomes.flush()

    assert sent == [
        (
            [echo, silent._replace(packets=6), silent._replace(packets=5)],
            [
                EchoRun(1, 3, 0, [1000, None, 3000], 1),
                EchoRun(4, 4, 0, [4000], 2),
                EchoRun(5, 5, 1, [None], 2),
                EchoRun(6, 6, 2, [None], 2),
                EchoRun(8, 8, 2, [None], 2),
            ],
            None,
        )
    ]
