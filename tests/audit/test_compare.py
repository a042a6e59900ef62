"""Every sentence of the port registry, as sockets of a host that break it and ones that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from netprobe.audit.compare import facts_of, ports_of
from netprobe.audit.sightings import read_view
from netprobe.audit.table import RULES
from netprobe.model.audit import SocketHolder
from netprobe.report.verbs.audit import KINDS
from tests.audit.builders import POD_GROUP, findings, kinds, registry_of, site, told, view_of

OCP = "openshift-host-ports"
NODE = registry_of(OCP)
MASTER = registry_of(OCP, roles=("control-plane",))
CASES = [
    # Registered, by the process of the row, bound as it is meant: nothing.
    ("tcp 0.0.0.0:10250", "kubelet", []),
    ("tcp [::]:9100", "node_exporter", []),
    ("tcp 10.0.0.1:9100", "kube-rbac-proxy", []),
    ("tcp 127.0.0.1:10248", "kubelet", []),
    ("tcp [::1]:10248", "kubelet", []),
    ("udp 0.0.0.0:6081", "", []),
    # A row may name nobody ("various CSI drivers").
    ("tcp 0.0.0.0:9205", "anything", []),
    # No entry: inside of the range to use, outside of all, and for the host only.
    ("tcp 0.0.0.0:9500", "ghost", ["no-entry"]),
    ("tcp 0.0.0.0:8888", "ghost", ["no-entry", "outside-ranges"]),
    ("tcp 10.0.0.1:8888", "ghost", ["no-entry", "outside-ranges"]),
    ("tcp 127.0.0.1:8888", "ghost", ["no-entry"]),
    ("tcp 127.0.0.1:9500", "ghost", ["no-entry", "local-in-range"]),
    ("udp 0.0.0.0:514", "rsyslogd", ["no-entry", "outside-ranges"]),
    # The registry has the port, but for UDP.
    ("tcp 0.0.0.0:6081", "ghost", ["no-entry", "outside-ranges"]),
    # The port of another process.
    ("tcp 0.0.0.0:10250", "ghost", ["wrong-owner"]),
    ("udp 0.0.0.0:6081", "ghost", ["wrong-owner"]),
    # Given up.
    ("tcp 0.0.0.0:3306", "mariadbd", ["retired"]),
    ("tcp 127.0.0.1:8089", "ironic-conductor", ["retired"]),
    # Meant to be local.
    ("tcp 0.0.0.0:10248", "kubelet", ["not-local"]),
    ("tcp [::]:10248", "kubelet", ["not-local"]),
    ("tcp 10.0.0.1:10248", "kubelet", ["not-local"]),
    ("tcp 0.0.0.0:10248", "ghost", ["wrong-owner", "not-local"]),
    # The kernel gave these to clients; TCP has no such sockets.
    ("udp 0.0.0.0:45678", "chronyd", []),
    ("tcp 0.0.0.0:45678", "rpc.statd", ["no-entry", "outside-ranges"]),
]


@pytest.mark.parametrize(("words", "name", "expected"), CASES, ids=str)
def test_a_port_of_a_node(words: str, name: str, expected: list[str]) -> None:
    """What the registry of OpenShift says to one socket on a worker."""
    registry = registry_of(OCP, sets=("features=csi-drivers",)) if "9205" in words else NODE

    assert kinds(registry, told((words, name))) == expected


def test_a_port_of_other_hosts_only() -> None:
    """etcd's port has an entry, but no worker has that role; nor does a plugin that is not used."""
    (one, *_) = findings(NODE, told(("tcp 10.0.0.1:2379", "etcd")))
    (two, *_) = findings(NODE, told(("tcp 0.0.0.0:9101", "kube-proxy")))

    assert (one.kind, one.rows) == ("no-entry", ("etcd",))
    assert one.because.endswith("registered, but not for this host: etcd: only for control-plane")
    assert two.because.endswith(
        "openshift-sdn-metrics: setting network is ovn-kubernetes, not openshift-sdn; "
        "kube-proxy-metrics-9101: setting network is ovn-kubernetes, not third-party"
    )
    assert not findings(MASTER, told(("tcp 10.0.0.1:2379", "etcd")))


