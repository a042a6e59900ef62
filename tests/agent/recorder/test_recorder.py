"""What a recorder sees of real packets between real hosts, and what it never claims.

The lab's source and destination are three hops apart: a TTL of 64 arrives as 62.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from netprobe.agent.recorder import recorder as recorder_module
from netprobe.agent.recorder import ring as ring_module
from netprobe.agent.recorder.ring import read_frames
from netprobe.agent.recorder.story import MOST_NUMBERS
from netprobe.agent.wire.orders import RecordOrder
from netprobe.agent.wire.parts import SeenRun
from netprobe.agent.wire.templates import MAC_BYTES, pack_nonce
from netprobe.protocols.packets.plain import REQUEST_MAGIC
from tests.agent.netlab import ADDRESS, DESTINATION, R1, R2, SOURCE, inside, rule
from tests.agent.recorder.recording import (
    Recording,
    answer,
    connect,
    listen,
    ping,
    request,
    send,
)
from tests.agent.rig import HOST, KEY, PLAIN

pytestmark = pytest.mark.lab

PORT = 7000
PORTS = [(PORT, PORT + 99)]
# IPv4 options that do nothing: four bytes, and as many as make the header 40 bytes long.
OPTIONS = [b"\x01" * 4, b"\x01" * 20]
both_families = pytest.mark.parametrize("family", [4, 6])

Record = Callable[..., Recording]


@pytest.fixture
def record(lab: None) -> Iterator[Record]:
    """Start recorders; they end with the test."""
    made: list[Recording] = []

    def start(namespace: str, **more: Any) -> Recording:
        made.append(Recording(namespace, **{"datagrams": PORTS, **more}))
        return made[-1]

    yield start
    for one in made:
        one.close()


def counts(run: SeenRun | None) -> tuple[int, int, int]:
    """How many requests, answers and resets a run has of one port, at most."""
    assert run is not None
    requests, answers, resets = (
        0 if some is None else some.most for some in (run.requests, run.answers, run.resets)
    )
    return requests, answers, resets


@both_families
def test_a_handshake_is_seen_at_both_ends(record: Record, family: int) -> None:
    """With the TTL and the device of each end, and the same first sequence number."""
    address = ADDRESS[family]["destination"]
    source, destination = record(SOURCE), record(DESTINATION)
    before_ns = time.time_ns()
    with listen(DESTINATION, address, PORT):
        assert connect(SOURCE, address, PORT) == "open"

    left = source.run("tcp", PORT, family=family, sent=True)
    came = destination.run("tcp", PORT, family=family)
    assert left is not None and came is not None  # noqa: PT018 (for mypy)
    for run, ttls, device in ((left, (64, 62), "n1a"), (came, (62, 64), "n3b")):
        assert run.requests is not None
        assert run.answers is not None
        assert (run.ports, run.requests.most, run.answers.most) == ([(PORT, PORT)], 1, 1)
        assert (run.requests.ttl, run.answers.ttl) == ttls
        assert {run.requests.device, run.answers.device} == {device}
        assert before_ns <= run.requests.first_ns <= run.answers.first_ns <= time.time_ns()
    assert left.numbers == came.numbers
    assert len(came.numbers) == 1


def test_packets_become_rows_when_somebody_asks_or_too_many_wait(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody asks of flows that pass. Both tell the same; so does what came between them."""
    address = ADDRESS[4]["destination"]
    asked, full = record(SOURCE), record(SOURCE)
    for _ in range(3):
        assert connect(SOURCE, address, PORT) == "ECONNREFUSED"
        for one, most in ((asked, recorder_module.MOST_WAITING), (full, 2)):
            with monkeypatch.context() as patch:
                patch.setattr(recorder_module, "MOST_WAITING", most)
                one.recorder._take_packets()

    assert (bool(asked.recorder.rows), bool(full.recorder.rows)) == (False, True)
    for one in (asked, full):
        assert counts(one.run("tcp", PORT, sent=True)) == (3, 0, 3)
        assert one.recorder.rows


