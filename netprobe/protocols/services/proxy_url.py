"""URLs of proxies, as Go reads them; their credentials reach no text.

Whether Go sends a host through a proxy: golang.org/x/net/http/httpproxy, rule by rule.

kubelet, containerd and konnectivity-agent all use it. It differs from curl and from Python: a
leading dot means subdomains only, an entry without one means the name and its subdomains, CIDR
blocks count for addresses that are written as such, and the local host is never proxied.
"""

from __future__ import annotations

import base64
import html
import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus, unquote, urlsplit

from msgspec import Struct

from netprobe.errors import RequestError

PORTS = {"http": 80, "https": 443}
HIDDEN = "***"

IpNumber = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class ProxyUrl:
    """A proxy. ``credentials`` are ``user:password`` or None; they never reach a text or a repr."""

    scheme: str
    host: str
    port: int
    credentials: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        hidden = f"{HIDDEN}@" if self.credentials is not None else ""
        return f"{self.scheme}://{hidden}{host}:{self.port}"

    @property
    def token(self) -> str | None:
        """The credentials as the header carries them; None: there are none."""
        if self.credentials is None:
            return None
        return base64.b64encode(self.credentials.encode("utf-8")).decode("ascii")

    def hide(self, text: str) -> str:
        """Strike the credentials from what came through the proxy, which may repeat them."""
        secrets = sorted(self._list_secrets(), key=len, reverse=True)
        pattern = "|".join(map(re.escape, secrets))
        return re.sub(pattern, HIDDEN, text, flags=re.IGNORECASE) if pattern else text

    def _list_secrets(self) -> set[str]:
        """List what gives the credentials away, in every way in which programs write a text."""
        if self.credentials is None or self.token is None:
            return set()
        user, _, password = self.credentials.partition(":")
        secrets = {self.token, self.token.rstrip("=")}
        # Without a password the name is the secret, as of services that hand out tokens.
        for plain in (self.credentials, password or user):
            written = (
                plain, quote(plain), quote(plain, ""), quote_plus(plain), html.escape(plain),
                json.dumps(plain)[1:-1],
            )  # fmt: skip
            # Headers are read byte by byte.
            secrets |= {*written, *(one.encode("utf-8").decode("latin-1") for one in written)}
        return secrets - {""}


def parse_proxy(text: str, what: str) -> ProxyUrl:
    """Read a proxy URL as Go does: without a scheme it is http. Raises RequestError, which never
    repeats the text: it may hold a password."""
    words = f"{what}: expected a URL such as http://proxy.example.com:3128"
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        raise RequestError(words) from None
    if parts.scheme not in PORTS or not parts.hostname:
        raise RequestError(words)
    credentials = None
    if parts.username is not None:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return ProxyUrl(parts.scheme, parts.hostname, port, credentials)


class Decision(Struct, frozen=True):
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
