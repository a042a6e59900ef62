"""Causes that stop all packets of a way, or all large ones: each is one finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.model.codec import keep_finding
from netprobe.model.reasons import owner_of
from netprobe.model.result import Finding, Result
from netprobe.report.page.wording import where_text
from tests.report.samples import BLOCKED, PASSED

PORTS = (6443, 7000, 9100)
ROUTER = "10.9.0.1"
ADDRESSES = {"b1": "10.0.2.1", "b2": "10.0.2.2", "c1": "10.0.3.1", "c2": "10.0.3.2"}
SILENT: dict[str, Any] = {"reason": "no-response", "where": ("destination", "path")}
LOST_BACK: dict[str, Any] = {"reason": "no-response", "where": ("return-path",)}
NO_ROUTE: dict[str, Any] = {
    "reason": "net-unreach", "where": ("path",), "state": "unreachable", "rejected_by": ROUTER,
}  # fmt: skip
DEAD_HOP: dict[str, Any] = {
    "reason": "next-hop-down", "where": ("path", "source"), "state": "unreachable",
    "next_hop": "10.0.3.77",
}  # fmt: skip


def flows(
    sources: Iterable[str], destinations: Iterable[str], ports: Iterable[int] = PORTS,
    kind: Result = BLOCKED, **facts: Any,
) -> list[Result]:  # fmt: skip
    """One result of each port of each pair, with these facts."""
    return [
        replace(
            kind, order=(0, list(ADDRESSES).index(source), list(ADDRESSES).index(end)),
            source=source, destination=end, address=ADDRESSES[end], port=port, end_port=port,
            **facts,
        )
        for source in sources for end in destinations for port in ports
    ]  # fmt: skip


def found(failures: Sequence[Result], passes: Sequence[Result] = ()) -> list[tuple[str, int]]:
    """The first words of each finding, and how many members it has."""
    return [(one.title.split(" tcp ")[0], len(one.members)) for one in fold(failures, passes)]


BS, CS = ("b1", "b2"), ("c1", "c2")


def test_one_refusal_speaks_for_all_ports_hosts_and_answers_of_a_missing_route() -> None:
    """Routers ration their errors; requests that arrive have answers that take the same way."""
    heard = flows(["c1"], ["b1"], [6443], **NO_ROUTE)
    rest = flows(CS, BS, **SILENT)[1:]
    back = flows(BS, CS, **LOST_BACK)

    (finding,) = fold(heard + rest + back)

    assert len(finding.members) == 24
    assert finding.title == (
        f"{ROUTER} has no route for tcp 6443, 7000, 9100 from c1, c2 to b1, b2, and the answers "
        "from c1, c2 to b1, b2 (24 flows)"
    )
    assert (finding.where, finding.rejected_by) == (("path", "return-path"), ROUTER)
    assert finding.advice == f"Give {ROUTER} a route to b1 (10.0.2.1), b2 (10.0.2.2)."
    assert {one.where for one in finding.members} == {("path",), SILENT["where"], ("return-path",)}


@pytest.mark.parametrize("rejected", [True, False])
def test_answers_have_the_cause_of_what_lets_nothing_through(rejected: bool) -> None:
    """A router that says nothing of a missing route makes no more findings than one that does; a
    file that keeps the finding has the same words."""
    words = {"reason": "admin-prohibited", "where": ("path",), "rejected_by": ROUTER}
    there = flows(CS, BS, **(words if rejected else {**SILENT, "where": ("path",)}))
    back = flows(BS, CS, PORTS[:2], **LOST_BACK)

    (finding,) = fold(there + back)

    assert "everything that was probed from c1, c2 to b1, b2" in finding.title
    assert ", and the answers from c1, c2 to b1, b2 (20 flows)" in finding.title
    assert finding.where == ("path", "return-path")
    assert fold(there + back, kept=[keep_finding(finding)]) == (finding,)


def test_answers_that_a_way_with_passes_loses_are_a_cause_of_their_own() -> None:
    """Where one port gets through, nothing is known of the others; and a host's own firewall that
    lets nothing in loses no answers on the way."""
    there, back = flows(["c1"], ["b1"], **SILENT), flows(["b1"], ["c1"], **LOST_BACK)
    (passing,) = flows(["c1"], ["b1"], [22], PASSED)
    own = [replace(one, where=("destination",)) for one in there]

    assert len(fold(there + back, [passing])) == 2
    assert len(fold(own + back)) == 2


def test_what_a_router_refuses_comes_to_neither_of_two_machines() -> None:
    """That a neighbour hears two of them is no news of a sender that a router refuses."""
    heard = flows(["c1"], ["b1"], [6443], **NO_ROUTE)
    held = flows(["c1", "c2"], ["b1"], [7000], reason="other-machine", where=("path",))

    findings = fold(heard + held)

    assert [len(one.members) for one in findings] == [2, 1]
    assert findings[0].rejected_by == ROUTER
    assert fold(heard + held, kept=list(map(keep_finding, findings))) == findings


def test_a_way_that_anything_passes_is_judged_port_by_port() -> None:
    """There is a route, whatever a router says of one port."""
    heard = flows(["c1"], ["b1"], [6443], **NO_ROUTE)
    silent = flows(["c1"], ["b1"], [7000], requirement="other", **SILENT)
    passed = flows(["c1"], ["b1"], [9100], PASSED)
    back = flows(["b1"], ["c1"], [9100], **LOST_BACK)

    assert [size for _, size in found(heard + silent, passed)] == [1, 1]
    # That its answers pass shows the way, too; that a datagram arrived there does not.
    assert len(found(heard + silent, flows(["b1"], ["c1"], [80], PASSED))) == 2
    assert len(found(heard + back, flows(["b1"], ["c1"], [80], PASSED, proof="witness"))) == 1


@pytest.mark.parametrize("where", [("destination",), ("source",), ("service",)])
def test_what_is_proven_elsewhere_has_its_own_cause(where: tuple[str, ...]) -> None:
    """A rule of a host's own stops its flows before the router, or behind it."""
    heard = flows(["c1"], ["b1"], [6443], **NO_ROUTE)
    own = flows(["c1"], ["b1"], [7000], **(SILENT | {"where": where}))

    assert len(found(heard + own)) == 2


