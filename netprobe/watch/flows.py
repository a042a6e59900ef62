"""Results by their flows and ports: a watch keeps some, takes some away, and asks some again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from netprobe.model.outage import FlowPorts
from netprobe.model.plan import ABOUT_HOSTS
from netprobe.model.ports import Ports, divide, union_by_key
from netprobe.model.result import PORTLESS, Result, ResultKey
from netprobe.report.record.changes import key_of

BAD = ("blocked", "exposed")
# A held port is the service, however the row before the installation is judged.
_NO_OUTAGES = ("port-taken",)


def flows_of(results: Iterable[Result]) -> dict[ResultKey, Ports]:
    """Give the flows of results."""
    return union_by_key((key_of(one), one.ports or PORTLESS) for one in results)


def pick(results: Iterable[Result], flows: FlowPorts) -> Iterator[Result]:
    """Give the parts of results that are of these flows."""
    for one in results:
        yield from map(one.cut, divide(one.ports or PORTLESS, flows.get(key_of(one), ()))[0])


def leave(results: Iterable[Result], flows: FlowPorts) -> Iterator[Result]:
    """Give the parts of results that are of no such flow."""
    for one in results:
        yield from map(one.cut, divide(one.ports or PORTLESS, flows.get(key_of(one), ()))[1])


def is_asked(result: Result) -> bool:
    """Tell whether a result is one of a look: faults of hosts are of no flow."""
    return result.requirement not in ABOUT_HOSTS and result.reason not in _NO_OUTAGES


def is_bad(result: Result) -> bool:
    """Tell whether a result may be an outage."""
    return result.verdict in BAD and is_asked(result)
