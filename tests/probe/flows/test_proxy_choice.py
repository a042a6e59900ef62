"""Which way a flow goes: Go's NO_PROXY for services over HTTP(S), and nothing else by a proxy."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.model.inventory import Inventory, Proxy
from netprobe.plan.expand import make_plan
from netprobe.probe.flows.proxied import ways
from netprobe.probe.flows.work import Want, Work
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement

SECRET = "s3cret"
HTTPS = f"http://user:{SECRET}@proxy.example.com:3128"


def want(proxy: Proxy | None, address: str = "10.0.0.2", **extra: Any) -> Want:
    """One flow of a source with this proxy; by default to a kube-apiserver."""
    wanted = requirement("x", "node", "external", **{"probe": "kube-apiserver", **extra})
    hosts = (
        host("a", "node", addresses=("10.0.0.1",), proxy=proxy),
        host("b", "external", addresses=(address,)),
    )
    work = Work(make_plan([chosen_matrix([wanted])], Inventory(hosts), TODAY))
    return next(iter(work.wants(work.destinations[0])))


@pytest.mark.parametrize(
    "one",
    [
        want(None),
        want(Proxy(https_proxy=HTTPS), probe=None),
        want(Proxy(https_proxy=HTTPS), probe="dns"),
        want(Proxy(https_proxy=HTTPS), expect="denied"),
        want(Proxy(https_proxy=HTTPS), udp=((6443, 6443),)),
        want(Proxy(http_proxy=HTTPS)),
        want(Proxy(https_proxy=HTTPS), probe="http-health"),
    ],
)
def test_what_never_goes_through_a_proxy(one: Want) -> None:
    """Other protocols, denied ports, and schemes whose variable is not set go directly."""
    assert [(way.via, way.notes) for way in ways(one)] == [(None, ())]


def test_a_proxy_and_its_words() -> None:
    """The proxy is named without its password, and so is what decided."""
    (one,) = ways(want(Proxy(https_proxy=HTTPS, no_proxy=("10.1.0.0/16",))))

    assert one.via is not None
    assert one.via.url == HTTPS
    assert SECRET not in repr(one.via) + str(one.notes)
    assert "no entry of no_proxy matches 10.0.0.2" in one.notes[0]


def test_a_service_may_have_a_proxy_of_its_own() -> None:
    """Ignition has that of the user-data stub, also none at all; every other service the host's."""
    own = "http://stub.example.com:3128"
    for proxies, ignition, others in (
        ((("ignition", Proxy(https_proxy=own)),), own, HTTPS),
        ((("ignition", Proxy()),), None, HTTPS),
        ((), HTTPS, HTTPS),
    ):
        for probe, expected in (("ignition", ignition), ("konnectivity", others)):
            one = want(Proxy(https_proxy=HTTPS), probe=probe)
            source = replace(one.flow.source, proxies=proxies)
            (way,) = ways(replace(one, flow=replace(one.flow, source=source)))
            assert (way.via and way.via.url) == expected, (proxies, probe)


def test_ports_of_one_requirement_may_go_different_ways() -> None:
    """NO_PROXY entries may have a port: the flow is cut there."""
    proxy = Proxy(https_proxy=HTTPS, no_proxy=("10.0.0.2:2040",))
    cut = ways(want(proxy, tcp=((2040, 2040), (6443, 6443))))

    found = {one.flow.block.ports: (one.via is not None, one.notes[0]) for one in cut}
    assert found.keys() == {((2040, 2040),), ((6443, 6443),)}
    assert found[((2040, 2040),)] == (
        False, "it goes directly, not through the proxy (no_proxy: 10.0.0.2:2040)",
    )  # fmt: skip
    assert found[((6443, 6443),)][0]


def test_a_server_name_is_what_is_dialled() -> None:
    """Go holds NO_PROXY against the name in the URL, whatever it resolves to."""
    proxy = Proxy(https_proxy=HTTPS, no_proxy=("10.0.0.0/8", ".lab.test"))
    (by_name,) = ways(want(proxy, sni="api.example.com"))
    (inside,) = ways(want(proxy, sni="api.lab.test"))

    assert by_name.via is not None
    assert "no_proxy: .lab.test" in inside.notes[0]


@pytest.mark.parametrize(
    ("address", "sni", "name"),
    [
        ("10.0.0.2", None, None),
        ("10.0.0.2", "api.lab.test", "api.lab.test"),
        ("b.example.com", None, "b.example.com"),
        ("b.example.com", "api.lab.test", "api.lab.test"),
    ],
)
def test_server_names(address: str, sni: str | None, name: str | None) -> None:
    """The requirement's name, else the destination's own, else none."""
    assert want(None, address, sni=sni).server_name == name
