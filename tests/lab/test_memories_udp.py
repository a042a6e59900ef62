"""Firewalls that forget silent UDP flows, and what ``measure idle`` says of them.

What the router's own connection tracking lists and drops says whether it is true. Flows to the open
zone cross the same router, which does not track them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.memories import ADDRESSES, PORT, RememberedLab, read_pairs
from tests.lab.netlab import wait_for

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.needs("conntrack")]

FAMILIES = (4, 6)
MASQUERADE = """
table inet translation {
  chain postrouting {
    type nat hook postrouting priority srcnat;
    ip daddr 10.79.2.1 masquerade
    ip6 daddr fd79:2::1 masquerade
  }
}
"""


@pytest.fixture
def lab() -> Iterator[RememberedLab]:
    with RememberedLab() as made:
        yield made


def sides(pair: dict[str, Any]) -> list[tuple[Any, Any, Any]]:
    """What one exchange and a conversation showed."""
    found = (pair["one_exchange"], pair["by_destination"])
    return [(one["alive_s"], one["forgotten_s"], one["ended"]) for one in found]


def test_a_firewall_that_forgets(lab: RememberedLab) -> None:
    """What the destination sends after the memory is over does not arrive; what nobody tracks
    arrives always, and nothing stays behind."""
    lab.start_firewall(600)
    lab.forget_datagrams(1, 1)
    done = lab.measure("2s", protocol="udp")
    pairs = read_pairs(done)
    assert set(pairs) == {(zone, family) for zone in ("cluster", "open") for family in FAMILIES}
    for family in FAMILIES:
        pair = pairs["cluster", family]
        assert pair["protocol"] == "udp"
        assert sides(pair) == [(0, 2, "dropped")] * 2
        assert (pair["alive_s"], pair["forgotten_s"], pair["reset"]) == (0, 2, False)
        assert pair["by_source"] is None
        assert sides(pairs["open", family]) == [(2, None, None)] * 2
    assert lab.count_dropped() > 0
    assert done.status == 0
    assert not [one for name in ADDRESSES for one in lab[name].listening()]


@pytest.mark.full
@pytest.mark.parametrize(
    ("exchange_s", "conversation_s", "expected", "vanished"),
    [
        (5, 20, [(0, 15, "dropped"), (15, 30, "dropped")], 6),
        (20, 60, [(15, 30, "dropped"), (30, None, None)], 4),
        (600, 600, [(30, None, None), (30, None, None)], 0),
    ],
)
def test_memories_of_usual_length(
    lab: RememberedLab,
    exchange_s: int,
    conversation_s: int,
    expected: list[tuple[int, Any, Any]],
    vanished: int,
) -> None:
    """Each memory is between the last silence that lived and the first that did not. The kernel
    loses just then what was asked once: of each family the first try, and flows that stay silent.
    """
    lab.start_firewall(600)
    lab.forget_datagrams(exchange_s, conversation_s)
    remembered: list[tuple[float, int]] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.25):
            remembered.append((time.monotonic(), len(lab.list_remembered("udp"))))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        done = lab.measure("30s", protocol="udp")
    finally:
        over.set()
        watching.join()
    pairs = read_pairs(done)
    for family in FAMILIES:
        assert sides(pairs["cluster", family]) == expected
        assert sides(pairs["open", family]) == [(30, None, None)] * 2
    most = max(count for _, count in remembered)
    began = next(at for at, count in remembered if count == most)
    over_s = min(exchange_s, 20) + 1
    after = [count for at, count in remembered if over_s < at - began < over_s + 3]
    assert {most - count for count in after} == {vanished}
    assert done.status == 0


@pytest.mark.full
@pytest.mark.parametrize("forget_s", [1, 600])
def test_sources_that_are_translated(lab: RememberedLab, forget_s: int) -> None:
    """The destination sends to the address that it sees. A router that has forgotten whose port
    that is takes the datagram for its own, and refuses it."""
    lab.start_firewall(600)
    lab["r"].nft(MASQUERADE)
    lab.forget_datagrams(forget_s, forget_s)
    pairs = read_pairs(lab.measure("3s", protocol="udp"))
    for family in FAMILIES:
        expected = (0, 3, "refused") if forget_s == 1 else (3, None, None)
        assert sides(pairs["cluster", family]) == [expected] * 2
        assert pairs["cluster", family]["reset"] is (True if forget_s == 1 else None)


@pytest.mark.full
def test_ports_in_use(lab: RememberedLab) -> None:
    """At the destination the row's port: nothing is measured, with the reason. At the source some
    of those that netprobe may take: it takes others."""
    lab.start_firewall(600)
    lab.forget_datagrams(600, 600)
    hold_ports(lab, "b", range(PORT, PORT + 1))
    hold_ports(lab, "a", range(20000, 29001, 2))
    pairs = read_pairs(lab.measure("2s", protocol="udp"))
    for family in FAMILIES:
        held = pairs["cluster", family]
        assert (held["reason"], held["alive_s"]) == ("port-held", None)
        assert f"b cannot listen at UDP port {PORT} (" in held["because"]
        assert sides(pairs["open", family]) == [(2, None, None)] * 2


def hold_ports(lab: RememberedLab, name: str, ports: range) -> None:
    """Let a program hold UDP ports of a host."""
    count = f"{len(ports)}\n".encode()
    program = (
        "import resource, socket, time\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (9000, 9000))\n"
        f"held = [socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) for _ in {ports!r}]\n"
        f"for one, port in zip(held, {ports!r}): one.bind(('::', port))\n"
        "print(len(held), flush=True)\n"
        "time.sleep(600)"
    )
    started = lab[name].spawn(sys.executable, "-c", program, stdout=subprocess.PIPE)
    assert started.stdout is not None
    assert started.stdout.readline() == count


@pytest.mark.full
def test_a_way_that_closes_is_no_memory(lab: RememberedLab) -> None:
    """Where a new question gets no answer either, nobody knows whether the old ones were
    forgotten."""
    lab.start_firewall(600)
    lab.forget_datagrams(600, 600)

    def block() -> None:
        wait_for(lambda: len(lab.list_remembered("udp")) >= 8, "all flows")
        lab["r"].nft("insert rule inet memory forward ip daddr 10.79.2.1 drop")

    blocking = threading.Thread(target=block)
    blocking.start()
    pairs = read_pairs(lab.measure("4s", protocol="udp"))
    blocking.join()
    closed = pairs["cluster", 4]
    assert (closed["alive_s"], closed["reason"]) == (None, "row-stopped")
    assert sides(pairs["cluster", 6]) == [(4, None, None)] * 2


@pytest.mark.full
@pytest.mark.parametrize(("protocol", "flows", "stopped_s"), [("udp", 8, 6.0), ("tcp", 6, 7.0)])
@pytest.mark.parametrize("name", ["a", "b"])
def test_an_end_that_stands_still_has_forgotten_nothing(
    lab: RememberedLab, protocol: str, flows: int, stopped_s: float, name: str
) -> None:
    """Its agent is stopped when the first silence ends, for longer than an answer is waited for."""
    lab.start_firewall(600)
    lab.forget_datagrams(600, 600)

    def stop() -> None:
        wait_for(lambda: len(lab.list_remembered(protocol)) >= flows, "all flows")
        time.sleep(6.0)
        for send in (signal.SIGSTOP, signal.SIGCONT):
            for pid in lab[name].pids():
                os.kill(pid, send)
            time.sleep(stopped_s)

    stopping = threading.Thread(target=stop)
    stopping.start()
    pairs = read_pairs(lab.measure("8s", protocol=protocol))
    stopping.join()
    for pair in pairs.values():
        assert (pair["alive_s"], pair["forgotten_s"], pair["reason"]) == (8, None, None)
