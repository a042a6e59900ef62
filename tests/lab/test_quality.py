"""Ways that delay or lose packets, and what ``--quality`` says of them; the truth is that of the
kernel's ``ping`` and of counters of a firewall."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab, Namespace
from tests.needs import require

pytestmark = [pytest.mark.lab, pytest.mark.slow]

SLOW_WAY = Path(__file__).with_name("slow_way.py")
DELAY_MS = 20
FAMILIES = (4, 6)
PORT = 7001
WIRES: dict[str, dict[str, Any]] = {
    "tcp": {"tcp": [PORT]}, "udp": {"udp": [PORT]}, "icmp": {"icmp": "echo"},
}  # fmt: skip
# The packets of samples, by wire and family: what is dropped of one tells nothing of the other.
SAMPLES = {
    (wire, family): f"meta nfproto ipv{family} {rule}"
    for family in FAMILIES
    for wire, rule in {
        "tcp": f"tcp dport {PORT} tcp flags & (syn | ack) == syn",
        "udp": f"udp dport {PORT}",
        "icmp": f"icmp{'v6' if family == 6 else ''} type echo-request",
    }.items()
}


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


class MeasuredWay:
    """Two hosts with a router between them, or with a way that delays."""

    def __init__(self, lab: Lab, delay_ms: int | None = None) -> None:
        self.lab = lab
        self.a, self.b = lab.namespace("a"), lab.namespace("b")
        self.router: Namespace | None = None
        if delay_ms is None:
            self._connect_by_router()
        else:
            self._connect_slowly(delay_ms)
        lab.wait_until_ready()

    def _connect_by_router(self) -> None:
        router = self.router = self.lab.namespace("r", router=True)
        for net, host in ((1, self.a), (2, self.b)):
            self.lab.cable(host, "e0", router, f"to{net}")
            router.ip(
                f"address add 10.79.{net}.1/24 dev to{net}",
                f"address add fd79:{net}::1/64 dev to{net} nodad",
            )
            self._give_addresses(host, "e0", net)
            host.ip(f"route add default via 10.79.{net}.1", f"route add default via fd79:{net}::1")

    def _connect_slowly(self, delay_ms: int) -> None:
        require("tunnel devices")
        words = (sys.executable, str(SLOW_WAY), str(delay_ms), self.b.netns)
        started = self.a.spawn(*words, stdout=-1)
        assert started.stdout is not None
        assert started.stdout.readline() == b"ready\n"
        for net, host in ((1, self.a), (2, self.b)):
            host.ip("link set way up")
            self._give_addresses(host, "way", net)
            host.ip(f"route add 10.79.{3 - net}.0/24 dev way",
                    f"route add fd79:{3 - net}::/64 dev way")  # fmt: skip

    def _give_addresses(self, host: Namespace, device: str, net: int) -> None:
        texts = [f"10.79.{net}.2", f"fd79:{net}::2"]
        host.addresses += texts
        host.ip(
            f"address add {texts[0]}/24 dev {device}",
            f"address add {texts[1]}/64 dev {device} nodad",
        )

    def lose(self, when: str, tcp: str = "drop") -> None:
        """Let the router lose some of what goes to b, and count all of it and what is lost."""
        assert self.router is not None
        kinds = [rule for (wire, _), one in SAMPLES.items() for rule in (
            f"oifname to2 {one} counter",
            f"oifname to2 {one} {when} counter {tcp if wire == 'tcp' else 'drop'}",
        )]  # fmt: skip
        lines = "\n".join(("type filter hook forward priority 0;", *kinds))
        self.router.nft(f"table inet lab {{ chain forward {{\n{lines}\n}}\n}}")

    def count(self) -> dict[tuple[str, int], tuple[int, int]]:
        """How many packets of each kind went to b, and how many of them were lost."""
        assert self.router is not None
        listed = self.router.run("nft", "list", "table", "inet", "lab")
        numbers = [int(one) for one in re.findall(r"counter packets (\d+)", listed)]
        return dict(zip(SAMPLES, zip(numbers[::2], numbers[1::2], strict=True), strict=True))

    def ping_ms(self, family: int) -> float:
        """The shortest round trip of the kernel's own echo requests."""
        told = self.a.run("ping", "-c", "3", "-i", "0.2", self.b.address(family))
        found = re.search(r"min/avg/max/mdev = ([\d.]+)/", told)
        assert found, told
        return float(found[1])

    def run(
        self, limits: dict[str, dict[str, Any]], *words: str, agentless: bool = False
    ) -> Finished:
        """Measure the ways from a to b; there is a row of each wire for each kind of limits."""
        hosts: dict[str, Any] = {
            one.name: {
                "addresses": one.addresses, "roles": [one.name],
                "vantage": {"command": one.enter},
            }
            for one in (self.a, self.b)
        }  # fmt: skip
        if agentless:
            hosts["b"]["vantage"] = "none"
        rows = [
            {"id": f"{name}-{wire}", "from": "a", "to": "b", **ports, "quality": quality}
            for name, quality in limits.items()
            for wire, ports in WIRES.items()
        ]
        matrix = {
            "schema": "netprobe.matrix/1", "name": "m", "title": "M",
            "roles": {"a": {}, "b": {}}, "requirements": rows,
        }  # fmt: skip
        inventory = yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": hosts})
        files = (
            "-m", str(self.lab.write("matrix.yaml", json.dumps(matrix))),
            "-i", str(self.lab.write("inventory.yaml", inventory)),
        )  # fmt: skip
        return netprobe("run", "-o", "json", *words, *files)


