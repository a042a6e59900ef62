"""The internal OVN subnets of hosted clusters: every sentence of the document, one broken alone."""

from __future__ import annotations

import pytest

from netprobe.errors import Problem
from netprobe.load.manifest.hosts import make_role_book
from netprobe.load.manifest.manifests import GivenManifests, check_manifests, read_manifests
from tests.load.manifest.estate import WORKERS, Desk

DOCUMENT = "okd-document.yaml"
JOIN = 'internalJoinSubnet: "100.99.0.0/16"'
TRANSIT = 'internalTransitSwitchSubnet: "100.69.0.0/16"'
NOTATION = (
    "Both subnet fields in this section must be in a valid IPv4 CIDR notation, such as "
    "192.168.1.0/24."
)
PREFIX = "The prefix range is /0 to /30, inclusive."
OCTET = "The first octet cannot be 0, and the string length must be 9-18 characters."
SAME = "The subnet fields cannot use the same value."
LARGE = (
    "The subnet must be large enough to accommodate one IP address per node in the cluster. "
    "When you plan subnet size, consider future cluster growth."
)
OVERLAP = (
    "Custom subnets must not overlap with the following subnets: Machine CIDRs, Service CIDRs, "
    "Cluster network CIDRs, Any other networks in your infrastructure"
)
TYPE = "For the network type, your hosted cluster must use networkType: OVNKubernetes."
VERSION = "Your hosted cluster version must be OKD 4.20 or later."
POOL = """
---
apiVersion: hypershift.openshift.io/v1beta1
kind: NodePool
metadata: {{name: hc1}}
spec: {{clusterName: hc1, {size}}}
"""


def join(value: str) -> tuple[str, str]:
    """The change of the sample that sets internalJoinSubnet."""
    return JOIN, f'internalJoinSubnet: "{value}"'


def transit(value: str) -> tuple[str, str]:
    """The change of the sample that sets internalTransitSwitchSubnet."""
    return TRANSIT, f'internalTransitSwitchSubnet: "{value}"'


def problem(place: str, words: str, sentence: str) -> str:
    """A problem as it is printed: what is wrong, and the sentence of the document."""
    return f'{DOCUMENT}:{place}: {words}; the document: "{sentence}"'


def bad(words: str, sentence: str) -> str:
    """A problem of the join subnet; its name stands before the value."""
    return problem("20:31", words.replace('"', 'internalJoinSubnet "', 1), sentence)


def bad_transit(words: str, sentence: str) -> str:
    """A problem of the transit switch subnet."""
    return problem("21:40", words.replace('"', 'internalTransitSwitchSubnet "', 1), sentence)


def warnings(notes: tuple[str, ...]) -> list[str]:
    """The notes that are warnings."""
    return [note for note in notes if note.startswith("warning: ")]


def test_the_documents_example_is_right(desk: Desk) -> None:
    """The example has no problem and no warning, and it is told how long it lasts."""
    desk.sample(DOCUMENT)
    notes = desk.load("okd-hcp", DOCUMENT).notes

    assert notes == (
        "okd-document.yaml:20:31: internalJoinSubnet 100.99.0.0/16 lasts for 65,534 nodes, and "
        "the cluster has 2 nodes: room for 65,532 more",
        "okd-document.yaml:21:40: internalTransitSwitchSubnet 100.69.0.0/16 lasts for 65,534 "
        "nodes, and the cluster has 2 nodes: room for 65,532 more",
    )


