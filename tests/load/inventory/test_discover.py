"""Which inventory a run uses, several as one, and Ansible's beside ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netprobe.errors import FileErrors, RequestError
from netprobe.load.inventory.discover import is_ansible, load_inventory
from netprobe.load.request import load_request
from netprobe.model.inventory import Address, Ssh, Vantage

GOOD = Path(__file__).parents[1] / "good" / "inventory.yaml"
HEAD = "schema: netprobe.inventory/1\n"
INI = """\
[masters]
node-1 ansible_host=10.0.0.1 ansible_user=admin ansible_port=2222
node-2 ansible_connection=local

[workers]
worker-[1:2].example.com

[outside]
api ansible_host=192.0.2.7 ansible_connection=network_cli
other ansible_host=10.0.0.1 ansible_become_method=su

[cluster:children]
masters
workers

[cluster:vars]
ansible_become=true
ansible_ssh_private_key_file=/keys/id one
ansible_ssh_common_args='-o ProxyJump=bastion -o "User=a b"'

[outside:vars]
ansible_become=yes
ansible_password=secret
netprobe_addresses=["10.1.0.9", "fd00::9"]
netprobe_zone=dmz
"""

needs_ansible = pytest.mark.needs("ansible-inventory")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start where there is no inventory, and with none in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NETPROBE_INVENTORY", raising=False)


def write(name: str, text: str) -> str:
    """A file in the folder of the test."""
    Path(name).write_text(text)
    return name


def host(name: str, address: str) -> str:
    """A line of ``hosts:``."""
    return f"  {name}: {{address: {address}, roles: [node]}}\n"


def test_none() -> None:
    """Without any inventory the error says the ways to give one."""
    with pytest.raises(RequestError) as caught:
        load_inventory([])

    assert str(caught.value) == (
        "no inventory: give one with -i FILE, set NETPROBE_INVENTORY, or have ./inventory.yaml "
        "here; netprobe init --matrix NAME > inventory.yaml writes one to start from"
    )
    assert caught.value.exit_status == 2


def test_order_of_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """-i beats NETPROBE_INVENTORY, and that beats ./inventory.yaml."""
    write("inventory.yaml", HEAD + "hosts:\n" + host("here", "10.0.0.1"))
    environment = write("env.yaml", HEAD + "hosts:\n" + host("env", "10.0.0.2"))
    given = write("given.yaml", HEAD + "hosts:\n" + host("given", "10.0.0.3"))

    assert [one.name for one in load_inventory([]).hosts] == ["here"]
    monkeypatch.setenv("NETPROBE_INVENTORY", environment)
    assert [one.name for one in load_inventory([]).hosts] == ["env"]
    monkeypatch.setenv("NETPROBE_INVENTORY", f"{environment}:{given}")
    assert [one.name for one in load_inventory([]).hosts] == ["env", "given"]
    assert [one.name for one in load_inventory([given]).hosts] == ["given"]


def test_several_as_one() -> None:
    """Several inventories are one: hosts in the order given, settings of all."""
    first = write("a.yaml", HEAD + "settings: {cni: x}\nhosts:\n" + host("a", "10.0.0.1"))
    second = write(
        "b.yaml", HEAD + "settings: {cni: x, version: 1.10}\nhosts:\n" + host("b", "10.0.0.2")
    )

    inventory = load_inventory([first, second, first])

    assert [one.name for one in inventory.hosts] == ["a", "b"]
    assert set(inventory.settings) == {"cni", "version"}
    assert inventory.setting_places == {"cni": "a.yaml:2:12", "version": "b.yaml:2:20"}
    assert inventory.notes == ()


def test_conflicts_of_several() -> None:
    """A host in two files, and a setting with two values, are told with both places."""
    write("a.yaml", HEAD + "settings: {cni: x}\nhosts:\n" + host("a", "10.0.0.1"))
    write("b.yaml", HEAD + "settings: {cni: y}\nhosts:\n" + host("a", "10.0.0.2"))
    write("c.yaml", HEAD + "hosts:\n" + host("b", "10.0.0.300"))

    with pytest.raises(FileErrors) as caught:
        load_inventory(["a.yaml", "b.yaml", "c.yaml"])

    ipv4 = '"10.0.0.300" does not parse as an IPv4 address'
    assert str(caught.value).splitlines() == [
        'b.yaml:2:12: setting "cni" has another value in a.yaml:2:12, expected one value',
        'b.yaml:4:3: host "a" stands in a.yaml:4:3 too, expected every host once',
        f"c.yaml:3:16: {ipv4}, expected an IPv4 address, an IPv6 address or a name",
    ]


def test_loopback_of_one_machine() -> None:
    """A lab on loopback is fine as long as every agent is here; the notes say what it is."""
    here = "  here: {address: 127.0.0.1, roles: [node], vantage: local}\n"
    there = "  there: {address: '::1', roles: [node], vantage: {command: [env]}}\n"
    remote = "  far: {address: 10.0.0.1, roles: [node], vantage: {command: [env]}}\n"
    lab = write("lab.yaml", HEAD + "hosts:\n" + here + there)
    more = write("more.yaml", HEAD + "hosts:\n" + remote)

    assert load_inventory([lab]).notes == (
        "2 of 2 hosts have loopback addresses: what is sent there never leaves this machine",
    )
    assert load_inventory([more]).notes == ()
    with pytest.raises(FileErrors) as caught:
        load_inventory([lab, more])
    assert [str(problem).partition(" means")[0] for problem in caught.value.problems] == [
        'lab.yaml:3:3: host "here": "127.0.0.1"', 'lab.yaml:4:3: host "there": "::1"'
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "ansible"),
    [
        ("hosts", INI, True),
        ("hosts.yaml", "all: {hosts: {a: {}}}\n", True),
        ("ours", HEAD + "hosts: {}\n", False),
        ("broken", HEAD + "hosts: [\n", False),
        ("x.yaml", "hosts: {a: {address: b}}\n", False),
        ("x.yaml", "schema: 5\n", False),
        ("x.yaml", "a: [\n", False),
        ("x.yaml", "- a\n", False),
        ("x", "", False),
        ("x.ini", "a b=c\n", True),
        ("x.json", '{"all": {"hosts": {"a": null}}}', True),
    ],
)
def test_kind(name: str, text: str, ansible: bool) -> None:
    """Ours is what says so or looks so; other YAML and INI are for Ansible."""
    assert is_ansible(write(name, text), text.encode()) is ansible


@needs_ansible
@pytest.mark.slow
def test_ansible_folder_and_pipe() -> None:
    """A folder is Ansible's; what comes out of a pipe is handed on to it."""
    Path("folder").mkdir()
    write("folder/hosts", INI)
    reader, writer = os.pipe()
    os.write(writer, INI.encode())
    os.close(writer)
    found = [load_inventory([path]) for path in ("folder", f"/dev/fd/{reader}")]
    os.close(reader)

    assert found[0].hosts == found[1].hosts


