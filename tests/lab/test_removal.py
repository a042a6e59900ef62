"""Back ends that fail behind a real HAProxy: how soon it takes them out, and in again.

The truth is HAProxy's own: its statistics tell which of its servers were down between two times
that they were up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.balancers import (
    HOSTS,
    HTTPS_CHECK,
    PORT,
    BalancedHosts,
    BalancedSixes,
    ServerWatch,
    pools,
)

pytestmark = [
    pytest.mark.lab, pytest.mark.slow, pytest.mark.full, pytest.mark.needs("haproxy"),
]  # fmt: skip

READYZ = {PORT: {"https": "/readyz"}}
CHECKED = "check check-ssl verify none"
SOON = f"{CHECKED} inter 1s fall 3 rise 2"
ALL = {"s1", "s2", "s3"}
NAMES = ", ".join(HOSTS)


@pytest.fixture
def lab() -> Iterator[BalancedHosts]:
    with BalancedHosts() as made:
        yield made


@pytest.fixture(params=[BalancedHosts, BalancedSixes], ids=["ipv4", "ipv6"])
def either(request: pytest.FixtureRequest) -> Iterator[BalancedHosts]:
    with request.param() as made:
        yield made


def rehearse(
    lab: BalancedHosts, reason: str, health: Any = READYZ, *, switches_off: bool = False
) -> tuple[dict[str, Any], set[str]]:
    """What the client got, as all sources did, and the servers that were down between."""
    lab.wait_until_down()
    with ServerWatch(lab, switches_off=switches_off) as watch:
        words = ("--rehearse=balancer", "--only", "api", "-o", "json")
        done = lab.run(*words, balancer={"health": health})
    rows = [one["verdict"] for one in done.results if one["requirement"] == "api"]
    assert rows == ["pass"], done.stdout
    found = pools(done)
    assert set(found) == {"client", *HOSTS}
    assert {one["reason"] for one in found.values()} == {reason}, found["client"]
    outages = watch.count_outages()
    assert max(outages.values()) <= 1, watch.states
    return found["client"], {name for name, count in outages.items() if count}


def test_one_that_does_all_right(either: BalancedHosts) -> None:
    """Each back end that fails its HTTPS check is out soon, and comes again; the others stay."""
    either.start_haproxy(HTTPS_CHECK, options=SOON)
    one, out = rehearse(either, "balancer-pool")
    assert out == ALL
    assert one["verdict"] == "pass"
    assert f"one after the other (answered /readyz with 500), {NAMES} got" in one["because"]
    assert "and the first again" in one["because"]
    assert "not measured" not in one["because"]


def test_one_that_only_connects(either: BalancedHosts) -> None:
    """A TCP check passes whatever /readyz says: the balancer never takes a back end out."""
    either.start_haproxy(options="check inter 1s fall 3 rise 2")
    one, out = rehearse(either, "balancer-never-removes")
    assert out == set()
    assert one["verdict"] == "blocked"
    assert "cp1 in 45 s" in one["because"]
    assert "health checks: a connection to TCP port 6443, every 1." in one["because"]


def test_a_check_that_connects_as_it_should(lab: BalancedHosts) -> None:
    """Where the inventory says that it only connects, a back end fails by closing its port."""
    lab.start_haproxy(options="check inter 1s fall 3 rise 2")
    one, out = rehearse(lab, "balancer-pool", {PORT: "tcp"})
    assert out == ALL
    assert f"(closed TCP port {PORT}), {NAMES} got" in one["because"]
    assert "not measured" not in one["because"]


def test_a_back_end_without_a_check(lab: BalancedHosts) -> None:
    """It alone is never taken out, and is named alone."""
    lab.start_haproxy(HTTPS_CHECK, options=SOON, own={"s3": ""})
    one, out = rehearse(lab, "balancer-never-removes")
    assert out == ALL - {"s3"}
    assert "take out a back end that fails: cp3 in " in one["because"]


def test_a_slow_check(lab: BalancedHosts) -> None:
    """Four bad checks 10.6 s apart are more than 30 s, and less than 45."""
    lab.start_haproxy(HTTPS_CHECK, options=f"{CHECKED} inter 10600ms fall 4 rise 1")
    one, out = rehearse(lab, "balancer-slow")
    assert out == {"s1"}
    assert "to take out a back end that fails: cp1 3" in one["because"]
    assert "was not measured (the time was up): cp" in one["because"]


def test_one_that_never_takes_it_in_again(lab: BalancedHosts) -> None:
    """It is out until somebody switches it on: well again, it gets nothing for 45 s."""
    lab.start_haproxy(HTTPS_CHECK, options=SOON)
    one, out = rehearse(lab, "balancer-never-returns", switches_off=True)
    assert out == set()
    assert "cp1 in 45 s (it answered /readyz with 500 before)" in one["because"]
