"""Proxies of hosted control planes: the five cases of the document, as manifests say them."""

from __future__ import annotations

from datetime import date

import pytest

from netprobe.plan.expand import make_plan
from tests.load.manifest.estate import Desk

OKD = "okd-hcp"
PROXY = "hosted-cluster-proxy.yaml"
HOSTS = """\
schema: netprobe.inventory/1
hosts:
  worker-0: {address: 192.168.150.20, roles: [worker]}
  mgmt-0: {address: 10.0.0.20, roles: [management-cluster]}
  hcp-0: {address: 10.0.0.30, roles: [hcp]}
  outside: {address: 203.0.113.7, roles: [external-https], vantage: none}
  dns: {address: 203.0.113.53, roles: [dns], vantage: none}
"""
ZERO = "Some operations are not possible when a hosted cluster is reduced to zero compute nodes"
SECONDARY = "you need to add the CIDR of the secondary network to the noProxy section of the proxy"


def flows(desk: Desk, *files: str, sets: tuple[str, ...] = (), inventory: str = HOSTS) -> set[str]:
    """The flows of the rows about proxies: ``requirement: source > address port``."""
    loaded = desk.load(OKD, *files, sets=sets, inventory=inventory)
    plan = make_plan([loaded.chosen], loaded.inventory, date(2026, 11, 22))
    return {
        f"{block.requirement.id}: {one.source.name} > {one.address.text} {block.ports[0][0]}"
        for block in plan.blocks
        for one in block.flows()
        if block.requirement.row.startswith("Proxy support")
    }


def test_control_plane_workloads(desk: Desk) -> None:
    """Workers, and not the control plane, must reach the proxy; DNS goes directly, LDAP too."""
    desk.sample(PROXY)

    assert flows(desk, PROXY) == {
        "worker-http-proxy: worker-0 > proxy.example.org 3128",
        "worker-https-proxy: worker-0 > proxy.example.org 3129",
        "worker-ldap: worker-0 > ldap.example.org 636",
        "workloads-dns-tcp: hcp-0 > 203.0.113.53 53",
        "workloads-dns-udp: hcp-0 > 203.0.113.53 53",
        "worker-apiserver-proxy: worker-0 > proxy.example.org 3129",
    }


def test_the_proxy_reaches_the_outside(desk: Desk) -> None:
    """\"And then to its final destination\": a proxy that has an agent is a source."""
    desk.sample(PROXY)
    inventory = HOSTS + "  squid: {address: 10.0.0.40, roles: [proxy]}\n"
    found = flows(desk, PROXY, inventory=inventory)

    assert "proxy-external-https: squid > 203.0.113.7 443" in found
    assert "worker-http-proxy: worker-0 > 10.0.0.40 3128" in found


def test_nothing_of_it_without_a_proxy(desk: Desk) -> None:
    """Without a proxy only the node-local one is left, once the cluster is installed."""
    desk.sample("hosted-cluster-agent.yaml")
    name = "hosted-cluster-agent.yaml"

    assert flows(desk, name) == set()
    assert flows(desk, name, sets=("phase=post-bootstrap",)) == {
        "node-local-haproxy: worker-0 > 172.20.0.1 6443"
    }


# noProxy, and whether the node-local proxy must use the outside one.
NODE_LOCAL = [
    ("host.example.org", True, "no entry of noProxy matches api.hc1.example.com"),
    ("api.hc1.example.com", False, "noProxy has api.hc1.example.com"),
    ("example.com", False, "noProxy has example.com"),
    (".hc1.example.com", False, "noProxy has .hc1.example.com"),
    ("api.hc1.example.com:443", True, "no entry of noProxy matches"),
    ("kubernetes", False, "noProxy has kubernetes"),
    ("*", False, "noProxy has *"),
]


@pytest.mark.parametrize(("entry", "proxied", "words"), NODE_LOCAL)
def test_the_node_local_proxy(desk: Desk, entry: str, proxied: bool, words: str) -> None:
    """haproxy without, HyperShift's own proxy with an outside proxy; and why."""
    desk.sample(PROXY, ("host.example.org,.internal.example.org", f'"{entry}"'))
    loaded = desk.load(OKD, PROXY, inventory=HOSTS)
    assert loaded.settings["apiserver-proxy"] is proxied
    (said,) = (one for one in loaded.gives if one.startswith("apiserver-proxy="))
    assert words in said
    program = "control-plane-operator-kubernetes-default-proxy" if proxied else "haproxy"
    assert said.endswith(f"the node-local proxy is {program}")

    found = flows(desk, PROXY, sets=("phase=post-bootstrap",))
    row = "node-local-own-proxy" if proxied else "node-local-haproxy"
    local = {one for one in found if one.startswith("node-local")}
    assert local == {f"{row}: worker-0 > 172.20.0.1 6443"}
    assert ("worker-apiserver-proxy: worker-0 > proxy.example.org 3129" in found) is proxied


