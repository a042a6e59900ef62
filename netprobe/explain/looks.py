"""What the flow's own probes and the looks beside it saw, as sentences and as facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from netprobe.agent.wire.answers import Routed
from netprobe.agent.wire.parts import IcmpFact, OutcomeKind
from netprobe.judge.symptom import icmp_word
from netprobe.model.evidence import Evidence, Icmp, Outcome
from netprobe.model.trail import TrailEntry
from netprobe.probe.agents.decode import PortOutcome
from netprobe.probe.flows.batches import Part
from netprobe.probe.flows.translated_sources import own_addresses

_ORIGINS = {
    "source": "the source's own kernel",
    "destination": "the destination itself",
    "router": "a router on the way",
}
_ANSWERS = {
    "nonce": "the genuine answer of our listener (nonce and MAC are right)",
    "foreign": "a genuine answer, but of another agent",
    "reflected": "our own bytes came back",
    "garbled": "bytes that are no answer to ours",
    "silent": "the connection opened, then nothing was said",
    "closed": "the connection opened and was closed at once",
    "reset": "the connection opened and was reset",
    "echo": "an echo reply",
    "unasked": "the connection opened (SYN-ACK); nothing was sent on it",
    "bytes": "an answer",
}
_MODES = {
    ("tcp", "connect"): "TCP connect",
    ("tcp", "nonce"): "TCP connect with a nonce for our listener",
    ("tcp", "bytes"): "TCP connect and request to the service",
    ("udp", "nonce"): "UDP datagram with a nonce for our listener",
    ("udp", "bytes"): "UDP request to the service",
    ("udp", "send"): "UDP datagram that asks for nothing",
    ("icmp", "echo"): "ICMP echo request",
    ("ipproto", "send"): "raw IP packet that asks for nothing",
}
_NOUNS = {"tcp": "SYN", "udp": "datagram", "icmp": "echo request", "ipproto": "packet"}


@dataclass(frozen=True, slots=True)
class Ends:
    """The addresses that tell who sent an ICMP error."""

    address: str
    own: frozenset[str]

    def icmp(self, fact: IcmpFact) -> Icmp:
        """An ICMP error of the wire, with who sent it."""
        type_, code, offender, ttl = fact
        origin: Literal["source", "destination", "router"] = "router"
        if offender == self.address:
            origin = "destination"
        elif offender in self.own:
            origin = "source"
        return Icmp(type_, code, offender, origin, ttl)


def ends_of(evidence: Evidence, route: Routed | None) -> Ends:
    """Both ends' addresses, as far as the inventory and the source's kernel know them."""
    own = own_addresses(evidence.flow.source)
    kernel = {route.source} if route is not None and route.source is not None else set()
    return Ends(evidence.address, frozenset(own | kernel))


@dataclass(frozen=True, slots=True)
class Look:
    """One look of the flow's own probes and what came back."""

    part: Part
    row: PortOutcome
    ends: Ends

    @property
    def kind(self) -> OutcomeKind:
        """What came back."""
        return self.row.kind

    @property
    def transport(self) -> str:
        """``tcp``, ``udp``, ``icmp`` or ``ipproto``."""
        return self.part.task.protocol.partition("/")[0]

    def words(self, said: str | None, packet: str | None) -> str:
        """What was sent and what came back; ``said`` is what a live service answered, ``packet``
        what the requirement wants to be sent."""
        sent = _MODES.get((self.transport, self.part.mode), f"{self.transport} probe")
        if self.part.template and packet is not None:
            sent += f" ({packet})"
        parts = [f"{sent}: {self._count()}", self._came(said), self._left()]
        return ", ".join(part for part in parts if part)

    def _count(self) -> str:
        count = self.kind.packets or self.row.looks
        noun = _NOUNS[self.transport]
        if self.transport == "tcp" and self.kind.packets is None:
            noun = "attempt"
        repeated = self.row.looks > 1 and count > self.row.looks
        looks = f" in {self.row.looks} looks" if repeated else ""
        return f"{count} {noun}{'' if count == 1 else 's'}{looks}"

    def _came(self, said: str | None) -> str:
        kind = self.kind
        if kind.answer is not None:
            return self._answer(said)
        if kind.icmp is not None:
            return f"{icmp_words(self.ends.icmp(kind.icmp))}{self._after()}"
        if kind.failure is None:
            return "no answer and no error came back"
        if kind.failure == "no-answer":
            return "no answer"
        if kind.failure == "refused":
            return f"refused by a reset{self._after()}"
        return f"the kernel says {kind.failure}{self._after()}"

    def _answer(self, said: str | None) -> str:
        answer = self.kind.answer or ""
        words = _ANSWERS.get(answer, answer)
        spoken = f": {said}" if said and self.kind.answer == "bytes" else ""
        ttl = f", TTL {self.kind.ttl}" if self.kind.ttl is not None else ""
        return f"{words}{spoken}{ttl}{self._after()}"

    def _after(self) -> str:
        elapsed_ms = self.kind.elapsed_ms
        if elapsed_ms:
            return f" after {elapsed_ms / 1000:.1f} s"
        if self.row.rtt_us is not None:
            return f" after {_ms(self.row.rtt_us):g} ms"
        return "" if elapsed_ms is None else " at once"

    def _left(self) -> str:
        if self.kind.failure is None or self.kind.icmp is not None:
            return ""
        if self.kind.left is False:
            return "and the source's kernel says that no packet left the host"
        left = self.kind.left is True and self.kind.failure == "no-answer"
        return "and TCP_INFO shows that they left the host" if left else ""

    def facts(self) -> dict[str, Any]:
        """The same for programs."""
        icmp = self.kind.icmp
        return {
            "mode": self.part.mode,
            "packets": self.kind.packets,
            "attempts": self.row.looks,
            "rtt_ms": None if self.row.rtt_us is None else _ms(self.row.rtt_us),
            "operation": self.kind.op,
            "failure": self.kind.failure,
            "icmp": None if icmp is None else icmp_facts(self.ends.icmp(icmp)),
            "left_host": self.kind.left,
            "answer": self.kind.answer,
            "ttl": self.kind.ttl,
            "elapsed_ms": self.kind.elapsed_ms,
        }


