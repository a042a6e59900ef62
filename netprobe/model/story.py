"""The story of a flow: where the recorders of both ends saw its packets, place by place.

The trail of one flow: an entry for every check, which tells what the check saw.

A run leaves it in the evidence. ``explain`` and the Konnectivity diagnosis print steps, which have
words and facts.

Packets of a flow as recorders kept them, for ``--evidence``; no part of the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from netprobe.model.ports import Ports
from netprobe.model.shapes import AddressText, LineText
from netprobe.model.struct_json import Nanoseconds

Sight = Literal["yes", "no", "unknown"]

# ``ok``: nothing against the flow · ``bad``: here the flow fails · ``doubt``: something is odd ·
# ``not-needed``: nothing to check here · ``not-possible``: nobody could check, the words say why
TrailStatus = Literal["ok", "bad", "doubt", "not-needed", "not-possible"]

Facts = Mapping[str, Any]  # Any: JSON values


class EndPackets(Struct, frozen=True):
    """What the recorder of one end kept. ``sure``: what it did not see there did not come;
    ``left_out``: how many more packets of these flows it has."""

    host: str
    sure: bool = False
    packets: tuple[FlowPacket, ...] = ()
    left_out: int = 0


class FlowPacket(Struct, frozen=True):
    """One packet: the flow's port (0: it has none), when (ns of that host's own clock), where, and
    its first bytes from its network header on; ``length`` is the whole packet's."""

    port: int
    time_ns: int
    interface: str
    outgoing: bool
    length: int
    data: bytes


class FlowPackets(Struct, frozen=True):
    """What both ends kept of some flows that did not pass; ``ports`` are those of the flows, and
    ``asked`` those of them that the ends were asked for."""

    address: str
    protocol: str
    ports: Ports
    asked: Ports
    source: EndPackets
    destination: EndPackets


# Takes the packets of some flows.
Keep = Callable[[FlowPackets], None]


class StoryPlace(Struct, frozen=True):
    """What was seen at one place: ``count`` packets of a port (the most, of several ports), the
    first of them at ``first_ns`` of that host's own clock, with this TTL, at this interface."""

    seen: Sight = "unknown"
    count: int = 0
    first_ns: Nanoseconds | None = None
    interface: str | None = None
    ttl: int | None = None


class StoryError(Struct, frozen=True):
    """ICMP errors about the flow, or resets of it (``type`` None) in the name of ``sender``.

    ``quoted`` is the packet that they are about, as ``tcp 443``. ``left``: the recorder of this
    host saw them leave; None: nobody saw that. ``not_left``: this host, in whose name they came,
    did not send them, by the word of its recorder. ``arrived``: they came to the source's
    interface.
    """

    sender: AddressText
    type: int | None
    code: int | None
    ttl: int
    count: int
    quoted: str = ""
    left: LineText | None = None
    not_left: LineText | None = None
    arrived: bool = True


UNKNOWN = StoryPlace()


class Story(Struct, frozen=True):
    """The six places in the order in which a request and its answer pass them.

    ``source_out``: the request left the source · ``destination_in``: it came to the destination's
    interface, before its firewall · ``socket``: it reached a socket there · ``destination_out``:
    the answer left, after its firewall · ``source_in``: the answer came to the source's
    interface · ``prober``: it reached the prober. A recorder's "no" counts only where it lost
    nothing and did see another packet of that source.
    """

    source_out: StoryPlace = UNKNOWN
    destination_in: StoryPlace = UNKNOWN
    socket: StoryPlace = UNKNOWN
    destination_out: StoryPlace = UNKNOWN
    source_in: StoryPlace = UNKNOWN
    prober: StoryPlace = UNKNOWN
    errors: tuple[StoryError, ...] = ()

    def places(self) -> Iterator[tuple[str, StoryPlace]]:
        """Give the places with their names in JSON, as ``source-out``."""
        for key, name in NAMES_OF_PLACES.items():
            yield name, getattr(self, key)

    def settled(self) -> Story:
        """Give the story in which a later "yes" makes an earlier "no" unknown.

        What came to the source says nothing of the destination: somebody else may have sent it.
        """
        changes: dict[str, Any] = {}
        passed: set[str] = set()
        for name in reversed(NAMES_OF_PLACES):
            place: StoryPlace = getattr(self, name)
            if place.seen == "yes":
                passed.add(name)
            elif place.seen == "no" and passed & _LATER[name]:
                changes[name] = replace(place, seen="unknown")
        return replace(self, **changes)


_AT_DESTINATION = frozenset(("destination_in", "socket", "destination_out"))
# Where a "yes" means that a packet must have passed a place before.
_LATER: dict[str, frozenset[str]] = {
    "source_out": _AT_DESTINATION | {"source_in"},
    "destination_in": _AT_DESTINATION,
    "socket": _AT_DESTINATION,
    "destination_out": frozenset(),
    "source_in": frozenset(("prober",)),
    "prober": frozenset(),
}
# The name in JSON of each place of a story, in their order.
NAMES_OF_PLACES = {name: name.replace("_", "-") for name in _LATER}


class TrailEntry(Struct, frozen=True):
    """What one check saw of a flow; ``name`` is the check's own.

    ``note`` is one of ``model/notes.py``, or an answer of the wire;
    ``elapsed_ms`` how long it took (0 where nobody measured).
    """

    name: str
    status: TrailStatus = "ok"
    note: NamedTuple | None = None
    elapsed_ms: int = 0

    def facts(self) -> dict[str, Any]:
        """Give the note for programs; a field with its default was not looked at."""
        if self.note is None:
            return {}
        defaults = self.note._field_defaults
        given = self.note._asdict().items()
        return {name: one for name, one in given if name not in defaults or one != defaults[name]}


class Step(Struct, frozen=True):
    """One step on a page: ``words`` are sentences for people, ``facts`` the same for programs."""

    name: str
    status: TrailStatus = "ok"
    words: tuple[str, ...] = ()
    facts: Facts = field(default_factory=dict)
    elapsed_ms: int = 0

    @property
    def is_skipped(self) -> bool:
        """Whether nobody looked: it was not needed, or not possible."""
        return self.status in ("not-needed", "not-possible")
