"""Which addresses answered which source in this run: what silence is held against."""

from __future__ import annotations

from netprobe.model.evidence import Outcome

# A dead neighbour is given up after 3.06 s; who joins the kernel's queue late waits less.
DEAD_MS = 1500


class Answered:
    """Pairs of (source name, address): those that answered, and those that are known to be down."""

    def __init__(self) -> None:
        self._answered: set[tuple[str, str]] = set()
        self._down: set[tuple[str, str]] = set()

    def note(self, source: str, address: str, outcome: Outcome) -> None:
        """Remember what this outcome says of the address."""
        if is_answer(outcome):
            self._answered.add((source, address))
        elif _says_down(outcome):
            self._down.add((source, address))

    def has(self, source: str, address: str) -> bool:
        """Whether the address ever answered the source."""
        return (source, address) in self._answered

    def is_down(self, source: str, address: str) -> bool:
        """Whether the source was told that nobody answers for the address, and nothing else."""
        return (source, address) in self._down and not self.has(source, address)


def is_answer(outcome: Outcome) -> bool:
    """Anything that was said, an ICMP error of the destination itself, a reset that is genuine.

    Of a reset it must be known that nobody forged it: a firewall's says nothing of the host.
    """
    if outcome.answer is not None:
        return outcome.answer != "intercepted"
    if outcome.icmp is not None:
        return outcome.icmp.origin == "destination"
    return outcome.failure == "refused" and outcome.forged is False


def _says_down(outcome: Outcome) -> bool:
    return outcome.failure == "host-unreachable" and (outcome.elapsed_ms or 0) >= DEAD_MS
