"""Ports that a service holds, but not on the address that is probed.

source - router-1 - router-2 - destination, as in ``test_truth``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.netlab import Lab, LabError
from tests.lab.test_explain import forward
from tests.lab.test_truth import THERE, Chain

pytestmark = pytest.mark.lab

PORT = 6443
OTHER = {4: "10.94.9.9", 6: "fd94:9::9"}
# Holds a port of one address, over TCP and UDP, until it is ended.
HOLDER = """
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
server = socket.create_server((address, port), family=family)
datagrams = socket.socket(family, socket.SOCK_DGRAM)
if family == socket.AF_INET6:
    datagrams.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
datagrams.bind((address, port))
while True:
    server.accept()
"""


@pytest.fixture
def chain() -> Iterator[Chain]:
    """A chain of its own for every test; the destination has a second address of each family."""
    with Lab() as lab:
        built = Chain(lab)
        built.destination.ip(
            f"address add {OTHER[4]}/32 dev lo", f"address add {OTHER[6]}/128 dev lo nodad"
        )
        yield built


def _hold(chain: Chain, address: str) -> None:
    chain.destination.spawn(sys.executable, "-c", HOLDER, address, str(PORT))
    shown = f"[{address}]" if ":" in address else address
    chain.destination.wait_until_listening(f"tcp {shown}:{PORT}", f"udp {shown}:{PORT}")


def _ask(chain: Chain, protocol: str, *words: str) -> dict[int, Any]:
    found = chain.run({protocol: [PORT]}, agent=True, words=words)
    return {family: found[address, PORT] for family, address in THERE.items()}


@pytest.mark.parametrize(
    ("protocol", "address"),
    [
        pytest.param("tcp", OTHER[4], id="tcp-v4"),
        pytest.param("udp", OTHER[6], id="udp-v6"),
        pytest.param("tcp", OTHER[6], id="tcp-v6", marks=pytest.mark.full),
        pytest.param("udp", OTHER[4], id="udp-v4", marks=pytest.mark.full),
    ],
)
def test_what_is_held_elsewhere_is_free_here(chain: Chain, protocol: str, address: str) -> None:
    """Our listener proves the way; a holder of the same family is a warning."""
    _hold(chain, address)

    for family, one in _ask(chain, protocol).items():
        same = (family == 6) == (":" in address)
        assert (one["verdict"], one["proof"]) == ("pass", "nonce")
        assert bool(one["warnings"]) == same
        assert not same or address in one["warnings"][0]


@pytest.mark.parametrize(
    "address", ["0.0.0.0", pytest.param("::", marks=pytest.mark.full)], ids=["v4", "v6"]
)
def test_a_holder_of_all_addresses_of_the_other_family_is_a_warning(
    chain: Chain, address: str
) -> None:
    """A server that takes both families at one socket, as most do, could not bind the port."""
    _hold(chain, address)
    mine = 4 if ":" in address else 6

    found = {protocol: _ask(chain, protocol)[mine] for protocol in ("tcp", "udp")}

    for one in found.values():
        assert (one["verdict"], one["proof"]) == ("pass", "nonce")
        assert f"on {address}" in one["warnings"][0]


@pytest.mark.parametrize(
    ("protocol", "reason", "address"),
    [
        pytest.param("tcp", "reset", "127.0.0.1", id="tcp-v4"),
        pytest.param("udp", "port-unreach", "::1", id="udp-v6"),
        pytest.param("tcp", "reset", "::1", id="tcp-v6", marks=pytest.mark.full),
        pytest.param("udp", "port-unreach", "127.0.0.1", id="udp-v4", marks=pytest.mark.full),
    ],
)
def test_what_is_held_on_loopback_only_is_in_doubt(
    chain: Chain, protocol: str, reason: str, address: str
) -> None:
    """The way is open, and who may bind the port is not known. The other family is free."""
    _hold(chain, address)
    mine, other = (6, 4) if ":" in address else (4, 6)

    doubt, live = _ask(chain, protocol), _ask(chain, protocol, "--live")

    keys = ("verdict", "state", "reason", "where", "rejected_by")
    assert [doubt[mine][key] for key in keys] == [
        "inconclusive", "open", "loopback-holder", ["service"], None
    ]  # fmt: skip
    assert f"on {address} holds the port on loopback" in doubt[mine]["because"]
    assert "the way is open (our listener on destination answered" in doubt[mine]["because"]
    assert [live[mine][key] for key in keys] == ["blocked", "closed", reason, ["service"], None]
    assert address in live[mine]["warnings"][0]
    assert (doubt[other]["verdict"], doubt[other]["proof"]) == ("pass", "nonce")
    assert not doubt[other]["warnings"]


def test_the_way_to_a_port_that_is_held_on_loopback_is_asked(chain: Chain) -> None:
    """A rule on the way is found, with its place; the other protocol of the port gets through."""
    _hold(chain, "127.0.0.1")
    forward(chain.router_2, f"tcp dport {PORT} drop")

    stopped, through = (_ask(chain, protocol)[4] for protocol in ("tcp", "udp"))

    assert (stopped["verdict"], stopped["reason"]) == ("blocked", "no-response")
    assert stopped["where"] == ["path"]
    assert stopped["last_hop"] == "10.94.2.2", stopped
    assert (through["verdict"], through["reason"]) == ("inconclusive", "loopback-holder")


def test_the_matrix_says_who_needs_all_addresses(chain: Chain) -> None:
    """``binds: all`` cannot start beside the holder, as the kernel's own VXLAN device shows."""
    _hold(chain, "127.0.0.1")
    chain.destination.ip(f"link add vx0 type vxlan id 7 local 10.94.3.2 dstport {PORT}")
    with pytest.raises(LabError, match="Address already in use"):
        chain.destination.ip("link set vx0 up")

    all_, one = (
        chain.run({"udp": [PORT], "binds": binds}, agent=True)[THERE[4], PORT]
        for binds in ("all", "address")
    )

    assert (all_["verdict"], all_["reason"], all_["where"]) == (
        "blocked", "port-taken", ["service"]
    )  # fmt: skip
    assert "on 127.0.0.1 holds the port before the installation" in all_["because"]
    assert "python" in all_["holder"]
    assert (one["verdict"], one["proof"]) == ("pass", "nonce")
    assert "on 127.0.0.1; the row's program listens on one address alone" in one["warnings"][0]
