"""A plain reading of a matrix, apart from netprobe's loader and planner, and what rules do to it.

The exactness test holds netprobe's answer against this one, so nothing here imports netprobe.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.lab.netlab import family_of

MATRICES = Path(__file__).parents[2] / "matrices"
ONE_WAY_PROBES = ("vxlan", "geneve")
OVERLAY_PROBES = (*ONE_WAY_PROBES, "ipip")
ANY_PORT = (0, 65535)
# netprobe's own requirement: an overlay's pairs must carry full-size packets. No matrix has it.
PATH_MTU = "path-mtu"

# What a site changes of a matrix's requirements, by their ids: ports by protocol.
Override = Mapping[str, Mapping[str, Sequence[str]]]
NO_OVERRIDE: Override = {}


class Flow(NamedTuple):
    """One flow as the JSON report names it; ``port`` is None where the protocol has none."""

    requirement: str
    source: str
    destination: str
    address: str
    protocol: str
    port: int | None


@dataclass(frozen=True)
class Line:
    """One requirement between two hosts at one address, with all its ports of one protocol."""

    requirement: str
    source: str
    destination: str
    address: str
    protocol: str
    ports: tuple[tuple[int, int], ...]
    denied: bool = False
    decides: bool = True
    one_way: bool = False
    overlay: bool = False

    @property
    def family(self) -> int:
        return family_of(self.address)

    def flows(self) -> Iterator[Flow]:
        """Every single flow of the line."""
        ports: Iterable[int | None] = [None]
        if self.ports:
            ports = sorted({port for a, b in self.ports for port in range(a, b + 1)})
        for port in ports:
            yield Flow(*self.ends, self.protocol, port)

    @property
    def ends(self) -> tuple[str, str, str, str]:
        return (self.requirement, self.source, self.destination, self.address)


class Hosts(NamedTuple):
    """The machines of a scenario: their roles, and their addresses."""

    roles: Mapping[str, Sequence[str]]
    addresses: Mapping[str, Sequence[str]]


def before_services(name: str, override: Override = NO_OVERRIDE) -> str:
    """A site's matrix in which no service exists yet, so that agents listen in place of all."""
    roles = read_matrix(name)["roles"]
    later = {role: {"existing": False} for role in roles if "existing" in roles[role]}
    changes = {"roles": later, "override": {key: {**some} for key, some in override.items()}}
    site = {"schema": "netprobe.matrix/1", "extends": name}
    return yaml.safe_dump(site | {key: some for key, some in changes.items() if some})


def read_matrix(name: str) -> dict[str, Any]:
    """A bundled matrix with every scalar as the text that stands in the file."""
    text = (MATRICES / f"{name}.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.load(text, Loader=yaml.CBaseLoader)
    return document


def required(
    name: str,
    hosts: Hosts,
    settings: Mapping[str, object],
    override: Override = NO_OVERRIDE,
) -> list[Line]:
    """Every line that a matrix requires (or denies) between these hosts under these settings."""
    document = read_matrix(name)
    values = _settings(document, settings)
    members = _members(document, hosts)
    lines: list[Line] = []
    for bundled in document["requirements"]:
        item = {**bundled, **override.get(bundled["id"], {})}
        if _holds(item.get("when"), values, document) is False:
            continue
        if item.get("unless") and _holds(item["unless"], values, document):
            continue
        sources, destinations = (
            sorted({host for role in _list(item[key]) for host in members[role]})
            for key in ("from", "to")
        )
        local = document.get("local") == "true" and item.get("expect") != "denied"
        for source, destination in product(sources, destinations):
            if source != destination or local:
                lines += _between(item, source, destination, hosts, values)
    return lines


def requirement_ids(name: str) -> set[str]:
    """Every requirement of a bundled matrix."""
    return {item["id"] for item in read_matrix(name)["requirements"]}


def _between(
    item: dict[str, Any], source: str, destination: str, hosts: Hosts, values: Mapping[str, Any]
) -> Iterator[Line]:
    families = {family_of(text) for text in hosts.addresses[source]}
    if "family" in item:
        families &= {int(item["family"].removeprefix("ipv"))}
    for address in hosts.addresses[destination]:
        if family_of(address) not in families:
            continue
        for protocol, ports in _protocols(item, values):
            yield Line(
                item["id"],
                source,
                destination,
                address,
                protocol,
                ports,
                denied=item.get("expect") == "denied",
                decides=item.get("optional") != "true",
                one_way=protocol.startswith("ipproto") or item.get("probe") in ONE_WAY_PROBES,
                overlay=item.get("probe") in OVERLAY_PROBES,
            )


def _protocols(
    item: dict[str, Any], values: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[tuple[int, int], ...]]]:
    for protocol in ("tcp", "udp"):
        if protocol in item:
            yield protocol, tuple(_range(entry, values) for entry in _list(item[protocol]))
    if "icmp" in item:
        yield "icmp", ()
    for number in _list(item.get("ipproto", [])):
        yield f"ipproto/{number}", ()


