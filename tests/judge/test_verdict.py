"""One evidence, one result: the cases that users act on, by name."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.failures import STOOD_STILL
from netprobe.judge.findings import fold
from netprobe.judge.verdict import Rules, judge
from netprobe.model.evidence import (
    NO_NEIGHBOUR,
    OWN_ADDRESS,
    CheckConclusion,
    Evidence,
    Icmp,
    Listener,
    Outcome,
    PathMtu,
    RefusalMaker,
    ResetOrigin,
    Trace,
    Witness,
)
from netprobe.model.matrix import Stops, Waiver
from netprobe.model.plan import Block, Flow
from netprobe.model.result import Result
from netprobe.model.story import Sight, Story, StoryPlace
from netprobe.plan.path_mtu import path_mtu_blocks
from tests.plan.conftest import host, requirement

A = host("a", "node", addresses=("10.0.0.1",))
B = host("b", "node", addresses=("10.0.0.2",))
OURS = Listener("ours")
SILENT = Outcome("connect", "no-answer", left_host=True, attempts=2, packets=6)
OPEN = Outcome("connect", None, answer="unasked", rtt_ms=0.2)
RESET = Outcome("connect", "refused")
FORGED, GENUINE = ResetOrigin(forged=True), ResetOrigin(forged=False)
DOUBTED = RefusalMaker(own=False, doubt="x")
BOTH = ("destination", "path")


def evidence(
    outcome: Outcome | None, protocol: str = "tcp", expect: str = "allowed", **facts: Any
) -> Evidence:
    wanted = requirement("etcd", "node", "node", expect=expect)
    ports = () if protocol in ("icmp",) or "/" in protocol else ((6443, 6443),)
    block = Block(0, "m", wanted, protocol, ports, 4, (A,), ((B, B.addresses[0]),))
    flow = Flow(facts.pop("block", block), A, B, B.addresses[0])
    return Evidence(flow, "10.0.0.2", ports, outcome=outcome, **facts)


def story(**seen: Sight) -> Story:
    """What the recorders saw: ``story(destination_in="no")``; all else is unknown."""
    return Story(**{name: StoryPlace(word) for name, word in seen.items()})  # type: ignore[arg-type]


LOST = story(source_out="yes", destination_in="no")


def one(some: Evidence, **rules: bool) -> Result:
    (result,) = judge(some, (0, 0, 0), Rules(**rules))
    return result


def icmp(type_: int, code: int, origin: Any, offender: str = "10.0.0.254") -> Outcome:
    return Outcome("connect", "host-unreachable", Icmp(type_, code, offender, origin), elapsed_ms=0)


@pytest.mark.parametrize(
    ("some", "verdict", "state", "reason", "where"),
    [
        (evidence(Outcome("answer", None, answer="nonce"), listener=OURS),
         "pass", "open", "nonce-answer", ()),
        # A reset of the way back ends the connection before anybody sees it.
        (evidence(SILENT, listener=OURS, witness=Witness()), "blocked", "filtered", "no-response",
         ("destination", "path", "return-path", "source")),
        (evidence(Outcome("answer", "no-answer"), "udp", listener=OURS, witness=Witness()),
         "blocked", "filtered", "no-response", ("destination", "path")),
        (evidence(SILENT, listener=OURS, witness=Witness(), story=story(destination_in="no")),
         "blocked", "filtered", "no-response", ("path",)),
        (evidence(SILENT, listener=OURS, witness=Witness(), story=story(destination_in="yes")),
         "blocked", "filtered", "no-response", ("destination", "return-path", "source")),
        (evidence(SILENT, listener=OURS, witness=Witness(),
                  story=story(destination_in="yes", destination_out="no")),
         "blocked", "filtered", "no-response", ("destination",)),
        (evidence(SILENT, listener=OURS, witness=Witness(socket=True)),
         "blocked", "filtered", "no-response", ("destination", "return-path", "source")),
        (evidence(SILENT, listener=OURS, witness=Witness(socket=True),
                  story=story(destination_out="yes")),
         "blocked", "filtered", "no-response", ("return-path", "source")),
        (evidence(SILENT, listener=OURS, witness=Witness(socket=True),
                  story=story(destination_out="no")),
         "blocked", "filtered", "no-response", ("destination",)),
        # A translation of the destination took it to another program.
        *((evidence(Outcome("answer", None, answer="other"), protocol, listener=OURS,
                    witness=Witness(), story=story(destination_in="yes", destination_out="yes",
                                                   source_in="yes", source_out="yes")),
           "blocked", "open", "redirected", ("destination",)) for protocol in ("tcp", "udp")),
        # A datagram that came to the source's wire, and to no socket of ours, answered the request.
        (evidence(Outcome("answer", "no-answer"), "udp", story=story(source_in="yes")),
         "blocked", "filtered", "no-response", ("source",)),
        # Who expects no answer misses none.
        (evidence(Outcome("send", None), "udp", story=story(source_in="yes")),
         "inconclusive", "open|filtered", "no-response", ("source",)),
        (evidence(SILENT, listener=OURS, witness=Witness(socket=True),
                  story=story(source_in="yes")),
         "blocked", "filtered", "no-response", ("source",)),
        (evidence(SILENT, listener=OURS,
                  witness=Witness(reply_failure="network-unreachable"),
                  story=story(destination_in="yes")),
         "blocked", "filtered", "no-response", ("return-path",)),
        (evidence(SILENT, listener=OURS, story=story(
            destination_in="yes", destination_out="no"),
                  witness=Witness(reply_failure=NO_NEIGHBOUR, next_hop="10.0.0.9")),
         "blocked", "filtered", "no-response", ("return-path",)),
        # A cut cable lets nothing in either.
        (evidence(SILENT, listener=OURS,
                  witness=Witness(reply_failure=NO_NEIGHBOUR, next_hop="10.0.0.9")),
         "blocked", "filtered", "no-response", ("path", "return-path")),
        # Nor does it show that anything came.
        (evidence(SILENT, listener=OURS, witness=Witness(reply_failure="network-unreachable")),
         "blocked", "filtered", "no-response", ("path", "return-path")),
        (evidence(SILENT, listener=OURS,
                  witness=Witness(socket=True, reply_failure="network-unreachable")),
         "blocked", "filtered", "no-response", ("return-path",)),
        # Its device may be down: then nothing comes in either.
        (evidence(SILENT, listener=OURS, witness=Witness(reply_failure="network-unreachable"),
                  story=story(source_out="yes", destination_in="no")),
         "blocked", "filtered", "no-response", ("path",)),
        (evidence(SILENT, listener=OURS, story=story(destination_in="yes"),
                  witness=Witness(filtered_at="eth1", way_out="eth0")),
         "blocked", "filtered", "reverse-path-filter", ("destination",)),
        (evidence(replace(SILENT, left_host=False), listener=OURS, witness=Witness()),
         "blocked", "filtered", "local-firewall", ("source",)),
        (evidence(SILENT), "blocked", "filtered", "no-response",
         ("destination", "host", "path", "return-path", "source")),
        (evidence(SILENT, control_answered=True), "blocked", "filtered", "no-response",
         ("destination", "path", "return-path", "source")),
        (evidence(SILENT, host_up=True), "blocked", "filtered", "no-response",
         ("destination", "path", "return-path", "source")),
        (evidence(SILENT, expect="denied", host_up=True),
         "inconclusive", "open|filtered", "no-response",
         ("destination", "path", "return-path", "source")),
        (evidence(SILENT, host_down="c"), "blocked", "unreachable", "host-down", ("host",)),
        # Nobody is there: something else makes the reset.
        (evidence(RESET, host_down="c"), "blocked", "filtered", "reset", ("host", "path")),
        (evidence(RESET, conclusion=CheckConclusion("host-down", "c"), host_down="c"),
         "blocked", "filtered", "reset", ("host", "path")),
        # Or it is there for others, and makes the reset itself.
        (evidence(RESET, conclusion=CheckConclusion("host-down", "c"), host_up=True),
         "pass", "closed", "reset", ()),
        (evidence(RESET, given_up_by="10.0.0.254"),
         "inconclusive", "closed", "reset", ("host", "path")),
        (evidence(RESET, given_up_by="10.0.0.254", host_up=True), "pass", "closed", "reset", ()),
        # A translation gives a router's word the destination's address.
        (evidence(icmp(3, 1, "destination")),
         "blocked", "filtered", "host-unreach", ("destination", "host", "path")),
        (evidence(icmp(3, 1, "destination"), host_up=True),
         "blocked", "filtered", "host-unreach", ("destination", "path")),
        # The destination's agent says that it does not have the address.
        (evidence(icmp(3, 13, "destination"), listener=replace(OURS, nat=True)),
         "blocked", "filtered", "admin-prohibited", ("destination", "host", "path")),
        (evidence(icmp(3, 13, "destination"), listener=OURS),
         "blocked", "filtered", "admin-prohibited", BOTH),
        (evidence(icmp(3, 1, "destination"), host_down="c"),
         "blocked", "unreachable", "host-down", ("host",)),
        (evidence(SILENT, given_up_by="10.0.0.254"),
         "blocked", "unreachable", "host-down", ("host", "path")),
        (evidence(SILENT, conclusion=CheckConclusion("host-down", "c"), host_down="c"),
         "blocked", "unreachable", "host-down", ("host",)),
        (evidence(SILENT, conclusion=CheckConclusion("host-down", "c"), host_up=True),
         "blocked", "unreachable", "host-unreach", ("destination", "path")),
        (evidence(SILENT, conclusion=CheckConclusion("next-hop-down", next_hop="10.0.0.254")),
         "blocked", "unreachable", "next-hop-down", ("path", "source")),
        (evidence(SILENT, conclusion=CheckConclusion("next-hop-silent", next_hop="10.0.0.254")),
         "blocked", "filtered", "next-hop-silent", ("path", "source")),
        (evidence(SILENT, conclusion=CheckConclusion("no-carrier", "eth0")),
         "blocked", "unreachable", "no-carrier", ("path", "source")),
        (evidence(OPEN, listener=OURS, conclusion=CheckConclusion("bad-link", "2 of 16 fail")),
         "blocked", "filtered", "bad-link", ("path", "return-path")),
        (evidence(RESET, conclusion=CheckConclusion("address-here", "a")),
         "blocked", "unreachable", "address-here", ("source",)),
        (evidence(RESET, conclusion=CheckConclusion("other-machine", "x")),
         "blocked", "unreachable", "other-machine", ("path",)),
        (evidence(SILENT, listener=OURS, conclusion=CheckConclusion("held-twice", "x and y")),
         "blocked", "unreachable", "other-machine", ("path",)),
        (evidence(RESET, expect="denied", conclusion=CheckConclusion("held-twice", "x and y")),
         "inconclusive", "unreachable", "other-machine", ("path", "source")),
        (evidence(RESET, conclusion=CheckConclusion("unproved-machine", "x")),
         "inconclusive", "unknown", "unproved-machine", ("path", "service")),
        (evidence(RESET, conclusion=CheckConclusion("unproved-machine", "x"), story=LOST),
         "blocked", "unreachable", "unproved-machine", ("path",)),
        (evidence(icmp(3, 13, "destination", "10.0.0.2"), story=LOST),
         "blocked", "filtered", "admin-prohibited", ("path",)),
        (evidence(Outcome("connect", STOOD_STILL)), "inconclusive", "unknown", "machine-busy",
         ("destination", "host", "path", "return-path", "source")),
        (evidence(Outcome("connect", STOOD_STILL), expect="denied"),
         "inconclusive", "unknown", "machine-busy",
         ("destination", "host", "path", "return-path", "source")),
        (evidence(icmp(3, 13, "destination", "10.0.0.2"), expect="denied"),
         "pass", "filtered", "admin-prohibited", ()),
        (evidence(Outcome("answer", "no-answer"), "udp", story=LOST,
                  conclusion=CheckConclusion("next-hop-silent", "x")),
         "blocked", "filtered", "next-hop-silent", ("path", "source")),
        (evidence(RESET, listener=OURS, conclusion=CheckConclusion("unproved-machine", "x")),
         "blocked", "unreachable", "unproved-machine", ("destination", "path", "service")),
        (evidence(RESET, expect="denied", conclusion=CheckConclusion("other-machine", "x")),
         "inconclusive", "unreachable", "other-machine", ("path", "source")),
        (evidence(icmp(3, 13, "router")), "blocked", "filtered", "admin-prohibited", ("path",)),
        (evidence(icmp(3, 13, "destination", "10.0.0.2")),
         "blocked", "filtered", "admin-prohibited", BOTH),
        (evidence(icmp(3, 13, "source", "10.0.0.1")),
         "blocked", "filtered", "local-firewall", ("source",)),
        (evidence(replace(icmp(3, 1, "router"), elapsed_ms=3100)),
         "blocked", "unreachable", "host-down", ("host", "path")),
        (evidence(replace(icmp(3, 1, "router"), elapsed_ms=3100), host_down="c"),
         "blocked", "unreachable", "host-down", ("host",)),
        (evidence(icmp(3, 1, "router"), host_up=True, listener=OURS,
                  conclusion=CheckConclusion("router-gives-up")),
         "blocked", "unreachable", "host-down", ("host", "path")),
        (evidence(icmp(3, 1, "router"), host_up=True, listener=OURS, control_answered=True,
                  conclusion=CheckConclusion("router-gives-up")),
         "blocked", "unreachable", "host-down", ("path",)),
        # Without an agent there, what answered may be something on the way.
        (evidence(icmp(3, 1, "router"), host_up=True, control_answered=True,
                  conclusion=CheckConclusion("router-gives-up")),
         "blocked", "unreachable", "host-down", ("host", "path")),
        (evidence(icmp(3, 1, "router"), given_up_by="10.0.0.254"),
         "blocked", "unreachable", "host-down", ("host", "path")),
        (evidence(icmp(3, 1, "router"), expect="denied", host_down="c"),
         "inconclusive", "unreachable", "host-unreachable", ("host", "path", "source")),
        (evidence(icmp(3, 1, "source", "10.0.0.1"), conclusion=CheckConclusion("refusing-host")),
         "blocked", "filtered", "local-firewall", ("source",)),
        (evidence(replace(icmp(3, 1, "router"), elapsed_ms=3000), host_up=True),
         "blocked", "filtered", "host-unreach", ("path",)),
        (evidence(icmp(3, 1, "router")), "blocked", "filtered", "host-unreach", ("path",)),
        (evidence(icmp(3, 0, "router")), "blocked", "unreachable", "net-unreach", ("path",)),
        (evidence(icmp(11, 0, "router")), "blocked", "unreachable", "routing-loop", ("path",)),
        (evidence(icmp(3, 0, "router", "fd00::1")),
         "blocked", "unreachable", "routing-loop", ("path",)),
        (evidence(Outcome("connect", "network-unreachable")),
         "blocked", "unreachable", "no-route", ("source",)),
        (evidence(RESET), "pass", "closed", "reset", ()),
        (evidence(RESET, listener=Listener("closed")), "pass", "closed", "reset", ()),
        # The own OUTPUT chain may have made it, too, unless the SYN was seen to leave.
        (evidence(RESET, reset=FORGED), "blocked", "filtered", "reset", ("path", "source")),
        # One that has lost a hop was not made by the source.
        (evidence(RESET, reset=ResetOrigin(forged=True, full_ttl=False)),
         "blocked", "filtered", "reset", ("path",)),
        (evidence(RESET, reset=FORGED, story=story(source_out="yes")),
         "blocked", "filtered", "reset", ("path",)),
        (evidence(RESET, reset=FORGED, story=story(source_out="no")),
         "blocked", "filtered", "local-firewall", ("source",)),
        (evidence(RESET, reset=GENUINE, listener=OURS),
         "blocked", "filtered", "reset", ("destination", "path", "source")),
        # A translation may lead to another port, or to another host at the same distance.
        (evidence(RESET, reset=GENUINE, listener=OURS, story=story(source_out="yes")),
         "blocked", "filtered", "reset", ("destination", "path")),
        (evidence(RESET, reset=GENUINE, listener=OURS, story=story(destination_in="no")),
         "blocked", "filtered", "reset", ("path", "source")),
        (evidence(replace(RESET, left_host=False), reset=FORGED),
         "blocked", "filtered", "local-firewall", ("source",)),
        (evidence(RESET, listener=Listener("loopback", "etcd (pid 1) on 127.0.0.1")),
         "inconclusive", "closed", "reset", ("service",)),
        (evidence(replace(RESET, blind=True)),
         "inconclusive", "closed", "reset", ("destination", "path", "source")),
        (evidence(OPEN), "inconclusive", "open", "unknown-holder", ("service",)),
        (evidence(OPEN, platform_runs=True), "pass", "open", "syn-ack", ()),
        (evidence(OPEN, conclusion=CheckConclusion("intercepted", "x")),
         "inconclusive", "open", "false-open", ("path",)),
        # What a check concluded of a router's word counts, whenever the word came.
        (evidence(icmp(3, 1, "router"), conclusion=CheckConclusion("host-down")),
         "blocked", "unreachable", "host-down", ("host",)),
        (evidence(replace(icmp(3, 1, "router"), elapsed_ms=3000),
                  conclusion=CheckConclusion("refusing-host")),
         "blocked", "filtered", "host-unreach", ("path",)),
        (evidence(replace(SILENT, left_host=False), conclusion=CheckConclusion("no-room", "x")),
         "blocked", "filtered", "no-buffers", ("source",)),
        (evidence(replace(OPEN, answer="silent"), listener=OURS, witness=Witness()),
         "inconclusive", "open", "false-open", ("destination", "path", "service", "source")),
        (evidence(replace(OPEN, answer="silent"), listener=OURS, witness=Witness(),
                  story=story(destination_in="yes")),
         "blocked", "filtered", "no-response", ("destination",)),
        (evidence(replace(OPEN, answer="silent"), listener=OURS, witness=Witness(socket=True),
                  story=story(destination_out="yes")),
         "blocked", "filtered", "no-response", ("return-path", "source")),
        (evidence(replace(OPEN, answer="silent"), listener=OURS, witness=Witness(),
                  story=story(source_out="yes", destination_in="no")),
         "blocked", "open", "false-open", ("path",)),
        # The port is taken, whatever answers in its place.
        (evidence(OPEN, listener=Listener("live", "x"),
                  story=story(source_out="yes", destination_in="no")),
         "blocked", "open", "port-taken", ("path", "service")),
        # Its own listener would have answered the nonce, whoever hands it on; a holder cannot.
        (evidence(OPEN, listener=Listener("live", "x"), platform_runs=True,
                  story=story(source_out="yes", destination_in="no")),
         "inconclusive", "open", "false-open", ("path",)),
        (evidence(RESET, listener=Listener("closed"), story=story(destination_in="no")),
         "blocked", "filtered", "reset", ("path", "source")),
        (evidence(Outcome("answer", None, answer="echo"), "icmp",
                  story=story(source_out="yes", destination_in="no")),
         "blocked", "open", "false-open", ("path",)),
        (evidence(Outcome("answer", None, answer="echo"), "icmp", story=story(source_out="no")),
         "blocked", "unreachable", "answered-here", ("source",)),
        (evidence(Outcome("answer", "host-unreachable"), listener=OURS, witness=Witness()),
         "blocked", "filtered", "host-unreachable", ("destination", "path", "source")),
        (evidence(SILENT, listener=OURS, witness=Witness(reply_failure=OWN_ADDRESS),
                  story=story(destination_in="yes")),
         "blocked", "filtered", "no-response", ("return-path",)),
        # The failure is that of another port of the order: this answer left.
        (evidence(Outcome("answer", "no-answer"), "udp", listener=OURS,
                  witness=Witness(socket=True, reply_failure="not-permitted"),
                  story=story(destination_out="yes", source_in="no")),
         "blocked", "filtered", "no-response", ("return-path",)),
        (evidence(RESET, conclusion=CheckConclusion("reset-unproved", "10.0.0.254")),
         "inconclusive", "closed", "reset", ("destination", "path")),
        *((evidence(icmp(3, code, "destination"), maker=maker), "blocked", "filtered", word, where)
          for code, word in ((0, "net-unreach"), (2, "proto-unreach"), (10, "host-prohibited"))
          for maker, where in ((RefusalMaker(own=True), ("destination",)), (None, BOTH),
                               (RefusalMaker(own=False), BOTH))),
        (evidence(icmp(3, 13, "destination"), story=story(destination_in="yes")),
         "blocked", "filtered", "admin-prohibited", ("destination",)),
        (evidence(icmp(3, 3, "destination"), "udp", maker=DOUBTED),
         "inconclusive", "closed", "port-unreach", BOTH),
        (evidence(icmp(3, 2, "destination"), "ipproto/4", maker=DOUBTED),
         "inconclusive", "closed", "proto-unreach", BOTH),
        (evidence(RESET, maker=DOUBTED, listener=Listener("closed")),
         "inconclusive", "closed", "reset", BOTH),
        (evidence(RESET, maker=DOUBTED._replace(own=True)), "pass", "closed", "reset", ()),
        (evidence(OPEN, expect="denied", story=story(destination_in="no")),
         "exposed", "open", "false-open", ("path",)),
        (evidence(OPEN, expect="denied", conclusion=CheckConclusion("intercepted", "x")),
         "exposed", "open", "false-open", ("path",)),
        (evidence(OPEN, listener=Listener("closed")),
         "inconclusive", "open", "false-open", ("destination", "path", "service")),
        (evidence(OPEN, listener=Listener("closed"), platform_runs=True),
         "pass", "open", "syn-ack", ()),
        (evidence(RESET, listener=Listener("bound")),
         "inconclusive", "closed", "port-in-use", ("service",)),
        (evidence(Outcome("answer", "no-answer"), "udp"),
         "inconclusive", "open|filtered", "no-response",
         ("destination", "host", "path", "return-path", "service", "source")),
        (evidence(Outcome("send", None), "udp", listener=OURS, witness=Witness(socket=True)),
         "pass", "open", "seen-at-destination", ()),
        (evidence(Outcome("answer", "no-answer"), "udp", listener=OURS,
                  witness=Witness(socket=True, reply_failure="not-permitted")),
         "blocked", "filtered", "no-response", ("destination",)),
        (evidence(Outcome("send", None), "udp", listener=Listener("live", "x"), platform_runs=True,
                  story=story(destination_in="yes")),
         "inconclusive", "open|filtered", "no-response", ("destination",)),
        (evidence(Outcome("answer", "no-permission"), "icmp"),
         "not-tested", "unknown", "no-permission", ("source",)),
        (evidence(Outcome("resolve", "name-not-resolved", said="no such host")),
         "blocked", "unknown", "name-not-resolved", ("source",)),
        (evidence(None, untested=("no-python", "install python3")),
         "not-tested", "unknown", "no-python", ("source",)),
        (evidence(OPEN, expect="denied"), "exposed", "open", "syn-ack", ("destination",)),
        (evidence(RESET, expect="denied"), "pass", "closed", "reset", ()),
        (evidence(SILENT, expect="denied"), "inconclusive", "open|filtered", "no-response",
         ("destination", "host", "path", "return-path", "source")),
        (evidence(SILENT, expect="denied", control_answered=True),
         "pass", "filtered", "no-response", ()),
    ],
)  # fmt: skip
def test_what_is_concluded(
    some: Evidence, verdict: str, state: str, reason: str, where: tuple[str, ...]
) -> None:
    """The verdict, and exactly the places that the facts still allow."""
    result = one(some)

    assert (result.verdict, result.state, result.reason, result.where) == (
        verdict, state, reason, where,
    )  # fmt: skip
    assert result.because


def test_strict_takes_no_refusal_and_no_handshake() -> None:
    """With --strict neither proves anything; a denied port is not touched by it."""
    assert one(evidence(RESET), strict=True).verdict == "inconclusive"
    opened = evidence(OPEN, platform_runs=True)
    assert [one(opened, strict=strict).verdict for strict in (False, True)] == [
        "pass", "inconclusive",
    ]  # fmt: skip
    assert one(evidence(RESET, expect="denied"), strict=True).verdict == "pass"
    assert one(evidence(Outcome("answer", None, answer="nonce")), strict=True).verdict == "pass"


def test_live_calls_a_refusal_a_missing_service() -> None:
    """With --live everything is supposed to run; a denied port is not touched by it."""
    result = one(evidence(RESET), live=True)

    assert (result.verdict, result.where) == ("blocked", ("service",))
    assert one(evidence(RESET, expect="denied"), live=True).verdict == "pass"


@pytest.mark.parametrize("outcome", [RESET, icmp(3, 3, "destination")])
def test_what_must_be_there_and_is_refused_by_somebody_is_blocked(outcome: Outcome) -> None:
    """Whoever refuses it, the flow fails; the service is one place of three."""
    result = one(evidence(outcome, "tcp" if outcome is RESET else "udp", maker=DOUBTED), live=True)

    assert (result.verdict, result.where) == ("blocked", (*BOTH, "service"))


def test_because_counts_the_evidence() -> None:
    """The sentence has the packets, what the destination saw, and the last hop that answered."""
    some = evidence(
        SILENT, listener=OURS, story=story(destination_in="no"), trace=Trace("10.0.0.254", 1)
    )

    assert one(some).because == (
        "6 SYNs, no answer; b's packet recorder never saw it; last hop that answered: 10.0.0.254"
    )


def test_an_address_that_the_host_lacks_has_two_explanations() -> None:
    """A typing error in the inventory looks like a translation."""
    some = evidence(Outcome("answer", None, answer="nonce"), listener=replace(OURS, nat=True))

    assert one(some).warnings == (
        "b does not have the address 10.0.0.2: either the inventory's address is wrong, or it is "
        "translated (NAT)",
    )


def test_what_drops_an_answer_at_the_source_is_left_open() -> None:
    """A recorder sees it before rp_filter, conntrack and the firewall."""
    result = one(evidence(SILENT, listener=OURS, story=story(source_in="yes")))

    assert result.because == (
        "6 SYNs, no answer; yet the answer came to a's interface: its own firewall or kernel "
        "(rp_filter, conntrack) drops it"
    )


def test_a_slow_start_is_a_warning() -> None:
    """The flow gets through, a second late each time."""
    some = evidence(Outcome("answer", None, answer="nonce"), listener=OURS, slow_start=True)

    assert one(some).verdict == "pass"
    (warning,) = one(some).warnings
    assert warning.startswith("a slow start: every new connection opens a second late")


def test_translation_of_the_source_is_a_warning() -> None:
    """A listener that sees another source address says so, and the flow still passes."""
    some = evidence(
        Outcome("answer", None, answer="nonce"),
        listener=OURS,
        witness=Witness(socket=True, seen_from="192.0.2.9"),
    )

    assert one(some).verdict == "pass"
    assert one(some).warnings == ("the source address is translated: b saw it come from 192.0.2.9",)


def test_a_failure_says_under_which_addresses_its_source_is_seen() -> None:
    """Rules for it must name these. A pass needs none."""
    facts: dict[str, Any] = {
        "listener": OURS,
        "witness": Witness(socket=True, seen_from="192.0.2.9"),
        "sent_from": "10.9.0.9",
    }
    failed = one(evidence(SILENT, **facts))

    assert (failed.sent_from, failed.came_from) == ("10.9.0.9", "192.0.2.9")
    translated = ("the source address is translated: b saw it come from 192.0.2.9",)
    assert failed.warnings == translated
    passed = one(evidence(Outcome("answer", None, answer="nonce"), **facts))
    assert (passed.sent_from, passed.came_from, passed.warnings) == (None, None, translated)

    lost = one(evidence(SILENT, listener=OURS, sent_from="10.9.0.9"))
    assert lost.warnings == (
        "a sends from 10.9.0.9, which the inventory does not have: firewalls see that address",
    )
    served = Outcome("answer", None, answer="nonce")
    assert one(evidence(served, listener=OURS, sent_from="10.9.0.9")).warnings == ()


@pytest.mark.parametrize(
    ("mtu", "verdict", "reason", "where"),
    [
        (PathMtu(1500, 1500, "witness", "udp"), "pass", "full-size", ()),
        (PathMtu(1400, 1500, "witness", "udp", "10.0.0.254", 1400), "blocked", "mtu-too-small",
         ("path",)),
        (PathMtu(1400, 1500, "witness", "udp"), "blocked", "mtu-black-hole",
         ("destination", "path")),
        # The answer to an echo is as large.
        (PathMtu(1400, 1500, "service", "echo"), "blocked", "mtu-black-hole",
         ("destination", "path", "return-path")),
        (PathMtu(None, 1500), "inconclusive", "mtu-not-measured",
         ("destination", "path", "return-path", "source")),
    ],
)  # fmt: skip
def test_path_mtu(mtu: PathMtu, verdict: str, reason: str, where: tuple[str, ...]) -> None:
    """What fits passes; a limit names its router; without one it is a black hole."""
    result = one(evidence(Outcome("path-mtu", None), "icmp", mtu=mtu))

    assert (result.verdict, result.reason, result.where) == (verdict, reason, where)
    assert result.path_mtu_bytes == mtu.path


@pytest.mark.parametrize(("lost_back", "place"), [(False, "path"), (True, "return-path")])
def test_a_connection_without_full_segments_is_no_pass(lost_back: bool, place: str) -> None:
    """What is no pass anyway keeps its own reason."""
    mtu = PathMtu(1400, 1500, "nonce", "tcp", lost_back=lost_back)
    open_ = one(
        evidence(Outcome("answer", None, answer="nonce"), mtu=mtu, listener=Listener("ours"))
    )
    silent = one(evidence(Outcome("connect", "no-answer"), mtu=mtu, listener=Listener("ours")))

    assert (open_.verdict, open_.reason, open_.where) == ("blocked", "mtu-black-hole", (place,))
    assert (open_.path_mtu_bytes, open_.needed_mtu_bytes) == (1400, 1500)
    assert silent.reason == "no-response"


def test_what_a_path_carries_says_nothing_of_a_denied_port() -> None:
    """A port that must not answer, and refuses, passes: its pair's other flows have the finding."""
    mtu = PathMtu(1400, 1500, "nonce", "tcp")
    denied = one(evidence(RESET, expect="denied", mtu=mtu))

    assert (denied.verdict, denied.reason) == ("pass", "reset")