def measured(done: Finished, name: str) -> dict[tuple[str, int], dict[str, Any]]:
    """The results of the ways of a kind of rows, by wire and family."""
    found = {
        (one["protocol"], 6 if ":" in one["address"] else 4): one
        for one in done.results
        if one["requirement"].startswith(f"{name}-") and one["requirement"].endswith("/quality")
    }
    assert {*found} == {(wire, family) for wire in WIRES for family in FAMILIES}, done.stdout
    return found


def fates(found: dict[tuple[str, int], dict[str, Any]]) -> set[tuple[str, str]]:
    return {(one["verdict"], one["reason"]) for one in found.values()}


def test_a_way_that_delays(lab: Lab) -> None:
    """Every round trip takes as long as the kernel's ping takes, by each wire and family: slow
    where the row's limit is shorter, good in the row whose limit is of something else, and the
    rows' own flows pass."""
    way = MeasuredWay(lab, DELAY_MS)
    for family in FAMILIES:
        assert way.ping_ms(family) >= 2 * DELAY_MS
    limits = {
        "short": {"rtt_p99": "30ms", "required": True},
        "kept": {"loss": "50%", "required": True},
    }
    done = way.run(limits, "--quality=30")
    slow, kept = measured(done, "short"), measured(done, "kept")
    assert fates(slow) == {("blocked", "slow")}
    assert fates(kept) == {("pass", "way-quality")}
    for (wire, _), one in (*slow.items(), *kept.items()):
        shown = one["quality"]
        assert (shown["by"], shown["samples"], shown["lost"]) == (wire, 30, 0)
        assert shown["p99_low_us"] >= 2000 * DELAY_MS
        assert sum(bar["count"] for bar in shown["bars"]) == 30
    rows = {one["verdict"] for one in done.results if "/" not in one["requirement"]}
    assert (rows, done.status) == ({"pass"}, 1)


@pytest.mark.full
@pytest.mark.parametrize("when", ["numgen inc mod 10 == 9", "numgen random mod 100 < 5"])
def test_a_way_that_loses(lab: Lab, when: str) -> None:
    """As many samples are lost as the router has dropped, by each wire and family: slow where the
    limit is smaller, and good where it is larger."""
    way = MeasuredWay(lab)
    way.lose(when)
    limits = {
        "small": {"loss": "0.5%", "required": True}, "large": {"loss": "40%", "required": True},
    }  # fmt: skip
    done = way.run({"small": limits["small"]}, "--quality=400")
    told = measured(done, "small")
    assert fates(told) == {("blocked", "slow")}
    dropped = way.count()
    for kind, one in told.items():
        lost, (whole, gone) = one["quality"]["lost"], dropped[kind]
        # Other packets are the run's probes, and SYNs that the kernel has repeated.
        assert gone - (whole - 400) <= lost <= gone, (kind, dropped)
        assert lost
    assert fates(measured(way.run({"large": limits["large"]}, "--quality=50"), "large")) == {
        ("pass", "way-quality")
    }


