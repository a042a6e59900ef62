"""One line for each entry of a file of accepted flows: its state, its flows, who and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from netprobe.model.accepted import EXPIRING_DAYS, NEVER, STATES, CheckedAcceptance
from netprobe.model.names import names_text
from netprobe.report.page.flow_groups import MOST_NAMES, wire_text
from netprobe.report.page.wording import number, plural


def entry_text(entry: CheckedAcceptance) -> str:
    """``active until 2027-01-31: 2 flows blocked, etcd, a → b  tcp 2380 (reason; ...) [id]``."""
    sides = f"{names_text(entry.from_, MOST_NAMES)} → {names_text(entry.to, MOST_NAMES)}"
    addresses = f" ({', '.join(entry.addresses)})" if entry.addresses else ""
    wire = wire_text([(entry.protocol, entry.ports)])
    flows = f"{entry.requirement}, {sides}{addresses}  {wire}"
    who = f"{entry.reason}; {entry.owner}, {entry.ticket}"
    return f"{_word_state(entry)}: {flows} ({who}) [{entry.id}]"


def count_due(entries: Iterable[CheckedAcceptance]) -> str:
    """``1 expired, 2 stale``: the entries that somebody has to look at; nothing without any."""
    counts = Counter(one.state for one in entries)
    due = ((counts[state], state) for state in STATES if state not in ("active", "unseen"))
    return ", ".join(f"{number(some)} {state}" for some, state in due if some)


def _word_state(entry: CheckedAcceptance) -> str:
    flows = f"{plural(entry.flows, 'flow')} {entry.verdict}"
    until = "without an end" if entry.until == NEVER else f"until {entry.until}"
    left = {0: "today", 1: "tomorrow"}.get(entry.days_left or 0, f"in {entry.days_left} days")
    near = (
        f" (ends {left})"
        if entry.days_left is not None and 0 <= entry.days_left <= EXPIRING_DAYS
        else ""
    )
    passing = f"{number(entry.passing)} of its flows {'passes' if entry.passing == 1 else 'pass'}"
    away = f"not, or not for certain, at {' or '.join(entry.where)}"
    misplaced = f"{plural(entry.elsewhere, 'flow')} {entry.verdict}, but {away}: not accepted by it"
    words = {
        "active": f"active {until}, {flows}",
        "expiring": f"expiring {until}{near}, {flows}",
        "expired": f"EXPIRED on {entry.until}, {_word_counting(entry, 'again')}",
        "not-yet": f"NOT YET, begins on {entry.since}, {_word_counting(entry, 'until then')}",
        "elsewhere": f"ELSEWHERE {until}{near}",
        "unmatched": "UNMATCHED, it matches no flow of this run, correct or delete it",
        "too-wide": f"TOO WIDE {until}{near}, {passing}, {flows}",
        "stale": f"STALE, no flow of it is {entry.verdict} any more, delete it",
        "unseen": f"not seen {until}{near}, this run cannot tell whether its flows fail",
    }
    return ", ".join([words[entry.state], *([misplaced] if entry.elsewhere else [])])


def _word_counting(entry: CheckedAcceptance, when: str) -> str:
    """Word how many flows of an entry that is not in force decide the exit status."""
    flows = f"{plural(entry.flows, 'flow')} {entry.verdict}"
    if not entry.flows:
        return f"it matches no flow {entry.verdict} in this run"
    if not entry.counting:
        return f"{flows}, accepted or excused otherwise"
    verb = "counts" if entry.counting == 1 else "count"
    some = "" if entry.counting == entry.flows else f", {number(entry.counting)} of them"
    return f"{flows}{some} {verb} {when}"
