"""Pods against sockets: what pods of the host's network declare, and what they really hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from netprobe.audit.compare import PortSockets, is_client, word_addresses, word_holder
from netprobe.audit.registry import Registry
from netprobe.audit.sightings import HostView
from netprobe.model.audit import AuditFinding, AuditKind
from netprobe.model.plan import Pod, PodPort

# What ``--pods`` finds: docs/port-audit.md prints it.
POD_KINDS: Final[Mapping[str, str]] = {
    "undeclared": "a pod listens on a port of the host that its spec does not declare",
    "unregistered": "a pod of the host's network, or a `hostPort`, declares a port that no row "
    "has for this host",
    "silent": "a running pod of the host's network declares a port, and nothing or another "
    "process listens there. No violation, but not seen, where no process of the pod holds a port "
    "of the host and there are `unlisted-pod`s: the pod may have been made anew",
    "unlisted-pod": "a pod listens on a port of the host, and the file does not list this pod: no "
    "violation, and no proof",
}
_PRINT_AGAIN = "Print the pods again: the file is older than the pod, or not of its host."


def pods_of(
    pods: Sequence[Pod], name: str, hostname: str, addresses: frozenset[str]
) -> tuple[Pod, ...]:
    """Give the pods of a host: their node is called as it, or has its address."""
    names = {name, hostname, hostname.partition(".")[0]}
    return tuple(
        pod for pod in pods if pod.node in names or not addresses.isdisjoint(pod.addresses)
    )


def find_undeclared(
    view: HostView, registry: Registry, ports: Sequence[PortSockets], pods: Sequence[Pod]
) -> Iterator[AuditFinding]:
    """Hold sockets of pods against what the pods declare: ``pods`` are those of all hosts."""
    by_name = {pod.name: pod for pod in pods}
    for one in ports:
        for holder in () if is_client(one, view, registry) else one.holders:
            told = f"{word_holder(holder)} listens on {word_addresses(one)}, and"
            pod = by_name.get(holder.pod or "")
            if pod is None and holder.pod is not None:
                words = (f"{told} the file of pods does not list its pod", _PRINT_AGAIN)
                yield _make_finding("unlisted-pod", view, one, words, holder.pod)
            elif pod is not None and all(
                (port.protocol, port.port) != (one.protocol, one.port) for port in pod.ports
            ):
                remedy = f"Declare the port in the pod's spec (containerPort {one.port})."
                words = (f"{told} the pod does not declare {one.name}", remedy)
                yield _make_finding("undeclared", view, one, words, pod.name)


def find_unheld(
    view: HostView,
    registry: Registry,
    ports: Sequence[PortSockets],
    pods: Sequence[Pod],
    listed: Sequence[Pod],
) -> Iterator[AuditFinding]:
    """Hold what the pods of this host declare against the registry and the sockets.

    ``listed`` are the pods of all hosts. A pod that holds nothing here may be gone, where others
    than those of the file are there.
    """
    seen = {holder.pod for one in ports for holder in one.holders} - {None}
    stale = bool(seen - {pod.name for pod in listed})
    for pod in pods:
        for port in pod.ports:
            for one in _check_declared(view, registry, ports, pod, port):
                is_unsure = stale and one.kind == "silent" and pod.name not in seen
                yield _doubt_finding(one) if is_unsure else one


def _doubt_finding(one: AuditFinding) -> AuditFinding:
    because = (
        f"{one.because}; nothing here is held by the pod, and pods are here that the file does "
        "not list"
    )
    return replace(one, weight="unseen", because=because, remedy=_PRINT_AGAIN)


def _check_declared(
    view: HostView, registry: Registry, ports: Sequence[PortSockets], pod: Pod, port: PodPort
) -> Iterator[AuditFinding]:
    held = next((o for o in ports if (o.protocol, o.port) == (port.protocol, port.port)), None)
    rows = registry.rows_of(port.protocol, port.port, here=True)
    one = held or PortSockets(port.protocol, port.port, (), rows)
    told = f"the container {port.container} of pod {pod.name} declares {one.name}"
    if not rows:
        matrices = " or ".join(registry.matrices)
        words = (
            f"{told}, and no row of {matrices} has it for this host",
            f"Register {one.name}, or take it out of the pod's spec.",
        )
        yield _make_finding("unregistered", view, one, words, pod.name)
    # A host port of a pod with a network of its own is a rule of NAT, which no socket shows; and
    # an agent lists no SCTP.
    if not pod.host_network or not pod.running or port.protocol not in ("tcp", "udp"):
        return
    if held is None:
        remedy = f"Take the port out of the pod's spec, or see why pod {pod.name} does not listen."
        words = (f"{told}, and nobody listens there", remedy)
        yield _make_finding("silent", view, one, words, pod.name)
    elif held.holders and all(holder.pod != pod.name for holder in held.holders):
        who = ", ".join(map(word_holder, held.holders))
        words = (f"{told}, and {who} listens there instead", "Leave the port to one of them.")
        yield _make_finding("silent", view, one, words, pod.name)


def _make_finding(
    kind: AuditKind, view: HostView, one: PortSockets, words: tuple[str, str], pod: str
) -> AuditFinding:
    return AuditFinding(
        kind, "unseen" if kind == "unlisted-pod" else "violation", view.name,
        one.protocol, one.port, *words,
        one.addresses, one.holders, tuple(row.name for row in one.rows), pod,
    )  # fmt: skip
