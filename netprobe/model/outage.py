"""Outages as intervals with error bars: what a history tells of required flows over time.

Times are seconds since 1970, UTC. The true start of an outage lies between ``last_good`` and
``first_bad``, its true end between ``last_bad`` and ``first_good``. A look is dated by its first
packet where it saw a flow good last or bad last, and by its end where it saw it bad or good first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from netprobe.model.ports import Ports, intersect, subtract
from netprobe.model.required import RequiredFlows
from netprobe.model.result import Place, ResultKey, Verdict

# Flows by key; ``PORTLESS`` stands for the one of a protocol without ports.
FlowPorts = Mapping[ResultKey, Ports]
MarkKind = Literal["next-hop", "hops", "path-mtu"]


class Cause(Struct, frozen=True):
    """What stops flows: the parts of a finding that stay the same from look to look."""

    verdict: Verdict
    reason: str
    where: tuple[Place, ...]
    rejected_by: str | None


class SeenFinding(Struct, frozen=True):
    """A finding of one look, with its flows."""

    title: str
    cause: Cause
    proof: str
    flows: FlowPorts


class RouteMark(Struct, frozen=True):
    """The way from a source changed, between two moments: ``before`` was seen last, then ``now``.

    ``kind``: ``next-hop`` (the gateway, or the device where there is none), ``hops`` (how many
    routers an answer has passed), ``path-mtu`` (bytes). ``destinations``: those for which it
    changed in the same manner.
    """

    kind: MarkKind
    source: str
    destinations: tuple[str, ...]
    last_before: float
    first_now: float
    before: str
    now: str

    def concerns(self, one: str, other: str) -> bool:
        """Whether it is on the way from one of these hosts to the other, or back."""
        pairs = ((one, other), (other, one))
        return any(self.source == a and b in self.destinations for a, b in pairs)


class RunLook(Struct, frozen=True):
    """One run over required flows: when, which flows it asked, and which did not pass.

    ``blind``: the flows of which it found nothing out, by source host and reason. ``retried``: when
    the run began of which it kept what passed, and asked again what did not; else None. ``marks``:
    routes that have changed since the look before. ``unasked``: flows of ``asked`` that it did not
    ask, such as outages that others look at; so ``asked`` stays the same from look to look.
    ``required``: what the plan of a watch requires; None of other runs, and of looks at a part.
    """

    begun: float
    decided: float
    asked: FlowPorts
    findings: tuple[SeenFinding, ...]
    blind: Mapping[tuple[str, str], FlowPorts]
    retried: float | None = None
    marks: tuple[RouteMark, ...] = ()
    unasked: FlowPorts = {}
    required: RequiredFlows | None = None

    def has_asked(self, key: ResultKey) -> bool:
        """Tell whether it asked this flow, on a port at least."""
        return bool(subtract(self.asked.get(key, ()), self.unasked.get(key, ())))

    def find_good(self, key: ResultKey, ports: Ports) -> Ports:
        """Give those of these ports that it asked and found good."""
        good = intersect(ports, self.asked.get(key, ()))
        if not good:
            return ()
        for flows in (self.unasked, *self.blind.values(), *(one.flows for one in self.findings)):
            good = subtract(good, flows.get(key, ()))
        return good


class Interval(Struct, frozen=True):
    """Four times of an outage; ``last_good`` None: never seen good before, ``first_good`` None:
    never seen good again. ``not_required_since``: it was bad when its hosts or requirements left
    the plan of a watch."""

    last_good: float | None
    first_bad: float
    last_bad: float
    first_good: float | None
    not_required_since: float | None = None

    @property
    def end(self) -> float | None:
        """When it was over, as far as looks know; None: it goes on."""
        return self.not_required_since if self.first_good is None else self.first_good


class OutageMember(Struct, frozen=True):
    """A flow, or a range of ports, of an outage, with its own times."""

    key: ResultKey
    ports: Ports
    times: Interval


class Outage(Struct, frozen=True):
    """An outage: one cause over time. ``id`` stays the same while it lasts; ``looks`` saw it.

    ``marks``: routes between its hosts that changed shortly before it began, or as it did.
    """

    id: str
    title: str
    cause: Cause
    proof: str
    looks: int
    times: Interval
    members: tuple[OutageMember, ...]
    marks: tuple[RouteMark, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether it goes on, as far as the last look knows."""
        return self.times.end is None

    @property
    def requirements(self) -> tuple[str, ...]:
        """The requirements that it stops, sorted."""
        return tuple(sorted({member.key[1] for member in self.members}))


class Blindness(Struct, frozen=True):
    """A time in which flows of a source could not be looked at; ``until`` None: it goes on."""

    host: str
    reason: str
    since: float
    until: float | None


class History(Struct, frozen=True):
    """What looks tell together. ``looks``: when each began and ended."""

    looks: tuple[tuple[float, float], ...]
    outages: tuple[Outage, ...]
    blind: tuple[Blindness, ...]
    marks: tuple[RouteMark, ...] = ()

    @property
    def begin(self) -> float | None:
        """When the first look began; None without any."""
        return min((begun for begun, _ in self.looks), default=None)

    @property
    def end(self) -> float | None:
        """When the last look ended; None without any."""
        return max((decided for _, decided in self.looks), default=None)
