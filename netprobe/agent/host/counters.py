"""What the kernel counts of this host's packets; reading it needs no right.

``/proc/net/snmp`` and ``snmp6`` count a packet in ``InReceives`` before any rule of the firewall
and in ``InDelivers`` behind the last one; on its way out in ``OutRequests`` before the rules and in
``OutTransmits``, which older kernels lack, behind them (docs/network-facts.md, section 6).
``/proc/net/dev`` counts what comes in by a device.
"""

import errno
import socket
from typing import Dict, List, Optional, Tuple

from ..core.agent import AgentCore
from ..net.binding import family_of
from ..wire.host_messages import PacketCounts, PacketCountsOrder

Counters = Dict[str, int]


def tell_packet_counts(agent: AgentCore, order: PacketCountsOrder) -> None:
    """Answer with the counts of the address's family; nothing where the kernel does not say."""
    try:
        answer = PacketCounts(order.id, *count_packets(family_of(order.dst)))
    except (OSError, ValueError, KeyError):
        answer = PacketCounts(order.id, None, None, None)
    agent.send(answer)


def count_packets(family: int) -> Tuple[int, Optional[int], int]:
    """Count the packets that were stopped here on their way in, and on their way out (None on
    older kernels), and the segments that TCP got, of both families. Raises OSError, ValueError or
    KeyError where the kernel does not say."""
    known = _read_pairs("/proc/self/net/snmp")
    name, forwarded = "Ip.", "ForwDatagrams"
    if family == socket.AF_INET6:
        name, forwarded = "Ip6", "OutForwDatagrams"
        with open("/proc/self/net/snmp6") as file:
            known.update((one, int(value)) for one, value in map(str.split, file))
    sent_on = known[name + forwarded]
    taken = known[name + "InDelivers"] + known[name + "InUnknownProtos"] + sent_on
    transmitted = known.get(name + "OutTransmits")
    held = None
    if transmitted is not None:
        held = max(0, known[name + "OutRequests"] + sent_on - transmitted)
    return max(0, known[name + "InReceives"] - taken), held, known["Tcp.InSegs"]


def _read_pairs(path: str) -> Counters:
    """Read lines in pairs: the names of a protocol's counters, and below them their values."""
    known: Counters = {}
    with open(path) as file:
        lines: List[List[str]] = [line.split() for line in file]
    for names, values in zip(lines[::2], lines[1::2]):
        protocol = names[0][:-1] + "."
        known.update((protocol + name, int(one)) for name, one in zip(names[1:], values[1:]))
    return known


def count_loopback_packets() -> int:
    """Count the packets that came in by the loopback device so far. Raises OSError."""
    with open("/proc/self/net/dev") as file:
        for line in file:
            device, _, numbers = line.partition(":")
            if device.strip() == "lo":
                return int(numbers.split()[1])
    raise OSError(errno.ENODEV, "no device lo")
