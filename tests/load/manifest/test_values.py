"""Values that a matrix does not know are notes; values that cannot be are problems."""

from __future__ import annotations

import pytest

from tests.load.manifest.estate import NODES, Desk, inventory_of

HYPERSHIFT, OKD, OCP = "hypershift-hcp", "okd-hcp", "openshift-host-ports"
DCE, DECKHOUSE = "dce", "deckhouse-nodes"

NOTES = [
    (HYPERSHIFT, "hosted-cluster-aws-list.yaml", (), "43:16: no row is about the service OVNSbDb"),
    (
        HYPERSHIFT,
        "hosted-cluster.json",
        (),
        "12:66: no matrix knows a service that is published by",
    ),
    (
        OKD,
        "hosted-cluster-agent.yaml",
        (("type: Agent\n    agent", "type: Azure\n    azure"),),
        '16:11: okd-hcp does not know the value "azure" of setting platform; it stays aws',
    ),
    (DCE, "kubean-vars.yaml", (("cilium", "flannel"),), 'does not know the value "flannel"'),
    (DCE, "kubean.yaml", (("CrossSubnet", "Maybe"),), "calico_vxlan_mode Maybe is not known here"),
    (DECKHOUSE, "deckhouse.yaml", (("HostPort", "HostPortWithFailover"),), "it stays"),
    (DECKHOUSE, "deckhouse.yaml", (), "manifests also say of modules: prometheus; no row"),
    (DECKHOUSE, "deckhouse.yaml", (("io/deckhouse/ce", "io:5000/x"),), "port 5000"),
    (DECKHOUSE, "deckhouse.yaml", (("Static\np", "Hybrid\np"),), "clusterType Hybrid is not known"),
    (OCP, "agent-config.yaml", (), "41:3: host worker-1 has no address in its networkConfig"),
    (OCP, "agent-config.yaml", (("role: master", "role: x"),), "8:9: role x is not known here"),
    (OCP, "install-config.yaml", (("Managed", "Some"),), "provisioningNetwork Some is not known"),
    (HYPERSHIFT, "hosted-cluster-agent.yaml", (), '69:16: NodePool other is of "hc2": nothing'),
    (
        HYPERSHIFT,
        "hosted-cluster-agent.yaml",
        (),
        "61:12: setting version is 4.19.9 here and 4.20.3 at hosted-cluster-agent.yaml:8:12, which",
    ),
    (
        HYPERSHIFT,
        "hosted-cluster-aws-list.yaml",
        (("PublicAndPrivate", "Somehow"),),
        "19:25: endpointAccess Somehow is not known here",
    ),
]


@pytest.mark.parametrize(("matrix", "sample", "changes", "words"), NOTES)
def test_what_a_matrix_does_not_know_is_a_note(
    desk: Desk, matrix: str, sample: str, changes: tuple[tuple[str, str], ...], words: str
) -> None:
    """It stops nothing, and is told with its place."""
    desk.sample(sample, *changes)
    loaded = desk.load(matrix, sample, inventory=inventory_of(matrix))
    assert [note for note in loaded.notes if words in note]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("service: Konnectivity", "service: Konectivity"), 'Konectivity, did you mean "Konn'),
        (("type: NodePort", "type: Nodeport"), 'by Nodeport, did you mean "NodePort"?'),
        (("type: NodePort", "type: Pigeon"), "by Pigeon"),
        (("type: Agent", "type: Agnet"), 'it stays aws, did you mean "agent"?'),
    ],
)
def test_the_nearest_right_word(desk: Desk, change: tuple[str, str], words: str) -> None:
    """A slip of the pen is told with what was probably meant; a strange word without."""
    desk.sample("hosted-cluster-agent.yaml", change)
    notes = desk.load(HYPERSHIFT, "hosted-cluster-agent.yaml").notes
    (note, *_) = (one for one in notes if words in one)
    assert ("did you mean" in note) == ("did you mean" in words)


def test_missing_config_maps(desk: Desk) -> None:
    """A Cluster of Kubean says little itself: what it refers to must be given too."""
    desk.sample("kubean.yaml", ("name: global-vars-conf\n  namespace", "name: x\n  namespace"))
    notes = desk.load(DCE, "kubean.yaml", inventory=NODES).notes

    assert 'kubean.yaml:13:11: varsConfRef names the ConfigMap "global-vars-conf": give it too' in (
        notes
    )
    assert not [note for note in notes if "hostsConfRef" in note]


PROBLEMS = [
    (
        "hosted-cluster-agent.yaml",
        ("port: 30443", "port: 70000"),
        "33:15: 70000 is no port, expected 1 to 65535",
    ),
    (
        "hosted-cluster-agent.yaml",
        ("address: 10.1.0.8", "address: 10.1.0.800"),
        '38:18: "10.1.0.800" does not parse as an IPv4 address, expected an IPv4 address, an IPv6 '
        "address or a name",
    ),
    (
        "hosted-cluster-agent.yaml",
        ("type: Agent\n    agent", "type: [Agent]\n    agent"),
        "16:11: this is a list, expected text",
    ),
    (
        "hosted-cluster-agent.yaml",
        ("cidr: 10.0.0.0/16", "cidr: 10.0.0.0"),
        '22:13: "10.0.0.0" is no network, expected a CIDR such as 10.0.0.0/16',
    ),
    (
        "hosted-cluster-proxy.yaml",
        ("httpsProxy: http://user:secret@", "httpsProxy: socks5://user:secret@"),
        "41:19: this is no proxy URL, expected one such as http://proxy.example.com:3128",
    ),
    (
        "hosted-cluster-proxy.yaml",
        ("url: ldaps://", "url: https://"),
        "49:16: this is no URL of LDAP, expected one such as ldaps://ldap.example.com:636/dc=example",
    ),
]


@pytest.mark.parametrize(("sample", "change", "expected"), PROBLEMS)
def test_bad_values_are_problems(
    desk: Desk, sample: str, change: tuple[str, str], expected: str
) -> None:
    """A value that cannot be is a problem at its place, without any password."""
    desk.sample(sample, change)
    found = desk.problems(OKD, sample)
    assert f"{sample}:{expected}" in found
    assert "secret" not in str(found)