def test_the_node_local_proxy_of_a_private_cluster(desk: Desk) -> None:
    """Its workers dial a name of the private network, which HyperShift keeps from the proxy."""
    private = "type: KubeVirt\n    aws: {region: us-east-1, endpointAccess: Private}\n  networking"
    desk.sample(PROXY, ("type: KubeVirt\n  networking", private))
    (said,) = (one for one in desk.load(OKD, PROXY).gives if one.startswith("apiserver-proxy="))
    assert said == "apiserver-proxy=false; noProxy has .local: the node-local proxy is haproxy"


def test_the_node_local_proxy_elsewhere(desk: Desk) -> None:
    """advertiseAddress and port say where it is, if not at the document's address."""
    own = "apiServer: {advertiseAddress: 172.22.0.1, port: 7443}\n    networkType: OVN"
    desk.sample(PROXY, ("networkType: OVN", own))
    found = flows(desk, PROXY, sets=("phase=post-bootstrap",))
    assert "node-local-own-proxy: worker-0 > 172.22.0.1 7443" in found


def test_http_only(desk: Desk) -> None:
    """Without an HTTPS proxy the API server is reached without one."""
    desk.sample(PROXY, ("      httpsProxy: http://user:secret@proxy.example.org:3129\n", ""))
    loaded = desk.load(OKD, PROXY)

    assert loaded.settings["apiserver-proxy"] is False
    assert "worker-https-proxy" not in str(flows(desk, PROXY))


# The stub's noProxy, and whether Ignition goes through its proxy.
STUBS = [
    ("host.example.org", True),
    ("ignition.controlplanehost.example.com", False),
    ("controlplanehost.example.com", False),
    (".controlplanehost.example.com", False),
    (".ignition.controlplanehost.example.com", True),
    ("ignition.controlplanehost.example.com:22623", True),
    ("10.0.0.0/8", True),
    ("*", False),
]


@pytest.mark.parametrize(("entry", "proxied"), STUBS)
def test_ignition_through_the_stubs_proxy(desk: Desk, entry: str, proxied: bool) -> None:
    """noProxy is honoured as Go does; a worker that goes directly need not reach the proxy."""
    desk.sample("user-data-stub.yaml", ("host.example.org", entry))
    stub = "user-data-stub.yaml"
    row = "worker-stub-proxy: worker-0 > proxy.example.org 3129"

    assert flows(desk, stub) == ({row} if proxied else set())
    assert flows(desk, stub, sets=("phase=post-bootstrap",)) & {row} == set()


def test_a_stub_without_a_proxy(desk: Desk) -> None:
    """Then Ignition goes directly, whatever proxy the hosted cluster has."""
    proxy = '"proxy":{"httpProxy":"http://proxy.example.org:3128", "httpsProxy":"https://proxy.exam'
    text = 'ple.org:3129", "noProxy":"host.example.org"},'
    desk.sample("user-data-stub.yaml", (proxy + text, ""))
    desk.sample(PROXY)
    loaded = desk.load(OKD, PROXY, "user-data-stub.yaml")

    worker = loaded.host("worker-0")
    ignition = worker.proxy_for("ignition")
    assert ignition is not None
    assert (ignition.https_proxy, ignition.http_proxy) == (None, None)
    konnectivity = worker.proxy_for("konnectivity")
    assert konnectivity is not None
    assert konnectivity.https_proxy
    assert loaded.settings["ignition-proxy"] is False


def test_the_management_clusters_proxy(desk: Desk) -> None:
    """Its nodes and the control planes on it must reach it; workers need not."""
    desk.sample("management-proxy.yaml")
    loaded = desk.load(OKD, "management-proxy.yaml", inventory=HOSTS)

    assert flows(desk, "management-proxy.yaml") == {
        "management-proxy: mgmt-0 > mgmt-proxy.example.org 3130",
        "management-proxy: hcp-0 > mgmt-proxy.example.org 3130",
    }
    proxy = loaded.host("hcp-0").proxy
    assert proxy is not None
    assert {".example.org", "10.0.0.0/8", ".svc"} <= set(proxy.no_proxy)
    assert loaded.host("worker-0").proxy is None


