"""Whole runs, whole commands: against nmap on the same targets, and with agents and faults."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench import tools
from bench.command import (
    best_row,
    list_agents,
    make_entry,
    most_wrong,
    run_command,
    set_forward,
)
from bench.field import FIRST_PORT, SOURCE, Field
from bench.table import Row, seconds, wall_ratio
from bench.tools import Timed
from demo import estate
from tests.lab.netlab import Lab

PORTS = 1000
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
PASS_S, DROP_S, REJECT_S, FAULTS_S, DEMO_S, DEAD_S, DROPS_S = 0.8, 2.2, 0.9, 4.0, 12.0, 5.0, 6.0
MESH_S, MESH_DEAD_S = 8.0, 3.0
# Without root a run takes at most so many times as long as with it.
UNPRIVILEGED = 3.0

SCANNED = """\
schema: netprobe.matrix/1
name: scanned
title: Ranges of TCP ports of hosts without agents
roles: {{source: {{description: any}}, target: {{description: any}}}}
requirements:
  - {{id: range, from: source, to: target, tcp: ["{ports}"], purpose: bench}}
"""
PAIR = """\
schema: netprobe.matrix/1
name: pair
title: A few flows between two agents
roles: {source: {description: any}, target: {description: any}}
requirements:
  - {id: tcp, from: source, to: target, tcp: ["20001-20006"], purpose: bench}
  - {id: udp, from: source, to: target, udp: [20007], purpose: bench}
  - {id: echo, from: source, to: target, icmp: echo, purpose: bench}
"""
FAULTY = """\
schema: netprobe.matrix/1
name: faulty
title: The same flows to ten hosts
roles: {source: {description: any}, target: {description: any}}
requirements:
  - {id: tcp, from: source, to: target, tcp: [443, "20001-20006"], purpose: bench}
  - {id: udp, from: source, to: target, udp: [20007, 8472], purpose: bench}
  - {id: echo, from: source, to: target, icmp: echo, purpose: bench}
"""
MESH = f"""\
schema: netprobe.matrix/1
name: mesh
title: Many ports between all hosts
roles: {{node: {{description: any}}}}
requirements:
  - {{id: mesh, from: node, to: node, tcp: ["20001-{20000 + PORTS}"], purpose: bench}}
"""


@dataclass(frozen=True)
class Kind:
    """One behaviour of the targets: rules, verdicts of ports, nmap's words, the goal."""

    name: str
    rules: tuple[str, ...]
    verdict: Callable[[int], str]
    nmaps: Callable[[int], str]
    doors: bool = False
    goal: float | None = None
    goal_s: float | None = None


def _is_tenth(port: int) -> bool:
    return port % 10 == 0


def _kinds(place: Field) -> list[Kind]:
    """Closed first: listeners stay once they are there."""
    ports = range(FIRST_PORT, place.last_port + 1)
    tenth = ", ".join(str(port) for port in ports if _is_tenth(port))
    reject = f"tcp dport {place.port_range} reject with icmp admin-prohibited"
    drop = f"tcp dport {{ {tenth} }} drop"
    return [
        Kind("closed", (), lambda port: "pass", lambda port: "closed", goal=0.55),
        Kind("rejected", (reject,), lambda port: "blocked", lambda port: "filtered", goal=0.7),
        Kind("every tenth port dropped", (drop,),
             lambda port: "blocked" if _is_tenth(port) else "pass",
             lambda port: "filtered" if _is_tenth(port) else "closed", goal_s=DROPS_S),
        # Before the installation nothing shows whose ports these are.
        Kind("open", (), lambda port: "inconclusive", lambda port: "open", doors=True, goal=0.9),
    ]  # fmt: skip


def without_agents(flows: int, repeats: int, only: str = "") -> list[Row]:
    """Ranges of TCP ports of many destinations, as root, as nobody, and by nmap, in turns."""
    rows = []
    with Field(flows, PORTS) as place:
        for kind in _kinds(place):
            if only in kind.name:
                rows += _compare(place, kind, repeats)
    with Field(flows, PORTS, gateway=True) as place:
        dropped = _find_kind(place, "every tenth port dropped")
        behind = replace(dropped, name=f"{dropped.name} behind a gateway")
        if only in behind.name:
            rows += _compare(place, behind, repeats)
    return rows


def _find_kind(place: Field, name: str) -> Kind:
    return next(kind for kind in _kinds(place) if kind.name == name)


