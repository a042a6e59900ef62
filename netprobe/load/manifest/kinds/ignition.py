"""The user-data stub of a compute node: where Ignition comes from, and through which proxy."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.load.inventory.addresses import parse_address
from netprobe.load.manifest.kinds.shared import CAMEL, KeyPath, read_host_url, read_proxy, word_urls
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import AddressSaid, ProxySaid, Said, SettingSaid
from netprobe.model.inventory import Proxy
from netprobe.protocols.services.proxy_url import decide

_BASE = ("ignition", "proxy")
_PORTS = {"http": 80, "https": 443}


def read_ignition(one: Manifest) -> Iterator[Said]:
    """Say the name of the Ignition service and the proxy of the stub.

    A stub without a proxy says so: Ignition goes directly, whatever else the worker uses.
    """
    bases: list[KeyPath] = [*one.each("ignition", "config", "merge")]
    bases.append(("ignition", "config", "replace"))
    proxy, urls = read_proxy(one, _BASE, CAMEL)
    shown = word_urls(urls) or "none"
    origin = one.origin(*_BASE, shown=shown)
    yield ProxySaid(origin, ("worker",), proxy, service="ignition")
    for base in bases:
        if one.has(*base, "source"):
            yield from _read_source(one, (*base, "source"), proxy)


def _read_source(one: Manifest, path: KeyPath, proxy: Proxy) -> Iterator[Said]:
    try:
        url, port, address = read_host_url(one.text(*path), _PORTS)
    except (KeyError, ValueError):
        return  # data: and s3: need no network of the control plane
    shown = f"{url.scheme}://{url.hostname}:{port}{url.path}"
    origin = one.origin(*path, shown=shown)
    if address.family is None:
        yield SettingSaid(origin, "ignition-hostname", (address.text,))
    if port != _PORTS["https"]:
        yield SettingSaid(origin, "ignition-port", (port,))
        yield AddressSaid(origin, "ignition", ("hcp-ignition",), address)
    else:
        yield AddressSaid(origin, "ignition", ("ignition-route",), address)
    yield from _say_stub_proxy(one, (address.text, port), url.scheme, proxy)


def _say_stub_proxy(
    one: Manifest, server: tuple[str, int], scheme: str, proxy: Proxy
) -> Iterator[Said]:
    key = f"{scheme}Proxy"
    _, urls = read_proxy(one, _BASE, CAMEL)
    if key not in urls:
        why = f"the stub has no {key}: Ignition goes directly"
        yield SettingSaid(one.origin(*_BASE, shown="none"), "ignition-proxy", (False,), reason=why)
        return
    origin = one.origin(*_BASE, key, shown=str(urls[key]))
    decision = decide(*server, proxy.no_proxy)
    why = f"no entry of the stub's noProxy matches {server[0]}"
    if not decision.proxied:
        why = f"the stub's noProxy has {decision.entry}: Ignition goes directly"
    yield SettingSaid(origin, "ignition-proxy", (decision.proxied,), reason=why)
    if decision.proxied:
        yield SettingSaid(origin, "ignition-proxy-port", (urls[key].port,))
        host = parse_address(urls[key].host)
        yield AddressSaid(origin, "ignition", ("ignition-proxy",), host)
