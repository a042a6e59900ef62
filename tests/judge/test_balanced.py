"""What the rehearsal of a balancer means."""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest
from msgspec.structs import replace

from netprobe.judge.balanced import ROWS, judge_balancer, list_fates
from netprobe.judge.verdict import Rules, judge
from netprobe.model.balanced import Removal
from netprobe.model.evidence import Outcome
from netprobe.model.matrix import Persistence
from netprobe.request.rules import RequestWishes
from pages.combinations import BALANCERS
from tests.judge.test_verdict import evidence
from tests.report.samples import BLOCKED, INFO, PASSED
from tests.request.flows import ask

PERSISTENCES: Final[tuple[Persistence | None, ...]] = ("none", None)


def test_each_fate_has_its_facts() -> None:
    """Every row of the table is reached by facts of its own."""
    found = {fate: list_fates(facts, "none") for fate, facts in BALANCERS.items()}
    assert found == {fate: [fate] for fate in ROWS}


def test_the_gravest_is_the_reason() -> None:
    """What else is wrong stands in the warnings, with its words: TLS that is ended hides no missing
    back end."""
    facts = BALANCERS["lacks"]._replace(ended=24, shown="the certificate of lb", headers=3)
    one = judge_balancer(BLOCKED, facts, None)
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
        one = judge_balancer(BLOCKED, facts, None)
        assert one.verdict == "pass"
        assert f"; {words}" in one.because or f" {words}" in one.because


def test_clients_may_stick_where_nothing_forbids_it() -> None:
    """The flow passes then, and says that this source saw one back end, and others saw others;
    what else is wrong stays so. Certificates alone show the same."""
    sticks = BALANCERS["sticks"]
    words = "all 24 connections of this source were handed on to a, while other sources got others"
    held = sticks._replace(held=BALANCERS["looks-on"].held)
    for facts in (sticks, held):
        fault, passed = (judge_balancer(PASSED, facts, one) for one in PERSISTENCES)
        assert (fault.verdict, fault.reason) == ("blocked", "balancer-sticks")
        assert fault.because.startswith(words)
        assert (passed.verdict, passed.reason) == ("pass", "balancer-pool")
        assert passed.warnings[0].startswith(words)
        assert passed.warnings[0].endswith("; no document of this row forbids it")
        assert len(passed.warnings) == 1 + len(fault.warnings)
        base = evidence(Outcome("balancer", None), rehearsed=facts)
        row = replace(base.flow.block.requirement, persistence="none")
        block = replace(base.flow.block, requirement=row)
        by_row = replace(base, flow=replace(base.flow, block=block))
        reasons = [judge(seen, (0, 0, 0), Rules())[0].reason for seen in (base, by_row)]
        assert reasons == ["balancer-pool", "balancer-sticks"]
    one = judge_balancer(PASSED, sticks._replace(headers=24), None)
    assert one.reason == "balancer-proxy-header"
    assert [text.split(" ")[0] for text in one.warnings] == ["all"]


def test_time_that_was_up_is_no_fault() -> None:
    """What is not out after 39 s is slow, and like those that are never out if there are any."""
    pool = BALANCERS["hands-on"]
    kept = Removal("a", is_out=False, kept_ms=39_000, watched_s=40)
    assert list_fates(pool._replace(removals=(kept,)), None) == ["slow"]
    longer = kept._replace(back_end="b", kept_ms=45_100)
    both = pool._replace(removals=(longer, kept))
    assert list_fates(both, None) == ["never-removes"]
    assert "fails: b in 45 s, a in 39 s" in judge_balancer(BLOCKED, both, None).because


@pytest.mark.parametrize("fate", sorted(set(ROWS) - {"hands-on"}))
def test_no_rule_helps(fate: str) -> None:
    """The port is open: no firewall rule is asked for."""
    one = judge_balancer(BLOCKED, BALANCERS[fate], None)  # type: ignore[index]
    assert not ask([one], RequestWishes(), INFO).rules


def test_what_is_no_fault_for_certain() -> None:
    """A check that refuses our certificates, and clients that stick, hide what is missing, whether
    they may stick or not."""
    doubts = (BALANCERS["lacks-by-check"], BALANCERS["lacks-or-sticks"])
    for facts, persistence in product(doubts, PERSISTENCES):
        one = judge_balancer(BLOCKED, facts, persistence)
        assert (one.verdict, one.reason) == ("inconclusive", "balancer-lacks")


def test_who_sticks_for_certain_hides_what_is_missing() -> None:
    """Sources that got different back ends, each always the same one, stick: that is the reason
    where it is forbidden, and the missing back end a warning; elsewhere it is the other way."""
    facts = BALANCERS["lacks-or-sticks"]._replace(
        back_ends=("a", "b", "c"), pool=("a", "b"), sticks=True
    )
    forbidden, allowed = (judge_balancer(PASSED, facts, one) for one in PERSISTENCES)
    assert (forbidden.verdict, forbidden.reason) == ("blocked", "balancer-sticks")
    assert [text.split(" reached")[0] for text in forbidden.warnings] == [
        "balancer-lacks, too: no connection through the balancer"
    ]
    assert (allowed.verdict, allowed.reason) == ("inconclusive", "balancer-lacks")
    assert "whether c would get other clients or is not in the pool" in allowed.because
    assert allowed.warnings[0].endswith("no document of this row forbids it")


def test_few_connections_without_an_answer_are_a_warning() -> None:
    """Many are a fault; those of a back end to itself are another one."""
    facts = BALANCERS["loses"]
    few = judge_balancer(BLOCKED, facts._replace(unanswered=1), None)
    assert few.verdict == "pass"
    assert few.warnings[0].startswith("1 of 36 connections from here had no answer (reset)")
    assert judge_balancer(BLOCKED, facts, None).reason == "balancer-loses"
    own = facts._replace(itself=False, unreflected=("a",))
    assert list_fates(own, None) == ["own-reflection"]
