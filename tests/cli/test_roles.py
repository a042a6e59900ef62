"""Inventories of other tools: their group names, and what the user says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import netprobe

# They start whole commands, some of them many.
pytestmark = pytest.mark.slow

# As Kubespray's sample inventory: every name of its groups, and nothing of netprobe.
KUBESPRAY = """\
[kube_control_plane]
cp-0 ansible_host=10.77.0.10
[etcd:children]
kube_control_plane
[kube_node]
node-0 ansible_host=10.77.0.20
node-1 ansible_host=10.77.0.21
[bastion]
bastion-0 ansible_host=10.77.0.9
[k8s_cluster:children]
kube_node
kube_control_plane
"""

OPENSHIFT_ANSIBLE = """\
[OSEv3:children]
masters
nodes
etcd
[masters]
cp-0 ansible_host=10.77.0.10
[etcd]
cp-0
[nodes]
cp-0
node-0 ansible_host=10.77.0.20
node-1 ansible_host=10.77.0.21
"""

K0S = """\
[initial_controller]
cp-0 ansible_host=10.77.0.10
[worker]
node-0 ansible_host=10.77.0.20
node-1 ansible_host=10.77.0.21
"""

OURS = """\
schema: netprobe.inventory/1
hosts:
  cp-0: {address: 10.77.0.10, roles: [ctl]}
  node-0: {address: 10.77.0.20, roles: [compute_node]}
  node-1: {address: 10.77.0.21, roles: [compute_node]}
"""

PLATFORMS = ("deckhouse-nodes", "dce", "openshift-host-ports")


def plain_flows(folder: Path, *words: str) -> set[tuple[str, ...]]:
    """The flows of a plan between hosts of known names."""
    done = netprobe("plan", *words, "-o", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    keys = ("requirement", "source", "destination", "protocol")
    return {tuple(flow[key] for key in keys) for flow in json.loads(done.stdout)["flows"]}


def expected_flows(folder: Path, matrix: str) -> set[tuple[str, ...]]:
    """The flows of the same hosts with the matrix's own role names."""
    master = "master" if matrix == "deckhouse-nodes" else "control-plane"
    text = OURS.replace("ctl", master).replace("compute_node", "node")
    (folder / "own.yaml").write_text(text)
    flows = plain_flows(folder, "-m", matrix, "-i", "own.yaml")
    assert {flow[1] for flow in flows} == {"cp-0", "node-0", "node-1"}
    return flows


@pytest.mark.needs("ansible-inventory")
@pytest.mark.parametrize(
    ("inventory", "matrix"),
    [
        pytest.param(
            inventory, matrix, id=f"{tool}-{matrix}",
            marks=() if usual == matrix else pytest.mark.full,
        )
        for tool, inventory, usual in (
            ("kubespray", KUBESPRAY, "deckhouse-nodes"),
            ("openshift-ansible", OPENSHIFT_ANSIBLE, "openshift-host-ports"),
            ("k0s", K0S, "dce"),
        )
        for matrix in PLATFORMS
    ],
)  # fmt: skip
def test_groups_of_other_tools(tmp_path: Path, matrix: str, inventory: str) -> None:
    """Groups of Kubespray and Kubean, OpenShift-Ansible and k0s need no word from the user."""
    (tmp_path / "hosts.ini").write_text(inventory)

    found = plain_flows(tmp_path, "-m", matrix, "-i", "hosts.ini")

    assert found == expected_flows(tmp_path, matrix)


@pytest.mark.parametrize("matrix", ["hypershift-hcp", "okd-hcp"])
def test_workers_of_a_hosted_cluster(tmp_path: Path, matrix: str) -> None:
    """The node groups are the workers of a hosted cluster; its control plane is no group."""
    text = OURS.replace("compute_node", "kube_node").replace("ctl", "hcp")
    (tmp_path / "own.yaml").write_text(text)
    found = plain_flows(tmp_path, "-m", matrix, "-i", "own.yaml")

    assert {flow[1] for flow in found if flow[2] == "cp-0"} >= {"node-0", "node-1"}


def test_roles_map_of_the_inventory(tmp_path: Path) -> None:
    """Names of one's own are mapped in the file: one role to one or to several."""
    head = 'roles_map: {compute-node: node, ctl: [control_plane, "node"]}\n'
    (tmp_path / "inventory.yaml").write_text(OURS.replace("hosts:\n", f"{head}hosts:\n"))

    assert plain_flows(tmp_path, "-m", "dce") == expected_flows(tmp_path, "dce")


def test_roles_on_the_command_line(tmp_path: Path) -> None:
    """--role says the same, for an inventory that cannot; it wins over the file."""
    (tmp_path / "plain.yaml").write_text(OURS)
    head = "roles_map: {compute_node: registry, ctl: control-plane}\n"
    (tmp_path / "inventory.yaml").write_text(OURS.replace("hosts:\n", f"{head}hosts:\n"))
    expected = expected_flows(tmp_path, "dce")
    options = ("--role", "compute_node=node", "--role", "ctl=control_plane,node")

    assert plain_flows(tmp_path, "-m", "dce", "-i", "plain.yaml", *options) == expected
    assert plain_flows(tmp_path, "-m", "dce", *options[:2]) == expected


