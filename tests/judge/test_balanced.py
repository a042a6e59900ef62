"""What the rehearsal of a balancer means."""

from __future__ import annotations

import pytest

from netprobe.judge.balanced import ROWS, judge_balancer, list_fates
from netprobe.judge.verdict import Rules, judge
from netprobe.model.evidence import Outcome
from netprobe.request.rules import RequestWishes
from pages.combinations import BALANCERS
from tests.judge.test_verdict import evidence
from tests.report.samples import BLOCKED, INFO
from tests.request.flows import ask


def test_each_fate_has_its_facts() -> None:
    """Every row of the table is reached by facts of its own."""
    assert {fate: list_fates(facts) for fate, facts in BALANCERS.items()} == {
        fate: [fate] for fate in ROWS
    }


def test_the_gravest_is_the_reason() -> None:
    """What else is wrong stands in the warnings, with its words: TLS that is ended hides no missing
    back end."""
    facts = BALANCERS["lacks"]._replace(ended=24, shown="the certificate of lb", headers=3)
    one = judge_balancer(BLOCKED, facts)
    assert one.reason == "balancer-ends-tls"
    assert [text.split(",")[0] for text in one.warnings] == [
        "balancer-proxy-header", "balancer-lacks",
    ]  # fmt: skip
    assert "reached b in 31 s" in one.warnings[1]


def test_a_whole_pool_is_proof() -> None:
    """A pass names the back ends, whom they saw, what was asked, and what was not measured."""
    seen = evidence(Outcome("balancer", None), rehearsed=BALANCERS["hands-on"])
    (one, *_) = judge(seen, (0, 0, 0), Rules(strict=True))
    assert (one.verdict, one.proof, one.reason) == ("pass", "nonce", "balancer-pool")
    assert "a, b, played by agents" in one.because
    assert "connections from 10.0.0.9; health checks: /readyz over HTTPS" in one.because
    assert one.because.endswith("was not measured")


@pytest.mark.parametrize("fate", sorted(set(ROWS) - {"hands-on"}))
def test_no_rule_helps(fate: str) -> None:
    """The port is open: no firewall rule is asked for."""
    one = judge_balancer(BLOCKED, BALANCERS[fate])  # type: ignore[index]
    assert not ask([one], RequestWishes(), INFO).rules


def test_what_is_no_fault_for_certain() -> None:
    """A check that refuses our certificates, and clients that stick, hide what is missing."""
    for fate in ("lacks-by-check", "lacks-or-sticks"):
        one = judge_balancer(BLOCKED, BALANCERS[fate])
        assert (one.verdict, one.reason) == ("inconclusive", "balancer-lacks")
