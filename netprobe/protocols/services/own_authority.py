"""The run's own authority: it signs a certificate for each back end that is played.

All of it is in memory, and for minutes. A certificate that a source sees tells which back end has
answered: its key is nowhere else.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct

from netprobe.protocols.services.tls_server import make_server_context

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

AUTHORITY = "netprobe rehearsal"
# A kube-apiserver would also offer h2; checks of balancers and our own dials speak HTTP/1.1.
ALPN = ("http/1.1",)
# Clocks of hosts differ.
SLACK = timedelta(hours=1)


class BackEndIdentity(Struct, frozen=True):
    """A back end's certificate in DER, and the context that speaks for it."""

    certificate: bytes
    context: ssl.SSLContext


def make_identities(names: Iterable[str]) -> Mapping[str, BackEndIdentity]:
    """Sign a certificate for each of these back ends."""
    from cryptography.hazmat.primitives.asymmetric import ec

    authority = ec.generate_private_key(ec.SECP256R1())
    return {name: _sign_name(name, serial, authority) for serial, name in enumerate(names, 1)}


def _sign_name(name: str, serial: int, authority: ec.EllipticCurvePrivateKey) -> BackEndIdentity:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )
    from cryptography.x509.oid import NameOID

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, AUTHORITY)])
    # A common name has at most 64 characters.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{serial}.{name}"[:64])])
    signed = (
        x509.CertificateBuilder(issuer, subject, key.public_key(), serial)
        .not_valid_before(now - SLACK)
        .not_valid_after(now + SLACK)
        .sign(authority, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    context = make_server_context(signed.public_bytes(Encoding.PEM), pem, ALPN)
    return BackEndIdentity(signed.public_bytes(Encoding.DER), context)