def test_a_width_that_nobody_could_ask_for_is_no_pass() -> None:
    """A full segment got lost, and then the source could not be asked any more."""
    open_ = one(
        evidence(
            Outcome("answer", None, answer="nonce"), mtu=PathMtu(None, 1500, "nonce"),
            listener=Listener("ours"),
        )
    )  # fmt: skip

    assert (open_.verdict, open_.reason) == ("inconclusive", "mtu-not-measured")
    assert "no TCP packet of 1500 bytes" in open_.because


@pytest.mark.parametrize(
    ("down", "where", "words"),
    [
        ({"host_down": "c"}, ("host",), "nobody on its network answers for 10.0.0.2: c is there"),
        ({"given_up_by": "10.0.0.254"}, ("host", "path"), "10.0.0.254, a router on the way, gave"),
        ({"host_down": "c", "host_up": True}, None, "so no size could be tried"),
    ],
)  # fmt: skip
def test_path_mtu_of_a_dead_host(
    down: dict[str, Any], where: tuple[str, ...] | None, words: str
) -> None:
    """A host is down for the path MTU, too; of one that lives nothing was measured."""
    result = one(evidence(Outcome("path-mtu", None), "icmp", mtu=PathMtu(None, 1500), **down))

    assert (result.verdict, result.reason) == (
        ("inconclusive", "mtu-not-measured") if where is None else ("blocked", "host-down")
    )
    assert where is None or result.where == where
    assert words in result.because


