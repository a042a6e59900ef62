"""Nonces, their MACs, and the templates of packets that carry them."""

import struct
from typing import NamedTuple, Optional, Tuple

from .parts import AnswerShape, NumberedTemplate

try:
    # What hashlib and hmac give as well, but these load OpenSSL first, which takes some ms.
    from _blake2 import blake2b
    from _operator import _compare_digest as compare_digest
except ImportError:
    from hashlib import blake2b
    from hmac import compare_digest  # type: ignore[no-redef]

NONCE_BYTES = 8
MAC_BYTES = 16
HOST_BYTES = 2

_NONCE = struct.Struct(">IHH")
_HOST = struct.Struct(">H")
_ANSWERER = struct.Struct(">HH")


class Nonce(NamedTuple):
    """What a nonce says of the probe that carries it."""

    order: int
    port: int
    attempt: int


def pack_nonce(order: int, port: int, attempt: int) -> bytes:
    """8 bytes, unique per flow and attempt, because order ids are unique in a run."""
    return _NONCE.pack(order, port, attempt & 0xFFFF)


def read_nonce(nonce: bytes) -> Nonce:
    """Read the order, port and attempt that a nonce was made of."""
    return Nonce(*_NONCE.unpack(nonce))


def request_mac(key: bytes, nonce: bytes) -> bytes:
    """Give the MAC that a request carries, so that listeners answer only this run's probes."""
    return blake2b(b"q" + nonce, key=key, digest_size=MAC_BYTES).digest()


def answer_mac(key: bytes, nonce: bytes, host: int, port: int) -> bytes:
    """The MAC of an answer: over run key, nonce, answering host and the port that its listener is
    bound to; no reflector can make it."""
    data = b"a" + nonce + _ANSWERER.pack(host, port)
    return blake2b(data, key=key, digest_size=MAC_BYTES).digest()


class Template:
    """A request with holes for nonce and MAC, and the shape of its answer (docs/wire.md).

    ``copies`` of the answer are [to, from, length]: bytes that it takes over from the request.
    """

    __slots__ = ("answer", "answer_copies", "answer_host_at", "answer_mac_at", "answer_nonce_at",
                 "mac_at", "nonce_at", "request")  # fmt: skip

    def __init__(self, request: bytes, nonce_at: Optional[int], mac_at: Optional[int]) -> None:
        self.request = request
        self.nonce_at = nonce_at
        self.mac_at = mac_at
        self.answer: Optional[bytes] = None
        self.answer_copies: Tuple[Tuple[int, int, int], ...] = ()
        self.answer_nonce_at = 0
        self.answer_host_at = 0
        self.answer_mac_at = 0

    def fill(self, key: bytes, nonce: bytes) -> bytes:
        """Give the request for one nonce, as it goes out."""
        if self.nonce_at is None:
            return self.request
        out = bytearray(self.request)
        out[self.nonce_at : self.nonce_at + NONCE_BYTES] = nonce
        if self.mac_at is not None:
            out[self.mac_at : self.mac_at + MAC_BYTES] = request_mac(key, nonce)
        return bytes(out)

    def recognise(self, key: bytes, data: bytes) -> Optional[bytes]:
        """The nonce of a request that is genuine, else None. A listener answers nothing else."""
        if self.nonce_at is None or len(data) < len(self.request):
            return None
        nonce = bytes(data[self.nonce_at : self.nonce_at + NONCE_BYTES])
        if self.mac_at is not None:
            mac = bytes(data[self.mac_at : self.mac_at + MAC_BYTES])
            if not compare_digest(mac, request_mac(key, nonce)):
                return None
        elif self.fill(key, nonce) != bytes(data[: len(self.request)]):
            # No room for a MAC: at least everything around the nonce must be what we send.
            return None
        return nonce

    def reply(self, key: bytes, nonce: bytes, host: int, port: int, request: bytes) -> bytes:
        """Give the answer to a genuine request at a port; only where the template has one."""
        assert self.answer is not None
        out = bytearray(self.answer)
        for to, start, length in self.answer_copies:
            out[to : to + length] = request[start : start + length]
        out[self.answer_nonce_at : self.answer_nonce_at + NONCE_BYTES] = nonce
        out[self.answer_host_at : self.answer_host_at + HOST_BYTES] = _HOST.pack(host)
        mac = answer_mac(key, nonce, host, port)
        out[self.answer_mac_at : self.answer_mac_at + MAC_BYTES] = mac
        return bytes(out)

    def answer_begin(self) -> bytes:
        """Give the first bytes of every answer: up to the nonce, or to what the request decides.

        What a real service answers is not known at all.
        """
        if self.answer is None:
            return b"" if self.nonce_at is None else self.request[: self.nonce_at]
        copied = [to for to, _, _ in self.answer_copies]
        return self.answer[: min((self.answer_nonce_at, *copied))]

    def answering_host(self, key: bytes, nonce: bytes, data: bytes) -> Optional[int]:
        """Which host answered this nonce with a true MAC; None: nobody of ours did, at the port
        that was asked."""
        if self.answer is None or len(data) < len(self.answer):
            return None
        if bytes(data[self.answer_nonce_at : self.answer_nonce_at + NONCE_BYTES]) != nonce:
            return None
        (host,) = _HOST.unpack_from(data, self.answer_host_at)
        mac = bytes(data[self.answer_mac_at : self.answer_mac_at + MAC_BYTES])
        genuine = answer_mac(key, nonce, host, read_nonce(nonce).port)
        return host if compare_digest(mac, genuine) else None


def number_template(number: int, template: Template) -> NumberedTemplate:
    """Give a template as it crosses the wire, under the number that orders name it by."""
    answer = None
    if template.answer is not None:
        answer = AnswerShape(
            template.answer,
            list(template.answer_copies),
            template.answer_nonce_at,
            template.answer_host_at,
            template.answer_mac_at,
        )
    return NumberedTemplate(number, template.request, template.nonce_at, template.mac_at, answer)


def template_of(item: NumberedTemplate) -> Template:
    """Give the template that ``number_template`` made an item of."""
    template = Template(item.request, item.nonce_at, item.mac_at)
    if item.answer is not None:
        template.answer = item.answer.content
        template.answer_copies = tuple(item.answer.copies)
        template.answer_nonce_at = item.answer.nonce_at
        template.answer_host_at = item.answer.host_at
        template.answer_mac_at = item.answer.mac_at
    return template