def test_zero_workers(desk: Desk) -> None:
    """That control planes cannot reach their proxy then is said, and no firewall is accused."""
    desk.sample(PROXY, ("replicas: 2", "replicas: 0"))
    inventory = HOSTS.replace("roles: [worker]", "roles: [external-client]")
    (note,) = (one for one in desk.load(OKD, PROXY, inventory=inventory).notes if ZERO in one)
    assert note.startswith(f"warning: {PROXY}:40:7: HostedCluster hc1 has no compute node, and")
    assert "no firewall is at fault" in note
    assert not [one for one in flows(desk, PROXY, inventory=inventory) if one.startswith("worker")]

    notes = desk.load(OKD, PROXY).notes
    (note,) = (one for one in notes if ZERO in one)
    assert "no compute node by its NodePools (2 by the inventory, whose rows are probed)" in note
    sizes = [one for one in notes if "the cluster has" in one]
    assert sizes
    assert all("the cluster has 2 nodes by the inventory (0 by NodePools)" in one for one in sizes)
    assert [one for one in flows(desk, PROXY) if one.startswith("worker")]

    desk.sample(PROXY, ("replicas: 2", "autoScaling: {min: 0, max: 3}"))
    assert [one for one in desk.load(OKD, PROXY).notes if "no compute node now" in one]
    desk.sample(PROXY)
    assert not [one for one in desk.load(OKD, PROXY).notes if ZERO in one]


def test_ldap_never_by_an_http_proxy(desk: Desk) -> None:
    """It is said, only of LDAP, and only where there is a proxy; its row is no service of HTTP."""
    desk.sample(PROXY)
    (note,) = (one for one in desk.load(OKD, PROXY).notes if "LDAP" in one)
    assert note.startswith(f"{PROXY}:45:9: identity provider directory is LDAP, which never goes")

    desk.sample(PROXY, ("    proxy:\n      httpProxy", "    other:\n      httpProxy"))
    assert not [one for one in desk.load(OKD, PROXY).notes if "LDAP" in one]
    assert flows(desk, PROXY) == {"worker-ldap: worker-0 > ldap.example.org 636"}


LDAP_URLS = [("ldap://ldap.example.org", 389), ("ldap://ldap.example.org:3389/dc=x?uid", 3389)]


@pytest.mark.parametrize(("url", "port"), LDAP_URLS)
def test_ports_of_ldap(desk: Desk, url: str, port: int) -> None:
    """The scheme's port, unless the URL names one."""
    desk.sample(PROXY, ("ldaps://ldap.example.org/ou=users,dc=example,dc=org?uid", url))
    assert desk.load(OKD, PROXY).settings["ldap-port"] == port


# noProxy of the management cluster, and whether 192.168.150.0/24 is in it.
SECONDARIES = [
    (".example.org,10.0.0.0/8", False),
    (".example.org,192.168.150.0/24", True),
    ("192.168.0.0/16", True),
    ("192.168.150.0/25,192.168.150.128/25", False),
    ("192.168.150.20", False),
    ("fd00::/8", False),
    ("*", True),
]


@pytest.mark.parametrize("source", ["attachment", "option", "short"])
@pytest.mark.parametrize(("entries", "fine"), SECONDARIES)
def test_a_secondary_network(desk: Desk, entries: str, fine: bool, source: str) -> None:
    """Its CIDR, from its definition or --network, must be in the management cluster's noProxy."""
    desk.sample(PROXY)
    desk.sample("management-proxy.yaml", (".example.org,10.0.0.0/8", f'"{entries}"'))
    files = [PROXY, "management-proxy.yaml"]
    networks: tuple[str, ...] = ()
    if source == "attachment":
        desk.sample("secondary-network.yaml")
        files.append("secondary-network.yaml")
    else:
        name = "clusters/vlan150" if source == "option" else "vlan150"
        networks = (f"{name}=192.168.150.0/24",)
    if fine:
        assert SECONDARY not in str(desk.load(OKD, *files, networks=networks).notes)
        return
    (found,) = desk.problems(OKD, *files, networks=networks)
    assert found.startswith(
        "management-proxy.yaml:9:12: noProxy has no entry for 192.168.150.0/24, the secondary "
        f'network clusters/vlan150; the document: "{SECONDARY}'
    )


