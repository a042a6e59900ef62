"""What is kept of packets: the run's own and nobody else's, the first and the last, in bounds."""

from __future__ import annotations

import socket
import struct
from hashlib import shake_128

import pytest

from netprobe.agent.recorder.keeper import FEW_FLOWS, FEW_PACKETS, MOST_BYTES, PACKET_COST, Keeper
from netprobe.agent.recorder.ring import RESET, SYN, SYN_ACK
from netprobe.agent.wire.answers import PacketsKept
from netprobe.agent.wire.orders import KeptOrder
from netprobe.agent.wire.templates import pack_nonce
from tests.agent.netlab import ADDRESS, SOURCE, inside
from tests.agent.recorder.recording import Recording, family_of, ping, request, send
from tests.agent.rig import Agent

A, B, C = (bytes((10, 0, 0, last)) for last in (1, 2, 3))
PORT = 443
HEADERS = bytes(60)


class World:
    """A keeper, and packets of connects from a to b."""

    def __init__(self) -> None:
        self.agent = Agent()
        self.keeper = Keeper(self.agent, [(PORT, PORT + 9)])
        self.time = 0

    def note(self, kind: int, number: int, *, out: bool = True, sport: int = 1024) -> None:
        """One packet of a connect, as the source sees it; ``out`` False: as the destination."""
        self.time += 1
        sent = (kind == SYN) == out
        pair, ports = (A + B, (sport, PORT)) if kind == SYN else (B + A, (PORT, sport))
        self.keeper.note_tcp((self.time, 1, sent, 60, HEADERS), pair, ports, (kind, number))

    def ping(
        self, pair: bytes, *, order: int, place: int, out: bool = True, is_reply: bool = False
    ) -> None:
        """One echo of this run, or its answer."""
        self.time += 1
        token = shake_128(self.agent.key + b"e" + struct.pack(">IH", order, 1)).digest(16 * place)
        payload = pack_nonce(order, place, 1) + token[-16:]
        kept = (self.time, 1, out != is_reply, 60, HEADERS)
        self.keeper.note_echo(kept, pair, is_reply, payload)

    def datagram(self, pair: bytes, *, order: int, attempt: int, out: bool = True) -> None:
        """One datagram with a nonce of this run."""
        self.time += 1
        kept = (self.time, 1, out, 60, HEADERS)
        self.keeper.note_datagram(kept, pair, (1024, PORT), pack_nonce(order, PORT, attempt), 28)

    def own(self, sport: int = 1024) -> None:
        """The agent connects from this port."""
        assert self.agent.own_ports is not None
        self.agent.own_ports.add((B, PORT, sport))

    def tell(self, *numbers: int, sent: bool = True) -> PacketsKept:
        order = KeptOrder(1, "tcp", "10.0.0.1", "10.0.0.2", [(PORT, PORT)], sent, list(numbers), [])
        return self.keeper.tell(order, A, B, sure=True)


def test_at_the_source_only_the_agents_own_connects_are_kept() -> None:
    """Other programs of the host connect to the same ports."""
    world = World()
    world.own()
    world.note(SYN, 7)
    world.note(RESET, 7)
    world.note(SYN, 8, sport=5555)
    world.note(SYN_ACK, 8, sport=5555)

    told = world.tell()

    assert [(one.time_ns, one.outgoing) for one in told.packets] == [(1, True), (2, False)]
    assert (told.numbers, told.sure) == ([7], True)


def test_at_the_destination_only_what_the_source_names_is_told() -> None:
    """By the first sequence number, whatever addresses it has there."""
    world = World()
    world.note(SYN, 7, out=False)
    world.note(SYN_ACK, 7, out=False)
    world.note(SYN, 8, out=False, sport=5555)

    assert len(world.tell(7, sent=False).packets) == 2
    assert world.tell(sent=False).packets == []


def test_the_first_and_the_last_are_told() -> None:
    """The other end is asked only for connects that were told here."""
    world = World()
    world.own()
    for number in range(100, 200):
        for _ in range(20):
            world.note(SYN, number)

    told = world.tell()

    assert told.numbers == [*range(100, 100 + FEW_FLOWS), *range(200 - FEW_FLOWS, 200)]
    assert len(told.packets) == 2 * FEW_FLOWS * 2 * FEW_PACKETS
    assert told.left_out == 2000 - len(told.packets)
    assert told.sure is True


def test_answers_leave_room_for_requests() -> None:
    """Both ends tell as many requests, however often one of them answered."""
    world = World()
    for _ in range(6):
        world.note(SYN, 7, out=False)
        for _ in range(3):
            world.note(SYN_ACK, 7, out=False)

    told = world.tell(7, sent=False)

    assert [one.outgoing for one in told.packets].count(False) == 6
    assert [one.outgoing for one in told.packets].count(True) == 2 * FEW_PACKETS
    assert told.left_out == 18 - 2 * FEW_PACKETS


def test_memory_is_bounded_and_answered_connects_go_first() -> None:
    """A MiB a host."""
    world = World()
    world.own()
    world.note(SYN, 1)
    most = MOST_BYTES // (60 + PACKET_COST)
    for number in range(2, 2 * most):
        world.note(SYN, number)
        world.note(SYN_ACK, number)

    assert 0 < world.keeper._bytes <= MOST_BYTES
    assert 1 in world.tell().numbers


