"""`audit ports` on hosts that really have listeners, some of which should not be there.

A master and a node behind a router. Processes call themselves as the platform's do; a firewall on
each host counts every packet, of which there are none: nothing is probed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # has no stubs

from netprobe.report.verbs.audit import audit_schema_text
from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab, Namespace, unprivileged
from tests.needs import skip

pytestmark = [pytest.mark.lab, pytest.mark.slow]

OCP = ("-m", "openshift-host-ports")
ROLES = {"m0": ["control-plane"], "n0": ["node"]}
# Its first argument is its name; it listens on the others, such as tcp:0.0.0.0:9100.
LISTENER = """
import socket, sys, time
open("/proc/self/comm", "w").write(sys.argv[1])
kept = []
for words in sys.argv[2:]:
    protocol, _, place = words.partition(":")
    address, _, port = place.rpartition(":")
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
    sock.bind((address, int(port)))
    if protocol == "tcp":
        sock.listen()
    kept.append(sock)
time.sleep(1000)
"""
COUNTER = """
table inet audit {
  chain in { type filter hook input priority -300; iifname != "lo" meta l4proto { tcp, udp, icmp } counter; }
  chain out { type filter hook output priority -300; oifname != "lo" meta l4proto { tcp, udp, icmp } counter; }
}
"""  # noqa: E501
# What runs as it should on the node. A process that is called kubelet would be one for every agent
# of this machine, those of other labs too.
GOOD = {
    "ovnkube": ["tcp:127.0.0.1:29103", "tcp:127.0.0.1:29105"],
    "node_exporter": ["tcp::::9100", "udp:0.0.0.0:60123"],
    "crio": ["tcp:0.0.0.0:9537"],
}
# What runs on the master beside it, and what is wrong with each.
BAD = {
    ("ghost", "tcp:0.0.0.0:9500"): {"no-entry"},
    ("stray", "tcp:0.0.0.0:8888"): {"no-entry", "outside-ranges"},
    ("shy", "tcp:127.0.0.1:9333"): {"no-entry", "local-in-range"},
    ("squatter", "tcp:0.0.0.0:10257"): {"wrong-owner"},
    ("mariadbd", "tcp:0.0.0.0:3306"): {"retired"},
    ("etcd", "tcp:10.97.1.10:9977"): {"not-local"},
    ("rsyslogd", "udp:0.0.0.0:514"): {"no-entry", "outside-ranges"},
}


def listen(host: Namespace, name: str, *places: str) -> int:
    """Start a process of this name, and wait until it listens."""
    process = host.spawn(sys.executable, "-c", LISTENER, name, *places)
    wanted = []
    for words in places:
        protocol, _, place = words.partition(":")
        address, _, port = place.rpartition(":")
        text = "*" if address == "::" else address
        wanted.append(f"{protocol} {text}:{port}")
    host.wait_until_listening(*wanted)
    return process.pid


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Both hosts with their processes."""
    with Lab() as made:
        router = made.router("fw", "10.97.0.1")
        for number, name in enumerate(ROLES, start=10):
            made.host(name, router, f"10.97.1.{number}")
        made.wait_until_ready()
        made.inventory(ROLES)
        for name in ROLES:
            for process, places in GOOD.items():
                listen(made[name], process, *places)
            made[name].nft(COUNTER)
        for (process, place), _ in BAD.items():
            listen(made["m0"], process, place)
        listen(made["m0"], "kube-controller", "tcp:127.0.0.1:9443")
        listen(made["m0"], "twin", "tcp:127.0.0.2:9443")
        yield made


def audit(lab: Lab, *words: str, inventory: Path | None = None) -> Finished:
    """Run ``netprobe audit ports`` for the hosts of an inventory."""
    path = inventory or lab.folder / "inventory.yaml"
    return netprobe("audit", "ports", "-i", str(path), *words)


