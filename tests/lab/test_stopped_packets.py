"""Drops at each place, and agents without any right at both ends: kernels count what they stop.

source - router-1 - router-2 - destination. The accuracy lab asks the same of agents one drop at a
time; here several are there at once, and one port is open.
"""

from __future__ import annotations

import pytest

from tests.lab.netlab import Lab
from tests.lab.test_truth import INPUT, THERE, Chain, table

pytestmark = pytest.mark.lab

OUTPUT = "filter hook output priority 0"
RAW = "filter hook prerouting priority -300"
FORWARD = "filter hook forward priority 0"
OPEN = 7009
# Where the packets of a port are dropped (machine and chain), whether these are the answers, and
# the place.
DROPS = {
    7000: ("destination", INPUT, "dport", "destination"),
    7001: ("destination", OUTPUT, "sport", "destination"),
    7002: ("source", INPUT, "sport", "source"),
    7003: ("router_1", FORWARD, "dport", "path"),
    7004: ("router_2", FORWARD, "sport", "return-path"),
    7005: ("source", RAW, "sport", "source"),
    7006: ("destination", RAW, "dport", "destination"),
}


# On a busy machine counters may tell nothing.
@pytest.mark.alone
@pytest.mark.parametrize(
    ("family", "ports"),
    [
        (4, (7000, 7002, 7003)),
        pytest.param(6, (7002,), marks=pytest.mark.full),
        pytest.param(4, (7001, 7004), marks=pytest.mark.full),
        pytest.param(6, (7000, 7003), marks=pytest.mark.full),
        pytest.param(6, (7001,), marks=pytest.mark.full),
        pytest.param(4, (7002,), marks=pytest.mark.full),
        pytest.param(6, (7005,), marks=pytest.mark.full),
        pytest.param(4, (7006,), marks=pytest.mark.full),
    ],
)
def test_every_drop_is_placed_without_any_right(family: int, ports: tuple[int, ...]) -> None:
    """Each port by itself; datagrams take the same ways."""
    with Lab() as lab:
        chain = Chain(lab)
        for port in ports:
            machine, hook, side, _ = DROPS[port]
            rule = table(hook, f"wall{port}", f"tcp {side} {port} drop")
            getattr(chain, machine).nft(rule)
        there = {family: THERE[family]}

        results = chain.run({"tcp": [*ports, OPEN]}, agent=True, there=there, rights=False)

    address = THERE[family]
    assert results[address, OPEN]["verdict"] == "pass"
    found = {port: results[address, port]["where"] for port in ports}
    assert found == {port: [DROPS[port][3]] for port in ports}