# Changes of the sample, and the problems that they make.
BROKEN: list[tuple[list[tuple[str, str]], list[str]]] = [
    # Valid IPv4 CIDR notation.
    ([join("100.99.0.0")], [
        bad('"100.99.0.0" is no IPv4 network with a prefix', NOTATION),
    ]),
    ([join("100.99.0.256/16")], [
        bad('"100.99.0.256/16" is no IPv4 network with a prefix', NOTATION),
    ]),
    ([join("100.99.0.0/33")], [
        bad('"100.99.0.0/33" is no IPv4 network with a prefix', NOTATION),
        bad('the prefix of "100.99.0.0/33" is /33', PREFIX),
    ]),
    ([join("100.99.0.0/255.255.0.0")], [
        bad('"100.99.0.0/255.255.0.0" has 22 characters', OCTET),
        bad('"100.99.0.0/255.255.0.0" is no IPv4 network with a prefix', NOTATION),
    ]),
    ([join("fd99::/64")], [
        bad('"fd99::/64" is no IPv4 network with a prefix', NOTATION),
    ]),
    # /0 to /30.
    ([join("100.99.0.0/31")], [bad('the prefix of "100.99.0.0/31" is /31', PREFIX)]),
    ([transit("100.99.0.0/32")], [
        bad_transit('the prefix of "100.99.0.0/32" is /32', PREFIX),
    ]),
    # The first octet.
    ([join("0.99.0.0/16")], [bad('the first octet of "0.99.0.0/16" is 0', OCTET)]),
    # 9 to 18 characters.
    ([join("9.0.0/16")], [
        bad('"9.0.0/16" has 8 characters', OCTET),
        bad('"9.0.0/16" is no IPv4 network with a prefix', NOTATION),
    ]),
    ([join("100.099.000.000/016")], [
        bad('"100.099.000.000/016" has 19 characters', OCTET),
        bad('"100.099.000.000/016" is no IPv4 network with a prefix', NOTATION),
    ]),
    # Of a value with host bits the network counts.
    ([join("4.0.0.0/5")], [
        bad('"4.0.0.0/5" is the network 0.0.0.0/5, the first octet of which is 0', OCTET),
    ]),
    # Nothing in quotes is a value; spaces are characters of it.
    ([join("")], [
        bad('"" has 0 characters', OCTET),
        bad('"" is no IPv4 network with a prefix', NOTATION),
    ]),
    ([join(" 100.99.0.0/16   ")], [
        bad('" 100.99.0.0/16   " is no IPv4 network with a prefix', NOTATION),
    ]),
    ([join(" 100.99.0.0/16     ")], [
        bad('" 100.99.0.0/16     " has 19 characters', OCTET),
        bad('" 100.99.0.0/16     " is no IPv4 network with a prefix', NOTATION),
    ]),
    # Not the same value; a default counts too.
    ([transit("100.99.0.0/16")], [
        problem("21:40", "internalTransitSwitchSubnet 100.99.0.0/16 is the value of "
                "internalJoinSubnet too", SAME),
    ]),
    ([join("100.88.0.0/16"), (f"\n          {TRANSIT}", "")], [
        problem("20:31", "internalJoinSubnet 100.88.0.0/16 is the value of "
                "internalTransitSwitchSubnet too", SAME),
    ]),
    # No overlap with each other.
    ([transit("100.99.128.0/17")], [
        problem("21:40", "internalTransitSwitchSubnet 100.99.128.0/17 overlaps with "
                "internalJoinSubnet 100.99.0.0/16", OVERLAP),
    ]),
    ([transit("100.64.0.0/10")], [
        problem("21:40", "internalTransitSwitchSubnet 100.64.0.0/10 overlaps with "
                "internalJoinSubnet 100.99.0.0/16", OVERLAP),
    ]),
    # Nor with the networks, in both spellings.
    ([join("10.0.128.0/20")], [
        problem("20:31", "internalJoinSubnet 10.0.128.0/20 overlaps with the machine network "
                "(spec.networking.machineCIDR) 10.0.0.0/16", OVERLAP),
    ]),
    ([join("172.30.0.0/24")], [
        problem("20:31", "internalJoinSubnet 172.30.0.0/24 overlaps with the service network "
                "(spec.networking.serviceCIDR) 172.30.0.0/16", OVERLAP),
    ]),
    ([transit("10.130.0.0/24")], [
        problem("21:40", "internalTransitSwitchSubnet 10.130.0.0/24 overlaps with the cluster "
                "network (spec.networking.clusterNetwork[0].cidr) 10.128.0.0/14", OVERLAP),
    ]),
    ([("machineCIDR: 10.0.0.0/16", "machineNetwork: [{cidr: 100.99.7.0/24}]")], [
        problem("20:31", "internalJoinSubnet 100.99.0.0/16 overlaps with the machine network "
                "(spec.networking.machineNetwork[0].cidr) 100.99.7.0/24", OVERLAP),
    ]),
    ([("serviceCIDR: 172.30.0.0/16", "serviceNetwork: [172.30.0.0/16, 100.69.0.0/20]")], [
        problem("21:40", "internalTransitSwitchSubnet 100.69.0.0/16 overlaps with the service "
                "network (spec.networking.serviceNetwork[1]) 100.69.0.0/20", OVERLAP),
    ]),
    ([("clusterNetwork:\n    - cidr: 10.128.0.0/14", "podCIDR: 100.96.0.0/14")], [
        problem("19:31", "internalJoinSubnet 100.99.0.0/16 overlaps with the cluster network "
                "(spec.networking.podCIDR) 100.96.0.0/14", OVERLAP),
    ]),
    # The proxy in every worker, where the manifest has it or not.
    ([join("172.20.0.0/16")], [
        problem("20:31", "internalJoinSubnet 172.20.0.0/16 overlaps with the node-local proxy "
                "172.20.0.1", OVERLAP),
    ]),
    ([("networkType: OVN", "apiServer: {advertiseAddress: 100.99.0.1}\n    networkType: OVN")], [
        problem("21:31", "internalJoinSubnet 100.99.0.0/16 overlaps with the node-local proxy "
                "100.99.0.1", OVERLAP),
    ]),
    # Only with OVNKubernetes, and from 4.20.
    ([("OVNKubernetes", "Calico")], [problem("20:11", "networkType is Calico", TYPE)]),
    ([("4.20.3", "4.19.9")], [problem("20:11", "the version is 4.19.9", VERSION)]),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), BROKEN, ids=lambda one: str(one)[:60])