def test_what_another_machine_answers_is_no_path_mtu() -> None:
    """Its echoes come back, whatever the path to the right one carries."""
    said = CheckConclusion("held-twice", "x and y all answer ARP requests for 10.0.0.2")
    full = PathMtu(1500, 1500, "service", "echo")
    result = one(evidence(Outcome("path-mtu", None), "icmp", mtu=full, conclusion=said))

    assert (result.verdict, result.reason) == ("blocked", "other-machine")
    assert result.because.startswith("x and y all answer ARP requests for 10.0.0.2: two machines")


@pytest.mark.parametrize(
    ("mtu", "title", "advice"),
    [
        (PathMtu(1400, 1500, "witness", "udp", "10.0.0.254", 1400),
         "10.0.0.254 carries only 1400 bytes from a to b, c (the overlay needs 1500) (2 flows)",
         "Raise the MTU of the link behind 10.0.0.254 to 1500 bytes, or lower the MTU of the pod "
         "network so that its packets with the overlay's headers have at most 1400 bytes."),
        (PathMtu(1404, 1500, "witness", "udp 8472 packets"),
         "packets above 1404 bytes vanish from a to b, c (the overlay needs 1500) (2 flows)",
         "Let ICMP fragmentation-needed (IPv6: packet-too-big) through on the way from a to b, c, "
         "or raise the MTU of the link on the way to 1500 bytes, or lower the MTU of the pod "
         "network so that its packets with the overlay's headers have at most 1404 bytes."),
    ],
)  # fmt: skip
def test_a_path_mtu_is_told_in_bytes(mtu: PathMtu, title: str, advice: str) -> None:
    """Nobody rejects ICMP there, and no firewall rule for it would help; sizes do not mix."""
    result = one(evidence(Outcome("path-mtu", None), "icmp", mtu=mtu))
    smaller = one(
        evidence(Outcome("path-mtu", None), "icmp", mtu=replace(mtu, path=1300, limit=1300))
    )
    echo = failures([("a", "b")], requirement="icmp", protocol="icmp", port=None, end_port=None)
    found = fold([result, replace(result, destination="c"), replace(smaller, source="x"), *echo])

    assert [len(finding.members) for finding in found] == [2, 1, 1]
    assert (found[0].kind, found[0].title, found[0].advice) == ("mtu", title, advice)