def _range(entry: Any, values: Mapping[str, Any]) -> tuple[int, int]:
    text = str(values[entry["setting"]]) if isinstance(entry, dict) else entry
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _settings(document: dict[str, Any], chosen: Mapping[str, object]) -> dict[str, Any]:
    values = {name: item.get("default") for name, item in document.get("settings", {}).items()}
    for name, value in chosen.items():
        if name in values:
            values[name] = [*value] if isinstance(value, (list, tuple)) else _text(value)
    # A default may be the value of another setting.
    followed = {name: one["setting"] for name, one in values.items() if isinstance(one, dict)}
    return values | {name: values[other] for name, other in followed.items()}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _members(document: dict[str, Any], hosts: Hosts) -> dict[str, set[str]]:
    members: dict[str, set[str]] = {role: set() for role in document["roles"]}
    for host, roles in hosts.roles.items():
        waiting = list(roles)
        while waiting:
            role = waiting.pop()
            members[role].add(host)
            waiting += document["roles"][role].get("implies", [])
    return members


def _holds(
    terms: Mapping[str, Any] | None, values: Mapping[str, Any], document: dict[str, Any]
) -> bool:
    """Keys AND, listed values OR."""
    for name, wanted in (terms or {}).items():
        value = values[name]
        if document["settings"][name].get("type") == "version":
            found = any(_in_range(value, term) for term in _list(wanted))
        else:
            found = bool(set(_list(value)) & set(_list(wanted)))
        if not found:
            return False
    return True


