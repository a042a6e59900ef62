"""Firewalls with known rules, and as many findings as there are rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.judge.rows import ALLOWED
from netprobe.judge.rules import is_stopped_by_rule
from netprobe.model.result import Finding, Place, Result
from tests.report.samples import BLOCKED, PASSED
from tests.report.strategies import results

ROLES = {
    "m0": "master", "m1": "master", "m2": "master", "w0": "node", "w1": "node", "w2": "node",
    "w3": "node", "jump": "jump", "dns": "dns",
}  # fmt: skip
ZONES = {"m0": "a", "m1": "a", "w0": "a", "m2": "b", "w1": "b", "w2": "b", "w3": "b"}
A, B = (tuple(name for name, zone in ZONES.items() if zone == one) for one in "ab")
MASTERS, NODES = ("master",), ("master", "node")
# Sources, destinations, protocol and ports, as platforms require them.
REQUIRED = (
    (MASTERS, MASTERS, "tcp", (2379, 2380)),
    (NODES, MASTERS, "tcp", (6443,)),
    (MASTERS, NODES, "tcp", (10250,)),
    (NODES, NODES, "udp", (8472,)),
    (NODES, NODES, "icmp", (None,)),
    (NODES, ("dns",), "tcp", (53,)),
    (("jump",), NODES, "tcp", (22,)),
    (("jump",), MASTERS, "tcp", (443,)),
)
# The rules say which flows they stop: source, destination, protocol, port.
Stops = Callable[[str, str, str, int | None], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a firewall, and the evidence that it leaves."""

    stops: Stops
    where: tuple[Place, ...] = ("path",)
    reason: str = "no-response"
    router: str | None = None


def run_through(*rules: Rule) -> tuple[list[Result], list[Result]]:
    """Failures and passes of all required flows; the first rule that stops a flow decides."""
    failures, passes = [], []
    for number, (source, destination, protocol, port) in enumerate(_required_flows()):
        flow = replace(
            PASSED, order=(number, 0, 0), source=source, destination=destination,
            address=f"10.0.0.{list(ROLES).index(destination)}", protocol=protocol,
            port=port, end_port=port,
        )  # fmt: skip
        rule = next((one for one in rules if one.stops(source, destination, protocol, port)), None)
        if rule is None:
            passes.append(flow)
        else:
            failures.append(_fail(flow, rule))
    return failures, passes


def _required_flows() -> Iterator[tuple[str, str, str, int | None]]:
    for sources, destinations, protocol, ports in REQUIRED:
        for source in (name for name, role in ROLES.items() if role in sources):
            for end in (name for name, role in ROLES.items() if role in destinations):
                if source != end:
                    yield from ((source, end, protocol, port) for port in ports)


def _fail(flow: Result, rule: Rule) -> Result:
    # An echo request that nobody saw may have been stopped before it left (judge/rows.py).
    icmp = flow.protocol == "icmp" and rule.where == ("path",) and rule.router is None
    where: tuple[Place, ...] = ("path", "source") if icmp else rule.where
    return replace(
        BLOCKED, order=flow.order, source=flow.source, destination=flow.destination,
        address=flow.address, protocol=flow.protocol, port=flow.port, end_port=flow.end_port,
        where=where, reason=rule.reason, rejected_by=rule.router,
    )  # fmt: skip


def findings_of(*rules: Rule, zones: bool = False) -> tuple[Finding, ...]:
    """The findings of these rules."""
    return fold(*run_through(*rules), ZONES if zones else None)


def titles(found: Iterable[Finding]) -> list[str]:
    return [one.title for one in found]


def between(a: Sequence[str], b: Sequence[str]) -> Stops:
    """Everything between these hosts, both ways."""
    return lambda source, end, *_: (source in a and end in b) or (source in b and end in a)


def port(number: int | None, protocol: str = "tcp") -> Stops:
    """One port, wherever it goes."""
    return lambda source, end, name, one: (name, one) == (protocol, number)


def to(host: str) -> Stops:
    """Everything to a host."""
    return lambda source, end, *_: end == host


def both(*conditions: Stops) -> Stops:
    return lambda *flow: all(one(*flow) for one in conditions)


EVERYTHING = "tcp 2379-2380, 6443, 10250; udp 8472; icmp echo"