def test_pipe_of_ours() -> None:
    """An inventory may come out of a command: ``-i <(command)``."""
    reader, writer = os.pipe()
    os.write(writer, (HEAD + "hosts:\n" + host("b", "10.0.0.2")).encode())
    os.close(writer)
    inventory = load_inventory([f"/dev/fd/{reader}"])
    os.close(reader)

    assert [one.name for one in inventory.hosts] == ["b"]


def test_missing_file() -> None:
    """A file that is not there is a problem of the file."""
    with pytest.raises(FileErrors, match=r"^nowhere: there is no such file, expected a YAML file$"):
        load_inventory(["nowhere"])


def test_matrix_as_inventory() -> None:
    """A matrix that is given as inventory is told as what it is."""
    write("m.yaml", "schema: netprobe.matrix/1\n")

    with pytest.raises(FileErrors) as caught:
        load_inventory(["m.yaml"])

    assert str(caught.value) == (
        "m.yaml:1:9: this is a netprobe.matrix file, expected netprobe.inventory/1 "
        "(a file of this kind is given with --matrix)"
    )


def test_without_ansible(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where Ansible is not installed one sentence says what is missing."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(RequestError) as caught:
        load_inventory([write("hosts", INI)])

    assert str(caught.value) == (
        "hosts: this is no netprobe inventory, and for one of Ansible's ansible-inventory "
        "must be installed (ansible-core)"
    )


@needs_ansible
@pytest.mark.slow
def test_ansible_ini() -> None:
    """Groups are roles, nested ones too; connection variables say how to get there."""
    inventory = load_inventory([write("hosts", INI)])

    hosts = {one.name: one for one in inventory.hosts}
    options = ("-i", "/keys/id one", "-o", "ProxyJump=bastion", "-o", "User=a b")
    assert set(hosts["node-1"].roles) == {"masters", "cluster"}
    assert hosts["node-1"].addresses == (Address("10.0.0.1", 4),)
    assert hosts["node-1"].vantage == Vantage("ssh", Ssh("10.0.0.1", "admin", 2222, options))
    assert hosts["node-1"].become == "sudo"
    assert hosts["node-1"].place == ""
    assert hosts["node-2"].vantage == Vantage("local")
    worker = hosts["worker-1.example.com"]
    assert worker.addresses == (Address("worker-1.example.com", None),)
    assert worker.vantage == Vantage("ssh", Ssh("worker-1.example.com", options=options))
    assert set(worker.roles) == {"workers", "cluster"}
    assert hosts["api"].vantage == Vantage("none")
    assert hosts["api"].addresses == (Address("10.1.0.9", 4), Address("fd00::9", 6))
    assert hosts["api"].roles == ("outside",)
    assert (hosts["api"].zone, hosts["node-1"].zone) == ("dmz", None)
    assert hosts["other"].become is None
    assert "secret" not in str(inventory)
    assert set(inventory.notes) == {
        'host api: connection "network_cli" is not one that netprobe uses, '
        "it is only a destination",
        "host other: the ssh password is not used, ssh must get in with a key or an agent",
        'host other: become method "su" is not used, netprobe knows only sudo',
        "hosts api, other share the address 10.1.0.9: is it a virtual one?",
        "hosts api, other share the address fd00::9: is it a virtual one?",
    }


@needs_ansible
@pytest.mark.slow
def test_ansible_with_ours() -> None:
    """An Ansible inventory and one of ours are one inventory; a host in both is a problem."""
    write("hosts.yaml", "all: {children: {node: {hosts: {n1: {ansible_host: 10.0.0.1}}}}}\n")
    good = write("b.yaml", HEAD + "hosts:\n" + host("b", "10.0.0.2"))
    bad = write("c.yaml", HEAD + "hosts:\n" + host("n1", "10.0.0.2"))

    assert [one.name for one in load_inventory(["hosts.yaml", good]).hosts] == ["n1", "b"]
    with pytest.raises(FileErrors) as caught:
        load_inventory(["hosts.yaml", bad])
    assert str(caught.value) == (
        'c.yaml:3:3: host "n1" stands in hosts.yaml too, expected every host once'
    )


@needs_ansible
@pytest.mark.slow
def test_ansible_problems() -> None:
    """Values of Ansible that mean nothing here are problems of their hosts, all at once."""
    write(
        "hosts",
        "a ansible_host=10.0.0.300\nb ansible_port=ssh\nc ansible_host='{{ x }}'\n"
        "d ansible_ssh_common_args='\"'\ne ansible_user=-oProxyCommand\n"
        "f netprobe_zone='a b'\n",
    )

    with pytest.raises(FileErrors) as caught:
        load_inventory(["hosts"])

    assert str(caught.value).splitlines() == [
        'hosts: host a: the address "10.0.0.300" does not parse as an IPv4 address, '
        "expected an IPv4 address, an IPv6 address or a name",
        'hosts: host b: the ssh port "ssh" is none, expected 1 to 65535',
        'hosts: host c: the address "{{ x }}" is a template, expected its value',
        "hosts: host d: ansible_ssh_common_args does not parse (No closing quotation), "
        "expected words as in a shell",
        'hosts: host e: "-oProxyCommand" does not fit, expected a word without - before it',
        'hosts: host f: netprobe_zone "a b" is no name, expected letters, digits, "-", "_" and "."',
    ]


@needs_ansible
@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["ansible_host=localhost", "ansible_host=127.0.0.1 ansible_connection=local"]
)
def test_ansible_loopback(words: str) -> None:
    """A host that takes part must not be localhost to the others; one without a role may be."""
    base = "[node]\nb ansible_host=10.0.0.2\n[other]\nlocalhost ansible_connection=local\n"
    good, bad = write("good", base), write("bad", f"{base}[master]\na {words}\n")
    matrix = str(GOOD.parent / "base.yaml")

    assert len(load_request([matrix], [good], [])[1].hosts) == 2
    with pytest.raises(FileErrors) as caught:
        load_request([matrix], [bad], [])
    (line,) = str(caught.value).splitlines()
    assert line.startswith("Ansible inventory: host a: ")
    assert line.endswith("reach it in ansible_host or netprobe_addresses")


