"""Reads certificates and names in DER, and matches a certificate's names to a host as Go does."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from netprobe.protocols.base import printable

if TYPE_CHECKING:
    from cryptography import x509

NAME_LIMIT = 120
MOST_NAMES = 20
_TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
Invalidity = Literal["not yet valid", "expired"]
# The object identifiers of a name's parts, in DER.
_LABELS = {
    b"\x55\x04\x03": "CN", b"\x55\x04\x06": "C", b"\x55\x04\x07": "L",
    b"\x55\x04\x08": "ST", b"\x55\x04\x0a": "O", b"\x55\x04\x0b": "OU",
}  # fmt: skip


class Certificate(Struct, frozen=True):
    """The facts of one certificate; times are ISO 8601 in UTC. ``names`` are DNS names and IPs."""

    subject: str
    common_name: str
    issuer: str
    issuer_name: str
    names: tuple[str, ...]
    not_before: str
    not_after: str
    fingerprint: str

    @property
    def expired(self) -> bool:
        """Whether its time is over by our clock."""
        return self.invalidity_at(datetime.now(UTC)) == "expired"

    def invalidity_at(self, when: datetime) -> Invalidity | None:
        """Tell what is wrong with its dates for a clock that says ``when``; None: nothing."""
        now = when.strftime(_TIME_FORMAT)
        if now < self.not_before:
            return "not yet valid"
        return "expired" if now > self.not_after else None


def read_certificate(der: bytes) -> Certificate | None:
    """Read a certificate; None where it is none that can be read."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    try:
        read = x509.load_der_x509_certificate(der)
        begin, end = read.not_valid_before_utc, read.not_valid_after_utc
        return Certificate(
            subject=printable(read.subject.rfc4514_string(), NAME_LIMIT),
            common_name=_read_common_name(read.subject),
            issuer=printable(read.issuer.rfc4514_string(), NAME_LIMIT),
            issuer_name=_read_common_name(read.issuer),
            names=_read_names(read),
            not_before=begin.strftime(_TIME_FORMAT),
            not_after=end.strftime(_TIME_FORMAT),
            fingerprint=read.fingerprint(hashes.SHA256()).hex(),
        )
    except ValueError:
        return None


def read_pem(text: bytes) -> Certificate | None:
    """Read the first certificate of a file in PEM; None where it is none that can be read."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        return read_certificate(x509.load_pem_x509_certificate(text).public_bytes(Encoding.DER))
    except ValueError:
        return None


def names_host(names: Sequence[str], host: str) -> bool:
    """Whether a certificate with these names is valid for a host: Go looks at no common name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return any(_matches_name(name, host) for name in names)
    return str(address) in names


def _matches_name(name: str, host: str) -> bool:
    name, host = name.lower().rstrip("."), host.lower().rstrip(".")
    if not name.startswith("*."):
        return name == host
    first, _, rest = host.partition(".")
    return bool(first) and rest == name[2:]


def _read_common_name(name: x509.Name) -> str:
    from cryptography.x509.oid import NameOID

    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return printable(str(found[0].value), NAME_LIMIT) if found else ""


def _read_names(read: x509.Certificate) -> tuple[str, ...]:
    from cryptography import x509

    try:
        found = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    names = [printable(name, NAME_LIMIT) for name in found.get_values_for_type(x509.DNSName)]
    names += [str(address) for address in found.get_values_for_type(x509.IPAddress)]
    return tuple(names[:MOST_NAMES])


def read_name(data: bytes) -> str:
    """Read a distinguished name in DER, in its own order, such as ``OU=kubernetes, CN=signer``.

    Gives ``(unreadable)`` where it is none. ``cryptography`` reads names in certificates only, and
    a CertificateRequest carries them alone.
    """
    try:
        return ", ".join(_read_name_parts(data)) or "(empty)"
    except (IndexError, ValueError):
        return "(unreadable)"


def _read_name_parts(data: bytes) -> Iterator[str]:
    for sequence in _read_values(data):
        for one in _read_values(sequence):
            for pair in _read_values(one):
                oid, text = _read_values(pair)
                words = printable(text.decode("utf-8", "replace"), NAME_LIMIT)
                yield f"{_LABELS.get(oid, '?')}={words}"


def _read_values(data: bytes) -> Iterator[bytes]:
    """Read the content of every value at one level, whatever its tag is."""
    at = 0
    while at < len(data):
        length = data[at + 1]
        at += 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(data[at : at + size], "big")
            at += size
        if at + length > len(data):
            raise ValueError("cut off")
        yield data[at : at + length]
        at += length
