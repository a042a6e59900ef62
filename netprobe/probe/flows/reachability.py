"""Remembers which addresses answered which source in this run; silence is judged by that."""

from __future__ import annotations

from netprobe.model.evidence import Outcome
from netprobe.probe.flows.chance import Chance

# The kernel gives up a dead neighbour after 3.06 s; a packet that joins its queue late waits less.
# A refusal arrives within a round trip.
DEAD_MS = 1500
REFUSED_MS = 500
HOST_UNREACHABLE = ((3, 1), (1, 3))


class Answered:
    """Pairs of (source name, address): those that answered, and those that are known to be down.

    ``flows``: how many the run asks. ``chance``: what it has shown of loss so far.
    """

    def __init__(self, flows: int = 1) -> None:
        self.chance = Chance(flows)
        self._answered: set[tuple[str, str]] = set()
        self._down: set[tuple[str, str]] = set()
        self._refused: set[tuple[str, str]] = set()
        self._slowest_ms: dict[tuple[str, str], float] = {}

    def note_answer(self, source: str, address: str, outcome: Outcome) -> None:
        """Remember the pair if this outcome is an answer of the address."""
        pair = (source, address)
        if is_answer(outcome):
            self._answered.add(pair)
        if outcome.rtt_ms is not None:
            self._slowest_ms[pair] = max(self._slowest_ms.get(pair, 0.0), outcome.rtt_ms)

    def slowest_ms(self, source: str, address: str) -> float | None:
        """Give the slowest round trip of the pair in ms; None where nothing was answered."""
        return self._slowest_ms.get((source, address))

    def note(
        self, source: str, address: str, outcome: Outcome, concluded: str | None = None
    ) -> None:
        """Remember what a final outcome, and what a check ``concluded``, say of the address."""
        pair = (source, address)
        if is_answer(outcome):
            self._answered.add(pair)
        elif is_host_unreachable(outcome):
            elapsed_ms = outcome.elapsed_ms or 0
            if concluded == "host-down" or (concluded is None and elapsed_ms >= DEAD_MS):
                self._down.add(pair)
            elif concluded == "refusing-host" or elapsed_ms < REFUSED_MS:
                self._refused.add(pair)

    def has(self, source: str, address: str) -> bool:
        """Tell whether the address ever answered the source."""
        return (source, address) in self._answered

    def refuses(self, source: str, address: str) -> bool:
        """Whether somebody says "host unreachable" at once: a firewall, and no dead neighbour. Its
        later answers may come late, because it may say so about once a second only."""
        return (source, address) in self._refused

    def is_down(self, source: str, address: str) -> bool:
        """Whether the source was told that nobody answers for the address, and nothing else."""
        pair = (source, address)
        return pair in self._down and not self.has(*pair) and not self.refuses(*pair)


def is_answer(outcome: Outcome) -> bool:
    """Tell whether the address spoke: an answer, its ICMP error, a reset known to be unforged."""
    if outcome.answer is not None:
        return True
    if outcome.icmp is not None:
        return outcome.icmp.origin == "destination"
    return outcome.failure == "refused" and outcome.forged is False


def is_host_unreachable(outcome: Outcome) -> bool:
    """Whether somebody said that nobody answers for the address, or refused it in these words."""
    if outcome.icmp is not None:
        return (outcome.icmp.type, outcome.icmp.code) in HOST_UNREACHABLE
    return outcome.failure == "host-unreachable"