@needs_ansible
@pytest.mark.slow
def test_addresses_of_kubespray() -> None:
    """Its hosts connect to access_ip, else to ip; ssh does not. No other inventory means these."""
    hosts = (
        "a ansible_host=203.0.113.1 ip=10.3.0.1\n"
        "b ansible_host=203.0.113.2 ip=10.3.0.2 access_ip=10.4.0.2\n"
        "c ansible_host=203.0.113.3\n"
        "d ansible_host=203.0.113.4 ip=10.3.0.4 netprobe_addresses=10.5.0.4\n"
        "e ansible_host=203.0.113.5 ip='{{ lookup_of_mine }}'\n"
    )
    groups = "[kube_control_plane]\na\n[kube_node]\nb\nc\nd\ne\n"
    whole = "[k8s_cluster:children]\nkube_control_plane\nkube_node\n"
    ours = load_inventory([write("kubespray.ini", f"[all]\n{hosts}{groups}{whole}")])
    other = load_inventory([write("other.ini", f"[web]\n{hosts}")])

    assert [one.addresses[0].text for one in ours.hosts] == [
        *("10.3.0.1", "10.4.0.2", "203.0.113.3", "10.5.0.4", "203.0.113.5"),
    ]
    assert [one.vantage.ssh.host for one in ours.hosts if one.vantage.ssh] == [
        f"203.0.113.{number}" for number in range(1, 6)
    ]
    (note,) = ours.notes
    assert note.startswith("host e: of Kubespray's variables")
    assert [one.addresses[0].text for one in other.hosts][:2] == ["203.0.113.1", "203.0.113.2"]


