"""Pods of the host's network: what they declare against what they hold."""

from __future__ import annotations

from msgspec.structs import replace

from netprobe.agent.wire.parts import HeldSocket
from netprobe.audit.declared import pods_of
from tests.audit.builders import (
    POD_GROUP,
    Held,
    findings,
    pod,
    pod_findings,
    registry_of,
    told,
)

NODE = registry_of("openshift-host-ports")
EXPORTER: Held = ("tcp 0.0.0.0:9100", "node_exporter")


def _kinds(*held: Held, declared: tuple[tuple[str, int], ...], **more: bool) -> list[str]:
    some = pod_findings(NODE, told(*held, groups=POD_GROUP), pod(*declared, **more))
    return [f"{one.kind} {one.protocol} {one.port}" for one in some]


def test_a_pod_that_declares_what_it_holds() -> None:
    """Registered, declared, and listening: nothing."""
    assert _kinds(EXPORTER, declared=(("tcp", 9100),)) == []


def test_a_port_that_the_pod_does_not_declare() -> None:
    """On any address, loopback too; a UDP client's port is none."""
    local: Held = ("tcp 127.0.0.1:9443", "node_exporter")
    client: Held = ("udp 0.0.0.0:45678", "node_exporter")
    found = _kinds(EXPORTER, local, client, declared=(("udp", 9100),), running=False)

    assert [one for one in found if one.startswith("undeclared")] == [
        "undeclared tcp 9100", "undeclared tcp 9443",
    ]  # fmt: skip


def test_a_port_that_is_declared_and_not_registered() -> None:
    """Also a host port of a pod with a network of its own, which no socket shows."""
    assert _kinds(("tcp 0.0.0.0:8888", "x"), declared=(("tcp", 8888),)) == ["unregistered tcp 8888"]
    assert _kinds(declared=(("tcp", 8888),), host_network=False) == ["unregistered tcp 8888"]


def test_a_port_that_is_declared_and_silent() -> None:
    """Nobody listens; a pod that does not run need not, and SCTP is not listed."""
    assert _kinds(declared=(("tcp", 9100),)) == ["silent tcp 9100"]
    assert _kinds(declared=(("tcp", 9100),), running=False) == []
    assert _kinds(declared=(("tcp", 9100),), host_network=False) == []
    assert _kinds(declared=(("sctp", 9100),)) == ["unregistered sctp 9100"]


def test_a_port_that_is_declared_and_held_by_another() -> None:
    """The pod does not listen on what it declares: another process does."""
    (one,) = pod_findings(NODE, told(EXPORTER), pod(("tcp", 9100)))

    assert one.kind == "silent"
    assert one.because == (
        "the container main of pod ns/web declares tcp 9100, and node_exporter (pid 100) listens "
        "there instead"
    )


def test_findings_name_the_pod() -> None:
    """The control group has the uid, the file of pods the name; a pod that it lacks has its uid."""
    answer = told(EXPORTER, groups=POD_GROUP)
    (one,) = pod_findings(NODE, answer, replace(pod(), running=False))
    wrong = told(("tcp 0.0.0.0:9537", "x"), groups=POD_GROUP)

    assert one.pod == "ns/web"
    assert "node_exporter (pid 100, pod ns/web) listens on tcp 9100" in one.because
    assert f"pod {pod().uids[0]}" in findings(NODE, wrong)[0].because


def test_a_pod_that_the_file_does_not_list() -> None:
    """It listens; whether it declares that, nobody can say: neither a violation nor all is well."""
    (one,) = pod_findings(NODE, told(EXPORTER, groups=POD_GROUP))

    assert (one.kind, one.weight, one.pod) == ("unlisted-pod", "unseen", pod().uids[0])


def test_a_pod_that_was_made_anew() -> None:
    """The file has the old pod: that it is silent says nothing while its heir is there."""
    old = replace(pod(("tcp", 9100)), uids=("11111111-2222-4333-8444-555555555555",))
    found = pod_findings(NODE, told(EXPORTER, groups=POD_GROUP), old)
    assert [(one.kind, one.weight) for one in found] == [
        ("unlisted-pod", "unseen"),
        ("silent", "unseen"),
    ]
    assert found[1].remedy.startswith("Print the pods again")

    elsewhere: Held = ("tcp 0.0.0.0:9537", "crio")
    found = pod_findings(NODE, told(elsewhere, groups=POD_GROUP), old)
    assert {(one.kind, one.weight) for one in found} >= {("silent", "unseen")}


def test_a_pod_that_is_there_and_silent_beside_a_strange_one() -> None:
    """What it does not listen on is its own fault: it holds another port of the host."""
    mine = told(("tcp 0.0.0.0:9537", "crio"), groups=POD_GROUP)
    strange = mine.owners[0]._replace(cgroups=POD_GROUP.replace("0f3c", "1f3c"))
    sockets = [*mine.sockets, HeldSocket("tcp", "0.0.0.0", 9100, [1])]
    answer = mine._replace(sockets=sockets, owners=[*mine.owners, strange])
    found = pod_findings(NODE, answer, pod(("tcp", 9537), ("tcp", 9999)))

    assert ("unlisted-pod", "unseen") in {(one.kind, one.weight) for one in found}
    assert {one.weight for one in found if one.kind == "silent"} == {"violation"}


def test_which_pods_are_on_a_host() -> None:
    """By the node's name, the host's own name, long or short, or its address."""
    one = replace(pod(), node="node-1", addresses=("10.0.0.7",))
    nothing: frozenset[str] = frozenset()

    assert pods_of((one,), "node-1", "x", nothing)
    assert pods_of((one,), "a", "node-1", nothing)
    assert pods_of((one,), "a", "node-1.example.com", nothing)
    assert pods_of((one,), "a", "x", frozenset({"10.0.0.7"}))
    assert not pods_of((one,), "a", "x", frozenset({"10.0.0.8"}))
