"""Packets of a flow as recorders kept them, for ``--evidence``; no part of the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from netprobe.model.ports import Ports


@dataclass(frozen=True, slots=True)
class EndPackets:
    """What the recorder of one end kept. ``sure``: what it did not see there did not come;
    ``left_out``: how many more packets of these flows it has."""

    host: str
    sure: bool = False
    packets: tuple[FlowPacket, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class FlowPacket:
    """One packet: the flow's port (0: it has none), when (ns of that host's own clock), where, and
    its first bytes from its network header on; ``length`` is the whole packet's."""

    port: int
    time_ns: int
    interface: str
    outgoing: bool
    length: int
    data: bytes


@dataclass(frozen=True, slots=True)
class FlowPackets:
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