@needs_ansible
@pytest.mark.slow
def test_ansible_refuses() -> None:
    """What Ansible itself cannot read is told in its own words, on one line."""
    with pytest.raises(FileErrors) as caught:
        load_inventory([write("hosts.ini", "[a\nb c d = = e\n")])

    (line,) = str(caught.value).splitlines()
    assert line.startswith("hosts.ini: ansible-inventory ")


def test_ansible_program_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A program named ansible-inventory that fails or prints no JSON is one sentence."""
    program = tmp_path / "ansible-inventory"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    hosts = write("hosts", INI)
    for script, words in (
        ("echo no vault secrets >&2; exit 4", "refuses it: no vault secrets"),
        ("echo hello", "printed no JSON: hello"),
        ("echo []", "printed no mapping, expected one of groups"),
        ('echo \'{"all": {"hosts": 5}, "x": 7}\'', "Ansible finds no host in it"),
    ):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        with pytest.raises(FileErrors, match=words):
            load_inventory([hosts])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("apiVersion: v1\nbaseDomain: example.com\nplatform: {none: {}}\n", ""),
        ("apiVersion: v1\nkind: Node\n---\napiVersion: v1\nkind: Node\n", ""),
        ("apiVersion: v1beta1\nkind: AgentConfig\nhosts: [{hostname: a}]\n", ":1:1"),
    ],
)
def test_manifests_are_given_with_another_option(text: str, place: str) -> None:
    """Ansible, which knows nothing of them, is not asked."""
    with pytest.raises(FileErrors) as caught:
        load_inventory([write("manifest.yaml", text)])

    assert str(caught.value).startswith(f"manifest.yaml{place}: this is a manifest, expected ")
    assert str(caught.value).endswith("(a manifest is given with --manifest)")
