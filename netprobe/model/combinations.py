"""What a result can be: the combinations of verdict, state, reason, proof and places of all runs.

``combinations.txt`` is printed from the judge's tables (``make docs``). Lines are added to it, none
is ever taken out: files of all versions are read.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from netprobe.agent.wire.failures import FAILURES, UNKNOWN_PREFIX
from netprobe.model.icmp import ICMP_ERRORS
from netprobe.model.result import Result

PRINTED: Final = Path(__file__).with_suffix(".txt")
# Of the reasons: what an agent's kernel, a router or a proxy said, and whatever kept from looking.
SAID: Final = "{said}"
ANY: Final = "*"
# Of a pass, which has no places.
NOWHERE: Final = "-"
_SAID: Final = frozenset((*FAILURES, *(one.word for one in ICMP_ERRORS.values()), "unknown"))
_SAID_MORE: Final = re.compile(rf"icmp \d+/\d+|({UNKNOWN_PREFIX}|proxy-).+")


def is_possible(result: Result) -> bool:
    """Tell whether a run of any version writes such a result."""
    key = (result.expect, result.verdict, result.state, result.proof, result.where)
    reasons = _read_printed().get(key, frozenset())
    if result.reason in reasons or ANY in reasons:
        return True
    return SAID in reasons and _is_said(result.reason)


def _is_said(reason: str) -> bool:
    return reason in _SAID or _SAID_MORE.fullmatch(reason) is not None


@cache
def _read_printed() -> dict[tuple[object, ...], frozenset[str]]:
    found: dict[tuple[object, ...], set[str]] = {}
    for line in PRINTED.read_text("ascii").splitlines():
        words, _, places = line.partition(": ")
        expect, verdict, state, reason, proof = words.split()
        for place in places.split(" | "):
            where = () if place == NOWHERE else tuple(place.split())
            found.setdefault((expect, verdict, state, proof, where), set()).add(reason)
    return {key: frozenset(reasons) for key, reasons in found.items()}
