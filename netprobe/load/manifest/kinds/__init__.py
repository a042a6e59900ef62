"""One file a product with its kinds of manifests, and the literal table of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from netprobe.load.manifest.kinds.deckhouse import (
    read_cluster_configuration,
    read_ingress_controller,
    read_init_configuration,
    read_module_config,
    read_static_configuration,
)
from netprobe.load.manifest.kinds.hosted_cluster import read_hosted_cluster
from netprobe.load.manifest.kinds.ignition import read_ignition
from netprobe.load.manifest.kinds.kubean import (
    read_kubean_cluster,
    read_kubean_hosts,
    read_kubean_vars,
)
from netprobe.load.manifest.kinds.node_pool import read_node_pool
from netprobe.load.manifest.kinds.openshift import (
    read_agent_config,
    read_install_config,
    read_management_proxy,
)
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
