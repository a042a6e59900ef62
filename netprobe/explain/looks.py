"""Turns the results of probes, of looks beside the flow and of TTL walks into words and facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.parts import WalkHop
from netprobe.judge.symptom import icmp_word
from netprobe.model.evidence import Icmp, Outcome
from netprobe.probe.agents.decode import PortOutcome
from netprobe.probe.flows.batches import Part
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
class Look:
    """One look of the flow's own probes: what was sent, and what came back."""

    part: Part
    row: PortOutcome
    icmp: Icmp | None

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
        parts = [f"{sent}: {self._count_packets()}", self._describe_reply(said), self._say_left()]
        return ", ".join(part for part in parts if part)

    def _count_packets(self) -> str:
        packets, looks = self.row.kind.packets, self.row.looks
        count = packets or looks
        noun = "attempt" if self.transport == "tcp" and packets is None else _NOUNS[self.transport]
        repeated = f" in {looks} looks" if 1 < looks < count else ""
        return f"{count} {noun}{'' if count == 1 else 's'}{repeated}"

    def _describe_reply(self, said: str | None) -> str:
        kind = self.row.kind
        if kind.answer is not None:
            spoken = f": {said}" if said and kind.answer == "bytes" else ""
            ttl = f", TTL {kind.ttl}" if kind.ttl is not None else ""
            return f"{_ANSWERS.get(kind.answer, kind.answer)}{spoken}{ttl}{self._say_when()}"
        if self.icmp is not None:
            return f"{icmp_words(self.icmp)}{self._say_when()}"
        if kind.failure is None:
            return "no answer and no error came back"
        if kind.failure == "no-answer":
            return "no answer"
        refused = kind.failure == "refused"
        words = "refused by a reset" if refused else f"the kernel says {kind.failure}"
        return f"{words}{self._say_when()}"

    def _say_when(self) -> str:
        elapsed_ms = self.row.kind.elapsed_ms
        if elapsed_ms:
            return f" after {elapsed_ms / 1000:.1f} s"
        if self.row.rtt_us is not None:
            return f" after {round(self.row.rtt_us / 1000, 3):g} ms"
        return "" if elapsed_ms is None else " at once"

    def _say_left(self) -> str:
        kind = self.row.kind
        if kind.failure is None or kind.icmp is not None:
            return ""
        if kind.left is False:
            return "and the source's kernel says that no packet left the host"
        left = kind.left is True and kind.failure == "no-answer"
        return "and TCP_INFO shows that they left the host" if left else ""

    def facts(self) -> dict[str, Any]:
        """Give the same for programs."""
        kind, rtt_us = self.row.kind, self.row.rtt_us
        return {
            "mode": self.part.mode, "packets": kind.packets, "attempts": self.row.looks,
            "rtt_ms": None if rtt_us is None else round(rtt_us / 1000, 3),
            "operation": kind.op, "failure": kind.failure,
            "icmp": None if self.icmp is None else icmp_facts(self.icmp),
            "left_host": kind.left, "answer": kind.answer, "ttl": kind.ttl,
            "elapsed_ms": kind.elapsed_ms,
        }  # fmt: skip


def icmp_words(icmp: Icmp) -> str:
    """``ICMP 3/13 (admin-prohibited) from 10.0.0.1, a router on the way, TTL 64``."""
    ttl = f", TTL {icmp.ttl}" if icmp.ttl is not None else ""
    name = f"ICMP {icmp.type}/{icmp.code} ({icmp_word(icmp)})"
    return f"{name} in the error queue from {icmp.offender}, {_ORIGINS[icmp.origin]}{ttl}"


def icmp_facts(icmp: Icmp) -> dict[str, Any]:
    """Give the same for programs."""
    return {
        "type": icmp.type, "code": icmp.code, "word": icmp_word(icmp),
        "offender": icmp.offender, "origin": icmp.origin, "ttl": icmp.ttl,
    }  # fmt: skip


def outcome_words(outcome: Outcome) -> str:
    """Describe the outcome of one look beside the flow."""
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


def walk_words(walk: Walked, what: str) -> str:
    """``tcp/7000: 1 10.0.0.1, 2 10.0.2.2 answers``."""
    if walk.failure is not None:
        return f"{what}: could not be sent ({walk.failure})"
    hops = heard(walk)
    if not hops:
        return f"{what}: no hop answers at all"
    text = ", ".join(f"{ttl} {address or 'no answer'}" for ttl, address in hops)
    if walk.reached:
        return f"{what}: {text} answers"
    return f"{what}: {text}{' (which refuses it)' if refused(walk) else ', then nobody answers'}"


def refused(walk: Walked) -> bool:
    """Tell whether the last hop that answered ended the walk: its word was no time-exceeded.

    A walk that nobody ends goes on into silence, or to the last TTL that it was to ask.
    """
    hops = walk.hops
    return not walk.reached and 0 < len(hops) < MAX_TTL and hops[-1].address is not None


def heard(walk: Walked) -> list[WalkHop]:
    """Give the hops up to the last that answered."""
    hops = list(walk.hops)
    while hops and hops[-1].address is None:
        hops.pop()
    return hops


def distance(walk: Walked | None) -> int | None:
    """Count the hops to the destination; None where it did not answer."""
    if walk is None or not walk.reached:
        return None
    return max(ttl for ttl, _ in heard(walk))


def walk_facts(walk: Walked | None) -> dict[str, Any] | None:
    """Give a walk for programs: every hop that was asked, null where nobody answered."""
    if walk is None:
        return None
    hops = [hop._asdict() for hop in walk.hops]
    ends = {"reached": walk.reached, "refused": refused(walk), "failure": walk.failure}
    return {"hops": hops, **ends}