def test_a_broken_sentence(desk: Desk, changes: list[tuple[str, str]], expected: list[str]) -> None:
    """Each violation is a problem at its field, with the document's sentence; no other is told."""
    desk.sample(DOCUMENT, *changes)
    assert desk.problems("okd-hcp", DOCUMENT) == expected


def test_every_violation_at_once(desk: Desk) -> None:
    """One field that breaks two sentences and another that breaks one are three problems."""
    desk.sample(DOCUMENT, join("0.0.0.0/32"), transit("10.0.0.0/30"))
    found = desk.problems("okd-hcp", DOCUMENT)

    assert [text.split('"')[-2] for text in found] == [OCTET, PREFIX, OVERLAP]


@pytest.mark.parametrize("matrix", ["hypershift-hcp", "openshift-host-ports"])
def test_every_run_with_such_a_manifest_checks_them(desk: Desk, matrix: str) -> None:
    """The matrix does not matter: a HostedCluster is one."""
    desk.sample(DOCUMENT, transit("100.99.0.0/16"))
    inventory = WORKERS.replace("[worker]", "[worker, node]")
    (found,) = desk.problems(matrix, DOCUMENT, inventory=inventory)
    assert SAME in found


def test_defaults_are_checked_too(desk: Desk) -> None:
    """Left out, a field has its default, which may overlap like any other value."""
    plain = ("\n  operatorConfiguration:", "\n  other:")
    desk.sample(DOCUMENT, plain, ("10.0.0.0/16", "100.64.0.0/10"))
    found = desk.problems("okd-hcp", DOCUMENT)

    assert found == [
        problem("8:3", f"{field} (its default) overlaps with the machine network "
                "(spec.networking.machineCIDR) 100.64.0.0/10", OVERLAP)
        for field in (
            "internalJoinSubnet 100.64.0.0/16", "internalTransitSwitchSubnet 100.88.0.0/16",
        )
    ]  # fmt: skip


def test_without_custom_values_neither_version_nor_plugin_matters(desk: Desk) -> None:
    """Both sentences are about configuring the subnets; another plugin has none of them."""
    plain = ("\n  operatorConfiguration:", "\n  other:")
    desk.sample(DOCUMENT, plain, ("4.20.3", "4.19.9"))
    assert warnings(desk.load("okd-hcp", DOCUMENT).notes) == []

    desk.sample(DOCUMENT, plain, ("OVNKubernetes", "Calico"), ("10.0.0.0/16", "100.64.0.0/10"))
    assert desk.load("okd-hcp", DOCUMENT).notes == ()


def test_hosts_of_the_inventory(desk: Desk) -> None:
    """A host inside a subnet is another network of the infrastructure; many are one problem."""
    desk.sample(DOCUMENT)
    words = "internalTransitSwitchSubnet 100.69.0.0/16 overlaps with "
    inside = WORKERS.replace("10.0.0.21", "100.69.3.4")
    assert desk.problems("okd-hcp", DOCUMENT, inventory=inside) == [
        problem("21:40", f"{words}worker-1 (100.69.3.4) of the inventory", OVERLAP)
    ]

    many = "".join(f"  n{i}: {{address: 100.69.0.{i}, roles: [worker]}}\n" for i in range(1, 8))
    four = "n1 (100.69.0.1), n2 (100.69.0.2), n3 (100.69.0.3), n4 (100.69.0.4) and 3 more hosts"
    assert desk.problems("okd-hcp", DOCUMENT, inventory=WORKERS + many) == [
        problem("21:40", f"{words}{four} of the inventory", OVERLAP)
    ]


