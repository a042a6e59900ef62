"""One file a product with its kinds of manifests, and the literal table of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from netprobe.load.manifest.kinds import (
    deckhouse,
    hosted_cluster,
    ignition,
    konnectivity_agent,
    kubean,
    openshift,
)
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import Said

ReadManifest = Callable[[Manifest], Iterator[Said]]

KINDS: Mapping[str, ReadManifest] = {
    "HostedCluster": hosted_cluster.read_hosted_cluster,
    "NodePool": hosted_cluster.read_node_pool,
    "Proxy": openshift.read_management_proxy,
    "Ignition": ignition.read_ignition,
    "install-config": openshift.read_install_config,
    "AgentConfig": openshift.read_agent_config,
    "Cluster": kubean.read_kubean_cluster,
    "Kubean vars": kubean.read_kubean_vars,
    "Kubean hosts": kubean.read_kubean_hosts,
    "ClusterConfiguration": deckhouse.read_cluster_configuration,
    "InitConfiguration": deckhouse.read_init_configuration,
    "StaticClusterConfiguration": deckhouse.read_static_configuration,
    "ModuleConfig": deckhouse.read_module_config,
    "IngressNginxController": deckhouse.read_ingress_controller,
}
# Kinds that other rules read, or that only hold others.
OTHER_KINDS = frozenset({"NetworkAttachmentDefinition", "ConfigMap", "Secret", "DaemonSet"})
# Of these kinds some say where Konnectivity's agents dial.
TUNNELS: Mapping[str, Callable[[Manifest], hosted_cluster.TunnelSaid | None]] = {
    "HostedCluster": hosted_cluster.tunnel_of,
    "DaemonSet": konnectivity_agent.tunnel_of_agent,
}


def read_tunnels(objects: Iterable[Manifest]) -> list[hosted_cluster.TunnelSaid]:
    """Give where agents dial, as far as these objects say it."""
    said = (TUNNELS[one.kind](one) for one in objects if one.kind in TUNNELS)
    return [one for one in said if one is not None]
