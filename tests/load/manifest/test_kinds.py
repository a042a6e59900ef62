"""What each kind of manifest gives: settings, hosts and proxies, each with its place."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from netprobe.load.manifest.kinds import KINDS
from netprobe.load.manifest.manifests import GivenManifests, read_manifests
from netprobe.model.inventory import Proxy
from tests.load.manifest.estate import NODES, SAMPLES, Desk, inventory_of

HYPERSHIFT, OKD, OCP = "hypershift-hcp", "okd-hcp", "openshift-host-ports"
DCE, DECKHOUSE = "dce", "deckhouse-nodes"
MODULES = (
    *("cloud-provider-vcd", "l2-load-balancer", "metallb", "node-local-dns", "openvpn"),
    *("runtime-audit-engine", "sds-node-configurator", "sds-replicated-volume", "virtualization"),
)

# matrix, sample, the settings that differ from the defaults, the hosts that were added.
CASES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    (
        HYPERSHIFT,
        "hosted-cluster-agent.yaml",
        {
            "platform": "agent",
            "version": "4.20.3",
            "apiserver-publishing": "nodeport",
            "apiserver-port": 30443,
            "konnectivity-publishing": "nodeport",
            "konnectivity-port": 30091,
            "ignition-publishing": "nodeport",
            "ignition-port": 30843,
        },
        {
            "hc1-hcp": (["10.1.0.7"], ("hcp-apiserver", "hcp-ignition")),
            "hc1-hcp-konnectivity": (["10.1.0.8"], ("hcp-konnectivity",)),
        },
    ),
    (
        HYPERSHIFT,
        "hosted-cluster-aws-list.yaml",
        {
            "version": "4.20.5",
            "private": True,
            "apiserver-publishing": "loadbalancer",
            "oauth-hostname": "oauth-prod.apps.mgmt.example.com",
            "konnectivity-hostname": "konnectivity-prod.apps.mgmt.example.com",
            "ignition-hostname": "ignition-prod.apps.mgmt.example.com",
        },
        {
            "prod-hcp-apiserver": (["a0b1c2-prod.elb.eu-west-1.amazonaws.com"], ("hcp-apiserver",)),
            "prod-konnectivity-route": (
                ["konnectivity-prod.apps.mgmt.example.com"],
                ("konnectivity-route",),
            ),
            "prod-ignition-route": (["ignition-prod.apps.mgmt.example.com"], ("ignition-route",)),
        },
    ),
    (
        OKD,
        "hosted-cluster.json",
        {
            "platform": "baremetal-no-agent",
            "version": "4.20.0",
            "apiserver-publishing": "loadbalancer",
            "api-hostname": "api.edge.example.com",
            "konnectivity-publishing": "loadbalancer",
            "konnectivity-hostname": "konnectivity.edge.example.com",
        },
        {
            "edge-hcp-apiserver": (["api.edge.example.com"], ("hcp-apiserver",)),
            "edge-hcp-konnectivity": (["konnectivity.edge.example.com"], ("hcp-konnectivity",)),
            "edge-node-local-proxy": (["172.20.0.1"], ("node-local-proxy",)),
        },
    ),
    (
        HYPERSHIFT,
        "hosted-cluster.json",
        {
            "platform": "none",
            "version": "4.20.0",
            "apiserver-publishing": "loadbalancer",
            "api-hostname": "api.edge.example.com",
            "konnectivity-publishing": "loadbalancer",
            "konnectivity-hostname": "konnectivity.edge.example.com",
        },
        {
            "edge-hcp-apiserver": (["api.edge.example.com"], ("hcp-apiserver",)),
            "edge-hcp-konnectivity": (["konnectivity.edge.example.com"], ("hcp-konnectivity",)),
        },
    ),
    (
        OCP,
        "hosted-cluster.json",
        {"hypershift-guest": True, "network": "third-party", "version": "4.20.0"},
        {},
    ),
    (
        OCP,
        "install-config.yaml",
        {"platform": "baremetal", "features": ("baremetal-provisioning",)},
        {},
    ),
    (
        OCP,
        "agent-config.yaml",
        {},
        {
            "master-0": (["10.0.0.10", "fd00::10"], ("control-plane",)),
            "worker-0": (["10.0.0.20"], ("node",)),
        },
    ),
    (
        "openshift-ipi",
        "install-config-bmc.yaml",
        {"provisioning-network": False, "virtual-media": True},
        {"master-0-bmc": (["10.0.9.10"], ("bmc",)), "worker-0-bmc": (["fd00::9"], ("bmc",))},
    ),
    (
        "openshift-load-balancer",
        "install-config-bmc.yaml",
        {},
        {
            "ocp-api-lb": (["10.0.0.2"], ("api-lb",)),
            "ocp-ingress-lb": (["10.0.0.3"], ("ingress-lb",)),
        },
    ),
    (
        "openshift-upi",
        "agent-config.yaml",
        {},
        {
            "master-0": (["10.0.0.10", "fd00::10"], ("control-plane",)),
            "worker-0": (["10.0.0.20"], ("node", "compute")),
        },
    ),
    (
        DCE,
        "kubean.yaml",
        {
            "calico-vxlan": True,
            "calico-typha": False,
            "calico-wireguard-ipv4": True,
            "metallb": False,
            "kubevip": True,
        },
        {
            "master1": (["10.6.170.61"], ("kube_control_plane", "kube_node", "etcd")),
            "worker1": (["10.6.170.62"], ("kube_node",)),
        },
    ),
    (DCE, "kubean-vars.yaml", {"cni": "cilium"}, {}),
    (
        DECKHOUSE,
        "deckhouse.yaml",
        {
            "inlet": "HostPort",
            "modules": tuple(one for one in MODULES if one not in ("openvpn", "virtualization")),
        },
        {"deckhouse-external-registry": (["registry.deckhouse.io"], ("external-registry",))},
    ),
    (
        DECKHOUSE,
        "deckhouse-cloud.yaml",
        {"nodes": "cloud", "cni": "flannel", "modules": MODULES[1:]},
        {},
    ),
]


def settings_of(desk: Desk, matrix: str, *files: str) -> dict[str, Any]:
    """The settings that differ from those of a run without manifests."""
    before = desk.load(matrix, inventory=inventory_of(matrix)).settings
    after = desk.load(matrix, *files, inventory=inventory_of(matrix)).settings
    return {name: value for name, value in after.items() if value != before[name]}


@pytest.mark.parametrize(
    ("matrix", "sample", "settings", "hosts"), CASES, ids=[f"{one[0]}:{one[1]}" for one in CASES]
)
def test_sample(
    desk: Desk, matrix: str, sample: str, settings: dict[str, Any], hosts: dict[str, Any]
) -> None:
    """Each vendor's sample gives these settings and these destinations, and nothing more."""
    desk.sample(sample)

    assert settings_of(desk, matrix, sample) == settings
    loaded = desk.load(matrix, sample, inventory=inventory_of(matrix))
    assert loaded.addresses() == hosts