def test_networks_of_the_command_line(desk: Desk) -> None:
    """--network names further ones; a text that is none is a problem of its own."""
    desk.sample(DOCUMENT)
    networks = ("office=100.99.16.0/20", "v6=fd00::/8", "far=192.168.0.0/16")
    assert desk.problems("okd-hcp", DOCUMENT, networks=networks) == [
        problem("20:31", "internalJoinSubnet 100.99.0.0/16 overlaps with office 100.99.16.0/20",
                OVERLAP)
    ]  # fmt: skip

    expected = "expected NAME=CIDR, such as office=10.20.0.0/16"
    wrong = ("office", "=10.0.0.0/8", "a=10.0.0.0", "a=x/8")
    found = desk.problems("okd-hcp", DOCUMENT, networks=wrong)
    assert sorted(found) == sorted(f"--network {text}: {expected}" for text in wrong)


# Prefix, NodePool, and what is said of nodes: "" for a problem.
SIZES = [
    ("29", "replicas: 3", "lasts for 6 nodes, and the cluster has 3 nodes: room for 3 more"),
    ("29", "replicas: 6", "lasts for 6 nodes, and the cluster has 6 nodes: no room"),
    ("29", "replicas: 7", "has 8 addresses, 6 without the network's own and the broadcast"),
    ("29", "replicas: 8", "and the cluster has 8 nodes; the document leaves open which count"),
    ("29", "replicas: 9", ""),
    ("24", "autoScaling: {min: 3, max: 400}", ""),
    ("22", "autoScaling: {min: 3, max: 400}", "400 nodes at most (3 now): room for 622 more"),
    ("30", "release: {}", "lasts for 2 nodes, and the cluster has 2 nodes: no room"),
]


@pytest.mark.parametrize(("prefix", "size", "words"), SIZES)
def test_one_address_for_each_node(desk: Desk, prefix: str, size: str, words: str) -> None:
    """Nodes are those of the NodePools, and never fewer than the inventory's two workers."""
    change = ('Subnet: "100.69.0.0/16"', f'Subnet: "100.69.0.0/{prefix}"')
    desk.sample(DOCUMENT, change)
    text = (desk.folder / DOCUMENT).read_text() + POOL.format(size=size)
    desk.write(DOCUMENT, text)
    if words:
        notes = desk.load("okd-hcp", DOCUMENT).notes
        (told,) = (note for note in notes if "internalTransitSwitchSubnet" in note)
        assert words in told
        assert told.startswith("warning: ") == ("room for" not in words)
    else:
        (found,) = desk.problems("okd-hcp", DOCUMENT)
        assert found.endswith(f'; the document: "{LARGE}"')


def pool_in(namespace: str, replicas: int) -> str:
    """A NodePool of hc1 in a namespace; empty for one that names none."""
    space = f", namespace: {namespace}" if namespace else ""
    text = POOL.format(size=f"replicas: {replicas}")
    return text.replace("{name: hc1}", f"{{name: p-{namespace}{space}}}")


def test_nodes_of_the_clusters_namespace(desk: Desk) -> None:
    """HyperShift takes NodePools of the same namespace; one that names none counts for any."""
    desk.sample(DOCUMENT)
    text = (desk.folder / DOCUMENT).read_text()
    pools = [pool_in("clusters", 3), pool_in("elsewhere", 100), pool_in("", 4)]
    desk.write(DOCUMENT, text + "".join(pools))
    notes = desk.load("okd-hcp", DOCUMENT).notes

    assert f'{DOCUMENT}:32:42: NodePool p-elsewhere is of "elsewhere/hc1": nothing is taken' in (
        notes
    )
    assert len([note for note in notes if "the cluster has 7 nodes" in note]) == 2


