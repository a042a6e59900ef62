"""ICMP echo: replies, errors, and never a wrong word for a lack of permission."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import re
import socket
import struct
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from netprobe.agent.core import pump
from netprobe.agent.core.loop import READ
from netprobe.agent.host import hello
from netprobe.agent.host.hello import find_program
from netprobe.agent.net.icmp import (
    EchoSocket,
    checksum,
    echo_request,
    quoted_sequence,
    read_echo_reply,
)
from netprobe.agent.net.sockets import ProbeTarget, widen
from netprobe.agent.probers.datagram.orders import PendingFlow
from netprobe.agent.probers.echo import sockets
from netprobe.agent.probers.echo.engine import EchoEngine
from netprobe.agent.probers.echo.orders import RunningEchoOrder
from netprobe.agent.wire.answers import Done, EchoOutcomes
from netprobe.agent.wire.parts import IcmpFact
from netprobe.agent.wire.templates import pack_nonce, read_nonce
from tests.agent import firewalls, netlab
from tests.agent.netlab import ADDRESS, DESTINATION, R1, R2, SOURCE, inside
from tests.agent.rig import KEY, Agent, Found, echo_order
from tests.rights import without_rights


@pytest.fixture
def way(request: pytest.FixtureRequest) -> str:
    """How echoes go: over a ``datagram`` socket or a ``raw`` one."""
    return str(request.param)


def ways(*named: str) -> pytest.MarkDecorator:
    """Run a test each of these ways."""
    return pytest.mark.parametrize("way", named, indirect=True)


def choose_sockets(way: str) -> None:
    """Nobody in a fresh namespace may open datagram sockets for echoes; root may open raw ones."""
    if way == "datagram":
        netlab.sysctl(SOURCE, "net/ipv4/ping_group_range", "0 0")


def families_and_ways(*named: tuple[int, str]) -> pytest.MarkDecorator:
    """Run a test for these families, each of these ways."""
    return pytest.mark.parametrize(("family", "way"), named, indirect=["way"])


def ask(agent: Agent, engine: EchoEngine, number: int, address: str, **more: Any) -> Found:
    """One echo order and its only outcome."""
    engine.submit(echo_order(number, address, **more))
    agent.wait(number)
    (found,) = agent.outcomes(number).values()
    return found


def test_checksum_is_that_of_rfc_1071() -> None:
    """The RFC's own example."""
    assert checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0x220D


def test_only_replies_have_a_payload() -> None:
    """Our own request, heard by a raw socket on loopback, is no reply."""
    request = echo_request(socket.AF_INET, 7, 300, b"nonce")

    assert read_echo_reply(socket.AF_INET, "datagram", request) is None
    assert read_echo_reply(socket.AF_INET, "datagram", b"\0" + request[1:]) == (300, b"nonce")
    assert quoted_sequence(request) == 300
    assert checksum(request) == 0


def test_a_payload_is_a_nonce_and_a_token_of_its_own() -> None:
    """16 bytes (docs/wire.md) of one hash an attempt, at the destination's place."""
    names = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    many = RunningEchoOrder(Agent(), echo_order(7, *names))
    (flow,) = many.take(3)[1:2]
    payload = many.payload_of(PendingFlow(flow, 2, pump.YoungBatch(1), 0.0))

    tokens = hashlib.shake_128(KEY + b"e" + bytes.fromhex("00000007 0002")).digest(48)
    assert payload == pack_nonce(7, 2, 2) + tokens[16:32]
    assert many.address_of(2) == "192.0.2.2"


@pytest.mark.lab
@pytest.mark.parametrize("family", [4, 6])
@ways("datagram", "raw")
def test_a_host_that_answers_echoes(lab: None, family: int, way: str) -> None:
    """Both kinds of sockets give the reply with its TTL."""
    agent = Agent()
    with inside(SOURCE):
        choose_sockets(way)
        engine = EchoEngine(agent)
        found = ask(agent, engine, 1, ADDRESS[family]["destination"])
    engine.close()

    assert (found.kind.op, found.kind.failure, found.kind.answer) == ("answer", None, "echo")
    assert found.kind.ttl == 62
    assert (found.rtt_us or 0) > 0


