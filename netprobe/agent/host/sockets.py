"""Every socket that listens on this host, with the processes that hold it: nothing is sent."""

import os
from typing import Dict, List, Tuple

from ..core.agent import AgentCore
from ..wire.host_messages import Sockets, SocketsOrder
from ..wire.parts import HeldSocket, SocketOwner
from .hello import own_processes_only, read_text
from .port_owners import HOLDING, Socket, read_program, read_sockets, read_table

# Where the kernel's own default is not told either.
CLIENT_PORTS = "32768 60999"


def tell_sockets(agent: AgentCore, order: SocketsOrder) -> None:
    """Answer with all TCP sockets that listen and all UDP sockets without a peer."""
    found = _list_sockets()
    holders: Dict[int, List[int]] = {one.inode: [] for _name, one in found}
    owners: List[SocketOwner] = []
    sees_all = not own_processes_only()
    for pid in sorted(int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        inodes, readable = read_sockets(pid)
        sees_all = sees_all and readable
        held = inodes.intersection(holders)
        for inode in held:
            holders[inode].append(len(owners))
        if held:
            name, groups = (read_text("/proc/%d/%s" % (pid, of)) for of in ("comm", "cgroup"))
            owners.append(SocketOwner(pid, name.strip(), read_program(pid), groups))
    # A process may have ended since: its socket is gone, and not the kernel's.
    left = {one.inode for _name, one in _list_sockets()} if [] in holders.values() else set()
    found = [(name, one) for name, one in found if holders[one.inode] or one.inode in left]
    sockets = [HeldSocket(name, one.address, one.port, holders[one.inode]) for name, one in found]
    first, last = (read_text("/proc/sys/net/ipv4/ip_local_port_range") or CLIENT_PORTS).split()
    agent.send(Sockets(order.id, sockets, owners, sees_all, (int(first), int(last))))


def _list_sockets() -> List[Tuple[str, Socket]]:
    return [(name, one) for name in ("tcp", "udp") for one in read_table(name, HOLDING[name])]
