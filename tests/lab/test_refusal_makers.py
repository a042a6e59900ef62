"""Who made a refusal, where a translation on the way hides everybody behind it.

source - router-1 - router-2 - destination. What passes a translation on its way back has the
destination's address, whoever made it; a TTL, and a walk on the same port, may tell it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.netlab import Lab
from tests.lab.test_truth import DNAT, INPUT, THERE, Chain, table

pytestmark = pytest.mark.lab

FORWARD = "filter hook forward priority 0"
# What router-1 translates, and what is as it seems.
BAD, GOOD = 7000, 7001
# What BAD becomes.
INSIDE = 7999
BOTH = ("destination", "path")

# The other rights show the same under other circumstances.
rights_or_not = pytest.mark.parametrize(
    "rights",
    [
        pytest.param(True, id="capture", marks=pytest.mark.full),
        pytest.param(False, id="no-capture"),
    ],
)

Said = tuple[str, str, tuple[str, ...]]


@pytest.fixture
def chain() -> Iterator[Chain]:
    """A chain of its own for every test."""
    with Lab() as lab:
        yield Chain(lab)


def translate(chain: Chain, protocol: str) -> None:
    """Router-1 gives BAD another port, which the machines behind it see."""
    rules = [
        f"ip daddr {THERE[4]} {protocol} dport {BAD} dnat ip to {THERE[4]}:{INSIDE}",
        f"ip6 daddr {THERE[6]} {protocol} dport {BAD} dnat ip6 to [{THERE[6]}]:{INSIDE}",
    ]
    chain.router_1.nft(table(DNAT, "nat", *rules))


def said_of(results: dict[tuple[str, Any], Any], port: Any) -> set[Said]:
    """What both families say of a port."""
    found = [results[address, port] for address in THERE.values()]
    return {(one["verdict"], one["reason"], tuple(one["where"])) for one in found}


@rights_or_not
def test_port_unreachable_of_a_router_behind_a_translation_is_no_pass(
    chain: Chain, rights: bool
) -> None:
    """Its TTL is not that of the destination's answers; a closed port beside it passes."""
    translate(chain, "udp")
    wall = f"udp dport {INSIDE} reject with icmpx port-unreachable"
    chain.router_2.nft(table(FORWARD, "wall", wall))

    results = chain.run({"udp": [BAD, GOOD]}, agent=False, rights=rights)

    assert said_of(results, GOOD) == {("pass", "port-unreach", ())}
    assert said_of(results, BAD) == {("inconclusive", "port-unreach", BOTH)}


@rights_or_not
@pytest.mark.parametrize(
    ("protocol", "verdict"),
    [("udp", "inconclusive"), pytest.param("tcp", "blocked", marks=pytest.mark.full)],
)
def test_a_last_router_that_rejects_in_the_name_of_the_destination_is_no_pass(
    chain: Chain, protocol: str, verdict: str, rights: bool
) -> None:
    """No walk tells it from the destination; its errors come from one hop nearer."""
    wall = f"{protocol} dport {BAD} reject with icmpx port-unreachable"
    names = [
        f"icmp type destination-unreachable ip saddr set {THERE[4]}",
        f"icmpv6 type destination-unreachable ip6 saddr set {THERE[6]}",
    ]
    output = "filter hook output priority 0"
    chain.router_2.nft("\n".join((table(FORWARD, "wall", wall), table(output, "names", *names))))

    results = chain.run({protocol: [BAD, GOOD]}, agent=False, rights=rights)

    assert {one for one, _, _ in said_of(results, GOOD)} == {"pass"}
    assert said_of(results, BAD) == {(verdict, "port-unreach", BOTH)}


def test_a_redirect_to_a_closed_port_of_a_router_is_no_pass(chain: Chain) -> None:
    """The router itself answers port-unreachable with the destination's address."""
    chain.router_1.nft(table(DNAT, "nat", f"udp dport {BAD} redirect to :{INSIDE}"))

    results = chain.run({"udp": [BAD, GOOD]}, agent=False)

    assert said_of(results, GOOD) == {("pass", "port-unreach", ())}
    assert said_of(results, BAD) == {("inconclusive", "port-unreach", BOTH)}


# nft's words for IPv4 and IPv6.
KINDS = {
    "net": ("net-unreachable", "no-route"),
    "host": ("host-prohibited", "admin-prohibited"),
    "admin": ("admin-prohibited", "policy-fail"),
    "protocol": ("prot-unreachable", "reject-route"),
}


@pytest.mark.parametrize("agent", [True, False], ids=["agent", "no-agent"])
@pytest.mark.parametrize(
    "kind", [pytest.param(one, marks=[] if one == "admin" else pytest.mark.full) for one in KINDS]
)
def test_a_rejection_behind_a_translation_has_two_places(
    chain: Chain, kind: str, agent: bool
) -> None:
    """Neither an agent without rights nor none at all shows whose firewall it is."""
    four, six = KINDS[kind]
    translate(chain, "tcp")
    rules = [
        f"tcp dport {INSIDE} reject with icmp type {four}",
        f"tcp dport {INSIDE} reject with icmpv6 type {six}",
    ]
    chain.router_2.nft(table(FORWARD, "wall", *rules))

    results = chain.run({"tcp": [BAD]}, agent=agent, rights=not agent)

    assert {(verdict, where) for verdict, _, where in said_of(results, BAD)} == {("blocked", BOTH)}


@pytest.mark.parametrize("agent", [True, False], ids=["agent", "no-agent"])
def test_the_destinations_own_firewall_has_one_place(chain: Chain, agent: bool) -> None:
    """Where routers as far as the last one see the packets as they were sent, it is the
    destination's."""
    chain.destination.nft(
        table(INPUT, "wall", f"tcp dport {BAD} reject with icmpx admin-prohibited")
    )

    results = chain.run({"tcp": [BAD]}, agent=agent, rights=not agent)

    assert said_of(results, BAD) == {("blocked", "admin-prohibited", ("destination",))}


@rights_or_not
def test_a_reset_behind_a_translation_with_another_ttl_is_no_pass(
    chain: Chain, rights: bool
) -> None:
    """A translation makes another TTL of what it lets back; a closed port beside it passes."""
    translate(chain, "tcp")
    rules = (
        f"ip protocol tcp tcp sport {INSIDE} ip ttl set 40",
        f"ip6 nexthdr tcp tcp sport {INSIDE} ip6 hoplimit set 40",
    )
    chain.router_2.nft(table(FORWARD, "ttl", *rules))

    results = chain.run({"tcp": [BAD, GOOD]}, agent=False, rights=rights)

    assert said_of(results, GOOD) == {("pass", "reset", ())}
    assert said_of(results, BAD) == {("inconclusive", "reset", BOTH)}


def test_a_router_redirects_a_protocol_and_nothing_else_comes_back(chain: Chain) -> None:
    """Something answers for the host on a port, so protocol-unreachable may be its word too."""
    chain.accept(chain.router_1, 80)
    chain.router_1.nft(
        table(DNAT, "nat", "meta l4proto tcp redirect to :80", "meta l4proto 4 redirect")
    )
    back = [f"ip saddr {THERE[4]} drop", f"ip6 saddr {THERE[6]} drop"]
    chain.router_2.nft(table(FORWARD, "wall", *back))

    results = chain.run({"tcp": [80], "ipproto": [4]}, agent=False)

    found = {(one["protocol"], one["verdict"], tuple(one["where"])) for one in results.values()}
    assert found == {("tcp", "inconclusive", ("path",)), ("ipproto/4", "inconclusive", BOTH)}