def test_a_router_that_tells_of_every_packet_has_a_way_where_it_keeps_quiet() -> None:
    """It rations nothing: what is silent beside it has another cause."""
    looped: dict[str, Any] = {**NO_ROUTE, "reason": "routing-loop"}
    silent = flows(CS, ["b2"], **SILENT, last_hop="10.0.3.254")

    assert len(fold(flows(CS, ["b1"], **looped) + silent)) == 2
    # It has used up its errors where a walk comes as far as to it, or nobody knows how far.
    for last_hop in (ROUTER, None):
        quiet = [replace(one, last_hop=last_hop) for one in silent]
        assert len(fold(flows(CS, ["b1"], **looped) + quiet)) == 1
    one_port = flows(CS, ["b1"], [6443], **looped) + flows(CS, ["b1"], [7000, 9100], **SILENT)
    assert len(fold(one_port + silent)) == 1


def test_two_routers_that_one_host_hears_are_two_causes() -> None:
    """Of a router that answers each network from another address, each host hears one."""
    one = flows(["c1"], ["b1"], **NO_ROUTE)
    other = {**NO_ROUTE, "rejected_by": "10.9.0.2"}

    assert len(found(one + flows(["c1"], ["b2"], **other))) == 2
    both = one + flows(["c2"], ["b1"], **other)
    assert len(found(both)) == 1
    # Who hears none of them has the same cause.
    mute = flows(["b2"], ["b1"], **SILENT)
    assert len(found(both + mute)) == 1


def test_a_dead_next_hop_takes_the_answers_with_it() -> None:
    """Requests to the host arrive by another way; its answers do not leave its network."""
    out, back = flows(["c1"], BS, **DEAD_HOP), flows(BS, ["c1"], **LOST_BACK)
    others = flows(BS, ["c2"], **LOST_BACK)

    first, second = fold(out + back + others)

    assert {len(first.members), len(second.members)} == {12, 6}
    (hop,) = (one for one in (first, second) if one.kind == "next-hop")
    assert hop.title == (
        "10.0.3.77, the next hop of c1, answers nothing: tcp 6443, 7000, 9100 to b1, b2, and the "
        "answers from c1 to b1, b2 (12 flows)"
    )
    assert hop.where == ("path", "return-path", "source")


MUTE: dict[str, Any] = {
    "reason": "next-hop-silent", "where": ("path", "source"), "next_hop": "10.0.3.77",
}  # fmt: skip