@pytest.mark.lab
@ways("datagram", "raw")
@pytest.mark.parametrize("family", [4, 6])
def test_an_answer_tells_what_was_lost_before_it(lab: None, family: int, way: str) -> None:
    """The reply carries the number of its request: one that is only late is no loss."""
    choose_sockets(way)
    match = "icmp type echo-request" if family == 4 else "icmpv6 type echo-request"
    agent = Agent()
    with inside(SOURCE):
        engine = EchoEngine(agent)
        first = ask(agent, engine, 1, ADDRESS[family]["destination"])
        netlab.rule(R1, "forward", f"{match} numgen inc mod 9 < 2 drop")
        third = ask(agent, engine, 2, ADDRESS[family]["destination"], look_ms=1000)
    engine.close()

    assert (first.kind.answer, first.kind.packets) == ("echo", None)
    assert (third.kind.answer, third.kind.packets) == ("echo", 3)


@pytest.mark.lab
def test_many_hosts_share_a_socket(lab: None) -> None:
    """Answers of many destinations come to the right orders."""
    agent = Agent()
    netlab.route(DESTINATION, "add", "local", "10.66.4.0/24", "dev", "lo")
    netlab.route(R1, "add", "10.66.4.0/24", "via", "10.66.2.2")
    netlab.route(R2, "add", "10.66.4.0/24", "via", "10.66.3.2")
    netlab.rule(R1, "forward", "ip daddr 10.66.4.50 drop")
    with inside(SOURCE):
        engine = EchoEngine(agent)
        for number in range(1, 201):
            engine.submit(echo_order(number, f"10.66.4.{number}", look_ms=800, looks=2))
        agent.wait(*range(1, 201))
    engine.close()

    failures = {number: agent.outcomes(number)[1].kind.failure for number in range(1, 201)}
    assert [number for number, failure in failures.items() if failure] == [50]
    assert failures[50] == "no-answer"


# What the addresses of a destination are, and where packets to one of them are dropped or refused.
MANY = {
    4: ("10.66.4.{}", "10.66.4.0/24", ("10.66.2.2", "10.66.3.2"), "ip"),
    6: ("fd66:4::{}", "fd66:4::/64", ("fd66:2::2", "fd66:3::2"), "ip6"),
}


def many(family: int, way: str, hosts: int) -> list[str]:
    """So many addresses of the destination, which sockets of this kind will ask."""
    pattern, network, (first_hop, second_hop), _ = MANY[family]
    choose_sockets(way)
    netlab.route(DESTINATION, "add", "local", network, "dev", "lo")
    netlab.route(R1, "add", network, "via", first_hop)
    netlab.route(R2, "add", network, "via", second_hop)
    return [pattern.format(number) for number in range(1, hosts + 1)]


@pytest.mark.lab
@families_and_ways((4, "datagram"), (4, "raw"), (6, "datagram"), (6, "raw"))
def test_one_order_of_many_destinations(lab: None, family: int, way: str) -> None:
    """Every destination has its own evidence, in few frames; equal neighbours are one run."""
    firewalls.unlimited_icmp()
    pattern, words = MANY[family][0], MANY[family][3]
    names = many(family, way, 200)
    netlab.rule(R1, "forward", f"{words} daddr {pattern.format(50)} drop")
    netlab.rule(R2, "forward", f"{words} daddr {pattern.format(60)} reject")
    netlab.rule(R1, "forward", f"{words} daddr {pattern.format(70)} reject")
    netlab.rule(SOURCE, "output", f"{words} daddr {pattern.format(80)} drop")
    netlab.rule(SOURCE, "output", f"{words} daddr {pattern.format(90)} reject")
    agent = Agent()
    with inside(SOURCE):
        engine = EchoEngine(agent)
        engine.submit(echo_order(1, *names, look_ms=800, looks=2))
        agent.wait(1)
    engine.close()

    found = agent.outcomes(1)
    assert sorted(found) == list(range(1, 201))
    silent, far, near = found.pop(50), found.pop(60), found.pop(70)
    assert (silent.kind.failure, silent.kind.packets, silent.looks) == ("no-answer", 6, 2)
    assert (far.kind.icmp or ())[2:] == (ADDRESS[family]["r2"], 63)
    assert (near.kind.icmp or ())[2:] == (ADDRESS[family]["r1"], 64)
    dropped, own = found.pop(80), found.pop(90)
    assert (dropped.kind.op, dropped.kind.failure) == ("send", "not-permitted")
    assert (own.kind.icmp or ())[2:3] == (ADDRESS[family]["source"],)
    assert {(one.kind.answer, one.kind.ttl) for one in found.values()} == {("echo", 62)}
    assert len({one.rtt_us for one in found.values()}) > 20
    reports = agent.sent(EchoOutcomes)
    # What is gathered is sent every 20 ms: of a busy agent it is more frames.
    assert len(reports) < 100
    assert sum(len(report.runs) for report in reports) < 100


