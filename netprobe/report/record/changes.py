"""Compares two runs: what became of the flows that both probed, and what one alone probed.

A run tells faults of hosts only where there are some: of a host that it has checked, it found no
other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Literal, NamedTuple

from msgspec import Struct, field

from netprobe.model.plan import CLOCK, OF_HOSTS, RESOLVER
from netprobe.model.ports import PortRange, Ports, count, divide, normalise, subtract
from netprobe.model.result import PORTLESS, Place, Result, ResultKey, State
from netprobe.model.run import RunInfo
from netprobe.report.page.flow_groups import FlowNames

FLOW_KEYS = ("matrix", "requirement", "source", "destination", "address", "protocol")
# The key that all results of one flow share, whatever their ports.
key_of: Callable[[Result], ResultKey] = attrgetter(*FLOW_KEYS)


def keys_of(result: Result) -> tuple[ResultKey, ...]:
    """Give the keys of a flow by all of its names, first the written one.

    A fault of a host is the same whichever matrix makes a run look for it.
    """
    key = key_of(result)
    if result.requirement in OF_HOSTS:
        return (key, ("", *key[1:]))
    return (key, *((*name, *key[2:]) for name in result.names[1:])) if result.also else (key,)


Class = Literal["good", "bad", "open", "untested"]


_CLASSES: dict[str, Class] = {
    "pass": "good", "blocked": "bad", "exposed": "bad", "not-tested": "untested",
    "covered": "untested",
}  # fmt: skip


class Fate(NamedTuple):
    """What became of a flow in one run; of a failure also what was seen of it, and where."""

    kind: Class
    state: State = "unknown"
    reason: str = ""
    where: tuple[Place, ...] = ()
    rejected_by: str | None = None

    def __str__(self) -> str:
        """Word a failure: ``filtered, no-response [destination, path]``."""
        by = f" by {self.rejected_by}" if self.rejected_by else ""
        return f"{self.state}, {self.reason} [{', '.join(self.where)}]{by}"


# That of a flow which a run has not.
NOT_PROBED = Fate("untested")
FAULTLESS = Fate("good")


class Fates(dict[ResultKey, Mapping[Fate, Ports]]):
    """Of every flow of a run the ports by their fate, to be found by any of its names."""

    def __init__(
        self,
        found: Mapping[ResultKey, Mapping[Fate, Ports]],
        others: Mapping[ResultKey, Iterable[ResultKey]],
    ) -> None:
        super().__init__(found)
        # By a further name of a flow the keys that are written.
        self._others = others

    def find(self, result: Result) -> tuple[ResultKey, ...]:
        """Give the keys of the flows that a result of another run is of: several in old files."""
        keys = keys_of(result)
        others = (key for name in keys for key in self._others.get(name, ()))
        return tuple(dict.fromkeys((*(key for key in keys if key in self), *others)))


# By requirement, the names of hosts.
CheckedHosts = Mapping[str, set[str]]


class Unshared(Struct):
    """The flows that one of two runs alone has probed: how many, how many failed, and their names.

    ``names`` are by matrix and requirement.
    """

    kinds: Counter[Class] = field(default_factory=Counter)
    names: dict[tuple[str, str], FlowNames] = field(default_factory=dict)

    def add(self, key: ResultKey, kind: Class, ports: Ports) -> None:
        """Count these ports of a flow."""
        matrix, requirement, source, destination, address, protocol = key
        self.kinds[kind] += count(ports)
        names = self.names.setdefault((matrix, requirement), FlowNames())
        shown = () if ports == PORTLESS else ports
        names.add_flows(source, (destination, address), protocol, shown)

    @property
    def flows(self) -> int:
        """How many flows there are."""
        return self.kinds.total()

    @property
    def failed(self) -> int:
        """How many of them are blocked or exposed."""
        return self.kinds["bad"]


class Changes(Struct):
    """Flows that both runs have probed by what became of them, and those of one run alone.

    ``otherwise`` are failures that fail in another way than before, ``moved`` those that fail at
    another place, both by what became of them then. ``unknown`` ones are inconclusive now, and
    ``decided`` are failures that were inconclusive then. ``known`` counts flows that pass and could
    not be judged before, ``unchanged`` all others.
    ``failed`` counts those that failed before, whether or not the new run has them. A flow that is
    not tested was not probed; ``lost`` counts those that failed before.
    """

    worse: list[Result] = field(default_factory=list)
    decided: list[Result] = field(default_factory=list)
    fixed: list[Result] = field(default_factory=list)
    still: list[Result] = field(default_factory=list)
    otherwise: dict[Fate, list[Result]] = field(default_factory=dict)
    moved: dict[Fate, list[Result]] = field(default_factory=dict)
    unknown: list[Result] = field(default_factory=list)
    known: int = 0
    unchanged: int = 0
    failed: int = 0
    lost: int = 0
    only_later: Unshared = field(default_factory=Unshared)
    only_earlier: Unshared = field(default_factory=Unshared)

    @property
    def compared(self) -> int:
        """How many flows both runs have probed."""
        lists = (self.worse, self.decided, self.fixed, self.still, self.unknown)
        failed = (*self.otherwise.values(), *self.moved.values())
        return sum(map(count_flows, (*lists, *failed))) + self.known + self.unchanged

    def counts(self) -> dict[str, int]:
        """Give the flows of every kind of change, worst first."""
        return {
            "worse": count_flows(self.worse),
            "decided": count_flows(self.decided),
            "unknown": count_flows(self.unknown),
            "fixed": count_flows(self.fixed),
            "otherwise": sum(map(count_flows, self.otherwise.values())),
            "moved": sum(map(count_flows, self.moved.values())),
            "still": count_flows(self.still),
            "known": self.known,
            "unchanged": self.unchanged,
            "failed": self.failed,
            "only_later": self.only_later.flows,
            "only_later_failed": self.only_later.failed,
            "only_earlier": self.only_earlier.flows,
            "only_earlier_failed": self.only_earlier.failed,
        }


def fates_of(results: Iterable[Result]) -> Fates:
    """Give what became of every flow of a run; a flow is one requirement and its two ends."""
    found: dict[ResultKey, dict[Fate, list[PortRange]]] = {}
    others: dict[ResultKey, dict[ResultKey, None]] = {}
    for result in results:
        key, *further = keys_of(result)
        ranges = found.setdefault(key, {}).setdefault(_fate_of(result), [])
        ranges.extend(result.ports or PORTLESS)
        for name in further:
            others.setdefault(name, {})[key] = None
    return Fates(
        {
            key: {fate: normalise(ranges) for fate, ranges in fates.items()}
            for key, fates in found.items()
        },
        others,
    )


def list_checked(info: RunInfo) -> CheckedHosts:
    """List, by requirement, the hosts of which a run would tell such a fault.

    It looks at hosts at its end, where it has agents of its own; files of 0.1.0 tell no faults.
    """
    if not info.complete or info.names_set is None:
        return {}
    live = {one.name for one in info.hosts if one.state == "agent" and one.start_s is not None}
    return {CLOCK: live, RESOLVER: live if info.names_set else set()}


def compare(
    old: Fates, new: Iterable[Result], checked: tuple[CheckedHosts, CheckedHosts] = ({}, {})
) -> Changes:
    """Compare flow by flow, port by port, what both runs have probed.

    ``checked``: the hosts of which the old and the new run would tell a fault.
    """
    changes = Changes()
    shared: dict[ResultKey, list[PortRange]] = {}
    before_checked, now_checked = checked
    samples: dict[str, Result] = {}
    for result in new:
        key = key_of(result)
        for part, before in cut_by_fate(result, old):
            is_first = before == NOT_PROBED and key[2] in before_checked.get(key[1], ())
            _sort_in(changes, part, FAULTLESS if is_first else before)
        for known in old.find(result):
            shared.setdefault(known, []).extend(result.ports or PORTLESS)
        samples.setdefault(result.source, result)
    for key, fates in old.items():
        is_gone = key not in shared and key[2] in samples
        if is_gone and key[2] in now_checked.get(key[1], ()):
            mended = list(_make_mended(key, fates, samples[key[2]]))
            changes.fixed += mended
            changes.failed += count_flows(mended)
            continue
        seen = normalise(shared.get(key, ()))
        for fate, ports in fates.items():
            changes.failed += count(ports) if fate.kind == "bad" else 0
            gone = subtract(ports, seen)
            if gone and fate.kind != "untested":
                changes.only_earlier.add(key, fate.kind, gone)
    return changes


def _make_mended(key: ResultKey, fates: Mapping[Fate, Ports], sample: Result) -> Iterator[Result]:
    """Make the result that a run does not write: a host has no longer the fault that it had."""
    matrix, requirement, source, destination, address, protocol = key
    for ports in fates.values():
        for first, last in ports:
            yield Result(
                order=sample.order, matrix=matrix, requirement=requirement, purpose="",
                row=sample.row, optional=False, expect="allowed", waived=None, source=source,
                destination=destination, address=address, protocol=protocol, port=first,
                end_port=last, verdict="pass", state="unknown", reason="no-fault", proof="none",
                where=(), because=f"the later run found no such fault of {source}",
            )  # fmt: skip


def cut_by_fate(result: Result, fates: Fates) -> Iterator[tuple[Result, Fate]]:
    """Cut a result where the fates of its ports in another run differ."""
    left = result.ports or PORTLESS
    for key in fates.find(result):
        for fate, former in fates[key].items():
            common, left = divide(left, former)
            for part in common:
                yield result.cut(part), fate
    for part in left:
        yield result.cut(part), NOT_PROBED


def _fate_of(result: Result) -> Fate:
    kind = _CLASSES.get(result.verdict, "open")
    if kind != "bad":
        return Fate(kind)
    return Fate(kind, result.state, result.reason, result.where, result.rejected_by)


def _sort_in(changes: Changes, result: Result, before: Fate) -> None:
    """Sort in a result by what became of its ports before; what nobody tested is left out."""
    now = _fate_of(result)
    ports = result.ports or PORTLESS
    if now.kind != "untested" and before.kind != "untested":
        _sort_in_shared(changes, result, now, before)
    elif now.kind != "untested":
        changes.only_later.add(key_of(result), now.kind, ports)
    elif before.kind != "untested":
        changes.only_earlier.add(key_of(result), before.kind, ports)
        changes.lost += result.port_count if before.kind == "bad" else 0


def _sort_in_shared(changes: Changes, result: Result, now: Fate, before: Fate) -> None:
    kinds = (before.kind, now.kind)
    if kinds == ("bad", "bad"):
        _sort_in_failure(changes, result, now, before)
    elif now.kind == "bad":
        (changes.decided if before.kind == "open" else changes.worse).append(result)
    elif kinds == ("bad", "good"):
        changes.fixed.append(result)
    elif kinds == ("open", "good"):
        changes.known += result.port_count
    elif now.kind == "open" and before.kind != "open":
        changes.unknown.append(result)
    else:
        changes.unchanged += result.port_count


def _sort_in_failure(changes: Changes, result: Result, now: Fate, before: Fate) -> None:
    if (now.where, now.rejected_by) != (before.where, before.rejected_by):
        changes.moved.setdefault(before, []).append(result)
    elif now != before:
        changes.otherwise.setdefault(before, []).append(result)
    else:
        changes.still.append(result)


def count_flows(results: Iterable[Result]) -> int:
    """Count the flows of these results: a range of ports is as many."""
    return sum(result.port_count for result in results)
