"""Live services told apart in a run: right and wrong ones, TLS both ways, routers, proxies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.lab.live import (
    ASKING_PROXY,
    BOOT,
    EDGE6,
    IGNITION,
    KONNECTIVITY,
    OPEN_PROXY,
    PASSWORD,
    PROXY,
    TLS_PROXY,
    World,
)
from tests.lab.opening import open_lab

Result = Mapping[str, Any]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """The lab, with the programs that it needs."""
    with open_lab(World(), "haproxy", "tinyproxy") as lab:
        yield lab


def asking(probe: str, *ports: int) -> list[dict[str, Any]]:
    """Requirements of one port each."""
    return [{"probe": probe, "tcp": [port]} for port in ports]


def proxy(port: int, secret: str | None = None, **more: Any) -> dict[str, Any]:
    """The worker's proxy, in the inventory's words."""
    credentials = "" if secret is None else f"agent:{secret}@"
    return {"https_proxy": f"http://{credentials}{PROXY}:{port}", **more}


def verdict(result: Result) -> tuple[str, str, str, list[str]]:
    """What a test compares."""
    return result["verdict"], result["reason"], result["proof"], result["where"]


GOOD: Any = ("pass", "syn-ack", "service", [])
# Any program may answer so, and no agent tells which one holds a port that should still be free.
VAGUE = ("inconclusive", "unknown-holder", "handshake", ["service"])
OTHER = ("inconclusive", "syn-ack", "handshake", ["service"])
TLS = ("inconclusive", "tls-not-expected", "handshake", ["service"])
PLAINTEXT = ("inconclusive", "plaintext-not-tls", "handshake", ["service"])

CASES = [
    ("kube-apiserver", 6443, GOOD, "kube-apiserver: 403 Status"),
    ("kube-apiserver", 7443, OTHER, "CN=other.lab.test"),
    ("kube-apiserver", 8081, PLAINTEXT, "HTTP/1.1 400"),
    ("etcd", 2379, GOOD, "CN=etcd-signer"),
    ("etcd", 6443, OTHER, "kube-apiserver-client-ca"),
    ("kubelet", 10250, GOOD, "kubelet: 401 Unauthorized"),
    ("kubelet", 6443, OTHER, "CN=kubernetes"),
    ("registry", 5000, GOOD, "registry: /v2/ 401"),
    ("registry", 5001, GOOD, "without TLS"),
    ("registry", 7443, OTHER, "HTTP 404"),
    ("oauth", 6444, GOOD, "oauth: /healthz ok"),
    ("oauth", 443, OTHER, "ingress-operator@"),
    ("machine-config-server", 22623, GOOD, "/healthz 200"),
    ("machine-config-server", 22624, GOOD, "/healthz 200"),
    ("machine-config-server", 443, OTHER, "ingress-operator@"),
    ("http-health", 8081, VAGUE, "200 ok"),
    ("http-health", 6444, TLS, "CN=other.lab.test"),
    ("http-health", 2379, TLS, "CN=etcd-signer"),
    ("https", 7443, VAGUE, "HTTP 404 over TLS"),
    ("https", 443, OTHER, "Application is not available"),
    ("https", 8081, PLAINTEXT, "HTTP/1.1 400"),
    ("tls", 2379, VAGUE, "CN=etcd-signer"),
    ("konnectivity", 443, OTHER, "default certificate"),
    ("ignition", 443, OTHER, "default certificate"),
]  # fmt: skip


@pytest.mark.parametrize("family", [4, 6])
def test_services_are_told_apart(world: World, family: int) -> None:
    """Every service is recognised at its own port, and nothing else is taken for it."""
    wanted = [asking(probe, port)[0] for probe, port, _, _ in CASES]
    worker = {"address": world["worker"].address(family)}
    edge = {} if family == 4 else {"address": EDGE6}
    done = world.run(*wanted, to=edge, worker=worker)

    results = {(one["requirement"], one["port"]): one for one in done.results}
    for probe, port, expected, words in CASES:
        result = results[f"{probe}-{port}", port]
        assert (probe, port, *verdict(result)) == (probe, port, *expected)
        assert words in result["because"]
        assert bool(result["warnings"]) == (expected not in (GOOD, VAGUE))


def test_tls_mismatches_are_findings(world: World) -> None:
    """TLS where plaintext is expected, and the reverse, stand on their own."""
    done = world.run(*asking("http-health", 6444), *asking("https", 8081))

    titles = [finding["title"] for finding in done.document["findings"]]
    assert titles == [
        "tcp 6444 of edge speaks TLS where plaintext is expected (1 flow)",
        "tcp 8081 of edge does not speak TLS, which is expected (1 flow)",
    ]
    assert done.status == 3


def hcp(world: World, konnectivity: str, ignition: str, **more: Any) -> dict[str, Result]:
    """The two route rows of hypershift-hcp with these host names, which no name server knows."""
    sets = (f"konnectivity-hostname={konnectivity}", f"ignition-hostname={ignition}")
    done = world.run(matrix="hypershift-hcp", sets=sets, **more)
    results: dict[str, Result] = {one["requirement"]: one for one in done.results}
    results.pop("resolver", None)
    return results


def test_route_rows_ask_for_their_names(world: World) -> None:
    """With the hostname settings the router passes each on to the right service."""
    found = hcp(world, KONNECTIVITY, IGNITION)

    assert verdict(found["worker-konnectivity-route"]) == GOOD
    assert "CN=konnectivity-signer" in found["worker-konnectivity-route"]["because"]
    assert verdict(found["worker-ignition-route"]) == GOOD
    assert "ignition-server" in found["worker-ignition-route"]["because"]


def test_route_rows_with_names_that_nobody_routes(world: World) -> None:
    """The router's default certificate is told from the right one, and swapped names too."""
    found = hcp(world, "typo.apps.lab.test", "typo.apps.lab.test")
    for result in found.values():
        assert verdict(result) == OTHER
        assert "the router's default certificate" in result["because"]
        assert "no route for typo.apps.lab.test" in result["because"]

    for result in hcp(world, IGNITION, KONNECTIVITY).values():
        assert verdict(result) == OTHER


