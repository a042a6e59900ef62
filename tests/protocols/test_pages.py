"""Whose page an answer is. The signs of real programs are held against them in the labs."""

from __future__ import annotations

import time

import pytest

from netprobe.protocols.services.http_exchange import BODY_LIMIT, HttpAnswer
from netprobe.protocols.services.pages import name_page

PORTAL = "a captive portal or a login page"


def answer(status: int = 200, body: str = "", **headers: str) -> HttpAnswer:
    """An answer with these headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpAnswer(status=status, body=body, headers=named, server=named.get("server", ""))


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (answer(body="ok"), ""),
        (answer(404, "404 page not found"), ""),
        (answer(302, location="https://x/login"), f"a redirect to https://x/login: {PORTAL}"),
        (answer(301, location="https://web/"), "a redirect to https://web/, on the same host"),
        (answer(301, location="/new"), "a redirect to /new, on the same host"),
        (answer(307, location="http://10.0.0.1/"), "a redirect to http://10.0.0.1/, another host"),
        (answer(302, location="http://[::1"), "a redirect to what is no URL (http://[::1)"),
        (answer(304), ""),
        (answer(200, location="https://x/"), ""),
        (answer(511, "sign on"), "a captive portal: the network wants a login"),
        (answer(body="<WISPAccessGatewayParam>"), "a captive portal (WISPr)"),
        (answer(body="<form><input name=x type='password'>"), "a login page, as of a"),
        (answer(403, x_squid_error="ERR_ACCESS_DENIED 0"), "squid's own error page, ERR_ACCESS"),
        (answer(407), "a proxy wants credentials"),
        (answer(502, proxy_status="edge; error=dns_error"), "a proxy's own answer, Proxy-Status"),
        (answer(200, proxy_status="edge"), ""),
        (answer(403, server="tinyproxy/1.11.1"), "tinyproxy's own error page"),
        (answer(503, "no healthy upstream"), "envoy's own answer"),
        (answer(body="<!DOCTYPE html><title> Hi </title>"), 'a page of HTML "Hi" where JSON was'),
        (answer(body="x", content_type="text/html; charset=x"), "a page of HTML where JSON was"),
        (answer(content_type="text/html"), ""),
    ],
)
def test_pages_are_named(found: HttpAnswer, words: str) -> None:
    """Each sign leads to its name, and an ordinary answer to none."""
    named = name_page(found, "web", "JSON")

    assert named.startswith(words)
    assert bool(named) == bool(words)


@pytest.mark.parametrize("piece", ["<title", "<input ", "<h1>503 A", "<", "log", "<input type="])
def test_no_page_takes_long(piece: str) -> None:
    """Whatever a page repeats, naming it takes no time to speak of."""
    found = answer(body=(piece * BODY_LIMIT)[:BODY_LIMIT], location=piece * 1000)
    start = time.process_time()

    name_page(found, "web", "JSON")

    assert time.process_time() - start < 5.0
