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
from netprobe.probe.flows.prober import Observation

# Long enough for a SYN to cross the world, shorter than the first repetition of a SYN-ACK.
SYN_MS = 600


class HalfOpenLook(Check):
    """Sends one more SYN, and looks for the half-open connection that it leaves."""

    name = "half-open"
    needs = "agent"
    probes_listeners = True

    def concerns(self, seen: Observation) -> bool:
        """Silent TCP to a listener of ours, of which nothing at the other end is known."""
        return _wants_look(seen)

    def group(self, seen: Observation) -> Hashable:
        """Each flow by itself."""
        return id(seen)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Give the flow the witness of a half-open connection where a SYN left one."""
        assert scene.round is not None
        (seen,) = group
        try:
            await scene.prober.ask(seen.task, "tcp", seen.ports, look_ms=SYN_MS)
        except AgentError:
            return group  # the source is gone; what it saw before stands
        pieces = await with_witnesses(group, scene.round)
        return [_join_witness(piece, seen.witness).noting(self.name) for piece in pieces]


def _wants_look(seen: Observation) -> bool:
    """Silent TCP to a listener of ours, of which nothing at the other end is known."""
    witness = seen.witness or Witness()
    unknown = not witness.socket and witness.capture is not False and witness.answer_left is None
    ours = seen.task.protocol == "tcp" and seen.listener.state == "ours"
    ours = ours and seen.conclusion is None
    return ours and seen.silent and unknown


def _join_witness(piece: Observation, before: Witness | None) -> Observation:
    if piece.witness is not None and piece.witness.socket and before is not None:
        sender = before.seen_from or piece.witness.seen_from
        return replace(piece, witness=replace(before, socket=True, seen_from=sender))
    return (
        piece
        if piece.witness is not None and piece.witness.socket
        else replace(piece, witness=before)
    )
