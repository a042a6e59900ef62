"""Two machines as network namespaces: a source, and a destination whose ports answer as told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import TracebackType

from tests.lab.netlab import Lab, Namespace

HERE = Path(__file__).parent
FIRST_PORT = 10001
PORTS = 10_000
SOURCE = "10.88.0.1"
GATEWAY = "10.88.0.2"
# The scanners' own ports: apart from those that are probed.
OWN_PORTS = "30001 60000"

# What a prober may do is what is measured: the kernel's own brakes on answers are off.
_UNLIMITED = (
    "net.ipv4.icmp_ratelimit=0",
    "net.ipv4.icmp_msgs_per_sec=1000000",
    "net.ipv4.icmp_msgs_burst=100000",
    "net.ipv4.tcp_max_tw_buckets=262144",
    f"net.ipv4.ip_local_port_range={OWN_PORTS}",
)


class Field:
    """The two machines; use it as a context manager.

    ``addresses`` are the destination's; each has ``ports`` ports from FIRST_PORT on. ``gateway``:
    the source reaches them by a route, and no router ever answers it.
    """

    def __init__(self, flows: int, ports: int = PORTS, *, gateway: bool = False) -> None:
        self._lab = Lab()
        self._gateway = gateway
        self.ports = min(ports, flows)
        self.last_port = FIRST_PORT + self.ports - 1
        self.addresses = [f"10.88.1.{number + 1}" for number in range(max(1, flows // ports))]
        self._loops: list[subprocess.Popen[bytes]] = []
        # The last processor: the first one serves the machine's interrupts.
        self.core = str(max(os.sched_getaffinity(0)))

    def __enter__(self) -> Field:
        self._lab.__enter__()
        self.source = self._lab.namespace("source")
        self.target = self._lab.namespace("target")
        self._lab.cable(self.source, "eth0", self.target, "eth0")
        for machine in (self.source, self.target):
            machine.run("sysctl", "-q", "-e", "-w", *_UNLIMITED)
        bits = 24 if self._gateway else 15
        self.source.ip(f"address add {SOURCE}/{bits} dev eth0")
        self.target.ip(
            f"address add {GATEWAY}/{bits} dev eth0",
            *(f"address add {text}/{bits} dev eth0" for text in self.addresses),
        )
        if self._gateway:
            self.source.ip(f"route add default via {GATEWAY}")
        self.target.nft("add table inet bench")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.calm()
        self._lab.close()

    @property
    def folder(self) -> Path:
        """Where programs of this field are built."""
        return self._lab.folder

    @property
    def flows(self) -> int:
        """How many flows there are."""
        return self.ports * len(self.addresses)

    @property
    def port_range(self) -> str:
        """The ports as scanners want them."""
        return f"{FIRST_PORT}-{self.last_port}"

    @property
    def target_mac(self) -> str:
        """The destination's hardware address, for programs that make their own frames."""
        return self.target.run("cat", "/sys/class/net/eth0/address").strip()

    @property
    def within(self) -> list[str]:
        """The words before a command that make it run on the source, on one processor."""
        return [*self.source.enter, "taskset", "-c", self.core]

    def compile(self, name: str) -> str:
        """Build one of the C programs beside this file."""
        program = self.folder / name
        subprocess.run(["gcc", "-O2", "-o", program, HERE / f"{name}.c"], check=True)
        return str(program)

    def rules(self, *lines: str) -> None:
        """The destination's firewall from now on: these lines in a chain of its input."""
        chain = "\n".join(("chain input {", "type filter hook input priority 0;", *lines, "}"))
        self.target.nft(f"delete table inet bench\ntable inet bench {{\n{chain}\n}}")

    def lose(self, percent: int) -> None:
        """Lose so many of a hundred packets, each way, from now on."""
        chains = (
            f"chain {name} {{\ntype filter hook {hook} priority {priority};\n"
            f"meta {interface} != lo numgen random mod 100 < {percent} drop\n}}"
            for name, hook, priority, interface in (
                ("there", "prerouting", -300, "iif"), ("back", "postrouting", 300, "oif")
            )
        )  # fmt: skip
        self.target.nft("table inet loss {\n" + "\n".join(chains) + "\n}")

    def heal(self) -> None:
        """Lose nothing any more."""
        self.target.nft("delete table inet loss")

    def open_doors(self) -> None:
        """Let something listen on every port."""
        doors: Namespace = self.target
        program = self.compile("doors")
        process = doors.spawn(
            program, str(FIRST_PORT), str(self.last_port),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError("the doors did not open")

    def starve(self, loops: int) -> None:
        """Busy loops on the processor that the source has."""
        words = ["taskset", "-c", self.core, "sh", "-c", "while :; do :; done"]
        self._loops = [subprocess.Popen(words) for _ in range(loops)]

    def calm(self) -> None:
        """End the busy loops."""
        for loop in self._loops:
            loop.kill()
            loop.wait()
        self._loops = []
