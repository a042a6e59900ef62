"""What a run of a part of the plan says of the rest: which flows were not probed, and why."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from netprobe.model.matrix import Expect
from netprobe.model.ports import Ports
from netprobe.model.result import Also, Verdict
from netprobe.model.shapes import LineText, Name, ProtocolText, ReasonWord, RowId

# Source, destination, first and last port (0 where the protocol has none).
StandIn = tuple[LineText, LineText, int, int]


class Unprobed(Struct, frozen=True, kw_only=True):
    """The flows of one requirement between two zones that have no result of their own.

    They are all flows from the hosts of one set to those of another at ``ports`` (none where the
    protocol has none) that were not probed; ``sources`` and ``destinations`` are places in
    ``Coverage.host_sets``, and ``flows`` is how many there are. ``verdict`` is ``covered`` where
    the flows ``by`` stand for them, whose worst verdict is ``by_verdict``; else ``not-tested``.
    ``itself``: only flows of a host to its own address.
    """

    matrix: Name
    requirement: RowId
    protocol: ProtocolText
    ports: Ports = ()
    from_zone: LineText = ""
    to_zone: LineText = ""
    sources: int = 0
    destinations: int = 0
    itself: bool = False
    flows: int = 0
    verdict: Verdict = "covered"
    reason: ReasonWord = "covered"
    because: str = ""
    by: tuple[StandIn, ...] = ()
    by_verdict: Verdict | None = None
    optional: bool = False
    waived: str | None = None
    expect: Expect = "allowed"
    also: tuple[Also, ...] = ()

    @property
    def names(self) -> tuple[tuple[Name, Name], ...]:
        """All names of the flows, each a matrix and a requirement."""
        others = ((one.matrix, one.requirement) for one in self.also)
        return ((self.matrix, self.requirement), *others)

    @property
    def decides(self) -> bool:
        """Whether these flows count for the exit status."""
        return not self.optional and self.waived is None


class Coverage(Struct, frozen=True, kw_only=True):
    """How a run covered its plan: each host to and from each zone, each port between two zones.

    ``copies`` is how often (K of ``--cover zones:K``), ``seed`` chose the pairs. ``zones`` are the
    hosts of every zone. ``pairs`` of ``all_pairs`` pairs of two different hosts, and ``probed`` of
    ``required`` flows were probed; ``completed`` of these flows were added where zones did not
    treat their members alike, which ``mixed`` names. ``strict``: what is covered is not enough.
    ``hidden``: within the largest two zones a failing block of so many sources and destinations
    would have been met with 95 %; ``single``: the share of pairs that were probed there.
    """

    copies: int = 1
    seed: int = 0
    strict: bool = False
    zones: Mapping[LineText, tuple[LineText, ...]] = field(default_factory=dict)
    pairs: int = 0
    all_pairs: int = 0
    required: int = 0
    probed: int = 0
    completed: int = 0
    hidden: tuple[int, int] = (0, 0)
    single: float = 0.0
    mixed: tuple[str, ...] = ()
    host_sets: tuple[tuple[LineText, ...], ...] = ()
    unprobed: tuple[Unprobed, ...] = ()

    @property
    def hosts(self) -> int:
        """How many hosts there are."""
        return len({name for names in self.zones.values() for name in names})

    def sources(self, group: Unprobed) -> tuple[str, ...]:
        """Give the hosts that the flows of a group start from."""
        return self.host_sets[group.sources]

    def destinations(self, group: Unprobed) -> tuple[str, ...]:
        """Give the hosts that the flows of a group go to."""
        return self.host_sets[group.destinations]
