"""Whose a reset is where the destination answers nothing else: a full TTL is the first hop's.

source - router-1 - router-2 - destination, which has no agent and whose echo and UDP are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.netlab import Lab
from tests.lab.test_truth import DNAT, INPUT, THERE, Chain, table

FORWARD = "filter hook forward priority 0"
RESET, CLOSED = 7000, 7001
QUIET = ("meta l4proto udp drop", "icmp type echo-request drop", "icmpv6 type echo-request drop")


@pytest.fixture
def chain() -> Iterator[Chain]:
    """A chain whose destination resets closed TCP ports and says nothing else."""
    with Lab() as lab:
        made = Chain(lab)
        made.destination.nft(table(INPUT, "quiet", *QUIET))
        yield made


def verdicts(chain: Chain, port: int) -> set[tuple[str, str, tuple[str, ...]]]:
    """What both families say of a port."""
    results = chain.run({"tcp": [port]}, agent=False)
    return {
        (one["verdict"], one["reason"], tuple(one["where"]))
        for one in (results[address, port] for address in THERE.values())
    }


def test_the_first_hop_resets_what_it_would_forward(chain: Chain) -> None:
    """A SYN with TTL 1 dies there, so the gateway does not own the address."""
    chain.router_1.nft(table(FORWARD, "wall", f"tcp dport {RESET} reject with tcp reset"))

    assert verdicts(chain, RESET) == {("blocked", "reset", ("path",))}


def test_the_first_hop_takes_the_port_for_itself(chain: Chain) -> None:
    """Then it may be the destination's door: nobody can say."""
    chain.router_1.nft(table(DNAT, "nat", f"tcp dport {RESET} redirect to :9"))

    assert verdicts(chain, RESET) == {("inconclusive", "reset", ("destination", "path", "service"))}


def test_a_router_that_sets_every_ttl_forges_nothing(chain: Chain) -> None:
    """All that it forwards looks as if it were its own."""
    rules = (
        "oifname r2 accept",
        "meta nfproto ipv4 ip ttl set 64",
        "ip6 nexthdr tcp ip6 hoplimit set 64",
    )
    chain.router_1.nft(table("filter hook postrouting priority 0", "wall", *rules))

    assert {one[0] for one in verdicts(chain, CLOSED)} == {"inconclusive"}


def test_a_lower_ttl_is_not_the_first_hops(chain: Chain) -> None:
    """The destination refuses it itself."""
    assert verdicts(chain, CLOSED) == {("pass", "reset", ())}
