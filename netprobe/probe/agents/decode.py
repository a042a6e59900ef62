"""From the agents' words to outcomes: the only place that reads ``kinds`` of the wire."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

from netprobe.model.evidence import Answer, Icmp, Outcome
from netprobe.model.ports import Ports
from netprobe.probe.flows.work import Task
from netprobe.protocols import Protocol

# The wire's words for what came back, where they need no reading of bytes.
_ANSWERS: dict[str, Answer] = {
    "nonce": "nonce",
    "foreign": "foreign",
    "reflected": "reflected",
    "garbled": "other",
    "silent": "silent",
    "closed": "closed",
    "reset": "reset",
    "echo": "echo",
    "unasked": "unasked",
}


class Reader:
    """Reads the outcome frames of one order.

    ``own_addresses`` are the source's: they and the task's address tell who sent an ICMP error.
    ``name_of`` gives the host of an answer's index. ``blind``: see ``Outcome.blind``.
    """

    def __init__(
        self,
        protocol: Protocol,
        task: Task,
        own_addresses: frozenset[str],
        name_of: Callable[[int], str | None],
        blind: bool,
    ) -> None:
        self._protocol = protocol
        self._unasked = task.probe is None and task.protocol == "udp"
        self._transport = task.protocol.partition("/")[0]
        self._destination = task.address
        self._own = own_addresses
        self._name_of = name_of
        self._blind = blind

    def read(self, frames: list[dict[str, Any]]) -> Iterator[tuple[Ports, Outcome]]:
        """Every run of ports with its outcome; ports are empty where the protocol has none."""
        for frame in frames:
            kinds = frame["kinds"]
            for first, last, index, rtt_us, attempts in frame["runs"]:
                ports: Ports = ((first, last),) if first else ()
                yield ports, self._outcome(kinds[index], rtt_us, attempts)

    def _outcome(self, kind: dict[str, Any], rtt_us: int | None, attempts: int) -> Outcome:
        answer, said = self._answer(kind)
        by = kind.get("by")
        return Outcome(
            operation=kind["op"],
            failure=kind["failure"],
            icmp=self._icmp(kind.get("icmp")),
            left_host=kind.get("left"),
            answer=answer,
            answered_by=self._name_of(by) if by is not None else None,
            said=said,
            ttl=kind.get("ttl"),
            attempts=attempts,
            packets=kind.get("syns"),
            rtt_ms=round(rtt_us / 1000, 3) if rtt_us is not None else None,
            elapsed_ms=kind.get("elapsed_ms"),
            blind=self._blind and kind["failure"] is not None and kind.get("icmp") is None,
        )

    def _answer(self, kind: dict[str, Any]) -> tuple[Answer | None, str | None]:
        word = kind.get("answer")
        if word is None:
            return None, None
        if word == "bytes":
            reading = self._protocol.read(self._transport, b64decode(kind["data"]))
            if reading.recognised:
                return "service", reading.said
            # Without ``probe:`` nothing particular was expected, so that no answer is a wrong one.
            return ("unasked" if self._unasked else "other"), reading.said
        return _ANSWERS[word], None

    def _icmp(self, item: list[Any] | None) -> Icmp | None:
        if item is None:
            return None
        type_, code, offender, ttl = item
        if offender in self._own and offender != self._destination:
            return Icmp(type_, code, offender, "source", ttl)
        if offender == self._destination:
            return Icmp(type_, code, offender, "destination", ttl)
        return Icmp(type_, code, offender, "router", ttl)
