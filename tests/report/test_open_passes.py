"""Who holds a port holds it for all: what a retry finds out of it counts for earlier passes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.report.record.open_passes import PortsFound, RetriedPorts
from tests.report.samples import PASSED, port

TAKEN = replace(
    PASSED, source="other", verdict="blocked", reason="port-taken", proof="none",
    where=("service",), because="the port is taken", holder="etcd (pid 8) on 0.0.0.0",
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "concerned"),
    [
        ({}, True),
        ({"source": "other"}, True),
        ({"destination": "other"}, False),
        ({"address": "10.9.9.9"}, False),
        ({"requirement": "other"}, False),
        ({"protocol": "udp"}, False),
        ({"port": 9000, "end_port": 9000}, False),
        ({"port": 1, "end_port": 65535}, True),
        # It showed itself to be the row's service.
        ({"proof": "service"}, False),
        ({"verdict": "blocked"}, False),
    ],
)
def test_which_passes_are_open(change: dict[str, Any], concerned: bool) -> None:
    """Those of the same row, address and port as a failure that is asked again."""
    asked = RetriedPorts([replace(PASSED, verdict="blocked", reason="no-response")])

    assert asked.concern(replace(PASSED, **change)) is concerned


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        # The same row's is held against what the retry finds.
        ({}, [(7000, 7009)]),
        ({"requirement": "other"}, [(7000, 7001), (7004, 7009)]),
        ({"matrix": "other"}, [(7000, 7001), (7004, 7009)]),
        ({"requirement": "other", "address": "10.9.9.9"}, [(7000, 7009)]),
        ({"requirement": "other", "protocol": "udp"}, [(7000, 7009)]),
        ({"requirement": "other", "proof": "service"}, [(7000, 7009)]),
        ({"requirement": "other", "verdict": "blocked"}, [(7000, 7009)]),
    ],
)
def test_open_passes_of_other_rows_are_asked_again(
    change: dict[str, Any], kept: list[tuple[int, int]]
) -> None:
    """Another row may allow the holder, or not; only the ports in question are asked."""
    asked = RetriedPorts([port(replace(PASSED, verdict="blocked"), 7002, 7003)])
    parts = asked.drop_of_other_rows(replace(port(PASSED, 7000, 7009), **change))

    assert [(one.port, one.end_port) for one in parts] == kept


def test_what_is_found_of_a_port_replaces_the_pass() -> None:
    """Port by port; what is found of flows, and of other rows, leaves it as it was."""
    found = PortsFound()
    found.note(port(TAKEN, 7002, 7003))
    silent = replace(TAKEN, reason="no-response", where=("path",))
    found.note(port(silent, 7000, 7009))
    found.note(replace(port(TAKEN, 7000, 7009), requirement="other"))

    first, *kept = found.settle(port(PASSED, 7000, 7009))

    assert (first.port, first.end_port, first.source) == (7002, 7003, PASSED.source)
    assert (first.verdict, first.reason, first.where) == ("blocked", "port-taken", ("service",))
    assert first.holder == TAKEN.holder
    assert first.because == (
        f"the port is taken (so other found now; {PASSED.source} passed before)"
    )
    assert kept == [port(PASSED, 7000, 7001), port(PASSED, 7004, 7009)]


def test_a_pass_without_ports_stays() -> None:
    """An echo has no holder."""
    echo = replace(PASSED, protocol="icmp", port=None, end_port=None)

    assert [*PortsFound().settle(echo)] == [echo]
    assert not RetriedPorts([replace(echo, verdict="blocked")]).concern(echo)
