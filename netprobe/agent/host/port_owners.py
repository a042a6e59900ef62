"""Which process holds which port on this host, read from /proc without binding or sending.

Every socket that listens on this host, with the processes that hold it: nothing is sent.
"""

import os
import socket
import struct
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from ..core.agent import AgentCore
from ..wire.failures import PERMISSION
from ..wire.host_messages import Sockets, SocketsOrder
from ..wire.parts import HeldPorts, HeldSocket, SocketOwner
from .hello import own_processes_only, read_text

TCP_LISTEN = 0x0A
TCP_SYN_RECV = 0x03
# A connection that is being closed: the kernel keeps its port although nobody listens.
TCP_CLOSING = frozenset((0x04, 0x05, 0x06, 0x08, 0x09, 0x0B))
UDP_UNCONNECTED = 0x07

TABLES = {"tcp": ("tcp", "tcp6"), "udp": ("udp", "udp6"), "ipproto": ("raw", "raw6")}
HOLDING = {"tcp": TCP_LISTEN, "udp": UDP_UNCONNECTED, "ipproto": UDP_UNCONNECTED}
WILDCARDS = frozenset(("0.0.0.0", "::"))
# The first pid namespace of a machine (PROC_PID_INIT_INO); a process in it sees every other.
FIRST_PID_NAMESPACE = "pid:[4026531836]"

# The kernel's name of a process, the base name of its program file, and its number.
Owner = Tuple[Optional[str], Optional[str], Optional[int]]
DELETED = " (deleted)"

# Where the kernel's own default is not told either.
CLIENT_PORTS = "32768 60999"


class Socket(NamedTuple):
    """One line of a socket table."""

    address: str
    port: int
    remote: str
    remote_port: int
    state: int
    inode: int


def read_table(proto: str, only: Optional[int] = None) -> Iterator[Socket]:
    """Read every socket of ``tcp``, ``udp`` or ``ipproto`` (there the port is the protocol number).

    ``only``: those in this state; the others, thousands of listeners, are not even decoded.
    """
    wanted = None if only is None else "%02X" % only
    for name in TABLES[proto]:
        lines = read_text("/proc/net/" + name).splitlines()
        for line in lines[1:]:
            fields = line.split()
            if len(fields) > 9 and wanted in (None, fields[3]):
                address, port = _read_endpoint(fields[1])
                remote, remote_port = _read_endpoint(fields[2])
                state, inode = int(fields[3], 16), int(fields[9])
                yield Socket(address, port, remote, remote_port, state, inode)


def _read_endpoint(text: str) -> Tuple[str, int]:
    # The kernel prints each 32-bit word of the address in the byte order of the machine.
    address, _, port = text.partition(":")
    words = [int(address[at : at + 8], 16) for at in range(0, len(address), 8)]
    raw = struct.pack("=%dI" % len(words), *words)
    if len(raw) == 4:
        return socket.inet_ntop(socket.AF_INET, raw), int(port, 16)
    if raw[:12] == b"\0" * 10 + b"\xff\xff":
        return socket.inet_ntop(socket.AF_INET, raw[12:]), int(port, 16)
    return socket.inet_ntop(socket.AF_INET6, raw), int(port, 16)


def is_loopback(address: str) -> bool:
    """Tell whether an address is reachable from its own host only."""
    return address.startswith("127.") or address == "::1"


def _match_address(bind: str, address: str) -> Optional[str]:
    """Tell how a socket on ``bind`` concerns ``address``: exact, perhaps, or None. ``loopback`` and
    ``elsewhere``: it holds the port on another address of the same family, or on all of another."""
    same_family = (":" in bind) == (":" in address)
    if bind == address or (bind in WILDCARDS and same_family):
        return "exact"
    if bind == "::":
        # It takes IPv4 too, unless it is IPv6 only. /proc does not say so; only a bind() does.
        return "perhaps"
    if not same_family:
        return "elsewhere" if bind in WILDCARDS else None
    return "loopback" if is_loopback(bind) and not is_loopback(address) else "elsewhere"


