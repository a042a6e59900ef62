"""What became of each rule of a request."""

from __future__ import annotations

from msgspec.structs import replace

from netprobe.model.firewall import Enforcer, FirewallRule, RuleEnd
from netprobe.report.record.earlier import rule_notes
from tests.report.samples import BLOCKED, PASSED

ENDS = (RuleEnd("master-0", "10.0.0.10"), RuleEnd("master-1", "10.0.0.11"))
RULE = FirewallRule(
    id="R1",
    family=4,
    protocol="tcp",
    ports=((2379, 2380),),
    sources=ENDS,
    destinations=ENDS,
    enforcers=(Enforcer("path"),),
)


def test_done_and_not_done() -> None:
    """A rule is done when all of its flows pass; answers are no rule of their own."""
    other = replace(RULE, id="R2", ports=((2380, 2381),))
    back = replace(RULE, id="R3", answers=True)
    gone = replace(RULE, id="R4", ports=((9, 9),))
    results = [
        replace(PASSED, port=2379, end_port=2380),
        replace(BLOCKED, port=2381, end_port=2381),
        replace(BLOCKED, port=2381, end_port=2381, protocol="udp"),
    ]

    assert list(rule_notes([RULE, other, back, gone], results)) == [
        "done: R1 of the request",
        "not done: R2 of the request: 1 blocked, 1 pass of 2 flows",
        "not done: R4 of the request: none of its flows is in this plan",
    ]


def test_without_a_request() -> None:
    """A retry of a run has nothing to say of rules."""
    assert list(rule_notes((), [PASSED])) == []
