"""The hosts of ``check --hosts``: one line a host, and the cost of missing rights and ports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final, TextIO

from netprobe.model.printable import clean
from netprobe.model.result import HostReport
from netprobe.model.struct_json import to_json
from netprobe.report.page.host_keys import word_host_keys
from netprobe.report.page.page import align, write_line
from netprobe.report.page.progress import host_words
from netprobe.report.page.wording import duration, listed, plural

MOST_NAMES = 3
_HEADS = ("HOST", "AGENT", "PYTHON", "USER", "RAW", "PORTS<1024", "OWNERS", "TIME", "KERNEL")
_WORDS = {"agent": "yes", "none": "none", "failed": "FAILED", "lost": "LOST"}


def write_hosts_text(hosts: Sequence[HostReport], stream: TextIO) -> None:
    """Write the ports that are taken, the table, what to know of hosts, and a line of totals."""
    rows = [_HEADS, *(_make_row(host) for host in hosts)]
    first = [line for host in hosts for line in _word_taken(host)]
    keys = {host.name: host.host_key for host in hosts if host.host_key is not None}
    details = [line for host in hosts for line in _word_details(host)]
    details += _word_heard(hosts)
    details += [f"{one.what}. {one.to_do}" for one in word_host_keys(keys)]
    parts = [part for part in (first, align(rows), details, [_word_totals(hosts)]) if part]
    for line in [line for part in parts for line in ("", *part)][1:]:
        write_line(line, stream)


def write_hosts_json(hosts: Sequence[HostReport], stream: TextIO) -> None:
    """Write the hosts as in ``netprobe.run/1``."""
    stream.write(json.dumps({"hosts": to_json(hosts)}, indent=1) + "\n")


def _make_row(host: HostReport) -> tuple[str, ...]:
    facts = host.facts
    raw = facts.net_raw
    if raw is None and host.state == "agent":
        raw = host.privileged
    return (
        clean(host.name),
        "limited" if host.facts.sudo_failed else _WORDS[host.state],
        f"{host.python or '-'}{' (sent)' if facts.python_sent else ''}",
        host.user or "-",
        _yes_or_no(raw),
        _yes_or_no(facts.low_ports),
        _yes_or_no(facts.sees_owners),
        "-" if host.start_s is None else duration(host.start_s),
        clean(str(facts.kernel or "-")),
    )


def _yes_or_no(value: object) -> str:
    return "-" if value is None else "yes" if value else "no"


def _word_taken(host: HostReport) -> Iterator[str]:
    """Word what a run would call blocked, or could not test, before it is begun."""
    for taken in host.facts.taken or ():
        yield f"PORT TAKEN on {host.name}: {taken}"
    for held in host.facts.unasked or ():
        yield f"port held on {host.name}: {held}; a run will ask whether it is the service"
    if host.facts.other_run:
        others = "; ".join(host.facts.other_run)
        yield f"another netprobe run is active on {host.name}: {others}"


def _word_details(host: HostReport) -> Iterator[str]:
    if host.words and host.host_key is None:
        yield f"{host.name}: {host_words(host)}"
    for cost in host.cost:
        yield f"{host.name}: {cost}"
    for strange in host.facts.strange:
        yield f"{host.name}: {clean(strange)}"
    for held in host.facts.doubtful or ():
        yield f"{host.name}: port held: {held}"


def _word_heard(hosts: Sequence[HostReport]) -> Iterator[str]:
    """Word each router with virtual addresses that is none of the hosts, and which hear it."""
    names: dict[str, list[str]] = {}
    for host in hosts:
        for heard in host.facts.heard:
            names.setdefault(heard, []).append(clean(host.name))
    return (f"heard by {listed(some, MOST_NAMES)}: {clean(text)}" for text, some in names.items())


def _word_totals(hosts: Sequence[HostReport]) -> str:
    ready = sum(1 for host in hosts if host.state == "agent")
    limited = sum(host.facts.sudo_failed for host in hosts)
    but = f" ({limited} of them limited: sudo failed)" if limited else ""
    failed = sum(1 for host in hosts if host.state in ("failed", "lost"))
    destinations = sum(1 for host in hosts if host.state == "none")
    return (
        f"{plural(len(hosts), 'host')}: {ready} with an agent{but}, {failed} without, "
        f"{destinations} declared as destination only"
    )


HOSTS_WRITERS: Final = {"text": write_hosts_text, "json": write_hosts_json}
