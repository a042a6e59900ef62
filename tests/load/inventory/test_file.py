"""Inventory files of ours become inventories: every key, defaults, addresses, notes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netprobe.errors import Problem
from netprobe.load.inventory.addresses import parse_address, parse_ip
from netprobe.load.inventory.file import read_inventory
from netprobe.model.inventory import Address, Health, Host, Inventory, Proxy, Ssh, Vantage

GOOD = Path(__file__).parents[1] / "good" / "inventory.yaml"


def read(path: Path) -> Inventory:
    """An inventory that must have no problems."""
    problems: list[Problem] = []
    inventory = read_inventory(str(path), problems)
    assert [str(problem) for problem in problems] == []
    assert inventory is not None
    return inventory


def written(tmp_path: Path, hosts: str, head: str = "") -> Inventory:
    """An inventory of these hosts."""
    path = tmp_path / "inventory.yaml"
    path.write_text(f"schema: netprobe.inventory/1\n{head}hosts:\n{hosts}")
    return read(path)


def test_every_key() -> None:
    """Each key of an inventory arrives in the model; a host's own words beat the defaults."""
    inventory = read(GOOD)

    jump = ("-o", "ProxyJump=bastion")
    assert inventory.hosts == (
        Host(
            name="master-0",
            addresses=(Address("10.0.0.10", 4),),
            roles=("master",),
            vantage=Vantage("ssh", Ssh("192.0.2.10", "admin", 2222, jump)),
            become="sudo",
            source_addresses=(Address("10.0.0.10", 4), Address("fd00::10", 6)),
            place=f"{GOOD}:8:3",
        ),
        Host(
            name="master-1",
            addresses=(
                Address("10.0.0.11", 4),
                Address("fd00::11", 6),
                Address("master-1.example.com", None),
            ),
            roles=("master",),
            vantage=Vantage("ssh", Ssh("fd00::11", "root", 22, jump)),
            place=f"{GOOD}:13:3",
            zone="dmz",
        ),
        Host(
            name="hcp-api",
            addresses=(Address("api.hc1.example.com", None),),
            roles=("node",),
            vantage=Vantage("none"),
            become="sudo",
            proxy=Proxy("http://proxy.example.com:3128", None, (".example.com", "10.0.0.0/8")),
            place=f"{GOOD}:19:3",
        ),
        Host(
            name="jump",
            addresses=(Address("10.0.0.5", 4),),
            roles=("node", "master"),
            vantage=Vantage("local"),
            become="sudo",
            place=f"{GOOD}:24:3",
        ),
        Host(
            name="lab-1",
            addresses=(Address("10.9.0.2", 4),),
            roles=("node",),
            vantage=Vantage("command", command=("ip", "netns", "exec", "1")),
            become="sudo",
            place=f"{GOOD}:28:3",
        ),
    )
    assert inventory.settings == {
        "cni": "cilium",
        "modules": ["openvpn"],
        "peer-port": 2380,
        "private": False,
    }
    assert inventory.setting_places["cni"] == f"{GOOD}:6:12"
    assert inventory.notes == ()


def test_least(tmp_path: Path) -> None:
    """Without a word on it a host is reached by ssh at its first address, without sudo."""
    inventory = written(tmp_path, "  n: {addresses: [node-1, 10.0.0.1], roles: [a]}\n")

    assert inventory.hosts[0].vantage == Vantage("ssh", Ssh("node-1"))
    assert inventory.hosts[0].become is None


@pytest.mark.parametrize(
    ("ssh", "wanted"),
    [
        ("bastion", Ssh("bastion")),
        ("me@bastion", Ssh("bastion", "me")),
        ("bastion:2222", Ssh("bastion", None, 2222)),
        ("'fd00::1'", Ssh("fd00::1")),
        ("'[fd00::1]:2222'", Ssh("fd00::1", None, 2222)),
        ("{options: [-p, 2222]}", Ssh("10.0.0.1", options=("-p", "2222"))),
        ("{}", Ssh("10.0.0.1")),
    ],
)
def test_ssh(tmp_path: Path, ssh: str, wanted: Ssh) -> None:
    """How ssh gets there, as a mapping or as people write it; without a host it is the address."""
    inventory = written(tmp_path, f"  n: {{address: 10.0.0.1, roles: [a], ssh: {ssh}}}\n")

    assert inventory.hosts[0].vantage.ssh == wanted


def test_notes(tmp_path: Path) -> None:
    """What is allowed but looks like a slip is noted: ssh that nobody uses."""
    inventory = written(
        tmp_path,
        "  a: {addresses: [10.0.0.1, 'fd00::1'], roles: [a]}\n"
        "  b: {address: 10.0.0.1, roles: [a], vantage: none, ssh: {user: me}}\n"
        "  c: {addresses: [10.0.0.1, 'fd00:0::1'], roles: [a], vantage: {command: [x]}, ssh: y}\n",
    )

    assert inventory.notes == (
        "host b has ssh settings that are not used: its vantage is none",
        "host c has ssh settings that are not used: its vantage is a command",
    )