def test_every_kind_has_a_sample() -> None:
    """No kind of the table is without a vendor's sample here."""
    text = "".join(path.read_text() for path in SAMPLES.iterdir())
    by_shape = {
        "install-config": "baseDomain:",
        "Ignition": '"ignition"',
        "Kubean vars": "kube_network_plugin:",
        "Kubean hosts": "hosts.yml:",
    }
    for kind in KINDS:
        json_kind = f'"kind": "{kind}"'
        assert by_shape.get(kind, f"kind: {kind}") in text or json_kind in text, kind


def test_what_was_taken_has_its_place(desk: Desk) -> None:
    """Every line says where it stands, what stands there, and what became of it."""
    desk.sample("hosted-cluster-agent.yaml")

    taken = desk.load(HYPERSHIFT, "hosted-cluster-agent.yaml").inventory.taken
    (port,) = (one for one in taken if one.gives == "konnectivity-port=30091")
    assert port.place == "hosted-cluster-agent.yaml:39:15"
    assert port.path == "spec.services[1].servicePublishingStrategy.nodePort.port"
    assert port.value == "30091"


def test_a_place_inside_a_config_map_is_its_own_line(desk: Desk) -> None:
    """group_vars in a literal block are counted as lines and columns of the file."""
    desk.sample("kubean.yaml")

    taken = desk.load(DCE, "kubean.yaml", inventory=NODES).inventory.taken
    lines = (desk.folder / "kubean.yaml").read_text().split("\n")
    found = {}
    for one in taken:
        _, line, column = one.place.split(":")
        found[one.path] = lines[int(line) - 1][int(column) - 1 :]
    assert found["calico_vxlan_mode"] == "CrossSubnet"
    assert found["all.hosts.worker1.ip"] == "10.6.170.62"
    assert found["https_proxy"] == '"http://user:secret@proxy.example.com:3128"'