def looks_of(trail: Iterable[TrailEntry], ends: Ends) -> Iterator[Look]:
    """The looks of the flow's own probes, in the order in which they were sent."""
    for entry in trail:
        if entry.name == "probe":
            yield Look(entry.facts["part"], entry.facts["row"], ends)


def icmp_words(icmp: Icmp) -> str:
    """``ICMP 3/13 (admin-prohibited) from 10.0.0.1, a router on the way, TTL 64``."""
    ttl = f", TTL {icmp.ttl}" if icmp.ttl is not None else ""
    name = f"ICMP {icmp.type}/{icmp.code} ({icmp_word(icmp)})"
    return f"{name} in the error queue from {icmp.offender}, {_ORIGINS[icmp.origin]}{ttl}"


def icmp_facts(icmp: Icmp) -> dict[str, Any]:
    """The same for programs."""
    return {
        "type": icmp.type,
        "code": icmp.code,
        "word": icmp_word(icmp),
        "offender": icmp.offender,
        "origin": icmp.origin,
        "ttl": icmp.ttl,
    }


def outcome_words(outcome: Outcome) -> str:
    """What one look beside the flow saw."""
    ttl = f", TTL {outcome.ttl}" if outcome.ttl is not None else ""
    if outcome.answer is not None:
        return f"{'answered' if outcome.answer == 'echo' else 'accepted the connection'}{ttl}"
    if outcome.icmp is not None:
        return icmp_words(outcome.icmp)
    if outcome.failure == "refused":
        return "refused by a reset"
    # One datagram without a word back has no failure: nobody owes an answer.
    silent = outcome.failure in (None, "no-answer")
    return "no answer" if silent else f"the kernel says {outcome.failure}"


def _ms(microseconds: int) -> float:
    return round(microseconds / 1000, 3)
