"""What the verb refuses before anything is sent, and which way it decides for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from netprobe.errors import RequestError
from netprobe.konnectivity.request import (
    TunnelOptions,
    choose_via,
    make_tunnel,
    split_server,
    warn_of_port,
)
from netprobe.konnectivity.run import LOCAL, choose_hosts
from netprobe.load.manifest.kinds.hosted_cluster import tunnel_of
from netprobe.load.manifest.manifests import GivenManifests, read_manifests
from netprobe.model.inventory import Host, Inventory, Proxy, Vantage

SECRET = "s3cret"


def options(server: str = "konn.example.com", **more: Any) -> TunnelOptions:
    """Options of a route unless said otherwise."""
    return TunnelOptions(server, more.pop("publishing", "route"), **more)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("a.example.com", "a.example.com", None),
        ("a.example.com:8091", "a.example.com", 8091),
        ("10.0.0.1:30091", "10.0.0.1", 30091),
        ("fd00::1", "fd00::1", None),
        ("[fd00::1]", "fd00::1", None),
        ("[fd00::1]:443", "fd00::1", 443),
    ],
)
def test_servers_are_read(text: str, host: str, port: int | None) -> None:
    """Names and addresses of both families, with and without a port."""
    assert split_server(text) == (host, port)


@pytest.mark.parametrize("text", ["", "a:b", "[x]:1", "a:1234567890", "-a", "a b", "http://a/"])
def test_servers_that_are_none(text: str) -> None:
    """What cannot be meant is refused, and said."""
    with pytest.raises(RequestError, match=re.escape(f"--server {text}: expected")):
        split_server(text)


@pytest.mark.parametrize(
    ("publishing", "flavour", "port"),
    [("route", None, 443), ("loadbalancer", None, 8091), ("loadbalancer", "k0s", 8132)],
)
def test_the_port_by_default(publishing: Any, flavour: Any, port: int) -> None:
    """A worker dials 443 for a route; the agent port elsewhere."""
    assert make_tunnel(options(publishing=publishing, flavour=flavour)).port == port


def test_nodeport_without_a_port_is_refused_with_the_reason() -> None:
    """8091 is the pod's port, and probing it on a node would be a false alarm."""
    with pytest.raises(RequestError, match=r"8091 is the port of the pod.*30000-32767"):
        make_tunnel(options("10.0.0.1", publishing="nodeport"))


def test_a_route_by_address_is_refused_with_the_reason() -> None:
    """Without a server name no router finds a route; with --hostname it may."""
    with pytest.raises(RequestError, match="--hostname NAME"):
        make_tunnel(options("10.0.0.1"))
    assert make_tunnel(options("10.0.0.1", hostname="k.example.com")).sni == "k.example.com"


def test_no_name_is_sent_for_an_address() -> None:
    """As Go: an address is no server name."""
    assert make_tunnel(options("10.0.0.1:30091", publishing="nodeport")).sni is None


def test_the_hold_is_limited_without_a_certificate() -> None:
    """The server itself ends an unfinished handshake after 120 s; with tokens it does not."""
    assert make_tunnel(options(hold_s=115)).hold_s == 115
    with pytest.raises(RequestError, match="after 120 s"):
        make_tunnel(options(hold_s=116))
    assert make_tunnel(options(hold_s=300, flavour="k0s")).hold_s == 300


def test_certificate_and_key_belong_together() -> None:
    """One without the other is a mistake."""
    with pytest.raises(RequestError, match="belong together"):
        make_tunnel(options(client_cert="a.pem"))


