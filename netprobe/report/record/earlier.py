"""What a run takes over from an earlier one: ``--resume`` goes on, ``--retry`` asks again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.model.codec import PlanOrder
from netprobe.model.evidence import ANSWERING
from netprobe.model.firewall import FirewallRule
from netprobe.model.plan import Block, Plan
from netprobe.model.ports import Ports, count, intersect, subtract, union, union_by_key
from netprobe.model.printable import clean, word_command
from netprobe.model.result import PORTLESS, Also, Result, ResultKey, Verdict
from netprobe.model.run import RunInfo
from netprobe.report.page.wording import listed, number, plural
from netprobe.report.record.changes import (
    Changes,
    Fates,
    cut_by_fate,
    fates_of,
    key_of,
)
from netprobe.report.record.open_passes import RetriedPorts
from netprobe.report.record.planned_flows import PlannedFlow, find_planned, plan_flows
from netprobe.report.record.record import Earlier
from netprobe.report.record.same_question import SameQuestion

# The verdicts that each option keeps; all other flows of the plan are probed.
KEEPS: Final[Mapping[str, frozenset[Verdict]]] = {
    "--resume": frozenset({"pass", "blocked", "exposed"}),
    "--retry": frozenset({"pass"}),
}


class AskedAgain(NamedTuple):
    """How many flows passed and are asked again: of other rows on ports that are asked about, of
    name and time servers, and those that this run asks or judges ``otherwise``."""

    rows: int = 0
    servers: int = 0
    otherwise: int = 0

    @property
    def words(self) -> str:
        """Say why, behind what is kept."""
        told = [
            (self.rows, "on ports that failed in other rows"),
            (self.servers, "of name or time servers, whose answers are compared"),
            (self.otherwise, "that this run may ask otherwise (addresses, rows, --live, --strict)"),
        ]
        why = ", ".join(f"{number(flows)} {what}" for flows, what in told if flows)
        return f"; asked again although they passed: {why}" if why else ""


NONE_AGAIN: Final = AskedAgain()


class TakeOver(Struct, frozen=True, dict=True):
    """An earlier run and the option (of ``KEEPS``) that says what is kept of it.

    ``live`` and ``strict`` are the options of the new run.
    """

    option: str
    earlier: Earlier
    live: bool = False
    strict: bool = False

    def kept(self, plan: Plan) -> Iterator[Result]:
        """Give the earlier results to keep, of flows that this plan has too, at their place in it.

        Where this run asks something else (other addresses at either end, a row that asks
        otherwise, ``--live``), or judges a pass by other rules, they are not kept: the flow is
        asked again. What the plan knows comes from the plan, and what was accepted or known then is
        forgotten. Raises RequestError where matrices or settings differ.
        """
        self._refuse_other_request(plan)
        planned, retried = plan_flows(plan), self.retried_ports
        same = SameQuestion(self.earlier.info, plan, live=self.live, strict=self.strict)
        kept = _KeptOnce()
        for result in self.earlier.read_results():
            flows = same.keep_answered(result, find_planned(result, planned))
            if result.verdict in KEEPS[self.option] and flows:
                # Whether another row is enough is found out anew.
                if result.any_of is not None and result.verdict != "pass":
                    continue
                for part in retried.drop_of_other_rows(result):
                    yield from kept.leave_out_known(_keep_planned(part, flows))

    def asked_again(self) -> Iterator[Result]:
        """Give what a covering plan must hold too: all of a run that covered, else what failed."""
        covered = self.earlier.info.coverage is not None
        for result in self.earlier.read_results():
            if covered or result.verdict not in KEEPS[self.option]:
                yield result

    @cached_property
    def retried_ports(self) -> RetriedPorts:
        """The ports of which a retry may find out something else than earlier passes say."""
        if self.option == "--resume":
            return RetriedPorts(())
        kept = KEEPS[self.option]
        return RetriedPorts(one for one in self.earlier.read_results() if one.verdict not in kept)

    def count_again(self, plan: Plan) -> AskedAgain:
        """Count the flows that passed and are asked again all the same, by the reason."""
        planned, retried = plan_flows(plan), self.retried_ports
        same = SameQuestion(self.earlier.info, plan, live=self.live, strict=self.strict)
        rows = servers = otherwise = 0
        for result in self.earlier.read_results():
            every = find_planned(result, planned)
            if result.verdict != "pass" or not every:
                continue
            flows = same.keep_answered(result, every)
            if not flows:
                otherwise += result.port_count
                continue
            kept = list(retried.drop_of_other_rows(result))
            rows += result.port_count - sum(part.port_count for part in kept)
            if flows[0][1].requirement.probe in ANSWERING:
                servers += sum(part.port_count for part in kept)
        return AskedAgain(rows, servers, otherwise)

    def _refuse_other_request(self, plan: Plan) -> None:
        then = {matrix.name: dict(matrix.settings) for matrix in self.earlier.info.matrices}
        now = {matrix.name: dict(matrix.settings) for matrix in plan.matrices}
        if then != now:
            raise RequestError(
                f"{self.option} {self.earlier.path}: that run is of {_name_matrices(then)}, this "
                f"one is of {_name_matrices(now)}; give the same matrices and settings, or start "
                f"without {self.option}"
            )

    @property
    def is_of_plan(self) -> bool:
        """Tell whether it is a request from before any run, which has no results to mend."""
        of_request = self.earlier.rules is not None
        return of_request and next(self.earlier.read_results(), None) is None

    def fates(self) -> Fates | None:
        """Give what became of all flows; None where no failure is asked again."""
        if self.option == "--resume" or self.is_of_plan:
            return None
        return fates_of(self.earlier.read_results())

    def word_kept(self, counts: Mapping[str, int], again: AskedAgain = NONE_AGAIN) -> str:
        """Say what is kept, in one sentence with the other option where that would help.

        ``again``: what is not kept although it passed.
        """
        told = ", ".join(f"{number(flows)} {verdict}" for verdict, flows in counts.items() if flows)
        begun = self.earlier.info.started_at or "at an unknown time"
        if self.is_of_plan:
            return f"RETRIED: what {self.earlier.path} asks for (made from a plan at {begun})"
        if self.earlier.rules is not None:
            return f"RETRIED: what {self.earlier.path} asks for (its run begun {begun})"
        words = f"{told or 'no'} of {self.earlier.path} (begun {begun}) kept, not probed again"
        words += again.words
        if self.option == "--retry":
            return f"RETRIED: {words}"
        retry = word_command(["--retry", self.earlier.path])
        return f"RESUMED: {words}; {retry} probes again what did not pass"


def word_changes(changes: Changes) -> str:
    """Say in one line what became of the flows that failed before."""
    counts = changes.counts()
    told = [
        (counts["fixed"], "pass now"),
        (counts["still"] + counts["otherwise"] + counts["moved"], "still blocked or exposed"),
        (counts["unknown"] + changes.lost, "no longer known"),
        (
            counts["only_earlier_failed"] - changes.lost,
            "outside of this selection (the exit status does not count them)",
        ),
    ]
    words = ", ".join(f"{number(flows)} {what}" for flows, what in told if flows)
    before = f"{number(counts['failed'])} failed before" + (f": {words}" if words else "")
    first = changes.only_later
    failed = f" ({number(first.failed)} blocked or exposed)" if first.failed else ""
    more = [
        (counts["worse"], "newly blocked or exposed"),
        (counts["decided"], "now decided: blocked or exposed"),
        (counts["known"], "newly known to pass"),
        (first.flows, f"probed for the first time{failed}"),
    ]
    return "; ".join([before, *(f"{number(flows)} {what}" for flows, what in more if flows)])


class Baseline(Struct, frozen=True):
    """An earlier run that the new one is held against; with ``only_new`` its failures are known.

    ``name``: its file, or what else a reader knows it by.
    """

    name: str
    info: RunInfo
    fates: Fates
    only_new: bool

    def refuse_other_matrices(self, plan: Plan) -> None:
        """Raises RequestError where it and the plan share no matrix: all would seem new."""
        then = [matrix.name for matrix in self.info.matrices]
        now = [matrix.name for matrix in plan.matrices]
        if not set(then) & set(now):
            raise RequestError(
                f"--baseline {self.name}: that run is of {clean(', '.join(then))}, this "
                f"one is of {clean(', '.join(now))}; give a run of the same matrix"
            )

    def mark(self, result: Result) -> Iterator[Result]:
        """Give the result, cut where some of its ports fail in the baseline and others do not."""
        if not self.only_new or result.verdict not in ("blocked", "exposed"):
            yield result
            return
        for part, before in cut_by_fate(result, self.fates):
            yield replace(part, known=self.name) if before.kind == "bad" else part

    def word_changes(self, changes: Changes) -> str:
        """Say in one line what is new since the baseline."""
        counts, first = changes.counts(), changes.only_later
        same = counts["still"] + counts["otherwise"] + counts["moved"]
        moved = f" ({number(counts['moved'])} moved)" if counts["moved"] else ""
        told = [
            f"{number(counts['worse'] + counts['decided'] + first.failed)} newly blocked or "
            "exposed",
            f"{number(same)} still{moved}",
            f"{number(counts['fixed'])} fixed",
        ]
        more = [
            (counts["unknown"], "no longer known"),
            (counts["only_earlier"], "not probed by this run"),
            (first.flows, "not probed by the baseline"),
        ]
        told += [f"{number(flows)} {what}" for flows, what in more if flows]
        begun = self.info.started_at or "at an unknown time"
        return f"BASELINE: {self.name} (begun {begun}): {', '.join(told)}"


def done_ports(results: Iterable[Result]) -> dict[ResultKey, Ports]:
    """Give the ports of these results, for every flow; () for protocols without ports."""
    return union_by_key((key_of(result), result.ports) for result in results)


class _KeptOnce:
    """Flows that an earlier run has twice, by two names that are one flow of this plan."""

    def __init__(self) -> None:
        self._ports: dict[ResultKey, Ports] = {}

    def leave_out_known(self, results: Iterable[Result]) -> Iterator[Result]:
        """Give the results without the ports that an earlier one of the flow has."""
        for result in results:
            if not result.also:
                yield result
                continue
            key, ports = key_of(result), result.ports or PORTLESS
            known = self._ports.get(key, ())
            yield from map(result.cut, subtract(ports, known))
            self._ports[key] = union((known, ports))


def _keep_planned(result: Result, flows: PlannedFlow) -> Iterator[Result]:
    """Give what the plan asks for of an earlier result, with what the plan says of it."""
    rows: dict[tuple[str, str, str, tuple[Also, ...]], list[tuple[PlanOrder, Block]]] = {}
    same = [one for one in flows if one[1].requirement.purpose == result.purpose]
    for one in same or flows:
        block = one[1]
        row = (block.matrix, block.requirement.id, block.requirement.purpose, block.also)
        rows.setdefault(row, []).append(one)
    for some in rows.values():
        yield from _keep_of_row(result, some)


def _keep_of_row(result: Result, flows: Sequence[tuple[PlanOrder, Block]]) -> Iterator[Result]:
    """Give what blocks of one row ask for of an earlier result."""
    order, block = flows[0]
    requirement = block.requirement
    asked_again = requirement.probe in ANSWERING and result.verdict == "pass"
    if asked_again:
        return
    kept = replace(
        result,
        order=order,
        matrix=block.matrix,
        requirement=requirement.id,
        also=block.also,
        purpose=requirement.purpose,
        row=requirement.row,
        optional=requirement.optional,
        stops=requirement.weight,
        waived=block.waiver.reason if block.waiver else None,
        accepted=None,
        known=None,
    )
    ports = union(block.ports for _, block in flows)
    yield from map(kept.cut, intersect(kept.ports or PORTLESS, ports or PORTLESS))


def _name_matrices(matrices: Mapping[str, Mapping[str, object]]) -> str:
    told = "; ".join(
        f"{name} ({', '.join(f'{key}={_word_value(value)}' for key, value in settings.items())})"
        for name, settings in matrices.items()
    )
    return clean(told)


def _word_value(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


_MOST_RULES = 8


def rule_notes(rules: Sequence[FirewallRule], results: Iterable[Result]) -> Iterator[str]:
    """Give one sentence on all that are done, and one on each that is not."""
    counts = _count_by_rule([rule for rule in rules if not rule.answers], results)
    done = [name for name, some in counts.items() if some.total() and some.total() == some["pass"]]
    if done:
        yield f"done: {listed(done, _MOST_RULES)} of the request"
    for name in [name for name in counts if name not in done]:
        yield f"not done: {name} of the request: {_word_counts(counts[name])}"


def _count_by_rule(
    rules: Sequence[FirewallRule], results: Iterable[Result]
) -> dict[str, Counter[str]]:
    by_pair: dict[tuple[str, str, str], list[FirewallRule]] = {}
    for rule in rules:
        hosts = dict.fromkeys(end.host for end in rule.sources)
        for source, end in product(hosts, rule.destinations):
            by_pair.setdefault((source, end.host, end.address), []).append(rule)
    counts: dict[str, Counter[str]] = {rule.id: Counter() for rule in rules}
    for result in results:
        for rule in by_pair.get((result.source, result.destination, result.address), ()):
            counts[rule.id][result.verdict] += _count_in_rule(rule, result)
    return counts


def _count_in_rule(rule: FirewallRule, result: Result) -> int:
    if rule.protocol != result.protocol:
        return 0
    return count(intersect(rule.ports, result.ports)) if result.ports else 1


def _word_counts(counts: Counter[str]) -> str:
    if not counts.total():
        return "none of its flows is in this plan"
    told = ", ".join(
        f"{number(flows)} {verdict}" for verdict, flows in sorted(counts.items()) if flows
    )
    return f"{told} of {plural(counts.total(), 'flow')}"
