"""One chain: source, two routers, destination and a neighbour; addresses and rules of its cases."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.accuracy.cases import RESET, ROUTES, Case
from tests.lab.netlab import Lab, Namespace

PORT = 7000
# No rule touches this port. On ``closed`` destinations a service answers it: they are alive.
CONTROL_PORT = 7001
SOURCE = ("10.201.0.2", "fd01::2")
ROUTER_1 = frozenset(("10.201.0.1", "fd01::1", "10.211.0.1", "fd11::1"))
ROUTER_2 = frozenset(("10.211.0.2", "fd11::2", "10.210.0.1", "fd10::1"))

# Where an address lies decides which routing tables know it: (second octet, first IPv6 group).
_NORMAL = 2
_NET = {"route-router-1": 3, "route-source": 4, "route-destination": 5, "route-back-router-2": 6}
_NUMBER = {"agent": 1, "closed": 2, "live": 3}

_HOOKS = {
    "source-out": ("source", "output", "daddr"),
    "router-1": ("router-1", "forward", "daddr"),
    "router-2": ("router-2", "forward", "daddr"),
    "destination-in": ("destination", "input", "daddr"),
    "destination-out": ("destination", "output", "saddr"),
    "back-router-2": ("router-2", "forward", "saddr"),
    "back-router-1": ("router-1", "forward", "saddr"),
    "source-in": ("source", "input", "saddr"),
}
# As every sane firewall has it: loopback and neighbour discovery are not touched.
_FIRST = (
    'iifname "lo" accept',
    'oifname "lo" accept',
    "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept",
    f"tcp dport {CONTROL_PORT} accept",
    f"tcp sport {CONTROL_PORT} accept",
)
_SERVICE = Path(__file__).parent / "service.py"


@dataclass
class Chain:
    """Five namespaces of the lab, and the address that stands for each case here."""

    lab: Lab
    name: str
    cases: dict[Case, str] = field(default_factory=dict)

    def __getitem__(self, part: str) -> Namespace:
        return self.lab[f"{self.name}-{part}"]

    def destination(self, case: Case) -> Namespace:
        """The machine that has the address of a case."""
        return self["neighbour" if case.lan else "destination"]


def address_of(case: Case, number: int) -> str:
    """The address that stands for a case; ``number`` is unique in its chain."""
    listener = _NUMBER[case.listener]
    if case.place == "down":
        near = f"10.201.9.{number}" if case.lan else f"10.210.0.{number}"
        return near if case.family == 4 else f"fd{'01' if case.lan else '10'}::9:{number}"
    if case.lan:
        return f"10.201.{listener}.{number}" if case.family == 4 else f"fd01::{listener}:{number}"
    net = _NET[case.place] if _is_none(case) else _NORMAL
    if case.family == 4:
        return f"10.{200 + net}.{listener}.{number}"
    return f"fd0{net}::{listener}:{number}"


def _is_none(case: Case) -> bool:
    """Whether the case needs an address that some routing table does not have at all."""
    return case.place in ROUTES and case.action == "none"


def build(lab: Lab, name: str, cases: Iterable[Case]) -> Chain:
    """Build a chain with all rules and services of these cases."""
    chain = Chain(lab, name)
    numbers: Counter[tuple[object, ...]] = Counter()
    for case in cases:
        key = (case.family, case.listener, case.lan, case.place == "down")
        numbers[key] += 1
        chain.cases[case] = address_of(case, numbers[key] + 20)
    _wire(chain)
    _route(chain)
    for part in ("destination", "neighbour"):
        _addresses(chain, part)
    _firewalls(chain)
    for case, address in chain.cases.items():
        if case.place in ROUTES:
            _bad_route(chain, case, address)
    return chain


def _wire(chain: Chain) -> None:
    lab, name = chain.lab, chain.name
    for part in ("source", "neighbour", "destination"):
        lab.namespace(f"{name}-{part}")
    for part in ("router-1", "router-2"):
        lab.namespace(f"{name}-{part}", router=True)
    first, second = chain["router-1"], chain["router-2"]
    lab.cable(chain["source"], "eth0", first, "lan0")
    lab.cable(chain["neighbour"], "eth0", first, "lan1")
    lab.cable(first, "next", second, "prev")
    lab.cable(second, "far", chain["destination"], "eth0")
    first.ip(
        "link add lan type bridge", "link set lan0 master lan", "link set lan1 master lan",
        "link set lan up",
        "address add 10.201.0.1/16 dev lan", "address add fd01::1/64 dev lan nodad",
        "address add 10.211.0.1/24 dev next", "address add fd11::1/64 dev next nodad",
    )  # fmt: skip
    second.ip(
        "address add 10.211.0.2/24 dev prev", "address add fd11::2/64 dev prev nodad",
        "address add 10.210.0.1/24 dev far", "address add fd10::1/64 dev far nodad",
    )  # fmt: skip
    for part, v4, v6 in (
        ("source", f"{SOURCE[0]}/16", f"{SOURCE[1]}/64"),
        ("neighbour", "10.201.0.3/16", "fd01::3/64"),
        ("destination", "10.210.0.2/24", "fd10::2/64"),
    ):
        chain[part].ip(f"address add {v4} dev eth0", f"address add {v6} dev eth0 nodad")


def _nets(*numbers: int) -> list[str]:
    return [text for net in numbers for text in (f"10.{200 + net}.0.0/16", f"fd0{net}::/64")]


def _via(networks: Iterable[str], v4: str, v6: str) -> list[str]:
    return [f"route add {one} via {v6 if ':' in one else v4}" for one in networks]


def _route(chain: Chain) -> None:
    """No default routes: a network that a table does not list has no route there."""
    far = ["10.210.0.0/24", "fd10::/64"]
    near = ["10.201.0.0/16", "fd01::/64"]
    chain["source"].ip(
        *_via([*far, "10.211.0.0/24", "fd11::/64", *_nets(2, 3, 5, 6)], "10.201.0.1", "fd01::1")
    )
    chain["router-1"].ip(*_via([*far, *_nets(2, 4, 5, 6)], "10.211.0.2", "fd11::2"))
    chain["router-2"].ip(
        *_via(near, "10.211.0.1", "fd11::1"), *_via(_nets(2, 3, 4, 5, 6), "10.210.0.2", "fd10::2")
    )
    chain["destination"].ip(*_via([*near, "10.211.0.0/24", "fd11::/64"], "10.210.0.1", "fd10::1"))
    # The way back of these networks finds no routing table at all.
    for part, net in (("destination", 5), ("router-2", 6)):
        for family, network in zip((4, 6), _nets(net), strict=True):
            chain[part].run(
                "ip", f"-{family}", "rule", "add", "pref", "32000", "not", "from", network,
                "lookup", "main",
            )  # fmt: skip
            chain[part].run("ip", f"-{family}", "rule", "del", "pref", "32766")


def _addresses(chain: Chain, part: str) -> None:
    """The addresses of a destination, and the services behind those that have one."""
    mine = {
        case: address
        for case, address in chain.cases.items()
        if case.place != "down" and chain.destination(case) is chain[part]
    }
    if not mine:
        return
    device = "eth0" if part == "neighbour" else "lo"
    chain[part].ip(*(f"address add {text}/{_bits(text)} dev {device} nodad"
                     if ":" in text else f"address add {text}/32 dev {device}"
                     for text in mine.values()))  # fmt: skip
    serve(chain[part], [text for case, text in mine.items() if case.listener == "live"])
    closed = [text for case, text in mine.items() if case.listener == "closed"]
    serve(chain[part], closed, CONTROL_PORT)


def serve(host: Namespace, addresses: Iterable[str], port: int = PORT) -> None:
    """A service on a port of these addresses, over TCP and UDP; returns when it is up."""
    wanted = list(addresses)
    if not wanted:
        return
    words = (sys.executable, "-I", "-S", str(_SERVICE), str(port), json.dumps(wanted))
    host.spawn(*words)
    host.wait_until_listening(
        *(f"{kind} [{text}]:{port}" if ":" in text else f"{kind} {text}:{port}"
          for text in wanted for kind in ("tcp", "udp"))
    )  # fmt: skip


def _bits(text: str) -> int:
    return 128 if ":" in text else 32


def rule(case: Case, address: str, match: str) -> str:
    """The nft rule of a case; ``match`` is daddr or saddr."""
    ip = "ip" if case.family == 4 else "ip6"
    if case.action == "drop":
        return f"{ip} {match} {address} drop"
    if case.action == RESET:
        return f"{ip} {match} {address} meta l4proto tcp reject with tcp reset"
    kind = "icmp" if case.family == 4 else "icmpv6"
    return f"{ip} {match} {address} reject with {kind} type {case.action}"


def _firewalls(chain: Chain) -> None:
    chains: dict[tuple[str, str], list[str]] = {}
    for case, address in chain.cases.items():
        if case.place in _HOOKS:
            part, hook, match = _HOOKS[case.place]
            if case.lan and part == "destination":
                part = "neighbour"
            chains.setdefault((part, hook), []).append(rule(case, address, match))
    for (part, hook), rules in chains.items():
        lines = [f"type filter hook {hook} priority 0;", *_FIRST, *rules]
        if hook == "input":
            lines = [line for line in lines if "oifname" not in line]
        elif hook == "output":
            lines = [line for line in lines if "iifname" not in line]
        chain[part].nft(f"table inet accuracy {{ chain {hook} {{\n" + "\n".join(lines) + "\n}\n}\n")


def _bad_route(chain: Chain, case: Case, address: str) -> None:
    if case.action == "none":
        return
    to = f"{address}/{_bits(address)}"
    table = {"route-source": "source", "route-router-1": "router-1"}.get(case.place)
    if table is not None:
        chain[table].ip(f"route add {case.action} {to}")
        return
    part = chain["destination" if case.place == "route-destination" else "router-2"]
    number = str(100 + ("unreachable", "prohibit", "blackhole").index(case.action))
    default = "default" if case.family == 4 else "::/0"
    words = ("ip", f"-{case.family}")
    part.run(*words, "route", "replace", case.action, default, "table", number)
    part.run(*words, "rule", "add", "pref", "1000", "from", to, "lookup", number)


def lose(chain: Chain, share: float) -> None:
    """Let router 1 lose this share of all packets, in both directions, at random."""
    hundredth = round(share * 100)
    chain["router-1"].nft(
        "table inet loss { chain forward { type filter hook forward priority -10;\n"
        f"numgen random mod 100 < {hundredth} drop\n}}\n}}\n"
    )


def hosts(chain: Chain, cases: Iterable[Case]) -> Mapping[str, list[str]]:
    """The addresses of some cases by destination host, as the inventory lists them."""
    found: dict[str, list[str]] = {}
    for case in cases:
        found.setdefault(host_of(case), []).append(chain.cases[case])
    return found


def host_of(case: Case) -> str:
    """The inventory's name for the destination of a case."""
    if case.place == "down":
        return "down"
    return f"near-{case.listener}" if case.lan else case.listener
