"""Hosts that nothing gets to and nothing leaves are one finding, however that shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.model.codec import keep_finding
from netprobe.model.result import Result
from netprobe.model.story import Story, StoryPlace
from tests.report.samples import BLOCKED, PASSED

HOST, OTHERS = "c3", ("a1", "b1", "c1")
NO_LINK: dict[str, Any] = {
    "state": "unreachable", "reason": "no-carrier", "where": ("path", "source"),
}  # fmt: skip
DEAD_HOP: dict[str, Any] = NO_LINK | {"reason": "next-hop-down", "next_hop": "10.0.3.254"}
NO_NEIGHBOUR: dict[str, Any] = {
    "state": "unreachable", "reason": "host-unreach", "where": ("destination", "path"),
}  # fmt: skip
REFUSED: dict[str, Any] = {
    "state": "filtered", "reason": "host-unreach", "where": ("path",), "rejected_by": "10.9.0.2",
}  # fmt: skip
SILENT: dict[str, Any] = {"reason": "no-response", "where": ("path", "return-path")}
RESOLVER: dict[str, Any] = {
    "state": "unknown", "reason": "no-resolver", "where": ("source",),
    "name_servers": ("10.9.9.9",),
}  # fmt: skip


def flow(source: str, end: str, like: Result = BLOCKED, **facts: Any) -> Result:
    """One flow between two hosts."""
    address = f"10.0.{ord(end[0]) - 96}.{end[1]}"
    return replace(like, source=source, destination=end, address=address, **facts)


def unplugged() -> list[Result]:
    """What a run sees of a host whose cable is out."""
    return [
        *(flow(HOST, other, **NO_LINK) for other in OTHERS),
        flow("a1", HOST, **REFUSED),
        flow("b1", HOST, **SILENT),
        flow("c1", HOST, **NO_NEIGHBOUR),
        flow(HOST, HOST, **RESOLVER),
    ]


def titles(failures: Sequence[Result], passes: Sequence[Result] = (), **more: Any) -> list[str]:
    """The titles of the findings."""
    return [one.title for one in fold(failures, passes, **more)]


def test_a_device_that_is_down_takes_the_routes_of_its_host_along() -> None:
    """They are gone on that host alone: another one without a route has its own cause."""
    no_route = NO_LINK | {"reason": "no-route", "where": ("source",)}
    down = [*(flow(HOST, other, **no_route) for other in OTHERS), flow("c1", HOST, **NO_NEIGHBOUR)]

    assert titles(down) == [
        "c3 is cut off: nothing that was probed gets to it or from it: tcp 2379 (4 flows)"
    ]
    assert len(titles([*down, flow("a1", HOST, **no_route)])) == 2
    assert len(titles([*down, flow("a1", "b1", **no_route)])) == 2


def test_a_host_without_routes_that_a_router_gives_up_is_cut_off() -> None:
    """Its device is down, and its agent is reached another way. One that says nothing may be
    switched off."""
    no_route = NO_LINK | {"reason": "no-route", "where": ("source",)}
    given_up = NO_LINK | {"reason": "host-down", "where": ("host", "path")}
    unseen = SILENT | {"where": ("destination", "path")}
    unanswered = SILENT | {"where": ("return-path",)}
    seen = [
        flow("a1", HOST, **given_up), flow("b1", HOST, **unanswered), flow("c1", HOST, **unseen),
    ]  # fmt: skip
    routes = [flow(HOST, other, **no_route) for other in OTHERS]

    (finding,) = fold(seen + routes)

    assert finding.title.startswith("c3 is cut off: nothing that was probed gets to it or from it")
    assert fold(seen + routes, kept=[keep_finding(finding)]) == (finding,)
    assert not any("cut off" in title for title in titles(seen))
    passed = flow("c1", HOST, PASSED)
    assert not any("cut off" in title for title in titles(seen + routes, [passed]))
    came = flow("c1", HOST, **unanswered, story=Story(destination_in=StoryPlace("yes", 1)))
    assert not any("cut off" in title for title in titles([*seen, *routes, came]))


def test_a_cable_that_is_out_is_one_finding() -> None:
    """There and back, silent, refused by routers, and with the names that do not resolve."""
    (finding,) = fold(unplugged(), [flow("a1", "b1", PASSED)])

    assert finding.title == (
        "c3 is cut off: nothing that was probed gets to it or from it: tcp 2379, and no names "
        "resolve on c3 (7 flows)"
    )
    assert finding.advice == (
        "Check the link of c3: its device and cable, and the port and VLAN at the other end."
    )
    assert (finding.kind, finding.speaker.reason) == ("host", "no-carrier")
    kept = keep_finding(finding)
    (again,) = fold(unplugged(), kept=[kept])
    assert (again.title, again.advice) == (finding.title, finding.advice)


@pytest.mark.parametrize("leaving", [DEAD_HOP, NO_NEIGHBOUR])
def test_a_port_in_another_network_is_one_finding(leaving: dict[str, Any]) -> None:
    """There is a link, and nobody at its end."""
    lost = [flow(HOST, "a1", **DEAD_HOP), flow(HOST, "c1", **NO_NEIGHBOUR)]
    failures = [*lost, flow("c1", HOST, **leaving), flow("a1", HOST, **SILENT)]

    (title,) = titles(failures, [flow("a1", "c1", PASSED)])
    assert title.startswith("c3 is cut off")


@pytest.mark.parametrize(
    "connection",
    [
        flow("a1", HOST, PASSED),
        flow(HOST, "a1", PASSED),
        flow("a1", HOST, BLOCKED, reason="no-response", where=("return-path",)),
    ],
    ids=["to it", "from it", "request alone"],
)
def test_what_anything_gets_to_is_not_cut_off(connection: Result) -> None:
    """Each cause has a finding of its own then."""
    lost = [connection] if connection.verdict == "blocked" else []
    found = titles(unplugged() + lost, [connection] if not lost else [])

    assert len(found) > 1
    assert not any("cut off" in one for one in found)


def test_two_hosts_are_two_findings() -> None:
    """And a firewall's words between others are a third."""
    other = [flow("d1", one, **NO_LINK) for one in ("a1", "b1")]
    rule = flow("a1", "b1", reason="admin-prohibited", where=("path",), rejected_by="10.9.0.2")

    assert len(titles([*unplugged(), *other, rule])) == 3
    # To the host that is cut off, too.
    refused = flow("a1", HOST, reason="admin-prohibited", where=("path",), rejected_by="10.9.0.2")
    assert len(titles([*unplugged(), refused])) == 2