@pytest.mark.parametrize(
    ("entries", "fine"), [("example.com", False), ("example.com,192.168.150.0/24", True)]
)
def test_the_install_config_of_the_management_cluster_has_its_no_proxy(
    desk: Desk, entries: str, fine: bool
) -> None:
    """As its Proxy has; what the installer adds by itself, its own networks, counts too."""
    desk.sample(PROXY)
    desk.sample("secondary-network.yaml")
    desk.sample("install-config.yaml", ("noProxy: example.com", f"noProxy: {entries}"))
    files = (PROXY, "secondary-network.yaml", "install-config.yaml")
    if fine:
        assert SECONDARY not in str(desk.load(OKD, *files).notes)
        return
    (found,) = desk.problems(OKD, *files)
    assert found.startswith(
        "install-config.yaml:28:12: noProxy has no entry for 192.168.150.0/24, the secondary net"
    )
    desk.sample("install-config.yaml", ("cidr: 10.0.0.0/16", "cidr: 192.168.0.0/16"))
    assert SECONDARY not in str(desk.load(OKD, *files).notes)


def test_a_secondary_network_that_cannot_be_checked(desk: Desk) -> None:
    """Without the management cluster's Proxy, or the CIDR, it is a warning what to give."""
    desk.sample(PROXY)
    desk.sample("management-proxy.yaml")
    (alone,) = (one for one in desk.load(OKD, PROXY).notes if SECONDARY in one)
    assert "give its Proxy or install-config with --manifest" in alone
    (unknown,) = (
        one for one in desk.load(OKD, PROXY, "management-proxy.yaml").notes if SECONDARY in one
    )
    assert unknown.startswith(f"warning: {PROXY}:69:15: nothing says which CIDR the secondary")
    assert "--network clusters/vlan150=CIDR" in unknown


def test_the_default_pod_network_needs_no_entry(desk: Desk) -> None:
    """The sentence is about hosted clusters without it; a Proxy without a proxy asks nothing."""
    desk.sample("management-proxy.yaml")
    desk.sample("secondary-network.yaml")
    files = (PROXY, "management-proxy.yaml", "secondary-network.yaml")
    desk.sample(PROXY, ("attachDefaultNetwork: false", "attachDefaultNetwork: true"))
    assert SECONDARY not in str(desk.load(OKD, *files).notes)

    desk.sample(PROXY)
    empty = "apiVersion: config.openshift.io/v1\nkind: Proxy\nspec: {}\n"
    desk.write("management-proxy.yaml", empty)
    assert "give its Proxy" in str(desk.load(OKD, *files).notes)


ATTACHMENTS = [
    ('{"ipam": {"type": "whereabouts", "range": "192.168.150.0/24"}}', "192.168.150.0/24"),
    ('{"ipam": {"ranges": [[{"subnet": "192.168.151.0/24"}]]}}', "192.168.151.0/24"),
    ('{"subnets": "10.1.0.0/16,192.168.152.0/24"}', "192.168.152.0/24"),
    ('{"plugins": [{"subnets": "192.168.153.0/24/28"}]}', "192.168.153.0/24"),
]


@pytest.mark.parametrize(("config", "missing"), ATTACHMENTS)
def test_every_way_to_write_a_subnet(desk: Desk, config: str, missing: str) -> None:
    """whereabouts, host-local, OVN and lists of plugins name their networks differently."""
    desk.sample(PROXY)
    desk.sample("management-proxy.yaml")
    desk.write(
        "nad.yaml",
        "kind: NetworkAttachmentDefinition\nmetadata: {name: vlan150, namespace: clusters}\n"
        f"spec: {{config: '{config}'}}\n",
    )
    (found,) = desk.problems(OKD, PROXY, "management-proxy.yaml", "nad.yaml")
    assert f"no entry for {missing}" in found


HURT_CONFIGS = [
    ('{"a": ' + "[" * 30_000 + "]" * 30_000 + "}", "this is nested deeper than 100 levels"),
    ('{"a": ' + "[" * 101 + "0" + "]" * 101 + "}", "this is nested deeper than 100 levels"),
    ('{"a": ' + "[" * 30_000, "this is nested deeper than 100 levels"),
    ('{"subnets": ', "this is no JSON"),
    ('{"mtu": ' + "9" * 5000 + "}", "this is no JSON"),
]


@pytest.mark.parametrize(("config", "words"), HURT_CONFIGS, ids=lambda one: one[:20])
def test_a_configuration_that_cannot_be_read(desk: Desk, config: str, words: str) -> None:
    """What is no JSON, or nested without end, is a problem at its place."""
    desk.sample(PROXY)
    desk.sample("management-proxy.yaml")
    desk.write(
        "nad.yaml",
        "kind: NetworkAttachmentDefinition\nmetadata: {name: vlan150, namespace: clusters}\n"
        f"spec:\n  config: '{config}'\n",
    )
    found = desk.problems(OKD, PROXY, "management-proxy.yaml", "nad.yaml")
    assert found == [f"nad.yaml:4:11: {words}, expected the configuration of a CNI"]