def test_numbers_as_names(tmp_path: Path) -> None:
    """Names of hosts are texts, also where YAML would make numbers or booleans of them."""
    inventory = written(
        tmp_path, "  010: {address: a, roles: [x]}\n  on: {address: b, roles: [x]}\n"
    )

    assert [host.name for host in inventory.hosts] == ["010", "on"]


@given(st.ip_addresses(v=4).filter(lambda ip: not (ip.is_multicast or ip.is_unspecified)))
def test_ipv4(address: object) -> None:
    """Every IPv4 address of a host parses to itself."""
    if str(address) != "255.255.255.255":
        assert parse_ip(str(address)) == Address(str(address), 4)


@given(
    st.ip_addresses(v=6).filter(
        lambda ip: not (ip.is_multicast or ip.is_unspecified or ip.is_link_local)
    )
)
def test_ipv6_is_canonical(address: object) -> None:
    """Every spelling of an IPv6 address is one address."""
    exploded = getattr(address, "exploded", "")
    if getattr(address, "ipv4_mapped", None) is None:
        assert parse_address(exploded.upper()) == Address(str(address), 6)


@given(st.text(max_size=30) | st.none() | st.integers() | st.floats() | st.lists(st.text()))
def test_anything_as_address(raw: object) -> None:
    """Whatever stands where an address is due gives an address or a ValueError with a sentence."""
    said = ""
    try:
        address = parse_address(raw).text
    except ValueError as error:
        address, said = "", str(error)

    assert address or ("expected" in said and said.isprintable())


@pytest.mark.parametrize(
    "name", ["a", "node-1", "n_1.example.com.", "xn--mnchen-3ya.de", "1a", "_x"]
)
def test_names(name: str) -> None:
    """Names are addresses that the source resolves."""
    assert parse_address(name) == Address(name, None)


@pytest.mark.parametrize("name", ["a" * 64, "a." * 127 + "a", "a-", "a b", ".", "a..b", "1.2.3"])
def test_no_names(name: str) -> None:
    """What cannot be a name of the DNS is none."""
    with pytest.raises(ValueError, match="expected"):
        parse_address(name)


def test_what_a_balancer_asks(tmp_path: Path) -> None:
    """A path is HTTPS at every port; a mapping names the ports, and those alone are balanced."""
    (short, long, none) = written(
        tmp_path,
        """  a: {address: 10.0.0.1, roles: [], balances: [master], health: /readyz}
  b:
    address: 10.0.0.2
    roles: []
    balances: [master, node]
    health: {6443: {https: /readyz}, 443: {http: /ready, port: 1936}, 22623: tcp}
  c: {address: 10.0.0.3, roles: [], balances: [master]}
""",
    ).hosts
    assert (short.balances, short.health) == (("master",), (Health("https", "/readyz"),))
    assert short.health_at(6443) == Health("https", "/readyz")
    assert long.health_at(443) == Health("http", "/ready", 1936, 443)
    assert long.health_at(22623) == Health("tcp", of=22623)
    assert [long.balances_port(port) for port in (6443, 22623, 80)] == [True, True, False]
    assert (none.health_at(6443), none.balances_port(80)) == (None, True)


def test_an_address_that_nobody_has_yet(tmp_path: Path) -> None:
    """`free` needs no role and no agent, `vrid` is an id of VRRP; wrong ones are named."""
    vip = "  vip: {address: 10.0.0.100, roles: [], vantage: none, free: true, vrid: 51}\n"
    (host,) = written(tmp_path, vip).hosts
    assert (host.free, host.vrid, host.is_probed) == (True, 51, False)
    wrong = {
        "{address: 10.0.0.1, roles: [a], free: true}": "expected vantage: none",
        "{address: vip.example.org, roles: [a], vantage: none, free: true}": "a name stands here",
        "{address: 10.0.0.1, roles: [a], vantage: none, vrid: 5}": 'no "free: true" here',
        "{address: 10.0.0.1, roles: [a], vantage: none, free: true, vrid: 256}": "1 to 255",
        "{address: 10.0.0.1, roles: [], vantage: none}": "the list is empty",
    }
    for body, words in wrong.items():
        path = tmp_path / "wrong.yaml"
        path.write_text(f"schema: netprobe.inventory/1\nhosts:\n  vip: {body}\n")
        problems: list[Problem] = []
        read_inventory(str(path), problems)
        assert any(words in str(one) for one in problems), (body, [*map(str, problems)])


def test_networks_without_dhcp_servers(tmp_path: Path) -> None:
    """`dhcp: none` is the only word; of several files one is enough."""
    hosts = "hosts:\n  {}: {{address: 10.0.0.1, roles: [a]}}\n"
    texts = {"a": "dhcp: none\n", "b": "", "c": "dhcp: some\n"}
    for name, text in texts.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(f"schema: netprobe.inventory/1\n{text}{hosts.format(name)}")
    problems: list[Problem] = []
    found = [read_inventory(str(tmp_path / f"{name}.yaml"), problems) for name in texts]
    assert [one.no_dhcp for one in found if one is not None] == [True, False]
    assert any("dhcp" in str(one) for one in problems)
