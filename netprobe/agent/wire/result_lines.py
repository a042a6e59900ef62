"""The lines of results: text that survives engines, each with a MAC that chains it to the last.

``NPR1 NUMBER MAC CONTENT``. Line 0 is the header; the content of the others is base85 of zlib of
messages, one a line. Base85 has neither spaces nor quotes nor backslashes.
"""

import json
from base64 import b85encode
from typing import Any, Dict, List, Tuple
from zlib import compress

from .batch import ResultHeader
from .frames import encode_message

try:
    from _blake2 import blake2b  # as templates.py does
except ImportError:
    from hashlib import blake2b

RESULT_PREFIX = "NPR1 "
MAC_LENGTH = 12


def chain_mac(key: bytes, before: bytes, number: int, content: bytes) -> bytes:
    """Give a line's MAC: over the one before (empty at first), its number and its content."""
    data = b"r%s %d %s" % (before, number, content)
    return b85encode(blake2b(data, key=key, digest_size=MAC_LENGTH).digest())


class LineMaker:
    """Makes the lines of one result file, one after the other."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._before = b""
        self._number = 0

    def begin(self, header: ResultHeader) -> bytes:
        """Give line 0."""
        return self._make_line(encode_header(header))

    def add(self, messages: List[Tuple[Any, ...]]) -> bytes:
        """Give the next line, which holds these messages."""
        return self._make_line(b85encode(compress(b"\n".join(map(encode_message, messages)), 9)))

    def _make_line(self, content: bytes) -> bytes:
        self._before = chain_mac(self._key, self._before, self._number, content)
        line = b"%s%d %s %s\n" % (
            RESULT_PREFIX.encode("ascii"), self._number, self._before, content,
        )  # fmt: skip
        self._number += 1
        return line


def encode_header(header: ResultHeader) -> bytes:
    """Give the header as JSON without spaces: a space ends a part of the line."""
    fields: Dict[str, Any] = dict(zip(header._fields, header))
    text = json.dumps(fields, separators=(",", ":"))
    return text.replace(" ", "\\u0020").encode("ascii")
