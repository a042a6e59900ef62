"""The nodes of a cluster as an inventory: addresses, roles, zones, and what the cluster says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from netprobe.errors import FileErrors
from netprobe.load.inventory.discover import load_inventory
from netprobe.load.request import load_request
from netprobe.model.inventory import Host, Inventory, NodeState, Ssh, Vantage

NODES = Path(__file__).parents[1] / "nodes"
Change = Callable[[list[Any]], object]


def read(name: str) -> dict[str, Host]:
    """The hosts of one of the clusters, by their names."""
    return {one.name: one for one in load_inventory([str(NODES / f"{name}.json")]).hosts}


def write(folder: Path, change: Change) -> str:
    """The nodes of kubeadm's cluster, changed; gives the path."""
    found = json.loads((NODES / "kubeadm.json").read_text())
    change(found["items"])
    path = folder / "nodes.json"
    path.write_text(json.dumps(found))
    return str(path)


def refuse(folder: Path, change: Change) -> str:
    """The problems of changed nodes, without the path."""
    path = write(folder, change)
    with pytest.raises(FileErrors) as caught:
        load_inventory([path])
    return str(caught.value).replace(f"{path}: ", "")


def test_addresses_zones_and_the_way_in() -> None:
    """Of both families the internal ones, the zone by its label, and ssh to the first address."""
    hosts = read("kubeadm")
    assert [one.text for one in hosts["cp-0"].addresses] == ["10.0.0.10", "fd00::10"]
    assert [one.family for one in hosts["cp-0"].addresses] == [4, 6]
    assert {name: one.zone for name, one in hosts.items() if name[:3] in ("cp-", "arm")} == {
        "cp-0": "a", "arm-0": "b",
    }  # fmt: skip
    assert hosts["cp-0"].vantage == Vantage("ssh", ssh=Ssh("10.0.0.10"))
    assert [one.text for one in read("rke2")["agent-0"].addresses] == ["172.16.1.20"]
    assert read("rke2")["agent-0"].zone is None


@pytest.mark.parametrize(
    ("cluster", "matrix", "expected"),
    [
        ("kubeadm", "kubeadm", {"cp-0": {"control-plane", "node"}, "worker-0": {"worker", "node"}}),
        ("kubeadm", "deckhouse-nodes", {"cp-0": {"master", "node"}, "worker-0": {"node"}}),
        ("openshift", "openshift-host-ports",
         {"master-0.ocp.example.com": {"control-plane", "node"},
          "worker-0.ocp.example.com": {"node"}, "infra-0.ocp.example.com": {"node"}}),
        ("rke2", "rke2",
         {"server-0": {"server", "node"}, "etcd-0": {"node"}, "agent-0": {"agent", "node"},
          "agent-1": {"agent", "node"}}),
    ],
)  # fmt: skip
def test_roles(cluster: str, matrix: str, expected: dict[str, set[str]]) -> None:
    """Labels say the roles, in the words that the matrix has for them; what no label calls a
    control plane is a worker."""
    chosen, inventory, _ = load_request([matrix], [str(NODES / f"{cluster}.json")], [])
    roles = {one.name: set(chosen[0].matrix.roles_of(one.roles)) for one in inventory.hosts}
    assert {name: roles[name] for name in expected} == expected
    assert all(roles.values())


def test_old_and_other_labels(tmp_path: Path) -> None:
    """``kubernetes.io/role``, vendors' own prefixes, the former label of zones, and JSON of one
    node alone."""

    def change(items: list[Any]) -> None:
        labels = items[1]["metadata"]["labels"]
        del labels["topology.kubernetes.io/zone"]
        labels |= {
            "kubernetes.io/role": "node", "node-role.deckhouse.io/frontend": "",
            "failure-domain.beta.kubernetes.io/zone": "old",
        }  # fmt: skip

    path = Path(write(tmp_path, change))
    (host,) = (one for one in load_inventory([str(path)]).hosts if one.name == "worker-0")
    assert (host.roles, host.zone) == (("frontend", "node", "worker"), "old")
    path.write_text(json.dumps(json.loads(path.read_text())["items"][1]))
    assert load_inventory([str(path)]).hosts == (host,)


