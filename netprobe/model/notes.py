"""What checks note of a flow in its trail; ``explain`` reads the fields, and prints them as facts.

A field with a default is left out where nobody looked at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.host_messages import Resolved, Routed
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.model.evidence import Icmp

_ANSWERS = {
    "nonce": "the genuine answer of our listener (nonce and MAC are right)",
    "foreign": "a genuine answer, but of another agent",
    "reflected": "our own bytes came back",
    "garbled": "bytes that are no answer to ours",
    "silent": "the connection opened, then nothing was said",
    "closed": "the connection opened and was closed at once",
    "reset": "the connection opened and was reset",
    "echo": "an echo reply",
    "unasked": "the connection opened (SYN-ACK)",
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


def word_resolved(whose: str, name: str, answer: Resolved) -> str:
    """``a resolves api.example to 10.0.2.2``, or that it cannot, in the resolver's own words."""
    if answer.addresses:
        return f"{whose} resolves {name} to {', '.join(answer.addresses)}"
    return f"{whose} cannot resolve {name}: {answer.words or 'no word of its resolver'}"


def word_route(whose: str, address: str, route: Routed) -> str:
    """``a sends to 10.0.2.2 through 10.0.0.1 on eth0, from 10.0.0.9, MTU 1500``, or that its
    kernel has no way there."""
    if route.failure is not None:
        return f"{whose}'s kernel has no way to {address} ({route.failure})"
    via = f"through {route.gateway} on" if route.gateway else "directly on"
    sender = f", from {route.source}" if route.source else ""
    mtu = f", MTU {route.mtu}" if route.mtu else ""
    return f"{whose} sends to {address} {via} {route.dev}{sender}{mtu}"


def word_failure(failure: str | None, icmp: Icmp | None) -> str:
    """Say how a packet failed."""
    if icmp is not None:
        return icmp.words()
    words = {"no-answer": "no answer", "refused": "refused by a reset"}
    return words.get(failure or "", f"the kernel says {failure}")


class LookNote(NamedTuple):
    """One look of the flow's own probes: what was sent, and what came back.

    ``protocol`` is the block's, ``mode`` the wire's; ``template``: 0 for packets without content.
    """

    protocol: str
    mode: str
    template: int
    kind: OutcomeKind
    rtt_us: int | None
    looks: int
    icmp: Icmp | None

    @property
    def _transport(self) -> str:
        return self.protocol.partition("/")[0]

    def words(self, said: str | None, packet: str | None, to: str = "") -> str:
        """What was sent and what came back; ``said`` is what a live service answered, ``packet``
        what the requirement wants to be sent, ``to`` the place where no flow names it."""
        sent = _MODES.get((self._transport, self.mode), f"{self._transport} probe")
        sent += f" to {to}" if to else ""
        if self.template and packet is not None:
            sent += f" ({packet})"
        parts = [f"{sent}: {self._count_packets()}", self._describe_reply(said), self._say_left()]
        return ", ".join(part for part in parts if part)

    def _count_packets(self) -> str:
        packets, looks = self.kind.packets, self.looks
        count = packets or looks
        connects = self._transport == "tcp" and packets is None
        noun = "attempt" if connects else _NOUNS[self._transport]
        repeated = f" in {looks} looks" if 1 < looks < count else ""
        return f"{count} {noun}{'' if count == 1 else 's'}{repeated}"

    def _describe_reply(self, said: str | None) -> str:
        kind = self.kind
        if kind.answer is not None:
            spoken = f": {said}" if said and kind.answer == "bytes" else ""
            ttl = f", TTL {kind.ttl}" if kind.ttl is not None else ""
            return f"{_ANSWERS.get(kind.answer, kind.answer)}{spoken}{ttl}{self._say_when()}"
        if kind.failure is None and self.icmp is None:
            return "no answer and no error came back"
        silent = kind.failure == "no-answer" and self.icmp is None
        return f"{word_failure(kind.failure, self.icmp)}{'' if silent else self._say_when()}"

    def _say_when(self) -> str:
        elapsed_ms = self.kind.elapsed_ms
        if elapsed_ms:
            return f" after {elapsed_ms / 1000:.1f} s"
        if self.rtt_us is not None:
            return f" after {round(self.rtt_us / 1000, 3):g} ms"
        return "" if elapsed_ms is None else " at once"

    def _say_left(self) -> str:
        kind = self.kind
        if kind.failure is None or kind.icmp is not None:
            return ""
        if kind.left is False:
            return "and the source's kernel says that no packet left the host"
        left = kind.left is True and kind.failure == "no-answer"
        return "and TCP_INFO shows that they left the host" if left else ""

    def facts(self) -> dict[str, Any]:
        """Give the same for programs."""
        kind, rtt_us = self.kind, self.rtt_us
        return {
            "mode": self.mode, "packets": kind.packets, "attempts": self.looks,
            "rtt_ms": None if rtt_us is None else round(rtt_us / 1000, 3),
            "operation": kind.op, "failure": kind.failure,
            "icmp": None if self.icmp is None else self.icmp.facts(),
            "left_host": kind.left, "answer": kind.answer, "ttl": kind.ttl,
            "elapsed_ms": kind.elapsed_ms,
        }  # fmt: skip


