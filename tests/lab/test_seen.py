"""Verdicts that were wrong before recorders told what was seen; each is held against tcpdump.

``s`` asks, ``d`` is asked, ``x`` is somebody else; r0, r1 and r2 are the routers. The truth is that
of the random lab: real clients and servers, and tcpdump on every interface, before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest

from tests.lab.random.build import Built
from tests.lab.random.estate import (
    FAMILIES,
    Custom,
    Cut,
    Dead,
    Estate,
    Fault,
    Firewall,
    Flow,
    Host,
    Requirement,
    Translation,
)
from tests.lab.random.running import run_estate
from tests.lab.random.scoring import WRONG, Scored

pytestmark = pytest.mark.lab

# The port that a fault is about, and one beside it that is as it should be.
BAD, GOOD = 6443, 6444
PATH, SOURCE, PASSES = "path", "source", ""

Truths = dict[tuple[str, int], str]


@dataclass(frozen=True)
class Case:
    """A case: faults, what is required, and where each flow ends (of both families)."""

    name: str
    faults: tuple[Fault, ...]
    ends: Truths
    agents: str = "sdx"
    lan: bool = False
    exact: bool = True


def estate(case: Case) -> Estate:
    """s - r0 - r1 - d, and x behind r2; on a LAN d is a neighbour of s."""
    hosts = tuple(
        Host(name, 0 if case.lan and name == "d" else number, 10 + number,
             "root" if name in case.agents else "none")
        for number, name in enumerate("sdx")
    )  # fmt: skip
    required = []
    for protocol in dict.fromkeys(protocol for protocol, _ in case.ends):
        ports = tuple(port for one, port in case.ends if one == protocol and port)
        required.append(Requirement(protocol, "s", "d", protocol, ports))
    return Estate(0, ((0, 1), (1, 2)), (0, 1, 2), hosts, tuple(required), case.faults)


def both(make: Callable[[int], Fault]) -> tuple[Fault, ...]:
    """A fault for each family."""
    return tuple(make(family) for family in FAMILIES)


def flow(family: int, protocol: str = "tcp", port: int = BAD) -> Flow:
    """From s to d."""
    return Flow("s", "d", family, protocol, port)


def firewall(
    machine: str, hook: str, action: str, *, answers: bool = False, data: bool = False,
    scope: str = "port", protocol: str = "tcp",
) -> tuple[Fault, ...]:  # fmt: skip
    """A rule against the bad port, in both families."""
    return both(
        lambda family: Firewall(machine, hook, flow(family, protocol), scope, answers, action, data)
    )


def dnat(
    machine: str, to: str, *, protocol: str = "tcp", served: bool = False, port: int = 0
) -> tuple[Fault, ...]:
    """The bad port goes to somebody else."""
    asked = 0 if protocol == "icmp" else BAD
    scope = "address" if protocol == "icmp" else "port"
    return both(
        lambda family: Translation(machine, flow(family, protocol, asked), scope, to, port, served)
    )


def rules(machine: str, kind: str, hook: str, priority: int, *lines: str) -> Custom:
    """Rules of a machine in nft's own words."""

    def do(built: Built) -> None:
        built.table(machine, kind, hook, priority, list(lines))

    return Custom(f"{machine} {hook}: {'; '.join(lines)}", do)


ONE_BAD: Truths = {("tcp", BAD): PATH, ("tcp", GOOD): PASSES}
FALSE_PASS = (
    Case("own resets towards a neighbour", firewall("s", "output", "tcp-reset", scope="protocol"),
         {("tcp", BAD): SOURCE, ("tcp", GOOD): SOURCE, ("udp", GOOD): PASSES}, lan=True),
)  # fmt: skip
FALSE_BLOCKED = (
    Case("one port reset by s's own OUTPUT, towards a neighbour",
         firewall("s", "output", "tcp-reset"),
         {("tcp", BAD): SOURCE, ("tcp", GOOD): PASSES, ("tcp", GOOD + 1): PASSES},
         agents="s", lan=True),
    Case("one port reset by s's own OUTPUT",
         firewall("s", "output", "tcp-reset"),
         {("tcp", BAD): SOURCE, ("tcp", GOOD): PASSES, ("tcp", GOOD + 1): PASSES}, agents="s"),
    Case("another port of d is forwarded deeper", dnat("r0", "x"),
         {("tcp", BAD): PATH, ("tcp", GOOD): PASSES, ("tcp", GOOD + 1): PASSES},
         agents="s", exact=False),
    Case("another port of d is forwarded deeper, to a service", dnat("r0", "x", served=True),
         {("tcp", BAD): PATH, ("tcp", GOOD): PASSES, ("tcp", GOOD + 1): PASSES},
         agents="s", exact=False),
    Case("r1 raises the TTL of TCP answers",
         (rules("r1", "filter", "forward", 0, "ip protocol tcp ip saddr 10.77.2.11 ip ttl set 120",
                "ip6 nexthdr tcp ip6 saddr fd77:2::11 ip6 hoplimit set 120"),),
         {("tcp", BAD): PASSES, ("udp", BAD): PASSES, ("icmp", 0): PASSES}, agents="s"),
    Case("r1 lowers the TTL of TCP answers",
         (rules("r1", "filter", "forward", 0, "ip protocol tcp ip saddr 10.77.2.11 ip ttl set 40",
                "ip6 nexthdr tcp ip6 saddr fd77:2::11 ip6 hoplimit set 40"),),
         {("tcp", BAD): PASSES, ("udp", BAD): PASSES, ("icmp", 0): PASSES}, agents="s"),
    Case("echo replies start with a lower TTL",
         (rules("d", "filter", "output", 0, "icmp type echo-reply ip ttl set 32",
                "icmpv6 type echo-reply ip6 hoplimit set 32"),),
         {("tcp", BAD): PASSES, ("udp", BAD): PASSES, ("icmp", 0): PASSES}, agents="s"),
)  # fmt: skip
WRONG_PLACE = (
    Case("translated to x, which is dead", (*dnat("r0", "x"), Dead("x")), ONE_BAD, agents="sd"),
    Case("udp translated to x, which is dead", (*dnat("r0", "x", protocol="udp"), Dead("x")),
         {("udp", BAD): PATH, ("udp", GOOD): PASSES}, agents="sd"),
    Case("dead next router", (Cut(link=0),),
         {("tcp", BAD): PATH, ("udp", BAD): PATH, ("icmp", 0): PATH}),
    Case("dead next router, d without agent", (Cut(link=0),),
         {("tcp", BAD): PATH, ("udp", BAD): PATH, ("icmp", 0): PATH}, agents="s", exact=False),
)  # fmt: skip
CASES = (*FALSE_PASS, *FALSE_BLOCKED, *WRONG_PLACE)


def _truths(scored: Iterable[Scored]) -> dict[tuple[str, int, int], str]:
    return {
        (one.flow.protocol, one.flow.port, one.flow.family): ",".join(sorted(one.truth.places))
        for one in scored
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_was_seen_decides(case: Case) -> None:
    """The lab is what the case says, and netprobe says nothing that tcpdump contradicts."""
    outcome = run_estate(estate(case))

    lines = "\n".join([*outcome.changed, *(one.line() for one in outcome.scored)])
    truths = {(*key, family): ends for key, ends in case.ends.items() for family in FAMILIES}
    assert not outcome.changed, lines
    assert _truths(outcome.scored) == truths, lines
    bad = WRONG | ({"undecided"} if case.exact else set())
    assert not [one.line() for one in outcome.scored if one.score in bad]
