"""Sockets that keep their source port and address go out as the kernel would have sent them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from netprobe.agent.net.sockets import target_of
from netprobe.agent.probers.tcp.bound_sockets import FROM_PORTS, MOST_PORTS, BoundSockets
from netprobe.agent.probers.tcp.engine import TcpEngine
from tests.agent import netlab
from tests.agent.netlab import ADDRESS, DESTINATION, R2, SOURCE, inside
from tests.agent.rig import Agent, order

pytestmark = pytest.mark.lab

DESTINATION_4 = ADDRESS[4]["destination"]
SECOND = "10.66.1.77"
NEXT_DOOR = "10.66.3.77"
PORTS = range(1001, 3001)
TO_ONE_PORT = f"""
table ip one {{
chain prerouting {{
type nat hook prerouting priority dstnat
ip daddr {DESTINATION_4} tcp dport 1001-3000 dnat to {DESTINATION_4}:9999
}}
}}
"""
Sent = set[tuple[str, int, int]]


@pytest.fixture
def lab() -> Iterator[None]:
    """The chain of namespaces, new for each test."""
    netlab.build()
    yield
    netlab.remove()


class Sniffer:
    """Every SYN that arrives at the destination: its kernel notes them and forgets none."""

    def __init__(self, family: int) -> None:
        version = "ip" if family == 4 else "ip6"
        rules = f"""
            table inet sniffer {{
                set syns {{
                    typeof {version} saddr . tcp sport . tcp dport
                    size 65535
                    flags dynamic
                }}
                chain arriving {{
                    type filter hook input priority 0
                    tcp flags & (syn | ack) == syn \\
                        add @syns {{ {version} saddr . tcp sport . tcp dport }}
                }}
            }}
        """
        self._nft("-f", "-", rules=rules)

    def syns(self) -> Sent:
        """Source address, source port and destination port of every SYN so far."""
        words = self._nft("-j", "list", "set", "inet", "sniffer", "syns")
        _, listed = json.loads(words)["nftables"]
        return {tuple(one["concat"]) for one in listed["set"].get("elem", ())}

    def _nft(self, *words: str, rules: str = "") -> str:
        command = ["ip", "netns", "exec", DESTINATION, "nft", *words]
        done = subprocess.run(command, input=rules, capture_output=True, text=True, check=True)
        return done.stdout


def scan(family: int = 4, ports: range = PORTS, **more: Any) -> Sent:
    """Probe closed ports, which all refuse; what was sent for it."""
    sniffer = Sniffer(family)
    agent = Agent()
    with inside(SOURCE):
        engine = TcpEngine(agent)
        destination = ADDRESS[family]["destination"]
        engine.submit(order(1, "tcp", destination, [(ports[0], ports[-1])], **more))
        agent.wait(1)
        engine.close()
    found = agent.outcomes(1)
    assert set(found) == set(ports)
    assert {each.kind.failure for each in found.values()} == {"refused"}
    assert {each.looks for each in found.values()} == {1}
    return sniffer.syns()


def source_ports(sent: Sent) -> set[int]:
    """The source ports of what was sent."""
    return {port for _, port, _ in sent}


def command(*words: str, namespace: str = SOURCE) -> None:
    """Change a host's network settings."""
    subprocess.run(["ip", "-n", namespace, *words], check=True)


def second_address(*selector: str) -> None:
    """What the selector matches leaves from the source's second address."""
    command("address", "add", f"{SECOND}/24", "dev", "n1a")
    command("route", "add", "default", "via", ADDRESS[4]["r1"], "src", SECOND, "table", "100")
    command("rule", "add", *selector, "lookup", "100")


def test_a_large_order_uses_few_source_ports(lab: None) -> None:
    """From the address that the kernel prefers, and from ports that it lends."""
    netlab.sysctl(SOURCE, "net/ipv4/ip_local_port_range", "40000 60000")
    sent = scan()

    assert {address for address, _, _ in sent} == {ADDRESS[4]["source"]}
    assert len(source_ports(sent)) <= MOST_PORTS
    assert all(40000 <= port <= 60000 for port in source_ports(sent))