class SilenceNote(NamedTuple):
    """How often silence was asked again, and the greatest loss in percent of one that was seen."""

    looks: int
    loss: float


class HigherNote(NamedTuple):
    """Whether a connect is refused that ignores what arrives with less than this TTL."""

    min_ttl: int
    refused: bool


class ResetNote(NamedTuple):
    """Whose a reset is: what arrives with less than ``min_ttl`` was ignored in further connects.

    ``answer_ttl``: of a genuine answer. ``refused_by``: a router that refuses the address.
    """

    answer_ttl: int | None = None
    refused_by: str | None = None
    refusal_ttl: int | None = 0
    min_ttl: int | None = None
    refused_again: bool | None = None
    dies_at_first_hop: bool | None = None
    higher: HigherNote | None = None

    def words(self, address: str, full_ttl: bool | None) -> Iterator[str]:
        """Say what the looks at a reset in the name of an address have shown."""
        if full_ttl is None:
            again = "refused again" if self.refused_again else "not refused any more"
            yield (
                f"genuine answers of {address} arrive with TTL {(self.min_ttl or 0) - 1}; a "
                f"connect that ignores every packet with a TTL below {self.min_ttl} is {again}"
            )
            if self.higher is not None:
                least, refused = self.higher
                again = "is refused too: these resets start higher" if refused else "is not refused"
                yield f"one that ignores every packet with a TTL below {least} {again}"
            return
        yield f"no TTL of a genuine answer of {address} is known"
        if not full_ttl:
            yield "the reset's TTL was lowered on its way, so the first hop did not make it"
            return
        gateway = "though the route goes through a gateway"
        yield f"the reset's TTL was not lowered by any router, {gateway}"
        if self.dies_at_first_hop is not None:
            dies = "dies there" if self.dies_at_first_hop else "is not said to die there"
            yield f"a SYN with TTL 1 {dies}"


class MakerNote(NamedTuple):
    """Whether a walk on the flow's own port shows that the destination itself refuses it.

    ``translated``: the address answers nearer than its ``distance``, which other packets told.
    """

    own: bool
    translated: bool = False
    distance: int | None = None


class InterceptionNote(NamedTuple):
    """Whether ports that nobody uses open too, and connects whose packets live for ``ttl`` hops."""

    control_ports: Sequence[int] = ()
    control_opened: bool | None = None
    ttl: int | None = None
    opened: bool | None = None


class WalkNote(NamedTuple):
    """The walk with rising TTL on the flow's own port."""

    port: int
    walked: Walked


class NextHopNote(NamedTuple):
    """The source's route, and what its neighbour table has for the next hop."""

    dev: str | None
    next_hop: str | None
    neighbour: str | None


class SilentHopNote(NamedTuple):
    """The gateway of a source towards a destination, which answered none of its packets."""

    next_hop: str | None


class NamesNote(NamedTuple):
    """What a name server answered for each name: its addresses, or the error in words."""

    server: str
    told: Mapping[str, Sequence[str] | str]


class ServiceNote(NamedTuple):
    """How a live service answered: ``told`` is one of fixed words, ``said`` a plain phrase."""

    told: str
    said: str


class GreetingNote(NamedTuple):
    """What an open port said of itself: its banner, or whose certificate it has."""

    said: str


class StoryNote(NamedTuple):
    """Whether a recorder at one of the ends could describe the flow's packets."""

    told: bool


class BundleNote(NamedTuple):
    """How many of the source's ports lost packets."""

    failed: int


class SlowStartNote(NamedTuple):
    """How many connects were tried, and at which ports a repeated SYN opened them."""

    tried: int
    slow: str


class ConclusionNote(NamedTuple):
    """The name of what a check concluded."""

    concluded: str


class ScoutNote(NamedTuple):
    """The probe that stood for this flow to a dead host."""

    scout: str
    port: int | None


class LimitNote(NamedTuple):
    """Whether new connections are limited a second, and this port was not asked slowly enough."""

    limited: bool


class SizeNote(NamedTuple):
    """The largest packet that the path carries, and the size that the overlay needs."""

    path: int | None
    needed: int | None
