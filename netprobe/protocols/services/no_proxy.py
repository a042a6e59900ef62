"""Whether Go sends a host through a proxy: golang.org/x/net/http/httpproxy, rule by rule.

kubelet, containerd and konnectivity-agent all use it. It differs from curl and from Python: a
leading dot means subdomains only, an entry without one means the name and its subdomains, CIDR
blocks count for addresses that are written as such, and the local host is never proxied.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

IpNumber = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Decision:
    """``proxied``, and the entry or rule that decided otherwise (None: the proxy is used)."""

    proxied: bool
    entry: str | None = None


def split(text: str) -> tuple[str, ...]:
    """List the entries of a NO_PROXY value, as they stand there."""
    return tuple(entry for entry in (part.strip() for part in text.split(",")) if entry)


def decide(host: str, port: int, entries: Sequence[str]) -> Decision:
    """Decide for a host (a name or an IP literal without brackets) and a port."""
    address = _parse_address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return Decision(False, "the local host is never proxied")
    name = _to_ascii(host.strip().lower())
    for entry in entries:
        if _matches_entry(entry.strip().lower(), name, port, address):
            return Decision(False, entry)
    return Decision(True)


def _matches_entry(entry: str, host: str, port: int, address: IpNumber | None) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    network = _parse_network(entry)
    if network is not None:
        return address is not None and address.version == network.version and address in network
    phrase, wanted = _split_port(entry)
    # Go compares ports as text: a word never matches, an empty port always does.
    if not phrase or wanted not in ("", str(port)):
        return False
    its_address = _parse_address(phrase)
    if its_address is not None:
        return address == its_address
    return _matches_domain(phrase, host)


def _matches_domain(phrase: str, host: str) -> bool:
    """``foo.com`` means itself and all below; ``.foo.com`` and ``*.foo.com`` only what is below."""
    phrase = _to_ascii(phrase.removeprefix("*") if phrase.startswith("*.") else phrase)
    if phrase.startswith("."):
        return host.endswith(phrase)
    return host == phrase or host.endswith(f".{phrase}")


def _split_port(entry: str) -> tuple[str, str]:
    """Split as net.SplitHostPort, which fails without a port: then all is the host, brackets too.

    So ``[fd00::1]`` matches nothing, while ``fd00::1`` and ``[fd00::1]:443`` do.
    """
    head, colon, tail = entry.rpartition(":")
    if head.startswith("[") and head.endswith("]"):
        return head[1:-1], tail
    if not colon or ":" in head or "]" in tail:
        return entry, ""
    return head, tail


def _parse_network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    # Go takes a prefix length only, Python a netmask too.
    if not entry.rpartition("/")[2].isdigit() or "/" not in entry:
        return None
    try:
        return ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return None


def _parse_address(text: str) -> IpNumber | None:
    if "%" in text:
        return None  # Go's ParseIP takes no zone
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    # Go's net.IP holds ::ffff:10.0.0.1 and 10.0.0.1 alike.
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


def _to_ascii(name: str) -> str:
    if name.isascii():
        return name
    try:
        return name.encode("idna").decode("ascii")
    except UnicodeError:
        return name