@pytest.mark.parametrize("zones", [False, True])
def test_a_wall_between_two_zones_is_one_finding(zones: bool) -> None:
    """However different the ports are that each pair of roles requires of each other."""
    (finding,) = findings_of(Rule(between(A, B)), zones=zones)
    sides = (
        "zone a (3 hosts) and zone b (4 hosts)"
        if zones
        else f"({', '.join(A)}) and ({', '.join(B)})"
    )

    assert finding.where == ("path",)
    assert finding.title == (
        f"everything that was probed between {sides} is dropped on the path, in both directions: "
        f"{EVERYTHING} (78 flows)"
    )


@pytest.mark.parametrize("zones", [False, True])
def test_a_wall_is_told_by_its_ports_while_others_pass(zones: bool) -> None:
    """A rule for some ports is one finding, also where they are not required of the same hosts."""
    rule = Rule(both(between(A, B), lambda _, __, ___, one: one in (8472, 10250)))
    (finding,) = findings_of(rule, zones=zones)

    assert {one.port for one in finding.members} == {10250, 8472}
    assert finding.title.startswith("tcp 10250; udp 8472 between ")
    assert finding.title.endswith(
        " (each where it is required) is dropped on the path, in both directions (35 flows)"
    )


def test_ports_with_different_rules_are_different_findings() -> None:
    """One port fails between all hosts of two zones, the other passes between some of them."""
    found = findings_of(
        Rule(both(port(10250), to("w1"))), Rule(both(port(8472, "udp"), between(A, B)))
    )

    assert [{one.port for one in finding.members} for finding in found] == [{10250}, {8472}]


@pytest.mark.parametrize("where", [("destination",), ("destination", "path")])
def test_a_host_that_nothing_reaches_is_one_finding(where: tuple[Place, ...]) -> None:
    """Whoever asks it for whatever, and also for the one port that the jump host needs."""
    (finding,) = findings_of(Rule(to("w2"), where))

    assert (finding.kind, finding.where) == ("destination", where)
    assert finding.title.startswith("everything that was probed from ")
    assert {one.source for one in finding.members} == {*ROLES} - {"w2", "dns"}


def test_nothing_is_a_wall_where_other_ports_were_not_asked() -> None:
    """A retry of a request asks for the ports of a host's own rule, and for nothing that passes."""
    rule = Rule(both(to("w2"), lambda _, __, ___, one: one in (10250, 8472)), ("destination",))
    failures, _ = run_through(rule)

    (whole,), (part,) = fold(failures), fold(failures, some_ports=True)

    assert whole.title.startswith("everything that was probed from ")
    assert not part.everything
    assert part.title == (
        "tcp 10250; udp 8472 from m0, m1, m2, w0 and 2 more to w2 (each where it is required) is "
        "dropped by the destination's own firewall (9 flows)"
    )


def test_a_router_that_refuses_everything_may_have_a_route_that_does() -> None:
    """ICMP has one word for a firewall's reject and a route of the type unreachable; of some ports
    alone it is a firewall's."""
    router: dict[str, Any] = {"reason": "host-unreach", "router": "10.0.0.254"}
    (all_,) = findings_of(Rule(lambda s, d, *_: (s, d) == ("m1", "m0"), **router))
    (some,) = findings_of(Rule(both(port(10250), to("m0")), **router))

    end = " on 10.0.0.254. If no firewall there rejects it, a route there has the type unreachable."
    assert all_.advice.endswith(end)
    assert some.advice.endswith(" on 10.0.0.254.")


def test_everything_is_only_stopped_where_no_port_has_another_cause() -> None:
    """A port that the source's own firewall stops is in another finding, and so not in this one."""
    failures, _ = run_through(Rule(lambda s, d, *_: (s, d) == ("m1", "m0")))
    own = [
        replace(one, where=("source",), reason="local-firewall") if one.port == 6443 else one
        for one in failures
    ]

    (whole,), (part, source) = fold(failures), sorted(fold(own), key=lambda one: -len(one.members))

    assert whole.everything
    assert whole.title.startswith("everything that was probed from m1 to m0 ")
    assert not part.everything
    assert part.title.startswith(
        "tcp 2379-2380, 10250; udp 8472; icmp echo from m1 to m0 is dropped on "
    )
    assert source.title.startswith("m1 itself stops tcp 6443 to m0")


def test_one_rule_for_one_port_is_one_finding() -> None:
    """The pairs that it hits are named as they are."""
    (finding,) = findings_of(Rule(port(6443)))

    assert {one.port for one in finding.members} == {6443}
    assert finding.title.endswith("is dropped on the path (18 flows)")