def failures(pairs: list[tuple[str, str]], **changes: Any) -> list[Result]:
    result = one(evidence(SILENT, listener=OURS, story=story(destination_in="no")))
    return [
        replace(result, order=(0, n, 0), source=source, destination=end, **changes)
        for n, (source, end) in enumerate(pairs)
    ]


def test_one_port_blocked_for_all_is_one_finding() -> None:
    """Forty rows of one cause are one block of lines."""
    pairs = [(f"w{n}", "m") for n in range(40)]
    (finding,) = fold(failures(pairs))

    assert len(finding.members) == 40
    assert finding.kind == "destination"
    words = "tcp 6443 from w0, w1, w2, w3 and 36 more to m is dropped on the path"
    assert finding.title == f"{words} (40 flows)"


def test_what_to_do_leaves_nothing_out() -> None:
    """A title may be cut; whoever writes the rule needs every port, every host and every pair."""
    pairs = [(f"w-{n}", f"m{n}x") for n in range(6)]
    ports = [member for port in range(4200, 4220, 2)
             for member in failures(pairs, port=port, end_port=port)]  # fmt: skip
    (finding,) = fold(ports, [replace(one, verdict="pass", port=1, end_port=1) for one in ports])

    assert finding.title.startswith("tcp 4200, 4202, 4204, 4206, 4208, 4210 and 4 more from w-0 ")
    assert finding.title.endswith("and between more hosts is dropped on the path (60 flows)")
    every = ", ".join(map(str, range(4200, 4220, 2)))
    between = " and ".join(f"from {a} to {b}" for a, b in pairs)
    assert finding.advice == f"Allow tcp {every} {between} on the firewall on the way."


