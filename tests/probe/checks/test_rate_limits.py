"""Which ports are asked slowly, in what order, and what becomes of them."""

from __future__ import annotations

from typing import Any

from netprobe.model import ports as port_sets
from netprobe.model.evidence import Icmp, Listener, Outcome
from netprobe.model.ports import Ports
from netprobe.probe.checks.rate_limits import SPOKESMEN, TRIES, _may_be_limited, _Pending
from netprobe.probe.flows.batches import Part
from netprobe.probe.flows.prober import Sighting
from netprobe.probe.flows.work import Task
from netprobe.protocols import protocol_for
from tests.plan.conftest import host

SILENT = Outcome("connect", "no-answer", left_host=True, attempts=2, packets=6)
OPEN = Outcome("answer", None, answer="nonce")
LATE = Outcome("answer", None, answer="nonce", attempts=2)
REFUSED = Outcome("connect", "refused")
PROHIBITED = Outcome("connect", "host-unreachable", Icmp(3, 13, "10.0.0.254", "router"))


def sighting(outcome: Outcome, *ports: tuple[int, int], state: Any = "ours") -> Sighting:
    source = host("a", "node", addresses=("10.0.0.1",))
    listener = Listener(state)
    task = Task(source, "10.0.0.2", 4, "tcp", None, False, ports, ())
    part = Part(task, ports, ((ports, listener),), protocol_for(None), "nonce", 0, False)
    return Sighting(task, part, ports, 1, outcome, listener)


def settle(group: list[Sighting], answering: Ports, size: int) -> tuple[dict[str, Ports], int]:
    """What becomes of each port, and how many were asked in all."""
    pending = _Pending(group)
    asked = 0
    while pending.waits():
        batch = pending.take(size)
        asked += len(batch)
        answers = [
            sighting(OPEN, (port, port))
            if port_sets.intersect(((port, port),), answering)
            else None
            for _, port in batch
        ]
        pending.note(batch, answers, fair=True)
    found: dict[str, Ports] = {}
    for one in pending.result():
        assert one.outcome is not None
        word = "limited" if one.limited else (one.outcome.failure or "open")
        found[word] = port_sets.normalise((*found.get(word, ()), *one.ports))
    return found, asked


def test_a_rules_range_is_asked_at_a_few_ports() -> None:
    """Nothing answers: the spokesmen are enough, however long the range."""
    group = [sighting(OPEN, (1, 10)), sighting(SILENT, (7000, 9999))]

    found, asked = settle(group, (), size=2)

    assert found == {"open": ((1, 10),), "no-answer": ((7000, 9999),)}
    assert asked == SPOKESMEN * TRIES


def test_what_answers_slowly_is_open_and_a_rule_beside_it_stays() -> None:
    """Each port of the limited run is asked; the rule's part is found in it."""
    group = [sighting(OPEN, (1, 10)), sighting(SILENT, (7000, 7199))]

    found, asked = settle(group, ((7000, 7099), (7150, 7199)), size=2)

    assert found == {"open": ((1, 10), (7000, 7099), (7150, 7199)), "no-answer": ((7100, 7149),)}
    assert asked < 2 * 200


def test_what_there_was_no_time_for_is_not_told() -> None:
    """Neither open nor stopped: the judge must know."""
    pending = _Pending([sighting(SILENT, (7000, 7099))])
    assert pending.waits()
    batch = pending.take(2)
    pending.note(batch, [sighting(OPEN, (port, port)) for _, port in batch], fair=True)

    words = [(one.limited, port_sets.count(one.ports)) for one in pending.result()]

    assert sorted(words) == [(False, 1), (False, 1), (True, 98)]


def test_silence_among_many_or_without_control_settles_nothing() -> None:
    """Only few at once, while a known port answers, are believed to be stopped."""
    pending = _Pending([sighting(SILENT, (7000, 7003))])
    for _ in range(5):
        assert pending.waits()
        pending.note(pending.take(4), [None] * 4, fair=True)
        assert pending.waits()
        pending.note(pending.take(2), [None] * 2, fair=False)

    assert all(one.limited for one in pending.result())


def test_what_raises_suspicion() -> None:
    """Late answers beside silence, or refusals in numbers; never a single refused port."""
    wide = sighting(OPEN, (1, 10))
    assert not _may_be_limited([wide, sighting(SILENT, (20, 90))], late=False)
    assert _may_be_limited([sighting(LATE, (1, 10)), sighting(SILENT, (20, 90))], late=True)
    assert _may_be_limited([wide, sighting(REFUSED, (20, 25))], late=False)
    assert _may_be_limited([wide, sighting(PROHIBITED, (20, 25))], late=False)
    assert not _may_be_limited([wide, sighting(REFUSED, (20, 21))], late=False)
    assert not _may_be_limited([wide, sighting(REFUSED, (20, 90), state="closed")], late=False)
