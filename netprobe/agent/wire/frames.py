"""The words that both ends of the wire share: frames, markers, nonces and their MACs.

docs/decisions/0002-the-wire.md is the contract. The coordinator imports this module and
``failures``, and nothing else of the agent.
"""

import json
import struct
from base64 import b64decode, b64encode
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

try:
    # What hashlib and hmac give as well, but these load OpenSSL first, which takes some ms.
    from _blake2 import blake2b
    from _operator import _compare_digest as compare_digest
except ImportError:
    from hashlib import blake2b
    from hmac import compare_digest  # type: ignore[no-redef]

WIRE_VERSION = 1
READY_LINE = b"NETPROBE-READY"
HELLO_PREFIX = b"NETPROBE-HELLO "
NO_PYTHON_LINE = b"NETPROBE-NO-PYTHON"
NO_PYTHON_STATUS = 97

MAX_FRAME_BYTES = 16 * 1024 * 1024
QUEUE_LIMIT_BYTES = 1024 * 1024
BEAT_S = 5.0
SILENCE_S = 30.0

NONCE_BYTES = 8
MAC_BYTES = 16
HOST_BYTES = 2

_LENGTH = struct.Struct(">I")
# Made once: ``json.dumps`` with options of its own makes an encoder for every message.
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_NONCE = struct.Struct(">IHH")
_HOST = struct.Struct(">H")
_ANSWERER = struct.Struct(">HH")


class Nonce(NamedTuple):
    """What a nonce says of the probe that carries it."""

    order: int
    port: int
    attempt: int


def encode_frame(message: Dict[str, Any]) -> bytes:
    """One message as its length and its JSON."""
    body = _ENCODER.encode(message).encode("utf-8")
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Cut a stream of bytes into messages, whatever pieces it arrives in."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> List[Dict[str, Any]]:
        """Take more bytes and give every message that is now complete.

        Raises ValueError where a length cannot be true or the JSON is none.
        """
        self._buffer += data
        messages = []
        start = 0
        while len(self._buffer) - start >= 4:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            if length > MAX_FRAME_BYTES:
                raise ValueError("frame of %d bytes: not our peer" % length)
            if len(self._buffer) - start - 4 < length:
                break
            body = bytes(self._buffer[start + 4 : start + 4 + length])
            messages.append(json.loads(body.decode("utf-8")))
            start += 4 + length
        del self._buffer[:start]
        return messages


def pack_nonce(order: int, port: int, attempt: int) -> bytes:
    """8 bytes, unique per flow and attempt, because order ids are unique in a run."""
    return _NONCE.pack(order, port, attempt & 0xFFFF)


def read_nonce(nonce: bytes) -> Nonce:
    """The order, port and attempt that a nonce was made of."""
    return Nonce(*_NONCE.unpack(nonce))


def request_mac(key: bytes, nonce: bytes) -> bytes:
    """The MAC that a request carries, so that listeners answer only this run's probes."""
    return blake2b(b"q" + nonce, key=key, digest_size=MAC_BYTES).digest()


def answer_mac(key: bytes, nonce: bytes, host: int, port: int) -> bytes:
    """The MAC of an answer: over run key, nonce, answering host and the port that its listener is
    bound to; no reflector can make it."""
    data = b"a" + nonce + _ANSWERER.pack(host, port)
    return blake2b(data, key=key, digest_size=MAC_BYTES).digest()


class Template:
    """A request with holes for nonce and MAC, and the shape of its answer. See the wire document.

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
        """The request for one nonce, as it goes out."""
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
        """The answer to a genuine request at a port; only where the template has one."""
        assert self.answer is not None
        out = bytearray(self.answer)
        for to, start, length in self.answer_copies:
            out[to : to + length] = request[start : start + length]
        out[self.answer_nonce_at : self.answer_nonce_at + NONCE_BYTES] = nonce
        out[self.answer_host_at : self.answer_host_at + HOST_BYTES] = _HOST.pack(host)
        mac = answer_mac(key, nonce, host, port)
        out[self.answer_mac_at : self.answer_mac_at + MAC_BYTES] = mac
        return bytes(out)

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


def template_to_json(template: Template) -> Dict[str, Any]:
    """A template as it crosses the wire."""
    answer = None
    if template.answer is not None:
        answer = {
            "bytes": b64encode(template.answer).decode("ascii"),
            "copies": [list(copy) for copy in template.answer_copies],
            "nonce_at": template.answer_nonce_at,
            "host_at": template.answer_host_at,
            "mac_at": template.answer_mac_at,
        }
    return {
        "request": b64encode(template.request).decode("ascii"),
        "nonce_at": template.nonce_at,
        "mac_at": template.mac_at,
        "answer": answer,
    }


def template_from_json(item: Dict[str, Any]) -> Template:
    """The template that ``template_to_json`` wrote."""
    template = Template(b64decode(item["request"]), item["nonce_at"], item["mac_at"])
    answer = item["answer"]
    if answer is not None:
        template.answer = b64decode(answer["bytes"])
        template.answer_copies = tuple((to, start, n) for to, start, n in answer["copies"])
        template.answer_nonce_at = answer["nonce_at"]
        template.answer_host_at = answer["host_at"]
        template.answer_mac_at = answer["mac_at"]
    return template
