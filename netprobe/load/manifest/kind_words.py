"""What each kind of manifest gives, for people: docs/manifests.md prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# By the name of the kind: what becomes settings, and what addresses and proxies.
KIND_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "`HostedCluster`": (
        "`platform`, `private` (`endpointAccess`), `version` (the tag of `spec.release.image`, "
        "else `status.version`), `network`, `hypershift-guest`; of each service `*-publishing`, "
        "`*-port`, `*-hostname` (of routes without one: `status.ignitionEndpoint`, and the host "
        "of `status.oauthCallbackURLTemplate`); [`proxy` and what belongs to it](hcp-proxies.md)",
        "where the API server, Konnectivity and Ignition are published; the workers' proxy; its "
        "[internal subnets](subnets.md) are checked; two services at one address and node port "
        "are a note",
    ),
    "`NodePool`": (
        "`platform` and `version`, where no HostedCluster says them",
        "how many nodes there will be; only pools in the namespace of the HostedCluster count",
    ),
    "Ignition (a user-data stub, also inside a `Secret`)": (
        "`ignition-hostname`, `ignition-port`, `ignition-proxy`",
        "the proxy for Ignition",
    ),
    "`Proxy` of `config.openshift.io`": (
        "`management-proxy`",
        "the management cluster's proxy",
    ),
    "`NetworkAttachmentDefinition`": (
        "",
        "a secondary network's CIDR",
    ),
    "`install-config`": (
        "`platform`, `network`, `features` and `provisioning-network` (bare metal "
        "provisioning), `virtual-media` (a BMC's address says it)",
        "the nodes' proxy; the BMCs of bare metal, `apiVIPs` and `ingressVIPs`; beside a "
        "NodePool with secondary networks the proxy is the management cluster's, and its "
        "`noProxy` is checked",
    ),
    "`DaemonSet` konnectivity-agent": (
        "",
        "where its agents dial, for [`diagnose konnectivity`](konnectivity.md)",
    ),
    "`AgentConfig`": (
        "",
        "hosts with their roles and addresses",
    ),
    "Kubean's `Cluster` with its `ConfigMap`s, or its group_vars alone": (
        "`cni`, `calico-vxlan`, `calico-ipip`, `calico-typha`, `calico-wireguard-ipv4`, "
        "`metallb`, `kubevip`",
        "hosts with their groups as roles; the nodes' proxy",
    ),
    "Deckhouse's `ClusterConfiguration`, `StaticClusterConfiguration`, `InitConfiguration`": (
        "`nodes`, `modules` (the cloud provider)",
        "the nodes' proxy, the registry",
    ),
    "Deckhouse's `ModuleConfig`, `IngressNginxController`": (
        "`modules`, `cni` (where it does not tunnel, a note repeats the document's condition); "
        "`inlet`",
        "",
    ),
}
