"""Firewall cases for the engines' tests: each has a port of its own, so all run at once.

What is expected follows from the place and the action and from nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

from netprobe.agent.wire.parts import IcmpFact
from tests.agent import netlab

# nft's name, ICMP code, and the failure that Linux makes of it.
REJECTS = {
    4: (
        ("icmp type net-unreachable", (3, 0), "network-unreachable"),
        ("icmp type host-unreachable", (3, 1), "host-unreachable"),
        ("icmp type prot-unreachable", (3, 2), "protocol-unreachable"),
        ("icmp type port-unreachable", (3, 3), "refused"),
        ("icmp type net-prohibited", (3, 9), "network-unreachable"),
        ("icmp type host-prohibited", (3, 10), "host-unreachable"),
        ("icmp type admin-prohibited", (3, 13), "host-unreachable"),
    ),
    6: (
        ("icmpv6 type no-route", (1, 0), "network-unreachable"),
        ("icmpv6 type admin-prohibited", (1, 1), "access-denied"),
        ("icmpv6 type addr-unreachable", (1, 3), "host-unreachable"),
        ("icmpv6 type port-unreachable", (1, 4), "refused"),
        ("icmpv6 type policy-fail", (1, 5), "access-denied"),
        ("icmpv6 type reject-route", (1, 6), "access-denied"),
    ),
}
# Namespace, hook, direction, who sends the error, and with which TTL it arrives at the source.
PLACES = (
    ("source output", netlab.SOURCE, "output", "dport", "source", 64),
    ("router 1", netlab.R1, "forward", "dport", "r1", 64),
    ("router 2", netlab.R2, "forward", "dport", "r2", 63),
    ("destination input", netlab.DESTINATION, "input", "dport", "destination", 62),
)
RETURNS = (
    ("destination output", netlab.DESTINATION, "output"),
    ("return at router 2", netlab.R2, "forward"),
    ("return at router 1", netlab.R1, "forward"),
    ("source input", netlab.SOURCE, "input"),
)
FIRST_PORT = 20000


class Case(NamedTuple):
    """One rule of one place on one port, and what the source must see (None: open)."""

    name: str
    port: int
    namespace: str
    hook: str
    rule: str
    action: str
    icmp: IcmpFact | None
    failure: str | None


def cases(family: int) -> list[Case]:
    """Every case of one family, each with another port; the first has no rule."""
    found: list[Case] = [Case("accepted", FIRST_PORT, "", "", "", "accept", None, None)]

    def add(name: str, namespace: str, hook: str, match: str, action: str, verdict: str,
            icmp: IcmpFact | None, failure: str) -> None:  # fmt: skip
        port = FIRST_PORT + len(found)
        rule = f"meta l4proto {{tcp, udp}} th {match} {port} {verdict}"
        found.append(Case(f"{name}: {verdict}", port, namespace, hook, rule, action, icmp, failure))

    for name, namespace, hook, match, who, ttl in PLACES:
        add(name, namespace, hook, match, "drop", "drop", None, "no-answer")
        for words, (kind, code), failure in REJECTS[family]:
            offender = netlab.ADDRESS[family][who]
            add(name, namespace, hook, match, "reject", f"reject with {words}",
                IcmpFact(kind, code, offender, ttl), failure)  # fmt: skip
    for name, namespace, hook in RETURNS:
        add(name, namespace, hook, "sport", "drop", "drop", None, "no-answer")
    return found


def install(every: list[Case]) -> None:
    """Put all rules in place, a chain per namespace and hook."""
    chains: dict[tuple[str, str], list[str]] = {}
    for case in every:
        if case.rule:
            chains.setdefault((case.namespace, case.hook), []).append(case.rule)
    for (namespace, hook), rules in chains.items():
        netlab.rule(namespace, hook, "\n".join(rules))


def unlimited_icmp() -> None:
    """Lift the ICMP rate limits, so that all cases can run at once."""
    for name in netlab.NAMES:
        netlab.sysctl(name, "net/ipv4/icmp_ratelimit", "0")
        netlab.sysctl(name, "net/ipv6/icmp/ratelimit", "0")
    for key in ("icmp_msgs_per_sec", "icmp_msgs_burst"):
        for name in netlab.NAMES:
            netlab.sysctl(name, f"net/ipv4/{key}", "100000")
