"""Ports that seem free or open, and at which the installation would fail.

source - router-1 - router-2 - destination, as in ``test_truth``; one port for each case.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.lab.netlab import Lab
from tests.lab.test_truth import DNAT, THERE, Chain, table

pytestmark = pytest.mark.lab

FREE, TRANSLATED, DEAF, MUTE, BOUND, HALF, LOW = 4222, 4223, 4224, 4225, 4226, 4227, 422
READY = 9998
INSIDE = "10.94.77.1"
# Binds a TCP and a UDP port and listens on neither; the UDP socket talks to somebody else.
BINDER = """
import socket, sys, time
port = int(sys.argv[1])
stream, datagrams = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
stream.bind(("0.0.0.0", port))
datagrams.bind(("0.0.0.0", port))
datagrams.connect(("10.94.3.1", 9))
ready = socket.create_server(("0.0.0.0", int(sys.argv[2])))
time.sleep(600)
"""
# A proxy that shakes hands for the destination, whose own SYN-ACKs get lost.
SYN_PROXY = f"""
table ip proxy {{
 chain before {{
  type filter hook prerouting priority -300
  ip saddr {THERE[4]} tcp sport {HALF} drop
  tcp dport {HALF} tcp flags syn notrack
 }}
 chain within {{
  type filter hook forward priority 0
  tcp dport {HALF} ct state invalid,untracked synproxy mss 1460 wscale 7 timestamp sack-perm
 }}
}}
"""


@pytest.fixture
def chain() -> Iterator[Chain]:
    """A translation and a binder on the destination; firewalls that know data on router-2."""
    with Lab() as lab:
        built = Chain(lab)
        there = built.destination
        there.ip(f"address add {INSIDE}/32 dev lo")
        built.accept(there, 9999)
        there.nft(
            table(DNAT, "nat", f"tcp dport {{ {LOW}, {TRANSLATED} }} dnat ip to {INSIDE}:9999")
        )
        there.spawn(sys.executable, "-c", BINDER, str(BOUND), str(READY))
        there.wait_until_listening(f"tcp 0.0.0.0:{READY}")
        built.router_2.nft(
            table(
                "filter hook forward priority 0", "wall",
                f"tcp dport {DEAF} tcp flags & psh == psh drop",
                f"tcp sport {MUTE} tcp flags & psh == psh drop",
            )
        )  # fmt: skip
        built.router_2.nft(SYN_PROXY)
        yield built


@pytest.mark.parametrize(
    "rights",
    [True, pytest.param(False, marks=pytest.mark.full)],
    ids=["capture", "no-capture"],
)
def test_what_opens_and_carries_nothing_never_passes(chain: Chain, rights: bool) -> None:
    """A handshake, also one that the destination saw, is no proof where nobody got the answer."""
    ports = [LOW, FREE, TRANSLATED, DEAF, MUTE, HALF]

    found = chain.run({"tcp": ports}, agent=True, there={4: THERE[4]}, rights=rights)

    said = {port: (one["verdict"], one["reason"]) for (_, port), one in found.items()}
    taken = ("blocked", "no-response") if rights else ("inconclusive", "false-open")
    lost = ("blocked" if rights else "inconclusive", "false-open")
    # Whether the half-open connection is still there when its listener is asked is chance.
    assert said.pop(HALF) in {lost, ("inconclusive", "no-answer"), ("inconclusive", "false-open")}
    assert said == {
        LOW: taken,
        FREE: ("pass", "nonce-answer"),
        TRANSLATED: taken,
        DEAF: lost,
        MUTE: ("blocked", "no-response"),
    }
    if rights:
        places = {port: one["where"] for (_, port), one in found.items()}
        assert places[TRANSLATED] == ["destination"]
        assert places[MUTE] == ["return-path"]
        assert "path" in places[DEAF]
        assert "path" in places[HALF]


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_a_port_that_is_bound_and_not_listened_on_is_not_free(chain: Chain, protocol: str) -> None:
    """Its refusal proves the way, but nobody else could bind the port."""
    found = chain.run({protocol: [BOUND, FREE]}, agent=True, there={4: THERE[4]})

    assert found[THERE[4], FREE]["verdict"] == "pass"
    said = found[THERE[4], BOUND]
    assert (said["verdict"], said["reason"], said["where"]) == (
        "inconclusive", "port-in-use", ["service"],
    )  # fmt: skip
