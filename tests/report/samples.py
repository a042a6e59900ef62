"""Results, findings and runs for the report's tests, made by hand: no probe, no judge."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from netprobe.model.plan import PlannedMatrix, PlannedRequirement, Skipped
from netprobe.model.result import Finding, HostReport, Result
from netprobe.model.run import RunInfo
from netprobe.report.record.collector import Report, collect

DROPPED = (
    "7 SYNs, no answer; {to}'s packet recorder never saw them; last hop that answered: 10.0.0.1"
)
NO_SSH = (
    "worker-9: ssh: connect to host 10.0.9.9 port 22: No route to host; "
    "check that `ssh 10.0.9.9` works by hand"
)

PASSED = Result(
    order=(0, 0, 0),
    matrix="deckhouse-nodes",
    requirement="etcd",
    purpose="etcd replication",
    row="Master to master nodes traffic",
    optional=False,
    expect="allowed",
    waived=None,
    source="master-0",
    destination="master-1",
    address="10.0.0.11",
    protocol="tcp",
    port=2379,
    end_port=2379,
    verdict="pass",
    state="open",
    reason="nonce-answer",
    proof="nonce",
    where=(),
    because="our listener on master-1 answered our nonce",
    rtt_ms=0.4,
    attempts=1,
)

REFUSED = replace(PASSED, state="closed", reason="reset", proof="refusal")

BLOCKED = replace(
    PASSED,
    verdict="blocked",
    state="filtered",
    reason="no-response",
    proof="none",
    where=("destination", "path"),
    last_hop="10.0.0.1",
    because=DROPPED.format(to="master-1"),
    rtt_ms=None,
    attempts=2,
)

REQUIREMENTS = (
    PlannedRequirement(
        matrix="deckhouse-nodes",
        id="etcd",
        from_=("master",),
        to=("master",),
        protocol="tcp",
        ports=((2379, 2379), (2380, 2380)),
        purpose="etcd replication",
        row="Master to master nodes traffic",
    ),
)

INFO = RunInfo(
    started_at="2026-11-20T10:00:00Z",
    elapsed_s=4.234,
    complete=True,
    matrices=(
        PlannedMatrix(
            "deckhouse-nodes", {"cni": "cilium", "modules": ("sds", "cloud"), "ha": True}
        ),
    ),
    hosts=(
        HostReport(
            name="master-0",
            state="agent",
            python="3.11.7",
            user="root",
            privileged=True,
            roles=("master", "node"),
            addresses=("10.0.0.10", "fd00::10"),
            zone="a",
        ),
        HostReport(
            name="master-1",
            state="agent",
            python="3.11.7",
            user="root",
            privileged=True,
            roles=("master", "node"),
            addresses=("10.0.0.11", "10.9.0.11"),
        ),
    ),
    requirements=REQUIREMENTS,
    planned_flows=3,
)


def flow(base: Result, place: int, **changes: Any) -> Result:
    """The same result at another place of the plan."""
    return replace(base, order=(place, 0, 0), **changes)


def port(base: Result, first: int, last: int | None = None, **changes: Any) -> Result:
    """The same result for other ports."""
    return replace(base, port=first, end_port=last or first, **changes)


def finding(title: str, advice: str, *members: Result) -> Finding:
    """A finding over these results, with the places of the first."""
    first = members[0]
    return Finding(
        kind="zone",
        verdict=first.verdict,
        title=title,
        advice=advice,
        where=first.where,
        members=members,
        rejected_by=first.rejected_by,
        last_hop=first.last_hop,
    )


def report_of(results: list[Result], *findings: Finding, info: RunInfo = INFO) -> Report:
    """A report over these results; findings have the numbers that the judge gives them."""
    flows = sum(result.port_count for result in results)
    numbered = tuple(replace(one, number=number) for number, one in enumerate(findings, 1))
    return Report(replace(info, planned_flows=flows), collect(results), numbered)


def everything() -> Report:
    """A run with one of everything that a report can show."""
    overlay = [
        port(
            BLOCKED,
            4299,
            order=(3, source, destination),
            requirement="vxlan",
            purpose="VXLAN for pod-to-pod traffic",
            row="Nodes to nodes traffic",
            protocol="udp",
            source=f"worker-{source}",
            destination=f"db-{destination}",
            address=f"10.0.2.{10 + destination}",
            where=("path",),
            rejected_by="10.0.1.1",
            last_hop=None,
            reason="admin-prohibited",
            because=f"10.0.1.1 answered with ICMP 3/13 for db-{destination}",
        )
        for source in range(1, 13)
        for destination in range(2)
    ]
    peers = [
        port(BLOCKED, 2380, order=(1, 0, 1)),
        port(BLOCKED, 2380, order=(1, 2, 1), source="master-2"),
    ]
    exposed = replace(
        PASSED,
        order=(4, 0, 0),
        requirement="kubelet-readonly",
        purpose="The read-only port of the kubelet",
        row="",
        expect="denied",
        verdict="exposed",
        state="open",
        reason="syn-ack",
        proof="none",
        port=10255,
        end_port=10255,
        where=("destination",),
        because="a connection to 10.0.0.11 port 10255 opened",
    )
    silent = flow(
        BLOCKED,
        5,
        requirement="ntp",
        purpose="Time synchronisation",
        row="External traffic",
        protocol="udp",
        port=123,
        end_port=123,
        destination="ntp",
        address="192.0.2.123",
        verdict="inconclusive",
        state="open|filtered",
        where=("destination", "path", "return-path", "service", "source"),
        last_hop=None,
        because="2 NTP requests, no answer; no agent at ntp, so the request may have arrived",
    )
    unseen = [
        replace(
            BLOCKED,
            order=(6, 9, index),
            source="worker-9",
            destination=f"master-{index}",
            address=f"10.0.0.{10 + index}",
            requirement="kube-api",
            purpose="kube-apiserver",
            row="Nodes to master nodes traffic",
            port=6443,
            end_port=6443,
            verdict="not-tested",
            state="unknown",
            reason="no-vantage",
            where=("source",),
            last_hop=None,
            because=NO_SSH,
            attempts=0,
        )
        for index in range(3)
    ]
    waived = flow(silent, 7, requirement="ldap", waived="opened on Monday, until 2027-01-31")
    optional = flow(BLOCKED, 8, requirement="ipmi", optional=True, port=623, end_port=623)
    passes = [
        flow(PASSED, 0),
        port(REFUSED, 7000, 7999, order=(2, 0, 0), requirement="drbd"),
        port(
            PASSED,
            10250,
            order=(2, 1, 0),
            reason="syn-ack",
            proof="service",
            requirement="kubelet",
            warnings=("tcp 10250 of master-1 is held by kubelet (pid 812) on 127.0.0.1 too",),
        ),
    ]
    info = replace(
        INFO,
        hosts=(
            *INFO.hosts,
            HostReport(
                name="worker-1",
                state="agent",
                python="3.6.8",
                user="core",
                cost=("no recorder, so a drop before the host cannot be told from one on it",),
            ),
            HostReport(name="worker-9", state="failed", words=NO_SSH, addresses=("10.0.9.9",)),
            HostReport(
                name="db-0", state="failed", words="no Python 3.6 or newer; install python3"
            ),
            HostReport(name="ntp", state="none"),
        ),
        skipped=(
            Skipped("deckhouse-nodes", "vcd-webhook", "setting modules lacks cloud-provider-vcd"),
            Skipped("deckhouse-nodes", "capcd", "setting modules lacks cloud-provider-vcd"),
            Skipped("deckhouse-nodes", "frontend", "no host has the role frontend"),
        ),
        notes=("inventory.yaml: no matrix knows the role balancer; nearest: frontend",),
    )
    results = [*passes, *peers, *overlay, exposed, silent, *unseen, waived, optional]
    return report_of(
        results,
        finding(
            "tcp 2380 from master-0, master-2 to master-1 is dropped on the path or by the "
            "destination's own firewall (2 flows)",
            "Allow tcp 2380 from master-0, master-2 to master-1 on both firewalls.",
            *peers,
        ),
        finding(
            "10.0.1.1 rejects udp 4299 from worker-1, worker-2 and 10 more to db-0, db-1 "
            "(24 flows)",
            "Allow udp 4299 from worker-1, worker-2 and 10 more to db-0, db-1 on 10.0.1.1.",
            *overlay,
        ),
        finding(
            "tcp 10255 of master-1 must not answer, and does (1 flow)",
            "Bind the service on master-1 to loopback only, or close tcp 10255 in its firewall.",
            exposed,
        ),
        info=info,
    )
