"""The interface of a protocol: bytes to send, and a reader of bytes that come back.

A protocol never touches a socket. The probe stage sends its bytes through an agent.
"""

from __future__ import annotations

import ipaddress
import typing
from typing import Literal

from msgspec import Struct

from netprobe.agent.wire import templates as wire
from netprobe.model.evidence import ServerClock

Transport = Literal["tcp", "udp", "ipproto"]

# What an answer takes over from the request: (to, from, length).
Copies = tuple[tuple[int, int, int], ...]

LENGTH_BYTES = 2
_SHOWN_BYTES = 8
_SHOWN_TEXT = 60


class Reading(Struct, frozen=True):
    """Facts about bytes that came back; the judge decides what they mean for a requirement.

    ``recognised``: the right service answered. ``said``: one short plain phrase without control
    characters, such as ``REFUSED`` or ``NTP stratum 2``. ``clock``: of a time server, with the
    ``times`` at which it got the request and sent its answer (s since 1970 by its clock).
    """

    recognised: bool
    said: str
    clock: ServerClock | None = None
    times: tuple[float, float] = (0.0, 0.0)


class Protocol(typing.Protocol):
    """One protocol that netprobe can speak on a port where plain bytes prove little.

    ``one_way``: the listener only records arrivals, because the protocol has no answer.
    ``family`` is 4 or 6 and counts for the outer packet only.
    """

    name: str
    one_way: bool
    transports: tuple[Transport, ...]

    def template(self, transport: str, family: int) -> wire.Template:
        """Give the request for our own listener, with holes for nonce and MAC, and its answer."""

    def service_request(self, transport: str, family: int) -> bytes | None:
        """Give what to send to a live service; None: a bare connect or an empty datagram only."""

    def read(self, transport: str, data: bytes) -> Reading:
        """Read an answer. Never raises, whatever the bytes are."""


def printable(text: str, limit: int = _SHOWN_TEXT) -> str:
    """Make text from the network safe for a terminal and short: escapes and newlines never pass."""
    safe = "".join(char if " " <= char <= "~" else "?" for char in text[: limit + 1])
    return safe if len(safe) <= limit else safe[: limit - 3] + "..."


def is_address(text: str) -> bool:
    """Tell whether this is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def format_place(host: str, port: int) -> str:
    """Write ``host:port``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def unknown(expected: str, data: bytes) -> Reading:
    """Say of other bytes: ``not a DNS answer: 14 bytes beginning 48545450``."""
    if not data:
        return Reading(False, f"not {expected}: no bytes")
    count = "1 byte" if len(data) == 1 else f"{len(data)} bytes"
    return Reading(False, f"not {expected}: {count} beginning {data[:_SHOWN_BYTES].hex()}")


def make_template(
    request: bytes, answer: bytes | None = None, copies: Copies = ()
) -> wire.Template:
    """Make a template whose request ends with nonce and MAC, its answer with nonce, host, MAC."""
    mac_at = len(request) - wire.MAC_BYTES
    template = wire.Template(request, mac_at - wire.NONCE_BYTES, mac_at)
    if answer is None:
        return template
    mac_at = len(answer) - wire.MAC_BYTES
    host_at = mac_at - wire.HOST_BYTES
    nonce_at = host_at - wire.NONCE_BYTES
    return with_answer(
        template, answer, nonce_at=nonce_at, host_at=host_at, mac_at=mac_at, copies=copies
    )


def with_answer(
    template: wire.Template,
    answer: bytes,
    *,
    nonce_at: int,
    host_at: int,
    mac_at: int,
    copies: Copies = (),
) -> wire.Template:
    """Give a template the shape of its answer."""
    template.answer = answer
    template.answer_nonce_at = nonce_at
    template.answer_host_at = host_at
    template.answer_mac_at = mac_at
    template.answer_copies = copies
    return template


def add_length(message: bytes, transport: str) -> bytes:
    """Put the length in front where the transport is TCP, as DNS and OpenVPN do."""
    return len(message).to_bytes(LENGTH_BYTES, "big") + message if transport == "tcp" else message


def drop_length(data: bytes, transport: str) -> bytes:
    """Take away what ``add_length`` adds."""
    return data[LENGTH_BYTES:] if transport == "tcp" else data
