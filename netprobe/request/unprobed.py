"""What hosts must reach where nothing can run, so that no run ever looks: a request tells it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netprobe.model.firewall import Unmended
from netprobe.model.names import names_text
from netprobe.model.plan import PlannedRequirement
from netprobe.model.ports import text as ports_text
from netprobe.model.run import RunInfo

_HELP = (
    "Netprobe cannot look from there: {reason}. Required, by roles: {rows}. {asked}, and whether "
    "they get through only these hosts can tell."
)
_ASKED = "The rules have these flows"
_UNASKED = "`netprobe request --from-plan` asks for them"
_MOST_ROWS = 40
_MOST_NAMES = 12


def list_unprobed(info: RunInfo, *, asked: bool = False) -> Iterator[Unmended]:
    """List what starts at hosts where nothing can run; rows of the same hosts once.

    ``asked``: the request has rules for it.
    """
    rows: dict[tuple[str, str], list[str]] = {}
    for one in (row for row in info.requirements if row.expect == "allowed"):
        rows.setdefault((one.matrix, one.id), []).append(_word_row(one))
    sources: dict[tuple[str, str, str], list[str]] = {}
    for item in info.skipped:
        if item.source is not None:
            key = (item.reason, item.matrix, item.requirement)
            sources.setdefault(key, []).append(item.source)
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (reason, matrix, requirement), hosts in sources.items():
        texts = groups.setdefault((reason, tuple(hosts)), [])
        texts += rows.get((matrix, requirement), [])
    for (reason, names), texts in groups.items():
        if texts:
            title = f"what {names_text(names, _MOST_NAMES)} must reach"
            way = _ASKED if asked else _UNASKED
            yield Unmended(title, _HELP.format(reason=reason, rows=_join_some(texts), asked=way), 0)


def _word_row(row: PlannedRequirement) -> str:
    wire = " ".join(filter(None, (row.protocol, ports_text(row.ports))))
    return f"{wire} to {', '.join(row.to)} ({row.matrix}, {row.id})"


def _join_some(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_ROWS
    return "; ".join([*texts[:_MOST_ROWS], *([f"and {more} more"] if more > 0 else [])])
