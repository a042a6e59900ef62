"""The one line of a host."""

from __future__ import annotations

from netprobe.agent.batch.summary import MOST_BYTES, MOST_ITEMS, RunSummary
from netprobe.agent.wire.answers import EchoOutcomes, Fault, ProbeOutcomes
from netprobe.agent.wire.parts import EchoRun, OutcomeKind, OutcomeRun, ProbeDestination
from tests.agent.rig import echo_order, order

OPEN = OutcomeKind("answer", None, None, True, "nonce", 3, None, 64, 1, None, None, None)
SILENT = OPEN._replace(failure="no-answer", answer=None)
NOISE = OPEN._replace(answer="garbled")


def said(kind: OutcomeKind, first: int = 1, last: int = 10, order_id: int = 1) -> ProbeOutcomes:
    """The outcome of these ports."""
    return ProbeOutcomes(order_id, [(1, 1)], [kind], [OutcomeRun(first, last, 0, [90], 1)], [])


def test_everything_answered() -> None:
    """Status 0."""
    summary = RunSummary()
    summary.take(order(1, "tcp", "192.0.2.1", []), said(OPEN))
    assert (summary.status(), summary.line("a", " b")) == (0, "a: 10 flows asked, 10 answered b")


def test_what_failed_is_named_the_most_first() -> None:
    """Status 1; an echo request has no port."""
    summary = RunSummary()
    summary.take(order(1, "tcp", "192.0.2.1", []), said(NOISE, 7, 7))
    summary.take(order(2, "udp", "192.0.2.2", []), said(SILENT, 8, 10))
    answer = EchoOutcomes(3, [OPEN, SILENT], [EchoRun(1, 1, 0, [9], 1), EchoRun(2, 2, 1, [9], 1)])
    summary.take(echo_order(3, "192.0.2.3", "192.0.2.4"), answer)
    assert summary.line("a", "").endswith(
        "6 flows asked, 1 answered; not as it should be: udp 8 of 192.0.2.2 no-answer and 2 ports "
        "more; icmp to 192.0.2.4 no-answer; tcp 7 of 192.0.2.1 garbled"
    )
    assert summary.status() == 1


def test_a_second_look_counts_and_is_no_flow_more() -> None:
    """What answers at last has answered."""
    summary = RunSummary()
    summary.take(order(1, "tcp", "192.0.2.1", []), said(SILENT))
    summary.note_again(2)
    summary.take(order(2, "tcp", "192.0.2.1", []), said(OPEN, 1, 9))
    assert "10 flows asked, 9 answered; not as it should be: tcp 10" in summary.line("a", "")


def test_a_line_is_short_whatever_failed() -> None:
    """Engines keep little of what a host prints."""
    summary = RunSummary()
    for number in range(300):
        summary.take(order(1, "tcp", f"2001:db8:ffff:ffff:ffff:ffff:ffff:{number:04x}", []),
                     said(SILENT))  # fmt: skip
    summary.take(None, Fault(None, "x" * 5000, None))
    line = summary.line("ä" * 100, "; results in /there")
    assert len(line.encode()) < MOST_BYTES
    assert f"and {300 - MOST_ITEMS} destinations more" in line
    assert line.endswith("; results in /there")


def test_what_is_not_known_is_said() -> None:
    """A bug of the agent, and what was not done in time: status 3."""
    summary = RunSummary()
    summary.take(None, Fault(None, "Traceback\nKeyError: 7", None))
    summary.late = 2
    assert summary.status() == 3
    assert summary.line("a", "").endswith(
        "0 answered; 2 orders were not done in time; the agent had 1 faults (KeyError: 7)"
    )


def test_each_destination_of_a_wide_order_counts() -> None:
    """One answer may be that of many destinations."""
    more = [ProbeDestination(number, f"192.0.2.{number}", 4, []) for number in (2, 3)]
    wide = order(1, "tcp", "192.0.2.1", [], more=more)
    summary = RunSummary()
    summary.take(wide, said(OPEN)._replace(places=[(1, 2)]))
    summary.take(wide, said(SILENT)._replace(places=[(3, 3)]))
    line = summary.line("a", "")
    assert "30 flows asked, 20 answered; not as it should be: tcp 1 of 192.0.2.3 no-answer" in line
