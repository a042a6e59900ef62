"""What the agents' frames say, as sentences and as facts: probes, ICMP errors, walks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from netprobe.explain.extra_checks import Exchange, Frame
from netprobe.judge.symptom import icmp_word
from netprobe.model.evidence import Evidence, Icmp, Outcome
from netprobe.probe.flows.translated_sources import own_addresses
from netprobe.probe.settings import MAX_TTL

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

    def icmp(self, item: Sequence[Any]) -> Icmp:
        """An ICMP error of the wire, with who sent it."""
        type_, code, offender, ttl = item
        origin: Literal["source", "destination", "router"] = "router"
        if offender == self.address:
            origin = "destination"
        elif offender in self.own:
            origin = "source"
        return Icmp(type_, code, offender, origin, ttl)


def ends_of(evidence: Evidence, route: Frame | None) -> Ends:
    """Both ends' addresses, as far as the inventory and the source's kernel know them."""
    own = own_addresses(evidence.flow.source)
    kernel = (route or {}).get("source")
    return Ends(evidence.address, frozenset(own | ({kernel} if kernel else set())))


@dataclass(frozen=True, slots=True)
class Look:
    """One order of the flow's own probes and what came back."""

    order: Frame
    kind: Frame
    rtt_us: int | None
    attempts: int
    ends: Ends

    def words(self, said: str | None, packet: str | None) -> str:
        """What was sent and what came back; ``said`` is what a live service answered, ``packet``
        what the requirement wants to be sent."""
        block = self.order["blocks"][0]
        sent = _MODES.get((self.order["proto"], block["mode"]), f"{self.order['proto']} probe")
        if block["template"] and packet is not None:
            sent += f" ({packet})"
        parts = [f"{sent}: {self._count()}", self._came(said), self._left()]
        return ", ".join(part for part in parts if part)

    def _count(self) -> str:
        count = self.kind.get("syns") or self.attempts
        noun = _NOUNS[self.order["proto"]]
        if self.order["proto"] == "tcp" and self.kind.get("syns") is None:
            noun = "attempt"
        looks = f" in {self.attempts} looks" if self.attempts > 1 and count > self.attempts else ""
        return f"{count} {noun}{'' if count == 1 else 's'}{looks}"

    def _came(self, said: str | None) -> str:
        kind = self.kind
        if kind.get("answer") is not None:
            return self._answer(said)
        if kind.get("icmp") is not None:
            return f"{icmp_words(self.ends.icmp(kind['icmp']))}{self._after()}"
        if kind["failure"] is None:
            return "no answer and no error came back"
        if kind["failure"] == "no-answer":
            return "no answer"
        if kind["failure"] == "refused":
            return f"refused by a reset{self._after()}"
        return f"the kernel says {kind['failure']}{self._after()}"

    def _answer(self, said: str | None) -> str:
        words = _ANSWERS.get(self.kind["answer"], self.kind["answer"])
        spoken = f": {said}" if said and self.kind["answer"] == "bytes" else ""
        ttl = f", TTL {self.kind['ttl']}" if self.kind.get("ttl") is not None else ""
        return f"{words}{spoken}{ttl}{self._after()}"

    def _after(self) -> str:
        elapsed_ms = self.kind.get("elapsed_ms")
        if elapsed_ms:
            return f" after {elapsed_ms / 1000:.1f} s"
        if self.rtt_us is not None:
            return f" after {_ms(self.rtt_us):g} ms"
        return "" if elapsed_ms is None else " at once"

    def _left(self) -> str:
        if self.kind.get("failure") is None or self.kind.get("icmp") is not None:
            return ""
        if self.kind.get("left") is False:
            return "and the source's kernel says that no packet left the host"
        left = self.kind.get("left") is True and self.kind["failure"] == "no-answer"
        return "and TCP_INFO shows that they left the host" if left else ""

    def facts(self) -> Frame:
        """The same for programs."""
        icmp = self.kind.get("icmp")
        return {
            "mode": self.order["blocks"][0]["mode"],
            "packets": self.kind.get("syns"),
            "attempts": self.attempts,
            "rtt_ms": None if self.rtt_us is None else _ms(self.rtt_us),
            "operation": self.kind["op"],
            "failure": self.kind["failure"],
            "icmp": None if icmp is None else icmp_facts(self.ends.icmp(icmp)),
            "left_host": self.kind.get("left"),
            "answer": self.kind.get("answer"),
            "ttl": self.kind.get("ttl"),
            "elapsed_ms": self.kind.get("elapsed_ms"),
        }


def looks_of(exchanges: Sequence[Exchange], ends: Ends) -> Iterator[Look]:
    """Every run of ports in the outcomes of these orders; one port gives one each."""
    for one in exchanges:
        for frame in one.frames:
            for _, _, index, rtt_us, attempts in frame["runs"]:
                yield Look(one.order, frame["kinds"][index], rtt_us, attempts, ends)


def icmp_words(icmp: Icmp) -> str:
    """``ICMP 3/13 (admin-prohibited) from 10.0.0.1, a router on the way, TTL 64``."""
    ttl = f", TTL {icmp.ttl}" if icmp.ttl is not None else ""
    name = f"ICMP {icmp.type}/{icmp.code} ({icmp_word(icmp)})"
    return f"{name} in the error queue from {icmp.offender}, {_ORIGINS[icmp.origin]}{ttl}"


def icmp_facts(icmp: Icmp) -> Frame:
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


def walk_words(walk: Frame, what: str) -> str:
    """``tcp/7000: 1 10.0.0.1, 2 10.0.2.2 answers``."""
    if walk.get("failure") is not None:
        return f"{what}: could not be sent ({walk['failure']})"
    hops = heard(walk)
    if not hops:
        return f"{what}: no hop answers at all"
    text = ", ".join(f"{ttl} {address or 'no answer'}" for ttl, address in hops)
    if walk.get("reached"):
        return f"{what}: {text} answers"
    return f"{what}: {text}{' (which refuses it)' if refused(walk) else ', then nobody answers'}"


def refused(walk: Frame) -> bool:
    """Whether the last hop that answered ended the walk: its word was no time-exceeded.

    A walk that nobody ends goes on into silence, or to the last TTL that it was to ask.
    """
    hops = walk["hops"]
    return not walk.get("reached") and len(hops) < MAX_TTL and bool(hops) and bool(hops[-1][1])


def heard(walk: Frame) -> list[tuple[int, str | None]]:
    """The hops up to the last that answered."""
    hops = [(int(ttl), address) for ttl, address in walk["hops"]]
    while hops and hops[-1][1] is None:
        hops.pop()
    return hops


def distance(walk: Frame | None) -> int | None:
    """How many hops away the destination answered; None: it did not."""
    if walk is None or not walk.get("reached"):
        return None
    return max(ttl for ttl, _ in heard(walk))


def walk_facts(walk: Frame | None) -> Frame | None:
    """A walk for programs: every hop that was asked, null where nobody answered."""
    if walk is None:
        return None
    hops = [{"ttl": ttl, "address": address} for ttl, address in walk["hops"]]
    return {
        "hops": hops,
        "reached": bool(walk.get("reached")),
        "refused": refused(walk),
        "failure": walk.get("failure"),
    }


def _ms(microseconds: int) -> float:
    return round(microseconds / 1000, 3)