def test_what_to_do_folds_only_numbered_names() -> None:
    """A range of names is exact."""
    (finding,) = fold(failures([(f"w-{n}", "m") for n in range(40)]))

    assert finding.advice == "Allow tcp 6443 from w-[0-39] to m on the firewall on the way."


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"reason": "local-firewall"},
         "Allow tcp 53 to b and tcp 53, 6443 to c in the firewall of a itself."),
        ({"reason": "no-route"}, "Give a a route to b (10.0.0.2), c (10.0.0.2)."),
        ({"reason": "no-response"},
         "Let the answers to tcp 53 to b and tcp 53, 6443 to c in on a itself: its firewall, "
         "conntrack and rp_filter."),
    ],
)  # fmt: skip
def test_what_to_do_at_the_source(changes: dict[str, Any], advice: str) -> None:
    """Its owner is told what to allow, not only where to look."""
    own = {"where": ("source",), **changes}
    found = fold(
        failures([("a", "b"), ("a", "c")], port=53, end_port=53, **own)
        + failures([("a", "c")], **own)
    )

    assert [finding.advice for finding in found] == [advice]


@pytest.mark.parametrize(
    ("changes", "title", "advice"),
    [
        ({"reason": "net-unreach", "where": ("path",), "rejected_by": "10.0.0.254"},
         "10.0.0.254 has no route for tcp 6443 from a to 10.0.0.2 (1 flow)",
         "Give 10.0.0.254 a route to 10.0.0.2."),
        ({"reason": "routing-loop", "where": ("path",), "rejected_by": "10.0.0.254"},
         "10.0.0.254 is in a routing loop for tcp 6443 from a to 10.0.0.2 (1 flow)",
         "Mend the routes to 10.0.0.2 on 10.0.0.254 and its neighbours: they send these packets "
         "round in a loop."),
        ({"reason": "host-down", "where": ("host",)},
         "10.0.0.2 is down or not reachable at all (1 flow)", "Check that 10.0.0.2 runs."),
    ],
)  # fmt: skip
def test_a_host_named_by_its_address_is_named_once(
    changes: dict[str, Any], title: str, advice: str
) -> None:
    """No ``10.0.0.2 (10.0.0.2)``."""
    (finding,) = fold(failures([("a", "10.0.0.2")], **changes))

    assert (finding.title, finding.advice) == (title, advice)


