"""Distinguished names in DER, as a CertificateRequest carries them: ``OU=kubernetes, CN=signer``.

``cryptography`` reads names only inside certificates.
"""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.protocols.base import printable

SEQUENCE = 0x30
SET = 0x31
_LABELS = {
    b"\x55\x04\x03": "CN",
    b"\x55\x04\x06": "C",
    b"\x55\x04\x07": "L",
    b"\x55\x04\x08": "ST",
    b"\x55\x04\x0a": "O",
    b"\x55\x04\x0b": "OU",
}
NAME_LIMIT = 120


def read_name(data: bytes) -> str:
    """A distinguished name as text, in its own order; ``(unreadable)`` where it is none."""
    try:
        return ", ".join(_name_parts(data)) or "(empty)"
    except (IndexError, ValueError):
        return "(unreadable)"


def _name_parts(data: bytes) -> Iterator[str]:
    for _, sequence in _read_values(data):
        for _, one in _read_values(sequence):
            for _, pair in _read_values(one):
                (_, oid), (_, text) = tuple(_read_values(pair))
                label = _LABELS.get(oid, "?")
                yield f"{label}={printable(text.decode('utf-8', 'replace'), NAME_LIMIT)}"


def _read_values(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Every tag and content at one level."""
    at = 0
    while at < len(data):
        tag, length = data[at], data[at + 1]
        at += 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(data[at : at + size], "big")
            at += size
        if at + length > len(data):
            raise ValueError("cut off")
        yield tag, data[at : at + length]
        at += length
