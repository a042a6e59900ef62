"""What an agent at the destination knows that the source cannot: two namespaces and nft."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

import pytest

from netprobe.agent.wire.answers import (
    Listening,
    Seen,
)
from netprobe.agent.wire.host_messages import (
    Routed,
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    ListenOrder,
    SeenOrder,
)
from netprobe.agent.wire.parts import HalfOpen, UnreachedPorts
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.link import AgentLink
from tests.vantage.support import KEY, TEMPLATES, block, command, outcomes, probe

# Of this process: two suites may run on one machine.
SOURCE, DESTINATION = f"ntv-src-{os.getpid()}", f"ntv-dst-{os.getpid()}"
ADDRESSES = {4: ("10.78.0.1", "10.78.0.2"), 6: ("fd78::1", "fd78::2")}
PORT = 4500
ONE_PORT = [(PORT, PORT)]

pytestmark = pytest.mark.lab


class Pair(NamedTuple):
    """Both agents."""

    source: AgentLink
    destination: AgentLink


def run(*words: str, stdin: str | None = None) -> None:
    """Run a command that must succeed."""
    done = subprocess.run(words, input=stdin, text=True, capture_output=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"


@pytest.fixture
def namespaces() -> Iterator[None]:
    """Two hosts on one wire."""
    for name in (SOURCE, DESTINATION):
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
    run(*f"ip -n {SOURCE} link add wire type veth peer wire netns {DESTINATION}".split())
    for number, name in enumerate((SOURCE, DESTINATION)):
        for family, size in ((4, "24"), (6, "64")):
            address = f"{ADDRESSES[family][number]}/{size}"
            nodad = ["nodad"] if family == 6 else []
            run("ip", "-n", name, "addr", "add", address, "dev", "wire", *nodad)
        run("ip", "-n", name, "link", "set", "wire", "up")
    yield
    for name in (SOURCE, DESTINATION):
        run("ip", "netns", "del", name)


@pytest.fixture
async def pair(namespaces: None) -> AsyncIterator[Pair]:
    """An agent on each host."""
    async with Launcher() as launcher:
        links = [
            await start_agent(
                command("ip", "netns", "exec", name), index, key=KEY, launcher=launcher
            )
            for index, name in enumerate((SOURCE, DESTINATION), 1)
        ]
        for link in links:
            link.send(TEMPLATES)
        yield Pair(*links)
        await asyncio.gather(*(link.close() for link in links))


def firewall(hook: str, rule: str) -> None:
    """One rule of the destination's own firewall."""
    rules = f"table inet t {{ chain c {{ type filter hook {hook} priority 0; {rule}; }}; }}"
    run("ip", "netns", "exec", DESTINATION, "nft", "-f", "-", stdin=rules)


async def listen(pair: Pair, proto: str, address: str) -> None:
    """A listener on the destination."""
    order = ListenOrder(500, [block(proto, address, ONE_PORT)])
    (item,) = (await pair.destination.request(order, Listening)).blocks
    assert item.up == ONE_PORT


async def ask(pair: Pair, proto: str, address: str) -> Any:
    """Probe the listener; the answer or failure of the one port."""
    (found,) = await outcomes(pair.source, probe(1, proto, address, ONE_PORT))
    return found[3] or found[2]


async def seen(pair: Pair) -> Seen:
    """What the destination's listeners saw."""
    return await pair.destination.request(SeenOrder(0, 500, [1], rest=True), Seen)


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("proto", ["tcp", "udp"])
async def test_an_open_way_is_proved(pair: Pair, family: int, proto: str) -> None:
    """Both ends agree: the nonce's answer here, the order and its source there."""
    source, destination = ADDRESSES[family]
    await listen(pair, proto, destination)
    assert await ask(pair, proto, destination) == "nonce"
    (order,) = (await seen(pair)).orders
    assert (order.senders, order.reply) == ([source], None)


@pytest.mark.parametrize("family", [4, 6])
async def test_a_lost_syn_ack_is_half_open(pair: Pair, family: int) -> None:
    """The SYN arrived and the answer did not get back: SYN_RECV names port and peer."""
    source, destination = ADDRESSES[family]
    await listen(pair, "tcp", destination)
    firewall("output", f"oifname wire tcp sport {PORT} drop")
    probing = asyncio.create_task(ask(pair, "tcp", destination))
    half_open: list[HalfOpen] = []
    while not half_open and not probing.done():
        half_open = (await seen(pair)).half_open
    assert half_open
    assert (half_open[0].port, half_open[0].remote) == (PORT, source)
    assert await probing == "no-answer"


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("proto", ["tcp", "udp"])
async def test_what_nothing_reaches_is_unreached(pair: Pair, family: int, proto: str) -> None:
    """Not even the agent itself, whose own host drops it. What others reach needs no dial."""
    address = ADDRESSES[family][1]
    await listen(pair, proto, address)
    firewall("input", f"iif lo {proto} dport {PORT} drop")
    assert (await seen(pair)).unreached == [UnreachedPorts(proto, address, None, ONE_PORT)]

    assert await ask(pair, proto, address) == "nonce"
    assert (await seen(pair)).unreached == []


async def test_the_errno_of_the_answer_is_told(pair: Pair) -> None:
    """The datagram arrived, and the destination's own OUTPUT firewall dropped the answer."""
    destination = ADDRESSES[4][1]
    await listen(pair, "udp", destination)
    firewall("output", f"oifname wire udp sport {PORT} drop")
    assert await ask(pair, "udp", destination) == "no-answer"
    assert (await seen(pair)).orders[0].reply == "not-permitted"


async def test_the_kernels_own_sockets_have_an_owner(pair: Pair) -> None:
    """A VXLAN device holds its port without any process."""
    run(*f"ip -n {DESTINATION} link add vx0 type vxlan id 7 dstport 8472 dev wire".split())
    run("ip", "-n", DESTINATION, "link", "set", "vx0", "up")
    order = ListenOrder(500, [block("udp", ADDRESSES[4][1], [(8472, 8472)])])
    (item,) = (await pair.destination.request(order, Listening)).blocks
    (held,) = item.held
    # Where some process may not be looked into, even by root, it could be that one's.
    assert held.process in ("kernel", None)
    assert (held.pid, held.bind) == (None, "0.0.0.0")


async def test_routes_are_told_as_connect_would(pair: Pair) -> None:
    """Source, device, MTU and gateway; and the failure names of routes that lead nowhere."""
    for words in (
        f"route add 10.79.0.0/24 via {ADDRESSES[4][1]} mtu 1300",
        "route add unreachable 10.80.1.0/24",
        "route add prohibit 10.80.2.0/24",
        "route add blackhole 10.80.3.0/24",
    ):
        run("ip", "-n", SOURCE, *words.split())
    expected = {
        ADDRESSES[4][1]: (ADDRESSES[4][0], "wire", 1500, None, None),
        ADDRESSES[6][1]: (ADDRESSES[6][0], "wire", 1500, None, None),
        "10.79.0.5": (ADDRESSES[4][0], "wire", 1300, ADDRESSES[4][1], None),
        "10.80.1.1": (None, None, None, None, "host-unreachable"),
        "10.80.2.1": (None, None, None, None, "access-denied"),
        "10.80.3.1": (None, None, None, None, "invalid-route"),
        "192.0.2.1": (None, None, None, None, "network-unreachable"),
        "2001:db8::1": (None, None, None, None, "network-unreachable"),
    }
    for destination, values in expected.items():
        route = await pair.source.request(RouteOrder(0, destination, None), Routed)
        told = (route.source, route.dev, route.mtu, route.gateway, route.failure)
        assert told == values, destination
