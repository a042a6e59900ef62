"""Go's NO_PROXY rules, as golang.org/x/net/http/httpproxy has them; curl's and Python's differ."""

from __future__ import annotations

import pytest

from netprobe.protocols.services.proxy_url import Decision, decide, split


@pytest.mark.parametrize(
    ("entries", "host", "port", "proxied"),
    [
        # A name means itself and all below it, a leading dot or star only what is below.
        ("example.com", "example.com", 443, False),
        ("example.com", "a.b.example.com", 443, False),
        ("example.com", "notexample.com", 443, True),
        (".example.com", "example.com", 443, True),
        (".example.com", "a.example.com", 443, False),
        ("*.example.com", "example.com", 443, True),
        ("*.example.com", "a.example.com", 443, False),
        ("*example.com", "a.example.com", 443, True),
        ("EXAMPLE.com", "A.example.COM", 443, False),
        # A star alone is everything, wherever it stands.
        ("*", "anything", 1, False),
        ("a, *", "10.0.0.1", 443, False),
        # Ports are compared as text; an empty one is any.
        ("example.com:443", "example.com", 443, False),
        ("example.com:443", "example.com", 8091, True),
        ("example.com:0443", "example.com", 443, True),
        ("example.com:", "example.com", 443, False),
        ("example.com:https", "example.com", 443, True),
        (":443", "example.com", 443, True),
        # Addresses and blocks count for hosts that are written as addresses.
        ("10.0.0.1", "10.0.0.1", 443, False),
        ("10.0.0.1:8091", "10.0.0.1", 8091, False),
        ("10.0.0.1:8091", "10.0.0.1", 443, True),
        ("10.0.0.0/8", "10.1.2.3", 443, False),
        ("10.0.0.9/8", "10.1.2.3", 443, False),
        ("10.0.0.0/8", "11.0.0.1", 443, True),
        ("10.0.0.0/8", "node.example.com", 443, True),
        ("10.0.0.0/255.0.0.0", "10.1.2.3", 443, True),
        ("10.0.0.0/99", "10.1.2.3", 443, True),
        ("fd00::/8", "fd00::1", 443, False),
        ("fd00::/8", "10.0.0.1", 443, True),
        ("fd00::1", "fd00::1", 443, False),
        ("[fd00::1]:443", "fd00::1", 443, False),
        ("[fd00::1]:443", "fd00::1", 8091, True),
        # In brackets without a port Go finds no address in it.
        ("[fd00::1]", "fd00::1", 443, True),
        ("::ffff:10.0.0.1", "10.0.0.1", 443, False),
        # The local host is never proxied, and needs no entry.
        ("", "localhost", 7132, False),
        ("", "127.0.0.1", 7132, False),
        ("", "127.9.9.9", 7132, False),
        ("", "::1", 7132, False),
        ("", "localhost.example.com", 7132, True),
        ("", "example.com", 443, True),
        (" , ,", "example.com", 443, True),
        (".hypershift.local", "konnectivity-server.apps.hc1.hypershift.local", 443, False),
        ("bücher.example", "xn--bcher-kva.example", 443, False),
    ],
)
def test_as_go_decides(entries: str, host: str, port: int, proxied: bool) -> None:
    """Each rule of the package, by an example."""
    assert decide(host, port, split(entries)).proxied is proxied


def test_the_entry_that_decided_is_told() -> None:
    """The report names it as it stands in NO_PROXY."""
    entries = split("10.0.0.0/8, .Example.com ,x")
    assert decide("a.example.com", 443, entries) == Decision(False, ".Example.com")
    assert decide("b.test", 443, entries) == Decision(True)
    assert decide("localhost", 443, entries).entry == "the local host is never proxied"
