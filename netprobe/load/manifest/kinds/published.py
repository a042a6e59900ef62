"""What a HostedCluster says of its services beside the specification: its status, and clashes.

And what it does not say: where a cluster has the host of Konnectivity.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from netprobe.load.inventory.addresses import parse_address
from netprobe.load.manifest.kinds.shared import KeyPath, say_setting
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import AddressSaid, NoteSaid, Said
from netprobe.model.printable import word_command

# Where the status of a running cluster names the host of a service that is published by a route.
_OF_STATUS: dict[str, KeyPath] = {
    "Ignition": ("status", "ignitionEndpoint"),
    "OAuthServer": ("status", "oauthCallbackURLTemplate"),
}
# What has the host of Konnectivity, by the way of publishing, and where in it.
_PRINTED: dict[str, tuple[str, str]] = {
    "route": ("route", "{.spec.host}"),
    "loadbalancer": ("service", "{.status.loadBalancer.ingress[0]}"),
}


def word_printing(one: Manifest, publishing: str) -> str:
    """Give the command that prints the host of Konnectivity; a node's address none prints."""
    if publishing not in _PRINTED:
        return ""
    kind, path = _PRINTED[publishing]
    # HyperShift's own name for the namespace of a control plane.
    space = f"{one.text('metadata', 'namespace') or 'NAMESPACE'}-{one.name.replace('.', '-')}"
    words = ("-n", space, "get", kind, "konnectivity-server", "-o", f"jsonpath={path}")
    return word_command(("oc", *words))


def read_status_host(one: Manifest, service: str, name: str) -> Iterator[Said]:
    """Say the host that the status names for a service of which the specification names none."""
    path = _OF_STATUS.get(service)
    if path is None or not one.has(*path):
        return
    text = one.text(*path)
    try:
        host = urlsplit(text if "://" in text else f"//{text}").hostname or ""
        address = parse_address(host)
    except ValueError:
        words = "this names no host, expected one such as ignition-hc1.apps.example.com"
        one.problem(words, *path)
        return
    yield say_setting(one, f"{name}-hostname", path, [address.text])
    if service == "Ignition":
        yield AddressSaid(one.origin(*path), one.name, (f"{name}-route",), address)


def word_shared_ports(one: Manifest) -> Iterator[NoteSaid]:
    """Say which services are published at one address and node port: only one can answer."""
    seen: dict[tuple[str, str], str] = {}
    for base in one.each("spec", "services"):
        service = one.text(*base, "service")
        at = (*base, "servicePublishingStrategy", "nodePort")
        address, port = one.text(*at, "address").lower(), one.text(*at, "port")
        if not address or port in ("", "0"):
            continue
        other = seen.setdefault((address, port), service)
        if other != service:
            yield NoteSaid(
                one.place(*at, "port"),
                f"{other} and {service} are both published at {address}, node port {port}: only "
                "one of them can answer there",
            )
