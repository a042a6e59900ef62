"""The word of a row's question: another one wherever another answer may be right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.model.inventory import Address, Health, Host, Inventory, Proxy
from netprobe.model.matrix import HttpProbe, Role, Stops, Warn
from netprobe.model.plan import Plan
from netprobe.plan.expand import make_plan
from netprobe.plan.question import word_question
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement

PlanOf = Callable[..., Plan]
M, N, D = host("m", "master"), host("nn", "node"), host("ddd", "node", addresses=("d.example",))


def word(plan_of: PlanOf, *hosts: Host, **row: Any) -> str:
    """The word of a row between these hosts, or of two."""
    (one,) = plan_of([requirement("a", "node", "master", **row)], [*(hosts or (M, N))]).requirements
    return one.question


@pytest.mark.parametrize(
    "row",
    [
        {"probe": "https"},
        {"probe": HttpProbe("/healthz")},
        {"expect": "denied"},
        {"existing": True},
        {"process": ("etcd",)},
        {"binds": "all"},
        {"probe": "https", "sni": "api.example.com"},
    ],
)
def test_another_row_is_another_question(plan_of: PlanOf, row: dict[str, Any]) -> None:
    """What it sends, what is right there, and who may hold the port."""
    known = {"probe": "https"} if "sni" in row else {}
    assert word(plan_of, **row) != word(plan_of, **known)


@pytest.mark.parametrize(
    "row",
    [
        {"optional": True},
        {"stops": Stops("nodes")},
        {"tcp": ((1, 2),)},
        {"warnings": (Warn("w"),)},
        {"owner": ("etcd",)},
    ],
)
def test_words_and_weights_are_none_of_it(plan_of: PlanOf, row: dict[str, Any]) -> None:
    """Nor are the ports, which each flow has."""
    assert word(plan_of, **row) == word(plan_of)


def test_a_host_more_asks_the_same(plan_of: PlanOf) -> None:
    """And one that has moved: each flow has its ends."""
    moved = replace(N, addresses=(Address("10.9.9.9", 4), Address("fd00::9", 6)))
    assert word(plan_of, M, N, host("xxxx", "node")) == word(plan_of) == word(plan_of, M, moved)


def test_names_and_proxies_are_a_part_of_it(plan_of: PlanOf) -> None:
    """No address of a result tells them; the password of a proxy stays out."""
    renamed = replace(D, addresses=(Address("e.example", None),))
    assert word(plan_of, M, D) != word(plan_of, M, renamed)
    asks: dict[str, Any] = {"probe": "https"}
    plain = word(plan_of, **asks)
    by_url = {
        url: word(plan_of, M, replace(N, proxy=Proxy(url)), **asks)
        for url in ("http://a:p@p:1", "http://a:q@p:1", "http://q:1")
    }
    first, same, other = by_url.values()
    assert first == same
    assert len({plain, first, other}) == 3
    assert word(plan_of, M, replace(N, proxy=Proxy("http://p:1"))) == word(plan_of)


def test_where_services_run_already_is_a_part_of_it() -> None:
    """Of a row that has both kinds of destinations: the same ones in both runs."""
    row = replace(requirement("a", "node", "node"), destinations=("node", "external"))
    chosen = chosen_matrix([row])
    roles = {**chosen.matrix.roles, "external": Role("external", existing=True)}
    chosen = replace(chosen, matrix=replace(chosen.matrix, roles=roles))
    first, second = host("dns", "external"), host("time", "node")
    found = [
        make_plan([chosen], Inventory((N, *some)), TODAY).requirements[0].question
        for some in (
            (first, second),
            (replace(first, roles=("node",)), replace(second, roles=("external",))),
        )
    ]
    assert found[0] != found[1]


def test_what_a_balancer_asks_is_a_part_of_it(plan_of: PlanOf) -> None:
    """And the back ends that it hands on to."""
    (block,) = plan_of([requirement("a", "node", "master")], [M, N]).blocks
    played = replace(block, back_ends=(N,))
    checks = replace(M, health=(Health("https", "/readyz"),))
    checked = replace(played, destinations=((checks, M.addresses[0]),))
    more = replace(played, back_ends=(N, D))
    assert len({word_question([one]) for one in (block, played, checked, more)}) == 4