def test_a_config_map_in_json_has_the_place_of_its_text(desk: Desk) -> None:
    """In JSON a text is one line: everything in it stands where it begins."""
    data = {"group_vars.yml": "kube_network_plugin: cilium\nmetallb_enabled: [1]\n"}
    text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": data}, indent=1)
    desk.write("vars.json", text)
    (problem,) = desk.problems(DCE, "vars.json", inventory=NODES)
    assert problem == "vars.json:5:21: this is a list, expected true or false"


def test_the_proxy_of_a_hosted_cluster(desk: Desk) -> None:
    """Workers use it, with the exceptions that HyperShift adds; no text has its password."""
    desk.sample("hosted-cluster-proxy.yaml")
    loaded = desk.load(OKD, "hosted-cluster-proxy.yaml")

    proxy = loaded.host("worker-0").proxy
    assert proxy is not None
    assert proxy.https_proxy == "http://user:secret@proxy.example.org:3129"
    assert proxy.http_proxy == "http://user:secret@proxy.example.org:3128"
    assert proxy.no_proxy[:2] == ("host.example.org", ".internal.example.org")
    own = {".svc", ".cluster.local", "192.168.150.0/24", "172.31.0.0/16", "10.132.0.0/14"}
    assert own | {"172.20.0.1"} <= set(proxy.no_proxy)
    assert "secret" not in repr(loaded.inventory.taken) + str(loaded.notes)


@pytest.mark.parametrize(
    ("matrix", "sample", "https"),
    [
        (OCP, "install-config.yaml", "http://proxy.example.com:3128"),
        (DCE, "kubean.yaml", "http://user:secret@proxy.example.com:3128"),
        (DECKHOUSE, "deckhouse.yaml", "https://user:secret@proxy.example.com:3129"),
    ],
)
def test_proxies_of_nodes(desk: Desk, matrix: str, sample: str, https: str) -> None:
    """The nodes of every other platform get the proxy of their manifest."""
    desk.sample(sample)
    loaded = desk.load(matrix, sample, inventory=NODES)

    proxy = loaded.host("n").proxy
    assert proxy is not None
    assert proxy.https_proxy == https
    assert "proxy of n" in loaded.gives
    assert "secret" not in repr(loaded.inventory.taken)


def test_the_inventorys_own_proxy_counts(desk: Desk) -> None:
    """A host that has a proxy in the inventory keeps it, and a note says so."""
    own = NODES.replace("roles: [node]", "roles: [node], proxy: {https_proxy: 'http://own:1'}")
    desk.sample("install-config.yaml")
    loaded = desk.load(OCP, "install-config.yaml", inventory=own)

    assert loaded.host("n").proxy == Proxy("http://own:1")
    assert any("the inventory's own proxy counts" in note for note in loaded.notes)