def test_several_rules_are_as_many_findings() -> None:
    """A wall, a host that lets nothing in, a port that a router rejects, and a resolver."""
    found = findings_of(
        Rule(both(port(2380), lambda s, d, *_: (s, d) == ("m1", "m0")), reason="admin-prohibited",
             router="10.0.0.254"),
        Rule(to("w3"), ("destination",)),
        Rule(both(port(8472, "udp"), between(A, B))),
        Rule(to("dns"), ("destination", "path")),
    )  # fmt: skip

    assert titles(found) == [
        "10.0.0.254 rejects tcp 2380 from m1 to m0 (1 flow)",
        "everything that was probed from m0, m1, m2, w0 and 3 more to w3 is dropped by the "
        "destination's own firewall: tcp 22, 10250; udp 8472; icmp echo (16 flows)",
        "udp 8472 from m0, m1, w0 to m2, w1, w2 and from m2, w1, w2, w3 to m0, m1, w0 is dropped "
        "on the path (21 flows)",
        "tcp 53 from m0, m1, m2, w0 and 3 more to dns is dropped on the path or by the "
        "destination's own firewall (7 flows)",
    ]


def test_a_rule_on_the_way_is_whole_beside_a_host_that_lets_nothing_in() -> None:
    """What the one stops on its way to the other is of the rule that stops it elsewhere, too."""
    found = findings_of(
        Rule(both(port(8472, "udp"), between(A, B))), Rule(to("w1"), ("destination",))
    )

    assert [(one.where, len(one.members)) for one in found] == [
        (("destination",), 13), (("path",), 24),
    ]  # fmt: skip


def test_evidence_of_different_places_splits() -> None:
    """The same port, dropped by one host itself and on the way to another: two rules."""
    found = findings_of(
        Rule(both(port(10250), to("w1")), ("destination",)),
        Rule(both(port(10250), to("w2")), ("path",)),
    )

    assert [(one.where, {x.destination for x in one.members}) for one in found] == [
        (("destination",), {"w1"}), (("path",), {"w2"}),
    ]  # fmt: skip


def test_less_evidence_of_the_same_place_does_not_split() -> None:
    """What cannot be told for some flows of a rule is what is proven for the others."""
    somewhere: tuple[Place, ...] = ("destination", "path", "return-path", "source")
    (finding,) = findings_of(
        Rule(both(port(6443), lambda s, *_: s in ("w0", "w1")), somewhere),
        Rule(port(6443), ("path",)),
    )

    assert (finding.where, len(finding.members)) == (("path",), 18)


def test_what_is_proven_of_one_host_is_not_said_of_another() -> None:
    """One host's firewall drops a port; that another's does is not known."""
    found = findings_of(
        Rule(both(port(10250), to("w1")), ("destination",)),
        Rule(both(port(10250), to("w2")), ("destination", "path")),
    )

    assert [one.where for one in found] == [("destination",), ("destination", "path")]


def test_a_router_answers_each_network_from_another_address() -> None:
    """One rule of a router in two networks is one finding, with both of its addresses."""
    (finding,) = findings_of(
        Rule(both(port(8472, "udp"), between(A, B), lambda s, *_: s in A),
             reason="admin-prohibited", router="10.0.1.254"),
        Rule(both(port(8472, "udp"), between(A, B)), reason="admin-prohibited",
             router="10.0.2.254"),
    )  # fmt: skip

    assert finding.title.startswith(
        "10.0.1.254 and 10.0.2.254 reject udp 8472 between (m0, m1, w0)"
    )
    assert "on 10.0.1.254 and 10.0.2.254." in finding.advice
    assert finding.rejected_by is None


def test_two_routers_on_the_way_of_one_host_are_two_findings() -> None:
    """A host hears of one router from one address."""
    found = findings_of(
        Rule(both(port(10250), to("w1")), reason="admin-prohibited", router="10.0.1.254"),
        Rule(both(port(10250), to("w2")), reason="admin-prohibited", router="10.0.2.254"),
    )

    assert [one.rejected_by for one in found] == ["10.0.1.254", "10.0.2.254"]


