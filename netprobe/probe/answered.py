"""Which addresses answered which source in this run: what silence is held against."""

from __future__ import annotations

from netprobe.model.evidence import Outcome


class Answered:
    """Pairs of (source name, address) of which the source got any answer of the address itself."""

    def __init__(self) -> None:
        self._pairs: set[tuple[str, str]] = set()

    def note(self, source: str, address: str, outcome: Outcome) -> None:
        """Remember the pair if this outcome is an answer of the address."""
        if is_answer(outcome):
            self._pairs.add((source, address))

    def has(self, source: str, address: str) -> bool:
        """Whether the address ever answered the source."""
        return (source, address) in self._pairs


def is_answer(outcome: Outcome) -> bool:
    """A reset, an ICMP error of the destination itself, or anything that was said."""
    if outcome.answer is not None:
        return True
    if outcome.icmp is not None:
        return outcome.icmp.origin == "destination"
    return outcome.failure == "refused"
