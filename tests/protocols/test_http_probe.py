"""Requests of a matrix's own: what is right, and the one thing that is said where it is not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netprobe.model.matrix import HttpProbe, probe_to_file
from netprobe.protocols import protocol_for
from netprobe.protocols.services.hearing import ServiceReply
from netprobe.protocols.services.http_exchange import HttpAnswer
from netprobe.protocols.services.http_probe import make_service
from netprobe.protocols.services.services import SERVICES, service_for
from netprobe.protocols.services.tls import SeenHandshake

PROBE = HttpProbe(
    "/x", ((200, 200), (400, 403)), (("Content-Type", "^application/json"),), r'"up"|"ok\d"'
)
RIGHT = HttpAnswer(
    status=200, text='{"a": "up"}', fields={"content-type": ("application/json; charset=utf-8",)}
)
TWICE = replace(RIGHT, fields={"x-ver": ("1.2", "other")})
LONG = replace(RIGHT, fields={"x-ver": ("a" * 300 + "needle" + "b" * 300,)})


@pytest.mark.parametrize(
    ("probe", "answer", "lack"),
    [
        (PROBE, RIGHT, ""),
        (PROBE, replace(RIGHT, status=401), ""),
        (PROBE, replace(RIGHT, text='{"a": "ok7"}'), ""),
        (PROBE, replace(RIGHT, status=404), "status 404 where 200 or 400 to 403 was expected"),
        (PROBE, replace(RIGHT, fields={}), "the header Content-Type is missing"),
        (
            PROBE,
            replace(RIGHT, fields={"content-type": ("text/html",)}),
            'the header Content-Type is "text/html" where "^application/json" was expected',
        ),
        (PROBE, replace(RIGHT, text="down"), 'is not in the body'),
        (PROBE, replace(RIGHT, text="x", is_cut=True), "is not in the first 64 KiB of the body"),
        # What stands there literally is right too.
        (HttpProbe(body="ok (200)"), replace(RIGHT, text="it is ok (200)"), ""),
        # Any of the values of a name counts, and all of it.
        (HttpProbe(header=(("X-Ver", r"^1\.2$"),)), TWICE, ""),
        (HttpProbe(header=(("X-Ver", "^other$"),)), TWICE, ""),
        (
            HttpProbe(header=(("X-Ver", "^2"),)), TWICE,
            'the header X-Ver is "1.2, other" where "^2" was expected',
        ),
        (HttpProbe(header=(("X-Ver", "needleb+$"),)), LONG, ""),
        (HttpProbe(header=(("X-Ver", "nothing"),)), LONG, 'aaa..." where "nothing" was expected'),
        # A proxy's own page may have the status that is right.
        (
            HttpProbe(status=((403, 403),)),
            HttpAnswer(status=403, headers={"x-squid-error": "ERR_ACCESS_DENIED 0"}),
            "status 403 is not the service's",
        ),
        (HttpProbe(http2=True), replace(RIGHT, http2=True), ""),
        (HttpProbe(http2=True), RIGHT, "HTTP/2 is not spoken (without TLS it was answered in"),
    ],
)  # fmt: skip
def test_what_an_answer_lacks(probe: HttpProbe, answer: HttpAnswer, lack: str) -> None:
    """A right answer is recognised; of a wrong one the first lack is said."""
    service = make_service(probe)
    heard = ServiceReply(answer=answer)

    assert (service.recognise(heard) is None) == bool(lack)
    assert lack in service.differs(heard)
    assert service.describe(heard, None).startswith(service.differs(heard))


def test_alpn_is_named_where_http2_is_missing() -> None:
    """In TLS the server chose."""
    seen = SeenHandshake(done=True, alpn="http/1.1")
    heard = ServiceReply(seen=seen, answer=RIGHT)

    words = make_service(HttpProbe(http2=True)).differs(heard)
    assert words == "HTTP/2 is not spoken (ALPN chose http/1.1)"


@pytest.mark.parametrize(
    ("tls", "expected"), [(None, (True, True)), (True, (True, False)), (False, (False, False))]
)
def test_tls_is_as_the_matrix_says(tls: bool | None, expected: tuple[bool, bool]) -> None:
    """Without a word both ways are right, and TLS is tried first."""
    service = make_service(HttpProbe(tls=tls))

    assert (service.speaks_tls(8081), service.either) == expected


def test_what_any_server_answers_shows_nobody() -> None:
    """A status alone never excuses a port that somebody else holds."""
    assert make_service(HttpProbe(status=((200, 200),))).vague
    assert not make_service(HttpProbe(body="x")).vague
    assert not make_service(HttpProbe(header=(("A", "b"),))).vague


def test_a_listener_of_ours_gets_plain_bytes() -> None:
    """Before the installation nobody there speaks HTTP."""
    assert protocol_for(PROBE, 8080).name == "plain"


def test_service_for_knows_both_kinds() -> None:
    """A name of netprobe's, a request of the matrix's own, and what is neither."""
    found = service_for(PROBE)

    assert found is not None
    assert found.paths == ("/x",)
    assert service_for("registry") is SERVICES["registry"]
    assert service_for("dns") is service_for(None) is None


def test_a_probe_goes_back_into_a_file() -> None:
    """As ``matrix show -o json`` prints it."""
    assert probe_to_file(PROBE) == {
        "http": {
            "path": "/x",
            "status": [200, "400-403"],
            "header": {"Content-Type": "^application/json"},
            "body": PROBE.body,
            "http2": False,
        }
    }
    assert probe_to_file("dns") == "dns"


LOGIN = HttpAnswer(status=200, body='<title>Hi</title><form><input type="password"></form>')


@pytest.mark.parametrize(
    ("probe", "answer", "doubted"),
    [
        (HttpProbe(), LOGIN, True),
        (HttpProbe(), replace(LOGIN, body="<WISPAccessGatewayParam>"), True),
        (HttpProbe(), RIGHT, False),
        # The matrix said what is right.
        (HttpProbe(body="password"), LOGIN, False),
        (HttpProbe(header=(("Server", "x"),)), LOGIN, False),
    ],
)
def test_a_login_page_is_doubted(probe: HttpProbe, answer: HttpAnswer, doubted: bool) -> None:
    """Its status is right, and yet it is seldom the service."""
    words = make_service(probe).doubts(ServiceReply(answer=answer))

    assert bool(words) is doubted
    if answer is LOGIN and doubted:
        assert words == (
            'it is a login page "Hi", as of a captive portal; where that is right, say so with '
            "body: or header:"
        )
