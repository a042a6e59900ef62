"""Whatever agents see, the result is one that files may hold."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netprobe.agent.wire.failures import FAILURES
from netprobe.judge.rows import Symptom
from netprobe.judge.verdict import Rules, judge
from netprobe.model.evidence import (
    Answer,
    CheckConclusion,
    Evidence,
    Icmp,
    Listener,
    Outcome,
    PathMtu,
    RefusalMaker,
    ResetOrigin,
    ServerClock,
    ServiceFinding,
    ServiceWord,
    Trace,
    Witness,
)
from netprobe.model.plan import PATH_MTU
from netprobe.model.story import Sight, Story, StoryPlace
from netprobe.report.record.contradictions import check_alone
from pages.combinations import make_evidence

MAYBE = st.none() | st.booleans()
ICMP = st.builds(
    Icmp,
    st.sampled_from((1, 3, 4, 11)),
    st.integers(0, 13),
    st.sampled_from(("10.0.0.254", "fd00::1")),
    st.sampled_from(("source", "destination", "router")),
)
OUTCOMES = st.builds(
    Outcome,
    st.sampled_from(("connect", "answer", "send", "bind", "proxy", PATH_MTU)),
    st.none() | st.sampled_from((*FAILURES, "unknown-EDOM")),
    icmp=st.none() | ICMP,
    left_host=MAYBE,
    answer=st.none() | st.sampled_from(get_args(Answer)),
    elapsed_ms=st.sampled_from((None, 10, 3100)),
    blind=st.booleans(),
    refusal=st.sampled_from((None, None, 403, 502, "not-http", "refused", "no-response")),
    clock=st.none() | st.builds(ServerClock, st.sampled_from((2, 16)), st.booleans()),
)
PLACES = st.sampled_from(get_args(Sight)).map(StoryPlace)
STORIES = st.builds(Story, *[PLACES] * 6, errors=st.just(())).map(Story.settled)
REPLIES = st.sampled_from((None, "not-permitted", "invalid-route", "no-neighbour", "own-address"))
FACTS = st.fixed_dictionaries({
    "outcome": st.none() | OUTCOMES,
    "listener": st.builds(
        Listener,
        st.sampled_from(("ours", "live", "loopback", "bound", "closed", "lost", "unknown")),
        nat=st.booleans(),
        processes=st.sampled_from(((), ("sshd",), ("netprobe-agent",))),
        beside=st.sampled_from((None, "x on 127.0.0.1")),
        beside_loopback=st.booleans(),
    ),
    "witness": st.none()
    | st.builds(
        Witness,
        socket=st.booleans(),
        reply_failure=REPLIES,
        filtered_at=st.sampled_from((None, "eth1")),
    ),
    "story": st.none() | STORIES,
    "trace": st.sampled_from((None, Trace(None, 0), Trace("10.0.0.254", 1))),
    "mtu": st.none()
    | st.builds(
        PathMtu,
        st.sampled_from((None, 1400, 1450)),
        st.sampled_from((None, 1450)),
        st.sampled_from(("nonce", "witness", "service")),
        lost_back=st.booleans(),
    ),
    "limited": st.booleans(),
    "reset": st.builds(ResetOrigin, MAYBE, MAYBE),
    "refusal": st.none() | ICMP,
    "conclusion": st.none()
    | st.sampled_from((*get_args(Symptom), "refusing-host")).map(CheckConclusion),
    "service": st.none()
    | st.builds(ServiceFinding, st.sampled_from(get_args(ServiceWord)), st.just("x")),
    "control_answered": st.booleans(),
    "host_down": st.sampled_from((None, "c")),
    "given_up_by": st.sampled_from((None, "10.0.0.254")),
    "host_up": st.booleans(),
    "platform_runs": st.booleans(),
    "served": st.sampled_from(((), ("c",))),
    "maker": st.none() | st.builds(RefusalMaker, st.booleans(), st.just("doubt")),
})  # fmt: skip
EVIDENCE = st.builds(
    lambda expect, protocol, existing, facts: make_evidence(expect, protocol, existing, **facts),
    st.sampled_from(("allowed", "denied")),
    st.sampled_from(("tcp", "udp", "icmp", "ipproto/4")),
    st.booleans(),
    FACTS,
)


@pytest.mark.slow
@given(EVIDENCE, st.builds(Rules, st.booleans(), st.booleans()))
def test_a_result_never_contradicts_itself(some: Evidence, rules: Rules) -> None:
    """Of any evidence, under any rules; its sentence names its last hop, as reports rely on."""
    for result in judge(some, (0, 0, 0), rules):
        check_alone(result)
        assert result.last_hop is None or result.last_hop in result.because