def test_a_small_order_leaves_ports_to_the_kernel(lab: None) -> None:
    """Every connect has its own, as those of any program."""
    sent = scan(ports=range(1001, 1000 + FROM_PORTS))

    assert len(source_ports(sent)) > FROM_PORTS / 2


def test_ipv6_is_left_to_the_kernel(lab: None) -> None:
    """A rule for an address that the kernel has chosen itself counts for bound sockets only."""
    command("-6", "rule", "add", "from", ADDRESS[6]["source"], "lookup", "100")
    command("-6", "route", "add", "prohibit", "default", "table", "100")

    assert len(source_ports(scan(6))) > MOST_PORTS


@pytest.mark.parametrize(("family", "address"), [(4, SECOND), (6, "fd66:1::77")])
def test_a_chosen_source_address_is_kept(lab: None, family: int, address: str) -> None:
    """What the inventory wants as source address is what is bound."""
    plain = ("address", "add", f"{address}/{'24' if family == 4 else '64'}", "dev", "n1a")
    command(*plain, *(("nodad",) if family == 6 else ()))
    sent = scan(family, src=address)

    assert {source for source, _, _ in sent} == {address}
    assert len(source_ports(sent)) <= MOST_PORTS


def test_a_chosen_source_address_is_kept_beside_the_kernels_choice(lab: None) -> None:
    """What leaves from the same address by the kernel's choice has unbound sockets, too."""
    command("address", "add", f"{SECOND}/24", "dev", "n1a")
    command("route", "add", DESTINATION_4, "via", ADDRESS[4]["r1"], "src", SECOND)
    # The other one would leave from the first address. This order has more connects out than it
    # has sockets with a port.
    command("address", "add", f"{NEXT_DOOR}/24", "dev", "n3b", namespace=DESTINATION)
    netlab.rule(DESTINATION, "input", "tcp dport 1001-2000 drop")
    sniffer, agent = Sniffer(4), Agent()
    with inside(SOURCE):
        engine = TcpEngine(agent)
        engine.submit(order(1, "tcp", DESTINATION_4, [(1001, 4000)], look_ms=2000))
        other = order(2, "tcp", NEXT_DOOR, [(5001, 5300)], src=SECOND)
        agent.loop.call_later(1.0, lambda: engine.submit(other))
        agent.wait(1, 2)
        engine.close()
    sent = sniffer.syns()
    assert {address for address, _, port in sent if port > 5000} == {SECOND}


def test_an_address_that_the_host_loses_is_not_kept(lab: None) -> None:
    """Connects go on from the next one that the kernel chooses, as those of any program."""
    gateway = ("default", "via", ADDRESS[4]["r1"])
    command("address", "add", f"{SECOND}/32", "dev", "n1a")
    command("route", "replace", *gateway, "src", SECOND)
    agent = Agent()
    agent.rate.limit(2000)

    def lose() -> None:
        command("route", "replace", *gateway)
        command("address", "del", f"{SECOND}/32", "dev", "n1a")

    with inside(SOURCE):
        engine = TcpEngine(agent)
        engine.submit(order(1, "tcp", DESTINATION_4, [(PORTS[0], PORTS[-1])], looks=2))
        agent.loop.call_later(0.5, lose)
        agent.wait(1)
        engine.close()

    assert {each.kind.failure for each in agent.outcomes(1).values()} == {"refused"}


def test_a_routing_rule_for_ports_still_chooses_the_source(lab: None) -> None:
    """Where the source address depends on the port, the kernel chooses it connect by connect."""
    second_address("ipproto", "tcp", "dport", "2000-2999")
    sent = scan()

    expected = {port: SECOND if 2000 <= port <= 2999 else ADDRESS[4]["source"] for port in PORTS}
    assert {port: address for address, _, port in sent} == expected