def test_the_next_hop_of_several_hosts_is_one_cause() -> None:
    """Whose address it is, all of them agree; a link-local one is known to each link by itself."""
    (finding,) = fold(flows(CS, BS, **MUTE))

    assert finding.title.startswith("10.0.3.77, the next hop of c1, c2, answers nothing: tcp ")
    assert len(fold(flows(CS, BS, **{**MUTE, "next_hop": "fe80::1"}))) == 2
    assert len(fold(flows(["c1"], BS, **MUTE) + flows(["c2"], BS, **DEAD_HOP))) == 2


def test_a_silent_next_hop_takes_ways_that_nobody_walked() -> None:
    """A host has few walks. Where one got farther, the packets end behind that next hop."""
    walked = flows(["c1"], ["b1"], **MUTE)
    rest = flows(["c1"], ["b2"], **SILENT, last_hop=None)

    assert len(fold(walked + rest)) == 1
    assert len(fold(walked + [replace(one, last_hop="10.9.0.9") for one in rest])) == 2
    other = flows(["c1"], ["c2"], **{**MUTE, "next_hop": "10.0.3.78"})
    assert len(fold(walked + other + rest)) == 3


def test_a_router_that_refuses_some_packets_is_no_silent_next_hop() -> None:
    """It rations its words, and some senders hear none."""
    said = {**NO_ROUTE, "rejected_by": MUTE["next_hop"]}
    refused, mute = flows(["c1"], ["b1"], **said), flows(CS, ["b2"], **MUTE)

    (finding,) = fold(refused + mute)

    assert finding.title.startswith("10.0.3.77 has no route for tcp 6443, 7000, 9100 from c1")
    assert finding.advice == "Give 10.0.3.77 a route to b1 (10.0.2.1), b2 (10.0.2.2)."
    assert fold(refused + mute, kept=[keep_finding(finding)]) == (finding,)
    assert len(fold(flows(["c1"], ["b1"], **NO_ROUTE) + mute)) == 2


def test_a_next_hop_that_any_host_heard_is_not_silent() -> None:
    """Its words are rationed, and a host asks its neighbours while others are not asked yet; a
    link-local address is known to one host alone."""
    mute = flows(["c1"], ["b1"], **MUTE)
    heard = flows(["c2"], ["b1"], **SILENT, last_hop=MUTE["next_hop"])

    for some in (mute + heard, heard + mute):
        (finding,) = fold(some)
        assert (finding.kind, finding.where) == ("destination", ("path",))
        assert fold(some, kept=[keep_finding(finding)]) == (finding,)
    local = {**MUTE, "next_hop": "fe80::1"}
    others = flows(["c2"], ["b1"], **SILENT, last_hop="fe80::1")
    assert {one.kind for one in fold(flows(["c1"], ["b1"], **local) + others)} == {
        "next-hop", "pair",
    }  # fmt: skip
    # The destination's own words are not those of a router.
    own: dict[str, Any] = {"where": ("destination",), "rejected_by": MUTE["next_hop"]}
    own |= {"reason": "admin-prohibited"}
    assert "next-hop" in {one.kind for one in fold(mute + flows(["c2"], ["b2"], **own))}


def test_a_router_there_does_not_speak_for_the_way_back() -> None:
    """Two lost routes of two networks: who hears nothing goes with who sends to the same hosts."""
    near, far = ({**NO_ROUTE, "rejected_by": f"10.0.{n}.254"} for n in (2, 3))
    back, there = flows(CS, ["b1"], **far), flows(["b1"], CS, **near)
    passes = flows(["b2"], ["b1"], [80], PASSED)

    for some in (back + there, there + back):
        findings = fold(some + flows(["b2"], CS, **SILENT, last_hop="10.0.2.254"), passes)
        assert {(one.rejected_by, len(one.members)) for one in findings} == {
            ("10.0.2.254", 12), ("10.0.3.254", 6),
        }  # fmt: skip


OWN_STOP: dict[str, Any] = {"reason": "local-firewall", "where": ("source",)}
# What a host's own firewall does to its answers, its agent says.
NO_ANSWER: dict[str, Any] = {"reason": "no-response", "where": ("destination",)}