def test_what_the_cluster_says() -> None:
    """Not ready, with the reason; cordoned; the processor; and Windows, where nothing can run."""
    states = {name: one.node for name, one in read("kubeadm").items()}
    assert states == {
        "cp-0": NodeState("linux", "amd64"),
        "worker-0": NodeState("linux", "amd64"),
        "worker-1": NodeState("linux", "amd64", is_cordoned=True),
        "worker-2": NodeState("linux", "amd64", "Kubelet stopped posting node status"),
        "arm-0": NodeState("linux", "arm64"),
        "win-0": NodeState("windows", "amd64"),
    }
    closed = {name: one.closed for name, one in read("kubeadm").items() if one.closed}
    assert closed == {"win-0": "win-0 runs windows, and netprobe's agent needs Linux"}


def test_notes() -> None:
    """Which nodes the cluster does not use, each reason once; ssh may get there all the same."""
    notes = load_inventory([str(NODES / "kubeadm.json")]).notes
    assert notes == (
        "the cluster calls worker-2 not ready: Kubelet stopped posting node status",
        "cordoned in the cluster: worker-1",
    )
    (note,) = load_inventory([str(NODES / "rke2.json")]).notes
    assert note.startswith("the cluster calls agent-1 not ready: container runtime network not")


def test_beside_another_inventory(tmp_path: Path) -> None:
    """Hosts outside of the cluster come from a file of their own."""
    other = tmp_path / "other.yaml"
    other.write_text(
        "schema: netprobe.inventory/1\nhosts:\n"
        "  lb: {address: 10.0.0.5, roles: [load-balancer], vantage: none}\n"
    )
    found = load_inventory([str(NODES / "kubeadm.json"), str(other)])
    assert [one.name for one in found.hosts][-2:] == ["win-0", "lb"]


def test_a_node_without_an_address(tmp_path: Path) -> None:
    """It takes no part, and a note says so: its kubelet or its cloud has not given it one yet."""

    def change(items: list[Any]) -> None:
        del items[1]["status"]["addresses"]

    found: Inventory = load_inventory([write(tmp_path, change)])
    assert "worker-0" not in [one.name for one in found.hosts]
    assert "node worker-0 has no InternalIP, so that no flow starts or ends there" in found.notes


def test_refusals(tmp_path: Path) -> None:
    """What is no list of nodes is refused in one line, and never read as something else."""

    def set_kind(items: list[Any]) -> None:
        items[0]["kind"] = "Pod"

    def set_address(items: list[Any]) -> None:
        items[0]["status"]["addresses"][0]["address"] = "10.0.0.300"

    def set_name(items: list[Any]) -> None:
        items[0]["metadata"]["name"] = "a\x1b[31mb"

    def set_labels(items: list[Any]) -> None:
        items[0]["metadata"]["labels"] = ["a"]

    end = "expected what `kubectl get nodes -o json` prints"
    assert refuse(tmp_path, set_kind) == f'"Pod" is another kind of object than Node, {end}'
    assert refuse(tmp_path, set_name) == rf'"a\u001b[31mb" is no name of a node, {end}'
    assert refuse(tmp_path, list.clear) == f"there is no node in it, {end}"
    assert refuse(tmp_path, set_labels) == (
        f"Expected `object`, got `array` - at `$.metadata.labels`, {end}"
    )
    assert refuse(tmp_path, set_address) == (
        'node cp-0: its InternalIP "10.0.0.300" does not parse as an IPv4 address, expected an '
        "IPv4 address, an IPv6 address or a name"
    )
    assert refuse(tmp_path, lambda items: items.append(7)) == f"7 is a number and no Node, {end}"
