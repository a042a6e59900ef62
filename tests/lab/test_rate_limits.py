"""Firewalls that let only some new connections a second through: no open port is called blocked.

source - router-1 - router-2 - destination, as in ``test_truth``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.netlab import Lab
from tests.lab.test_truth import THERE, Chain, table

pytestmark = pytest.mark.lab

FORWARD = "filter hook forward priority 0"
SYN = "tcp flags & (syn | ack) == syn"
PORTS = "7000-7199"
METER = "meter sources { ip saddr limit rate over 20/second }"
LIMITS = {
    "drop": f"{SYN} limit rate over 20/second drop",
    "drop per source": f"ip protocol tcp {SYN} {METER} drop",
    "reset": f"{SYN} limit rate over 20/second reject with tcp reset",
    "icmp": f"{SYN} limit rate over 20/second reject with icmpx admin-prohibited",
}
USUAL = ("drop", "reset")
FOUR = {4: THERE[4]}


@pytest.fixture
def chain() -> Iterator[Chain]:
    """A chain of its own for every test."""
    with Lab() as lab:
        yield Chain(lab)


def _flows(found: dict[Any, Any], verdict: str) -> int:
    return sum(
        one["end_port"] - one["port"] + 1 for one in found.values() if one["verdict"] == verdict
    )


@pytest.mark.parametrize(
    "agent", [True, pytest.param(False, marks=pytest.mark.full)], ids=["agent", "nobody"]
)
@pytest.mark.parametrize(
    "limit", [pytest.param(one, marks=() if one in USUAL else pytest.mark.full) for one in LIMITS]
)
def test_a_limit_of_new_connections_blocks_nothing(chain: Chain, limit: str, agent: bool) -> None:
    """200 ports at once, 20 a second: all are open, and the report says how they were reached."""
    chain.router_2.nft(table(FORWARD, "wall", LIMITS[limit]))

    found = chain.run({"tcp": [PORTS]}, agent=agent, there=FOUR)

    assert _flows(found, "pass") == 200, [
        (one["port"], one["end_port"], one["verdict"], one["because"]) for one in found.values()
    ]
    # Without an agent a reset is what a closed port answers, too.
    if agent or limit != "reset":
        warned = [one for one in found.values() if any("slowly" in w for w in one["warnings"])]
        assert warned


@pytest.mark.full
@pytest.mark.parametrize("rights", [True, False], ids=["root", "nobody"])
def test_a_limit_of_new_udp_flows_blocks_nothing_and_a_rule_its_ports(
    chain: Chain, *, rights: bool
) -> None:
    """10 ports at once, 3 a second; a rule drops 7004 and 7005, and nothing else is blocked."""
    limit = "meta l4proto udp ct state new limit rate over 3/second burst 3 packets drop"
    chain.router_2.nft(table(FORWARD, "wall", "udp dport 7004-7005 drop", limit))

    found = chain.run({"udp": ["7001-7010"]}, agent=True, there=FOUR, rights=rights)

    verdicts = {one["verdict"]: (port, one["end_port"]) for (_, port), one in found.items()
                if one["verdict"] != "pass"}  # fmt: skip
    assert verdicts == {"blocked": (7004, 7005)}
    assert _flows(found, "pass") == 8


def test_a_range_that_a_rule_stops_stays_blocked_beside_a_limit(chain: Chain) -> None:
    """Both at once: the limit blocks nothing, and the rule exactly its range."""
    rules = ("tcp dport 7100-7149 drop", LIMITS["drop"])
    chain.router_2.nft(table(FORWARD, "wall", *rules))

    found = chain.run({"tcp": [PORTS]}, agent=True, there=FOUR)

    assert (_flows(found, "pass"), _flows(found, "blocked")) == (150, 50)


@pytest.mark.parametrize(
    "action",
    [
        "drop",
        pytest.param("reject with tcp reset", marks=pytest.mark.full),
        pytest.param("reject", marks=pytest.mark.full),
        "reject with icmpx host-unreachable",
    ],
)
def test_a_range_that_a_rule_stops_is_not_asked_slowly(chain: Chain, action: str) -> None:
    """Without a limit nothing is said of one."""
    chain.router_2.nft(table(FORWARD, "wall", f"tcp dport 7100-7149 {action}"))

    found = chain.run({"tcp": [PORTS]}, agent=True, there=FOUR)

    assert (_flows(found, "pass"), _flows(found, "blocked")) == (150, 50)
    assert not any(one["warnings"] for one in found.values())


def test_a_range_of_a_dead_host_is_not_asked_slowly(chain: Chain) -> None:
    """What its router says late and in portions is no answer, and no rejection either.

    Nobody else on its network says that it is down, so it may be the path.
    """
    found = chain.run({"tcp": ["7000-7040"]}, agent=False, there={4: "10.94.3.99"})

    assert _flows(found, "blocked") == 41
    assert {tuple(one["where"]) for one in found.values()} == {("host", "path")}
    assert not any(one["warnings"] or one["rejected_by"] for one in found.values())