def _counts(lab: Lab) -> list[int]:
    text = "".join(lab[name].run("nft", "list", "table", "inet", "audit") for name in ROLES)
    return [int(number) for number in re.findall(r"counter packets (\d+)", text)]


def _found(document: dict[str, Any], host: str) -> set[tuple[str, str]]:
    return {
        (one["kind"], f"{one['protocol']}:{one['port']}")
        for one in document["findings"]
        if one["host"] == host
    }


def test_every_violation_is_named_and_nothing_is_sent(lab: Lab, tmp_path: Path) -> None:
    """Kinds, process and address of each; the node has none; exit 1; JSON, JUnit and text."""
    files = {name: tmp_path / name for name in ("text", "junit")}
    outputs = [word for name, path in files.items() for word in ("-o", f"{name}={path}")]
    done = audit(lab, *OCP, "-o", "json", *outputs)

    assert done.status == 1, done.stderr
    expected = {
        (kind, f"{place.partition(':')[0]}:{place.rpartition(':')[2]}")
        for (_, place), kinds in BAD.items()
        for kind in kinds
    }
    two = {("two-owners", "tcp:9443"), ("wrong-owner", "tcp:9443")}
    assert _found(done.document, "m0") == expected | two
    assert _found(done.document, "n0") == set()
    (wrong,) = [one for one in done.document["findings"] if one["port"] == 10257]
    assert wrong["holders"][0]["process"] == "squatter"
    assert wrong["addresses"] == ["0.0.0.0"]
    assert wrong["rows"] == ["kube-controller-manager"]
    Draft202012Validator(json.loads(audit_schema_text())).validate(done.document)
    assert files["text"].read_text().startswith("VIOLATIONS: 11 violations on 1 host\n")
    assert 'name="tcp 10257"' in files["junit"].read_text()
    # Nothing but the agents' own pipes; and the counter counts.
    assert _counts(lab) == [0, 0, 0, 0]
    with lab["n0"].socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.settimeout(10)
        sock.connect(("10.97.1.10", 9537))
    assert all(_counts(lab))


def test_a_host_as_it_should_be(lab: Lab) -> None:
    """Exit 0; the table has process, address, row; a UDP client's port is left out and counted."""
    (lab.folder / "n0").mkdir(exist_ok=True)
    lab.inventory({"n0": ["node"]}).rename(lab.folder / "n0" / "inventory.yaml")
    lab.inventory(ROLES)
    done = audit(lab, *OCP, inventory=lab.folder / "n0" / "inventory.yaml")

    assert done.status == 0, done.stdout
    assert done.stdout.startswith("OK: every listening port of 1 host is registered\n")
    assert re.search(
        r"tcp 29103 +127\.0\.0\.1 +ovnkube \(python\S+ +\S+ +local-ovn-29103", done.stdout
    )
    assert re.search(r"tcp 9100 +:: +node_exporter \(python\S+ +\S+ +node-exporter", done.stdout)
    assert "1 UDP port of 60001-65535, which the kernel gives to clients, left out" in done.stdout


def test_hosts_that_nobody_could_look_at(lab: Lab) -> None:
    """Exit 3 where a host failed and no violation was found; the words of its vantage are told."""
    hosts = {"n0": ["node"], "gone": ["node"]}
    text = lab.inventory({"n0": hosts["n0"]}).read_text()
    text += "  gone:\n    address: 10.97.1.99\n    roles: [node]\n"
    text += '    vantage: {command: ["false"]}\n'
    lab.inventory(ROLES)
    done = audit(lab, *OCP, inventory=lab.write("gone.yaml", text))

    assert done.status == 3
    assert "UNSURE: no violation seen; 1 host not looked at" in done.stdout
    assert "gone (node): not looked at: " in done.stdout
    assert "1 of 2 hosts looked at" in done.stdout


