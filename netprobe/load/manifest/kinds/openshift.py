"""OpenShift: what its installers are given, and the proxy of the management cluster.

An install-config has the platform, the network plugin, the nodes' proxy, and of bare metal the BMCs
and the addresses of API and Ingress; an AgentConfig, of the agent-based installer, has the hosts; a
Proxy of config.openshift.io is that of the management cluster, which control planes use too.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from netprobe.load.inventory.addresses import parse_address
from netprobe.load.manifest.kinds.hosted_cluster import say_network
from netprobe.load.manifest.kinds.shared import (
    CAMEL,
    KeyPath,
    read_no_proxy,
    read_proxy,
    say_address,
    say_node_proxy,
    word_urls,
)
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.networks import networks_of
from netprobe.load.manifest.said import AddressSaid, NoteSaid, ProxySaid, Said, SettingSaid

_METAL = ("platform", "baremetal")
_PROVISIONING = (*_METAL, "provisioningNetwork")
_ADDED = ("127.0.0.1", "localhost", ".svc", ".cluster.local")


def read_install_config(one: Manifest) -> Iterator[Said]:
    """Say everything that an install-config has for the matrices."""
    for platform in one.keys("platform"):
        yield SettingSaid(one.origin("platform", shown=platform), "platform", (platform.lower(),))
        if platform == "baremetal":
            yield from _read_provisioning(one)
            yield from _read_bmcs(one)
        for key, role in (("apiVIPs", "api-lb"), ("ingressVIPs", "ingress-lb")):
            for path in one.each("platform", platform, key):
                yield from say_address(one, path, (role,))
    yield from say_network(one, "networking", "networkType")
    networks = tuple(network.text for network in networks_of(one, ("networking",)))
    inner = f"api-int.{one.name}.{one.text('baseDomain')}"
    yield from say_node_proxy(one, ("proxy",), more=(*_ADDED, inner, *networks))


def _read_provisioning(one: Manifest) -> Iterator[Said]:
    """Provisioning of bare metal is on unless it says otherwise."""
    kind = one.text(*_PROVISIONING) or "Managed"
    if kind not in ("Managed", "Unmanaged", "Disabled"):
        yield NoteSaid(one.place(*_PROVISIONING), f"provisioningNetwork {kind} is not known here")
        return
    origin = one.origin(*_PROVISIONING, shown=kind)
    yield SettingSaid(origin, "features", items={"baremetal-provisioning": kind != "Disabled"})
    yield SettingSaid(origin, "provisioning-network", (kind != "Disabled",))


def _read_bmcs(one: Manifest) -> Iterator[Said]:
    """Say the hosts' BMCs: ``redfish-virtualmedia://10.0.1.5/redfish/v1/...``, ``ipmi://...``."""
    for base in one.each(*_METAL, "hosts"):
        path = (*base, "bmc", "address")
        url = urlsplit(one.text(*path))
        name = f"{one.text(*base, 'name') or 'host'}-bmc"
        if url.hostname:
            origin = one.origin(*path, shown=f"{url.scheme}://{url.hostname}")
            yield AddressSaid(origin, one.name, ("bmc",), parse_address(url.hostname), name)
        if "virtualmedia" in url.scheme:
            origin = one.origin(*path, shown=url.scheme)
            yield SettingSaid(origin, "virtual-media", (True,))


# Of some matrices workers are a role; the others know nodes alone, and no compute.
_WORKER = ("node", "compute")
_CONTROL_PLANE = ("control-plane",)
_ROLES = {"master": _CONTROL_PLANE, "worker": _WORKER, "arbiter": _CONTROL_PLANE}


def read_agent_config(one: Manifest) -> Iterator[Said]:
    """Say the addresses of all hosts; one without any is a note."""
    named = set()
    for base in one.each("hosts"):
        role = one.text(*base, "role") or "worker"
        name = one.text(*base, "hostname")
        if role not in _ROLES:
            yield NoteSaid(one.place(*base, "role"), f"role {role} is not known here")
            continue
        paths = list(_address_paths(one, base))
        if not paths:
            words = f"host {name or 'without a name'} has no address in its networkConfig"
            yield NoteSaid(one.place(*base), words)
        for path in paths:
            named.add(one.text(*path))
            yield from say_address(one, path, _ROLES[role], name)
    if one.has("rendezvousIP") and one.text("rendezvousIP") not in named:
        yield from say_address(one, ("rendezvousIP",), ("control-plane",), "rendezvous")


def _address_paths(one: Manifest, base: KeyPath) -> Iterator[KeyPath]:
    """Give the paths of all addresses of a host's nmstate; link-local ones are nobody's."""
    for interface in one.each(*base, "networkConfig", "interfaces"):
        for family in ("ipv4", "ipv6"):
            for address in one.each(*interface, family, "address"):
                if not one.text(*address, "ip").lower().startswith("fe80:"):
                    yield (*address, "ip")


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
