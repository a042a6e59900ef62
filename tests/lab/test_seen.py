"""Verdicts that were wrong before recorders told what was seen; each is held against tcpdump.

``s`` asks, ``d`` is asked, ``x`` is somebody else; r0, r1 and r2 are the routers. The truth is that
of the random lab: real clients and servers, and tcpdump on every interface, before and after.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pytest

from tests.lab.random.build import Built
from tests.lab.random.estate import (
    FAMILIES,
    Custom,
    Cut,
    Dead,
    Duplicate,
    Estate,
    Fault,
    Firewall,
    Flow,
    Held,
    Host,
    Loss,
    Relay,
    Requirement,
    Route,
    Translation,
)
from tests.lab.random.faults import built
from tests.lab.random.running import run_estate
from tests.lab.random.scoring import WRONG, Scored, ask_netprobe
from tests.lab.random.truth import find_truth

# tcpdump gives up root, whoever it is told to be.
pytestmark = [pytest.mark.lab, pytest.mark.needs("other users", "tcpdump")]

# The port that a fault is about, and one beside it that is as it should be.
BAD, GOOD = 6443, 6444
PATH, SOURCE, DESTINATION, BACK, PASSES = "path", "source", "destination", "return-path", ""
DEAD_GATEWAY = "path,source"

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


def held(on: str) -> tuple[Fault, ...]:
    """A service of d holds the bad port."""
    return both(lambda family: Held(flow(family), on))


def rules(machine: str, kind: str, hook: str, priority: int, *lines: str) -> Custom:
    """Rules of a machine in nft's own words."""

    def do(built: Built) -> None:
        built.table(machine, kind, hook, priority, list(lines))

    return Custom(f"{machine} {hook}: {'; '.join(lines)}", do)


_HOLD = """
import socket, time
kept = []
for family, target in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    there = socket.create_server((target, 0), family=family)
    here = socket.socket(family)
    here.bind((target, %d))
    here.connect(there.getsockname()[:2])
    kept += [here, there, there.accept()]
print("ready", flush=True)
time.sleep(600)
"""


