"""The independent test: real clients and servers, tcpdump everywhere, and what follows from them.

Nothing of netprobe is imported here. The words for places are those of docs/design.md, 2.3.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace

from tests.lab.netlab import Namespace
from tests.lab.random.build import TRAFFIC, Built, serve
from tests.lab.random.capture import FULL_BYTES, Seen, capture
from tests.lab.random.estate import Cut, Dead, Estate, Firewall, Flow, Held, Loss, Route

Places = frozenset[str]

TRIES, TIMEOUT_S = 3, 2.0
# A dead neighbour shows after 3.06 s; only then is there an error that has a name.
DEAD_TIMEOUT_S = 3.6
LOSSY_TRIES, LOSSY_TIMEOUT_S = 10, 5.0
LEGS = {"tcp": ("syn", "syn-ack", "Q", "A", "B", "C"), "udp": ("Q", "A"), "icmp": ("Q", "A")}
LEG_WORDS = {"syn": "SYN", "syn-ack": "SYN-ACK", "Q": "request", "A": "answer",
             "B": "full-sized request", "C": "full-sized answer", "": "nothing"}  # fmt: skip
# Linux makes its own word true: ICMP errors are rationed, and the test would use up the ration.
_UNLIMITED = ("net.ipv4.icmp_ratemask=0", "net.ipv6.icmp.ratemask=255")
_LIMITED = ("net.ipv4.icmp_ratemask=6168", "net.ipv6.icmp.ratemask=0-1,3-127")


@dataclass(frozen=True)
class Truth:
    """What is true of a flow.

    ``places``: where it ends. ``also``: answers that are as good. ``leg``: the packet that ends
    there. ``names``: every address of the machines whose ICMP errors reached the source.
    ``opened``: the destination itself took the TCP connection. ``other``: some host answered or
    refused, under whatever address. ``odd``: what came back last has not crossed as many routers as
    the destination's echo replies to the same source.
    """

    passes: bool
    places: Places = frozenset()
    also: frozenset[Places] = frozenset()
    leg: str = ""
    last: str = ""
    names: frozenset[str] = frozenset()
    opened: bool = False
    other: bool = False
    odd: bool = False

    def __str__(self) -> str:
        if self.passes:
            return "passes"
        places = ",".join(sorted(self.places))
        return f"ends at {places} ({LEG_WORDS[self.leg]} last seen: {self.last})"

    def same(self, other: Truth) -> bool:
        """Whether two tests agree."""
        return (self.passes, self.places) == (other.passes, other.places)


@dataclass(frozen=True)
class Hop:
    """The next machine on the way, whether the device to it has a carrier, and the kernel's word
    that it was asked for in vain: soon after that, Linux does not ask again for each packet.
    """

    address: str
    carrier: bool
    failed: bool


@dataclass(frozen=True)
class Try:
    """One try of a client, and every packet of it."""

    token: str
    port: int
    began: float
    said: str
    big: bool
    packets: tuple[Seen, ...]


def find_truth(built: Built) -> dict[Flow, Truth]:
    """Test every flow of the estate now."""
    tries, timeout_s = _patience(built.estate)
    flows = list(built.estate.flows())
    # Its echo replies tell what a destination's own answers look like.
    echoes = {flow: replace(flow, protocol="icmp", port=0) for flow in flows}
    for machine in built.machines:
        machine.run("sysctl", "-qw", *_UNLIMITED)
    with ExitStack() as stack:
        servers = [serve(built.lab[name], places) for name, places in _services(built).items()]
        packets = stack.enter_context(capture(built.machines, built.lab.folder))
        rows = _ask(built, list(dict.fromkeys((*flows, *echoes.values()))), tries, timeout_s)
    for process in servers:
        process.kill()
        process.wait()
    for machine in built.machines:
        machine.run("sysctl", "-qw", *_LIMITED)
    index = Index(packets.packets)
    tried = {flow: index.tries(flow, built, rows[flow]) for flow in rows}
    return {
        flow: Judge(built, flow, tried[flow], index, tried[echoes[flow]]).truth() for flow in flows
    }


def _patience(estate: Estate) -> tuple[int, float]:
    """How many tries each flow gets, and how long each may take."""
    faults = estate.faults
    if any(isinstance(fault, Loss) for fault in faults):
        return LOSSY_TRIES, LOSSY_TIMEOUT_S
    dead = any(
        isinstance(fault, Dead | Cut) or (isinstance(fault, Route) and "via" in fault.action)
        for fault in faults
    )
    return TRIES, DEAD_TIMEOUT_S if dead else TIMEOUT_S


def _services(built: Built) -> dict[str, list[tuple[str, str, int]]]:
    """What each destination has to serve; held ports are left alone.

    A service on loopback leaves other addresses free: the way to the flow's own one is asked.
    """
    faults = built.estate.faults
    held = {one.flow for one in faults if isinstance(one, Held) and one.on != "loopback"}
    taken = {(one.destination, one.family, one.protocol, one.port) for one in held}
    places: dict[str, dict[tuple[str, str, int], None]] = defaultdict(dict)
    for flow in built.estate.flows():
        key = (flow.destination, flow.family, flow.protocol, flow.port)
        if flow.port and key not in taken:
            address = built.estate[flow.destination].address(flow.family)
            places[flow.destination][flow.protocol, address, flow.port] = None
    return {name: list(mine) for name, mine in places.items()}


Row = tuple[str, str, int, str, int, float, str, bool]


def _ask(built: Built, flows: list[Flow], tries: int, timeout_s: float) -> dict[Flow, list[Row]]:
    """All clients at once; what each said, by flow."""
    asking: list[tuple[str, subprocess.Popen[bytes], dict[tuple[str, str, int], Flow]]] = []
    for source in dict.fromkeys(flow.source for flow in flows):
        mine = {
            (f.protocol, built.estate[f.destination].address(f.family), f.port): f
            for f in flows
            if f.source == source
        }
        words = (sys.executable, "-I", "-S", str(TRAFFIC), "ask", str(tries), str(timeout_s),
                 json.dumps(list(mine)))  # fmt: skip
        asking.append((source, built.lab[source].spawn(*words, stdout=subprocess.PIPE), mine))
    rows: dict[Flow, list[Row]] = {flow: [] for flow in flows}
    for _, process, mine in asking:
        out, _ = process.communicate(timeout=120)
        for row in json.loads(out):
            rows[mine[row[0], row[1], row[2]]].append(tuple(row))
    return rows


class Index:
    """All packets of a test, by what they belong to."""

    def __init__(self, packets: list[Seen]) -> None:
        self.by_token: dict[str, list[Seen]] = defaultdict(list)
        self.by_sequence: dict[int, list[Seen]] = defaultdict(list)
        self.asks: list[Seen] = []
        self.tells: set[tuple[str, str]] = set()
        for seen in packets:
            if seen.token:
                self.by_token[seen.token].append(seen)
            if seen.sequence >= 0:
                self.by_sequence[seen.sequence].append(seen)
            if seen.kind == "ask" and seen.out and seen.wire:
                self.asks.append(seen)
            if seen.kind == "tell" and not seen.out:
                self.tells.add((seen.machine, seen.source))

    def unanswered(self, machine: str) -> set[str]:
        """The addresses that a machine asked its neighbours for in vain."""
        mine = {seen.destination for seen in self.asks if seen.machine == machine}
        return {address for address in mine if (machine, address) not in self.tells}

    def tries(self, flow: Flow, built: Built, rows: Iterable[Row]) -> list[Try]:
        """The tries of a flow with their packets."""
        address = built.estate[flow.destination].address(flow.family)
        return [
            Try(token, port, began, said, big, tuple(self._packets(flow, address, row)))
            for row in rows
            for _, _, _, token, port, began, said, big in [row]
        ]

    def _packets(self, flow: Flow, address: str, row: Row) -> list[Seen]:
        _, _, _, token, port, began, _, _ = row
        found = list(self.by_token.get(token, ()))
        if flow.protocol == "tcp":
            own = (
                seen
                for numbered in self.by_sequence.values()
                for seen in numbered
                if seen.kind == "syn" and seen.machine == flow.source and seen.out
                and (seen.sport, seen.destination, seen.dport) == (port, address, flow.port)
                and -0.5 < seen.time - began < 10
            )  # fmt: skip
            first = next(own, None)
            if first is not None:
                for number in (first.sequence, (first.sequence + 1) & 0xFFFFFFFF):
                    found += [s for s in self.by_sequence.get(number, ()) if s not in found]
        return sorted(found, key=lambda seen: seen.time)


class Judge:
    """What follows from the packets of one flow."""

    def __init__(
        self, built: Built, flow: Flow, tries: list[Try], index: Index, echoes: list[Try]
    ) -> None:
        self.built, self.flow, self.tries, self.index = built, flow, tries, index
        self.echoes = echoes
        self.address = built.estate[flow.destination].address(flow.family)
        self.source, self.far = built.lab[flow.source], built.lab[flow.destination]
        self.legs = LEGS[flow.protocol]

    def truth(self) -> Truth:
        """Passes, or the place where the try that came farthest ends."""
        if any(self._passed(one) for one in self.tries):
            return Truth(True)
        best = max(self.tries, key=self._rank)
        leg, ended = self._last_leg(best)
        places, also = self._places(best, leg, ended)
        last = max((s for s in best.packets if s.kind == leg), key=lambda s: s.time, default=None)
        words = "never" if last is None else f"{last.machine} {'out' if last.out else 'in'}"
        opened = (
            "syn-ack" in self.legs
            and self._ended(best, "syn-ack")
            and (self._begun(best, "syn-ack"))
        )
        names = self._names() | self._end_names(last)
        return Truth(False, places, also, leg, words, names, opened, self._other(), self._odd())

    def _passed(self, one: Try) -> bool:
        if self.flow.protocol == "icmp":
            return one.said == "reply" and self._ended(one, "Q") and self._begun(one, "A")
        return one.big and one.said == f"{self.flow.destination} {self.flow.port}"

    def _begun(self, one: Try, leg: str) -> bool:
        """Whether the packet left the machine that makes it."""
        maker = self.source.name if self._forward(leg) else self.far.name
        return any(s.out and s.wire and s.machine == maker for s in self._of(one, leg))

    def _ended(self, one: Try, leg: str) -> bool:
        """Whether the packet came to the machine that it is for, under the asked address."""
        forward = self._forward(leg)
        taker = self.far.name if forward else self.source.name
        return any(
            not s.out and s.wire and s.machine == taker
            and (s.destination if forward else s.source) == self.address
            and (s.dport if forward else s.sport) in (self.flow.port, 0)
            for s in self._of(one, leg)
        )  # fmt: skip

    def _forward(self, leg: str) -> bool:
        return self.legs.index(leg) % 2 == 0

    @staticmethod
    def _of(one: Try, leg: str) -> list[Seen]:
        return [
            s for s in one.packets if s.kind == leg and (leg not in "BC" or s.size >= FULL_BYTES)
        ]

    def _last_leg(self, one: Try) -> tuple[str, bool]:
        """The packet that came no further; what follows a translated one is another's."""
        last = "", False
        for leg in self.legs:
            if not self._begun(one, leg):
                return last
            last = leg, self._ended(one, leg)
            if not last[1]:
                return last
        return last

    def _rank(self, one: Try) -> int:
        leg, ended = self._last_leg(one)
        return 2 * self.legs.index(leg) + 1 + ended if leg else 0

    def _places(self, one: Try, leg: str, ended: bool) -> tuple[Places, frozenset[Places]]:
        if not leg:
            return self._unsent()
        if self._forward(leg):
            if ended:
                return self._at_destination(one), frozenset()
            places, also = self._on_path(one, leg)
            return places, also | self._at_source(one, leg) | self._at_dead_host()
        return frozenset(("source",) if ended else ("return-path",)), frozenset()

    def _unsent(self) -> tuple[Places, frozenset[Places]]:
        """Nothing left the source: its own doing, or a neighbour does not answer."""
        hop = next_hop(self.source, self.address)
        if hop is None or not (self._in_vain(self.source, hop) or self._is_dead(hop)):
            return frozenset(("source",)), frozenset()
        if hop.address == self.address and hop.carrier:
            places, also = self._no_neighbour()
            return places, also | self._at_own_rule()
        return frozenset(("source", "path")), self._at_own_rule()

    def _at_own_rule(self) -> frozenset[Places]:
        """A second place where it ends: the source's own rule meets it before its neighbour is
        asked for. Nothing on the wire shows which of the two it was."""
        met = any(
            isinstance(fault, Firewall)
            and (fault.machine, fault.hook) == (self.source.name, "output")
            and fault.meets(self.flow)
            for fault in self.built.estate.faults
        )
        return frozenset((frozenset(("source",)),) if met else ())

    def _at_dead_host(self) -> frozenset[Places]:
        """A second place that stops it: its host is dead, wherever its packets end."""
        return frozenset((frozenset(("host",)),) if self._is_far_dead() else ())

    def _is_far_dead(self) -> bool:
        return any(
            isinstance(f, Dead) and f.machine == self.far.name for f in self.built.estate.faults
        )

    def _in_vain(self, machine: Namespace, hop: Hop) -> bool:
        """Whether a machine gets no answer from its next hop."""
        asked = hop.address in self.index.unanswered(machine.name)
        return hop.failed or asked or not hop.carrier

    def _is_dead(self, hop: Hop) -> bool:
        """Whether the source gets no answer from its next hop now: what the kernel found before may
        be forgotten, and it need not have asked again."""
        self.source.run("ping", "-c", "1", "-W", "4", hop.address, check=False)
        asked = next_hop(self.source, self.address)
        return asked is not None and asked.failed

    def _no_neighbour(self) -> tuple[Places, frozenset[Places]]:
        """Nobody on its network answers for the destination."""
        if self._is_far_dead() or self.built.estate[self.flow.destination].agent == "none":
            return frozenset(("host",)), frozenset()
        return frozenset(("path",)), frozenset((frozenset(("destination", "path")),))

    def _on_path(self, one: Try, leg: str) -> tuple[Places, frozenset[Places]]:
        machines = [s.machine for s in self._of(one, leg) if not s.out]
        # What a translation made of it is no longer for the destination.
        mine = [
            s.machine for s in self._of(one, leg) if not s.out and s.destination == self.address
        ]
        if machines and mine and machines[-1] == mine[-1]:
            last = self.built.lab[mine[-1]]
            hop = next_hop(last, self.address)
            in_vain = hop and hop.address == self.address and self._in_vain(last, hop)
            if in_vain and not self._answers(one, mine[-1]):
                return self._no_neighbour()
        return frozenset(("path",)), frozenset()

    def _at_source(self, one: Try, leg: str) -> frozenset[Places]:
        """A second place where it ends: something on the way answered, and the answer came to the
        source's device and not to its client."""
        came = leg == "syn" and self._ended(one, "syn-ack")
        heard = any(s.out and s.machine == self.source.name for s in self._of(one, "Q"))
        return frozenset((frozenset(("source",)),) if came and not heard else ())

    @staticmethod
    def _answers(one: Try, machine: str) -> bool:
        """Whether a router answered itself; it does not ask for the host's neighbour entry."""
        kinds = ("reset", "syn-ack")
        made = [s for s in one.packets if s.kind in kinds and s.wire and s.machine == machine]
        return bool(made) and all(s.out for s in made)

    def _at_destination(self, one: Try) -> Places:
        seen_from = next(
            s.source for s in reversed(one.packets)
            if s.machine == self.far.name and s.wire and not s.out
            and s.kind in self.legs and s.destination == self.address
        )  # fmt: skip
        hop = next_hop(self.far, seen_from, self.address)
        if hop is None or self._in_vain(self.far, hop):
            return frozenset(("return-path",))
        return frozenset(("destination",))

    def _other(self) -> bool:
        """Whether what came back was made by a host, be it under a translated address or port."""
        kinds = ("syn-ack", "reset", "error", "A")
        hosts = {host.name for host in self.built.estate.hosts} - {self.source.name}
        for one in self.tries:
            back = [s for s in one.packets if s.kind in kinds and s.wire]
            if any(s.machine == self.source.name and not s.out for s in back):
                # Only its maker sends it without having received it; clocks of captures may differ.
                return any(s.out and s.machine in hosts for s in back)
        return False

    def _odd(self) -> bool:
        """Whether the last word that came back has another way behind it than echo replies have."""
        known = {lost_hops(seen) for one in self.echoes for seen in self._came_back(one, ("A",))}
        kinds = ("syn-ack", "reset", "error", "A")
        last = [seen for one in self.tries for seen in self._came_back(one, kinds)][-1:]
        return bool(known) and any(lost_hops(seen) not in known for seen in last)

    def _came_back(self, one: Try, kinds: tuple[str, ...]) -> list[Seen]:
        """What came to the source in the destination's name."""
        return [
            s for s in one.packets
            if s.kind in kinds and s.wire and not s.out and s.machine == self.source.name
            and s.source == self.address
        ]  # fmt: skip

    def _end_names(self, last: Seen | None) -> frozenset[str]:
        """The addresses of the router where it ends: it rations its errors, and may keep quiet."""
        if last is None or last.out or not last.machine.startswith("r"):
            return frozenset()
        return frozenset(self.built.lab[last.machine].addresses)

    def _names(self) -> frozenset[str]:
        """All addresses of whoever made an ICMP error that the source got, and the source's own."""
        # The own firewall's errors travel over the loopback, and their probes nowhere.
        names = set(self.source.addresses)
        for one in self.tries:
            errors = [s for s in one.packets if s.kind == "error"]
            for got in errors:
                if got.machine == self.source.name and not got.out:
                    maker = next(s for s in errors if s.words == got.words or s is got)
                    names.update(self.built.lab[maker.machine].addresses)
        return frozenset(names)


def lost_hops(seen: Seen) -> int:
    """How many routers have lowered a TTL; kernels begin with one of a few."""
    return min(one for one in (64, 128, 255) if one >= seen.ttl) - seen.ttl


def next_hop(machine: Namespace, to: str, source: str = "") -> Hop | None:
    """The next hop of a machine; None without a route, and for its own addresses."""
    words = ["ip", "-o", "route", "get", to, *(["from", source] if source else [])]
    said = machine.run(*words, check=False).split()
    if not said or said[0] in ("unreachable", "prohibit", "blackhole", "throw", "local"):
        return None
    device = said[said.index("dev") + 1]
    carrier = "NO-CARRIER" not in machine.run("ip", "-o", "link", "show", device)
    address = said[said.index("via") + 1] if "via" in said else to
    states = machine.run("ip", "neighbour", "show", "to", address, "dev", device).split()
    return Hop(address, carrier, bool({"FAILED", "INCOMPLETE"} & set(states)))
