"""Manifests on real flows: Ignition by the stub's proxy, and the proxy in the worker itself."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.lab.cli import netprobe
from tests.lab.live import EDGE, IGNITION, KONNECTIVITY, OPEN_PROXY, PROXY, World
from tests.lab.opening import open_lab

Result = Mapping[str, Any]

# As HyperShift starts it in every worker: it only forwards TCP.
NODE_LOCAL = f"""
defaults
    mode tcp
    timeout connect 2s
    timeout client 20s
    timeout server 20s
frontend local
    bind 172.20.0.1:6443
    default_backend apiserver
backend apiserver
    server apiserver {EDGE}:6443
"""
CLUSTER = f"""\
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedCluster
metadata: {{name: c1}}
spec:
  release: {{image: "quay.io/openshift-release-dev/ocp-release:4.20.3-multi"}}
  platform: {{type: KubeVirt}}
  networking: {{machineNetwork: [{{cidr: 10.88.0.0/16}}]}}
  services:
  - service: Konnectivity
    servicePublishingStrategy: {{type: Route, route: {{hostname: {KONNECTIVITY}}}}}
  - service: Ignition
    servicePublishingStrategy: {{type: Route, route: {{hostname: {IGNITION}}}}}
"""
STUB = """\
---
{"ignition":{"config":{"merge":[{"source":"https://%s/ignition"}]},
 "proxy":{"httpProxy":"http://%s","httpsProxy":"http://%s","noProxy":"%s"},"version":"3.2.0"}}
---
"""


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """The lab of live services, whose router lets no worker reach an address outside of it."""
    with open_lab(World(), "haproxy", "tinyproxy") as lab:
        yield lab


def run(world: World, stub: str, *words: str) -> dict[str, Result]:
    """The rows of a run of okd-hcp from the worker, by their ids."""
    worker = {"command": world["worker"].enter}
    inventory = world.write(
        "hosts.yaml",
        "schema: netprobe.inventory/1\nhosts:\n"
        f"  worker: {{address: 10.88.1.2, roles: [worker], vantage: {worker}}}\n"
        f"  router: {{address: {EDGE}, roles: [ocp-router], vantage: none}}\n",
    )
    files = [world.write("hc.yaml", CLUSTER), world.write("stub.yaml", stub)]
    manifests = [word for path in files for word in ("--manifest", str(path))]
    done = netprobe("run", "-m", "okd-hcp", "-i", str(inventory), *manifests, "-o", "json", *words)
    return {one["requirement"]: one for one in done.results}


def stub_with(no_proxy: str) -> str:
    """A stub whose proxy is the lab's."""
    place = f"{PROXY}:{OPEN_PROXY}"
    return STUB % (IGNITION, place, place, no_proxy)


def verdict(result: Result) -> tuple[str, str, str]:
    """What a test compares."""
    return result["verdict"], result["reason"], result["proof"]


def test_ignition_goes_through_the_proxy_of_the_stub(world: World) -> None:
    """CONNECT from the worker, past a firewall that rejects its own way; all else goes directly."""
    rows = ("worker-ignition-route", "worker-konnectivity-route", "worker-stub-proxy")
    wanted = [word for row in rows for word in ("--only", row)]
    drop = f"ip saddr 10.88.1.2 ip daddr {EDGE} tcp dport 443 reject"
    chain = "type filter hook forward priority 0"
    world["router"].nft(f"table ip wall {{ chain out {{ {chain}; {drop}; }}; }}")
    try:
        found = run(world, stub_with("host.example.org"), *wanted)
    finally:
        world["router"].nft("delete table ip wall")

    ignition = found["worker-ignition-route"]
    assert verdict(ignition) == ("pass", "syn-ack", "service")
    assert f"through http://{PROXY}:{OPEN_PROXY}" in ignition["because"]
    assert found["worker-konnectivity-route"]["verdict"] == "blocked"
    assert verdict(found["worker-stub-proxy"]) == ("pass", "syn-ack", "handshake")


@pytest.mark.full
def test_the_stubs_no_proxy_is_honoured_as_go_does(world: World) -> None:
    """A domain without a dot means the names below it too; then nobody asks the proxy."""
    found = run(world, stub_with("apps.lab.test"), "--only", "worker-ignition-route")

    ignition = found["worker-ignition-route"]
    assert verdict(ignition) == ("pass", "syn-ack", "service")
    assert "not through the proxy (no_proxy: apps.lab.test)" in ignition["warnings"][0]


@pytest.mark.full
def test_the_proxy_in_the_worker_itself(world: World) -> None:
    """172.20.0.1 is the worker's own: the API server answers behind it, or nothing is there."""
    row = ("--only", "node-local-haproxy", "--set", "phase=post-bootstrap")
    worker = world["worker"]
    worker.ip("address add 172.20.0.1/32 dev lo")
    without = run(world, stub_with(""), *row)["node-local-haproxy"]
    path = world.write("node-local.cfg", NODE_LOCAL)
    worker.spawn("haproxy", "-db", "-f", str(path), stderr=subprocess.DEVNULL)
    worker.wait_until_listening("tcp 172.20.0.1:6443")
    behind = run(world, stub_with(""), *row)["node-local-haproxy"]

    assert verdict(behind) == ("pass", "syn-ack", "service")
    assert (without["verdict"], without["reason"]) == ("blocked", "address-here")
