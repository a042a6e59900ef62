"""No wrong answer, and nearly all is exactly what can be known, on a sample of all cases."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.lab.accuracy.cases import all_cases, open_cases, sample
from tests.lab.accuracy.expected import expected
from tests.lab.accuracy.modes import busy, with_netprobe
from tests.lab.accuracy.scoring import Scored, false_blocks, question_of, share_right, summary

# Coprime with the six of families and listeners, so that every kind is met.
SHARE = 13
BUSY_SHARE = 25
# Each is a run of netprobe with its agents: more of them wait less and cost more processor time.
CHAINS = 8
ENOUGH = 0.98
# Of all cases 98.0 % are; a sample has some more of the others.
ENOUGH_OF_NOBODY = 0.95
LOSS = 0.2
LOSS_COPIES = 5


def _check(scored: Sequence[Scored], enough: float = ENOUGH) -> None:
    lines = "\n".join(one.line() for one in scored if one.score != "right")
    wrong = [one for one in scored if one.score == "wrong"]
    assert not wrong, f"{summary(scored)}\n{lines}"
    assert share_right(scored) >= enough, f"{summary(scored)}\n{lines}"


@pytest.mark.parametrize("captures", [True, False])
def test_every_case_has_a_rule(captures: bool) -> None:
    """Each case under each protocol has an expectation, and the true place is in it."""
    for case in all_cases():
        for protocol in case.protocols:
            question = question_of(case, protocol, "address", captures)
            want = expected(question)
            assert want.must <= want.may
            assert want.verdict == "pass" or question.truth in (None, *want.must)


@pytest.mark.slow
def test_agents_of_root() -> None:
    """With every capability."""
    _check(with_netprobe(sample(SHARE), count=CHAINS))


@pytest.mark.slow
def test_agents_of_nobody() -> None:
    """Without any capability at either end."""
    scored = with_netprobe(sample(SHARE), privileged=False, count=CHAINS)
    _check(scored, ENOUGH_OF_NOBODY)


@pytest.mark.full
@pytest.mark.alone
@pytest.mark.slow
def test_busy_cores() -> None:
    """Four loops on all cores: nothing that was slow is called blocked or put elsewhere."""
    with busy(4):
        scored = with_netprobe(sample(BUSY_SHARE), count=3)
    _check(scored, enough=0.0)


@pytest.mark.slow
def test_random_loss() -> None:
    """A fifth of all packets lost in each direction: no open way is called blocked."""
    scored = with_netprobe(open_cases(LOSS_COPIES), loss=LOSS, count=5)
    assert not false_blocks(scored), "\n".join(one.line() for one in false_blocks(scored))
