"""Who this host says that it is."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from netprobe.agent.host import identity
from netprobe.agent.host.route import has_carrier


def test_addresses_are_those_that_ip_lists() -> None:
    """Of every device and both families."""
    listed = subprocess.run(["ip", "-j", "address"], capture_output=True, text=True, check=True)
    wanted = {
        one["local"] for link in json.loads(listed.stdout) for one in link["addr_info"]
    }  # fmt: skip

    assert set(identity.addresses()) == wanted
    assert "127.0.0.1" in wanted


def test_links_are_those_that_ip_lists() -> None:
    """Loopback has none."""
    listed = subprocess.run(["ip", "-j", "link"], capture_output=True, text=True, check=True)
    every = {one.get("address", "") for one in json.loads(listed.stdout)}

    assert set(identity.links()) == {one for one in every if re.search("[1-9a-f]", one)}


def test_there_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes with IPVS have an address for each service."""
    monkeypatch.setattr(identity, "MOST", 1)

    assert len(identity.addresses()) == 1


def test_a_machine_is_one_boot_and_one_network_namespace() -> None:
    """Equal for two processes of a host."""
    code = "from netprobe.agent.host.identity import machine; print(machine())"
    other = subprocess.run(["python3", "-c", code], capture_output=True, text=True, check=True)

    assert re.fullmatch(r"[0-9a-f-]{36}/\d+", identity.machine())
    assert other.stdout.strip() == identity.machine()


def test_loopback_is_always_linked() -> None:
    """A device that is gone is not asked."""
    assert has_carrier("lo") is True
    assert has_carrier("no-such-device") is None
