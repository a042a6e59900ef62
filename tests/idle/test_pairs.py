"""Which zones are measured, with which hosts and ports, and for how long."""

from __future__ import annotations

import pytest

from netprobe.errors import RequestError
from netprobe.idle.pairs import MOST_PAIRS, PairKey, ZonePair, find_pairs
from netprobe.idle.state import list_silences
from netprobe.model.inventory import Host, Inventory, Vantage
from netprobe.model.matrix import Keepalive
from netprobe.model.plan import BALANCER
from netprobe.plan.expand import make_plan
from netprobe.plan.rehearsals import with_rehearsals
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement

ROWS = [
    requirement("api", "external", "master", tcp=((6443, 6443),), keepalive=Keepalive(30, 15)),
    requirement("etcd", "master", "master", tcp=((2379, 2380),)),
    requirement("no", "external", "master", tcp=((1, 1),), expect="denied"),
    requirement("dns", "external", "master", tcp=(), udp=((53, 53),)),
    requirement("vxlan", "master", "external", tcp=(), udp=((8472, 8472),), probe="vxlan"),
]


def pairs_of(*hosts: Host) -> dict[PairKey, ZonePair]:
    inventory = Inventory(hosts)
    chosen = [chosen_matrix(ROWS)]
    plan = with_rehearsals(make_plan(chosen, inventory, TODAY), (BALANCER,), chosen, inventory)
    return {one.key: one for one in find_pairs(plan)}


def test_pairs_are_those_of_rows_with_tcp_and_udp() -> None:
    """Each zone that a row leads from and to, for each family; a host alone is no pair. No answer
    comes to what goes into a tunnel."""
    found = pairs_of(
        host("m1", "master", addresses=("10.0.0.1", "fd00::1")),
        host("m2", "master", addresses=("10.0.0.2",)),
        host("w1", "external", addresses=("10.0.1.1", "fd00:1::1")),
    )
    masters, workers = ("10.0.0.0/24", "10.0.1.0/24")
    assert set(found) == {
        PairKey(workers, masters, 4, None),
        PairKey("fd00:1::/64", "fd00::/64", 6, None),
        PairKey(masters, masters, 4, None),
        PairKey(workers, masters, 4, None, "udp"),
        PairKey("fd00:1::/64", "fd00::/64", 6, None, "udp"),
    }
    assert {one.requirement for one in found[PairKey(workers, masters, 4, None, "udp")].tries} == {
        "dns"
    }
    api = found[PairKey(workers, masters, 4, None)]
    assert [one.keepalive.times_s for one in api.keepalives] == [(30, 15)]
    assert {(one.source.name, one.port) for one in api.tries} == {("w1", 6443)}
    etcd = found[PairKey(masters, masters, 4, None)]
    assert {one.port for one in etcd.tries} == {2379, 2380}
    assert all(one.source.name != one.destination.name for one in etcd.tries)


def test_a_host_without_an_agent_is_named() -> None:
    """Nothing is tried there, and nothing is forgotten of the pair."""
    found = pairs_of(
        host("m1", "master", addresses=("10.0.0.1",), vantage=Vantage("none")),
        host("w1", "external", addresses=("10.0.1.1",)),
    ).values()
    assert [(pair.tries, pair.closed) for pair in found] == [([], "m1")] * 2


def test_too_many_pairs_are_refused() -> None:
    """With what chooses some of them."""
    workers = [
        host(f"w{one}", "external", addresses=(f"10.1.{one}.1",)) for one in range(MOST_PAIRS + 1)
    ]
    with pytest.raises(RequestError, match=r"more than 50 pairs of zones.*--from"):
        pairs_of(host("m1", "master", addresses=("10.0.0.1",)), *workers)


def test_silences_end_with_the_longest() -> None:
    """Keepalives are silences themselves, so that they are decided exactly."""
    assert list_silences(3600, ())[-3:] == [900, 1800, 3600]
    assert list_silences(30, ()) == [15, 30]
    assert list_silences(100, (45, 100, 3600)) == [15, 30, 45, 60, 100]
    assert list_silences(2, (1,)) == [1, 2]