def test_ports_that_fail_between_the_same_hosts_share_a_finding() -> None:
    """Zone to zone: the pairs are the common factor, not the port."""
    pairs = [("a1", "b1"), ("a2", "b1"), ("a1", "b2"), ("a2", "b2")]
    found = fold(failures(pairs) + failures(pairs, port=2380, end_port=2380))

    assert [(finding.kind, len(finding.members)) for finding in found] == [("zone", 8)]


@pytest.mark.parametrize(
    ("pairs", "between"),
    [
        ([("a", "c"), ("b", "d")], "from a to c and from b to d"),
        ([("a", "c"), ("b", "c"), ("a", "d")], "from a to c, d and from b to c"),
        ([("a", "x"), ("b", "y"), ("c", "z"), ("d", "w")],
         "from a to x, from b to y, from c to z and between more hosts"),
        ([("a", "c"), ("b", "c"), ("a", "d"), ("b", "d")], "from a, b to c, d"),
    ],
)  # fmt: skip
def test_a_title_is_true_of_every_pair(pairs: list[tuple[str, str]], between: str) -> None:
    """Hosts that only fail towards some are not named together with the others."""
    (finding,) = fold(failures(pairs))

    size = f"({len(pairs)} flows)"
    assert finding.title == f"tcp 6443 {between} is dropped on the path {size}"


