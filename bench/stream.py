"""The coordinator's memory while evidence streams through judge, collector and spool; run alone.

Prints JSON: peak resident MB, MB after the first tenth and after the last, results, and seconds.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from netprobe.judge.verdict import Rules, judge
from netprobe.model.evidence import Evidence, Icmp, Listener, Outcome, Witness
from netprobe.model.inventory import Address, Host, Vantage
from netprobe.model.matrix import Requirement
from netprobe.model.plan import Block, Flow
from netprobe.report.record.collector import Collector

PORTS = ((30000, 32767),)
OURS = Listener("ours")
PASSED = Outcome("answer", None, answer="nonce", rtt_ms=0.4)
SILENT = Outcome("connect", "no-answer", left_host=True, packets=5, attempts=2)
REJECTED = Outcome("connect", "host-unreachable", icmp=Icmp(3, 13, "10.0.0.1", "router", 63))


def main(port_probes: int, ports_a_run: int) -> None:
    """Stream so many port probes, cut into runs of so many ports whose outcomes take turns."""
    pairs = max(1, port_probes // 2768)
    hosts = [_host(number) for number in range(round(pairs**0.5) + 1)]
    block = _block(hosts)
    collector = Collector({("bench", "nodeports", "tcp"): PORTS})
    rules = Rules()
    begun, early_mb = time.monotonic(), 0.0
    for done, (order, flow) in enumerate(_flows(block, hosts, pairs), 1):
        for evidence in _evidence(flow, ports_a_run):
            for result in judge(evidence, order, rules):
                collector.add(result)
        if done == max(1, pairs // 10):
            early_mb = _resident_mb()
    late_mb = _resident_mb()
    results = sum(1 for _ in collector.results())
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    json.dump(
        {"peak_mb": peak_mb, "early_mb": early_mb, "late_mb": late_mb, "results": results,
         "flows": collector.summary(0).counts, "s": time.monotonic() - begun},
        sys.stdout,
    )  # fmt: skip
    collector.close()


def _host(number: int) -> Host:
    address = Address(f"10.{number // 65536}.{number // 256 % 256}.{number % 256}", 4)
    return Host(f"host-{number}", (address,), ("node",), Vantage("local"))


def _block(hosts: list[Host]) -> Block:
    requirement = Requirement(
        id="nodeports", sources=("node",), destinations=("node",), tcp=PORTS, purpose="NodePorts"
    )
    ends = tuple((host, host.addresses[0]) for host in hosts)
    return Block(0, "bench", requirement, "tcp", PORTS, 4, tuple(hosts), ends)


def _flows(
    block: Block, hosts: list[Host], pairs: int
) -> Iterator[tuple[tuple[int, int, int], Flow]]:
    made = 0
    for end, destination in enumerate(hosts):
        for start, source in enumerate(hosts):
            if source is not destination and made < pairs:
                made += 1
                yield (0, start, end), Flow(block, source, destination, destination.addresses[0])


def _evidence(flow: Flow, ports_a_run: int) -> Iterator[Evidence]:
    """Mostly passes; every second run is one of two failures, so that nothing merges."""
    first, last = PORTS[0]
    for number, start in enumerate(range(first, last + 1, ports_a_run)):
        outcome = (PASSED, SILENT, PASSED, REJECTED)[number % 4]
        ports = ((start, min(last, start + ports_a_run - 1)),)
        witness = Witness(socket=outcome is PASSED)
        yield Evidence(
            flow, flow.address.text, ports, outcome=outcome, listener=OURS, witness=witness
        )


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