def _compare(place: Field, kind: Kind, repeats: int) -> list[Row]:
    place.rules(*kind.rules)
    if kind.doors:
        place.open_doors()
    ports = range(FIRST_PORT, place.last_port + 1)
    states = Counter(kind.nmaps(port) for port in ports for _ in place.addresses)
    root, nobody, nmaps = [], [], []
    for _ in range(repeats):
        root.append(_scan(place, kind, ()))
        nmaps.append(tools.nmap(place, tools.NMAP_TCP, states, pinned=False))
        nobody.append(_scan(place, kind, NOBODY))
    work = f"`run`, TCP {kind.name}, {place.flows:,} flows, {len(place.addresses)} destinations"
    ratio = wall_ratio(root, nmaps)
    best_s = min(run.wall_s for run in root)
    goal = f">= {kind.goal}x" if kind.goal else f"<= {kind.goal_s:g} s, 0 wrong"
    wrong = max(run.wrong for run in root)
    met = ratio >= kind.goal if kind.goal else best_s <= (kind.goal_s or 0) and not wrong
    slower = 1 / wall_ratio(nobody, root)
    return [
        Row(work, seconds(root), f"nmap -sT {seconds(nmaps)}", f"{ratio:.2f}x", goal, met,
            most_wrong(root)),
        Row(f"{work}, without root", seconds(nobody), f"with root {seconds(root)}",
            f"{slower:.1f}x its time", f"<= {UNPRIVILEGED:g}x", slower <= UNPRIVILEGED,
            most_wrong(nobody)),
    ]  # fmt: skip


def _scan(place: Field, kind: Kind, user: Sequence[str]) -> Timed:
    hosts: dict[str, Any] = {
        f"target-{number}": {"address": address, "roles": ["target"], "vantage": "none"}
        for number, address in enumerate(place.addresses)
    }
    vantage = {"command": [*place.source.enter, *user]}
    hosts["source"] = {"address": SOURCE, "roles": ["source"], "vantage": vantage}
    matrix = SCANNED.format(ports=place.port_range)

    def is_wrong(result: Mapping[str, Any]) -> int:
        ports = range(result["port"], result["end_port"] + 1)
        return sum(kind.verdict(port) != result["verdict"] for port in ports)

    return run_command(place.folder, matrix, hosts, is_wrong, place.flows)


def pairs(repeats: int) -> list[Row]:
    """Two agents behind a router, eight flows: all pass, one dropped, one rejected."""
    rows = []
    with Lab() as lab:
        router = lab.router("router", "10.10.0.1")
        ends = [lab.host("left", router, "10.10.1.1"), lab.host("right", router, "10.10.1.2")]
        hosts = list_agents({"left": (ends[0], "source"), "right": (ends[1], "target")})
        for name, rules, goal_s, bad in (
            ("all pass", "", PASS_S, ()),
            ("one dropped", "tcp dport 20003 drop", DROP_S, (20003,)),
            ("one rejected", "tcp dport 20003 reject", REJECT_S, (20003,)),
        ):
            set_forward(router, rules)

            def is_wrong(result: Mapping[str, Any], bad: tuple[int, ...] = bad) -> int:
                return int(result["verdict"] != ("blocked" if result["port"] in bad else "pass"))

            runs = [run_command(lab.folder, PAIR, hosts, is_wrong) for _ in range(repeats)]
            rows.append(best_row(f"`run`, two agents, 8 flows, {name}", runs, goal_s))
    return rows


# What is wrong with each of ten hosts: rules at the router, rules at the host, by address {d}.
FAULTS: tuple[tuple[str, str, str], ...] = (
    ("none at all", "", ""),
    ("a TCP port dropped on the way", "ip daddr {d} tcp dport 443 drop", ""),
    ("a TCP port rejected on the way",
     "ip daddr {d} tcp dport 443 reject with icmp admin-prohibited", ""),
    ("a TCP port reset on the way", "ip daddr {d} tcp dport 443 reject with tcp reset", ""),
    ("the overlay dropped on the way", "ip daddr {d} udp dport 8472 drop", ""),
    ("a UDP port dropped by the host", "", "udp dport 20007 drop"),
    ("echo dropped on the way", "ip daddr {d} icmp type echo-request drop", ""),
    ("answers dropped on the way back", "ip saddr {d} tcp sport 443 drop", ""),
    ("a TCP port dropped by the host", "", "tcp dport 443 drop"),
    ("a range dropped on the way", "ip daddr {d} tcp dport 20001-20003 drop", ""),
)  # fmt: skip
# A Linux router sends a host 6 ICMP errors at once, and one a second: each run finds all of them.
ERRORS_BACK_S = 7.0
FAULTY_FLOWS = (0, 1, 1, 1, 1, 1, 1, 1, 1, 3)


