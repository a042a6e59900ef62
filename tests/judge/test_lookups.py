"""Names that hosts cannot look up: whose fault they are, and which finding has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.model.reasons import owner_of
from netprobe.model.result import Result
from tests.report.samples import BLOCKED, PASSED

SERVERS = ("10.9.0.53", "10.9.1.53")
GATEWAY = "10.0.0.254"
RESOLVERS: dict[str, Any] = {
    "state": "unknown", "reason": "no-resolver", "where": ("source",), "protocol": "udp",
    "port": 53, "end_port": 53, "name_servers": SERVERS,
}  # fmt: skip


def lookup(sources: str, *ends: str, **facts: Any) -> list[Result]:
    """Flows of these sources to hosts whose names they do not resolve."""
    return [
        replace(
            BLOCKED, source=source, destination=end, address=f"{end}.test", state="unknown",
            reason="name-not-resolved", where=("source",), **facts,
        )
        for source in sources for end in ends
    ]  # fmt: skip


def silent(sources: str, servers: Iterable[str] = SERVERS, **facts: Any) -> list[Result]:
    """The results of hosts that none of their name servers helps."""
    own = RESOLVERS | {"name_servers": tuple(servers)} | facts
    return [
        replace(BLOCKED, source=one, destination=one, address="10.0.0.1", **own) for one in sources
    ]


def flow(source: str, end: str, address: str, **facts: Any) -> Result:
    """A flow that fails in another way."""
    return replace(BLOCKED, source=source, destination=end, address=address, **facts)


def dns_flow(source: str, **facts: Any) -> Result:
    """A flow to the second name server that is dropped on the way."""
    known = {"protocol": "udp", "port": 53, "end_port": 53, "where": ("path",)} | facts
    return flow(source, "dns", SERVERS[1], **known)


def titles(*failures: list[Result], passes: Iterable[Result] = ()) -> list[str]:
    """The titles of the findings."""
    return [one.title for one in fold([one for some in failures for one in some], passes)]


def test_a_missing_record_is_one_finding_and_two_are_two() -> None:
    """However many sources do not resolve it, while nobody does."""
    assert titles(lookup("abcde", "api", "registry")) == [
        "a, b, c, d and 1 more cannot resolve api.test (5 flows)",
        "a, b, c, d and 1 more cannot resolve registry.test (5 flows)",
    ]


def test_names_that_others_resolve_are_the_fault_of_hosts() -> None:
    """All of a host together, and of all hosts that resolve the same too little."""
    others = [replace(PASSED, source="x", destination=end) for end in ("api", "registry")]

    assert titles(lookup("ab", "api", "registry"), passes=others) == [
        "a, b cannot resolve api.test, registry.test (4 flows)"
    ]
    assert len(titles(lookup("a", "api", "registry"), lookup("bcd", "api"), passes=others)) == 2
    (finding,) = fold(lookup("a", "api", "registry"), others)
    assert finding.advice == (
        "Create the DNS record of api.test, registry.test, or correct the resolver of a."
    )


def test_what_is_optional_stays_apart() -> None:
    """A finding decides, or it does not."""
    assert len(titles(lookup("a", "api"), lookup("b", "api", optional=True))) == 2


def test_a_host_without_name_servers_is_one_finding() -> None:
    """Its names are not at fault, but those of a host that has name servers are."""
    mute = silent("a") + lookup("a", "api", "registry")

    (first, second) = fold([*mute, *lookup("b", "api")])

    assert {first.title, second.title} == {
        "no configured name server of a resolves names (3 flows)",
        "b cannot resolve api.test (1 flow)",
    }


def test_other_name_servers_are_another_cause() -> None:
    """Hosts that ask the same ones are one finding."""
    found = titles(silent("abc"), silent("de", ["10.9.2.53"]))

    assert found == [
        "no configured name server of a, b, c resolves names (3 flows)",
        "no configured name server of d, e resolves names (2 flows)",
    ]


def test_what_stops_the_questions_is_the_cause() -> None:
    """A firewall before name servers: names that do not resolve are counted, and no cause."""
    rules = [dns_flow(one) for one in "ab"]

    (finding,) = fold([*silent("ab"), *lookup("ab", "api", "registry"), *rules])

    assert finding.title == (
        "udp 53 from a, b to dns is dropped on the path, and no names resolve on a, b (8 flows)"
    )
    assert finding.advice == "Allow udp 53 from a, b to dns on the firewall on the way."
    assert (finding.where, finding.speaker.reason) == (("path",), "no-response")
    assert owner_of(finding) == "network"


def test_silence_of_a_name_server_to_one_source_is_a_rule_as_that_of_its_tcp_is() -> None:
    """A port that may be open, as far as anybody can tell, is stopped by the same rule."""
    udp = dns_flow("a", state="open|filtered", where=("destination", "path", "service"))
    tcp = dns_flow("a", protocol="tcp", where=("destination", "host", "path"))

    assert titles([udp, tcp], silent("a")) == [
        "everything that was probed from a to dns is dropped on the path or by the destination's "
        "own firewall: udp 53; tcp 53, and no names resolve on a (3 flows)"
    ]


@pytest.mark.parametrize(
    "facts",
    [{"protocol": "tcp"}, {"port": 5300, "end_port": 5300}, {"address": "10.9.7.7"},
     {"source": "b"}, {"optional": True}],
)  # fmt: skip
def test_other_flows_are_no_questions(facts: dict[str, Any]) -> None:
    """Of another protocol, port, server, source or weight."""
    other = replace(dns_flow("a"), **facts)

    assert len(titles(silent("a"), lookup("a", "api"), [other])) == 2


def test_answers_to_an_address_that_is_held_twice_are_lost() -> None:
    """Those of name servers, too; of other hosts that says nothing."""
    twice: dict[str, Any] = {"reason": "other-machine", "where": ("path",), "state": "unreachable"}
    to_a = flow("x", "a", "10.0.0.1", **twice)

    assert titles(silent("a"), lookup("a", "api"), [to_a]) == [
        "another machine answers for a (10.0.0.1), and no names resolve on a (3 flows)"
    ]
    assert len(titles(silent("b"), lookup("b", "api"), [to_a])) == 2
    # A router may ration what it says of the way to the host, and neighbours ration nothing.
    refused = replace(
        to_a, source="z", reason="net-unreach", state="unreachable", rejected_by="10.9.0.1"
    )
    assert sorted(titles(silent("a"), [refused, to_a])) == [
        "10.9.0.1 has no route for tcp 2379 from z to a (1 flow)",
        "another machine answers for a (10.0.0.1), and no names resolve on a (2 flows)",
    ]


def test_answers_to_which_a_router_has_no_way_are_lost() -> None:
    """Where that holds for most who send the host anything: name servers are further senders."""
    looped: dict[str, Any] = {"reason": "routing-loop", "where": ("path",), "state": "unreachable"}
    router = [
        flow(one, "a", "10.0.0.1", rejected_by="10.9.0.1", **looped) for one in ("x", "y", "z")
    ]
    beside = [flow(one, "a", "10.0.0.1") for one in ("v", "w")]
    passed = [replace(one, verdict="pass", proof="nonce", where=()) for one in beside]

    (title,) = titles(silent("a"), lookup("a", "api"), router, passes=passed)
    assert title.endswith(" from x, y, z to a, and no names resolve on a (5 flows)")
    more = [replace(one, source=f"{one.source}2") for one in passed]
    assert len(titles(silent("a"), router, passes=passed + more)) == 2
    # What arrives without an answer came the other way.
    one_way = [replace(one, source="a", destination=one.source, proof="witness") for one in more]
    assert len(titles(silent("a"), router, passes=passed + one_way)) == 1


def test_a_dead_next_hop_forwards_no_questions() -> None:
    """Where it is the one on the way to the servers."""
    dead: dict[str, Any] = {
        "reason": "next-hop-down",
        "where": ("path", "source"),
        "state": "unreachable",
    }
    hop = flow("a", "b", "10.0.2.1", next_hop=GATEWAY, **dead)

    assert titles(silent("a", next_hop=GATEWAY), lookup("a", "api"), [hop]) == [
        f"{GATEWAY}, the next hop of a, answers nothing: tcp 2379 to b, and no names resolve on a "
        "(3 flows)"
    ]
    assert len(titles(silent("a", next_hop="10.0.0.253"), [hop])) == 2
    assert len(titles(silent("a"), [replace(hop, next_hop=None)])) == 2


def test_a_firewall_that_lets_nothing_out_stops_questions_too() -> None:
    """Of its own host. Where anything gets out, or one peer alone is known, nobody can say so."""
    stop: dict[str, Any] = {"reason": "local-firewall", "where": ("source",)}
    ends = (("b", "10.0.2.1"), ("c", "10.0.3.1"))
    own = [flow("a", end, address, **stop) for end, address in ends]

    assert titles(silent("a"), lookup("a", "api"), own) == [
        "a itself stops tcp 2379 to b, c, and no names resolve on a (4 flows)"
    ]
    assert len(titles(silent("a"), own[:1])) == 2
    out = replace(PASSED, source="a", destination="d")
    assert len(titles(silent("a"), own, passes=[out])) == 2
    answer = replace(PASSED, source="d", destination="a")
    assert len(titles(silent("a"), own, passes=[answer])) == 2
    one_way = replace(answer, proof="witness")
    assert len(titles(silent("a"), own, passes=[one_way])) == 1