def test_a_firewall_that_lets_nothing_out_stops_the_answers_of_its_host() -> None:
    """They are no further rule of it, unless something gets out, or the request may be lost."""
    out, back = flows(["b1"], CS, **OWN_STOP), flows(CS, ["b1"], **NO_ANSWER)
    datagrams = flows(CS, ["b1"], [8472], PASSED, protocol="udp", proof="witness")

    (finding,) = fold(back + out, datagrams)

    assert finding.title == (
        "b1 itself stops tcp 6443, 7000, 9100 to c1, c2, and the answers from b1 to c1, c2 "
        "(12 flows)"
    )
    assert finding.advice == "Allow tcp 6443, 7000, 9100 to c1, c2 in the firewall of b1 itself."
    assert (finding.where, owner_of(finding)) == (("destination", "source"), "hosts")
    assert len(fold(back + out, flows(["b1"], CS, [80], PASSED))) == 2
    assert len(fold(flows(CS, ["b1"], **SILENT) + out)) == 2
    assert fold(back + out, kept=[keep_finding(finding)]) == (finding,)
    # One port says nothing of others, nor does who asks only what failed.
    assert len(fold(back + flows(["b1"], CS, [6443], **OWN_STOP))) == 2
    assert len(fold(back + out, some_ports=True)) == 2
    (alone,) = fold(out)
    assert alone.where == ("source",)


def test_a_host_without_a_route_answers_nobody_there() -> None:
    """Its lost answers have that cause, whatever the way back is thought to be; routes know no
    ports, so that one is enough. The host's owner must act, not the network's."""
    no_route: dict[str, Any] = {
        "state": "unreachable", "reason": "no-route", "where": ("source",),
    }  # fmt: skip
    out = flows(["b1"], CS, [6443], **no_route)
    back = flows(CS, ["b1"], **(SILENT | {"where": ("return-path",)}))

    (finding,) = fold(back + out)

    assert finding.title == "b1 has no route to c1, c2 (8 flows)"
    assert finding.advice == "Give b1 a route to c1 (10.0.3.1), c2 (10.0.3.2)."
    assert (finding.where, owner_of(finding)) == (("destination", "source"), "hosts")
    assert where_text(finding) == "b1 itself (its routing table)"
    # What gets there although nothing comes back has a cause of its own.
    assert len(fold(flows(CS, ["b1"], **SILENT) + out)) == 2


def test_a_next_hop_is_not_silent_where_another_machine_gets_the_answers() -> None:
    """To an address that is held twice, and to who asks; who hears nothing infers too much."""
    machine: dict[str, Any] = {
        "reason": "other-machine",
        "where": ("path",),
        "state": "unreachable",
    }
    mute: dict[str, Any] = {
        "reason": "next-hop-silent",
        "where": ("path", "source"),
        "next_hop": "10.0.3.77",
    }
    both = [flows(["b2"], ["b1"], [80], **machine), flows(["c2"], ["c1"], [80], **machine)]
    held = [one for some in both for one in some]

    found = fold(held + flows(["b1"], ["c1"], **mute) + flows(["c1"], ["b1"], **mute))
    assert {one.title.split(" (4")[0] for one in found} == {
        "another machine answers for b1 (10.0.2.1)", "another machine answers for c1 (10.0.3.1)",
    }  # fmt: skip
    # What it sends itself is told by the answers, and no address of its peers is in doubt.
    (alone,) = fold(both[0] + flows(["b1"], ["c1"], **mute))
    assert alone.title == (
        "another machine answers for b1 (10.0.2.1), and the answers from c1 to b1 (4 flows)"
    )
    assert len(fold(both[0] + flows(["b1"], ["c1"], **mute))) == 1
    assert len(fold(both[0] + flows(["c1"], ["c2"], **mute))) == 2
    # What its kernel says of it is no inference.
    assert len(fold(held + flows(["b1"], ["c1"], **DEAD_HOP))) == 3


def test_a_dead_next_hop_takes_no_answers_to_an_address_that_is_held_twice() -> None:
    """What is known of the receiver comes before what is known of the sender's other ways."""
    dead = flows(["c1"], ["c2"], **DEAD_HOP)
    machine: dict[str, Any] = {
        "reason": "other-machine", "where": ("path",), "state": "unreachable",
    }  # fmt: skip
    held = flows(["b2"], ["b1"], [80], **machine)
    back = flows(["b1"], ["c1"], **LOST_BACK)

    titles = {one.title for one in fold(dead + held + back)}

    assert titles == {
        "10.0.3.77, the next hop of c1, answers nothing: tcp 6443, 7000, 9100 to c2 (3 flows)",
        "another machine answers for b1 (10.0.2.1), and the answers from c1 to b1 (4 flows)",
    }


