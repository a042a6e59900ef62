"""Proxies of hosted control planes: what the okd-hcp document says that no packet can show.

Who must reach which proxy are rows of the matrix. Here is the rest of "Proxy support for hosted
control planes": clusters without workers, LDAP, and secondary networks in noProxy.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from netprobe.load.manifest.kinds.openshift import read_management_proxy
from netprobe.load.manifest.kinds.shared import read_no_proxy
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.networks import IpNetwork, NamedNetwork, networks_of
from netprobe.load.manifest.said import ProxySaid
from netprobe.load.yaml.document import PathStep
from netprobe.load.yaml.source import parse_json
from netprobe.model.printable import word_command

_ZERO = (
    "Some operations are not possible when a hosted cluster is reduced to zero compute nodes; for "
    "example, when you import OpenShift image streams from a registry that requires proxy access."
)
_SECONDARY = (
    "you need to add the CIDR of the secondary network to the noProxy section of the proxy "
    "configuration for the management cluster. Otherwise, the Kubernetes API server will route "
    "some API requests through the proxy."
)
_PROXY: tuple[PathStep, ...] = ("spec", "configuration", "proxy")
_NO_PROXY: dict[str, tuple[PathStep, ...]] = {"install-config": ("proxy", "noProxy")}
_OF_POOL: tuple[PathStep, ...] = ("spec", "platform", "kubevirt")


def word_zero_workers(
    cluster: Manifest, nodes: tuple[int, int] | None, workers: int
) -> Iterator[str]:
    """Say what does not work while a cluster that has a proxy has no worker.

    ``nodes``: how many its NodePools have now and at most; ``workers``: those of the inventory.
    """
    if _has_proxy(cluster) and nodes is not None and nodes[0] == 0:
        now = " now" if nodes[1] else ""
        if workers:
            now += f" by its NodePools ({workers:,} by the inventory, whose rows are probed)"
        yield (
            f"warning: {cluster.place(*_PROXY)}: {cluster.title} has no compute node{now}, "
            "and its control plane reaches the proxy through these "
            f'only; no firewall is at fault: "{_ZERO}"'
        )


def word_ldap(cluster: Manifest) -> Iterator[str]:
    """Say that identity providers of LDAP are never asked through an HTTP proxy."""
    if not _has_proxy(cluster):
        return
    for path in cluster.each("spec", "configuration", "oauth", "identityProviders"):
        if cluster.get(*path, "type") == "LDAP":
            name = cluster.text(*path, "name") or "LDAP"
            yield (
                f"{cluster.place(*path)}: identity provider {name} is LDAP, which never goes "
                'through an HTTP proxy: workers must reach it directly (the document: "The OAuth '
                'server needs non-LDAP identity provider access.")'
            )


def check_secondary_networks(
    pools: Sequence[Manifest],
    proxies: Sequence[Manifest],
    attachments: Sequence[Manifest],
    networks: Sequence[NamedNetwork],
) -> Iterator[str]:
    """Add a problem where the management cluster's noProxy lacks a secondary network; give notes.

    Of the management cluster there is its Proxy, or the install-config that it was made from. A
    network's CIDR is in its NetworkAttachmentDefinition, or given by ``--network NAME=CIDR``.
    """
    using = [one for one in proxies if _is_in_use(one)]
    for pool in pools:
        if pool.boolean(*_OF_POOL, "attachDefaultNetwork") is not False:
            continue
        for path in pool.each(*_OF_POOL, "additionalNetworks"):
            name = pool.text(*path, "name")
            place = pool.place(*path, "name")
            names = (name, name.rpartition("/")[2])
            found = [one.network for one in networks if one.name in names]
            found += _networks_attached(name, attachments)
            if not using:
                yield (
                    f"warning: {place}: {pool.title} has the secondary network {name} and no "
                    "default pod network; if the management cluster has a proxy, give its Proxy "
                    f'or install-config with --manifest: "{_SECONDARY}"'
                )
            elif not found:
                yield (
                    f"warning: {place}: nothing says which CIDR the secondary network {name} has: "
                    f"give {word_command(['--network', f'{name}=CIDR'])}, or its "
                    "NetworkAttachmentDefinition; "
                    f'"{_SECONDARY}"'
                )
            for proxy in using:
                for network in found:
                    _check_no_proxy(proxy, name, network)


def _has_proxy(cluster: Manifest) -> bool:
    return any(cluster.has(*_PROXY, key) for key in ("httpProxy", "httpsProxy"))


def _networks_attached(name: str, attachments: Sequence[Manifest]) -> Iterator[IpNetwork]:
    for one in attachments:
        space = one.text("metadata", "namespace")
        if name not in (f"{space}/{one.name}", one.name):
            continue
        try:
            config = parse_json(one.text("spec", "config"))
        except ValueError as error:
            one.problem(f"{error}, expected the configuration of a CNI", "spec", "config")
            continue
        for text in _find_subnets(config):
            try:
                yield ipaddress.ip_network(text, strict=False)
            except ValueError:
                one.problem(f"{text} is no network", "spec", "config")


def _find_subnets(config: object) -> Iterator[str]:
    """Give every subnet of a CNI's configuration: of OVN, of whereabouts, of host-local."""
    if isinstance(config, list):
        for item in config:
            yield from _find_subnets(item)
    elif isinstance(config, dict):
        for key, value in config.items():
            if key in ("subnets", "subnet", "range") and isinstance(value, str):
                # Of each CIDR of OVN's list a prefix for hosts may follow: 10.1.0.0/16/24.
                for part in value.split(","):
                    yield "/".join(part.strip().split("/")[:2])
            elif isinstance(value, dict | list):
                yield from _find_subnets(value)


def _is_in_use(proxy: Manifest) -> bool:
    if proxy.kind == "install-config":
        return any(proxy.has("proxy", key) for key in ("httpProxy", "httpsProxy"))
    return any(isinstance(said, ProxySaid) for said in read_management_proxy(proxy))


def _check_no_proxy(proxy: Manifest, name: str, network: IpNetwork) -> None:
    base = _NO_PROXY.get(proxy.kind, ("spec", "noProxy"))
    entries = [*read_no_proxy(proxy, *base), *read_no_proxy(proxy, "status", "noProxy")]
    if proxy.kind == "install-config":
        # The installer adds these by itself.
        entries += [one.text for one in networks_of(proxy, ("networking",))]
    if "*" in entries or any(_covers_network(entry, network) for entry in entries):
        return
    words = f"noProxy has no entry for {network}, the secondary network {name}"
    proxy.problem(f'{words}; the document: "{_SECONDARY}"', *base)


def _covers_network(entry: str, network: IpNetwork) -> bool:
    try:
        other = ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
    if isinstance(other, ipaddress.IPv4Network) and isinstance(network, ipaddress.IPv4Network):
        return network.subnet_of(other)
    if isinstance(other, ipaddress.IPv6Network) and isinstance(network, ipaddress.IPv6Network):
        return network.subnet_of(other)
    return False