def faults(repeats: int) -> list[Row]:
    """A source, and ten hosts of which nine have something else wrong, and one host is down."""
    with Lab() as lab:
        router = lab.router("router", "10.10.0.1")
        ends = {"source": (lab.host("source", router, "10.10.1.1"), "source")}
        way = []
        for number, (_, on_way, at_host) in enumerate(FAULTS):
            address = f"10.10.2.{number + 1}"
            host = lab.host(f"h{number}", router, address)
            ends[f"h{number}"] = (host, "target")
            way.append(on_way.format(d=address))
            if at_host:
                chain = f"chain c {{\ntype filter hook input priority 0;\n{at_host}\n}}"
                host.nft(f"table inet own {{\n{chain}\n}}")
        set_forward(router, *way)
        hosts = list_agents(ends)
        runs = []
        for _ in range(repeats):
            runs.append(run_command(lab.folder, FAULTY, hosts, lambda result: 0))
            time.sleep(ERRORS_BACK_S)
    expected = sum(FAULTY_FLOWS)
    runs = [
        Timed(run.wall_s, run.cpu_s, run.answers, abs(run.answers["blocked"] - expected))
        for run in runs
    ]
    return [best_row(f"`run`, {len(FAULTS)} hosts, ten different faults", runs, FAULTS_S)]


def demo_run(repeats: int) -> list[Row]:
    """The demo's cluster, whose firewall stops 2,041 of 53,507 flows."""
    every, stopped = estate.expected()
    with Lab() as lab:
        estate.build(lab)
        hosts = {name: make_entry(lab[name], *roles) for name, roles in estate.ROLES.items()}
        runs = [
            run_command(lab.folder, estate.MATRIX, hosts, lambda result: 0) for _ in range(repeats)
        ]
    runs = [
        Timed(run.wall_s, run.cpu_s, run.answers, abs(run.answers["blocked"] - len(stopped)))
        for run in runs
    ]
    work = f"`run` of `make demo`, {len(every):,} flows, {len(stopped):,} blocked"
    return [best_row(work, runs, DEMO_S)]


def dead_host(repeats: int) -> list[Row]:
    """deckhouse-nodes with its modules on ten hosts, of which one may be dead."""
    roles = ["master"] * 3 + ["frontend"] + ["node"] * 6
    alive, down = _run_beside_dead(estate.MATRIX, roles, repeats)
    return [_dead_row("`run` of deckhouse-nodes, one dead host of ten", alive, down, DEAD_S)]


def mesh(repeats: int) -> list[Row]:
    """A thousand TCP ports between ten hosts, and once more with a dead one beside them."""
    alive, down = _run_beside_dead(MESH, ["node"] * 11, repeats)
    work = f"`run`, 10 hosts, {PORTS:,} ports each to each"
    return [best_row(work, alive, MESH_S),
            _dead_row(f"{work}, and a dead one", alive, down, MESH_DEAD_S)]  # fmt: skip


def _run_beside_dead(
    matrix: str, roles: Sequence[str], repeats: int
) -> tuple[list[Timed], list[Timed]]:
    """Run a matrix without and with the last of the hosts, which is dead, in turns."""
    *living, last = (f"h{number}" for number in range(len(roles)))
    with Lab() as lab:
        router = lab.router("router", "10.10.0.1")
        hosts: dict[str, Any] = {}
        for number, role in enumerate(roles):
            name = f"h{number}"
            hosts[name] = make_entry(lab.host(name, router, f"10.10.1.{number + 1}"), role)
        # Its cable is there, and nobody answers ARP at its end.
        lab[last].ip("link set eth0 arp off")
        hosts[last]["vantage"] = {"command": ["false"]}
        without = {name: hosts[name] for name in living}
        alive, down = [], []
        for _ in range(repeats):
            alive.append(run_command(lab.folder, matrix, without, _is_no_pass))
            down.append(
                run_command(lab.folder, matrix, hosts,
                            lambda one: one["destination"] == last and one["verdict"] == "pass")
            )  # fmt: skip
    return alive, down


def _dead_row(work: str, alive: list[Timed], down: list[Timed], goal_s: float) -> Row:
    more_s = min(run.wall_s for run in down) - min(run.wall_s for run in alive)
    flows = sum(down[0].answers[word] for word in ("pass", "blocked", "inconclusive"))
    return Row(f"{work}, {flows:,} flows", seconds(down), f"without it {seconds(alive)}",
               f"{more_s:+.1f} s", f"<= {goal_s:g} s more", more_s <= goal_s,
               most_wrong([*down, *alive]))  # fmt: skip


def _is_no_pass(result: Mapping[str, Any]) -> int:
    return int(result["verdict"] != "pass")
