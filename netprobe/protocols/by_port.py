"""Chooses the packets of a port: by ``probe:``, and by the port or protocol number."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.model.ports import Ports
from netprobe.protocols import Protocol, protocol_for


def packets(protocol: str, probe: str | None, ports: Ports) -> Iterator[tuple[Ports, Protocol]]:
    """The ports by packet. One name may mean another packet on another port (IKE: 500 and 4500).

    ``protocol`` is the block's (``tcp``, ``ipproto/4`` ...); without ports there is one packet.
    """
    number = protocol.partition("/")[2]
    if not ports:
        yield (), protocol_for(probe, None, int(number) if number else None)
        return
    by_name: dict[str, tuple[Protocol, list[tuple[int, int]]]] = {}
    for entry in ports:
        packet = protocol_for(probe, entry[0])
        by_name.setdefault(packet.name, (packet, []))[1].append(entry)
    for packet, entries in by_name.values():
        yield tuple(entries), packet
