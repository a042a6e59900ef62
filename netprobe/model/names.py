"""Names of hosts, folded without losing one."""

from __future__ import annotations

import re
from collections.abc import Sequence

# The number at the end of the host's own name, whatever its domain: node-12.zone-2.example.com.
_NUMBERED = re.compile(r"([^.]*?)(\d+)(\..*)?")
# Names of a shorter run are easier to read one by one than as a range.
_SHORTEST_RANGE = 4


def names_text(names: Sequence[str], most: int) -> str:
    """Names in their order, numbered runs folded: ``master-0, worker-[1-40] and 37 more``."""
    runs = _split_into_runs(names)
    shown, rest = runs[:most], runs[most:]
    text = ", ".join(word for run in shown for word in _run_text(run))
    more = sum(len(run) for run in rest)
    return f"{text} and {more:,} more" if more else text


def _split_into_runs(names: Sequence[str]) -> list[list[str]]:
    """Runs to fold; names of a run too short to fold stand alone."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _is_next_name(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return [
        part
        for run in runs
        for part in ([run] if len(run) >= _SHORTEST_RANGE else [[name] for name in run])
    ]


def _is_next_name(left: str, right: str) -> bool:
    before, after = _NUMBERED.fullmatch(left), _NUMBERED.fullmatch(right)
    if before is None or after is None or before[1] != after[1] or before[3] != after[3]:
        return False
    padded = len(before[2]) != len(after[2]) and "0" in (before[2][0], after[2][0])
    return not padded and int(before[2]) + 1 == int(after[2])


def _run_text(run: Sequence[str]) -> list[str]:
    first, last = _NUMBERED.fullmatch(run[0]), _NUMBERED.fullmatch(run[-1])
    if len(run) < _SHORTEST_RANGE or first is None or last is None:
        return list(run)
    return [f"{first[1]}[{first[2]}-{last[2]}]{first[3] or ''}"]