def test_the_user_data_stub(desk: Desk) -> None:
    """Only Ignition goes through the stub's proxy; its exceptions may be a list too."""
    desk.sample("user-data-stub.yaml")
    loaded = desk.load(OKD, "user-data-stub.yaml")
    worker = loaded.host("worker-0")
    through = Proxy(
        "https://proxy.example.org:3129", "http://proxy.example.org:3128", ("host.example.org",)
    )

    assert worker.proxy is None
    assert worker.proxy_for("ignition") == through
    assert worker.proxy_for("konnectivity") is None
    assert loaded.settings["ignition-proxy"] is True
    assert loaded.settings["ignition-proxy-port"] == 3129
    assert loaded.settings["ignition-hostname"] == "ignition.controlplanehost.example.com"
    assert loaded.addresses() == {
        "ignition-route": (["ignition.controlplanehost.example.com"], ("ignition-route",)),
        "ignition-proxy": (["proxy.example.org"], ("ignition-proxy",)),
    }

    desk.sample("user-data-stub.yaml", ('"host.example.org"', '["host.example.org"]'))
    again = desk.load(OKD, "user-data-stub.yaml").host("worker-0")
    assert again.proxy_for("ignition") == through


def test_a_stub_in_a_secret(desk: Desk) -> None:
    """oc get secret gives the stub in base64; what else is secret is never read."""
    stub = (SAMPLES / "user-data-stub.yaml").read_text().replace("---", "")
    value = base64.b64encode(stub.encode()).decode()
    secret = (
        f"apiVersion: v1\nkind: Secret\nmetadata: {{name: user-data}}\ndata:\n  value: {value}\n"
    )
    desk.write("secret.yaml", secret)
    other = base64.b64encode(b"password: [").decode()
    desk.write("other.yaml", f"apiVersion: v1\nkind: Secret\ndata: {{value: {other}}}\n")

    loaded = desk.load(OKD, "secret.yaml", "other.yaml")
    assert loaded.settings["ignition-proxy-port"] == 3129
    assert {one.place for one in loaded.inventory.taken} == {"secret.yaml:5:10"}


def test_a_stub_in_plain_text_of_a_secret(desk: Desk) -> None:
    """stringData is read as data is, and wins over it."""
    stub = '{"ignition": {"proxy": {"httpsProxy": "http://PROXY:3128"}}}'
    coded = base64.b64encode(stub.replace("PROXY", "old.example.org").encode()).decode()
    plain = stub.replace("PROXY", "new.example.org")
    desk.write("s.yaml", f"kind: Secret\nstringData: {{value: '{plain}'}}\n")
    found = read_manifests(GivenManifests(("s.yaml",)), [])
    assert "new.example.org" in repr(found.said)
    assert found.notes == ()

    both = f"kind: Secret\ndata: {{value: {coded}}}\nstringData: {{value: '{plain}'}}\n"
    desk.write("both.yaml", both)
    said = repr(read_manifests(GivenManifests(("both.yaml",)), []).said)
    assert "new.example.org" in said
    assert "old.example.org" not in said


@pytest.mark.parametrize("body", ["{}", "{data: {other: eA==}}", "{stringData: {value: hidden}}"])
def test_a_secret_that_holds_nothing_known(desk: Desk, body: str) -> None:
    """It is a note, which repeats nothing of the Secret."""
    text = f"metadata: {{name: pull}}\nkind: Secret\n{body[1:-1]}\n"
    desk.write("s.yaml", text)
    assert read_manifests(GivenManifests(("s.yaml",)), []).notes == (
        "s.yaml:2:7: Secret pull has no Ignition config under value or userData: nothing is taken",
    )


def test_calico_by_its_backend(desk: Desk) -> None:
    """The backend vxlan means VXLAN, unless a mode says otherwise."""
    desk.write("vars.yaml", "calico_network_backend: vxlan\n")
    assert settings_of(desk, DCE, "vars.yaml") == {"calico-vxlan": True}

    desk.write("vars.yaml", "calico_network_backend: vxlan\ncalico_vxlan_mode: Never\n")
    assert settings_of(desk, DCE, "vars.yaml") == {}


