"""Half-open connections at the destination: proof, without privilege, that a SYN arrived.

The kernel forgets one after a second where its own firewall drops the SYN-ACK (the first repetition
fails), so the look at the table comes right after a SYN.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from netprobe.errors import AgentError
from netprobe.model.evidence import Witness
from netprobe.probe.checks.arrivals import with_witnesses
from netprobe.probe.flows.listeners import Round
from netprobe.probe.flows.prober import Prober, Sighting

# Long enough for a SYN to cross the world, shorter than the first repetition of a SYN-ACK.
SYN_MS = 600


async def with_half_open(
    sightings: list[Sighting], prober: Prober, round_: Round
) -> list[Sighting]:
    """The sightings, with the witness of a half-open connection where a SYN left one.

    Raises AgentError where the destination's agent is gone.
    """
    found = [sighting for sighting in sightings if not _wanted(sighting)]
    looked = await asyncio.gather(
        *(_look(sighting, prober, round_) for sighting in sightings if _wanted(sighting))
    )
    return found + [piece for pieces in looked for piece in pieces]


def _wanted(sighting: Sighting) -> bool:
    """Silent TCP to a listener of ours, of which nothing at the other end is known."""
    witness = sighting.witness or Witness()
    unknown = not witness.socket and witness.capture is not False and witness.answer_left is None
    ours = sighting.task.protocol == "tcp" and sighting.listener.state == "ours"
    return ours and sighting.silent and unknown


async def _look(sighting: Sighting, prober: Prober, round_: Round) -> list[Sighting]:
    try:
        await prober.ask(sighting.task, "tcp", sighting.ports, look_ms=SYN_MS)
    except AgentError:
        return [sighting]  # the source is gone; what it saw before stands
    pieces = await with_witnesses([sighting], round_)
    return [_joined(piece, sighting.witness) for piece in pieces]


def _joined(piece: Sighting, before: Witness | None) -> Sighting:
    if piece.witness is not None and piece.witness.socket and before is not None:
        sender = before.seen_from or piece.witness.seen_from
        return replace(piece, witness=replace(before, socket=True, seen_from=sender))
    return (
        piece
        if piece.witness is not None and piece.witness.socket
        else replace(piece, witness=before)
    )