def _outgoing(built: Built) -> None:
    process = built.lab["d"].spawn(sys.executable, "-c", _HOLD % BAD, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == b"ready"


def _stateful_one_way(built: Built) -> None:
    """Answers of d go to r0 by a cable of their own; r1 keeps states and never sees them."""
    far, near = built.lab["d"], built.lab["r0"]
    built.lab.cable(far, "back", near, "back")
    far.ip("address add 10.79.1.2/24 dev back", "address add fd79:1::2/64 dev back nodad")
    near.ip("address add 10.79.1.1/24 dev back", "address add fd79:1::1/64 dev back nodad")
    for address, via in (("10.77.1.0/24", "10.79.1.1"), ("fd77:1::/64", "fd79:1::1")):
        far.ip(f"route add {address} via {via}")
    built.table("r1", "filter", "forward", 0, ["ct state invalid drop"])


def _syn_proxy(built: Built) -> None:
    """r0 completes handshakes for d, and r1 drops what follows."""
    syn = f"tcp dport {BAD} tcp flags & (fin | syn | rst | ack) == syn notrack"
    built.table("r0", "filter", "prerouting", -300, [syn])
    proxy = "synproxy mss 1440 wscale 7 timestamp sack-perm"
    taken = f"tcp dport {BAD} ct state invalid,untracked {proxy}"
    built.table("r0", "filter", "forward", 0, [taken, "ct state invalid drop"])
    built.table("r1", "filter", "forward", 0, [f"tcp dport {BAD} drop"])


ONE_BAD: Truths = {("tcp", BAD): PATH, ("tcp", GOOD): PASSES}
FALSE_PASS = (
    Case("requests with data dropped", firewall("r0", "forward", "drop", data=True), ONE_BAD),
    Case("requests with data reset",
         firewall("r0", "forward", "tcp-reset", data=True), ONE_BAD),
    Case("answers with data dropped",
         firewall("r1", "forward", "drop", data=True, answers=True),
         {("tcp", BAD): BACK, ("tcp", GOOD): PASSES}),
    Case("asymmetric way through a stateful firewall",
         (Custom("answers of d bypass the stateful r1", _stateful_one_way),),
         {("tcp", BAD): PATH, ("udp", GOOD): PASSES}),
    # Whether what answers hands it on to the holder nobody can tell: the port or the way is taken.
    Case("held port translated to x", (*held("address"), *dnat("r0", "x")), ONE_BAD, exact=False),
    Case("held port translated to x where a service answers",
         (*held("address"), *dnat("r0", "x", served=True)), ONE_BAD, exact=False),
    Case("proxy that hands a held port on",
         (*held("address"), *both(lambda family: Relay("r0", flow(family)))),
         {("tcp", BAD): PASSES, ("tcp", GOOD): PASSES}),
    Case("loopback-bound port translated to x",
         (*held("loopback"), *dnat("r0", "x", served=True)), ONE_BAD),
    Case("end of an outgoing connection translated to x",
         (Custom(f"d holds {BAD} as the local end of a connection", _outgoing),
          *dnat("r0", "x", served=True)), ONE_BAD),
    Case("SYN proxy in front of a held port",
         (*held("address"),
          Custom("r0 is a SYN proxy for a port that r1 drops", _syn_proxy)), ONE_BAD, exact=False),
    Case("echo translated to x", dnat("r0", "x", protocol="icmp"),
         {("icmp", 0): PATH, }),
    Case("forged resets and loss",
         (*firewall("r0", "forward", "tcp-reset", scope="protocol"), Loss("r0", 15)),
         {("tcp", BAD + number): PATH for number in range(40)}, agents="s", exact=False),
    Case("r1 rejects everything in d's name",
         (*firewall("r1", "forward", "tcp-reset", scope="protocol"),
          *firewall("r1", "forward", "port-unreachable", scope="address")),
         {("tcp", BAD): PATH, ("udp", BAD): PATH}, agents="s"),
    Case("own resets towards a neighbour", firewall("s", "output", "tcp-reset", scope="protocol"),
         {("tcp", BAD): SOURCE, ("tcp", GOOD): SOURCE, ("udp", GOOD): PASSES}, lan=True),
    Case("own resets towards a neighbour without agent",
         firewall("s", "output", "tcp-reset", scope="protocol"),
         {("tcp", BAD): SOURCE, ("tcp", GOOD): SOURCE}, agents="s", lan=True),
    Case("s has d's address", both(lambda family: Duplicate("s", flow(family))),
         {("tcp", BAD): SOURCE, ("udp", BAD): SOURCE, ("icmp", 0): SOURCE}),
    Case("s has d's address, d without agent", both(lambda family: Duplicate("s", flow(family))),
         {("tcp", BAD): SOURCE, ("udp", BAD): SOURCE, ("icmp", 0): SOURCE}, agents="s"),
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
    Case("translated to x, which resets", dnat("r0", "x"), ONE_BAD),
    Case("udp translated to x, which says port-unreachable", dnat("r0", "x", protocol="udp"),
         {("udp", BAD): PATH, ("udp", GOOD): PASSES}),
    Case("translated to x, and a router behind rejects",
         (*dnat("r0", "x"),
          rules("r2", "filter", "forward", 0,
                f"tcp dport {BAD} reject with icmpx admin-prohibited")), ONE_BAD),
    Case("udp translated to x, and a router behind rejects",
         (*dnat("r0", "x", protocol="udp"),
          rules("r2", "filter", "forward", 0,
                f"udp dport {BAD} reject with icmpx admin-prohibited")),
         {("udp", BAD): PATH, ("udp", GOOD): PASSES}),
    Case("translated to x, and a router behind says host-unreachable",
         (*dnat("r0", "x"),
          rules("r2", "filter", "forward", 0,
                f"tcp dport {BAD} reject with icmpx host-unreachable")), ONE_BAD),
    Case("translated to x, which is dead", (*dnat("r0", "x"), Dead("x")), ONE_BAD, agents="sd"),
    Case("udp translated to x, which is dead", (*dnat("r0", "x", protocol="udp"), Dead("x")),
         {("udp", BAD): PATH, ("udp", GOOD): PASSES}, agents="sd"),
    Case("dead gateway of s", both(lambda family: Route("s", flow(family), False, "via dead")),
         {("tcp", BAD): DEAD_GATEWAY, ("udp", BAD): DEAD_GATEWAY, ("icmp", 0): DEAD_GATEWAY}),
    Case("dead gateway of s, d without agent",
         both(lambda family: Route("s", flow(family), False, "via dead")),
         {("tcp", BAD): DEAD_GATEWAY, ("udp", BAD): DEAD_GATEWAY, ("icmp", 0): DEAD_GATEWAY},
         agents="s"),
    Case("cut cable of s", (Cut(machine="s"),),
         {("tcp", BAD): DEAD_GATEWAY, ("udp", BAD): DEAD_GATEWAY, ("icmp", 0): DEAD_GATEWAY}),
    Case("dead next router", (Cut(link=0),),
         {("tcp", BAD): PATH, ("udp", BAD): PATH, ("icmp", 0): PATH}),
    Case("dead next router, d without agent", (Cut(link=0),),
         {("tcp", BAD): PATH, ("udp", BAD): PATH, ("icmp", 0): PATH}, agents="s", exact=False),
    Case("next hop of r0 does not exist",
         both(lambda family: Route("r0", flow(family), False, "via dead")),
         {("tcp", BAD): PATH, ("udp", BAD): PATH, ("icmp", 0): PATH}),
    Case("next hop of r0 does not exist, d without agent",
         both(lambda family: Route("r0", flow(family), False, "via dead")),
         {("tcp", BAD): PATH, ("udp", BAD): PATH, ("icmp", 0): PATH}, agents="s", exact=False),
)  # fmt: skip
CASES = (*FALSE_PASS, *FALSE_BLOCKED, *WRONG_PLACE)
# They read the rows of the verdict tables and run the lines of netprobe that cases beside them do.
ALIKE = frozenset((
    "own resets towards a neighbour without agent",
    "another port of d is forwarded deeper",
    "r1 lowers the TTL of TCP answers",
    "udp translated to x, which says port-unreachable",
    "udp translated to x, and a router behind rejects",
    "dead gateway of s, d without agent",
    "dead next router, d without agent",
    "next hop of r0 does not exist, d without agent",
    # Each waits longer than ten seconds, and is like a case that always runs.
    "forged resets and loss",
    "asymmetric way through a stateful firewall",
    "answers with data dropped",
    "next hop of r0 does not exist",
    "dead next router",
    "udp translated to x, which is dead",
))  # fmt: skip


def _truths(scored: Iterable[Scored]) -> dict[tuple[str, int, int], str]:
    return {
        (one.flow.protocol, one.flow.port, one.flow.family): ",".join(sorted(one.truth.places))
        for one in scored
    }


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(one, id=one.name, marks=pytest.mark.full if one.name in ALIKE else ())
        for one in CASES
    ],
)
def test_what_was_seen_decides(case: Case) -> None:
    """The lab is what the case says, and netprobe says nothing that tcpdump contradicts."""
    outcome = run_estate(estate(case))

    lines = "\n".join([*outcome.changed, *(one.line() for one in outcome.scored)])
    truths = {(*key, family): ends for key, ends in case.ends.items() for family in FAMILIES}
    assert not outcome.changed, lines
    assert _truths(outcome.scored) == truths, lines
    bad = WRONG | ({"undecided"} if case.exact else set())
    assert not [one.line() for one in outcome.scored if one.score in bad]


@pytest.mark.parametrize("agents", ["sd", "s"])
def test_a_proxy_that_answers_for_a_denied_port_is_on_the_path(agents: str) -> None:
    """Nothing comes to d, so its firewall is not what lets the port answer."""
    case = Case("denied", (*dnat("r0", "r0", port=BAD, served=True),), ONE_BAD, agents)
    denied = replace(estate(case), requirements=(
        Requirement("denied", "s", "d", "tcp", (BAD,), "denied"),
        Requirement("open", "s", "d", "tcp", (GOOD,)),
    ))  # fmt: skip
    with built(denied) as standing:
        truth = find_truth(standing)
        said = ask_netprobe(standing).results

    assert {one.port: ",".join(one_truth.places) for one, one_truth in truth.items()} == {
        BAD: PATH, GOOD: PASSES,
    }  # fmt: skip
    found = {(one["port"], one["verdict"], tuple(one["where"])) for one in said}
    assert found == {(BAD, "exposed", ("path",)), (GOOD, "pass", ())}, said