def test_a_port_is_given_up_since_a_version() -> None:
    """Before 4.11 MariaDB's port was not given up: it has no entry."""
    old = registry_of(OCP, sets=("version=4.10",))

    assert kinds(old, told(("tcp 127.0.0.1:3306", "mariadbd"))) == ["no-entry"]


@pytest.mark.parametrize(
    ("held", "several"),
    [
        # On different addresses, or on one with SO_REUSEPORT.
        ((("tcp 127.0.0.1:9443", "one"), ("tcp 127.0.0.2:9443", "two")), True),
        ((("tcp 0.0.0.0:9443", "one"), ("tcp 0.0.0.0:9443", "two")), True),
        # One program for both families, children that inherit, systemd that hands its socket over.
        ((("tcp 0.0.0.0:9443", "one"), ("tcp [::]:9443", "one")), False),
        ((("tcp 0.0.0.0:9443", "one+worker"),), False),
        ((("tcp 0.0.0.0:9443", "systemd+sshd"), ("tcp [::]:9443", "sshd")), False),
        # TCP and UDP are two ports.
        ((("tcp 0.0.0.0:9443", "one"), ("udp 0.0.0.0:9443", "two")), False),
    ],
)
def test_two_owners(held: tuple[tuple[str, str], ...], several: bool) -> None:
    """Two programs on one port are two owners, however they share it."""
    assert ("two-owners" in kinds(NODE, told(*held))) == several


def test_programs_of_one_pod_are_one_owner() -> None:
    """node_exporter and its kube-rbac-proxy share 9100."""
    both = (("tcp 0.0.0.0:9100", "node_exporter"), ("tcp 0.0.0.0:9100", "kube-rbac-proxy"))

    assert kinds(NODE, told(*both)) == ["two-owners"]
    assert kinds(NODE, told(*both, groups=POD_GROUP)) == []


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("127.0.0.1", "10.77.0.11", []),
        ("10.77.0.11", "10.77.0.11", ["two-owners"]),
        ("127.0.0.1", "0.0.0.0", ["two-owners"]),
    ],
)
def test_two_programs_that_a_row_names(
    first: str, second: str, expected: list[str], tmp_path: Path
) -> None:
    """Each on an address of its own they are as the registry says, unless it names one only."""
    row = "  - {id: m, from: node, to: node, tcp: [9103], process: [%s]}\n"
    answer = told((f"tcp {first}:9103", "aaa"), (f"tcp {second}:9103", "bbb"))

    assert kinds(registry_of(site(tmp_path, row % "aaa, bbb")), answer) == expected
    one_named = kinds(registry_of(site(tmp_path, row % "aaa")), answer)
    assert one_named == ["wrong-owner", "two-owners"]


def test_a_socket_that_systemd_keeps_for_a_service(tmp_path: Path) -> None:
    """Its service does not run, so nobody can see whose it is; a row may name systemd."""
    row = "  - {id: ssh, from: node, to: node, tcp: [22], process: [%s]}\n"
    waiting = told(("tcp [::]:22", "systemd"))
    (one,) = findings(registry_of(site(tmp_path, row % "sshd")), waiting)

    assert (one.kind, one.weight) == ("unseen-owner", "unseen")
    assert one.because.startswith("systemd (pid 1) holds tcp 22 of all addresses for a service")
    assert kinds(registry_of(site(tmp_path, row % "sshd, systemd")), waiting) == []
    # The first process of a container is no systemd, and no other process called so is it.
    first = told(("tcp [::]:22", "systemd"))
    owner = first.owners[0]
    for strange in (owner._replace(process="nginx", program="nginx"), owner._replace(pid=7)):
        answer = first._replace(owners=[strange])
        assert kinds(registry_of(site(tmp_path, row % "sshd")), answer) == ["wrong-owner"]


def test_what_nobody_could_see() -> None:
    """A hidden owner of a registered port is no violation, and the audit is not sure of it."""
    (one,) = findings(NODE, told(("tcp 0.0.0.0:10250", ""), sees_all=False))
    (two, _) = findings(NODE, told(("tcp 0.0.0.0:8888", ""), sees_all=False))

    assert (one.kind, one.weight) == ("unseen-owner", "unseen")
    assert (two.kind, two.weight) == ("no-entry", "violation")
    assert "a process that is hidden listens" in two.because


