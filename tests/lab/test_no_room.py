"""Packets that the source's kernel has no room for: no firewall, and nothing waits for ever.

A full neighbour table gives the same ENOBUFS as a queue without room; its limits are the machine's,
not a namespace's, so that a test would disturb everything else that runs here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.lab.netlab import Lab, run
from tests.lab.test_truth import Chain, table

pytestmark = pytest.mark.lab


@pytest.fixture
def chain() -> Iterator[Chain]:
    """A chain of its own for every test."""
    with Lab() as lab:
        yield Chain(lab)


def test_a_queue_without_room_is_no_firewall(chain: Chain) -> None:
    """Its neighbour is known, and the queue of the interface takes not one byte."""
    shown = run("ip", "-n", chain.router_1.netns, "-j", "link", "show", "l1").stdout
    mac = json.loads(shown)[0]["address"]
    for gateway in ("10.94.1.1", "fd94:1::1"):
        chain.source.ip(f"neighbour replace {gateway} lladdr {mac} dev r1 nud permanent")
    chain.source.run("tc", "qdisc", "replace", "dev", "r1", "root", "bfifo", "limit", "1")

    found = chain.run({"tcp": [6443, 10250], "udp": [8285]}, agent=True)

    assert len(found) == 6
    for one in found.values():
        assert (one["verdict"], one["reason"], one["where"]) == (
            "blocked", "no-buffers", ["source"]
        )  # fmt: skip
        assert "firewall" not in one["because"]
        assert "queue of its interface r1" in one["because"]


def test_the_own_firewall_is_still_one(chain: Chain) -> None:
    """What it drops has room, and is told by another errno."""
    kind = "filter hook output priority 0"
    chain.source.nft(table(kind, "wall", "meta l4proto tcp tcp dport 6443 drop"))

    found = chain.run({"tcp": [6443]}, agent=True)

    assert {(one["reason"], tuple(one["where"])) for one in found.values()} == {
        ("local-firewall", ("source",))
    }