def test_a_story_has_what_came_at_both_sides_of_the_rings_end(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where so much waits that the oldest packets are read first."""
    asked = record(SOURCE)
    ring = asked.recorder._ring
    assert ring is not None
    pieces: list[bytes] = []
    for _ in range(2):
        assert connect(SOURCE, ADDRESS[4]["destination"], PORT) == "ECONNREFUSED"
        pieces.append(ring.take_frames())
    assert all(pieces)
    monkeypatch.setattr(ring, "take_frames", lambda: pieces.pop(0) if pieces else b"")
    monkeypatch.setattr(recorder_module, "MOST_WAITING", 1)

    assert counts(asked.run("tcp", PORT, sent=True)) == (2, 0, 2)


def test_who_asks_how_the_recorder_fares_reads_nothing(record: Record) -> None:
    """A question without ports, as a run asks it at its end."""
    asked = record(SOURCE)
    assert connect(SOURCE, ADDRESS[4]["destination"], PORT) == "ECONNREFUSED"

    told = asked.tell("tcp", sent=True)

    assert (told.running, told.lost, told.runs) == (True, 0, [])
    assert not asked.recorder.rows


@both_families
def test_a_refusal_is_a_reset_at_both_ends(record: Record, family: int) -> None:
    """It leaves the destination, and comes in with the TTL that it has left."""
    address = ADDRESS[family]["destination"]
    source, destination = record(SOURCE), record(DESTINATION)
    assert connect(SOURCE, address, PORT) == "ECONNREFUSED"

    left = source.run("tcp", PORT, family=family, sent=True)
    came = destination.run("tcp", PORT, family=family)
    assert counts(left) == counts(came) == (1, 0, 1)
    assert left is not None
    assert left.resets is not None
    assert left.resets.ttl == 62


@both_families
def test_what_input_drops_is_seen_and_what_output_drops_is_not(record: Record, family: int) -> None:
    """A packet socket stands before the one and behind the other."""
    address = ADDRESS[family]["destination"]
    rule(DESTINATION, "input", f"tcp dport {PORT} drop")
    rule(SOURCE, "output", f"tcp dport {PORT + 1} drop")
    source, destination = record(SOURCE), record(DESTINATION)
    for port in (PORT, PORT + 1):
        assert connect(SOURCE, address, port) == "EAGAIN"

    told = source.tell("tcp", PORT, PORT + 1, family=family, sent=True)
    assert [run.ports for run in told.runs] == [[(PORT, PORT)]]
    assert told.heard
    told = destination.tell("tcp", PORT, PORT + 1, family=family)
    assert [(run.ports, counts(run)) for run in told.runs] == [([(PORT, PORT)], (1, 0, 0))]
    assert (told.heard, told.lost, told.full) == (True, 0, False)


def test_who_heard_nothing_says_so(record: Record) -> None:
    """Then "did not come" is not known: the recorder may be deaf."""
    rule(R1, "forward", "tcp dport 7000-7100 drop")
    source, destination = record(SOURCE), record(DESTINATION)
    connect(SOURCE, ADDRESS[4]["destination"], PORT)

    assert source.tell("tcp", PORT, sent=True).heard
    told = destination.tell("tcp", PORT)
    assert (told.running, told.heard, told.runs) == (True, False, [])
    assert not told.awake
    # What somebody else sent does not tell of this source, though of the recorder.
    connect(R2, ADDRESS[4]["destination"], PORT + 1)
    told = destination.tell("tcp", PORT)
    assert (told.heard, told.awake) == (False, True)
    ping(SOURCE, ADDRESS[4]["destination"])
    assert destination.tell("tcp", PORT).heard


def test_another_interface_tells_nothing(record: Record) -> None:
    """An address that no device has is somebody else's, and the loopback device hears itself."""
    destination = record(DESTINATION)
    ping(SOURCE, ADDRESS[4]["destination"])

    assert destination.tell("tcp", PORT).heard
    for elsewhere in ("10.66.3.77", "127.0.0.1"):
        told = destination.tell("tcp", PORT, target=elsewhere)
        assert (told.heard, told.awake) == (False, False), elsewhere
    # Another source's packets come in at the same device.
    assert not destination.tell("tcp", PORT, asker=ADDRESS[4]["destination"]).heard


def test_behind_an_xdp_program_nothing_is_known(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have dropped what this recorder did not see; what leaves does not pass it."""
    monkeypatch.setattr(recorder_module, "filtered_devices", lambda: [2])
    source, destination = record(SOURCE), record(DESTINATION)
    ping(SOURCE, ADDRESS[4]["destination"])

    assert source.tell("tcp", PORT, sent=True).heard
    told = destination.tell("tcp", PORT)
    assert (told.heard, told.awake) == (False, False)


def test_the_own_firewalls_reset_is_no_answer(record: Record) -> None:
    """It comes over the loopback device, and nothing left."""
    rule(SOURCE, "output", f"tcp dport {PORT} reject with tcp reset")
    source = record(SOURCE)
    assert connect(SOURCE, ADDRESS[4]["destination"], PORT) == "ECONNREFUSED"

    assert source.run("tcp", PORT, sent=True) is None
    connect(SOURCE, ADDRESS[4]["destination"], PORT + 1)
    assert counts(source.run("tcp", PORT + 1, sent=True)) == (1, 0, 1)


def test_a_host_that_asks_itself_is_seen_on_its_loopback(record: Record) -> None:
    """There the loopback device is the way; each packet is seen once."""
    address = ADDRESS[4]["destination"]
    recording = record(DESTINATION)
    with listen(DESTINATION, address, PORT):
        assert connect(DESTINATION, address, PORT) == "open"
        found = [recording.run("tcp", PORT, asker=address, sent=sent) for sent in (True, False)]

    for run in found:
        assert counts(run) == (1, 1, 0)
        assert run is not None
        assert run.requests is not None
        assert run.requests.device == "lo"


@pytest.mark.parametrize(
    ("family", "proto", "words", "error"),
    [
        (4, "tcp", "icmp type admin-prohibited", (3, 13)),
        (4, "udp", "icmp type port-unreachable", (3, 3)),
        (4, "icmp", "icmp type host-prohibited", (3, 10)),
        (6, "tcp", "icmpv6 type admin-prohibited", (1, 1)),
        (6, "udp", "icmpv6 type port-unreachable", (1, 4)),
    ],
)
@pytest.mark.parametrize(
    ("namespace", "hook", "who", "ttl"),
    [
        (R1, "forward", "r1", 64),
        (R2, "forward", "r2", 63),
        (DESTINATION, "input", "destination", 62),
        (SOURCE, "output", "source", 64),
    ],
)
def test_errors_tell_who_sent_them_and_who_saw_them_leave(
    record: Record, family: int, proto: str, words: str, error: tuple[int, int], namespace: str,
    hook: str, who: str, ttl: int,
) -> None:  # fmt: skip
    """Of another port nothing is told."""
    match = f"{proto} dport {PORT}" if proto != "icmp" else "icmp type echo-request"
    rule(namespace, hook, f"{match} reject with {words}")
    source, destination = record(SOURCE), record(DESTINATION)
    address = ADDRESS[family]["destination"]
    if proto == "tcp":
        connect(SOURCE, address, PORT)
    elif proto == "udp":
        send(SOURCE, address, PORT, request(3, PORT))
    else:
        ping(SOURCE, address)
    ports = (PORT,) if proto != "icmp" else ()

    (seen,) = source.tell(proto, *ports, family=family, sent=True).errors
    is_own = who == "source"
    assert (seen.sender, seen.type, seen.code, seen.ttl) == (ADDRESS[family][who], *error, ttl)
    assert (seen.outgoing, seen.local, seen.packets) == (False, is_own, 1)
    assert seen.ports == ([(PORT, PORT)] if ports else [(0, 0)])
    left = destination.tell(proto, *ports, family=family).errors
    assert [(one.sender, one.outgoing, one.local, one.ttl) for one in left] == (
        [(ADDRESS[family][who], True, False, 64)] if who == "destination" else []
    )
    if ports:
        assert source.tell(proto, PORT + 1, family=family, sent=True).errors == []


@both_families
def test_echoes_are_seen_without_ports(record: Record, family: int) -> None:
    """The request at both ends, and the reply."""
    source, destination = record(SOURCE), record(DESTINATION)
    assert ping(SOURCE, ADDRESS[family]["destination"])

    for told in (
        source.tell("icmp", family=family, sent=True),
        destination.tell("icmp", family=family),
    ):
        (run,) = told.runs
        assert counts(run) == (1, 1, 0)
        assert told.heard


@both_families
def test_nonces_on_connections_are_told_by_their_order(record: Record, family: int) -> None:
    """Whether data gets through is another question than whether the connection opens."""
    address = ADDRESS[family]["destination"]
    word = "ip6" if family == 6 else "ip"
    rule(R1, "forward", f"{word} daddr {address} tcp dport {PORT + 1} tcp flags & psh == psh drop")
    source, destination = record(SOURCE), record(DESTINATION)
    asked = REQUEST_MAGIC + pack_nonce(3, PORT, 1) + bytes(MAC_BYTES)
    for port in (PORT, PORT + 1):
        with listen(DESTINATION, address, port):
            assert connect(SOURCE, address, port, data=asked) == "open"

    for port, came in ((PORT, True), (PORT + 1, False)):
        about = {"family": family, "numbers": [3]}
        assert destination.run("tcp", port, family=family) is not None
        assert source.run("tcp-nonce", port, sent=True, **about) is not None
        assert (destination.run("tcp-nonce", port, **about) is not None) is came
    assert destination.run("tcp-nonce", PORT, family=family, numbers=[4]) is None


def test_an_empty_datagram_is_told_by_the_own_port(record: Record) -> None:
    """It is what a closed port is asked with."""
    source = record(SOURCE)
    _, mine = send(SOURCE, ADDRESS[4]["destination"], PORT, b"")

    assert counts(source.run("udp", PORT, sent=True, own_ports=[mine])) == (1, 0, 0)


@both_families
def test_translated_echoes_are_found_by_their_order(record: Record, family: int) -> None:
    """Their payload begins with it."""
    nat(R1, f"postrouting priority 100; {'ip6' if family == 6 else 'ip'} saddr "
            f"{ADDRESS[family]['source']} masquerade")  # fmt: skip
    destination = record(DESTINATION)
    assert ping(SOURCE, ADDRESS[family]["destination"], pack_nonce(3, 1, 1))

    assert destination.tell("icmp", family=family, numbers=[4]).translated == []
    (other,) = destination.tell("icmp", family=family, numbers=[3]).translated
    assert other.asker == ("10.66.2.1" if family == 4 else "fd66:2::1")


@both_families
def test_datagrams_are_told_by_their_nonce(record: Record, family: int) -> None:
    """Requests and answers of the order that is asked about; strangers and forgers are not."""
    here, there = ADDRESS[family]["source"], ADDRESS[family]["destination"]
    source, destination = record(SOURCE), record(DESTINATION)
    own = send(
        SOURCE, there, PORT,
        request(3, PORT), request(3, PORT), request(4, PORT),
        b"a resolver of the same host", b"", request(3, PORT, bytes(32)),
    )  # fmt: skip
    made = PLAIN.reply(KEY, pack_nonce(3, PORT, 1), HOST, PORT, request(3, PORT))
    answer(DESTINATION, (there, PORT), (here, own[1]), made, made, b"NPA1 and nothing true" * 2)

    for recording, sent in ((source, True), (destination, False)):
        about = {"family": family, "sent": sent}
        assert counts(recording.run("udp", PORT, numbers=[3], **about)) == (2, 2, 0)
        assert counts(recording.run("udp", PORT, numbers=[4], **about)) == (1, 0, 0)
        assert recording.run("udp", PORT, numbers=[5], **about) is None
        assert recording.run("udp", PORT, **about) is None


def test_datagrams_without_a_nonce_are_told_by_the_own_port(record: Record) -> None:
    """A real service knows no nonce; other programs of the host ask it from other ports."""
    here, there = ADDRESS[4]["source"], ADDRESS[4]["destination"]
    source = record(SOURCE)
    # The run's template of a request to a real service.
    source.agent.templates[2] = type(PLAIN)(b"who are you", None, None)
    _, mine = send(SOURCE, there, PORT, b"who are you")
    _, other = send(SOURCE, there, PORT, b"something else", b"more")
    answer(DESTINATION, (there, PORT), (here, mine), b"a service")
    answer(DESTINATION, (there, PORT), (here, other), b"the other's")

    assert counts(source.run("udp", PORT, sent=True, own_ports=[mine])) == (1, 1, 0)
    assert source.run("udp", PORT, sent=True, own_ports=[9]) is None


def test_raw_protocols_are_told_by_their_nonce(record: Record) -> None:
    """Protocol numbers have no ports."""
    source, destination = (record(name, numbers=[253]) for name in (SOURCE, DESTINATION))
    with inside(SOURCE), socket.socket(socket.AF_INET, socket.SOCK_RAW, 253) as sock:
        sock.sendto(request(3, 0), (ADDRESS[4]["destination"], 0))

    for recording, sent in ((source, True), (destination, False)):
        (run,) = recording.tell("ipproto", number=253, numbers=[3], sent=sent).runs
        assert counts(run) == (1, 0, 0)
        assert recording.tell("ipproto", number=253, numbers=[4], sent=sent).runs == []


@pytest.mark.parametrize("options", OPTIONS)
def test_options_of_ipv4_move_what_is_read(record: Record, options: bytes) -> None:
    """Ports, flags and sequence numbers come after them."""
    there = ADDRESS[4]["destination"]
    source, destination = record(SOURCE), record(DESTINATION)
    with listen(DESTINATION, there, PORT):
        assert connect(SOURCE, there, PORT, options=options) == "open"
        left, came = source.run("tcp", PORT, sent=True), destination.run("tcp", PORT)
    send(SOURCE, there, PORT + 1, request(3, PORT + 1), options=options)

    assert counts(left) == counts(came) == (1, 1, 0)
    assert left is not None and came is not None  # noqa: PT018 (for mypy)
    assert left.numbers == came.numbers
    assert counts(destination.run("udp", PORT + 1, numbers=[3])) == (1, 0, 0)
    # The closed port's error quotes the whole header.
    (error,) = source.tell("udp", PORT + 1, numbers=[3], sent=True).errors
    assert (error.sender, error.type, error.code) == (there, 3, 3)


@both_families
def test_a_translated_source_is_found_by_sequence_number(record: Record, family: int) -> None:
    """NAT changes addresses and ports; the SYN's number stays."""
    nat(R1, f"postrouting priority 100; {'ip6' if family == 6 else 'ip'} saddr "
            f"{ADDRESS[family]['source']} masquerade")  # fmt: skip
    source, destination = record(SOURCE), record(DESTINATION)
    assert connect(SOURCE, ADDRESS[family]["destination"], PORT) == "ECONNREFUSED"
    left = source.run("tcp", PORT, family=family, sent=True)
    assert left is not None

    told = destination.tell("tcp", PORT, family=family, numbers=left.numbers)
    (other,) = told.translated
    middle = "10.66.2.1" if family == 4 else "fd66:2::1"
    assert (other.asker, other.target) == (middle, ADDRESS[family]["destination"])
    assert (other.ports, other.packets) == ([(PORT, PORT)], 1)
    assert told.runs == []
    moved = destination.run("tcp", PORT, family=family, asker=middle)
    assert counts(moved) == (1, 0, 1)
    assert destination.tell("tcp", PORT, family=family, numbers=[1]).translated == []
    assert destination.tell("tcp", PORT, family=family).translated == []


def test_a_translated_destination_is_found_by_nonce(record: Record) -> None:
    """A datagram carries its order."""
    shown, port = "10.66.3.77", PORT + 5
    nat(R2, f"prerouting priority -100; ip daddr {shown} udp dport {port} dnat to "
            f"{ADDRESS[4]['destination']}:{PORT}")  # fmt: skip
    destination = record(DESTINATION)
    send(SOURCE, shown, port, request(3, port))

    told = destination.tell("udp", port, target=shown, numbers=[3])
    (other,) = told.translated
    assert (other.asker, other.target) == (ADDRESS[4]["source"], ADDRESS[4]["destination"])
    assert other.ports == [(PORT, PORT)]
    # Of what is for the address that was asked it knows nothing.
    assert not told.heard


def test_a_bridge_and_its_port_are_one(record: Record) -> None:
    """The packet shows at both, and is counted once, at the device nearest to the network."""
    address = ADDRESS[4]["destination"]
    for words in (
        "link add br0 type bridge",
        "link set br0 up",
        "link set n3b master br0",
        f"address del {address}/24 dev n3b",
        f"address add {address}/24 dev br0",
        "route replace default via 10.66.3.1",
    ):
        ip(DESTINATION, *words.split())
    assert ping(SOURCE, address) or ping(SOURCE, address)
    destination = record(DESTINATION)
    connect(SOURCE, address, PORT)

    run = destination.run("tcp", PORT)
    assert counts(run) == (1, 0, 1)
    assert run is not None
    assert run.requests is not None
    assert run.resets is not None
    assert (run.requests.device, run.resets.device) == ("n3b", "n3b")


def test_many_ports_that_went_alike_are_one_run(record: Record) -> None:
    """Ports that went otherwise have runs of their own."""
    address = ADDRESS[4]["destination"]
    rule(DESTINATION, "input", f"tcp dport {PORT + 3} drop")
    source, destination = record(SOURCE), record(DESTINATION)
    for port in range(PORT, PORT + 8):
        connect(SOURCE, address, port)

    for recording, sent in ((source, True), (destination, False)):
        told = recording.tell("tcp", ports=[(PORT, PORT + 9)], sent=sent)
        assert sorted((run.ports, counts(run)) for run in told.runs) == [
            ([(PORT, PORT + 2), (PORT + 4, PORT + 7)], (1, 0, 1)),
            ([(PORT + 3, PORT + 3)], (1, 0, 0)),
        ]


def test_the_numbers_of_a_run_are_of_ports_from_all_of_it(record: Record) -> None:
    """A translation that begins in the middle of a range is found by them."""
    source, last = record(SOURCE), PORT + 129
    for port in range(PORT, last + 1):
        connect(SOURCE, ADDRESS[4]["destination"], port)

    (every,) = source.tell("tcp", ports=[(PORT, last)], sent=True).runs
    (one,) = source.tell("tcp", last, sent=True).runs
    assert len(every.numbers) <= MOST_NUMBERS
    assert one.numbers[0] in every.numbers


def test_ports_that_are_asked_apart_have_their_own_counts_and_times(record: Record) -> None:
    """However alike their packets are: they become results of their own."""
    address = ADDRESS[4]["destination"]
    source = record(SOURCE)
    for port in (PORT, PORT, PORT, PORT + 1):
        connect(SOURCE, address, port)

    first, second = source.tell("tcp", PORT, PORT + 1, sent=True).runs
    assert (first.ports, counts(first)) == ([(PORT, PORT)], (3, 0, 3))
    assert (second.ports, counts(second)) == ([(PORT + 1, PORT + 1)], (1, 0, 1))
    assert first.requests
    assert second.requests
    assert first.requests.first_ns < second.requests.first_ns


def test_streams_and_other_datagrams_stay_in_the_kernel(record: Record) -> None:
    """A busy host's own traffic costs nothing."""
    address = ADDRESS[4]["destination"]
    recording = record(DESTINATION)
    with inside(DESTINATION), socket.create_server((address, PORT)) as server:
        with inside(SOURCE):
            client = socket.create_connection((address, PORT))
        accepted, _ = server.accept()
        with client, accepted:
            for _ in range(50):
                client.sendall(b"x" * 100)
                accepted.recv(100)
    send(SOURCE, address, PORT + 500, *[b"y"] * 50)

    ring = recording.recorder._ring
    assert ring is not None
    # The SYN and the SYN-ACK; the kernel refuses some datagrams.
    data = ring.take_frames()
    taken = [data[at + 9] for _, _, _, is_6, at in read_frames(data) if not is_6]
    assert taken.count(socket.IPPROTO_TCP) == 2
    assert set(taken) <= {socket.IPPROTO_TCP, socket.IPPROTO_ICMP}


def test_what_the_ring_had_no_room_for_is_counted(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once it was read, there is room again."""
    monkeypatch.setattr(ring_module, "RING_BYTES", ring_module.BLOCK_BYTES)
    monkeypatch.setattr(ring_module, "FRAMES", 256)
    recording = record(SOURCE)
    send(SOURCE, ADDRESS[4]["destination"], PORT, *[request(3, PORT)] * 400)

    told = recording.tell("udp", PORT, numbers=[3], sent=True)
    assert told.lost >= 400 - 256
    assert told.runs[0].requests is not None
    assert 0 < told.runs[0].requests.most <= 256
    before = told.runs[0].requests.most
    send(SOURCE, ADDRESS[4]["destination"], PORT, *[request(3, PORT)] * 9)
    again = recording.tell("udp", PORT, numbers=[3], sent=True)
    assert again.lost == told.lost
    assert again.runs[0].requests is not None
    assert again.runs[0].requests.most == before + 9


def test_a_ring_goes_round_many_times(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """No packet is read twice or left out at its end."""
    monkeypatch.setattr(ring_module, "RING_BYTES", ring_module.BLOCK_BYTES)
    monkeypatch.setattr(ring_module, "FRAMES", 256)
    rule(DESTINATION, "input", "udp dport 7000-7099 drop")
    recording = record(DESTINATION)
    for burst in range(12):
        payloads = [request(3, PORT)] * 100
        send(SOURCE, ADDRESS[4]["destination"], PORT, *payloads)
        told = recording.tell("udp", PORT, numbers=[3])
        assert told.lost == 0
        assert counts(told.runs[0]) == (100 * (burst + 1), 0, 0)


@pytest.mark.parametrize(("name", "most"), [("MOST_ROWS", 20), ("MOST_PAYLOADS", 5)])
def test_memory_has_a_bound(
    record: Record, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    """Who has stopped says so; what it saw before stands."""
    monkeypatch.setattr(recorder_module, name, most)
    recording = record(SOURCE)
    assert not recording.tell("udp", PORT, sent=True).full
    send(SOURCE, ADDRESS[4]["destination"], PORT, *[request(3, PORT)] * 50)

    told = recording.tell("udp", PORT, numbers=[3], sent=True)
    assert told.full
    assert told.lost == 0
    assert 0 < counts(told.runs[0])[0] <= most


def test_other_datagrams_do_not_fill_the_memory(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Payloads are kept only where they begin as one of the run's."""
    monkeypatch.setattr(recorder_module, "MOST_PAYLOADS", 5)
    recording = record(SOURCE)
    send(SOURCE, ADDRESS[4]["destination"], PORT, *[b"other traffic"] * 50, request(3, PORT))

    told = recording.tell("udp", PORT, numbers=[3], sent=True)
    assert not told.full
    assert counts(told.runs[0]) == (1, 0, 0)


def test_without_the_right_to_packet_sockets_it_does_not_run(record: Record) -> None:
    """It says why, and everything else of the agent works on."""
    recording = record(SOURCE, permitted=False)

    told = recording.tell("tcp", PORT, sent=True)
    assert (told.running, told.failure) == (False, "no-permission")
    assert (told.runs, told.errors, told.translated, told.heard) == ([], [], [], False)


def test_packets_are_read_while_nobody_asks(record: Record) -> None:
    """The loop empties the ring before it is full."""
    recording = record(SOURCE)
    connect(SOURCE, ADDRESS[4]["destination"], PORT)
    loop = recording.agent.loop
    loop.call_later(5 * recorder_module.GATHER_S, loop.stop)
    loop.run()

    ring = recording.recorder._ring
    assert ring is not None
    assert list(ring.take_frames()) == []
    assert counts(recording.run("tcp", PORT, sent=True)) == (1, 0, 1)


def test_a_closed_recorder_tells_nothing(record: Record) -> None:
    """Its socket and memory are given back."""
    recording = record(SOURCE)
    ring = recording.recorder._ring
    assert ring is not None
    recording.close()

    assert ring.sock.fileno() == -1
    assert not recording.tell("tcp", PORT, sent=True).running


def test_another_order_lets_it_forget_and_start_anew(record: Record) -> None:
    """Packets of an earlier run are none of this one; those that come now are recorded, once."""
    recording = record(SOURCE, keep=PORTS)
    address = ADDRESS[4]["destination"]
    assert connect(SOURCE, address, PORT) == "ECONNREFUSED"
    assert counts(recording.run("tcp", PORT, sent=True)) == (1, 0, 1)

    with inside(SOURCE):
        recording.recorder.start(RecordOrder(list(PORTS), [], None))

    assert recording.run("tcp", PORT, sent=True) is None
    assert recording.agent.own_ports is None
    assert connect(SOURCE, address, PORT) == "ECONNREFUSED"
    assert counts(recording.run("tcp", PORT, sent=True)) == (1, 0, 1)


def nat(namespace: str, chain: str) -> None:
    """One chain that translates addresses: its hook, priority, and rule."""
    hook, _, rule_text = chain.partition("; ")
    subprocess.run(
        ["ip", "netns", "exec", namespace, "nft", "-f", "-"], check=True, text=True,
        input=f"table inet n {{ chain c {{ type nat hook {hook}; {rule_text}; }}; }}",
    )  # fmt: skip


def ip(namespace: str, *words: str) -> None:
    """Change a namespace's links and addresses."""
    subprocess.run(["ip", "-n", namespace, *words], check=True)
