"""Outages of looks: a replay in the order of time.

A flow is bad from a look that found it blocked or exposed until one that asked it and found it
good, or until the plan of a watch requires it no more. A look that was blind for it, or did not ask
it, changes nothing. Of two looks at the same time it is not known which saw a flow first: the one
neither dates nor ends what the other saw.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from netprobe.history.marks import find_marks
from netprobe.model.outage import (
    Blindness,
    Cause,
    FlowPorts,
    History,
    Interval,
    Outage,
    OutageMember,
    RouteMark,
    RunLook,
    SeenFinding,
)
from netprobe.model.ports import Ports, count, intersect, subtract
from netprobe.model.required import RequiredFlows
from netprobe.model.result import ResultKey


class _Part(Struct, eq=False):
    """Ports of one flow that are bad together; ``seen``: the last look that saw them bad."""

    key: ResultKey
    ports: Ports
    course: _Course
    last_good: float | None
    first_bad: float
    seen: RunLook
    first_good: float | None = None
    not_required_since: float | None = None

    def split(self, ports: Ports) -> _Part:
        """Give the part of these ports of it; what is left stays this one."""
        if ports == self.ports:
            return self
        self.ports = subtract(self.ports, ports)
        other = replace(self, ports=ports)
        self.course.parts.append(other)
        return other

    @property
    def times(self) -> Interval:
        """Its times, as far as they are known."""
        times = (self.last_good, self.first_bad, self.seen.begun, self.first_good)
        return Interval(*times, self.not_required_since)

    def may_end(self, look: RunLook) -> bool:
        """Whether what a look found good of it was seen after it was bad."""
        if look.retried is not None:
            return look.retried == self.seen.begun
        return look.begun >= self.seen.decided


class _Course(Struct, eq=False):
    """An outage while looks are replayed; ``seen``: the last look that saw it. ``closed``: what it
    is for good, once all of its parts have ended: none joins it then."""

    id: str
    title: str
    cause: Cause
    proof: str
    seen: RunLook | None = None
    looks: int = 0
    parts: list[_Part] = msgspec.field(default_factory=list)
    closed: Outage | None = None

    def see(self, look: RunLook) -> None:
        """Count a look, once."""
        if self.seen is not look:
            self.looks += 1
            self.seen = look


def replay(looks: Iterable[RunLook]) -> History:
    """Give the history that looks in the order of time tell."""
    state = OutageReplay()
    for look in looks:
        state.take(look)
    return state.history()


@dataclass(slots=True)
class _Standing:
    """A finding of the last look, with its parts and their outages."""

    finding: SeenFinding
    parts: list[_Part]
    courses: list[_Course] = field(init=False)

    def __post_init__(self) -> None:
        self.courses = list({id(part.course): part.course for part in self.parts}.values())


class OutageReplay:
    """A finding that is the same object in the next look costs next to nothing there, and most are.

    ``_standing``: those of the last look. ``_waiting``: open parts that it did not see.
    ``endless``: of looks in a row that are alike only the first and the last are kept in mind.
    """

    def __init__(self, *, endless: bool = False) -> None:
        self._endless = endless
        self._looks: list[RunLook] = []
        self._courses: list[_Course] = []
        self._open: dict[ResultKey, list[_Part]] = {}
        self._standing: dict[int, _Standing] = {}
        self._waiting: list[_Part] = []
        self._blind: dict[tuple[str, str], tuple[float, FlowPorts]] = {}
        self._blind_ended: list[Blindness] = []
        self._marks: list[RouteMark] = []
        self._required: RequiredFlows | None = None

    def take(self, look: RunLook) -> None:
        """Go on to the next look."""
        self._drop_flows(look)
        before, self._standing = self._standing, {}
        for finding in look.findings:
            if id(finding) in before:
                self._standing[id(finding)] = same = before.pop(id(finding))
                for part in same.parts:
                    part.seen = look
        gone = [part for one in before.values() for part in one.parts] + self._waiting
        gone = [part for part in gone if part.times.end is None]
        for finding in look.findings:
            if id(finding) not in self._standing:
                self._standing[id(finding)] = _Standing(finding, self._take_finding(look, finding))
        self._end_parts(look, [part for part in gone if part.seen is not look])
        self._waiting = [one for one in gone if one.seen is not look and one.times.end is None]
        for standing in self._standing.values():
            for course in standing.courses:
                course.see(look)
        self._take_blindness(look)
        self._marks += look.marks
        self._keep_look(look)

    def _keep_look(self, look: RunLook) -> None:
        if self._endless and len(self._looks) > 1 and _are_alike(*self._looks[-2:], look):
            self._looks.pop()
        self._looks.append(look)

    def _end_parts(self, look: RunLook, gone: Iterable[_Part]) -> None:
        """End what this look asked and found good."""
        for part in gone:
            good = look.find_good(part.key, part.ports) if part.may_end(look) else ()
            if not good:
                continue
            ended = part.split(good)
            ended.first_good = look.decided
            if ended is part:
                self._open[part.key].remove(part)

    def _drop_flows(self, look: RunLook) -> None:
        """End outages of flows that the plan no longer requires: no watch asks them again."""
        before, now = self._required, look.required or self._required
        self._required = now
        if before is None or now is None or before == now:
            return

        def is_dropped(key: ResultKey) -> bool:
            return before.has_flow(key) and not now.has_flow(key)

        for key in filter(is_dropped, list(self._open)):
            for part in self._open.pop(key):
                part.not_required_since = look.begun
        for source, (since, flows) in list(self._blind.items()):
            if all(map(is_dropped, flows)):
                self._blind_ended.append(Blindness(*source, since, look.begun))
                del self._blind[source]

    def _take_finding(self, look: RunLook, finding: SeenFinding) -> list[_Part]:
        """Let flows that are bad already go on, and new ones join the outage of most of these."""
        parts: list[_Part] = []
        new: dict[ResultKey, Ports] = {}
        for key, ports in finding.flows.items():
            rest = ports
            for part in self._go_on(key, ports, look):
                parts.append(part)
                rest = () if rest == part.ports else subtract(rest, part.ports)
            if rest:
                new[key] = rest
        if new:
            course = self._choose_course(finding, look, parts)
            # It names all flows of this cause, those that were bad already too.
            course.title, course.proof = finding.title, finding.proof
            for key, ports in new.items():
                begun = list(self._begin_parts(course, key, ports, look))
                self._open.setdefault(key, []).extend(begun)
                course.parts += begun
                parts += begun
        return parts

    def _go_on(self, key: ResultKey, ports: Ports, look: RunLook) -> Iterator[_Part]:
        """Note which ports of open outages are bad still."""
        for part in list(self._open.get(key, ())):
            same = ports if part.ports == ports else intersect(part.ports, ports)
            if not same:
                continue
            going_on = part.split(same)
            if going_on is not part:
                self._open[key].append(going_on)
            going_on.seen = look
            yield going_on

    def _choose_course(
        self, finding: SeenFinding, look: RunLook, parts: Iterable[_Part]
    ) -> _Course:
        """Give the outage of the same cause that has most of these parts, or a new one."""
        sizes: Counter[_Course] = Counter()
        for part in parts:
            if _is_same_cause(part.course.cause, finding.cause):
                sizes[part.course] += count(part.ports)
        if sizes:
            return max(sizes, key=lambda one: sizes[one])
        name = _name_outage(finding, look)
        self._courses.append(_Course(name, finding.title, finding.cause, finding.proof))
        return self._courses[-1]

    def _begin_parts(
        self, course: _Course, key: ResultKey, ports: Ports, look: RunLook
    ) -> Iterator[_Part]:
        """Begin with ports that were not bad: with the last look that saw each of them good."""
        rest = ports
        for earlier in reversed(self._looks):
            if earlier.decided > look.begun or earlier.retried is not None:
                continue
            seen = earlier.find_good(key, rest)
            if seen:
                yield _Part(key, seen, course, earlier.begun, look.decided, look)
                rest = subtract(rest, seen)
            if not rest:
                return
        yield _Part(key, rest, course, None, look.decided, look)

    def _take_blindness(self, look: RunLook) -> None:
        """A host is not blind any more where one of those flows was asked, and found out."""
        for source, (since, flows) in list(self._blind.items()):
            if source not in look.blind and any(map(look.has_asked, flows)):
                self._blind_ended.append(Blindness(*source, since, look.begun))
                del self._blind[source]
        for source, flows in look.blind.items():
            since, before = self._blind.get(source, (look.begun, flows))
            if not before.keys() >= flows.keys():
                before = {**before, **flows}
            self._blind[source] = (since, before)

    def history(self) -> History:
        """Give what all looks tell."""
        blind = [
            *self._blind_ended,
            *(Blindness(*one, since, None) for one, (since, _) in self._blind.items()),
        ]
        return History(
            tuple((look.begun, look.decided) for look in self._looks),
            tuple(
                sorted(
                    map(self._close_course, self._courses),
                    key=lambda one: (one.times.first_bad, one.id),
                )
            ),
            tuple(sorted(blind, key=lambda one: (one.since, one.host, one.reason))),
            tuple(self._marks),
        )

    def _close_course(self, course: _Course) -> Outage:
        if course.closed is not None:
            return course.closed
        outage = _make_outage(course)
        marks = find_marks(self._marks, outage.times, outage.members) if self._marks else ()
        outage = replace(outage, marks=marks)
        if not outage.is_open:
            course.closed = outage
        return outage


def _are_alike(first: RunLook, *others: RunLook) -> bool:
    """Whether looks saw the same; what a watch has seen again is the same object."""
    return all(
        one.asked is first.asked and one.findings is first.findings
        and one.blind is first.blind and one.unasked is first.unasked
        and one.required is first.required
        for one in others
    )  # fmt: skip


def _is_same_cause(one: Cause, other: Cause) -> bool:
    """The places that are left possible may differ from look to look."""
    return (one.verdict, one.reason, one.rejected_by) == (
        other.verdict,
        other.reason,
        other.rejected_by,
    )


def _name_outage(finding: SeenFinding, look: RunLook) -> str:
    """A short name that no other outage has: of the cause, the first flow, and the moment."""
    cause, ((first, ports), *_) = finding.cause, finding.flows.items()
    words = (
        *(cause.verdict, cause.reason, cause.rejected_by or ""),
        *(*first, str(ports[0][0]), str(look.begun)),
    )
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _make_outage(course: _Course) -> Outage:
    parts = sorted(course.parts, key=lambda one: (one.key, one.ports, one.first_bad))
    members = tuple(OutageMember(one.key, one.ports, one.times) for one in parts)
    first = min(parts, key=lambda one: (one.first_bad, one.last_good or 0.0))
    # What is required no longer ends an outage only where nothing else of it is left.
    stayed = [one.first_good for one in parts if one.not_required_since is None]
    left = [one.not_required_since for one in parts if one.not_required_since is not None]
    times = Interval(
        first.last_good,
        first.first_bad,
        max(one.seen.begun for one in parts),
        None if None in stayed else max((end for end in stayed if end is not None), default=None),
        None if stayed else max(left),
    )
    return Outage(course.id, course.title, course.cause, course.proof, course.looks, times, members)