def test_ports_that_were_left_out_may_get_through() -> None:
    """Only a host without a link is cut off then."""
    no_answer = [one for one in unplugged() if one.reason != "no-carrier"]
    lost = [flow(HOST, other, **DEAD_HOP) for other in OTHERS]

    assert len(titles(unplugged(), some_ports=True)) == 1
    assert len(titles(no_answer + lost)) == 1
    assert len(titles(no_answer + lost, some_ports=True)) > 1


def test_few_flows_cut_nobody_off() -> None:
    """One neighbour alone may be parted from it; and who asks for nothing hears nothing."""
    assert "cut off" not in titles([flow("c1", HOST, **NO_NEIGHBOUR)])[0]
    assert "cut off" not in titles([flow(HOST, one, **DEAD_HOP) for one in OTHERS])[0]


def test_a_router_that_lost_its_way_there_is_the_same_cable() -> None:
    """It says so to all that is sent there; of what is sent elsewhere it is another cause. The
    host's own kernel knows its link, also where it has one peer alone."""
    lost: dict[str, Any] = {
        "state": "unreachable", "reason": "net-unreach", "where": ("path",),
        "rejected_by": "10.9.0.2",
    }  # fmt: skip
    there = [flow(one, HOST, **lost) for one in OTHERS]

    assert len(titles([*unplugged(), *there])) == 1
    assert len(titles([*unplugged(), *there, flow("a1", "b1", **lost)])) == 2
    assert len(titles([flow(HOST, "a1", **NO_LINK), there[0]])) == 1
    assert len(titles([flow(HOST, "a1", **DEAD_HOP), there[0]])) == 2