@pytest.mark.full
def test_refusals_are_no_losses(lab: Lab) -> None:
    """A router that refuses most connections loses nothing: as many are told of as it refused, and
    the way is good. What it drops of the others is lost."""
    way = MeasuredWay(lab)
    way.lose("limit rate over 20/second burst 5 packets", tcp="reject with tcp reset")
    limits = {"few": {"loss": "5%", "required": True}}
    done = way.run(limits, "--quality=200")
    refused = way.count()
    for kind, one in measured(done, "few").items():
        if kind[0] != "tcp":
            assert (one["verdict"], one["reason"]) == ("blocked", "slow")
            continue
        assert (one["verdict"], one["reason"]) == ("pass", "way-quality"), one
        (warning,) = one["warnings"]
        count = int(warning.split()[0])
        assert 100 < count <= refused[kind][1]
        assert "were refused, which is no loss of the way" in warning
        assert (one["quality"]["samples"], one["quality"]["lost"]) == (200 - count, 0)


@pytest.mark.full
def test_a_host_without_an_agent_and_a_port_in_use(lab: Lab) -> None:
    """Neither is dialled again and again: echo requests measure the way, and the result says why;
    where these are dropped nobody could measure."""
    way = MeasuredWay(lab)
    limits = {"kept": {"loss": "50%"}}
    for agentless, why in ((True, "b has no agent"), (False, "netprobe cannot listen on the port")):
        program = (
            f"import socket,time; s=socket.create_server(('::',{PORT}),family=socket."
            "AF_INET6,dualstack_ipv6=True); print(1, flush=True); time.sleep(600)"
        )
        if not agentless:
            started = way.b.spawn(sys.executable, "-c", program, stdout=-1)
            assert started.stdout is not None
            assert started.stdout.readline() == b"1\n"
        done = way.run(limits, "--quality=20", agentless=agentless)
        found = measured(done, "kept")
        for family in FAMILIES:
            one = found["tcp", family]
            assert (one["verdict"], one["quality"]["by"]) == ("pass", "icmp"), one
            assert why in one["because"]
    assert way.router is not None
    way.router.nft(
        "table inet deaf { chain forward { type filter hook forward priority 0;\n"
        "icmp type echo-request drop\nicmpv6 type echo-request drop\n}\n}"
    )
    found = measured(way.run(limits, "--quality=20", agentless=True), "kept")
    assert (found["tcp", 4]["verdict"], found["tcp", 4]["reason"]) == ("not-tested", "no-samples")


@pytest.mark.full
def test_a_listener_that_dies_is_no_loss(lab: Lab) -> None:
    """The agent of the destination is killed in the middle of the samples: nobody could measure,
    and nothing is slow."""
    way = MeasuredWay(lab)
    way.lose("meta mark 77")
    with ThreadPoolExecutor(1) as thread:
        limits = {"small": {"loss": "1%", "required": True}}
        running = thread.submit(way.run, limits, "--quality=1000", "--only", "small-tcp")
        while way.count()["tcp", 4][0] < 40:
            assert not running.done()
            time.sleep(0.1)
        for pid in way.b.pids():
            os.kill(pid, signal.SIGKILL)
        found = [one for one in running.result().results if "/" in one["requirement"]]
    assert {(one["verdict"], one["reason"]) for one in found} == {("not-tested", "agent-lost")}


@pytest.mark.full
def test_an_agent_that_stands_still_makes_no_way_slow(lab: Lab) -> None:
    """The agent of the destination is stopped for a second in the middle of the samples: they are
    taken once more. One that is stopped again and again leaves the row undecided."""
    way = MeasuredWay(lab)
    way.lose("meta mark 77")
    limits = {"small": {"rtt_p99": "200ms", "required": True}}

    def run_stopped(times: int) -> set[tuple[str, str]]:
        seen = way.count()["udp", 4][0]
        with ThreadPoolExecutor(1) as thread:
            running = thread.submit(way.run, limits, "--quality=300", "--only", "small-udp")
            while way.count()["udp", 4][0] < seen + 100:
                assert not running.done()
                time.sleep(0.05)
            for _ in range(times):
                for send, wait_s in ((signal.SIGSTOP, 1.0), (signal.SIGCONT, 0.5)):
                    for pid in way.b.pids():
                        os.kill(pid, send)
                    time.sleep(wait_s)
            found = [one for one in running.result().results if "/" in one["requirement"]]
            return {(one["verdict"], one["reason"]) for one in found}

    assert run_stopped(1) == {("pass", "way-quality")}
    assert run_stopped(8) == {("inconclusive", "machine-busy")}