class PortHolders:
    """The sockets that hold ports, as one look at /proc found them."""

    def __init__(self, proto: str) -> None:
        self._held: Dict[int, List[Socket]] = {}
        self._closing: Set[int] = set()
        for entry in read_table(proto):
            if entry.state == HOLDING[proto]:
                self._held.setdefault(entry.port, []).append(entry)
            elif proto == "tcp" and entry.state in TCP_CLOSING:
                self._closing.add(entry.port)

    def find(self, address: str, port: int, ways: Tuple[str, ...]) -> Optional[Socket]:
        """The socket that holds ``port`` for ``address`` in one of these ways, first way first."""
        held = self._held.get(port)
        if held:
            for way in ways:
                for entry in held:
                    if _match_address(entry.address, address) == way:
                        return entry
        return None

    def is_closing(self, port: int) -> bool:
        """Tell whether only old connections (TIME_WAIT ...) keep the port."""
        return port in self._closing


def owners(inodes: Set[int]) -> Dict[int, Owner]:
    """The owners of sockets by inode, as far as this process may see.

    A socket without a process is the kernel's own (VXLAN, WireGuard, NFS) where every process of
    the machine could be looked into; else its owner is unknown.
    """
    found: Dict[int, Owner] = {}
    missing = set(inodes)
    sees_all = _read_link("/proc/self/ns/pid") == FIRST_PID_NAMESPACE
    pids = sorted(int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    for pid in pids if missing else ():
        held, readable = read_sockets(pid)
        sees_all = sees_all and readable
        for inode in held & missing:
            name = read_text("/proc/%d/comm" % pid).strip()
            found[inode] = (name or None, read_program(pid), pid)
            missing.discard(inode)
        if not missing:
            break
    for inode in missing:
        found[inode] = ("kernel" if sees_all else None, None, None)
    return found


def read_program(pid: int) -> Optional[str]:
    """Read the base name of a process's program file, also where an upgrade has replaced it."""
    try:
        path = _read_link("/proc/%d/exe" % pid)
    except OSError:
        return None
    name = path.rpartition("/")[2]
    return (name[: -len(DELETED)] if name.endswith(DELETED) else name) or None


def read_sockets(pid: int) -> Tuple[Set[int], bool]:
    """Read the inodes of a process's sockets, and whether it let itself be looked into."""
    folder = "/proc/%d/fd" % pid
    inodes = set()
    try:
        for entry in os.listdir(folder):
            target = _read_link(folder + "/" + entry)
            if target.startswith("socket:["):
                inodes.add(int(target[8:-1]))
    except OSError as error:
        return inodes, error.errno not in PERMISSION
    return inodes, True


def _read_link(path: str) -> str:
    """Tell where a link leads; empty where it is gone. Raises PermissionError."""
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return ""


def held_ports(address: str, sockets: Iterable[Tuple[int, Socket]]) -> List[HeldPorts]:
    """Held ports as the wire carries them; neighbours with one owner are one entry."""
    ordered = sorted(sockets)
    known = owners({entry.inode for _port, entry in ordered})
    items: List[HeldPorts] = []
    for port, entry in ordered:
        loopback = is_loopback(entry.address) and not is_loopback(address)
        item = HeldPorts(port, port, *known[entry.inode], entry.address, loopback)
        # The fields behind ``first`` and ``last`` say who holds them, and where.
        if items and items[-1].last == port - 1 and items[-1][2:] == item[2:]:
            items[-1] = items[-1]._replace(last=port)
        else:
            items.append(item)
    return items


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
    left = _list_sockets() if [] in holders.values() else {}
    sockets = [
        HeldSocket(name, one.address, one.port, holders[one.inode])
        for name, one in found
        if holders[one.inode] or (name, one) in left
    ]
    first, last = (read_text("/proc/sys/net/ipv4/ip_local_port_range") or CLIENT_PORTS).split()
    agent.send(Sockets(order.id, sockets, owners, sees_all, (int(first), int(last))))


def _list_sockets() -> Dict[Tuple[str, Socket], None]:
    # The kernel tells one twice where others come and go meanwhile.
    return dict.fromkeys(
        (name, one) for name in ("tcp", "udp") for one in read_table(name, HOLDING[name])
    )
