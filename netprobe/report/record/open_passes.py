"""Passes of an earlier run whose ports a retry asks about anew: who holds a port, holds it for all.

A port that was free is taken now, or the other way round; whoever asks finds the same. So what the
retry finds out of a port through one source counts for the sources that passed before. Another row
may allow the same holder: its passes of the port are asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter

from msgspec.structs import replace

from netprobe.model.ports import Ports, divide, intersect, subtract, union, union_by_key
from netprobe.model.reasons import find_reason
from netprobe.model.result import PORTLESS, Result

RowPort = tuple[str, str, str, str, str]

# A row, and where its service is: another row may allow the same holder.
row_port_of: Callable[[Result], RowPort] = attrgetter(
    "matrix", "requirement", "destination", "address", "protocol"
)


def row_ports_of(result: Result) -> Iterator[RowPort]:
    """Give them by each name of the flow."""
    row = row_port_of(result)
    return ((*name, *row[2:]) for name in result.names)


class RetriedPorts:
    """The ports that failures of an earlier run make a retry ask about."""

    def __init__(self, failures: Iterable[Result]) -> None:
        known = [(tuple(row_ports_of(one)), one.ports) for one in failures]
        self._ports = union_by_key((row, ports) for rows, ports in known for row in rows)
        self._of_any_row = union_by_key((rows[0][2:], ports) for rows, ports in known)
        # What ``_find_asked`` gives.
        self._by_rows: dict[tuple[RowPort, ...], tuple[Ports, Ports]] = {}

    def concern(self, kept: Result) -> bool:
        """Tell whether a kept pass stands only if nothing else is found out of its port."""
        return _is_open_pass(kept) and bool(divide(kept.ports, self._find_asked(kept)[0])[0])

    def drop_of_other_rows(self, kept: Result) -> Iterator[Result]:
        """Give an earlier result without the open passes of ports that other rows ask about."""
        asked, rest = divide(kept.ports, self._find_asked(kept)[1])
        if _is_open_pass(kept) and asked:
            yield from map(kept.cut, rest)
        else:
            yield kept

    def _find_asked(self, kept: Result) -> tuple[Ports, Ports]:
        """Give the ports that are asked about at its place: of its own row, and of others only."""
        rows = tuple(row_ports_of(kept))
        if rows not in self._by_rows:
            own = union(self._ports.get(row, ()) for row in rows)
            others = subtract(self._of_any_row.get(rows[0][2:], ()), own)
            self._by_rows[rows] = (own, others)
        return self._by_rows[rows]


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


def _is_open_pass(kept: Result) -> bool:
    """Tell whether the listener showed nothing of its own that makes it the row's service."""
    return kept.verdict == "pass" and kept.proof != "service"


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
