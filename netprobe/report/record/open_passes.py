"""Passes of an earlier run whose ports a retry asks about anew: who holds a port, holds it for all.

A port that was free is taken now, or the other way round; whoever asks finds the same. So what the
retry finds out of a port through one source counts for the sources that passed before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from operator import attrgetter

from netprobe.model.ports import intersect, subtract
from netprobe.model.reasons import find_reason
from netprobe.model.result import PORTLESS, Result

RowPort = tuple[str, str, str, str, str]

# A row, and where its service is: another row may allow the same holder.
row_port_of: Callable[[Result], RowPort] = attrgetter(
    "matrix", "requirement", "destination", "address", "protocol"
)


class RetriedPorts:
    """The ports that failures of an earlier run make a retry ask about."""

    def __init__(self, failures: Iterable[Result]) -> None:
        self._ports: dict[RowPort, set[tuple[int, int]]] = {}
        for one in failures:
            self._ports.setdefault(row_port_of(one), set()).update(one.ports)

    def concern(self, kept: Result) -> bool:
        """Tell whether a kept pass stands only if nothing else is found out of its port."""
        asked = self._ports.get(row_port_of(kept))
        if asked is None or kept.verdict != "pass" or kept.proof == "service":
            return False
        return bool(intersect(kept.ports, tuple(sorted(asked))))


class PortsFound:
    """What a run has found out of ports, whoever asked."""

    def __init__(self) -> None:
        self._found: dict[RowPort, list[Result]] = {}

    def note(self, result: Result) -> None:
        """Note a result that is the port's own."""
        if find_reason(result.reason).of_port:
            self._found.setdefault(row_port_of(result), []).append(result)

    def settle(self, kept: Result) -> Iterator[Result]:
        """Give an earlier pass, with what was found of its ports instead where there is such."""
        rest = kept.ports
        for found in self._found.get(row_port_of(kept), ()):
            for common in intersect(rest, found.ports):
                yield _overrule_pass(kept.cut(common), found)
            rest = subtract(rest, found.ports)
        yield from map(kept.cut, rest or (() if kept.ports else PORTLESS))


def _overrule_pass(kept: Result, found: Result) -> Result:
    return replace(
        kept,
        verdict=found.verdict,
        state=found.state,
        reason=found.reason,
        proof=found.proof,
        where=found.where,
        holder=found.holder,
        because=f"{found.because} (so {found.source} found now; {kept.source} passed before)",
        rtt_ms=None,
    )
