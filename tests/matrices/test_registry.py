"""The bundled registry of ports: owners, documented ranges, and ports that were given up."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from tests.matrices.source import Plain, as_list, read, requirements

OCP = "openshift-host-ports"
# The document's process is no program: a component, or parts of one.
WORDS = {
    "cluster-version operator": "cluster-version-operator",
    "machine-config-daemon oauth proxy": "oauth-proxy",
    "ovn-kubernetes node": "ovnkube-node",
    "ovn-kubernetes": "ovnkube",
    "ovn-kubernetes northd": "ovn-northd",
    "ovn-kubernetes southd": "ovn-southd",
    "ovn-kubernetes IPsec": "pluto",
    "ovn-kubernetes geneve": "kernel",
    "openshift-sdn / ovn-kubernetes VXLAN": "kernel",
    "ironic (internal)": "ironic",
}


def _process_of(one: Plain) -> str:
    """The row's process as the document prints it, without the protocol behind it."""
    process = str(one["purpose"]).partition(":")[0]
    return re.sub(r" \((HTTPS?)\)$", "", process)


def test_every_row_names_the_documents_process() -> None:
    """As a program: itself, its part behind the component, or the word that is listed here."""
    for name, one in requirements(OCP).items():
        names = as_list(one.get("owner")) + as_list(one.get("process"))
        process = _process_of(one)
        if process == "various CSI drivers":
            assert not names
            continue
        words = {process, WORDS.get(process, process), process.rpartition(" ")[2]}
        if "kube-rbac-proxy" in process:
            words.add("kube-rbac-proxy")
        if process.startswith("cluster-cloud-controller-manager-operator"):
            words.add("cluster-cloud-controller-manager-operator")
        assert any(fnmatchcase(word, each) for word in words for each in names), (name, names)


def test_the_ranges() -> None:
    """The document's own range comes first, for TCP and UDP."""
    first = read(OCP)["ranges"][0]

    assert (first["tcp"], first["udp"]) == (["9000-9999"], ["9000-9999"])


def test_ports_previously_allocated() -> None:
    """Both rows of the table, since the version in which the components were removed."""
    retired = {one["tcp"][0]: one for one in read(OCP)["retired"]}

    assert set(retired) == {3306, 8089}
    assert all(one["when"] == {"version": ">=4.11"} for one in retired.values())
    assert retired[3306]["purpose"].startswith("mariadb: baremetal ironic DB")
    assert retired[8089]["purpose"].startswith("ironic-conductor: baremetal provisioning")
