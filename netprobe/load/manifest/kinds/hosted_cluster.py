"""HyperShift: of a HostedCluster platform, version, how each service is published, and the proxy.

A NodePool says what its cluster says too, and how many nodes there will be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from netprobe.load.inventory.addresses import parse_address
from netprobe.load.manifest.kinds.published import (
    read_status_host,
    word_printing,
    word_shared_ports,
)
from netprobe.load.manifest.kinds.shared import (
    CAMEL,
    KeyPath,
    address_at,
    read_host_url,
    read_proxy,
    say_address,
    say_platform,
    say_setting,
    version_of_image,
    version_of_text,
    word_urls,
)
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.networks import networks_of
from netprobe.load.manifest.said import AddressSaid, NoteSaid, ProxySaid, Said, SettingSaid
from netprobe.load.yaml.document import PathStep
from netprobe.load.yaml.wording import word_nearest
from netprobe.model.inventory import Address
from netprobe.protocols.services.proxy_url import decide

Publishing = Literal["route", "nodeport", "loadbalancer"]

# The address of the proxy in every worker that forwards to the API server, as the document says.
NODE_LOCAL = "172.20.0.1"
KINDS_OF_NETWORK = {"OVNKubernetes": "ovn-kubernetes", "OpenShiftSDN": "openshift-sdn"}

# Names of a service in the matrices, and the role that its address gets.
_SERVICES = {
    "APIServer": ("apiserver", "hcp-apiserver"),
    "Konnectivity": ("konnectivity", "hcp-konnectivity"),
    "Ignition": ("ignition", "hcp-ignition"),
    "OAuthServer": ("oauth", ""),
}
_WAYS: Final[Mapping[str, Publishing]] = {
    "Route": "route",
    "NodePort": "nodeport",
    "LoadBalancer": "loadbalancer",
}
# The keys of the host that each way of publishing has.
_HOSTS: Final[Mapping[Publishing, tuple[str, str]]] = {
    "nodeport": ("nodePort", "address"),
    "loadbalancer": ("loadBalancer", "hostname"),
    "route": ("route", "hostname"),
}
_PRIVATE = {"Public": False, "PublicAndPrivate": True, "Private": True}
_LDAP_PORTS = {"ldap": 389, "ldaps": 636}
_BASE = ("spec", "configuration", "proxy")


def read_hosted_cluster(one: Manifest) -> Iterator[Said]:
    """Say everything that a HostedCluster has for the matrices."""
    yield from _read_platform(one)
    path, version = version_of(one)
    if version:
        yield say_setting(one, "version", path, [version])
    yield from say_network(one, "spec", "networking", "networkType")
    yield SettingSaid(one.origin("kind"), "hypershift-guest", (True,))
    for base in one.each("spec", "services"):
        yield from _read_service(one, base)
    yield from word_shared_ports(one)
    yield from _read_proxy(one)
    yield from _read_identity_providers(one)
    yield from _read_node_local_proxy(one)


def _read_platform(one: Manifest) -> Iterator[Said]:
    if not one.text("spec", "platform", "type"):
        return
    yield from say_platform(one)
    for body in one.keys("spec", "platform"):
        where = ("spec", "platform", body, "endpointAccess")
        if body != "type" and one.has(*where):
            access = one.text(*where)
            if access in _PRIVATE:
                yield say_setting(one, "private", where, [_PRIVATE[access]])
            else:
                words = f"endpointAccess {access} is not known here{word_nearest(access, _PRIVATE)}"
                yield NoteSaid(one.place(*where), words)


def version_of(one: Manifest) -> tuple[KeyPath, str]:
    """Give the version of the cluster and where it stands; an empty one where nothing says it."""
    path: KeyPath = ("spec", "release", "image")
    version = version_of_image(one.text(*path))
    history: KeyPath = ("status", "version", "history", 0, "version")
    if not version and one.has(*history):
        return history, version_of_text(one.text(*history))
    return path, version


def say_network(one: Manifest, *path: PathStep) -> Iterator[Said]:
    """Say the network plugin that stands at the path."""
    kind = one.text(*path)
    if kind:
        yield say_setting(one, "network", path, [KINDS_OF_NETWORK.get(kind, "third-party")])


def _read_service(one: Manifest, base: KeyPath) -> Iterator[Said]:
    service = one.text(*base, "service")
    if service not in _SERVICES:
        words = f"no row is about the service {service}{word_nearest(service, _SERVICES)}"
        yield NoteSaid(one.place(*base, "service"), words)
        return
    name, role = _SERVICES[service]
    strategy = (*base, "servicePublishingStrategy")
    way = one.text(*strategy, "type")
    path = (*strategy, "type")
    if way not in _WAYS:
        by = f"{way or 'nothing'}{word_nearest(way, _WAYS)}"
        words = f"no matrix knows a service that is published by {by}"
        yield NoteSaid(one.place(*path), words)
        return
    yield say_setting(one, f"{name}-publishing", path, [_WAYS[way]])
    if way == "NodePort":
        yield from _read_node_port(one, (*strategy, "nodePort"), name, role)
    elif way == "LoadBalancer":
        yield from _read_balancer(one, (*strategy, "loadBalancer", "hostname"), name, role)
    elif one.has(*strategy, "route", "hostname"):
        yield from _read_route(one, (*strategy, "route", "hostname"), name)
    else:
        yield from read_status_host(one, service, name)
    # What the running cluster says of its API server, where the specification names no host.
    status = ("status", "controlPlaneEndpoint")
    spoken = any(one.has(*strategy, key, "hostname") for key in ("route", "loadBalancer"))
    if service == "APIServer" and way != "NodePort" and not spoken and one.has(*status, "host"):
        yield from say_address(one, (*status, "host"), (role,))
        port = one.port(*status, "port")
        if port:
            yield say_setting(one, "apiserver-port", (*status, "port"), [port])


def _read_node_port(one: Manifest, base: KeyPath, name: str, role: str) -> Iterator[Said]:
    if not role:
        return
    yield from say_address(one, (*base, "address"), (role,))
    port = one.port(*base, "port")
    if port:
        yield say_setting(one, f"{name}-port", (*base, "port"), [port])


def _read_route(one: Manifest, path: KeyPath, name: str) -> Iterator[Said]:
    if name == "apiserver":
        yield from say_address(one, path, ("hcp-apiserver",))
        yield from _say_name(one, path, "api")
        words = (
            "the API server is published by Route: its router serves 443, and the tables of the "
            "documents want 6443; --set apiserver-port=443 asks for what workers dial"
        )
        yield NoteSaid(one.place(*path), words)
        return
    address = address_at(one, *path)
    if address is None:
        return
    yield say_setting(one, f"{name}-hostname", path, [address.text])
    if name == "oauth":
        return
    yield AddressSaid(one.origin(*path), one.name, (f"{name}-route",), address)


def _read_balancer(one: Manifest, path: KeyPath, name: str, role: str) -> Iterator[Said]:
    if role:
        yield from say_address(one, path, (role,))
    yield from _say_name(one, path, "api" if name == "apiserver" else name)


def _say_name(one: Manifest, path: KeyPath, name: str) -> Iterator[Said]:
    """Say the name of a service, which name servers are asked for."""
    address = address_at(one, *path)
    if address is not None and address.family is None:
        yield say_setting(one, f"{name}-hostname", path, [address.text])


def api_server_of(one: Manifest) -> tuple[str, int] | None:
    """Give the name or address and the port at which workers reach the API server."""
    if _is_private(one):
        return f"api.{one.name}.hypershift.local", 6443
    for strategy in _strategies_of(one, "APIServer"):
        for way, (key, host) in _HOSTS.items():
            if one.has(*strategy, key, host):
                given = one.port(*strategy, key, "port") if way == "nodeport" else None
                return one.text(*strategy, key, host), given or (443 if way == "route" else 6443)
    host = one.text("status", "controlPlaneEndpoint", "host")
    return (host, one.port("status", "controlPlaneEndpoint", "port") or 6443) if host else None


class TunnelSaid(Struct, frozen=True):
    """How Konnectivity is published: ``server`` is HOST or HOST:PORT, and stands at ``place``.

    ``publishing`` None: a port tells nothing of it. ``title`` names the object that says it. Where
    it names no host, ``server`` is empty, and ``printing`` the command that prints the host.
    """

    server: str
    publishing: Publishing | None
    place: str
    title: str
    printing: str = ""


def tunnel_of(one: Manifest) -> TunnelSaid | None:
    """Give how workers reach Konnectivity; None where the manifest says nothing of it."""
    strategy = next(_strategies_of(one, "Konnectivity"), ())
    publishing = _WAYS.get(one.text(*strategy, "type")) if strategy else None
    if publishing is None:
        return None
    path = (*strategy, *_HOSTS[publishing])
    host = one.text(*path)
    port = one.port(*path[:-1], "port") if publishing == "nodeport" and host else None
    shown = f"[{host}]" if port and ":" in host else host
    server = f"{shown}:{port}" if port else host
    printing = "" if host else word_printing(one, publishing)
    return TunnelSaid(server, publishing, one.place(*path), one.title, printing)


def _strategies_of(one: Manifest, service: str) -> Iterator[KeyPath]:
    for base in one.each("spec", "services"):
        if one.get(*base, "service") == service:
            yield (*base, "servicePublishingStrategy")


def _is_private(one: Manifest) -> bool:
    """Tell whether workers use names that only the private network has."""
    bodies = one.keys("spec", "platform")
    said = (one.get("spec", "platform", body, "endpointAccess") for body in bodies)
    return any(_PRIVATE.get(str(access), False) for access in said)


def exceptions_of(one: Manifest) -> tuple[str, ...]:
    """Give what HyperShift adds to noProxy by itself."""
    more = ["127.0.0.1", "localhost", ".svc", ".cluster.local", ".local"]
    # The proxy in the worker itself is never asked for through another one.
    more.append(one.text("spec", "networking", "apiServer", "advertiseAddress") or NODE_LOCAL)
    more += [network.text for network in networks_of(one) if network.text]
    platform = one.text("spec", "platform", "type")
    if platform in ("AWS", "Azure"):
        more.append("169.254.169.254")
    if platform == "AWS":
        region = one.text("spec", "platform", "aws", "region")
        more.append(".ec2.internal" if region == "us-east-1" else f".{region}.compute.internal")
    return tuple(more)


def _read_proxy(one: Manifest) -> Iterator[Said]:
    proxy, urls = read_proxy(one, _BASE, CAMEL, exceptions_of(one))
    if not urls:
        return
    shown = word_urls(urls)
    yield ProxySaid(one.origin(*_BASE, shown=shown), ("worker",), proxy)
    yield SettingSaid(one.origin(*_BASE, shown=shown), "proxy", (True,))
    for key, url in urls.items():
        path = (*_BASE, key)
        kind = key.removesuffix("Proxy")
        origin = one.origin(*path, shown=str(url))
        yield AddressSaid(origin, one.name, (f"{kind}-proxy",), parse_address(url.host))
        yield SettingSaid(origin, f"{kind}-proxy-port", (url.port,))
    yield from _say_api_server_proxy(one, proxy.no_proxy, https="httpsProxy" in urls)


def _say_api_server_proxy(
    one: Manifest, no_proxy: tuple[str, ...], *, https: bool
) -> Iterator[Said]:
    """Say whether the node-local proxy must itself use the outside proxy."""
    server = api_server_of(one)
    base = (*_BASE, "httpsProxy") if https else _BASE
    shown = "set" if https else "not set"
    origin = one.origin(*base, shown=shown)
    if not https:
        why = "without an HTTPS proxy the node-local proxy is haproxy"
        yield SettingSaid(origin, "apiserver-proxy", (False,), reason=why)
    elif server is not None:
        decision = decide(*server, no_proxy)
        entry = decision.entry if not decision.proxied else None
        # HyperShift looks for this word too.
        entry = entry or ("kubernetes" if "kubernetes" in no_proxy else None)
        why = (
            f"noProxy has {entry}: the node-local proxy is haproxy"
            if entry
            else f"no entry of noProxy matches {server[0]}: the node-local proxy is "
            "control-plane-operator-kubernetes-default-proxy"
        )
        yield SettingSaid(origin, "apiserver-proxy", (entry is None,), reason=why)


def _read_identity_providers(one: Manifest) -> Iterator[Said]:
    for base in one.each("spec", "configuration", "oauth", "identityProviders"):
        path = (*base, "ldap", "url")
        if one.text(*base, "type") == "LDAP" and one.has(*path):
            yield from _read_ldap_url(one, path)


def _read_ldap_url(one: Manifest, path: KeyPath) -> Iterator[Said]:
    try:
        url, port, address = read_host_url(one.text(*path), _LDAP_PORTS)
    except (KeyError, ValueError):
        words = (
            "this is no URL of LDAP, expected one such as ldaps://ldap.example.com:636/dc=example"
        )
        one.problem(words, *path)
        return
    origin = one.origin(*path, shown=f"{url.scheme}://{address.text}:{port}")
    yield SettingSaid(origin, "ldap", (True,))
    yield SettingSaid(origin, "ldap-port", (port,))
    yield AddressSaid(origin, one.name, ("ldap",), address)


def _read_node_local_proxy(one: Manifest) -> Iterator[Said]:
    path = ("spec", "networking", "apiServer", "advertiseAddress")
    address = address_at(one, *path) if one.has(*path) else Address(NODE_LOCAL, 4)
    if address is not None:
        shown = address.text if one.has(*path) else f"{address.text} (its default)"
        origin = one.origin(*path, shown=shown)
        yield AddressSaid(origin, one.name, ("node-local-proxy",), address)
    port = one.port("spec", "networking", "apiServer", "port")
    if port:
        yield say_setting(
            one, "node-local-port", ("spec", "networking", "apiServer", "port"), [port]
        )


def read_node_pool(one: Manifest) -> Iterator[Said]:
    """Say platform and version, which count where no HostedCluster says them."""
    for said in say_platform(one):
        yield replace(said, weak=True)
    version = version_of_image(one.text("spec", "release", "image"))
    if version:
        said = say_setting(one, "version", ("spec", "release", "image"), [version])
        yield replace(said, weak=True)


def cluster_of(one: Manifest) -> str:
    """Give the name of the hosted cluster that the pool belongs to."""
    return one.text("spec", "clusterName")


def is_pool_of(one: Manifest, cluster: Manifest) -> bool:
    """Tell whether the pool is the cluster's: HyperShift looks in the cluster's namespace only.

    One that names no namespace may be in any.
    """
    spaces = {here for here in (one.namespace, cluster.namespace) if here}
    return cluster_of(one) == cluster.name and len(spaces) < 2


def nodes_of(one: Manifest) -> tuple[int, int] | None:
    """Give how many nodes it has now, and at most; None where it does not say."""
    most = one.number("spec", "autoScaling", "max")
    least = one.number("spec", "autoScaling", "min")
    replicas = one.number("spec", "replicas")
    if most is not None:
        return (least if least is not None else 1), most
    return None if replicas is None else (replicas, replicas)
