"""Where a flow ends whose source address a router translates: never a place that is not it.

source - router-1 - router-2, which translates - destination. One UDP flow gets through, and its
nonce tells what the source's packets look like at the destination.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.netlab import Lab
from tests.lab.test_truth import INPUT, SNAT, THERE, Chain, table

FORWARD = "filter hook forward priority 0"
STOPPED, OPEN = 7000, 7001
ECHO_4, ECHO_6 = "icmp type echo-request", "icmpv6 type echo-request"


@pytest.fixture
def chain() -> Iterator[Chain]:
    """A chain whose second router translates what the source sends."""
    with Lab() as lab:
        made = Chain(lab)
        made.router_2.nft(table(SNAT, "nat", "iifname l2 oifname r3 masquerade"))
        yield made


def places(chain: Chain, wanted: dict[str, Any], what: Any = STOPPED) -> set[tuple[str, ...]]:
    """The places of both families' results, and that they are blocked."""
    results = chain.run(wanted, agent=True)
    found = [results[address, what] for address in THERE.values()]
    assert {one["verdict"] for one in found} == {"blocked"}
    return {tuple(one["where"]) for one in found}


TCP = {"tcp": [STOPPED, OPEN]}


def test_the_destination_drops_it(chain: Chain) -> None:
    """Its capture sees the SYNs come from the router's address."""
    chain.destination.nft(table(INPUT, "wall", f"tcp dport {STOPPED} drop"))

    assert places(chain, TCP) == {("destination",)}


def test_the_destination_resets_it(chain: Chain) -> None:
    """A reset from its own distance, to a SYN that its capture saw."""
    rule = f"iifname l3 tcp dport {STOPPED} reject with tcp reset"
    chain.destination.nft(table(INPUT, "wall", rule))

    assert places(chain, TCP) == {("destination",)}


def test_the_answer_is_dropped_on_the_way_back(chain: Chain) -> None:
    """Connections in SYN_RECV of the translated address stay at the destination."""
    chain.router_2.nft(table(FORWARD, "wall", f"tcp sport {STOPPED} drop"))

    assert places(chain, TCP) == {("return-path",)}


def test_the_way_there_is_blocked(chain: Chain) -> None:
    """Nothing comes from any address."""
    chain.router_1.nft(table(FORWARD, "wall", f"tcp dport {STOPPED} drop"))

    assert places(chain, TCP) == {("path",)}


def test_a_single_flow_is_known_by_its_sequence_number(chain: Chain) -> None:
    """Nothing else tells what the source's packets look like at the destination."""
    chain.destination.nft(table(INPUT, "wall", f"tcp dport {STOPPED} drop"))
    # Translated sources hide from the destination that it has no way back to them.
    chain.destination.ip("route del default", "route del default via fd94:3::1")

    assert places(chain, {"tcp": [STOPPED]}) == {("destination",)}


def test_packets_without_ports_are_known_by_their_nonces(chain: Chain) -> None:
    """Their nonces name them behind the translation as well."""
    chain.destination.nft(table(INPUT, "wall", "meta l4proto 50 drop"))

    assert places(chain, {"ipproto": [50]}, None) == {("destination",)}