@pytest.mark.lab
@families_and_ways((4, "datagram"), (4, "raw"), (6, "raw"))
def test_what_there_was_no_room_for_is_sent_later(lab: None, family: int, way: str) -> None:
    """A queue of the source that overflows in the middle of a chunk is no silence."""
    names = many(family, way, 200)
    slow = "qdisc add dev n1a root tbf rate 256kbit burst 1600 limit 3000"
    tc = ("ip", "netns", "exec", SOURCE, "tc")
    subprocess.run([*tc, *slow.split()], check=True)
    agent = Agent()
    with inside(SOURCE):
        engine = EchoEngine(agent)
        engine.submit(echo_order(1, *names))
        agent.wait(1)
    engine.close()
    shown = subprocess.run([*tc, "-s", "qdisc"], capture_output=True, text=True, check=True).stdout

    dropped = re.search(r"dropped (\d+)", shown[shown.index("qdisc tbf") :])
    assert dropped is not None
    assert int(dropped[1]) > 0
    found = agent.outcomes(1)
    assert sorted(found) == list(range(1, 201))
    assert {one.kind.answer for one in found.values()} == {"echo"}


@pytest.mark.lab
@ways("datagram", "raw")
def test_where_there_never_is_room_an_order_ends(
    lab: None, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue of the source that takes no packet at all is named, and nothing waits for ever."""
    monkeypatch.setattr(pump, "SHORT_FOR_S", 0.5)
    names = many(4, way, 40)
    words = "tc qdisc add dev n1a root bfifo limit 1"
    subprocess.run(["ip", "netns", "exec", SOURCE, *words.split()], check=True)
    agent = Agent()
    with inside(SOURCE):
        engine = EchoEngine(agent)
        engine.submit(echo_order(1, *names))
        agent.wait(1)
    engine.close()

    told = [(one.kind.op, one.kind.failure) for one in agent.outcomes(1).values()]
    assert told == [("send", "no-buffers")] * 40


@pytest.mark.lab
@families_and_ways((4, "datagram"), (4, "raw"), (6, "raw"))
def test_whole_packets_have_the_size_of_the_order(lab: None, family: int, way: str) -> None:
    """What fits a narrower link is answered; for what does not, its router names the MTU."""
    firewalls.unlimited_icmp()
    names = many(family, way, 40)
    subprocess.run(["ip", "-n", R1, "link", "set", "n2a", "mtu", "1300"], check=True)
    agent = Agent()
    with inside(SOURCE):
        engine = EchoEngine(agent)
        for number, size in ((1, 1300), (2, 1301)):
            engine.submit(echo_order(number, *names, size=size))
        agent.wait(1, 2)
    engine.close()

    assert [one.kind.answer for one in agent.outcomes(1).values()] == ["echo"] * 40
    told = [(one.kind.failure, one.kind.mtu) for one in agent.outcomes(2).values()]
    assert told == [("message-too-long", 1300)] * 40


@pytest.mark.lab
@ways("raw")
def test_all_are_asked_once_before_any_is_asked_again(lab: None, way: str) -> None:
    """The nonces of what arrives: a second attempt comes after every first one."""
    network = "10.66.4.0/24"
    netlab.route(R1, "add", network, "via", "10.66.2.2")
    netlab.route(R2, "add", network, "via", "10.66.3.2")
    agent = Agent()
    attempts: list[int] = []
    with inside(DESTINATION):
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        widen(wire)
        wire.setblocking(False)

    def read_arrived(_events: int) -> None:
        """All of it: on a busy machine packets come faster than turns of the loop."""
        with contextlib.suppress(BlockingIOError):
            while True:
                data = wire.recv(2048)
                if data[9] == socket.IPPROTO_ICMP and data[20] == 8:
                    attempts.append(read_nonce(data[28:36]).attempt)

    agent.loop.watch(wire.fileno(), READ, read_arrived)
    names = [f"10.66.4.{number}" for number in range(1, 201)]
    with inside(SOURCE):
        engine = EchoEngine(agent)
        engine.submit(echo_order(1, *names, look_ms=800, looks=2))
        agent.wait(1)
    read_arrived(READ)
    engine.close()
    wire.close()

    assert attempts[:200] == [1] * 200
    assert Counter(attempts) == dict.fromkeys(range(1, 7), 200)


class Forger:
    """Answers the echo requests to 10.66.4.0/24 by hand, once all of them are here.

    ``replies(host)`` gives for the last byte of an address what to answer: whose address to send
    from, the sequence number and payload, and IP options. ``asked`` has (sequence, payload) of each
    host's request.
    """

    def __init__(
        self, agent: Agent, hosts: int, replies: Callable[[Forger, int], list[Any]]
    ) -> None:
        self.asked: dict[int, tuple[int, bytes]] = {}
        self._hosts, self._replies = hosts, replies
        with inside(DESTINATION):
            netlab.sysctl(DESTINATION, "net/ipv4/icmp_echo_ignore_all", "1")
            self.sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
            self.sock.setsockopt(socket.IPPROTO_IP, socket.IP_HDRINCL, 1)
        agent.loop.watch(self.sock.fileno(), READ, lambda events: self._arrived())

    def _arrived(self) -> None:
        data = self.sock.recv(2048)
        if data[20] == 8 and data[19] not in self.asked:
            self.asked[data[19]] = (int.from_bytes(data[26:28], "big"), data[28:])
            if len(self.asked) == self._hosts:
                for host in sorted(self.asked):
                    for source, sequence, payload, options in self._replies(self, host):
                        self._send(data, source, sequence, payload, options)

    def _send(
        self, asked: bytes, source: int, sequence: int, payload: bytes, options: bytes
    ) -> None:
        head = struct.pack(">BBHHH", 0, 0, 0, int.from_bytes(asked[24:26], "big"), sequence)
        check = checksum(head + payload).to_bytes(2, "big")
        icmp = head[:2] + check + head[4:] + payload
        first = bytes([0x45 + len(options) // 4]) + bytes(7) + bytes([64, 1, 0, 0])
        address = socket.inet_ntoa(asked[12:16])
        ip = first + socket.inet_aton(f"10.66.4.{source}") + asked[12:16] + options
        self.sock.sendto(ip + icmp, (address, 0))


def forged(forger: Forger, host: int) -> list[Any]:
    """What the hosts of the next test answer."""
    sequence, payload = forger.asked[host]
    return {
        1: [(1, sequence, payload[:-1] + bytes([payload[-1] ^ 1]), b"")],
        2: [(3, sequence, payload, b"")],
        3: [(3, sequence, payload, b"")],
        4: [(4, forger.asked[5][0], payload, b"")],
        5: [(5, sequence, forger.asked[4][1], b"")],
        6: [(6, sequence, payload[:8], b""), (6, sequence, b"", b"")],
        7: [(7, sequence, payload, b"")] * 3,
        8: [(8, sequence, payload, b"\1\1\1\0")],
        9: [(9, sequence, payload + b"more", b"")],
    }[host]


def answers_to_forgeries(
    way: str, forge: Callable[[Forger, int], list[Any]]
) -> dict[int, str | None]:
    """What nine hosts answered, whose replies are written by hand."""
    agent = Agent()
    forger = Forger(agent, 9, forge)
    with inside(SOURCE):
        engine = EchoEngine(agent)
        engine.submit(echo_order(1, *many(4, way, 9), look_ms=500))
        agent.wait(1)
    engine.close()
    forger.sock.close()
    return {number: found.kind.answer for number, found in agent.outcomes(1).items()}


@pytest.mark.lab
@ways("datagram", "raw")
def test_only_the_own_reply_of_a_host_counts(lab: None, way: str) -> None:
    """Another token, sender or sequence number makes none; repeats and IP options do no harm."""
    found = answers_to_forgeries(way, forged)

    assert found == {**dict.fromkeys((1, 2, 4, 5, 6)), **dict.fromkeys((3, 7, 8, 9), "echo")}


def one_wrong(how: str) -> Callable[[Forger, int], list[Any]]:
    """All answer as they should and in order, but for the fifth of them."""

    def replies(forger: Forger, host: int) -> list[Any]:
        sequence, payload = forger.asked[host]
        if host != 5:
            return [(host, sequence, payload, b"")]
        return {
            "none": [(5, sequence, payload, b"")],
            "token": [(5, sequence, payload[:-1] + bytes([payload[-1] ^ 1]), b"")],
            "nonce": [(5, sequence, bytes([payload[0] ^ 1]) + payload[1:], b"")],
            "sender": [(6, sequence, payload, b"")],
            "sequence": [(5, sequence + 1, payload, b"")],
            "short": [(5, sequence, payload[:-1], b"")],
            "long": [(5, sequence, payload + b"x", b"")],
            "options": [(5, sequence, payload, b"\1\1\1\0")],
            "silent": [],
            "twice": [(5, sequence, payload, b"")] * 2,
        }[how]

    return replies


@pytest.mark.lab
@ways("datagram", "raw")
@pytest.mark.parametrize(
    ("how", "counts"),
    [
        ("none", True), ("token", False), ("nonce", False), ("sender", False), ("sequence", False),
        ("short", False), ("long", True), ("options", True), ("silent", False), ("twice", True),
    ],
)  # fmt: skip
def test_a_wrong_reply_among_right_ones(lab: None, way: str, how: str, counts: bool) -> None:
    """A chunk whose replies come at once, in order, hides no reply that is not one."""
    found = answers_to_forgeries(way, one_wrong(how))

    answered = {number for number, answer in found.items() if answer == "echo"}
    assert answered == set(range(1, 10)) - (set() if counts else {5})


@pytest.mark.lab
def test_a_big_order(lab: None) -> None:
    """Every one of many hosts has an answer of its own, and hosts in a row are one run."""
    agent = Agent()
    names = [f"127.1.{net}.{number}" for net in range(6) for number in range(200)]
    with inside(SOURCE):
        engine = EchoEngine(agent)
        engine.submit(echo_order(1, *names))
        agent.wait(1)
    engine.close()

    found = agent.outcomes(1)
    assert sorted(found) == list(range(1, 1201))
    assert {one.kind.answer for one in found.values()} == {"echo"}
    assert len({one.rtt_us for one in found.values()}) > 20
    assert sum(len(report.runs) for report in agent.sent(EchoOutcomes)) < 120


@pytest.mark.lab
@ways("datagram", "raw")
@pytest.mark.parametrize("family", [4, 6])
def test_every_firewall_case(lab: None, family: int, way: str) -> None:
    """Drops are silent (our own is not permitted), rejects name their sender."""
    firewalls.unlimited_icmp()
    choose_sockets(way)
    address = ADDRESS[family]["destination"]
    match = "icmp type echo-request" if family == 4 else "icmpv6 type echo-request"
    agent = Agent()
    with inside(SOURCE):
        engine = EchoEngine(agent)
    number = 0
    for name, namespace, hook, _, who, ttl in firewalls.PLACES:
        actions: list[tuple[str, tuple[int, int] | None, str]] = [("drop", None, "no-answer")]
        actions += [(f"reject with {words}", fact, failure)
                    for words, fact, failure in firewalls.REJECTS[family]]  # fmt: skip
        for verdict, fact, failure in actions:
            number += 1
            netlab.clear()
            netlab.rule(namespace, hook, f"{match} {verdict}")
            with inside(SOURCE):
                found = ask(agent, engine, number, address, look_ms=600)
            place = f"{name}: {verdict}"
            if fact is None and name == "source output":
                assert (found.kind.op, found.kind.failure) == ("send", "not-permitted"), place
            elif fact is None:
                assert (found.kind.op, found.kind.failure) == ("answer", failure), place
            else:
                offender = ADDRESS[family][who]
                assert (found.kind.op, found.kind.failure) == ("answer", failure), place
                assert found.kind.icmp == IcmpFact(*fact, offender, ttl), place
    engine.close()


@pytest.mark.lab
def test_no_permission_is_never_silence(lab: None) -> None:
    """Without any right to ICMP sockets: the ping program, or the word no-permission."""
    agent = Agent()
    with inside(SOURCE), without_rights():
        engine = EchoEngine(agent)
        found = ask(agent, engine, 1, ADDRESS[4]["destination"], look_ms=900)
        silent = ask(agent, engine, 2, "10.66.3.77", look_ms=900)
    engine.close()
    said = f"{found.kind.failure} {found.kind.answer} {silent.kind.failure}"

    if find_program("ping") is None:
        assert said == "no-permission None no-permission"
    else:
        # A ping that may not either (no file capability, no setuid) says so, too.
        assert said in ("None echo no-answer", "no-permission None no-permission")


def test_the_ping_program_asks_every_destination(
    agent: Agent, engine: EchoEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no socket may be opened, its exit status is the answer of each destination; what it has
    not asked yet can be cancelled."""

    def refuse(_target: ProbeTarget) -> EchoSocket:
        raise PermissionError(errno.EACCES, "no ICMP socket")

    program = tmp_path / "ping"
    program.write_text('#!/bin/sh\nfor to; do :; done\ncase "$to" in *.2) exit 1;; esac\n')
    program.chmod(0o755)
    monkeypatch.setattr(hello, "PROGRAM_FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(sockets, "open_echo", refuse)
    names = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    for number in (1, 2):
        engine.submit(echo_order(number, *names, looks=2))
    assert engine.cancel(2)
    agent.wait(1)

    found = agent.outcomes(1)
    assert {number: one.kind.answer for number, one in found.items()} == {
        1: "echo",
        2: None,
        3: "echo",
    }
    assert (found[2].kind.failure, found[2].looks) == ("no-answer", 2)
    assert agent.outcomes(2) == {}


@pytest.fixture
def engine(agent: Agent) -> Iterator[EchoEngine]:
    """An echo engine in the present namespace, closed afterwards."""
    engine = EchoEngine(agent)
    yield engine
    engine.close()


@pytest.fixture
def agent() -> Agent:
    """An agent with nothing on it."""
    return Agent()


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_loopback_echoes_or_says_why_not(agent: Agent, engine: EchoEngine, address: str) -> None:
    """Whatever rights this test has, the outcome is an echo or a lack of permission."""
    found = ask(agent, engine, 1, address, look_ms=900)

    assert (found.kind.failure, found.kind.answer) in ((None, "echo"), ("no-permission", None))


@pytest.mark.needs("echo sockets")
def test_a_missing_source_address_is_named(agent: Agent, engine: EchoEngine) -> None:
    """A wrong source address is no lack of permission."""
    found = ask(agent, engine, 1, "127.0.0.1", src="192.0.2.1")

    assert (found.kind.op, found.kind.failure) == ("bind", "address-not-available")


def test_a_cancelled_order_is_done_at_once(agent: Agent, engine: EchoEngine) -> None:
    """Cancel ends an order that is out, by whatever way it is asked."""
    engine.submit(echo_order(1, "127.0.0.1"))
    engine.submit(echo_order(2, "127.0.0.1"))

    assert engine.cancel(2)
    assert Done(2, True) in agent.messages
