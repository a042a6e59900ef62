"""The kernel's answer to "how would you get there", without a subprocess."""

from __future__ import annotations

import pytest

from netprobe.agent.host.route import routed


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_host_reaches_itself_over_loopback(address: str) -> None:
    """Device, source and the device's MTU; the test of other routes needs namespaces."""
    answer = routed({"id": 3, "dst": address, "src": None})
    assert answer == {
        "t": "routed",
        "id": 3,
        "source": address,
        "dev": "lo",
        "mtu": 65536,
        "dev_mtu": 65536,
        "gateway": None,
        "failure": None,
    }


def test_a_given_source_is_kept() -> None:
    """The address that the probe starts from is the user's choice."""
    answer = routed({"id": 3, "dst": "127.0.0.1", "src": "127.0.0.2"})
    assert (answer["source"], answer["failure"]) == ("127.0.0.2", None)


def test_a_source_that_is_not_ours_fails() -> None:
    """It has a failure name and is no exception."""
    answer = routed({"id": 3, "dst": "127.0.0.1", "src": "192.0.2.1"})
    assert answer["failure"] is not None