def test_a_router_that_refuses_one_host_is_not_blamed_for_the_silence_of_another() -> None:
    """It would have said so to both: whoever drops without a word is somebody else."""
    found = findings_of(
        Rule(both(lambda source, *_: source == "w1", to("m0")), reason="admin-prohibited",
             router="10.0.1.254"),
        Rule(both(lambda source, *_: source == "w2", to("m0"))),
        zones=True,
    )  # fmt: skip

    told = {(member.source, one.rejected_by) for one in found for member in one.members}
    assert told == {("w1", "10.0.1.254"), ("w2", None)}
    assert not [one.title for one in found if "10.0.1.254" in one.title and "w2" in one.title]


@pytest.mark.parametrize("everything", [True, False])
@pytest.mark.parametrize(("last_hop", "is_apart"), [
    (None, False), ("10.0.1.254", False), ("10.0.9.254", True),
])  # fmt: skip
def test_silence_behind_a_router_that_rejects_is_of_another_rule(
    last_hop: str | None, is_apart: bool, everything: bool
) -> None:
    """A silent port of its row came past it; the walk ended at another router."""
    silent = replace(_fail(PASSED, Rule(to("w1"))), port=30150, end_port=30150, last_hop=last_hop)
    rule = Rule(to("w1"), reason="admin-prohibited", router="10.0.1.254")
    rejected = replace(
        _fail(PASSED, rule), order=(1, 0, 0), port=30152, end_port=30152, last_hop=None
    )
    passed = replace(PASSED, order=(2, 0, 0), port=30151, end_port=30151)

    found = fold([silent, rejected], [] if everything else [passed])

    assert len(found) == (2 if is_apart else 1)


def test_what_to_do_opens_no_more_than_what_is_required() -> None:
    """A wall is one finding, and its advice names for each port the hosts that need it."""
    (finding,) = findings_of(Rule(between(("m0",), ("m1", "w1"))))

    assert finding.advice == (
        "Allow tcp 2379-2380, 6443, 10250; udp 8472; icmp echo between m0 and m1"
        ", and tcp 6443; udp 8472; icmp echo from w1 to m0, and tcp 10250; udp 8472; icmp echo "
        "from m0 to w1 on the firewall on the way. If no firewall there drops it, a router there "
        "has no route for it, or forwards nothing."
    )


def test_ranges_in_pieces_are_one_rule() -> None:
    """Evidence that differs a little cuts a range for one pair and not for another."""
    drbd = replace(BLOCKED, where=("path",), requirement="drbd")
    whole = replace(drbd, source="a", destination="b", port=7400, end_port=7499)
    pieces = [
        replace(drbd, source="c", destination="d", port=first, end_port=last, last_hop=hop)
        for first, last, hop in ((7400, 7450, "10.0.0.1"), (7451, 7499, None))
    ]
    others = [replace(PASSED, source=one.source, destination=one.destination, address=one.address)
              for one in (whole, *pieces)]  # fmt: skip
    (finding,) = fold([whole, *pieces], others)

    assert len(finding.members) == 3


def test_families_are_named_where_one_of_them_is_ipv6() -> None:
    """A pair that fails in both families is one finding; one that fails in IPv6 only says so."""
    six = replace(BLOCKED, where=("path",), address="fd00::11")
    (both_,) = fold([replace(BLOCKED, where=("path",)), six])
    (only,) = fold([six], [PASSED])

    assert "tcp 2379 (IPv4 and IPv6) from" in both_.title
    assert "tcp 2379 (IPv6) from" in only.title


@pytest.mark.slow
@given(st.lists(results(5), max_size=30), st.booleans())
def test_every_failure_is_in_one_finding(some: list[Result], zoned: bool) -> None:
    """Nothing is lost or told twice, whatever the evidence; numbers begin with 1."""
    failures = [one for one in some if one.verdict in ("blocked", "exposed")]
    passes = [one for one in some if one.verdict == "pass"]
    found = fold(some, passes, {"a": "x", "b": "y"} if zoned else None)
    told = [member for one in found for member in one.members]

    assert sorted(map(str, told)) == sorted(map(str, failures))
    assert [one.number for one in found] == list(range(1, len(found) + 1))
    assert fold(list(reversed(some)), passes[::-1]) is not None


def test_only_filters_fold_by_rule() -> None:
    """Of the tables' failures these are told by the rules that they may come from."""
    rows = [row for row in ALLOWED if row.verdict == "blocked"]
    told = {
        row.reason
        for row in rows
        if is_stopped_by_rule(replace(BLOCKED, state=row.state, reason=row.reason, where=row.where))
    }

    assert told == {"no-response", "reset", "port-unreach", "proto-unreach", "{icmp}", "{failure}"}
