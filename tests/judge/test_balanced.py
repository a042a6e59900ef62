"""What the rehearsal of a balancer means."""

from __future__ import annotations

import pytest

from netprobe.judge.balanced import ROWS, judge_balancer, list_fates
from netprobe.judge.verdict import Rules, judge
from netprobe.model.balanced import Removal
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
    """A pass names the back ends, whom they saw, what was asked, and how soon those that failed
    were out and in again."""
    seen = evidence(Outcome("balancer", None), rehearsed=BALANCERS["hands-on"])
    (one, *_) = judge(seen, (0, 0, 0), Rules(strict=True))
    assert (one.verdict, one.proof, one.reason) == ("pass", "nonce", "balancer-pool")
    assert "a, b, played by agents" in one.because
    assert "connections from 10.0.0.9; health checks: /readyz over HTTPS" in one.because
    assert one.because.endswith(
        "; made to fail one after the other (answered /readyz with 500), a, b got the last "
        "connection after 4.7 to 5.1 s, and the first again 2.1 s after they were well"
    )


def test_what_was_not_measured_is_said() -> None:
    """Of each back end by itself, and why."""
    pool = BALANCERS["hands-on"]
    out, other = pool.removals
    told = {
        "was not measured: the inventory does not say": pool._replace(failing="", removals=()),
        "removal was not measured (no time was left, no source": pool._replace(removals=(out,)),
        "removal was not measured (the time was up): a": pool._replace(
            removals=(out._replace(is_out=False, kept_ms=20_000, watched_s=20), other)
        ),
        "return was not measured (the time was up): a": pool._replace(
            removals=(out._replace(back_ms=None, back_watched_s=9), other)
        ),
        "return was not measured (clients stick): a, b": pool._replace(
            removals=tuple(
                one._replace(back_ms=None, back_watched_s=0) for one in pool.removals
            )
        ),
    }  # fmt: skip
    for words, facts in told.items():
        one = judge_balancer(BLOCKED, facts)
        assert one.verdict == "pass"
        assert f"; {words}" in one.because or f" {words}" in one.because


def test_time_that_was_up_is_no_fault() -> None:
    """What is not out after 39 s is slow, and like those that are never out if there are any."""
    pool = BALANCERS["hands-on"]
    kept = Removal("a", is_out=False, kept_ms=39_000, watched_s=40)
    assert list_fates(pool._replace(removals=(kept,))) == ["slow"]
    longer = kept._replace(back_end="b", kept_ms=45_100)
    both = pool._replace(removals=(longer, kept))
    assert list_fates(both) == ["never-removes"]
    assert "fails: b in 45 s, a in 39 s" in judge_balancer(BLOCKED, both).because


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
