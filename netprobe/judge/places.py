"""Failures that may have one cause, apart where the evidence says different places."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from netprobe.model.result import Place, Result


class _Cause(Struct):
    """Failures with common places; ``places`` are those that all of them leave possible."""

    first: tuple[Place, ...]
    places: set[Place]
    members: list[Result] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)
    destinations: set[str] = field(default_factory=set)
    rejecters: dict[str, str] = field(default_factory=dict)  # by source
    last_hops: dict[tuple[str, str], str | None] = field(default_factory=dict)  # by pair

    def add(self, result: Result) -> None:
        """Take a failure, and narrow the places by what it leaves possible."""
        self.places &= self.common(result) or set()
        self.members.append(result)
        self.sources.add(result.source)
        self.destinations.add(result.destination)
        if result.rejected_by is not None:
            self.rejecters[result.source] = result.rejected_by
        pair = (result.source, result.destination)
        self.last_hops[pair] = _find_last_hop(result) or self.last_hops.get(pair)

    def common(self, result: Result) -> set[Place] | None:
        """Give the places where both may be; None where the evidence says different ones.

        One rule may stand on many hosts. But that a host's own firewall is at fault says nothing of
        another host of which less is known.
        """
        if self._is_rejected_elsewhere(result) or self._ends_elsewhere(result):
            return None
        if result.where == self.first:
            return None if self._is_chained(result) else self.places
        return {
            one for one in self.places & {*result.where} if self._is_shared(one, result)
        } or None

    def _is_rejected_elsewhere(self, result: Result) -> bool:
        """A router answers each network from its own address there, and each host from one."""
        router = result.rejected_by
        if router is None or not self.rejecters:
            return False
        known = self.rejecters.get(result.source)
        if known is not None or router in self.rejecters.values():
            return known not in (None, router)
        return not self._is_shared("path", result)

    def _ends_elsewhere(self, result: Result) -> bool:
        """Tell whether another router than here was the last that answered the same pair."""
        known = self.last_hops.get((result.source, result.destination))
        return None not in (known, last := _find_last_hop(result)) and known != last

    def _is_chained(self, result: Result) -> bool:
        """Tell whether a way goes on where another one ends: of two rules, unless it leads back."""
        follows = result.source in self.destinations or result.destination in self.sources
        return follows and not self._is_shared("path", result)

    def _is_shared(self, place: Place, result: Result) -> bool:
        at_destination = result.destination in self.destinations
        if place in ("destination", "host", "service"):
            return at_destination
        if place == "source":
            return result.source in self.sources
        back = (result.destination, result.source) in self.last_hops
        return at_destination or result.source in self.sources or back

    def nearness(self, result: Result) -> tuple[bool, bool]:
        """Give the sort key of the cause that suits best: that of its destination."""
        return (result.destination in self.destinations, result.source in self.sources)


def _find_last_hop(result: Result) -> str | None:
    """Find the router to which packets came, as far as is known: that which rejects them is one."""
    return result.last_hop or (result.rejected_by if result.where == ("path",) else None)


def split_by_place(failures: Sequence[Result]) -> list[list[Result]]:
    """Split failures so that those of each part have a place in common; first what is proven."""
    causes: list[_Cause] = []
    for result in sorted(failures, key=lambda one: (len(one.where), one.rejected_by is None)):
        able = [cause for cause in causes if cause.common(result) is not None]
        if able:
            cause = max(able, key=lambda one: one.nearness(result))
        else:
            cause = _Cause(result.where, set(result.where))
            causes.append(cause)
        cause.add(result)
    return [cause.members for cause in causes]


def common_places(members: Sequence[Result]) -> tuple[Place, ...]:
    """Give the places that all members leave possible, sorted."""
    places = set.intersection(*(set(member.where) for member in members))
    return tuple(sorted(places))
