"""Reads the script of a host."""

import os
from typing import Any, List, NamedTuple, Tuple
from zlib import decompressobj, error

from ..wire.batch import BATCH_FORMAT, IN_SCRIPTS, PHASES, BatchStart, PhaseMark
from ..wire.codec import decode_message
from ..wire.frames import WIRE_VERSION

MOST_SCRIPT_BYTES = 256 * 1024 * 1024
READ_BYTES = 1024 * 1024


class Script(NamedTuple):
    """A host's script: phases in their order, each with its orders; names may repeat."""

    start: BatchStart
    phases: List[Tuple[str, List[Any]]]

    def orders(self, *names: str) -> List[List[Any]]:
        """Give the orders of these phases, those of each mark by themselves."""
        return [orders for name, orders in self.phases if name in names]


def read_script(packed: bytes) -> Script:
    """Read a packed script. Raises ValueError where it is none of this version."""
    try:
        unpacker = decompressobj()
        text = unpacker.decompress(packed, MOST_SCRIPT_BYTES)
    except error as wrong:
        raise ValueError("the script is damaged (%s)" % wrong) from None
    if not unpacker.eof:
        raise ValueError("the script is cut off, or larger than %d bytes" % MOST_SCRIPT_BYTES)
    messages = [decode_message(line, IN_SCRIPTS) for line in text.splitlines()]
    if not messages or not isinstance(messages[0], BatchStart):
        raise ValueError("a script begins with its start")
    start = messages[0]
    if (start.format, start.wire) != (BATCH_FORMAT, WIRE_VERSION):
        raise ValueError("the script is of another version of netprobe")
    return Script(start, _cut_phases(messages[1:]))


def _cut_phases(messages: List[Any]) -> List[Tuple[str, List[Any]]]:
    phases: List[Tuple[str, List[Any]]] = []
    for message in messages:
        if isinstance(message, BatchStart):
            raise ValueError("a script has one start")
        if isinstance(message, PhaseMark):
            if message.phase not in PHASES:
                raise ValueError("there is no phase %.40r" % (message.phase,))
            phases.append((message.phase, []))
        elif not phases:
            raise ValueError("an order stands before the first phase")
        else:
            phases[-1][1].append(message)
    return phases


def take_packed(descriptor: int) -> bytes:
    """Read a length as a line and so many bytes behind it. Raises ValueError where it ends."""
    digits = b""
    while not digits.endswith(b"\n"):
        byte = os.read(descriptor, 1)
        if not byte or len(digits) > 12:
            raise ValueError("no script came")
        digits += byte
    pieces: List[bytes] = []
    left = int(digits)
    while left:
        piece = os.read(descriptor, min(left, READ_BYTES))
        if not piece:
            raise ValueError("the script is cut off")
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
