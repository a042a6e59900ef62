"""Back ends that fail behind a real HAProxy: how soon it takes them out, and in again.

The truth is HAProxy's own: its statistics tell which of its servers were down between two times
that they were up.
"""

from __future__ import annotations

import re
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


@pytest.fixture(params=[BalancedHosts, BalancedSixes], ids=["ipv4", "ipv6"])
def lab(request: pytest.FixtureRequest) -> Iterator[BalancedHosts]:
    with request.param() as made:
        yield made


def rehearse(
    lab: BalancedHosts, reason: str, out: set[str], health: Any = READYZ, *,
    switches_off: bool = False,
) -> str:  # fmt: skip
    """What the client was told, with the reason that all sources have. ``out``: the servers that
    HAProxy had down once between."""
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
    assert outages == {name: int(name in out) for name in ALL}, (
        watch.states,
        found["client"]["because"],
    )
    verdict = "pass" if reason == "balancer-pool" else "blocked"
    assert {one["verdict"] for one in found.values()} == {verdict}
    return str(found["client"]["because"])


def test_one_that_does_all_right(lab: BalancedHosts) -> None:
    """Each back end that fails its HTTPS check is out soon, and comes again; the others stay."""
    lab.start_haproxy(HTTPS_CHECK, options=SOON)
    because = rehearse(lab, "balancer-pool", ALL)
    assert f"one after the other (answered /readyz with 500), {NAMES} got" in because
    assert "and the first again" in because
    assert "not measured" not in because


def test_one_that_only_connects(lab: BalancedHosts) -> None:
    """A TCP check passes whatever /readyz says: the balancer never takes a back end out."""
    lab.start_haproxy(options="check inter 1s fall 3 rise 2")
    because = rehearse(lab, "balancer-never-removes", set())
    assert re.search(r"cp1 in 4[5-9] s", because), because
    assert "; no health checks came that did more than connect" in because


def test_a_check_that_connects_as_it_should(lab: BalancedHosts) -> None:
    """Where the inventory says that it only connects, a back end fails by closing its port."""
    lab.start_haproxy(options="check inter 1s fall 3 rise 2")
    because = rehearse(lab, "balancer-pool", ALL, {PORT: "tcp"})
    assert f"(closed TCP port {PORT}), {NAMES} got" in because
    assert "not measured" not in because


def test_a_back_end_without_a_check(lab: BalancedHosts) -> None:
    """It alone is never taken out, and is named alone."""
    lab.start_haproxy(HTTPS_CHECK, options=SOON, own={"s3": ""})
    because = rehearse(lab, "balancer-never-removes", ALL - {"s3"})
    assert "take out a back end that fails: cp3 in " in because


def test_a_slow_check(lab: BalancedHosts) -> None:
    """Four bad checks 10.6 s apart are more than 30 s, and less than 45."""
    lab.start_haproxy(HTTPS_CHECK, options=f"{CHECKED} inter 10600ms fall 4 rise 1")
    because = rehearse(lab, "balancer-slow", {"s1"})
    assert "to take out a back end that fails: cp1 3" in because
    assert "removal was not measured (no time was left" in because


def test_one_that_never_takes_it_in_again(lab: BalancedHosts) -> None:
    """It is out until somebody switches it on: well again, it gets nothing for 45 s."""
    lab.start_haproxy(HTTPS_CHECK, options=SOON)
    because = rehearse(lab, "balancer-never-returns", set(), switches_off=True)
    assert "cp1 in 4" in because
    assert "(it answered /readyz with 500 before)" in because
