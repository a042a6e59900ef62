"""A merge: what hosts wrote, as a fleet of agents that answer from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from netprobe.batch.checked_lines import ResultsRefused
from netprobe.batch.recorded import Doubts, RecordedFleet
from netprobe.batch.request import BatchRequest
from netprobe.batch.results import HostRecording
from netprobe.batch.told import HostTold
from netprobe.batch.windows import ClockWindows
from netprobe.model.inventory import Host
from netprobe.probe.agents.fleet import TellHost


class Replay:
    """One merge. A host whose results contradict each other or break a rule has none, and all
    others are as if it had written nothing."""

    def __init__(self, request: BatchRequest, recordings: Sequence[HostRecording]) -> None:
        self._request = request
        # Why hosts whose results were read have none in the end, by their names.
        self._failed: dict[str, str] = {}
        self._recordings = self._join_recordings(recordings)
        self._told = self._look_up_all()
        self._doubts = self._choose_doubts()

    def words(self) -> list[str]:
        """Say which results end early."""
        return [f"{one.source}: {one.words}" for one in self._recordings.values() if one.words]

    def make_fleet(
        self, hosts: Sequence[Host], tell: TellHost, missing: Mapping[str, str]
    ) -> RecordedFleet:
        """Make the fleet that answers as the hosts did; ``missing``: words for who has not."""
        # An engine's words say more than that a file holds nothing.
        empty = {one.name: f"{one.source}: {one.words}" for one in self._recordings.values()}
        words = {**empty, **missing, **self._failed}
        return RecordedFleet(hosts, tell, self._request.key, self._told, words, self._doubts)

    def _join_recordings(self, recordings: Sequence[HostRecording]) -> dict[str, HostRecording]:
        """Give what each host wrote in all rounds; a copy of a file counts once."""
        known: dict[tuple[str, int], HostRecording] = {}
        for one in recordings:
            key = (one.name, one.header.round if one.header is not None else 0)
            other = known.setdefault(key, one)
            if replace(other, source=one.source) != one:
                self._failed[one.name] = (
                    f"{one.source}: is of {one.name}, and so is {other.source}; give one of them"
                )
        found: dict[str, list[HostRecording]] = {}
        for (name, _), one in sorted(known.items(), key=lambda item: item[0]):
            if name not in self._failed:
                found.setdefault(name, []).append(one)
        return {name: _join_rounds(some) for name, some in found.items()}

    def _look_up_all(self) -> dict[str, HostTold]:
        """Give what can be looked up of each host; a host that broke a rule has no results."""
        templates = {one.number: one for one in self._request.templates}
        found: dict[str, HostTold] = {}
        for name, one in list(self._recordings.items()):
            try:
                if one.hello is not None:
                    found[name] = HostTold(one, templates)
            except ResultsRefused as error:
                self._failed[name] = str(error)
                del self._recordings[name]
        return found

    def _choose_doubts(self) -> Doubts:
        if self._request.barrier != "clock":
            return lambda _source, _there: None
        windows = ClockWindows(self._recordings, self._request.hosts)
        known: dict[tuple[str, str], str | None] = {}

        def doubt(source: str, there: str) -> str | None:
            if (source, there) not in known:
                known[source, there] = windows.doubt(source, there)
            return known[source, there]

        return doubt


def _join_rounds(some: Sequence[HostRecording]) -> HostRecording:
    """Give what one host wrote in all rounds."""
    told = [one for one in some if one.hello is not None] or list(some)
    return replace(
        told[0],
        marks=tuple(mark for one in told for mark in one.marks),
        orders=tuple(order for one in told for order in one.orders),
        answers={number: found for one in told for number, found in one.answers.items()},
        is_cut=any(one.is_cut for one in told),
        words="; ".join(one.words for one in told if one.words),
    )