def test_owners_that_nobody_could_see(lab: Lab) -> None:
    """An agent without rights sees the sockets, not whose they are: exit 3, and it says why."""
    command = [*lab["n0"].enter, *unprivileged()]
    vantage: dict[str, object] = {"vantage": {"command": command}}
    text = lab.inventory({"n0": ["node"]}, overrides={"n0": vantage}).read_text()
    lab.inventory(ROLES)
    done = audit(lab, *OCP, inventory=lab.write("lesser.yaml", text))

    assert done.status == 3, done.stdout
    assert "NOT SEEN: tcp 9537 on n0: the owner could not be seen" in done.stdout
    assert "nobody could see the owner: the agent lacks the right (sudo)" in done.stdout


def test_a_matrix_of_the_user(lab: Lab) -> None:
    """`process:` of its rows: the squatter is at home now, ovnkube is a stranger; exit 1."""
    matrix = lab.write(
        "mine.yaml",
        "schema: netprobe.matrix/1\nname: mine\ntitle: Mine\nroles: {node: {}}\nrequirements:\n"
        "  - {id: a, from: node, to: node, tcp: [9537, 9100], process: [crio, node_exporter]}\n"
        "  - {id: b, from: node, to: node, tcp: [29103], process: [squatter]}\n",
    )
    done = audit(lab, "-m", str(matrix), "-o", "json", "--role", "control-plane=node")

    assert done.status == 1
    assert _found(done.document, "n0") == {("wrong-owner", "tcp:29103"), ("no-entry", "tcp:29105")}


@contextlib.contextmanager
def control_group(pid: int, path: str) -> Iterator[None]:
    """Put a process into a control group, and remove the group behind it."""
    roots = [Path("/sys/fs/cgroup", name) for name in ("systemd", "unified", "")]
    root = next((one for one in roots if (one / "cgroup.procs").exists()), None)
    folder = None if root is None else root / path
    try:
        assert folder is not None
        folder.mkdir(parents=True)
        (folder / "cgroup.procs").write_text(f"{pid}\n")
    except (OSError, AssertionError) as error:
        skip(f"no control group can be made here ({error!r})", "root that may make them")
    assert root is not None
    try:
        yield
    finally:
        (root / "cgroup.procs").write_text(f"{pid}\n")
        while folder != root:
            folder.rmdir()
            folder = folder.parent


def _pod(name: str, uid: str, **spec: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": uid},
        "spec": {"nodeName": "n0", "hostNetwork": True, **spec},
        "status": {"phase": "Running"},
    }


def test_pods_and_what_they_declare(lab: Lab) -> None:
    """A process in a pod's control group: declared, undeclared, unregistered, silent; exit 1."""
    uid = str(uuid.uuid4())
    pid = listen(lab["n0"], "kube-proxy", "tcp:0.0.0.0:9300", "tcp:127.0.0.1:9301")
    ports = [{"containerPort": 9300}, {"containerPort": 7777}, {"containerPort": 9448}]
    pods = [_pod("web", uid, containers=[{"name": "main", "ports": ports}])]
    pods.append(_pod("far", str(uuid.uuid4()), nodeName="elsewhere", containers=[]))
    path = lab.write("pods.json", json.dumps({"kind": "List", "items": pods}))
    features = "features=ingress-node-firewall,run-once-duration-override"
    group = f"kubepods-np{os.getpid()}.slice/kubepods-np-pod{uid.replace('-', '_')}.slice"
    with control_group(pid, f"{group}/crio-{uuid.uuid4().hex * 2}.scope"):
        done = audit(lab, *OCP, "--set", features, "--pods", str(path), "-o", "json")

    assert done.status == 1
    assert _found(done.document, "n0") == {
        ("undeclared", "tcp:9301"),
        ("unregistered", "tcp:7777"),
        ("silent", "tcp:7777"),
        ("silent", "tcp:9448"),
    }
    far = "--pods has pods of nodes that were not looked at: elsewhere"
    assert far in done.document["notes"]
    (one,) = [one for one in done.document["findings"] if one["kind"] == "undeclared"]
    assert (one["pod"], one["holders"][0]["pod"]) == ("ns/web", "ns/web")
