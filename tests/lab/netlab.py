"""Labs of network namespaces: hosts, routers, firewalls, processes; all gone when a lab closes.

Works as root and as the root of a user namespace (see ``userns``). Nothing of a lab is visible in
the machine's own network: cables run from namespace to namespace.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import ipaddress
import itertools
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.patience import PATIENCE_S

NETNS_FOLDER = Path("/run/netns")
CLONE_NEWNET = 0x40000000
# Only what fails waits that long; a machine that is busy with other labs is slow.
STOP_S = 5.0
# Debian keeps these programs out of an ordinary user's PATH.
SYSTEM_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
# linux/if_addr.h, linux/sockios.h, linux/if.h
IFA_F_TENTATIVE = 0x40
SIOCSIFFLAGS = 0x8914
IFF_UP = 1

NOBODY = 65534
FIRST_EPHEMERAL_PORT = 60001

_HOST_SYSCTLS = (
    "net.ipv6.conf.all.disable_ipv6=0",
    "net.ipv6.conf.default.disable_ipv6=0",
    # Duplicate address detection would keep every IPv6 address unusable for a second or two.
    "net.ipv6.conf.all.accept_dad=0",
    "net.ipv6.conf.default.accept_dad=0",
    "net.ipv6.conf.default.dad_transmits=0",
    "net.ipv4.conf.all.rp_filter=0",
    "net.ipv4.conf.default.rp_filter=0",
    # Ephemeral ports apart from all that matrices require (60000 is the highest), so that a rule
    # for one port never meets the other end of another flow. Holds for IPv6 too.
    f"net.ipv4.ip_local_port_range={FIRST_EPHEMERAL_PORT} 65535",
)
_ROUTER_SYSCTLS = ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")


class LabError(RuntimeError):
    """The machine did not let the lab be built; the text has the command and its words."""


def find_program(name: str) -> str | None:
    """Where a program is, also in the folders of the system administrator."""
    return shutil.which(name) or shutil.which(name, path=SYSTEM_PATH)


def run(
    *argv: str, text: str | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; where it fails under ``check``, raise LabError with its words."""
    program = find_program(argv[0])
    if program is None:
        raise LabError(f"{argv[0]}: no such program")
    done = subprocess.run(
        [program, *argv[1:]], input=text, capture_output=True, text=True, check=False
    )
    if check and done.returncode:
        words = (done.stderr or done.stdout).strip()
        raise LabError(f"{' '.join(argv)}: {words}\n{text or ''}".rstrip())
    return done


def become_nobody() -> None:
    """Become another user in a process of its own; OSError where the kernel refuses that."""
    subprocess.run(["true"], user=NOBODY, group=NOBODY, extra_groups=[], check=True)


@functools.cache
def without_root() -> list[str]:
    """Words before a program that would become another user, where there is only one user.

    It runs as an ordinary user, who owns what is that one's, in a namespace of its own.
    """
    try:
        become_nobody()
    except OSError:
        return ["unshare", f"--map-user={NOBODY}", f"--map-group={NOBODY}"]
    return []


def unprivileged() -> list[str]:
    """Words before a command that has no right; root without any where there is only one user."""
    if without_root():
        return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def family_of(address: str) -> int:
    """4 or 6."""
    return ipaddress.ip_address(address).version


