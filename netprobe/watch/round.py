"""What a round saw, in the ways in which it is kept: a look of the ledger, and a run's file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from netprobe.history.looks import make_look
from netprobe.judge.findings import fold
from netprobe.model.codec import keep_findings
from netprobe.model.outage import FlowPorts, RunLook
from netprobe.model.plan import Plan
from netprobe.model.result import Finding, Result
from netprobe.model.run import RunInfo
from netprobe.report.record.collector import Collector
from netprobe.report.record.record import header_of, make_record
from netprobe.watch.blind import BlindHosts, blind_end, hide
from netprobe.watch.flows import flows_of, is_asked, is_bad, leave
from netprobe.watch.looking import LookEnd
from netprobe.watch.suspects import Suspects


def fold_results(
    info: RunInfo, failures: Iterable[Result], passes: Iterable[Result]
) -> tuple[Finding, ...]:
    """Fold failures into findings."""
    zones = {host.name: host.zone for host in info.hosts if host.zone is not None}
    return fold(failures, passes, zones, some_ports=info.some_ports)


def look_of_results(
    end: LookEnd, results: Sequence[Result], passes: Iterable[Result] = ()
) -> RunLook:
    """Make the look of a quick look's results."""
    found = fold_results(end.info, filter(is_bad, results), passes)
    return make_look((end.begun, end.decided, None), filter(is_asked, results), found)


def settle(seen: Collector, suspects: Suspects, blind: BlindHosts, into: Collector) -> Collector:
    """Collect a round's results as they are known after its suspects were asked again."""
    for one in hide(leave(seen.results(), flows_of(suspects.good)), blind):
        into.add(one)
    for one in suspects.good:
        into.add(one)
    return into


class RoundSeen(Struct, frozen=True):
    """A round: all of its results, and the flows of them that its look does not count."""

    plan: Plan
    end: LookEnd
    results: Collector
    blind: BlindHosts
    uncounted: FlowPorts

    def make_look(self, begun: float) -> RunLook:
        """Make the look of the ledger."""
        results = self.results
        bad = filter(is_bad, leave(results.failures(), self.uncounted))
        look = make_look(
            (begun, self.end.decided, None),
            filter(is_asked, results.results()),
            fold_results(self.end.info, bad, results.passes()),
            partial(blind_end, blind=self.blind),
        )
        return replace(look, unasked=self.uncounted)

    def make_record(self) -> bytes:
        """Make the file of the run. Round trips of what passes are another in each round, and are
        left out: what did not change is kept once."""
        info, results = self.end.info, self.results
        found = fold_results(info, results.failures(), results.passes())
        header = header_of(self.plan, info.started_at, live=info.live)
        timeless = map(_leave_round_trip, results.results())
        return make_record(header, timeless, replace(info, findings=keep_findings(found)))


def _leave_round_trip(result: Result) -> Result:
    return replace(result, rtt_ms=None) if result.verdict == "pass" else result