def test_who_must_act_does_not_follow_from_the_order_of_the_plan() -> None:
    """The member that shows the cause speaks for all."""
    machine: dict[str, Any] = {
        "reason": "other-machine",
        "where": ("path",),
        "state": "unreachable",
    }
    (finding,) = fold(flows(["b1"], ["c1"], **LOST_BACK) + flows(["c1"], ["b1"], **machine))

    assert finding.members[0].reason == "no-response"
    assert (finding.speaker.reason, owner_of(finding)) == ("other-machine", "unclear")


def narrow(
    sources: Sequence[str], ends: Sequence[str], size: int = 1400, *where: Any, **facts: Any
) -> list[Result]:
    """Flows of which packets above a size vanish."""
    return flows(
        sources, ends, reason="mtu-black-hole", where=where or ("path",), path_mtu_bytes=size,
        needed_mtu_bytes=1500, **facts,
    )  # fmt: skip


def test_a_narrow_link_is_one_finding_with_the_direction_of_the_packets() -> None:
    """Measured from two sides, by connections, by their answers and by the overlay."""
    there = narrow(["b1"], ["c1"]) + narrow(["c1"], ["b1"], 1404, "return-path")
    overlay = narrow(["b1"], ["c1"], 1400, "destination", "path", protocol="icmp")

    (finding,) = fold(there + overlay)

    assert finding.title.startswith("packets above 1400 bytes vanish from b1 to c1 (the interface")
    assert "on the way from b1 to c1" in finding.advice
    assert finding.where == ("destination", "path", "return-path")
    assert len(finding.members) == 9


def test_other_sizes_and_other_hosts_are_other_links() -> None:
    """Both directions of one link are one."""
    one = narrow(["b1"], ["c1"])

    assert len(fold(one + narrow(["c1"], ["b1"]))) == 1
    assert len(fold(one + narrow(["b2"], ["c2"]))) == 2
    assert len(fold(one + narrow(["b1"], ["c1"], 1300, protocol="udp"))) == 2


def test_a_router_speaks_for_both_ends_of_its_link() -> None:
    """What comes from the other end, whose device is wider, it drops without a word."""
    said: dict[str, Any] = {"reason": "mtu-too-small", "where": ("path",), "rejected_by": ROUTER}
    there = flows(["b1"], ["c1"], path_mtu_bytes=1400, needed_mtu_bytes=1500, **said)
    back = narrow(["c1"], ["b1"], 1404, "destination", "path")

    for some in (there + back, back + there):
        (finding,) = fold(some)
        assert finding.title.startswith(f"{ROUTER} carries only 1400 bytes ")
        assert finding.advice.startswith(f"Raise the MTU of the link behind {ROUTER} to 1500")
        assert (finding.where, owner_of(finding)) == (("path",), "network")
        assert fold(some, kept=[keep_finding(finding)]) == (finding,)
    assert len(fold(there + narrow(["c1"], ["b1"], 1300))) == 2
    assert len(fold(there + narrow(["b2"], ["c2"]))) == 2


def test_a_link_has_two_ends_and_they_other_addresses() -> None:
    """Who hears of it from two routers hears of two links."""
    small: dict[str, Any] = {"reason": "mtu-too-small", "where": ("path",), "path_mtu_bytes": 1400}
    near = flows(["b1"], CS, [8472], rejected_by="10.0.2.254", needed_mtu_bytes=1450, **small)
    also = flows(["b2"], CS, [8472], rejected_by="10.0.4.254", needed_mtu_bytes=1450, **small)
    back = flows(CS, BS, [8472], rejected_by="10.0.3.254", needed_mtu_bytes=1450, **small)

    (finding,) = fold(near + also + back)
    assert finding.title == (
        "10.0.2.254 and 10.0.4.254 and 10.0.3.254 carry only 1400 bytes between (b1, b2) and "
        "(c1, c2) (the interfaces send 1450) (8 flows)"
    )
    assert finding.rejected_by is None
    other = flows(["b1"], ["c1"], [8472], rejected_by="10.0.9.9", needed_mtu_bytes=1450, **small)
    assert len(fold(other + near[1:])) == 2


