"""Services that end while they are probed: their own kernel refuses, and no firewall does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.netlab import Lab
from tests.lab.test_truth import INPUT, THERE, Chain, table

pytestmark = pytest.mark.lab

TCP, UDP = 6443, 6444
# Holds a port of each; with ``ends`` it lets go of both upon the first datagram, and only then is
# the firewall opened that kept TCP waiting.
HOLDER = """
import socket, subprocess, sys, time
address, tcp, udp, ends = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "ends"
family = socket.AF_INET6 if ":" in address else socket.AF_INET
server = socket.create_server((address, tcp), family=family)
datagrams = socket.socket(family, socket.SOCK_DGRAM)
datagrams.bind((address, udp))
datagrams.recv(1)
if not ends:
    time.sleep(1000)
datagrams.close()
server.close()
subprocess.run(["nft", "delete", "table", "inet", "wait"], check=False)
time.sleep(1000)
"""


@pytest.fixture
def chain() -> Iterator[Chain]:
    """A chain of its own for every test."""
    with Lab() as lab:
        yield Chain(lab)


def _hold(chain: Chain, address: str, how: str) -> None:
    chain.destination.spawn(sys.executable, "-c", HOLDER, address, str(TCP), str(UDP), how)
    shown = f"[{address}]" if ":" in address else address
    chain.destination.wait_until_listening(f"tcp {shown}:{TCP}", f"udp {shown}:{UDP}")


def _ask(chain: Chain, family: int) -> list[dict[str, Any]]:
    address = THERE[family]
    found = chain.run({"tcp": [TCP], "udp": [UDP]}, agent=True, there={family: address})
    return [found[address, port] for port in (TCP, UDP)]


@pytest.mark.parametrize("family", THERE, ids=["v4", "v6"])
def test_a_service_that_ends_is_no_firewall(chain: Chain, family: int) -> None:
    """The port is free then: a listener of ours proves the way."""
    chain.destination.nft(table(INPUT, "wait", f"tcp dport {TCP} drop"))
    _hold(chain, THERE[family], "ends")

    found = _ask(chain, family)

    assert [(one["verdict"], one["proof"]) for one in found] == [("pass", "nonce")] * 2, found


@pytest.mark.parametrize("family", THERE, ids=["v4", "v6"])
def test_a_firewall_that_refuses_a_held_port_is_one(chain: Chain, family: int) -> None:
    """Its holder is the same before and after."""
    rules = (f"tcp dport {TCP} reject with tcp reset", f"udp dport {UDP} reject")
    chain.destination.nft(table(INPUT, "refuse", *rules))
    _hold(chain, THERE[family], "stays")

    found = _ask(chain, family)

    expected = [("blocked", ["destination"])] * 2
    assert [(one["verdict"], one["where"]) for one in found] == expected, found
