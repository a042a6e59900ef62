"""The files of the Docker lab agree with each other; needs no engine."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.cli import netprobe
from tests.lab.expected import Flow, Hosts, read_matrix, required

ROOT = Path(__file__).parents[2]
LAB = ROOT / "compose"
RULES = (LAB / "firewall" / "ruleset.nft").read_text(encoding="utf-8")
MATRICES = ("deckhouse-nodes", "hypershift-hcp")


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


COMPOSE = _yaml(ROOT / "docker-compose.yml")
INVENTORY = _yaml(LAB / "jump" / "lab.yaml")
EXPECTED = _yaml(LAB / "jump" / "expected.yaml")
CUTS = [cut for name in MATRICES for cut in EXPECTED[name]["blocked"]]


@functools.cache
def _required(matrix: str) -> set[Flow]:
    """Every flow between the lab's hosts, by a reading of the matrix apart from netprobe's."""
    known = set(read_matrix(matrix)["roles"])
    hosts = INVENTORY["hosts"]
    roles = {name: [r for r in host["roles"] if r in known] for name, host in hosts.items()}
    # The name stands for one IPv4 address.
    addresses = {
        name: [host["address"] if host["address"][0].isdigit() else "198.18.3.10"]
        for name, host in hosts.items()
    }
    lines = required(matrix, Hosts(roles, addresses), INVENTORY["settings"])
    return {
        flow
        for line in lines
        if hosts[line.source].get("vantage") != "none"
        for flow in line.flows()
    }


def _ports(cut: dict[str, Any]) -> list[int | None]:
    if "ports" not in cut:
        return [None]
    first, _, last = str(cut["ports"]).partition("-")
    return [*range(int(first), int(last or first) + 1)]


def test_no_container_is_privileged() -> None:
    """No container has more power than a route and a raw socket need, nor the host's namespaces."""
    for name, service in COMPOSE["services"].items():
        assert not service.get("privileged"), name
        assert set(service.get("cap_add", [])) <= {"NET_ADMIN", "NET_RAW"}, name
        assert {"pid", "ipc", "userns_mode", "security_opt", "devices"}.isdisjoint(service), name
        assert service.get("network_mode", "service:jump") == "service:jump", name
        assert "docker.sock" not in str(service.get("volumes")), name


def test_the_jump_host_is_the_product_image() -> None:
    """The jump host runs the image of the Dockerfile, which is not root and has no entrypoint."""
    words = [line.split()[0] for line in (ROOT / "Dockerfile").read_text().splitlines() if line]
    assert COMPOSE["services"]["jump"]["build"] == "."
    assert "USER" in words
    assert "ENTRYPOINT" not in words


def test_current_engines_let_the_firewall_forward() -> None:
    """Every network says so, and none is masqueraded or internal."""
    for name, network in COMPOSE["networks"].items():
        options = network["driver_opts"]
        assert options["com.docker.network.bridge.gateway_mode_ipv4"] == "nat-unprotected", name
        assert options["com.docker.network.bridge.enable_ip_masquerade"] == "false", name
        assert not network.get("internal"), name


def test_hosts_have_the_addresses_of_the_inventory() -> None:
    """A host of the inventory is the service of that name, at the address that it has there."""
    names = (LAB / "machine" / "dnsmasq.conf").read_text(encoding="utf-8")
    for name, host in INVENTORY["hosts"].items():
        (network,) = COMPOSE["services"][name]["networks"].values()
        address = host["address"]
        if not address[0].isdigit():
            (address,) = re.findall(rf"^address=/{re.escape(address)}/(\S+)$", names, re.M)
        assert network["ipv4_address"] == address, name


@pytest.mark.slow
@pytest.mark.parametrize("matrix", MATRICES)
def test_the_inventory_fits_the_matrix(matrix: str) -> None:
    """netprobe reads inventory and matrix together; as many flows are expected as there are."""
    done = netprobe("plan", "--matrix", matrix, "-i", str(LAB / "jump" / "lab.yaml"), "--count")
    assert done.status == 0, done.stderr
    assert EXPECTED[matrix]["flows"] == len(_required(matrix))


@pytest.mark.parametrize("matrix", MATRICES)
def test_only_required_flows_are_expected_to_be_stopped(matrix: str) -> None:
    """Every flow of expected.yaml is one that the matrix requires between these hosts."""
    flows = {flow._replace(address="") for flow in _required(matrix)}
    for cut in EXPECTED[matrix]["blocked"]:
        for source, destination in cut["flows"]:
            for port in _ports(cut):
                flow = Flow(cut["requirement"], source, destination, "", cut["protocol"], port)
                assert flow in flows


def test_every_rule_is_explained_and_expected() -> None:
    """The rules' comments are the names in the explanation and in expected.yaml."""
    names = re.findall(r'comment "([^"]+)"', RULES)
    readme = (LAB / "firewall" / "README.md").read_text(encoding="utf-8")
    assert list(dict.fromkeys(names)) == re.findall(r"^\| `([^`]+)` \|", readme, re.M)
    assert sorted(set(names)) == sorted(cut["cut"] for cut in CUTS)


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut["cut"])
def test_rules_match_what_is_expected(cut: dict[str, Any]) -> None:
    """Protocol and ports of rules are those of expected.yaml; answers are cut by source port."""
    side = "sport" if cut["where"] == "return-path" else "dport"
    match = {"icmp": "icmp type echo-request"}.get(
        cut["protocol"], f"{cut['protocol']} {side} {cut.get('ports')}"
    )
    rules = [line for line in RULES.splitlines() if f'comment "{cut["cut"]}"' in line]
    assert rules
    assert all(f" {match} counter " in rule for rule in rules)