def test_a_name_that_nobody_can_resolve_is_one_finding() -> None:
    """However many sources look it up."""
    lost = flows(CS, ["b1"], reason="name-not-resolved", where=("source",))

    (finding,) = fold([replace(one, address="api.test") for one in lost])

    assert finding.title == "c1, c2 cannot resolve api.test (6 flows)"


def rule(source: str, end: str, **facts: Any) -> list[Result]:
    return flows([source], [end], [443], **({"reason": "no-response", "where": ("path",)} | facts))


def members_of(found_: Sequence[Finding]) -> list[int]:
    return [len(one.members) for one in found_]


def test_a_chain_of_pairs_is_no_rule() -> None:
    """There and back is one where the pair is the same."""
    passes = flows(BS + CS, BS + CS, [80], PASSED)

    assert members_of(fold(rule("b1", "b2") + rule("b2", "c1"), passes)) == [1, 1]
    assert members_of(fold(rule("b1", "b2") + rule("b2", "b1"), passes)) == [2]


def test_one_source_hears_one_rejecter_and_one_last_hop() -> None:
    """Whatever the other sources hear."""
    passes = flows(BS + CS, BS + CS, [80], PASSED)
    refused: dict[str, Any] = {"reason": "admin-prohibited"}
    one = rule("b1", "c1", **refused, rejected_by=ROUTER)
    two = rule("b2", "c1", **refused, rejected_by="10.9.0.2")
    three = rule("b1", "c2", **refused, rejected_by="10.9.0.2")
    near, far = (rule("b1", "c1", last_hop=f"10.9.0.{n}", protocol=name)
                 for n, name in ((1, "tcp"), (2, "udp")))  # fmt: skip

    assert members_of(fold(one + two, passes)) == [2]
    assert sorted(members_of(fold(one + two + three, passes))) == [1, 2]
    assert members_of(fold(near + far, passes)) == [1, 1]
    assert members_of(fold(near + rule("b2", "c1", last_hop="10.9.0.2"), passes)) == [2]


OTHER_MACHINE: dict[str, Any] = {
    "reason": "other-machine", "where": ("path",), "state": "unreachable",
}  # fmt: skip
UNPROVED: dict[str, Any] = {**OTHER_MACHINE, "reason": "unproved-machine"}


def test_an_address_that_two_machines_have_is_one_finding() -> None:
    """What it answers, what is silent where nothing gets through, and answers that it gets."""
    shown = flows(["b1"], ["c1"], [6443], **UNPROVED) + flows(["b2"], ["c1"], **OTHER_MACHINE)
    silent = flows(["b1", "c2"], ["c1"], [7000, 9100], **SILENT)
    back = flows(["c1"], BS, **LOST_BACK)

    (finding,) = fold(shown + silent + back)

    assert finding.title == (
        "another machine answers for c1 (10.0.3.1), and the answers from b1, b2 to c1 (14 flows)"
    )
    assert (finding.kind, finding.where) == ("machine", ("path", "return-path"))
    assert "Find out who has 10.0.3.1 beside c1" in finding.advice


def test_a_port_that_is_stopped_beside_others_has_its_own_rule() -> None:
    """So has what reaches the host, and what goes to another one."""
    shown = flows(["b1"], ["c1"], [6443], **OTHER_MACHINE)
    others = flows(["c2"], ["c1"], [7000], **SILENT), flows(["c2"], ["c1"], [9100], PASSED)
    own = flows(["b2"], ["c1"], [7000], **(SILENT | {"where": ("destination",)}))
    away = flows(["b2"], ["c2"], [9100], **SILENT)

    assert len(found(shown + others[0], others[1])) == 2
    assert len(found(shown + own)) == 2
    assert len(found(shown + away)) == 2


def test_what_echoes_measured_has_no_direction() -> None:
    """Their answers are as large; what a connection or the overlay measured tells the way."""
    echoes = narrow(["b1"], ["c1"], 1400, "destination", "path", "return-path", protocol="icmp")
    (both,), (there,) = fold(echoes), fold(echoes + narrow(["b1"], ["c1"]))

    assert both.title.startswith("packets above 1400 bytes vanish between b1 and c1 (")
    assert "on the way between b1 and c1" in both.advice
    assert there.title.startswith("packets above 1400 bytes vanish from b1 to c1 (")