def test_files_are_read_before_anything_is_sent(tmp_path: Path) -> None:
    """A missing or empty file is named; what is in it never is."""
    with pytest.raises(RequestError, match="none: there is no such file, expected a file in PEM"):
        make_tunnel(options(ca=str(tmp_path / "none")))
    bad = tmp_path / "bad.pem"
    bad.write_text(f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n")
    for given in ({"ca": str(bad)}, {"client_cert": str(bad), "client_key": str(bad)}):
        with pytest.raises(RequestError, match="PEM") as refused:
            make_tunnel(options(**given))
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize("text", ["127.0.0.9:70000", "a:0", "[fd00::1]:65536", "a:99999999"])
def test_a_port_that_is_none_is_named(text: str) -> None:
    """The form is right, so the form is not what is complained of."""
    port = text.rpartition(":")[2]
    wanted = f"^--server {re.escape(text)}: port {port}: expected 1 to 65535$"
    with pytest.raises(RequestError, match=wanted):
        split_server(text)


@pytest.mark.parametrize(
    ("server", "publishing", "said"),
    [
        ("10.0.0.1:8091", "nodeport", "8091 is the port of the pod"),
        ("10.0.0.1:8132", "nodeport", "8132 is the port of the pod"),
        ("10.0.0.1:18080", "nodeport", "port 18080 with nodeport: nodePorts are 30000-32767"),
        ("10.0.0.1:32768", "nodeport", "a cluster's --service-node-port-range may differ"),
        ("10.0.0.1:30000", "nodeport", ""),
        ("10.0.0.1:32767", "nodeport", ""),
        ("10.0.0.1:8091", "loadbalancer", ""),
    ],
)
def test_a_port_that_no_service_has_as_nodeport(server: str, publishing: Any, said: str) -> None:
    """A cluster may have another range, so it is a warning; and none where it fits."""
    warnings = warn_of_port(make_tunnel(options(server, publishing=publishing)))
    assert len(warnings) == bool(said)
    assert said in "".join(warnings)


def test_a_manifest_s_nodeport_is_looked_at_too(tmp_path: Path) -> None:
    """The tunnel of a HostedCluster goes the same way as one that was typed."""
    strategy = {"type": "NodePort", "nodePort": {"address": "10.0.0.1", "port": 8091}}
    file = tmp_path / "hc.yaml"
    file.write_text(
        json.dumps(
            {
                "apiVersion": "hypershift.openshift.io/v1beta1",
                "kind": "HostedCluster",
                "metadata": {"name": "hc1"},
                "spec": {
                    "services": [{"service": "Konnectivity", "servicePublishingStrategy": strategy}]
                },
            }
        )
    )
    manifests = read_manifests(GivenManifests((str(file),)), [])
    (said,) = map(tunnel_of, manifests.of_kind("HostedCluster"))
    assert said is not None
    tunnel = make_tunnel(options(said.server, publishing=said.publishing))
    assert "8091 is the port of the pod" in "".join(warn_of_port(tunnel))


def host(proxy: Proxy | None = None) -> Host:
    """A worker of an inventory."""
    return Host("w1", (), ("worker",), Vantage("command", command=("true",)), proxy=proxy)


def test_which_way_and_what_decided() -> None:
    """Only HTTPS_PROXY and NO_PROXY count, and the entry that decided is named."""
    tunnel = make_tunnel(options())
    proxied = {"HTTPS_PROXY": f"http://u:{SECRET}@p:3128"}
    cases = [
        ("none", LOCAL, proxied, "direct (--proxy none)"),
        ("env", LOCAL, {}, "direct (HTTPS_PROXY is not set)"),
        ("env", LOCAL, {"HTTP_PROXY": "http://p"}, "direct (HTTPS_PROXY is not set)"),
        ("env", LOCAL, proxied, "proxy http://***@p:3128 (HTTPS_PROXY)"),
        ("env", LOCAL, proxied | {"NO_PROXY": "x,example.com"}, "direct (NO_PROXY: example.com)"),
        ("env", Host("here", (), ("worker",), Vantage("local")), proxied,
         "proxy http://***@p:3128 (HTTPS_PROXY)"),
        ("env", host(), proxied, "direct (the inventory names no proxy)"),
        ("env", host(Proxy(https_proxy="p:8080")), {},
         "proxy http://p:8080 (https_proxy of the inventory)"),
        ("env", host(Proxy(https_proxy="p:8080", no_proxy=(".example.com",))), {},
         "direct (NO_PROXY: .example.com)"),
        ("http://p:1", host(Proxy(https_proxy="q:2", no_proxy=("*",))), {},
         "proxy http://p:1 (--proxy)"),
    ]  # fmt: skip
    for wanted, where, environment, said in cases:
        assert choose_via(tunnel, wanted, where, environment).said == said


@pytest.mark.parametrize("url", [f"ftp://u:{SECRET}@p", f"http://u:{SECRET}@p:port", "http://"])
def test_a_bad_proxy_url_is_not_repeated(url: str) -> None:
    """It may hold a password."""
    with pytest.raises(RequestError, match="expected a URL") as refused:
        choose_via(make_tunnel(options()), url, LOCAL, {})
    assert SECRET not in str(refused.value)


def test_the_password_is_in_no_repr() -> None:
    """A traceback or a log must not show it."""
    url = f"http://u:{SECRET}@p:3128"
    via = choose_via(make_tunnel(options()), url, LOCAL, {})
    assert SECRET not in f"{via} {via!r} {via.proxy}"


def test_from_which_hosts() -> None:
    """Role worker unless said otherwise; an unknown word gets the nearest name, else all."""
    other = Host("m1", (), ("master",), Vantage("local"))
    inventory = Inventory((host(), other))
    assert [each.name for each in choose_hosts(inventory, ())] == ["w1"]
    assert [each.name for each in choose_hosts(inventory, ("master", "w1"))] == ["w1", "m1"]
    with pytest.raises(RequestError, match=r"--from nobody.*one of m1, master, w1, worker$"):
        choose_hosts(inventory, ("nobody",))
    with pytest.raises(RequestError, match=r"--from wrker: .*; did you mean worker\?$"):
        choose_hosts(inventory, ("wrker",))
    with pytest.raises(RequestError, match="no host of role worker"):
        choose_hosts(Inventory((other,)), ())
