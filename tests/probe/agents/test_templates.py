"""The packets of one run have numbers."""

from __future__ import annotations

from netprobe.probe.agents.templates import EMPTY, Templates
from netprobe.protocols import PROTOCOLS


def test_the_same_packet_has_the_same_number() -> None:
    """Agents learn each once; 0 is the empty datagram."""
    templates = Templates()
    plain = PROTOCOLS["plain"]

    first = templates.listener(plain, "tcp", 4)
    assert first != EMPTY
    assert templates.listener(plain, "tcp", 4) == first
    assert templates.request(b"x") == templates.request(b"x")
    assert len(templates.after(0)) == 2


def test_transports_families_and_protocols_have_packets_of_their_own() -> None:
    """A DNS message has a length before it over TCP."""
    templates = Templates()
    dns, vxlan = PROTOCOLS["dns"], PROTOCOLS["vxlan"]

    numbers = [
        templates.listener(dns, "udp", 4),
        templates.listener(dns, "tcp", 4),
        templates.listener(vxlan, "udp", 4),
        templates.listener(vxlan, "udp", 6),
        templates.service(dns, "udp", 4),
        templates.service(dns, "tcp", 4),
    ]

    assert numbers == [1, 2, 3, 4, 5, 6]
    requests = [item.request for item in templates.after(0)]
    assert requests[1] == len(requests[0]).to_bytes(2, "big") + requests[0]


def test_what_nobody_asks_a_live_service_is_empty() -> None:
    """Unknown bytes can make a service log, count or close."""
    templates = Templates()

    assert templates.service(PROTOCOLS["plain"], "tcp", 4) == EMPTY
    assert templates.after(0) == []


def test_an_agent_gets_what_it_does_not_know_yet() -> None:
    """Numbers count from 1 in the order of their first use."""
    templates = Templates()
    templates.request(b"a")
    templates.request(b"b")

    assert [(item.number, item.request) for item in templates.after(1)] == [(2, b"b")]
    assert templates.after(2) == []


def test_bytes_for_a_service_have_no_holes() -> None:
    """Only our own listeners know nonces."""
    templates = Templates()
    templates.request(b"a")
    templates.listener(PROTOCOLS["plain"], "udp", 4)
    plain, ours = templates.after(0)

    assert (plain.nonce_at, plain.mac_at, plain.answer) == (None, None, None)
    assert ours.nonce_at is not None
    assert ours.answer is not None
