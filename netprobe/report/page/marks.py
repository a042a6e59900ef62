"""Changes of routes as people read them."""

from __future__ import annotations

from typing import Final

from netprobe.model.outage import MarkKind, Outage, RouteMark
from netprobe.report.page.wording import listed

KINDS: Final[dict[MarkKind, str]] = {
    "next-hop": "next hop",
    "hops": "routers on the way of answers",
    "path-mtu": "path MTU",
}
_MOST_ENDS: Final = 3


def word_change(mark: RouteMark) -> str:
    """Say what has changed, and of which hosts."""
    ends = listed(mark.destinations, _MOST_ENDS)
    return f"{KINDS[mark.kind]} from {mark.source} to {ends}: {mark.before} -> {mark.now}"


def word_mark(outage: Outage, mark: RouteMark) -> str:
    """Say how long before an outage the way changed, as far as looks know."""
    times = outage.times
    good = times.first_bad if times.last_good is None else times.last_good
    least, most = good - mark.first_now, times.first_bad - mark.last_before
    if least < 0:
        near = f"the way changed within {max(-least, most):.0f} s of its begin"
    elif round(least) == round(most):
        near = f"the way changed {least:.0f} s before it began"
    else:
        near = f"the way changed {least:.0f} to {most:.0f} s before it began"
    return f"{near}: {word_change(mark)}"


def word_marks(outage: Outage) -> list[str]:
    """Say what changed in the ways between its hosts, the latest change first."""
    latest = sorted(outage.marks, key=lambda one: one.first_now, reverse=True)
    return [word_mark(outage, one) for one in latest]