@dataclass(eq=False)
class Namespace:
    """One machine of a lab. ``name`` is the lab's word for it, ``netns`` the kernel's."""

    name: str
    netns: str
    addresses: list[str] = field(default_factory=list)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def enter(self) -> list[str]:
        """The words before a command that make it run here."""
        return ["ip", "netns", "exec", self.netns]

    def address(self, family: int) -> str:
        """Its first address of a family."""
        return next(text for text in self.addresses if family_of(text) == family)

    def ip(self, *lines: str) -> None:
        """Carry out lines of ``ip`` here, in one process."""
        run("ip", "-n", self.netns, "-batch", "-", text="\n".join(lines) + "\n")

    def run(self, *argv: str, text: str | None = None, check: bool = True) -> str:
        """Run a command here to its end and give what it printed."""
        return run(*self.enter, *argv, text=text, check=check).stdout

    def spawn(self, *argv: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start a process here that lives until the lab closes."""
        program = find_program(argv[0]) or argv[0]
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(
            [find_program("ip") or "ip", *self.enter[1:], program, *argv[1:]],
            start_new_session=True,
            **options,
        )
        self.processes.append(process)
        return process

    def spawn_daemon(self, *argv: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start a program that gives up root: where nobody else exists, it is not root at all."""
        words = without_root()
        if words:
            self.run("sysctl", "-q", "-w", "net.ipv4.ip_unprivileged_port_start=0")
        return self.spawn(*words, *argv, **options)

    def inside(self, work: Callable[[], Any]) -> Any:
        """Call something that is in this network while it runs, and give what it gives.

        The kernel moves single threads between networks, and this one ends with the call. What it
        starts is in this network too, with the machine's own /sys: that costs less than ``run``.
        """

        def enter() -> Any:
            _enter_netns(NETNS_FOLDER / self.netns)
            return work()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(enter).result()

    def nft(self, rules: str) -> None:
        """Load nftables rules here, beside those that are loaded already."""
        self.inside(lambda: run("nft", "-f", "-", text=rules.strip() + "\n"))

    def socket(self, family: int, kind: int, number: int = 0) -> socket.socket:
        """A socket that lives in this namespace, for use from the calling process."""
        made: socket.socket = self.inside(lambda: socket.socket(family, kind, number))
        return made

    def pids(self) -> list[int]:
        """The processes that run here, whoever started them."""
        return _processes_in([self])

    def listening(self) -> set[str]:
        """What is bound here, as ``tcp 10.0.0.1:53``: listening TCP, all UDP and raw sockets."""
        words = ("ss", "-H", "-t", "-u", "-w", "-l", "-n", "-a")
        lines = self.inside(lambda: run(*words)).stdout.splitlines()
        bound = set()
        for line in lines:
            words = line.split()
            if words[0] != "tcp" or words[1] == "LISTEN":
                bound.add(f"{words[0]} {words[4]}")
        return bound

    def wait_until_listening(self, *places: str) -> None:
        """Wait for sockets such as ``tcp 10.0.0.1:53`` to be there."""
        wait_for(
            lambda: set(places) <= self.listening(), f"{', '.join(places)} to listen on {self.name}"
        )


class Lab:
    """A set of namespaces with cables between them; use it as a context manager."""

    def __init__(self) -> None:
        self.prefix = f"np-{os.getpid()}-{next(_LAB_NUMBERS)}-"
        self.namespaces: dict[str, Namespace] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        sweep()
        try:
            self.build()
        except BaseException:
            self.close()
            raise
        return self

    def build(self) -> None:
        """Build what a kind of lab always has; here nothing."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __getitem__(self, name: str) -> Namespace:
        return self.namespaces[name]

    def close(self) -> None:
        """Remove everything, whatever state the lab is in; harmless when called twice."""
        _remove_all(self.namespaces.values())
        self.namespaces.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    @property
    def folder(self) -> Path:
        """A private folder that goes with the lab."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix=self.prefix)
        return Path(self._folder.name)

    def namespace(self, name: str, *, router: bool = False) -> Namespace:
        """A machine without cables; its loopback is up."""
        if name in self.namespaces:
            raise LabError(f"{name} is in the lab already")
        namespace = Namespace(name, self.prefix + name)
        self.namespaces[name] = namespace
        run("ip", "netns", "add", namespace.netns)
        namespace.inside(lambda: _set_up(_ROUTER_SYSCTLS if router else ()))
        return namespace

    def cable(self, left: Namespace, left_device: str, right: Namespace, right_device: str) -> None:
        """A cable between two machines; both ends are up and have no address yet."""
        peer = f"peer name {right_device} netns {right.netns}"
        left.ip(f"link add {left_device} type veth {peer}", f"link set {left_device} up")
        right.ip(f"link set {right_device} up")

    def router(self, name: str, *addresses: str) -> Namespace:
        """A router; it answers ICMP from these addresses."""
        router = self.namespace(name, router=True)
        router.addresses.extend(addresses)
        router.ip(*(f"address add {text}/{_bits(text)} dev lo nodad" for text in addresses))
        return router

    def host(self, name: str, router: Namespace, *addresses: str) -> Namespace:
        """A host on a cable of its own to the router, so that all its traffic crosses it."""
        host = self.namespace(name)
        device = f"v{len(self.namespaces)}"
        self.cable(host, "eth0", router, device)
        router.ip(f"address add fe80::1/64 dev {device} nodad")
        for text in addresses:
            self._attach(host, router, device, text)
        return host

    def _attach(self, host: Namespace, router: Namespace, device: str, text: str) -> None:
        """Give a host one address and both ends the routes to each other.

        Every address is a network of its own behind a gateway, as clouds do it: hosts of one zone
        have neighbouring addresses and still meet the router's firewall.
        """
        bits = _bits(text)
        host.addresses.append(text)
        host.ip(f"address add {text}/{bits} dev eth0 nodad")
        if family_of(text) == 6:
            host.ip("route replace default via fe80::1 dev eth0")
        else:
            host.ip(f"route replace default via {router.address(4)} dev eth0 onlink")
        router.ip(f"route add {text}/{bits} dev {device}")

    def wait_until_ready(self) -> None:
        """Wait until no IPv6 address of any machine is tentative."""
        for namespace in self.namespaces.values():
            wait_for(lambda ns=namespace: not _tentative(ns), f"the addresses of {namespace.name}")

    def write(self, name: str, text: str) -> Path:
        """A file in the lab's folder, readable by its owner only."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return path

    def inventory(
        self,
        roles: Mapping[str, Sequence[str]],
        *,
        settings: Mapping[str, object] | None = None,
        without_agent: Iterable[str] = (),
        overrides: Mapping[str, dict[str, object]] | None = None,
    ) -> Path:
        """An inventory file of these hosts, each reached by ``ip netns exec``.

        ``without_agent`` are destinations only; ``overrides`` replaces keys of single hosts.
        """
        hosts: dict[str, object] = {}
        for name, its_roles in roles.items():
            host = self.namespaces[name]
            vantage: object = {"command": host.enter}
            entry: dict[str, object] = {
                "addresses": list(host.addresses),
                "roles": list(its_roles),
                "vantage": "none" if name in without_agent else vantage,
            }
            hosts[name] = entry | (overrides or {}).get(name, {})
        document = {
            "schema": "netprobe.inventory/1",
            "settings": dict(settings or {}),
            "hosts": hosts,
        }
        return self.write("inventory.yaml", yaml.safe_dump(document, sort_keys=False))


def sweep(kind: str = "np") -> list[str]:
    """Remove the namespaces of labs whose process is gone, which a killed test run leaves.

    Gives their names; ``kind`` is what the names of such labs begin with.
    """
    found = [
        re.fullmatch(rf"{kind}-(\d+)-\d+-.+", entry.name)
        for entry in NETNS_FOLDER.glob(f"{kind}-*")
    ]
    names = [one[0] for one in found if one and not Path("/proc", one[1]).exists()]
    if names:
        _remove_all([Namespace("stale", name) for name in names])
    return names


def wait_for(condition: Any, what: str, limit_s: float = PATIENCE_S) -> None:
    """Poll until ``condition()`` holds; after ``limit_s`` raise LabError that names ``what``."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise LabError(f"waited {limit_s:g} s for {what}")
        time.sleep(0.02)


_LAB_NUMBERS = itertools.count(1)


def _bits(text: str) -> int:
    return ipaddress.ip_address(text).max_prefixlen


def _tentative(namespace: Namespace) -> bool:
    """Whether an IPv6 address is not usable yet: the fifth word of its line are its flags."""
    lines = namespace.inside(Path("/proc/thread-self/net/if_inet6").read_text).splitlines()
    return any(int(line.split()[4], 16) & IFA_F_TENTATIVE for line in lines)


def _set_up(more: Sequence[str]) -> None:
    """Give the network of this thread its settings, and a loopback that is up."""
    for setting in (*_HOST_SYSCTLS, *more):
        name, _, value = setting.partition("=")
        Path("/proc/sys", *name.split(".")).write_text(value)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def _processes_in(namespaces: Iterable[Namespace]) -> list[int]:
    """The processes whose network is one of these."""
    networks = set()
    for namespace in namespaces:
        with contextlib.suppress(FileNotFoundError):
            networks.add((NETNS_FOLDER / namespace.netns).stat().st_ino)
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        # Some end while we look, some are another user's.
        with contextlib.suppress(OSError):
            if (entry / "ns/net").stat().st_ino in networks:
                found.append(int(entry.name))
    return found


def _remove_all(namespaces: Collection[Namespace]) -> None:
    """End what runs in namespaces, and remove them."""
    for process in (process for one in namespaces for process in one.processes):
        _stop(process)
    for pid in _processes_in(namespaces):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    lines = (f"netns delete {one.netns}\n" for one in namespaces)
    run("ip", "-force", "-batch", "-", text="".join(lines), check=False)


def _enter_netns(path: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with path.open("rb") as handle:
        if libc.setns(handle.fileno(), CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
