"""Zones: of the inventory, of groups, of networks."""

from __future__ import annotations

import pytest

from netprobe.errors import RequestError
from netprobe.model.inventory import Address, Inventory
from netprobe.plan.cover.zones import zone_by_groups, zone_of_end, zone_of_source
from tests.plan.conftest import host

HOSTS = (
    host("a", "node", "rack_1", addresses=("10.1.2.3", "fd00:0:0:7::1"), zone="own"),
    host("b", "node", "rack-2", addresses=("10.1.2.4", "fd00:0:0:7::2")),
    host("c", "node", addresses=("c.example.com",)),
)


def test_without_a_zone_the_network_is_one() -> None:
    """/24 of IPv4, /64 of IPv6, each by the address that is probed; a name stands alone."""
    assert [zone_of_end(HOSTS[1], one) for one in HOSTS[1].addresses] == [
        "10.1.2.0/24", "fd00:0:0:7::/64",
    ]  # fmt: skip
    assert zone_of_source(HOSTS[1], 6) == "fd00:0:0:7::/64"
    assert zone_of_source(HOSTS[1], None) == "10.1.2.0/24"
    assert zone_of_end(HOSTS[2], Address("c.example.com", None)) == "c"
    assert zone_of_end(HOSTS[0], HOSTS[0].addresses[0]) == zone_of_source(HOSTS[0], 4) == "own"


def test_groups_are_zones_where_a_pattern_says_so() -> None:
    """``-`` equals ``_``; hosts of no such group keep what they had."""
    zoned = zone_by_groups(Inventory(HOSTS), ["rack_*"])
    assert [one.zone for one in zoned.hosts] == ["rack_1", "rack-2", None]
    assert zone_by_groups(Inventory(HOSTS), []) == Inventory(HOSTS)


def test_a_pattern_that_matches_nothing_or_twice_is_refused() -> None:
    """All problems at once."""
    hosts = (*HOSTS, host("d", "rack_1", "rack_2"))
    with pytest.raises(RequestError) as caught:
        zone_by_groups(Inventory(hosts), ["rack_*", "cage_*"])
    assert str(caught.value).splitlines() == [
        "--zone-groups cage_*: no group or role of any host matches it",
        "--zone-groups: d is in rack_1 and rack_2, expected one zone a host",
    ]