def test_a_big_run_is_sure_of_what_it_did_not_forget() -> None:
    """Other connects than the asked ones had no room: those never came, or their packets are told.

    Of one that was forgotten nobody knows.
    """
    world = World()
    for number in range(2, MOST_BYTES // 100):
        world.note(SYN, number, out=False)
        world.note(SYN_ACK, number, out=False)

    assert world.tell(1, sent=False).sure is True
    assert world.tell(2, sent=False).sure is False
    assert world.tell(1, 2, sent=False).sure is False


@pytest.mark.parametrize("sent", [True, False])
def test_only_pings_that_were_asked_for_are_told(sent: bool) -> None:
    """Those between these addresses: other echoes have no number in common with them."""
    world = World()
    for place, pair in enumerate((A + B, A + C), 1):
        world.ping(pair, order=3, place=place, out=sent)
    order = KeptOrder(1, "icmp", "10.0.0.1", "10.0.0.2", [], True, [0], [])

    told = world.keeper.tell(order._replace(sent=sent), A, B, sure=True)
    named = order._replace(sent=sent, numbers=told.numbers)

    assert [one.time_ns for one in told.packets] == [1]
    # Under other addresses than those that it was sent with.
    assert len(world.keeper.tell(named, C, C, sure=True).packets) == 1


def test_datagrams_of_others_are_not_told_though_their_numbers_are_alike() -> None:
    """Every agent counts its walks itself; what a host sends is not what came to it."""
    world = World()
    world.datagram(A + B, order=3, attempt=1, out=False)
    world.datagram(A + B, order=4, attempt=0x202, out=False)
    world.datagram(C + B, order=4, attempt=0x202, out=False)
    world.datagram(C + B, order=4, attempt=0x203, out=False)
    world.datagram(B + C, order=4, attempt=1)

    order = KeptOrder(1, "udp", "10.0.0.1", "10.0.0.2", [(PORT, PORT)], False, [3, 4], [])
    told = world.keeper.tell(order, A, B, sure=True)

    assert [one.time_ns for one in told.packets] == [1, 2]
    assert told.numbers == [3]


@pytest.mark.slow
def test_answered_pings_go_first_and_a_forgotten_one_is_unsure() -> None:
    """As answered connects do."""
    world = World()
    world.ping(A + C, order=1, place=1)
    for number in range(2, MOST_BYTES // 100):
        world.ping(A + B, order=number, place=1)
        world.ping(B + A, order=number, place=1, is_reply=True)
    order = KeptOrder(1, "icmp", "10.0.0.1", "10.0.0.2", [], True, [], [])

    assert world.keeper.tell(order, A, B, sure=True).sure is False
    found = world.keeper.tell(order, A, C, sure=True)
    assert (len(found.packets), found.sure) == (1, True)


@pytest.mark.lab
def test_a_source_without_rights_tells_its_ports(lab: None) -> None:
    """By which the destination knows its connects, and nobody else's."""
    source, target = ADDRESS[4]["source"], ADDRESS[4]["destination"]
    recording = Recording(SOURCE, keep=[(PORT, PORT)], permitted=False)
    assert recording.agent.own_ports is not None
    recording.agent.own_ports |= {
        (socket.inet_aton(target), port, 7000 + port) for port in (PORT, 80)
    }
    order = KeptOrder(9, "tcp", source, target, [(PORT, PORT)], True, [3], [])
    recording.recorder.tell_kept(order)
    (own_port,) = recording.agent.messages.pop().own_ports
    recording.close()
    world = World()
    world.note(SYN, 7, out=False, sport=own_port)
    world.note(SYN_ACK, 7, out=False, sport=own_port)
    world.note(SYN, 8, out=False, sport=5555)
    at_destination = KeptOrder(1, "tcp", "", "", [(PORT, PORT)], False, [3], [own_port])

    assert own_port == 7000 + PORT
    assert len(world.keeper.tell(at_destination, A, B, sure=True).packets) == 2


@pytest.mark.lab
@pytest.mark.parametrize("family", [4, 6])
def test_real_packets_are_kept_as_they_were(lab: None, family: int) -> None:
    """Headers, and payload of our own nonces only; also of an error's quote."""
    source, target = ADDRESS[family]["source"], ADDRESS[family]["destination"]
    recording = Recording(SOURCE, datagrams=[(53, 54)], keep=[(PORT, PORT)])
    genuine = request(3, 53)
    own = send(SOURCE, target, 53, genuine, b"SECRET" * 20)
    assert recording.agent.own_ports is not None
    # What the agent itself sends to a service has no nonce.
    asked = send(SOURCE, target, 54, b"SECRET" * 20)
    recording.agent.own_ports.add((socket.inet_pton(family_of(target), target), 54, asked[1]))
    send(SOURCE, target, 54, b"SECRET" * 20)
    ping(SOURCE, target)

    told = {}
    for name, ports in (("udp", [(53, 53)]), ("tcp", [(PORT, PORT)]), ("icmp", [])):
        with inside(SOURCE):
            recording.recorder.tell_kept(KeptOrder(9, name, source, target, ports, True, [3], []))
        told[name] = recording.agent.messages.pop()
    recording.close()

    first, *errors = told["udp"].packets
    header = 20 if family == 4 else 40
    assert first.data[header + 8 :] == genuine
    assert first.length == header + 8 + len(genuine)
    assert int.from_bytes(first.data[header : header + 2], "big") == own[1]
    # The destination refuses both; the error of ours quotes ours.
    assert all(not one.outgoing and len(one.data) == 2 * header + 16 for one in errors)
    assert b"SECRET" not in b"".join(one.data for some in told.values() for one in some.packets)
    assert told["tcp"].packets == told["icmp"].packets == []
