"""Ways back that are broken at the destination: nobody blames its firewall for them.

source - router-1 - router-2 - destination, as in ``test_truth``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.netlab import Lab
from tests.lab.test_truth import INPUT, THERE, Chain, table

pytestmark = pytest.mark.lab

FLOWS = {"tcp": [6443, 10250], "udp": [8285], "icmp": "echo"}


@pytest.fixture
def chain() -> Iterator[Chain]:
    """A chain of its own for every test."""
    with Lab() as lab:
        yield Chain(lab)


@pytest.fixture(
    params=[True, pytest.param(False, marks=pytest.mark.full)], ids=["captures", "no rights"]
)
def rights(request: pytest.FixtureRequest) -> bool:
    """Whether the agents may capture."""
    return bool(request.param)


def _places(found: dict[Any, Any]) -> dict[Any, Any]:
    return {key: (one["verdict"], tuple(one["where"])) for key, one in found.items()}


def _way_back(found: dict[Any, Any], family: int, *, rights: bool = True) -> None:
    mine = {key: one for key, one in found.items() if key[0] == THERE[family]}
    assert len(mine) == 4
    # Of what no socket saw nobody can tell without a recorder whether it came.
    vague = set() if rights else {("blocked", ("path", "return-path"))}
    assert set(_places(mine).values()) - vague == {("blocked", ("return-path",))}, mine


def test_a_gateway_that_answers_no_neighbour_request_is_the_way_back(
    chain: Chain, rights: bool
) -> None:
    """The destination's gateway does not exist: answers never leave it, and no firewall acts."""
    chain.destination.ip(
        "route replace default via 10.94.3.77", "route replace default via fd94:3::77"
    )

    found = chain.run(FLOWS, agent=True, rights=rights)

    for family in (4, 6):
        _way_back(found, family, rights=rights)
    assert all("10.94.3.77" in one["because"] for key, one in found.items() if key[0] == THERE[4])
    assert not any("firewall" in one["because"] for one in found.values())


def test_no_route_back_is_the_way_back(chain: Chain, rights: bool) -> None:
    """The destination knows its own network only."""
    chain.destination.ip("route del default via 10.94.3.1", "route del default via fd94:3::1")

    found = chain.run(FLOWS, agent=True, rights=rights)

    for family in (4, 6):
        _way_back(found, family, rights=rights)
    assert not any("firewall" in one["because"] for one in found.values())


@pytest.mark.parametrize("where", ["all", pytest.param("l3", marks=pytest.mark.full)])
def test_a_strict_reverse_path_filter_is_named(chain: Chain, rights: bool, where: str) -> None:
    """What comes in by one device of the destination, and would be answered by another."""
    far = chain.destination
    chain.lab.cable(far, "other", chain.lab.namespace("nobody"), "eth0")
    far.ip(
        "address add 10.95.0.2/24 dev other",
        "neighbour add 10.95.0.1 lladdr 02:00:00:00:00:01 dev other",
        "route replace default via 10.95.0.1",
    )  # fmt: skip
    far.run("sysctl", "-qw", f"net.ipv4.conf.{where}.rp_filter=1")

    found = chain.run(FLOWS, agent=True, rights=rights)

    mine = {key: one for key, one in found.items() if key[0] == THERE[4]}
    assert len(mine) == 4
    for one in mine.values():
        assert one["verdict"] == "blocked"
        assert "destination" in one["where"]
        assert "rp_filter" in one["because"]
        assert "l3" in one["because"]
        if rights:
            assert (one["where"], one["reason"]) == (["destination"], "reverse-path-filter")
            assert "firewall" not in one["because"]
    assert {one["verdict"] for key, one in found.items() if key[0] == THERE[6]} == {"pass"}


def test_a_firewall_is_no_reverse_path_filter(chain: Chain) -> None:
    """The filter is strict everywhere and everything is symmetric: the firewall drops."""
    chain.destination.run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1")
    chain.destination.nft(table(INPUT, "wall", "tcp dport 6443 drop"))

    found = chain.run({"tcp": [6443]}, agent=True)

    assert {(one["reason"], tuple(one["where"])) for one in found.values()} == {
        ("no-response", ("destination",))
    }
    assert not any("rp_filter" in one["because"] for one in found.values())
