"""Whose page an HTTP answer is, where it is not the one that was asked for.

Captive portals, login pages and proxies answer in the place of a service. Every sign is one that
the program itself leaves; the labs hold them against the real programs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from netprobe.protocols.base import printable
from netprobe.protocols.services.http_exchange import HttpAnswer

SHOWN_PLACE = 100
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,120})", re.IGNORECASE)
_HTML = re.compile(r"<(!doctype html|html|head|body|h1|title)\b", re.IGNORECASE)
_PASSWORD = re.compile(r"<input\b[^>]{0,300}\btype\s*=\s*['\"]?password", re.IGNORECASE)
_LOGIN_PATH = re.compile(r"log-?in|sign-?in|auth|portal|sso|captive", re.IGNORECASE)
_HAPROXY = re.compile(
    r"<h1>(\d{3}) [A-Z][A-Za-z -]+</h1> ?("
    r"No server is available to handle this request|"
    r"The server returned an invalid or incomplete response|"
    r"The server didn't respond in time|"
    r"Request forbidden by administrative rules|"
    r"Your browser sent an invalid request)"
)
_ENVOY = re.compile(r"^(upstream connect error or disconnect/reset before headers|no healthy upst)")


# What is said of an answer, and by what it is known: docs/http-services.md prints it.
SIGNS: Final[Mapping[str, str]] = {
    "a redirect to another host, a captive portal or a login page": "`Location`; its words "
    "(login, auth, sso, portal ...). Redirects are never followed",
    "a captive portal": "status 511 (RFC 6585), WISPr's XML",
    "a login page, a page of HTML where JSON was expected": "a field for a password; "
    "`Content-Type` or the first tag",
    "squid's own error page, `ERR_...`": "`X-Squid-Error`",
    "a proxy wants credentials": "status 407, `Proxy-Authenticate`",
    "haproxy's, tinyproxy's, envoy's own answer; a proxy's, by `Proxy-Status` (RFC 9209)": "the "
    "words that these programs send, `Server`",
    "HTTP/2 is not spoken; it speaks HTTP/2 only": "ALPN; anything but a SETTINGS frame where one "
    "should be; one where a status line should be",
    "status, header or body is not what was expected": "the matrix",
}


def name_page(answer: HttpAnswer, name: str | None, wants: str = "") -> str:
    """Name whose answer it is and what it is; empty where nothing tells.

    ``name`` is the host that was asked for; ``wants`` the kind of body that was expected.
    """
    for read in (_read_proxy, _read_portal, _read_redirect, _read_login):
        words = read(answer, name)
        if words:
            return words
    return _read_html(answer, wants)


def name_proxy(answer: HttpAnswer) -> str:
    """Name the proxy that answered by itself, by a header that no service sends; else empty."""
    squid = answer.headers.get("x-squid-error", "")
    if squid:
        return f"squid's own error page, {squid.split(' ')[0]}"
    if "error=" in answer.headers.get("proxy-status", ""):
        return f"a proxy's own answer, Proxy-Status: {answer.headers['proxy-status']}"
    return "tinyproxy's own error page" if answer.server.startswith("tinyproxy") else ""


def name_login(answer: HttpAnswer) -> str:
    """Name the page where somebody is to log in, by its own marks; else empty."""
    return _read_portal(answer, None) or _read_login(answer, None)


def _read_proxy(answer: HttpAnswer, name: str | None) -> str:
    """Name the proxy or balancer that answered by itself."""
    if answer.status == 407:
        schemes = f" ({', '.join(answer.schemes)})" if answer.schemes else ""
        return f"a proxy wants credentials{schemes}"
    haproxy = _HAPROXY.search(answer.body)
    if haproxy is not None:
        return f"haproxy's own page, {haproxy[2][0].lower()}{haproxy[2][1:]}"
    if _ENVOY.match(answer.body):
        return "envoy's own answer: it did not get to the service"
    return name_proxy(answer)


def _read_portal(answer: HttpAnswer, name: str | None) -> str:
    if answer.status == 511:
        return "a captive portal: the network wants a login (RFC 6585)"
    if "<WISPAccessGatewayParam" in answer.body:
        return "a captive portal (WISPr)"
    return ""


def _read_redirect(answer: HttpAnswer, name: str | None) -> str:
    place = answer.headers.get("location", "")
    if answer.status is None or not 300 <= answer.status < 400 or not place:
        return ""
    shown = printable(place, SHOWN_PLACE)
    try:
        parts = urlsplit(place)
        host = parts.hostname
    except ValueError:
        return f"a redirect to what is no URL ({shown})"
    if _LOGIN_PATH.search(place):
        return f"a redirect to {shown}: a captive portal or a login page"
    if host is None or host == name:
        return f"a redirect to {shown}, on the same host"
    return f"a redirect to {shown}, another host, as a captive portal makes it"


def _read_login(answer: HttpAnswer, name: str | None) -> str:
    if not _PASSWORD.search(answer.body):
        return ""
    return f"a login page{_word_title(answer)}, as of a captive portal"


def _read_html(answer: HttpAnswer, wants: str) -> str:
    kind = answer.headers.get("content-type", "").lower()
    if not (kind.startswith("text/html") and answer.body) and not _HTML.match(answer.body):
        return ""
    where = f" where {wants} was expected" if wants else ""
    return f"a page of HTML{_word_title(answer)}{where}"


def _word_title(answer: HttpAnswer) -> str:
    title = _TITLE.search(answer.body)
    return "" if title is None else f' "{printable(title[1].strip())}"'
