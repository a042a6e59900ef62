"""URLs of proxies, as Go reads them; their credentials reach no text."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from netprobe.errors import RequestError

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ProxyUrl:
    """A proxy. ``credentials`` are ``user:password`` or None; they never reach a text or a repr."""

    scheme: str
    host: str
    port: int
    credentials: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        hidden = "***@" if self.credentials is not None else ""
        return f"{self.scheme}://{hidden}{host}:{self.port}"


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
