"""Outages of looks: a replay in the order of time.

A flow is bad from a look that found it blocked or exposed until one that asked it and found it
good. A look that was blind for it, or did not ask it, changes nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from netprobe.model.outage import (
    Blindness,
    Cause,
    FlowPorts,
    History,
    Interval,
    Outage,
    OutageMember,
    RunLook,
    SeenFinding,
)
from netprobe.model.ports import Ports, count, intersect, subtract, union
from netprobe.model.result import ResultKey


@dataclass(slots=True)
class _Part:
    """Ports of one flow that are bad together."""

    key: ResultKey
    ports: Ports
    last_good: float | None
    first_bad: float
    last_bad: float
    first_good: float | None = None

    def cut(self, ports: Ports) -> _Part:
        """Give the same of these ports only."""
        times = (self.last_good, self.first_bad, self.last_bad, self.first_good)
        return _Part(self.key, ports, *times)


@dataclass(slots=True)
class _Course:
    """An outage while looks are replayed."""

    id: str
    title: str
    cause: Cause
    proof: str
    looks: int = 0
    open: dict[ResultKey, list[_Part]] = field(default_factory=dict)
    ended: list[_Part] = field(default_factory=list)


def replay(looks: Iterable[RunLook]) -> History:
    """Give the history that looks in the order of time tell."""
    state = _Replay()
    for look in looks:
        state.take(look)
    return state.history()


class _Replay:
    def __init__(self) -> None:
        self._looks: list[RunLook] = []
        self._open: list[_Course] = []
        self._ended: list[_Course] = []
        self._blind: dict[tuple[str, str], float] = {}
        self._blind_ended: list[Blindness] = []

    def take(self, look: RunLook) -> None:
        """Go on to the next look."""
        blind = _join_flows(look.blind.values())
        bad = _join_flows(one.flows for one in look.findings)
        self._end_parts(look, bad, blind)
        seen = [self._take_finding(look, finding) for finding in look.findings]
        for course in {one.id: one for some in seen for one in some}.values():
            course.looks += 1
        self._take_blindness(look)
        still = [course for course in self._open if course.open]
        self._ended += [course for course in self._open if not course.open]
        self._open = still
        self._looks.append(look)

    def _end_parts(self, look: RunLook, bad: FlowPorts, blind: FlowPorts) -> None:
        """End what this look asked and found good."""
        for course in self._open:
            for key in [key for key in course.open if key in look.asked]:
                unknown = union((bad.get(key, ()), blind.get(key, ())))
                good = subtract(look.asked[key], unknown)
                kept: list[_Part] = []
                for part in course.open.pop(key):
                    now_good = intersect(part.ports, good)
                    if now_good:
                        ended = part.cut(now_good)
                        ended.first_good = look.decided
                        course.ended.append(ended)
                    rest = subtract(part.ports, good)
                    if rest:
                        kept.append(part.cut(rest))
                if kept:
                    course.open[key] = kept

    def _take_finding(self, look: RunLook, finding: SeenFinding) -> list[_Course]:
        """Let flows that are bad already go on, and new ones join the outage of most of these.

        Give the outages that the finding is a part of.
        """
        new: dict[ResultKey, Ports] = {}
        going_on: Counter[str] = Counter()
        for key, ports in finding.flows.items():
            rest = ports
            for course in self._open:
                known = self._go_on(course, key, rest, look)
                going_on[course.id] += count(known)
                rest = subtract(rest, known)
            if rest:
                new[key] = rest
        seen = [course for course in self._open if going_on[course.id]]
        if new:
            alike = [one for one in seen if _is_same_cause(one.cause, finding.cause)]
            joined = max(alike, key=lambda one: going_on[one.id], default=None)
            joined = joined or self._begin_course(finding, look)
            for key, ports in new.items():
                joined.open.setdefault(key, []).extend(self._begin_parts(key, ports, look))
            seen.append(joined)
        return seen

    def _begin_course(self, finding: SeenFinding, look: RunLook) -> _Course:
        name = _name_outage(finding, look)
        course = _Course(name, finding.title, finding.cause, finding.proof)
        self._open.append(course)
        return course

    def _go_on(self, course: _Course, key: ResultKey, ports: Ports, look: RunLook) -> Ports:
        """Note that ports of an open outage are bad still; which they are."""
        known: list[Ports] = []
        for part in list(course.open.get(key, ())):
            same = intersect(part.ports, ports)
            if not same:
                continue
            known.append(same)
            rest = subtract(part.ports, same)
            if rest:
                course.open[key].append(part.cut(rest))
                part.ports = same
            part.last_bad = look.begun
        return union(known)

    def _begin_parts(self, key: ResultKey, ports: Ports, look: RunLook) -> Iterator[_Part]:
        """Begin with ports that were not bad: with the last look that saw each of them good."""
        rest = ports
        for earlier in reversed(self._looks):
            seen = intersect(rest, earlier.asked.get(key, ()))
            for flows in earlier.blind.values():
                seen = subtract(seen, flows.get(key, ()))
            for one in earlier.findings:
                seen = subtract(seen, one.flows.get(key, ()))
            if seen:
                yield _Part(key, seen, earlier.begun, look.decided, look.begun)
                rest = subtract(rest, seen)
            if not rest:
                return
        yield _Part(key, rest, None, look.decided, look.begun)

    def _take_blindness(self, look: RunLook) -> None:
        for source in [one for one in self._blind if one not in look.blind]:
            self._blind_ended.append(Blindness(*source, self._blind.pop(source), look.begun))
        for source in look.blind:
            self._blind.setdefault(source, look.begun)

    def history(self) -> History:
        """Give what all looks tell."""
        outages = map(_close_course, [*self._ended, *self._open])
        blind = [
            *self._blind_ended,
            *(Blindness(*one, at, None) for one, at in self._blind.items()),
        ]
        return History(
            len(self._looks),
            self._looks[0].begun if self._looks else 0.0,
            self._looks[-1].decided if self._looks else 0.0,
            tuple(sorted(outages, key=lambda one: (one.times.first_bad, one.id))),
            tuple(sorted(blind, key=lambda one: (one.since, one.host, one.reason))),
        )


def _join_flows(parts: Iterable[FlowPorts]) -> FlowPorts:
    joined: dict[ResultKey, Ports] = {}
    for flows in parts:
        for key, ports in flows.items():
            joined[key] = union((joined.get(key, ()), ports))
    return joined


def _is_same_cause(one: Cause, other: Cause) -> bool:
    """The places that are left possible may differ from look to look."""
    return (one.verdict, one.reason, one.rejected_by) == (
        other.verdict,
        other.reason,
        other.rejected_by,
    )


def _name_outage(finding: SeenFinding, look: RunLook) -> str:
    """A short name that no later outage has: of the cause, the first flow, and the moment."""
    cause, (first, *_) = finding.cause, finding.flows
    words = (cause.verdict, cause.reason, cause.rejected_by or "", *first, str(look.begun))
    return hashlib.sha256("\0".join(words).encode("utf-8")).hexdigest()[:8]


def _close_course(course: _Course) -> Outage:
    parts = [*course.ended, *(part for some in course.open.values() for part in some)]
    parts.sort(key=lambda one: (one.key, one.ports))
    members = tuple(
        OutageMember(
            one.key,
            one.ports,
            Interval(one.last_good, one.first_bad, one.last_bad, one.first_good),
        )
        for one in parts
    )
    first = min(parts, key=lambda one: (one.first_bad, one.last_good or 0.0))
    ends = [one.first_good for one in parts]
    times = Interval(
        first.last_good,
        first.first_bad,
        max(one.last_bad for one in parts),
        None if None in ends else max(end for end in ends if end is not None),
    )
    return Outage(course.id, course.title, course.cause, course.proof, course.looks, times, members)