def test_static_nodes_of_a_cloud_cluster(desk: Desk) -> None:
    """StaticClusterConfiguration may stand beside a cloud; ClusterConfiguration counts."""
    text = (SAMPLES / "deckhouse-cloud.yaml").read_text()
    desk.write("cloud.yaml", f"{text}---\nkind: StaticClusterConfiguration\n")
    assert desk.load(DECKHOUSE, "cloud.yaml", inventory=NODES).settings["nodes"] == "cloud"

    desk.write("static.yaml", "kind: StaticClusterConfiguration\n")
    assert "nodes=static" in desk.load(DECKHOUSE, "static.yaml", inventory=NODES).gives


def test_tags_of_other_programs(desk: Desk) -> None:
    """A secret of Ansible's vault among the variables is not in the way."""
    desk.write("vars.yaml", "kube_network_plugin: cilium\npassword: !vault |\n  $ANSIBLE\n")
    assert settings_of(desk, DCE, "vars.yaml") == {"cni": "cilium"}


def test_a_module_that_does_not_tunnel(desk: Desk) -> None:
    """The document demands tunnelling, and Deckhouse's default has none."""
    desk.sample("deckhouse.yaml", ("tunnelMode: VXLAN", "debugLogging: true"))
    notes = desk.load(DECKHOUSE, "deckhouse.yaml", inventory=NODES).notes
    assert [note for note in notes if "tunnelMode of cni-cilium is Disabled by default" in note]

    desk.sample("deckhouse.yaml")
    notes = desk.load(DECKHOUSE, "deckhouse.yaml", inventory=NODES).notes
    assert not [note for note in notes if "tunnel" in note]


def test_the_status_names_hosts_that_the_specification_does_not(desk: Desk) -> None:
    """Of Ignition and OAuth by their routes; what the specification names counts before it."""
    sample = "hosted-cluster-aws-list.yaml"
    status = (
        "  status:\n    ignitionEndpoint: ignition.status.example.com\n"
        "    oauthCallbackURLTemplate: https://oauth.status.example.com:443/callback/[name]\n"
    )
    desk.sample(sample, ("  status:\n", status))
    names = settings_of(desk, HYPERSHIFT, sample)
    assert names["ignition-hostname"] == "ignition-prod.apps.mgmt.example.com"

    for service in ("ignition", "oauth"):
        route = f"        route:\n          hostname: {service}-prod.apps.mgmt.example.com\n"
        text = (desk.folder / sample).read_text()
        (desk.folder / sample).write_text(text.replace(route, ""))
    names = settings_of(desk, HYPERSHIFT, sample)
    assert names["ignition-hostname"] == "ignition.status.example.com"
    assert names["oauth-hostname"] == "oauth.status.example.com"
    hosts = desk.load(HYPERSHIFT, sample, inventory=inventory_of(HYPERSHIFT)).addresses()
    assert hosts["prod-ignition-route"] == (["ignition.status.example.com"], ("ignition-route",))


def test_two_services_at_one_node_port_are_a_note(desk: Desk) -> None:
    """Only one of them can answer there; with another port or address there is no note."""
    sample = "hosted-cluster-agent.yaml"
    desk.sample(sample)
    assert "only one of them" not in str(desk.load(HYPERSHIFT, sample).notes)
    at = "address: {}\n        port: {}"
    upper = (at.format("10.1.0.7", 30443), at.format("Node.example.com", 30843))
    desk.sample(sample, upper, ("address: 10.1.0.7", "address: node.example.com"))
    assert "only one of them" in str(desk.load(HYPERSHIFT, sample).notes)
    desk.sample(sample, ("port: 30843", "port: 30443"))
    (note,) = [one for one in desk.load(HYPERSHIFT, sample).notes if "only one of them" in one]
    assert note == (
        f"{sample}:45:15: APIServer and Ignition are both published at 10.1.0.7, node port 30443: "
        "only one of them can answer there"
    )
