"""URLs of proxies, as Go reads them; their credentials reach no text."""

from __future__ import annotations

import base64
import html
import json
import re
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus, unquote, urlsplit

from netprobe.errors import RequestError

PORTS = {"http": 80, "https": 443}
HIDDEN = "***"


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
