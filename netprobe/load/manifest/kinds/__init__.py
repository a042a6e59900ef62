"""One file a kind of manifest, and the literal table of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from netprobe.load.manifest.kinds.agent_config import read_agent_config
from netprobe.load.manifest.kinds.deckhouse_cluster import (
    read_cluster_configuration,
    read_init_configuration,
    read_static_configuration,
)
from netprobe.load.manifest.kinds.deckhouse_ingress import read_ingress_controller
from netprobe.load.manifest.kinds.deckhouse_module import read_module_config
from netprobe.load.manifest.kinds.hosted_cluster import read_hosted_cluster
from netprobe.load.manifest.kinds.ignition import read_ignition
from netprobe.load.manifest.kinds.install_config import read_install_config
from netprobe.load.manifest.kinds.kubean_cluster import read_kubean_cluster
from netprobe.load.manifest.kinds.kubean_hosts import read_kubean_hosts
from netprobe.load.manifest.kinds.kubean_vars import read_kubean_vars
from netprobe.load.manifest.kinds.management_proxy import read_management_proxy
from netprobe.load.manifest.kinds.node_pool import read_node_pool
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import Said

ReadManifest = Callable[[Manifest], Iterator[Said]]

KINDS: Mapping[str, ReadManifest] = {
    "HostedCluster": read_hosted_cluster,
    "NodePool": read_node_pool,
    "Proxy": read_management_proxy,
    "Ignition": read_ignition,
    "install-config": read_install_config,
    "AgentConfig": read_agent_config,
    "Cluster": read_kubean_cluster,
    "Kubean vars": read_kubean_vars,
    "Kubean hosts": read_kubean_hosts,
    "ClusterConfiguration": read_cluster_configuration,
    "InitConfiguration": read_init_configuration,
    "StaticClusterConfiguration": read_static_configuration,
    "ModuleConfig": read_module_config,
    "IngressNginxController": read_ingress_controller,
}
# Kinds that other rules read, or that only hold others.
OTHER_KINDS = frozenset({"NetworkAttachmentDefinition", "ConfigMap", "Secret"})