def test_what_a_source_stops_is_told_by_its_ports() -> None:
    """Two findings of one source have different titles, and no title claims too much."""
    own = {"where": ("source",), "reason": "local-firewall"}
    found = fold(
        failures([("a", "b"), ("a", "c")], **own)
        + failures([("a", "c")], port=53, end_port=53, **own)
        + failures([("a", "b")], port=80, end_port=80, where=("source",), reason="no-route")
    )

    assert [finding.title for finding in found] == [
        "a itself stops tcp 53, 6443 to c and tcp 6443 to b (3 flows)",
        "a has no route to b (1 flow)",
    ]


def test_every_name_that_is_not_resolved_is_told() -> None:
    """One source, two names: two records are missing."""
    found = [
        fold(failures([("a", name)], address=name, where=("source",), reason="name-not-resolved"))
        for name in ("api.example.com", "dns.example.com")
    ]

    together = fold([member for (one,) in found for member in one.members])
    assert len(together) == 2


def test_two_zones_are_named_as_such() -> None:
    """A firewall between two zones cuts both directions: that is one finding with two sides."""
    there = [(a, b) for a in ("a1", "a2", "a3") for b in ("b1", "b2")]
    (finding,) = fold(failures(there + [(b, a) for a, b in there]))

    assert finding.title == (
        "tcp 6443 between (a1, a2, a3) and (b1, b2) is dropped on the path, in both directions "
        "(12 flows)"
    )


