"""Proxy of config.openshift.io: the management cluster's proxy, which control planes use too."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.load.inventory.addresses import parse_address
from netprobe.load.manifest.kinds.shared import CAMEL, read_no_proxy, read_proxy, word_urls
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import AddressSaid, ProxySaid, Said, SettingSaid


def read_management_proxy(one: Manifest) -> Iterator[Said]:
    """Say the proxy of the management cluster's hosts and of the control planes on it."""
    more = read_no_proxy(one, "status", "noProxy")
    proxy, urls = read_proxy(one, ("spec",), CAMEL, more)
    if not urls:
        return
    shown = word_urls(urls)
    origin = one.origin("spec", shown=shown)
    yield ProxySaid(origin, ("management-cluster", "hcp"), proxy)
    yield SettingSaid(origin, "management-proxy", (True,))
    key = "httpsProxy" if "httpsProxy" in urls else "httpProxy"
    origin = one.origin("spec", key, shown=str(urls[key]))
    yield SettingSaid(origin, "management-proxy-port", (urls[key].port,))
    yield AddressSaid(origin, "management", ("management-proxy",), parse_address(urls[key].host))
