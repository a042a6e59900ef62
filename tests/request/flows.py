"""Random failures of a run, the request for them, and the flows that rules open."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import product

from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.model.firewall import FirewallRequest, FirewallRule
from netprobe.model.ports import each
from netprobe.model.result import HostReport, Place, Result
from netprobe.model.run import RunInfo
from netprobe.request.build import request_of_run
from netprobe.request.rules import RequestWishes
from netprobe.request.syntaxes import SYNTAXES
from tests.report.samples import BLOCKED, INFO

# Source address, destination address, protocol, and port (0 where there is none).
Flow = tuple[str, str, str, int]

PLACES: tuple[tuple[Place, ...], ...] = (
    ("path",),
    ("destination",),
    ("source",),
    ("destination", "path"),
)
ROLES = (("master", "node"), ("master", "node"), ("node",), ("node",), ("node", "frontend"))
HOSTS = tuple(
    HostReport(
        name=f"host-{place}",
        state="agent",
        roles=roles,
        addresses=(f"10.0.{place % 2}.{place + 1}", f"fd00::{place % 2 + 1}:{place + 1:x}"),
    )
    for place, roles in enumerate(ROLES)
)
ADDRESSES = {host.name: host.addresses for host in HOSTS}
RUN = replace(INFO, hosts=HOSTS)
PROTOCOLS = ("tcp", "udp", "icmp", "ipproto/112")
# Ports lie near to each other, so that ranges meet.
PORTS = st.integers(6440, 6452)


@st.composite
def failures(draw: st.DrawFn, protocols: tuple[str, ...] = PROTOCOLS) -> tuple[Result, ...]:
    """Give blocked flows between a few hosts: some everywhere, some here and there."""
    found: list[Result] = []
    for place in range(draw(st.integers(1, 4))):
        protocol = draw(st.sampled_from(protocols))
        family = draw(st.integers(0, 1))
        first, last = sorted((draw(PORTS), draw(PORTS)))
        sources = draw(st.sets(st.integers(0, len(HOSTS) - 1), min_size=1))
        ends = draw(st.sets(st.integers(0, len(HOSTS) - 1), min_size=1))
        where = draw(st.sampled_from(PLACES))
        ported = protocol in ("tcp", "udp")
        router = "10.0.0.254" if where == ("path",) and draw(st.booleans()) else None
        for source, end in ((HOSTS[one], HOSTS[two]) for one, two in product(sources, ends)):
            if source is not end:
                found.append(
                    replace(
                        BLOCKED,
                        order=(place, len(found), 0),
                        source=source.name,
                        destination=end.name,
                        address=end.addresses[family],
                        protocol=protocol,
                        port=first if ported else None,
                        end_port=last if ported else None,
                        where=where,
                        # Where only the answers are dropped at the source, the rule is another.
                        reason="local-firewall" if where == ("source",) else "no-response",
                        rejected_by=router,
                    )
                )
    return tuple(found)


def ask(
    results: Iterable[Result], wishes: RequestWishes | None = None, info: RunInfo = RUN
) -> FirewallRequest:
    """Make the request of a run with these results."""
    findings = fold(results)
    return request_of_run(info, findings, (), "run.json", wishes or RequestWishes())


def written(request: FirewallRequest, syntax: str, *, undo: bool = False) -> str:
    """Give what a syntax writes."""
    stream = io.StringIO()
    one = SYNTAXES[syntax]
    write = one.undo if undo else one.write
    assert write is not None
    write(request, stream)
    return stream.getvalue()


def asked_flows(results: Iterable[Result], places: tuple[str, ...] = ()) -> set[Flow]:
    """Give every single flow of these results, those that one of the places may stop."""
    return {
        (ADDRESSES[one.source][":" in one.address], one.address, one.protocol, port)
        for one in placed(results)
        if not places or set(places) & set(one.where)
        for port in range(one.port or 0, (one.end_port or 0) + 1)
    }


def placed(results: Iterable[Result]) -> list[Result]:
    """Give the results with the places that their findings say."""
    return [
        replace(one, where=finding.where) for finding in fold(results) for one in finding.members
    ]


def opened_flows(rules: Iterable[FirewallRule]) -> set[Flow]:
    """Give every single flow that rules open, but for a host to itself."""
    return set(without_itself(flow for rule in rules for flow in _flows_of_rule(rule)))


def _flows_of_rule(rule: FirewallRule) -> Iterator[Flow]:
    for source, destination in product(rule.sources, rule.destinations):
        for port in each(rule.ports) if rule.ports else (0,):
            yield source.address, destination.address, rule.protocol, port


def without_itself(flows: Iterable[Flow]) -> Iterator[Flow]:
    """Leave out what no firewall on the way ever sees."""
    return (flow for flow in flows if flow[0] != flow[1])