def test_different_causes_are_different_findings() -> None:
    """A router that refuses and a drop at the destination are not one thing."""
    found = fold(
        failures([("a", "b")])
        + failures([("a", "c")], where=("destination",))
        + failures([("a", "d")], rejected_by="10.0.0.254", reason="admin-prohibited")
    )

    assert [finding.kind for finding in found] == ["pair", "pair", "router"]


def test_silence_beside_a_router_that_rejects_has_its_cause() -> None:
    """A router answers about once a second: of a rejected range most ports stay silent."""
    rejected = failures([("a", "b")], rejected_by="10.0.0.254", reason="admin-prohibited")
    (finding,) = fold(failures([("a", "b")], port=7000, end_port=7005) + rejected)

    assert (finding.kind, finding.rejected_by, len(finding.members)) == ("router", "10.0.0.254", 2)


def test_waived_and_optional_failures_stay_apart_and_last() -> None:
    """What does not decide never hides what does."""
    found = fold(failures([("a", "b")], waived="later") + failures([("a", "c")]))

    assert [finding.members[0].destination for finding in found] == ["c", "b"]


def test_a_waiver_is_on_the_result() -> None:
    """The reason is reported, the verdict is what it is."""
    block = replace(evidence(SILENT).flow.block, waiver=Waiver("etcd", "until Monday"))
    result = one(evidence(SILENT, block=block))

    assert (result.verdict, result.waived, result.decides) == ("blocked", "until Monday", False)


def test_what_a_row_stops_is_on_the_result() -> None:
    """Its word alone: the reason stays in the matrix. So it is on the path MTU of its overlay."""
    wanted = replace(requirement("vxlan", "node", "node"), probe="vxlan", stops=Stops("pods", "so"))
    block = Block(0, "m", wanted, "udp", ((6443, 6443),), 4, (A,), ((B, B.addresses[0]),))
    (overlay,) = path_mtu_blocks([block])
    flow = Flow(overlay, A, B, B.addresses[0])

    assert one(evidence(SILENT, "udp", block=block)).stops == "pods"
    assert one(Evidence(flow, "10.0.0.2", (), outcome=None)).stops == "pods"
    assert one(evidence(SILENT)).stops is None