def test_findings_say_who_and_where() -> None:
    """Process, unit, address and row; and what to do."""
    answer = told(("tcp 0.0.0.0:9537", "squatter"), groups="0::/system.slice/squat.service\n")
    (one,) = findings(NODE, answer)

    assert one.because == (
        "squatter (pid 100, squat.service) listens on tcp 9537 of all addresses, and tcp 9537 "
        "belongs to crio (crio-metrics)"
    )
    assert one.remedy == "Stop the process, or let it listen elsewhere."
    assert one.holders == (SocketHolder("squatter", "squatter", 100, "squat.service"),)


def test_any_matrix_is_a_registry(tmp_path: Path) -> None:
    """`process:` and `owner:` of a row say who may hold its port; without ranges none is asked."""
    path = site(
        tmp_path,
        "  - {id: web, from: node, to: node, tcp: [8080], process: [nginx]}\n"
        '  - {id: app, from: node, to: node, udp: ["7000-7009"], owner: ["app-*"]}\n'
        "  - {id: db, from: node, to: db, tcp: [5432], process: postgres}\n",
    )
    registry = registry_of(path)

    assert kinds(registry, told(("tcp 0.0.0.0:8080", "nginx"))) == []
    assert kinds(registry, told(("tcp 0.0.0.0:8080", "apache2"))) == ["wrong-owner"]
    assert kinds(registry, told(("udp 0.0.0.0:7004", "app-7"))) == []
    assert kinds(registry, told(("udp 0.0.0.0:7004", "other"))) == ["wrong-owner"]
    assert kinds(registry, told(("tcp 0.0.0.0:5432", "postgres"))) == ["no-entry"]
    assert kinds(registry, told(("tcp 0.0.0.0:22", "sshd"))) == ["no-entry"]


def test_matrices_add_up(tmp_path: Path) -> None:
    """A site's own matrix registers what OpenShift's does not know; rows say whose they are."""
    path = site(tmp_path, "  - {id: ssh, from: node, to: node, tcp: [22], process: [sshd]}\n")
    registry = registry_of(OCP, path)
    answer = told(("tcp 0.0.0.0:22", "sshd"), ("tcp 0.0.0.0:10250", "kubelet"))

    assert kinds(registry, answer) == []
    view = view_of(answer)
    rows = [one.audited().rows for one in ports_of(view, registry)]
    assert rows == [("site:ssh",), (f"{OCP}:kubelet",)]


def test_names_of_processes() -> None:
    """The kernel keeps 15 characters of a name; `_` is `-`; the program's file counts too."""
    (row,) = MASTER.rows_of("tcp", 10257, here=True)
    assert row.allows(SocketHolder("kube-controller", None, 7))
    assert row.allows(SocketHolder("x", "kube-controller-manager", 7))
    assert not row.allows(SocketHolder("kube-controll", "x", 7))


def test_other_runs_of_netprobe_are_left_out() -> None:
    """Its listeners come and go with a run; they are counted."""
    view = read_view("n0", told(("tcp 0.0.0.0:9500", "netprobe-agent")), ())

    assert (view.sockets, view.ours) == ((), 1)


def test_every_kind_of_the_table_has_a_case() -> None:
    """Each rule is met by a case of this file, and each kind has its words."""
    seen = {kind for _, _, expected in CASES for kind in expected}

    assert {rule.kind for rule in RULES} - seen == {"two-owners", "unseen-owner"}
    assert {rule.kind for rule in RULES} <= set(KINDS)


def test_facts_are_those_of_the_table() -> None:
    """A rule may ask only for facts that there are."""
    answer = told(("tcp 0.0.0.0:10250", "kubelet"))
    view = view_of(answer)
    facts = facts_of(ports_of(view, NODE)[0], view, NODE)

    assert all(hasattr(facts, name) for rule in RULES for name in rule.when)


def test_names_that_harm_a_terminal() -> None:
    """Whoever starts a process chooses its names: escapes and broken text go."""
    answer = told(
        ("tcp 0.0.0.0:9500", "od\udcff\x1b[31md"), groups="0::/system.slice/x\x1b[1m.service\n"
    )
    (one,) = findings(NODE, answer)

    assert one.holders == (SocketHolder("odd", "odd", 100, "x.service"),)
    assert one.because.isprintable()