def test_two_clusters_of_one_name(desk: Desk) -> None:
    """What ``oc get -A`` prints: each cluster has the nodes of its own namespace."""
    desk.sample(DOCUMENT)
    text = (desk.folder / DOCUMENT).read_text()
    desk.write("a.yaml", text + pool_in("clusters", 3) + pool_in("elsewhere", 100))
    desk.write("b.yaml", text.replace("namespace: clusters", "namespace: elsewhere"))
    manifests = read_manifests(GivenManifests(("a.yaml", "b.yaml")), [])
    notes = check_manifests(manifests, (), make_role_book(()), (), [])

    told = [
        (note.partition(":")[0], words)
        for note in notes
        for words in ("has 3 nodes", "has 100 nodes", "has 103 nodes")
        if words in note
    ]
    assert told == [("a.yaml", "has 3 nodes")] * 2 + [("b.yaml", "has 100 nodes")] * 2


def test_nobody_says_how_many_nodes(desk: Desk) -> None:
    """Without NodePool and worker it is said for how many a subnet lasts, and no more."""
    desk.sample(DOCUMENT)
    outside = WORKERS.replace("[worker]", "[dns]")
    notes = desk.load("okd-hcp", DOCUMENT, inventory=outside).notes
    assert "lasts for 65,534 nodes; nothing says how many the cluster has" in notes[0]


def test_host_bits_are_a_warning(desk: Desk) -> None:
    """The document leaves open whether host bits may be set; the network counts."""
    desk.sample(DOCUMENT, join("100.99.1.0/16"))
    notes = desk.load("okd-hcp", DOCUMENT).notes
    assert warnings(notes) == [
        "warning: okd-document.yaml:20:31: internalJoinSubnet 100.99.1.0/16 has host bits set; "
        "the document leaves open whether that is valid CIDR notation; it is taken as "
        "100.99.0.0/16"
    ]

    # The network's text stands in that of the value: 0.0.0.0 in 10.0.0.0.
    desk.sample(DOCUMENT, join("10.0.0.0/4"))
    manifests = read_manifests(GivenManifests((DOCUMENT,)), [])
    problems: list[Problem] = []
    (found,) = warnings(tuple(check_manifests(manifests, (), make_role_book(()), (), problems)))
    assert found.endswith("it is taken as 0.0.0.0/4")
    assert str(problems[0]) == problem(
        "20:31",
        'internalJoinSubnet "10.0.0.0/4" is the network 0.0.0.0/4, the first octet of which is 0',
        OCTET,
    )

    desk.sample(DOCUMENT, join("100.69.1.0/16"))
    (told,) = desk.problems("okd-hcp", DOCUMENT)
    assert "overlaps with internalJoinSubnet 100.69.1.0/16" in told


def test_an_unknown_version_is_a_warning(desk: Desk) -> None:
    """A digest names no version; --set version does, and wins over a tag."""
    change = ("ocp-release:4.20.3-multi", "ocp-release@sha256:0123")
    desk.sample(DOCUMENT, change)
    (warning,) = warnings(desk.load("okd-hcp", DOCUMENT).notes)
    assert VERSION in warning
    assert warnings(desk.load("okd-hcp", DOCUMENT, sets=["version=4.21"]).notes) == []
    (found,) = desk.problems("okd-hcp", DOCUMENT, sets=["okd-hcp:version=4.19"])
    assert found == problem("20:11", "the version is 4.19", VERSION)


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("ocp-release:latest", 'the tag "latest" is no version'),
        ("ocp-release:latest@sha256:0123", 'the tag "latest" is no version'),
        ("ocp-release@sha256:0123", "no tag"),
        ("quay.example:5000/ocp-release", "no tag"),
    ],
)
def test_why_no_version_is_known(desk: Desk, image: str, why: str) -> None:
    """A tag may be none that is a version; a registry's port is no tag."""
    desk.sample(DOCUMENT, ("ocp-release:4.20.3-multi", image))
    (warning,) = warnings(desk.load("okd-hcp", DOCUMENT).notes)
    assert f"the manifest does not say its version: {why} in spec.release.image;" in warning


def test_networks_that_are_left_out(desk: Desk) -> None:
    """HyperShift's own defaults stand in for them: an overlap with these is a warning."""
    desk.sample(DOCUMENT, ("    serviceCIDR: 172.30.0.0/16\n", ""), join("172.31.4.0/24"))
    (warning,) = warnings(desk.load("okd-hcp", DOCUMENT).notes)
    assert "overlaps with 172.31.0.0/16, which HyperShift takes where the service network is" in (
        warning
    )