def test_route_rows_without_names(world: World) -> None:
    """Without a name nothing is asked, and the warning says which setting is missing."""
    found = hcp(world, "", "")

    result = found["worker-konnectivity-route"]
    assert verdict(result) == ("pass", "syn-ack", "handshake", [])
    assert "--set konnectivity-hostname=NAME" in result["warnings"][0]
    assert "--set ignition-hostname=NAME" in found["worker-ignition-route"]["warnings"][0]


def test_a_route_without_endpoints(world: World) -> None:
    """An edge that closes after the ClientHello is no service, and the result says what it did."""
    result = hcp(world, "empty.apps.lab.test", IGNITION)["worker-konnectivity-route"]

    assert result["proof"] == "handshake"
    assert "it closed the connection" in result["warnings"][0]


NO_PROXY = [
    ([], True, "no entry of no_proxy matches 10.88.2.2"),
    (["10.99.0.0/16", ".lab.test"], True, "no entry of no_proxy matches 10.88.2.2"),
    (["10.88.0.0/16"], False, "no_proxy: 10.88.0.0/16"),
    (["10.88.2.2:443"], True, "no entry of no_proxy matches 10.88.2.2"),
    (["10.88.2.2:6443"], False, "no_proxy: 10.88.2.2:6443"),
    (["*"], False, "no_proxy: *"),
]


@pytest.mark.parametrize(("entries", "proxied", "words"), NO_PROXY, ids=lambda one: str(one)[:30])
def test_no_proxy_decides(world: World, entries: list[str], proxied: bool, words: str) -> None:
    """The way is that of Go's rules, and the result names the entry."""
    done = world.run(*asking("kube-apiserver", 6443), proxy=proxy(OPEN_PROXY, no_proxy=entries))

    (result,) = done.results
    assert verdict(result) == GOOD
    assert (f"through http://{PROXY}" in result["because"]) == proxied
    assert words in result["warnings"][0]


