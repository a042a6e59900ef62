"""Half-open connections at the destination: proof, without privilege, that a SYN arrived.

The kernel forgets one after a second where its own firewall drops the SYN-ACK (the first repetition
fails), so the look at the table comes right after a SYN.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from netprobe.errors import AgentError
from netprobe.model.evidence import Witness
from netprobe.probe.checks.arrivals import with_witnesses
from netprobe.probe.checks.check import Check, Scene
from netprobe.probe.flows.prober import Sighting

# Long enough for a SYN to cross the world, shorter than the first repetition of a SYN-ACK.
SYN_MS = 600


class HalfOpenLook(Check):
    """Sends one more SYN, and looks for the half-open connection that it leaves."""

    name = "half-open"
    needs = "agent"

    def concerns(self, seen: Sighting) -> bool:
        """Silent TCP to a listener of ours, of which nothing at the other end is known."""
        return _wanted(seen)

    def group(self, seen: Sighting) -> Hashable:
        """Each flow by itself."""
        return id(seen)

    async def look(self, group: list[Sighting], scene: Scene) -> list[Sighting]:
        """Give the flow the witness of a half-open connection where a SYN left one."""
        assert scene.round is not None
        (seen,) = group
        try:
            await scene.prober.ask(seen.task, "tcp", seen.ports, look_ms=SYN_MS)
        except AgentError:
            return group  # the source is gone; what it saw before stands
        pieces = await with_witnesses(group, scene.round)
        return [_joined(piece, seen.witness).noting(self.name) for piece in pieces]


def _wanted(sighting: Sighting) -> bool:
    """Silent TCP to a listener of ours, of which nothing at the other end is known."""
    witness = sighting.witness or Witness()
    unknown = not witness.socket and witness.capture is not False and witness.answer_left is None
    ours = sighting.task.protocol == "tcp" and sighting.listener.state == "ours"
    ours = ours and sighting.no_room is None
    return ours and sighting.silent and unknown


def _joined(piece: Sighting, before: Witness | None) -> Sighting:
    if piece.witness is not None and piece.witness.socket and before is not None:
        sender = before.seen_from or piece.witness.seen_from
        return replace(piece, witness=replace(before, socket=True, seen_from=sender))
    return (
        piece
        if piece.witness is not None and piece.witness.socket
        else replace(piece, witness=before)
    )
