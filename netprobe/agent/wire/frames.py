"""Frames: four bytes of length, then one message as a JSON array (docs/wire.md)."""

import json
import struct
from base64 import b64encode
from typing import Any, Dict, Iterator

from .codec import decode_message

WIRE_VERSION = 10
READY_LINE = b"NETPROBE-READY"
HELLO_PREFIX = b"NETPROBE-HELLO "
NO_PYTHON_LINE = b"NETPROBE-NO-PYTHON"
NO_PYTHON_STATUS = 97
# What the host's ps and ss show, and by which another run knows an agent; at most 15 characters.
PROCESS_NAME = "netprobe-agent"

MAX_FRAME_BYTES = 16 * 1024 * 1024
QUEUE_LIMIT_BYTES = 1024 * 1024
BEAT_S = 5.0
SILENCE_S = 30.0
# An agent reads what arrives in one turn of its loop in the next turn at the latest. So two pauses
# together can hide an answer, and a busy machine's many others cannot.
HIDING_PAUSES = 2

_LENGTH = struct.Struct(">I")


def _encode_bytes(value: bytes) -> str:
    return b64encode(value).decode("ascii")


# Made once: ``json.dumps`` with options of its own makes an encoder for every message. JSON knows
# tuples, so that records need no step of their own; of all values only bytes do.
_ENCODER = json.JSONEncoder(separators=(",", ":"), default=_encode_bytes)


def encode_message(message: Any) -> bytes:
    """Give one message as JSON: its kind, then its fields in the order of their definition."""
    return _ENCODER.encode((type(message).__name__, *message)).encode("utf-8")


def encode_frame(message: Any) -> bytes:
    """Give one message as a frame: its length, then its JSON."""
    body = encode_message(message)
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Cut a stream of bytes into messages, whatever pieces it arrives in.

    ``known`` are the messages that this end understands: ``ORDERS`` or ``ANSWERS``.
    """

    def __init__(self, known: Dict[str, Any]) -> None:
        self._known = known
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Take more bytes and give every message that is now complete.

        Raises ValueError where a length cannot be true or a message is not as it is defined.
        """
        self._buffer += data
        start = 0
        try:
            while len(self._buffer) - start >= 4:
                (length,) = _LENGTH.unpack_from(self._buffer, start)
                if length > MAX_FRAME_BYTES:
                    raise ValueError("frame of %d bytes: not our peer" % length)
                if len(self._buffer) - start - 4 < length:
                    break
                body = bytes(self._buffer[start + 4 : start + 4 + length])
                start += 4 + length
                yield decode_message(body, self._known)
        finally:
            del self._buffer[:start]
