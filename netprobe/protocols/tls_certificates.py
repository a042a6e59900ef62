"""Reads certificates, and matches their names to a host as Go does."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from netprobe.protocols.base import printable

if TYPE_CHECKING:
    from cryptography import x509

NAME_LIMIT = 120
MOST_NAMES = 20


@dataclass(frozen=True, slots=True)
class Certificate:
    """The facts of one certificate; times are ISO 8601 in UTC. ``names`` are DNS names and IPs."""

    subject: str
    common_name: str
    issuer: str
    issuer_name: str
    names: tuple[str, ...]
    not_before: str
    not_after: str
    fingerprint: str
    expired: bool
    early: bool


def read_certificate(der: bytes) -> Certificate | None:
    """Read a certificate; None where it is none that can be read."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    try:
        read = x509.load_der_x509_certificate(der)
        now = datetime.now(UTC)
        return Certificate(
            subject=_name_text(read.subject),
            common_name=_common_name(read.subject),
            issuer=_name_text(read.issuer),
            issuer_name=_common_name(read.issuer),
            names=_names_of(read),
            not_before=_to_iso(read.not_valid_before_utc),
            not_after=_to_iso(read.not_valid_after_utc),
            fingerprint=read.fingerprint(hashes.SHA256()).hex(),
            expired=now > read.not_valid_after_utc,
            early=now < read.not_valid_before_utc,
        )
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


def _name_text(name: x509.Name) -> str:
    return printable(name.rfc4514_string(), NAME_LIMIT)


def _common_name(name: x509.Name) -> str:
    from cryptography.x509.oid import NameOID

    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return printable(str(found[0].value), NAME_LIMIT) if found else ""


def _names_of(read: x509.Certificate) -> tuple[str, ...]:
    from cryptography import x509

    try:
        found = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    names = [printable(name, NAME_LIMIT) for name in found.get_values_for_type(x509.DNSName)]
    names += [str(address) for address in found.get_values_for_type(x509.IPAddress)]
    return tuple(names[:MOST_NAMES])


def _to_iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
