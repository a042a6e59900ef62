"""The verb ``accept``: what a run found, as entries of a file of accepted flows."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import date

from netprobe.cli.asked import AcceptOptions
from netprobe.cli.report import fold_failures
from netprobe.cli.result_options import read_days, read_last_day
from netprobe.cli.streams import tell
from netprobe.errors import RequestError
from netprobe.model.accepted import NEVER
from netprobe.model.exit import PASS
from netprobe.model.result import Finding, Result
from netprobe.report.outputs import OutputTarget, write_or_raise
from netprobe.report.page.wording import excuse_text, number, plural
from netprobe.report.record.reading import read_run
from netprobe.request.accepting import Consent, accept, addresses_of_run, write_accepted


def accept_verb(options: AcceptOptions) -> int:
    """Write the entries to standard output, and say on standard error what they accept."""
    consent = _read_consent(options, date.today())
    info, collector = read_run(options.run_file)
    with closing(collector):
        findings = {one.number: one for one in fold_failures(info, collector)}
        chosen = [_choose_finding(findings, given) for given in dict.fromkeys(options.findings)]
        members = {one.number: _choose_members(one) for one in chosen}
        known = addresses_of_run(collector.results())
    parts = [
        (
            f"finding {one.number} of {options.run_file}: {one.title}",
            accept(members[one.number], known, consent),
        )
        for one in chosen
    ]
    is_new = not options.append and not _stdout_has_entries()
    write_or_raise(
        [OutputTarget("yaml")],
        {"yaml": lambda stream: write_accepted(parts, stream, is_new=is_new)},
    )
    entries = sum(len(some) for _, some in parts)
    flows = sum(one.port_count for some in members.values() for one in some)
    until = "without an end" if consent.until == NEVER else f"until {consent.until}"
    words = f"{plural(flows, 'flow')} accepted {until}"
    tell(f"netprobe: {words} ({number(entries)} {'entry' if entries == 1 else 'entries'})")
    return PASS


def _read_consent(options: AcceptOptions, today: date) -> Consent:
    texts = {"reason": options.reason, "owner": options.owner, "ticket": options.ticket}
    texts = {name: text.strip() for name, text in texts.items()}
    for name, text in texts.items():
        if not text:
            raise RequestError(f"--{name}: the text is empty, expected some words")
    until = _read_until(options.until, today, read_days(options.max_acceptance))
    return Consent(**texts, since=today.isoformat(), until=until, same_place=options.same_place)


def _read_until(text: str, today: date, max_days: int) -> str:
    until = read_last_day(text, NEVER)
    if until is None:
        return NEVER
    days = (until - today).days
    if days > max_days:
        raise RequestError(
            f"--until {text}: that is in {days:,} days, expected {max_days:,} at most "
            f"(--max-acceptance), or {NEVER}"
        )
    return until.isoformat()


def _choose_finding(findings: Mapping[int, Finding], given: int) -> Finding:
    if not findings:
        raise RequestError(f"--finding {given}: this run has no finding")
    if given not in findings:
        known = "only finding 1" if len(findings) == 1 else f"findings 1 to {len(findings)}"
        raise RequestError(f"--finding {given}: this run has {known}")
    return findings[given]


def _choose_members(finding: Finding) -> Sequence[Result]:
    """Give the flows to accept. Raises RequestError for what decides nothing or nobody saw."""
    members = finding.members
    if not any(one.decides for one in members):
        why = excuse_text(members[0])
        raise RequestError(
            f"--finding {finding.number}: it does not decide the exit status anyway ({why})"
        )
    if finding.verdict == "not-tested":
        raise RequestError(
            f"--finding {finding.number}: it is not-tested, and nobody knows what would be "
            "accepted; let netprobe look first"
        )
    return members


def _stdout_has_entries() -> bool:
    """Tell whether standard output is a file with something in it: ``>> accepted.yaml``."""
    try:
        found = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0