def test_the_name_that_is_dialled_decides(world: World) -> None:
    """For a route NO_PROXY is held against its host name, not against the router's address."""
    entries = ["10.88.0.0/16", KONNECTIVITY]
    found = hcp(world, KONNECTIVITY, IGNITION, proxy=proxy(OPEN_PROXY, no_proxy=entries))

    direct, through = found["worker-konnectivity-route"], found["worker-ignition-route"]
    assert verdict(direct) == verdict(through) == GOOD
    assert f"no_proxy: {KONNECTIVITY}" in direct["warnings"][0]
    assert f"no entry of no_proxy matches {IGNITION}" in through["warnings"][0]


def test_names_are_left_to_the_proxy(world: World) -> None:
    """What the source cannot resolve the proxy may: as with the component, it is asked to."""
    done = world.run(
        *asking("kube-apiserver", 6443), proxy=proxy(OPEN_PROXY), to={"address": "api.lab.test"}
    )

    (result,) = done.results
    assert verdict(result) == GOOD
    assert result["address"] == "api.lab.test"


REFUSALS = [
    (OPEN_PROXY, None, 2379, ("blocked", "proxy-403", "none", ["path"]), PROXY),
    (ASKING_PROXY, None, 6443, ("blocked", "proxy-407", "none", ["path"]), PROXY),
    (ASKING_PROXY, PASSWORD, 6443, GOOD, None),
    (3999, PASSWORD, 6443, ("blocked", "proxy-refused", "none", ["path", "source"]), None),
    (
        OPEN_PROXY,
        PASSWORD,
        9999,
        ("inconclusive", "proxy-500", "none", ["destination", "host", "path", "service"]),
        PROXY,
    ),
]


@pytest.mark.parametrize(("port", "secret", "to", "expected", "by"), REFUSALS)
def test_what_a_proxy_refuses(
    world: World, port: int, secret: str | None, to: int, expected: Any, by: str | None
) -> None:
    """The proxy's status is the result, the proxy the one that rejects, and no password is told."""
    done = world.run(*asking("kube-apiserver", to), proxy=proxy(port, secret))

    (result,) = done.results
    assert verdict(result) == expected
    assert result["rejected_by"] == by
    assert PASSWORD not in done.stdout + done.stderr


def test_our_listener_behind_a_proxy(world: World) -> None:
    """Before an installation the tunnel leads to our own listener, and its nonce proves it."""
    boot = {"address": BOOT, "vantage": {"command": world["boot"].enter}}
    done = world.run(*asking("https", 7777), proxy=proxy(OPEN_PROXY), to=boot)

    (result,) = done.results
    assert verdict(result) == ("pass", "nonce-answer", "nonce", [])


@pytest.mark.parametrize("port", [OPEN_PROXY, ASKING_PROXY])
def test_plain_http_through_a_proxy(world: World, port: int) -> None:
    """Plain HTTP is asked for by its URL, with the variable of its own and its credentials."""
    plain = {"http_proxy": f"http://agent:{PASSWORD}@{PROXY}:{port}"}
    done = world.run(*asking("http-health", 8081, 9999), proxy=plain)

    healthy, nobody = done.results
    assert verdict(healthy) == VAGUE
    assert f"through http://***@{PROXY}" in healthy["because"]
    assert nobody["reason"] == "proxy-500"
    assert PASSWORD not in done.stdout + done.stderr


def test_a_proxy_that_speaks_tls(world: World) -> None:
    """With https:// in its URL the proxy is spoken to in TLS, and the service inside once more."""
    tls = {"https_proxy": f"https://{PROXY}:{TLS_PROXY}"}
    done = world.run(*asking("kube-apiserver", 6443), *asking("konnectivity", 443), proxy=tls)

    service, router = done.results
    assert verdict(service) == GOOD
    assert verdict(router) == OTHER

    plain = {"https_proxy": f"https://{PROXY}:{OPEN_PROXY}"}
    (result,) = world.run(*asking("kube-apiserver", 6443), proxy=plain).results
    assert verdict(result) == ("inconclusive", "proxy-not-http", "none", ["path"])
