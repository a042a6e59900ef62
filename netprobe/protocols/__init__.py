"""What to send where plain bytes prove little, and how to read what comes back."""

from __future__ import annotations

from netprobe.protocols.base import Protocol, Reading
from netprobe.protocols.plain import Plain

__all__ = ["PROTOCOLS", "Protocol", "Reading", "protocol_for"]

_PLAIN: Protocol = Plain()

PROTOCOLS: dict[str, Protocol] = {"plain": _PLAIN}


def protocol_for(name: str | None, port: int | None = None) -> Protocol:
    """Find the protocol that a requirement's ``probe:`` names; plain bytes where it names none."""
    return PROTOCOLS.get(name or "plain", _PLAIN)
