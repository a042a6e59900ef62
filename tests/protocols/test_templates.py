"""Every template: a genuine request is known, a genuine answer is known, all else is neither."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netprobe.agent.wire import templates as wire
from netprobe.protocols import PROTOCOLS, Protocol, protocol_for

KEY = bytes(range(32))
PORT = 443
NONCE = wire.pack_nonce(7, PORT, 1)
HOST = 0x0102

OWN = sorted({protocol.name for protocol in PROTOCOLS.values()})
CASES = [(name, transport) for name in OWN for transport in PROTOCOLS[name].transports]
ANSWERED = [case for case in CASES if not PROTOCOLS[case[0]].one_way]
each_case = pytest.mark.parametrize(("name", "transport"), CASES)
each_answered = pytest.mark.parametrize(("name", "transport"), ANSWERED)


def template_of(name: str, transport: str) -> wire.Template:
    """The template as the agent gets it."""
    template = PROTOCOLS[name].template(transport, 4)
    return wire.template_of(wire.number_template(1, template))


@each_case
def test_a_genuine_request_is_recognised(name: str, transport: str) -> None:
    """A listener reads the nonce back out of a filled request, also with bytes behind it."""
    template = template_of(name, transport)
    request = template.fill(KEY, NONCE)
    assert template.recognise(KEY, request) == NONCE
    assert template.recognise(KEY, request + b"more") == NONCE


@each_case
def test_only_the_holes_differ_between_requests(name: str, transport: str) -> None:
    """Filling writes 8 bytes of nonce and 16 of MAC inside the request, and nothing else."""
    template = template_of(name, transport)
    assert template.nonce_at is not None
    assert template.mac_at is not None
    request = template.fill(KEY, NONCE)
    assert len(request) == len(template.request)
    holes = set(range(template.nonce_at, template.nonce_at + wire.NONCE_BYTES))
    holes |= set(range(template.mac_at, template.mac_at + wire.MAC_BYTES))
    assert len(holes) == wire.NONCE_BYTES + wire.MAC_BYTES
    assert all(
        index in holes for index, byte in enumerate(request) if byte != template.request[index]
    )


@each_case
def test_requests_that_are_not_of_this_run_are_not_recognised(name: str, transport: str) -> None:
    """Another key, an unfilled template, a service request and a short packet get no answer."""
    template = template_of(name, transport)
    request = template.fill(KEY, NONCE)
    assert template.recognise(KEY, template.fill(bytes(32), NONCE)) is None
    assert template.recognise(KEY, template.request) is None
    assert template.recognise(KEY, request[:-1]) is None
    service = PROTOCOLS[name].service_request(transport, 4)
    assert service is None or template.recognise(KEY, service) is None


@each_case
@given(at=st.integers(min_value=0), flip=st.integers(1, 255))
def test_a_changed_nonce_or_mac_is_not_recognised(
    name: str, transport: str, at: int, flip: int
) -> None:
    """One changed byte in nonce or MAC makes a request somebody else's."""
    template = template_of(name, transport)
    request = bytearray(template.fill(KEY, NONCE))
    start = template.nonce_at if at % 24 < 8 else template.mac_at
    assert start is not None
    request[start + (at % 24 if at % 24 < 8 else at % 24 - 8)] ^= flip
    assert template.recognise(KEY, bytes(request)) is None


@each_answered
def test_a_genuine_answer_names_its_host(name: str, transport: str) -> None:
    """The asking side reads who answered, and for which nonce."""
    template = template_of(name, transport)
    answer = template.reply(KEY, NONCE, HOST, PORT, template.fill(KEY, NONCE))
    assert template.answering_host(KEY, NONCE, answer) == HOST
    assert template.answering_host(KEY, wire.pack_nonce(7, 443, 2), answer) is None
    assert template.answering_host(bytes(32), NONCE, answer) is None
    other_port = template.reply(KEY, NONCE, HOST, PORT + 1, template.fill(KEY, NONCE))
    assert template.answering_host(KEY, NONCE, other_port) is None


@each_answered
def test_a_reflector_is_no_answer(name: str, transport: str) -> None:
    """Our own bytes that come back, at whatever length, do not prove a listener."""
    template = template_of(name, transport)
    request = template.fill(KEY, NONCE)
    assert template.answering_host(KEY, NONCE, request) is None
    assert template.answering_host(KEY, NONCE, request + bytes(64)) is None


@each_answered
def test_an_answer_does_not_amplify(name: str, transport: str) -> None:
    """An answer is hardly longer than its request: nobody can use a listener against others."""
    template = template_of(name, transport)
    assert template.answer is not None
    assert len(template.answer) <= len(template.request) + 12


@each_answered
def test_every_byte_of_an_answer_has_one_owner(name: str, transport: str) -> None:
    """Nonce, host and MAC lie inside the answer, apart from each other; copies fit both ends."""
    template = template_of(name, transport)
    assert template.answer is not None
    spans = [
        (template.answer_nonce_at, wire.NONCE_BYTES),
        (template.answer_host_at, wire.HOST_BYTES),
        (template.answer_mac_at, wire.MAC_BYTES),
        *((to, length) for to, _, length in template.answer_copies),
    ]
    taken = [byte for start, length in spans for byte in range(start, start + length)]
    assert len(taken) == len(set(taken))
    assert max(taken) < len(template.answer)
    for _, start, length in template.answer_copies:
        assert start + length <= len(template.request)


@pytest.mark.parametrize("name", OWN)
def test_one_way_means_no_answer(name: str) -> None:
    """Exactly the one-way protocols have a template without an answer."""
    protocol = PROTOCOLS[name]
    for transport in protocol.transports:
        assert (protocol.template(transport, 4).answer is None) is protocol.one_way


@pytest.mark.parametrize("name", OWN)
def test_a_name_is_its_own_key(name: str) -> None:
    """A protocol stands in the dict under the name that it gives itself."""
    assert PROTOCOLS[name].name == name


def test_both_families_send_the_same() -> None:
    """What follows the outer header is the same for IPv4 and IPv6."""
    for name, transport in CASES:
        four, six = (PROTOCOLS[name].template(transport, family) for family in (4, 6))
        assert wire.number_template(1, four) == wire.number_template(1, six)


FOUND: list[tuple[str | None, int | None, int | None, str]] = [
    (None, None, None, "plain"),
    (None, 53, None, "plain"),
    ("dns", 53, None, "dns"),
    ("etcd", 2379, None, "plain"),
    ("something-newer", 1, None, "plain"),
    ("ike", 500, None, "ike"),
    ("ike", 4500, None, "ike-nat"),
    (None, None, 4, "ipip"),
    ("ipip", None, 4, "ipip"),
    (None, None, 50, "raw"),
    ("dns", None, 4, "ipip"),
]


@pytest.mark.parametrize(("name", "port", "number", "expected"), FOUND)
def test_protocol_for(
    name: str | None, port: int | None, number: int | None, expected: str
) -> None:
    """The name decides, then the port where IKE differs, then the number of an IP protocol."""
    found: Protocol = protocol_for(name, port, number)
    assert found.name == expected
    assert number is None or "ipproto" in found.transports


@pytest.mark.slow
def test_importing_is_cheap() -> None:
    """Importing the package loads none of the protocol libraries."""
    code = (
        "import sys, netprobe.protocols\n"
        "heavy = {'dns', 'ssl', 'asyncio', 'cryptography', 'httpx', 'httpcore', 'h2'}\n"
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
