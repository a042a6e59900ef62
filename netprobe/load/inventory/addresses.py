"""Addresses of hosts: IPv4, IPv6 in its canonical form, or names; anything else says why not."""

from __future__ import annotations

import ipaddress
import re

from netprobe.load.yaml.scalars import text_of
from netprobe.load.yaml.wording import quoted, what_it_is
from netprobe.model.inventory import Address

_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\Z")
_EXPECTED = "expected an IPv4 address, an IPv6 address or a name"

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_address(raw: object) -> Address:
    """Parse an address or a name; ValueError with a sentence where it is neither."""
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        raw = text_of(raw)
    if not isinstance(raw, str):
        raise ValueError(f"{what_it_is(raw)}, {_EXPECTED}")
    try:
        address = ipaddress.ip_address(raw)
    except ValueError:
        return Address(_parse_name(raw), None)
    return _of_one_host(address, raw)


def parse_ip(raw: object) -> Address:
    """Parse an IPv4 or IPv6 address and nothing else."""
    address = parse_address(raw)
    if address.family is None:
        raise ValueError(f"{quoted(raw)} is a name, expected an IPv4 or IPv6 address")
    return address


def _of_one_host(address: IPAddress, text: str) -> Address:
    """Give the address, unless no host can be probed at it."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            raise ValueError(f"{quoted(text)} is IPv4 inside IPv6, expected {address.ipv4_mapped}")
        if address.scope_id is not None:
            words = "has a zone, which means another link on every host"
            raise ValueError(f"{quoted(text)} {words}, expected an address without one")
        if address.is_link_local:
            words = "is link-local, which means another link on every host"
            raise ValueError(f"{quoted(text)} {words}, expected an address of a wider scope")
    if address.is_unspecified or address.is_multicast or text == "255.255.255.255":
        raise ValueError(f"{quoted(text)} is not the address of one host, {_EXPECTED}")
    return Address(str(address), 4 if address.version == 4 else 6)


def _parse_name(text: str) -> str:
    labels = text.removesuffix(".").split(".")
    if all(_LABEL.match(label) for label in labels) and len(text) <= 253:
        if labels[-1].isdigit():
            # A name that ends in a number is an IPv4 address that went wrong (RFC 1123, 2.1).
            raise ValueError(f"{quoted(text)} does not parse as an IPv4 address, {_EXPECTED}")
        return text
    raise ValueError(f"{quoted(text)} {_what_is_wrong(text)}, {_EXPECTED}")


def _what_is_wrong(text: str) -> str:
    mistakes = {"://": "is a URL", "/": "has a prefix length", "[": "has brackets"}
    for separator, what in mistakes.items():
        if separator in text:
            return what
    host, _, port = text.rpartition(":")
    if port.isdigit() and host and ":" not in host:
        return "has a port"
    if ":" in text:
        return "does not parse as an IPv6 address"
    if not text:
        return "is empty"
    return "does not parse"