def test_underscores_in_names_of_roles(tmp_path: Path) -> None:
    """Ansible allows no hyphens in names of groups: both are one name, also for --limit."""
    text = OURS.replace("ctl", "control_plane").replace("compute_node", "node")
    (tmp_path / "inventory.yaml").write_text(text)
    expected = expected_flows(tmp_path, "dce")
    limited = {flow for flow in expected if "cp-0" in flow[1:3]}

    assert plain_flows(tmp_path, "-m", "dce") == expected
    for word in ("control_plane", "control-plane"):
        assert plain_flows(tmp_path, "-m", "dce", "--limit", word) == limited


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("ctl", "--role ctl: this maps nothing, expected ROLE=ROLE, such as kube_node=node"),
        ("=node", "--role =node: this maps nothing, expected ROLE=ROLE"),
        ("ctll=node", '--role ctll=node: no host of the inventory has it: unknown role "ctll", '
         'did you mean "ctl"?'),
        ("ctl=nod", '--role ctl=nod: unknown role "nod", did you mean "node"?'),
    ],
)  # fmt: skip
def test_wrong_options(tmp_path: Path, option: str, problem: str) -> None:
    """A slip in --role is one line that says what was expected."""
    (tmp_path / "inventory.yaml").write_text(OURS)
    done = netprobe("plan", "-m", "dce", "--role", option, cwd=tmp_path)

    assert done.returncode == 2
    assert any(line.startswith(problem) for line in done.stderr.splitlines()), done.stderr


def test_files_that_contradict_each_other(tmp_path: Path) -> None:
    """Two files that map one role to two are refused."""
    (tmp_path / "a.yaml").write_text(OURS.replace("hosts:", "roles_map: {ctl: node}\nhosts:"))
    other = "schema: netprobe.inventory/1\nroles_map: {ctl: registry}\nhosts:\n"
    (tmp_path / "b.yaml").write_text(other + "  r: {address: 10.77.0.30, roles: [registry]}\n")
    done = netprobe("plan", "-m", "dce", "-i", "a.yaml", "-i", "b.yaml", cwd=tmp_path)

    assert done.returncode == 2
    assert 'b.yaml: roles_map says another thing of "ctl" than an earlier file' in done.stderr


@pytest.mark.parametrize("words", [(), ("--count",), ("-o", "json")])
def test_plan_without_flows(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A plan that would test nothing is exit 3 and names the roles that no host has."""
    text = OURS.replace("ctl", "registry").replace("compute_node", "insight-vip")
    (tmp_path / "inventory.yaml").write_text(text)
    done = netprobe("plan", "-m", "dce", *words, cwd=tmp_path)
    run = netprobe("run", "-m", "dce", cwd=tmp_path)

    assert (done.returncode, run.returncode) == (3, 3), done.stderr
    note = "dce has nothing to test: no host has the role node, bootstrap, control-plane, "
    assert note in done.stdout + done.stderr
    assert note in run.stdout
    assert "--role ROLE=ROLE" in run.stdout


@pytest.mark.needs("ansible-inventory")
def test_plan_of_hosts_without_roles(tmp_path: Path) -> None:
    """A list of addresses has no groups, and so no roles that anything could stand for."""
    (tmp_path / "hosts").write_text("10.77.0.10\n10.77.0.11\n")
    done = netprobe("plan", "-m", "dce", "-i", "hosts", "--count", cwd=tmp_path)

    assert done.returncode == 3
    assert "; Ansible's groups are roles, and " in done.stderr


def test_plan_of_hosts_on_which_nothing_starts(tmp_path: Path) -> None:
    """Where hosts have the roles, and all are destinations only, the note does not blame roles."""
    text = OURS.replace("ctl", "node").replace("compute_node", "node")
    none = text.replace("hosts:", "defaults: {vantage: none}\nhosts:", 1)
    (tmp_path / "inventory.yaml").write_text(none)
    done = netprobe("plan", "-m", "dce", cwd=tmp_path)

    assert done.returncode == 3, done.stderr
    assert "dce has nothing to test: no probe can start on any of its hosts" in done.stdout
    assert "no host has the role node" not in done.stdout


def test_filters_that_leave_no_flow(tmp_path: Path) -> None:
    """So is one whose filters leave nothing."""
    (tmp_path / "inventory.yaml").write_text(OURS.replace("ctl", "node").replace("compute_", ""))
    done = netprobe("plan", "-m", "dce", "--from", "cp-0", "--to", "cp-0", cwd=tmp_path)

    assert done.returncode == 3
    assert "--from cp-0 --to cp-0: 0 of" in done.stdout