def _in_range(version: str, text: str) -> bool:
    """``>=4.10,<4.16``: parts are numbers, so 4.9 is older than 4.10."""
    have = [int(part) for part in version.split(".")]
    for term in text.split(","):
        found = re.fullmatch(r"\s*(>=|<=|<|>|==?)?\s*([\d.]+)\s*", term)
        assert found, f"a version term of another shape: {term!r}"
        limit = [int(part) for part in found[2].split(".")]
        holds = {
            ">=": have >= limit, "<=": have <= limit, "<": have < limit, ">": have > limit,
        }  # fmt: skip
        if not holds.get(found[1] or "=", have == limit):
            return False
    return True


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True)
class Rule:
    """A firewall rule of one namespace, and the flows that it keeps from working.

    ``place``: ``path`` (the router, forward), ``back`` (the router, answers only), ``destination``
    (its INPUT), ``destination-out`` (its OUTPUT, answers), ``source`` (its OUTPUT), ``source-in``
    (its INPUT, answers). ``action`` is nftables' statement. ``source`` None means any.
    ``protocol`` None cuts everything from source to destination, answers to its flows included.
    """

    place: str
    action: str
    source: str | None
    destination: str
    family: int
    protocol: str | None
    ports: tuple[int, int] = ANY_PORT

    ANSWER_PLACES = ("back", "destination-out", "source-in")

    def namespace_and_hook(self) -> tuple[str, str]:
        """Where the rule is loaded: a host's name or ``fw``, and the hook there."""
        source = self.source or ""
        return {
            "path": ("fw", "forward"),
            "back": ("fw", "forward"),
            "destination": (self.destination, "input"),
            "destination-out": (self.destination, "output"),
            "source": (source, "output"),
            "source-in": (source, "input"),
        }[self.place]

    def text(self, addresses: Mapping[str, Sequence[str]]) -> str:
        """The rule in nftables' words."""
        ip = "ip" if self.family == 4 else "ip6"
        sender: str | None = self._address(addresses, self.source)
        receiver: str | None = self._address(addresses, self.destination)
        answers = self.place in self.ANSWER_PLACES
        if answers:
            sender, receiver = receiver, sender
        words = [f"{ip} saddr {sender}"] if sender else []
        words += [f"{ip} daddr {receiver}"] if receiver else []
        return " ".join([*words, *self._match(answers), self.action])

    def _address(self, addresses: Mapping[str, Sequence[str]], host: str | None) -> str | None:
        if host is None:
            return None
        return next(text for text in addresses[host] if family_of(text) == self.family)

    def _match(self, answers: bool) -> list[str]:
        if self.protocol is None:
            return []
        if self.protocol == "icmp":
            kind = "echo-reply" if answers else "echo-request"
            return [f"{'icmp' if self.family == 4 else 'icmpv6'} type {kind}"]
        if self.protocol.startswith("ipproto/"):
            return [f"meta l4proto {self.protocol.removeprefix('ipproto/')}"]
        side = "sport" if answers else "dport"
        return [f"{self.protocol} {side} {self.ports[0]}-{self.ports[1]}"]

    def hits(self, line: Line) -> bool:
        """Whether it keeps some port of this line from working."""
        return bool(self.hit_ports(line)) or (not line.ports and self._concerns(line))

    def hit_ports(self, line: Line) -> list[tuple[int, int]]:
        """The port ranges of this line that it keeps from working."""
        if not self._concerns(line):
            return []
        cuts = [(max(a, self.ports[0]), min(b, self.ports[1])) for a, b in line.ports]
        return [(a, b) for a, b in cuts if a <= b]

    def _concerns(self, line: Line) -> bool:
        if line.family != self.family or line.source == line.destination:
            return False
        if self.protocol is None:
            return self._cuts(line)
        if self.protocol != line.protocol or self.destination != line.destination:
            return False
        if line.one_way and self.place in self.ANSWER_PLACES:
            return False
        return self.source in (None, line.source)

    def _cuts(self, line: Line) -> bool:
        """Everything from source to destination is gone: its own flows, and its answers."""
        ends = (line.source, line.destination)
        answers_gone = not line.one_way and ends == (self.destination, self.source)
        return ends == (self.source, self.destination) or answers_gone


def blocked_flows(lines: Iterable[Line], rules: Sequence[Rule]) -> set[Flow]:
    """Exactly the allowed flows that these rules keep from working."""
    found = set()
    for line in lines:
        if line.denied:
            continue
        for rule in rules:
            for a, b in rule.hit_ports(line):
                found |= {Flow(*line.ends, line.protocol, port) for port in range(a, b + 1)}
            if not line.ports and rule.hits(line):
                found.add(Flow(*line.ends, line.protocol, None))
    return found


def rulesets(rules: Sequence[Rule], addresses: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The nftables text of each namespace that has rules."""
    chains: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        chains.setdefault(rule.namespace_and_hook(), []).append(rule.text(addresses))
    texts: dict[str, str] = {}
    for (namespace, hook), lines in chains.items():
        body = "\n".join(f"    {line}" for line in lines)
        head = (
            f"table inet lab-{hook} {{\n  chain {hook} {{\n    type filter hook {hook} priority 0;"
        )
        texts[namespace] = texts.get(namespace, "") + f"{head}\n{body}\n  }}\n}}\n"
    return texts