def test_a_routing_rule_for_the_destination_chooses_the_source(lab: None) -> None:
    """Other rules choose the same address for every port: sockets are bound to that one."""
    second_address("to", DESTINATION_4)
    sent = scan()

    assert {address for address, _, _ in sent} == {SECOND}
    assert len(source_ports(sent)) <= MOST_PORTS


def test_several_paths_by_port_are_left_to_the_kernel(lab: None) -> None:
    """Where the path is chosen by ports, the source address may be, too."""
    netlab.sysctl(SOURCE, "net/ipv4/fib_multipath_hash_policy", "1")

    assert len(source_ports(scan())) > MOST_PORTS


def test_few_ports_of_the_host_stay_free_for_others(lab: None) -> None:
    """Only a share of what the host may lend is kept; connects that need more share ports."""
    netlab.sysctl(SOURCE, "net/ipv4/ip_local_port_range", "50000 50199")
    sent = scan()

    assert all(50000 <= port <= 50199 for port in source_ports(sent))


def test_an_agent_keeps_a_share_of_the_ports(lab: None) -> None:
    """A twentieth of the host's local ports, and never the rest."""
    netlab.sysctl(SOURCE, "net/ipv4/ip_local_port_range", "40000 43999")
    with inside(SOURCE):
        kept = bound_by(BoundSockets())
    assert kept == 200


def bound_by(sockets: BoundSockets) -> int:
    """How many sockets get a port of their own."""
    sockets.measure()
    target = target_of(DESTINATION_4, ADDRESS[4]["source"])
    bound = list(iter(lambda: sockets.open(target, None), None))
    for sock in bound:
        sock.close()
    return len(bound)


@pytest.mark.parametrize("place", [R2, DESTINATION])
def test_a_range_that_is_translated_to_one_port_answers_on_each(lab: None, place: str) -> None:
    """Connection tracking then knows our few source ports already, and must not drop the rest."""
    command = ["ip", "netns", "exec", place, "nft", "-f", "-"]
    subprocess.run(command, input=TO_ONE_PORT.encode(), check=True)
    scan()


# Accepts on many ports, and closes as soon as the peer has: then the prober is in TIME_WAIT.
DOORS = """
import select, socket, sys
address, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
epoll, doors, guests = select.epoll(), {}, {}
for port in range(first, first + count):
    door = socket.create_server((address, port))
    doors[door.fileno()] = door
    epoll.register(door.fileno(), select.EPOLLIN)
print("ready", flush=True)
while True:
    for fd, _ in epoll.poll():
        if fd in doors:
            guest = doors[fd].accept()[0]
            guests[guest.fileno()] = guest
            epoll.register(guest.fileno(), select.EPOLLIN | select.EPOLLRDHUP)
        else:
            guests.pop(fd).close()
"""


def test_orders_for_the_same_open_ports_do_not_meet(lab: None) -> None:
    """A source port that lately was connected to the very port is not used for it again."""
    # With timestamps a bound port may leave TIME_WAIT at once (tcp_twsk_unique).
    netlab.sysctl(SOURCE, "net/ipv4/tcp_timestamps", "0")
    argv = ["ip", "netns", "exec", DESTINATION, sys.executable, "-c", DOORS]
    doors = subprocess.Popen([*argv, DESTINATION_4, "20001", "600"], stdout=subprocess.PIPE)
    assert doors.stdout is not None
    assert doors.stdout.readline() == b"ready\n"
    sniffer, agent = Sniffer(4), Agent()
    with inside(SOURCE):
        engine = TcpEngine(agent)
        for number in range(1, 9):
            engine.submit(order(number, "tcp", DESTINATION_4, [(20001, 20600)]))
        agent.wait(*range(1, 9))
        engine.close()
    doors.kill()
    doors.communicate()
    sent = sniffer.syns()

    assert len(source_ports(sent)) < len(sent) * 0.9, "sockets are used again"
    for number in range(1, 9):
        found = agent.outcomes(number)
        assert {each.kind.answer for each in found.values()} == {"unasked"}
        assert len(found) == 600
