"""What is required and not in the plan: nothing can run at its source, or a role has no host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netprobe.model.names import names_text
from netprobe.model.plan import Skipped
from netprobe.report.page.wording import listed, plural

_MOST_NAMES = 4


def word_unable(skipped: Sequence[Skipped]) -> Iterator[str]:
    """Word ``12 required flows from mirror were not asked: it can run nothing (vantage: none)``."""
    some = [one for one in skipped if one.flows]
    flows = sum(one.flows or 0 for one in some)
    if not flows:
        return
    sources = list(dict.fromkeys(one.source for one in some if one.source is not None))
    were = "was" if flows == 1 else "were"
    they = "it" if len(sources) == 1 else "they"
    names = names_text(sources, _MOST_NAMES)
    what = f"{plural(flows, 'required flow')} from {names} {were} not asked"
    yield f"{what}: {they} can run nothing (vantage: none)"


def word_roleless(skipped: Sequence[Skipped]) -> Iterator[str]:
    """Word ``3 required rows were not asked: no host has the role ntp, lb or proxy``."""
    some = [one for one in skipped if one.roles is not None]
    if not some:
        return
    rows = len({(one.matrix, one.requirement) for one in some})
    were = "was" if rows == 1 else "were"
    roles = list(dict.fromkeys(one.roles for one in some if one.roles is not None))
    yield (
        f"{plural(rows, 'required row')} {were} not asked: no host has the role "
        f"{listed(roles, _MOST_NAMES)}"
    )
