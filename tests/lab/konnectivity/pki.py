"""Certificates in the shape of the real ones: HyperShift's, the router's, the interceptor's."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

LABELS = {
    "CN": NameOID.COMMON_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
}
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Authority:
    """A self-signed authority."""

    name: x509.Name
    key: rsa.RSAPrivateKey
    certificate: x509.Certificate

    def pem(self) -> bytes:
        """Its certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def name(**parts: str) -> x509.Name:
    """A distinguished name from ``OU=..., CN=...`` in that order."""
    return x509.Name([x509.NameAttribute(LABELS[key], value) for key, value in parts.items()])


def authority(**parts: str) -> Authority:
    """A new authority of this name."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name(**parts))
        .issuer_name(name(**parts))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + 30 * DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    return Authority(name(**parts), key, builder.sign(key, hashes.SHA256()))


def issue(
    folder: Path,
    file: str,
    issuer: Authority,
    names: Sequence[str] = (),
    *,
    expired: bool = False,
    **parts: str,
) -> Path:
    """A certificate with its key in one PEM file, as HAProxy wants it."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    now = datetime.now(UTC)
    end = now - DAY if expired else now + 20 * DAY
    builder = (
        x509.CertificateBuilder()
        .subject_name(name(**parts))
        .issuer_name(issuer.name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 3 * DAY)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_general(text) for text in names]), critical=False
        )
    certificate = builder.sign(issuer.key, hashes.SHA256())
    path = folder / file
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


def _general(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
