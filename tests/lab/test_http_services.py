"""Web servers told apart in a run, with curl as the truth: HTTP/2, redirects, portals, proxies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.opening import open_lab
from tests.lab.web import HTTP2, HTTP2_PLAIN, PASSWORD, PYTHON, WEB, WebWorld

pytestmark = pytest.mark.slow

JSON = {"Content-Type": "^application/json"}
UP = {"path": "/api/health", "status": 200, "header": JSON, "body": '"status": ?"up"'}
GOOD = ("pass", "service")
OTHER = ("inconclusive", "handshake")


@pytest.fixture(scope="module")
def world() -> Iterator[WebWorld]:
    """The lab, with the programs that it needs."""
    with open_lab(WebWorld(), "haproxy", "squid", "nghttpd", "curl") as lab:
        yield lab


def http(port: int, **keys: Any) -> dict[str, Any]:
    """A row with a request of its own."""
    return {"tcp": [port], "probe": {"http": keys}}


# What is asked, what netprobe must say, and what curl sees: status and version of HTTP.
CASES: list[tuple[dict[str, Any], tuple[str, str], str, tuple[str, int, str]]] = [
    (http(9001, **UP), GOOD, "GET /api/health: 200 as the matrix says, without TLS",
     ("http://{}:9001/api/health", 200, "1.1")),
    (http(9002, **UP, tls=True), GOOD, "GET /api/health: 200 as the matrix says",
     ("https://{}:9002/api/health", 200, "1.1")),
    (http(HTTP2, path="/api/health", http2=True, body="up"), GOOD,
     "GET /api/health: HTTP/2 200 as the matrix says",
     (f"https://{{}}:{HTTP2}/api/health", 200, "2")),
    (http(9002, **UP, http2=True), OTHER, "HTTP/2 is not spoken (ALPN chose http/1.1)",
     ("https://{}:9002/api/health", 200, "1.1")),
    (http(HTTP2_PLAIN, path="/api/health", tls=False), OTHER,
     "it speaks HTTP/2 only, and HTTP/1.1 was asked for",
     (f"http://{{}}:{HTTP2_PLAIN}/api/health", 0, "0")),
    (http(HTTP2_PLAIN, path="/api/health", tls=False, http2=True), GOOD,
     "GET /api/health: HTTP/2 200 as the matrix says",
     (f"h2c://{{}}:{HTTP2_PLAIN}/api/health", 200, "2")),
    (http(PYTHON, path="/api/health", http2=True, tls=False), OTHER,
     'HTTP/2 is not spoken: it answers "<!DOCTYPE',
     (f"http://{{}}:{PYTHON}/api/health", 200, "1")),
    (http(PYTHON, path="/api/health", http2=True), OTHER,
     'HTTP/2 is not spoken: it answers "<!DOCTYPE',
     (f"http://{{}}:{PYTHON}/api/health", 200, "1")),
    (http(9003, **UP), OTHER,
     "status 302 where 200 was expected: HTTP 302 Found: a redirect to "
     "https://sso.lab.test/authorize?client=web: a captive portal or a login page",
     ("http://{}:9003/api/health", 302, "1.1")),
    (http(9004, **UP), OTHER, "haproxy's own page, no server is available to handle this request",
     ("http://{}:9004/api/health", 503, "1.1")),
    (http(9005, **UP), OTHER, 'a login page "Welcome guest", as of a captive portal',
     ("http://{}:9005/api/health", 200, "1.1")),
    (http(9006, **UP), OTHER, 'a page of HTML "It works" where JSON was expected',
     ("http://{}:9006/api/health", 200, "1.1")),
    (http(9001, path="/api/health", body="down"), OTHER, '"down" is not in the body',
     ("http://{}:9001/api/health", 200, "1.1")),
    (http(9001, path="/api/health", header={"X-Own": "."}), OTHER, "the header X-Own is missing",
     ("http://{}:9001/api/health", 200, "1.1")),
    (http(9001, path="/nowhere", status=404), GOOD, "GET /nowhere: 404 as the matrix says",
     ("http://{}:9001/nowhere", 404, "1.1")),
    (http(9001, path="/nowhere"), OTHER, "status 404 where 200 to 299 was expected",
     ("http://{}:9001/nowhere", 404, "1.1")),
    (http(9001, **UP, tls=True), OTHER, 'said "HTTP/1.1 400 Bad',
     ("http://{}:9001/api/health", 200, "1.1")),
    ({"tcp": [9001], "probe": "metrics"}, GOOD, "metrics: 200 in Prometheus's format",
     ("http://{}:9001/metrics", 200, "1.1")),
    ({"tcp": [9006], "probe": "metrics"}, OTHER, "a page of HTML \"It works\" where metrics",
     ("http://{}:9006/metrics", 200, "1.1")),
    ({"tcp": [6443], "probe": "kube-apiserver"}, GOOD, "kube-apiserver v1.31.2",
     ("https://{}:6443/readyz", 500, "2")),
    ({"tcp": [5001], "probe": "registry"}, GOOD, "registry: /v2/ 200, without TLS",
     ("http://{}:5001/v2/", 200, "1.1")),
    (http(9005, path="/api/health"), GOOD, "GET /api/health: 200 as the matrix says",
     ("http://{}:9005/api/health", 200, "1.1")),
]  # fmt: skip


@pytest.fixture(scope="module")
def direct(world: WebWorld) -> list[dict[str, Any]]:
    """The results of all cases, in their order: one run asks them all."""
    done = world.run(*(case[0] for case in CASES))
    by_id = {result["requirement"]: result for result in done.results}
    return [by_id[f"r{index}"] for index in range(len(CASES))]


@pytest.mark.parametrize("index", range(len(CASES)))
def test_what_curl_sees_is_told(world: WebWorld, direct: list[dict[str, Any]], index: int) -> None:
    """The verdict is right, the sentence names what is wrong, and curl saw the same answer."""
    _, expected, words, (url, status, version) = CASES[index]
    result = direct[index]

    assert (result["verdict"], result["proof"]) == expected, result["because"]
    assert words in result["because"]
    plain = ("--http2-prior-knowledge",) if url.startswith("h2c") else ()
    seen = world.curl("worker", url.replace("h2c", "http").format(WEB), *plain)
    assert (seen["http_code"], seen["http_version"]) == (status, version)


def test_an_apiserver_that_is_not_ready_is_one(direct: list[dict[str, Any]]) -> None:
    """Its version says who it is, and the warning what it is not ready for."""
    (result,) = [one for one in direct if one["port"] == 6443]

    assert result["warnings"] == [
        "a kube-apiserver answers, but it is not ready: /readyz 500 (etcd)"
    ]


def test_a_login_page_with_the_right_status_is_a_warning(direct: list[dict[str, Any]]) -> None:
    """The matrix said nothing of the content, and so the row passes."""
    (result,) = [one for one in direct if one["port"] == 9005 and one["verdict"] == "pass"]

    (warning,) = result["warnings"]
    assert 'answers, but it is a login page "Welcome guest", as of a captive portal' in warning


def test_a_captive_portal_stands_in_the_way_of_one_host(world: WebWorld) -> None:
    """The router answers for the registry; the other worker reaches it, in the table above."""
    (result,) = world.run({"tcp": [5001], "probe": "registry"}, worker="guest").results

    assert (result["verdict"], result["reason"]) == ("inconclusive", "false-open")
    assert result["where"] == ["path"]
    place = "http://portal.lab.test/login?back=x"
    portal = f"HTTP 302 Found: a redirect to {place}: a captive portal or a login page"
    assert portal in result["because"]
    seen = world.curl("guest", f"http://{WEB}:5001/v2/")
    assert (seen["http_code"], seen["redirect_url"]) == (302, place)


SQUID = [
    # Plain HTTP is asked for by its URL, and TLS through a tunnel.
    (http(9001, **UP, tls=False), ("pass", "service"), "GET /api/health: 200 as the matrix says"),
    (http(9002, **UP, tls=True), ("blocked", "none"), "squid's own error page, ERR_ACCESS_DENIED"),
    (http(9006, **UP, tls=False), ("blocked", "none"), "squid's own error page, ERR_ACCESS_DENIED"),
    (http(9999, **UP, tls=False), ("inconclusive", "none"), "error page, ERR_CONNECT_FAIL"),
    (http(9998, **UP, tls=True), ("inconclusive", "none"), "error page, ERR_CONNECT_FAIL"),
    (http(HTTP2, path="/api/health", http2=True, tls=True), ("pass", "service"), "HTTP/2 200"),
    # A right status is not right where squid says so.
    (http(9006, status=403, tls=False), ("blocked", "none"), "status 403 is not the service's"),
]  # fmt: skip


def test_squids_own_pages_are_not_the_services(world: WebWorld) -> None:
    """Its word is the result, curl got the same page of it, and no password is told."""
    done = world.run(*(case[0] for case in SQUID), proxy=f"agent:{PASSWORD}@")

    by_id = {result["requirement"]: result for result in done.results}
    for index, (_, expected, words) in enumerate(SQUID):
        result = by_id[f"r{index}"]
        assert (index, result["verdict"], result["proof"]) == (index, *expected)
        assert words in result["because"]
    assert PASSWORD not in done.stdout + done.stderr
    through = ("-x", f"http://agent:{PASSWORD}@10.89.3.2:3128")
    assert world.curl("worker", f"http://{WEB}:9006/", *through)["http_code"] == 403
    assert world.curl("worker", f"http://{WEB}:9001/api/health", *through)["http_code"] == 200
    assert world.curl("worker", f"https://{WEB}:9002/", *through)["http_connect"] == 403


@pytest.mark.full
def test_without_credentials_squid_wants_some(world: WebWorld) -> None:
    """It says which kind."""
    rows = http(9001, **UP, tls=False), http(HTTP2, path="/api/health", tls=True)
    results = world.run(*rows, proxy="").results

    assert {(one["verdict"], one["reason"]) for one in results} == {("blocked", "proxy-407")}
    assert "a proxy wants credentials (Basic)" in results[0]["because"]
    assert "asks for Basic" in results[1]["because"]


HOSTILE: list[tuple[str, tuple[str, str], str]] = [
    ("send_body_for_ever", GOOD, "GET /: 200 as the matrix says, without TLS"),
    ("send_head_for_ever", OTHER, "the head of its answer does not end"),
    ("drip", OTHER, 'bytes came, and no whole answer ("HTTP/1.1 200 OK'),
    ("send_bomb", GOOD, "GET /: 200 as the matrix says, without TLS"),
    ("close_early", GOOD, "GET /: 200 as the matrix says, without TLS"),
    ("send_garbage", OTHER, 'said "?????'),
]


@pytest.mark.full
def test_servers_that_mean_no_good_are_bounded(world: WebWorld) -> None:
    """Each gets one plain line; neither bytes without end nor bombs hold up a run."""
    world.start_hostile(7001)

    rows = [http(7001 + place) for place in range(len(HOSTILE))]
    done = world.run(*rows, http(7004, body="1"))

    by_id = {result["requirement"]: result for result in done.results}
    for place, (name, expected, words) in enumerate(HOSTILE):
        result = by_id[f"r{place}"]
        assert (name, result["verdict"], result["proof"]) == (name, *expected)
        assert words in result["because"]
    assert "breaks off" in by_id["r4"]["warnings"][0]
    bomb = by_id[f"r{len(HOSTILE)}"]["because"]
    assert '"1" is not in the first 64 KiB of the body' in bomb
