"""Chooses the packets of a port: by ``probe:``, and by the port or protocol number."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.model.matrix import AnyProbe
from netprobe.model.ports import Ports
from netprobe.protocols import Protocol, protocol_for


def packets(
    protocol: str, probe: AnyProbe | None, ports: Ports
) -> Iterator[tuple[Ports, Protocol]]:
    """Group ports by packet. One name may mean another packet on another port (IKE: 500 and 4500).

    ``protocol`` is the block's (``tcp``, ``ipproto/4`` ...); without ports there is one packet.
    """
    number = protocol.partition("/")[2]
    if not ports:
        yield (), protocol_for(probe, None, int(number) if number else None)
        return
    by_packet: dict[Protocol, list[tuple[int, int]]] = {}
    for entry in ports:
        by_packet.setdefault(protocol_for(probe, entry[0]), []).append(entry)
    for packet, entries in by_packet.items():
        yield tuple(entries), packet
