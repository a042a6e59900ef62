"""Single packets: closed UDP ports against nmap -sU, ICMP echo against fping."""

from __future__ import annotations

import ipaddress
import time
from collections import Counter

from bench import tools
from bench.agent import AgentProcess, Answers, port_order, word
from bench.field import FIRST_PORT, Field
from bench.table import Row, against
from bench.tools import Timed
from netprobe.agent.wire.orders import EchoOrder

ECHO_HOSTS = 4000
ECHO_NET = "10.90.0.0/20"


def udp(flows: int, repeats: int) -> list[Row]:
    """Closed ports whose port-unreachables nobody limits."""
    ours, nmaps = [], []
    with Field(flows) as place:
        for _ in range(repeats):
            ours.append(_udp(place))
            nmaps.append(tools.nmap(place, tools.NMAP_UDP, Counter(closed=place.flows)))
        work = f"UDP closed, no ICMP limits, {place.flows:,} flows"
    return [against(work, ours, "nmap -sU", nmaps, 1.5)]


def echo(repeats: int) -> list[Row]:
    """Many hosts, one echo request each; without what the start of either program costs."""
    ours, fpings = [], []
    hosts = ipaddress.ip_network(ECHO_NET).hosts()
    addresses = [str(next(hosts)) for _ in range(ECHO_HOSTS)]
    with Field(1) as place:
        # The destination is all of them: any address of a local route is its own.
        place.target.ip(f"route add local {ECHO_NET} dev lo")
        place.source.ip(f"route add {ECHO_NET} via {place.addresses[0]}")
        for _ in range(repeats):
            ours.append(_less(_echo(place, addresses), _echo(place, addresses[:1])))
            fpings.append(_less(tools.fping(place, addresses), tools.fping(place, addresses[:1])))
    return [against(f"ICMP echo, {ECHO_HOSTS:,} hosts, engine only", ours, "fping", fpings, 0.5)]


def _less(whole: Timed, start: Timed) -> Timed:
    """What the hosts cost, without what a program's run for a single host costs."""
    wall_s, cpu_s = whole.wall_s - start.wall_s, whole.cpu_s - start.cpu_s
    return Timed(wall_s, cpu_s, whole.answers, whole.wrong)


def _udp(place: Field) -> Timed:
    ports = range(FIRST_PORT, place.last_port + 1)
    expected: Answers = {(address, port): "closed" for address in place.addresses for port in ports}
    orders = [
        port_order(number, "udp", address, (FIRST_PORT, place.last_port), "send")
        for number, address in enumerate(place.addresses, 1)
    ]
    return tools.agent(place, orders, expected)


def _echo(place: Field, addresses: list[str]) -> Timed:
    """One order for all; from the order to the last answer."""
    agent = AgentProcess(place.within)
    order = EchoOrder(1, addresses, src=None, first_ms=None, look_ms=4000, looks=2, size=None,
                      numbers=[])  # fmt: skip
    answers: Counter[str] = Counter()
    begun = time.monotonic()
    for _, outcomes in agent.probe([order]):
        for run in outcomes.runs:
            answers[word(outcomes.kinds[run.kind])] += run.last - run.first + 1
    wall_s = time.monotonic() - begun
    cpu_s = agent.stop()
    return Timed(wall_s, cpu_s, answers, len(addresses) - answers["open"])
