"""What this agent can do on this host: the facts of the hello line."""

import errno
import os
import resource
import socket
import sys
import time
from typing import Iterator, List, Optional, Set, Tuple

from ..wire.answers import HelloLine
from ..wire.frames import WIRE_VERSION
from .identity import addresses, links, machine

CAP_NET_BIND_SERVICE = 10
# kubelet is a process of its own, or a part of these (comm is cut to 15 characters).
KUBELETS = frozenset(("kubelet", "kubelite", "k3s", "k3s-server", "k3s-agent"))
KUBELET_PORT = 10250
LISTEN = "0A"
FIRST_PID_NAMESPACE = 0xEFFFFFFC
NODE_PORTS = (30000, 32767)
NODE_PORT_FLAG = "--service-node-port-range"
PROGRAM_FOLDERS = ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin")


def make_hello() -> HelloLine:
    """Make the hello line of this process on this host."""
    kubelet = runs_kubelet()
    return HelloLine(
        wire=WIRE_VERSION,
        python=sys.version.split()[0],
        pid=os.getpid(),
        uid=os.geteuid(),
        user=user_name(),
        hostname=socket.gethostname(),
        kernel=os.uname().release,
        net_raw=can_open(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
        low_ports=low_ports(),
        sees_owners=sees_owners(),
        nofile=raise_file_limit(),
        cores=len(os.sched_getaffinity(0)),
        echo=echo_way(),
        kubelet=kubelet,
        node_ports=node_ports() if kubelet else None,
        machine=machine(),
        addresses=addresses(),
        links=links(),
        wall_s=time.time(),
    )


def raise_file_limit() -> int:
    """Raise the soft limit of open files to the hard one; gives the limit that is then in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard
    except (ValueError, OSError):
        return soft


def user_name() -> str:
    """Give the user's name without asking LDAP or sssd, which may be slow or unreachable."""
    if os.geteuid() == 0:
        return "root"
    return os.environ.get("USER") or os.environ.get("LOGNAME") or str(os.geteuid())


def can_open(family: int, kind: int, protocol: int) -> bool:
    """Tell whether this process may open such a socket."""
    try:
        socket.socket(family, kind, protocol).close()
    except OSError:
        return False
    return True


def echo_way() -> Optional[str]:
    """How ICMP echo is possible here: datagram socket, raw socket, ping program, or not (None)."""
    if can_open(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP):
        return "datagram"
    if can_open(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP):
        return "raw"
    return None if find_program("ping") is None else "program"


def find_program(name: str) -> Optional[str]:
    """Find the program's path, wherever a distribution puts it."""
    for folder in PROGRAM_FOLDERS:
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    return None


def low_ports() -> bool:
    """Tell whether ports below 1024 can be bound."""
    start = read_text("/proc/sys/net/ipv4/ip_unprivileged_port_start")
    if start.strip().isdigit() and int(start) <= 1:
        return True
    return bool(read_rights() & (1 << CAP_NET_BIND_SERVICE))


def read_rights() -> int:
    """Read the effective capabilities of this process: bit N is the one with the number N."""
    for line in read_text("/proc/self/status").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0 if os.geteuid() else -1


def sees_owners() -> bool:
    """Tell whether this process may see whose sockets are whose (it takes CAP_SYS_PTRACE)."""
    try:
        os.listdir("/proc/1/fd")
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EPERM) and os.geteuid() == 0
    return True


def processes() -> Iterator[Tuple[int, str]]:
    """Process id and name of every process that can be seen."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            name = read_text("/proc/%s/comm" % entry).strip()
            if name:
                yield int(entry), name


def runs_kubelet() -> bool:
    """Tell whether a kubelet runs: then NodePorts live in NAT rules, which no socket shows.

    A container with the host's network and its own processes cannot see it, but its port.
    """
    if any(name in KUBELETS for _pid, name in processes()):
        return True
    return own_processes_only() and KUBELET_PORT in listening_ports()


def own_processes_only() -> bool:
    """Whether this process lives in a PID namespace of its own (the first one's inode is fixed)."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino != FIRST_PID_NAMESPACE
    except OSError:
        return False


def listening_ports() -> Set[int]:
    """Give the TCP ports that anything in this network namespace listens on."""
    ports = set()
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in read_text(path).splitlines()[1:]:
            words = line.split()
            if len(words) > 3 and words[3] == LISTEN:
                ports.add(int(words[1].rpartition(":")[2], 16))
    return ports


def node_ports() -> Tuple[int, int]:
    """Give the range of NodePorts: as a running API server was told, else Kubernetes' default."""
    for pid, name in processes():
        if name.startswith("kube-apiserver") or name in KUBELETS:
            found = flag_range(read_text("/proc/%d/cmdline" % pid).split("\0"))
            if found is not None:
                return found
    return NODE_PORTS


def flag_range(words: List[str]) -> Optional[Tuple[int, int]]:
    """The range that ``--service-node-port-range`` of a command line names (``A-B`` or ``A+N``)."""
    for at, word in enumerate(words):
        flag, _, value = word.partition("=")
        if flag != NODE_PORT_FLAG:
            continue
        value = value or (words[at + 1] if at + 1 < len(words) else "")
        for sign in "-+":
            first, found, last = value.partition(sign)
            if found and first.isdigit() and last.isdigit():
                return int(first), int(last) if sign == "-" else int(first) + int(last)
    return None


def read_text(path: str) -> str:
    """Read a small file of /proc as text; empty where it is gone or may not be read."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
