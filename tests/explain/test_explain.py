"""The explained flow: how it is named, which plan it gets, and the page that it ends on."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.parts import IcmpFact, WalkHop
from netprobe.errors import RequestError
from netprobe.explain.explain import summary_of
from netprobe.explain.extra_checks import list_beside
from netprobe.explain.hops import distance, walk_words
from netprobe.explain.request import FlowRequest, Wire, parse_wire, plan_flow
from netprobe.model.evidence import Icmp
from netprobe.model.exit import exit_status
from netprobe.model.explanation import Explanation, FlowStory
from netprobe.model.result import Result
from netprobe.model.story import Step, TrailStatus
from netprobe.report.verbs.explain import write_explain_json, write_explain_text

# Every explanation has all of them, in this order.
STEPS = (
    "agents", "name", "route", "listener", "probe", "story", "silence", "reset", "hops", "arrival",
    "way-back", "control", "path-mtu", "checks",
)  # fmt: skip
TODAY = date(2026, 11, 20)
INVENTORY = {
    "schema": "netprobe.inventory/1",
    "defaults": {"vantage": "local"},
    "hosts": {
        "worker-0": {"addresses": ["10.0.0.1", "fd00::1"], "roles": ["node"]},
        "master-0": {"addresses": ["10.0.0.2", "fd00::2"], "roles": ["master"]},
        "old": {"addresses": ["10.0.0.3"], "roles": ["node"]},
        "six": {"addresses": ["fd00::4"], "roles": ["node"]},
        "w1": {"addresses": ["10.0.0.5"], "roles": ["node"]},
        "vip": {"address": "api.example.com", "roles": ["master"], "vantage": "none"},
    },
}
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "m",
    "title": "M",
    "roles": {"master": {}, "node": {}},
    "requirements": [
        {"id": "api", "from": "node", "to": "master", "tcp": [6443], "purpose": "the API",
         "optional": True},
        {"id": "overlay", "from": "node", "to": "master", "udp": ["8000-9000"], "probe": "vxlan"},
        {"id": "admin", "from": "node", "to": "master", "tcp": [22], "expect": "denied"},
        {"id": "other", "from": "node", "to": "master", "tcp": ["6000-7000"]},
    ],
}  # fmt: skip

Planned = Callable[..., list[tuple[str, str, str]]]


@pytest.fixture
def request_of(tmp_path: Path) -> Callable[..., FlowRequest]:
    """A request over the inventory above, with or without its matrix."""
    (tmp_path / "inventory.yaml").write_text(yaml.safe_dump(INVENTORY))
    (tmp_path / "matrix.yaml").write_text(yaml.safe_dump(MATRIX))

    def make(
        source: str,
        destination: str,
        wire: str,
        *,
        matrix: bool = False,
        roles: tuple[str, ...] = (),
    ) -> FlowRequest:
        matrices = (str(tmp_path / "matrix.yaml"),) if matrix else ()
        inventories = (str(tmp_path / "inventory.yaml"),)
        wanted = parse_wire(wire)
        return FlowRequest(source, destination, wanted, inventories, matrices, roles=roles)

    return make


@pytest.mark.parametrize(
    ("text", "wire"),
    [
        ("tcp/6443", Wire("tcp", 6443)),
        ("6443/tcp", Wire("tcp", 6443)),
        ("UDP/8472", Wire("udp", 8472)),
        ("icmp", Wire("icmp")),
        ("ipproto/4", Wire("ipproto/4")),
    ],
)
def test_a_flow_is_named_as_people_write_it(text: str, wire: Wire) -> None:
    """Either order, either case; protocols without ports stand alone."""
    assert parse_wire(text) == wire


@pytest.mark.parametrize(
    "text", ["tcp", "6443", "tcp/0", "tcp/65536", "ipproto/256", "4/ipproto", "sctp/1", "tcp/1-2"]
)
def test_what_is_no_flow_is_refused(text: str) -> None:
    """The request was wrong, and the sentence says what was expected."""
    with pytest.raises(RequestError, match=r"expected a protocol|is not between"):
        parse_wire(text)


def test_every_common_family_is_a_block_with_its_path(
    request_of: Callable[..., FlowRequest],
) -> None:
    """IPv4 and IPv6 are two flows, and beside each the path's MTU is measured."""
    plan = plan_flow(request_of("worker-0", "master-0", "tcp/6443"), TODAY)

    assert [
        (block.index, block.requirement.id, block.protocol, block.destinations[0][1].text)
        for block in plan.blocks
    ] == [
        (0, "explain", "tcp", "10.0.0.2"),
        (1, "path-mtu", "icmp", "10.0.0.2"),
        (2, "explain", "tcp", "fd00::2"),
        (3, "path-mtu", "icmp", "fd00::2"),
    ]
    assert [block.requirement.optional for block in plan.blocks] == [False, True, False, True]


def test_a_matrix_says_what_is_sent_and_expected(request_of: Callable[..., FlowRequest]) -> None:
    """The requirement's own block, cut down to the one flow: probe, purpose, expect, optional."""
    overlay = plan_flow(request_of("old", "master-0", "udp/8472", matrix=True), TODAY).blocks[0]
    admin = plan_flow(request_of("old", "master-0", "tcp/22", matrix=True), TODAY).blocks[0]

    assert (overlay.matrix, overlay.requirement.probe, overlay.ports) == (
        "m",
        "vxlan",
        ((8472, 8472),),
    )
    assert [host.name for host in overlay.sources] == ["old"]
    assert admin.requirement.expect == "denied"


def test_other_ports_that_the_matrix_requires_are_asked_beside_it(
    request_of: Callable[..., FlowRequest],
) -> None:
    """Between these two hosts; not what must not answer, nor the flow's own port."""
    for wire, ports in (("udp/8472", (6000, 6443)), ("tcp/6443", (6000,))):
        plan = plan_flow(request_of("old", "master-0", wire, matrix=True), TODAY)
        assert list_beside(plan) == ports

    assert list_beside(plan_flow(request_of("old", "master-0", "tcp/6443"), TODAY)) == ()


def test_roles_are_mapped_as_for_a_run(request_of: Callable[..., FlowRequest]) -> None:
    """What --role says of an inventory's roles holds for the one flow, too."""
    wanted = request_of(
        "master-0", "old", "tcp/22", matrix=True, roles=("master=node", "node=master")
    )

    assert plan_flow(wanted, TODAY).blocks[0].requirement.id == "admin"
    with pytest.raises(RequestError, match="--role: there is no matrix that has roles"):
        plan_flow(replace(wanted, matrices=()), TODAY)


def test_further_requirements_of_the_flow_are_named(
    request_of: Callable[..., FlowRequest],
) -> None:
    """One requirement explains the flow; the reader is told of the others."""
    plan = plan_flow(request_of("old", "master-0", "tcp/6443", matrix=True), TODAY)

    assert plan.blocks[0].requirement.id == "api"
    assert plan.notes == ("also required by m: other",)


def test_a_flow_that_no_matrix_has_is_explained_plainly(
    request_of: Callable[..., FlowRequest],
) -> None:
    """The reader is told that no requirement stands behind it."""
    plan = plan_flow(request_of("old", "master-0", "tcp/1", matrix=True), TODAY)

    assert plan.blocks[0].matrix == "explain"
    assert "no requirement of" in plan.notes[0]


@pytest.mark.parametrize(
    ("destination", "address", "kind"),
    [
        ("10.0.0.2", "10.0.0.2", "local"),
        ("192.0.2.1", "192.0.2.1", "none"),
        ("registry.example.com", "registry.example.com", "none"),
        ("vip", "api.example.com", "none"),
    ],
)
def test_a_destination_may_be_an_address_or_a_name(
    request_of: Callable[..., FlowRequest], destination: str, address: str, kind: str
) -> None:
    """An address of an inventory's host is that host; anything else has no agent."""
    block = plan_flow(request_of("old", destination, "tcp/1"), TODAY).blocks[0]
    host, end = block.destinations[0]

    assert (end.text, host.vantage.kind) == (address, kind)


@pytest.mark.parametrize(
    ("source", "destination", "words"),
    [
        ("worker-00", "old", 'SOURCE: unknown host "worker-00", did you mean "worker-0"?'),
        ("old", "mastr-0", "did you mean master-0?"),
        (
            "old",
            "w9",
            "no host is called w9, did you mean w1? (to ask the source for the name: w9.)",
        ),
        ("old", "10.0.0.2/24", "has a prefix length"),
        ("vip", "old", "vip is declared vantage: none"),
        ("old", "six", "no common address family"),
    ],
)
def test_a_flow_that_cannot_be_is_refused(
    request_of: Callable[..., FlowRequest], source: str, destination: str, words: str
) -> None:
    """Names that nobody knows, and pairs that no packet can pass between."""
    with pytest.raises(RequestError) as raised:
        plan_flow(request_of(source, destination, "tcp/1"), TODAY)

    assert words in str(raised.value)


def test_a_host_may_be_asked_about_itself(request_of: Callable[..., FlowRequest]) -> None:
    """There is no path then, so nobody measures one."""
    plan = plan_flow(request_of("old", "old", "tcp/1"), TODAY)

    assert [(block.requirement.id, block.local) for block in plan.blocks] == [("explain", True)]


@pytest.mark.parametrize(
    ("hops", "end", "words", "far"),
    [
        ([(1, "10.0.0.1"), (2, "10.0.1.1")], "reached", "1 10.0.0.1, 2 10.0.1.1 answers", 2),
        ([(1, "10.0.0.1"), (2, "10.0.0.1")], "refused", "2 10.0.0.1 (which refuses it)", None),
        ([(1, None), (2, "10.0.0.2"), (3, None)], "lost", "1 no answer, 2 10.0.0.2, then", None),
        ([(1, None), (2, None)], "lost", "no hop answers at all", None),
    ],
)
def test_a_walk_is_said_in_one_line(
    hops: list[tuple[int, str | None]], end: str, words: str, far: int | None
) -> None:
    """Every hop up to the last that answered, and how it ended."""
    refusal = IcmpFact(3, 0, "10.0.0.1", 64) if end == "refused" else None
    walk = Walked(1, [WalkHop(*hop) for hop in hops], end == "reached", None, refusal)

    assert words in walk_words(walk, "tcp/1")
    assert distance(walk) == far


def test_an_icmp_error_says_who_sent_it() -> None:
    """The offender is an end of the flow or a router."""
    assert Icmp(3, 13, "10.0.1.1", "router", 63).words() == (
        "ICMP 3/13 (admin-prohibited) in the error queue from 10.0.1.1, a router on the way, TTL 63"
    )
    assert Icmp(3, 3, "10.0.2.2", "destination").words().endswith("the destination itself")


def explanation(verdict: str = "blocked", *, optional: bool = False) -> Explanation:
    """A page of one address, with a step of every kind."""
    result = Result(
        order=(0, 0, 0), matrix="m", requirement="api", purpose="the API", row="Row 1",
        optional=optional, expect="allowed", waived=None, source="a", destination="b",
        address="10.0.0.2", protocol="tcp", port=6443, end_port=6443,
        verdict=verdict,  # type: ignore[arg-type]  # the parametrised words are verdicts
        state="filtered", reason="admin-prohibited", proof="none", where=("path",),
        because="admin-prohibited from 10.0.0.1", rejected_by="10.0.0.1",
    )  # fmt: skip
    marks: tuple[TrailStatus, ...] = ("ok", "bad", "doubt", "not-needed", "not-possible")
    steps = tuple(
        Step(name, marks[number % 5], (f"{name} says", "and more"), {"number": number})
        for number, name in enumerate(STEPS)
    )
    story = FlowStory(steps, result, "Allow it.", ("and this",))
    return Explanation("2026-11-20T10:00:00Z", 4.2, "a", "b", "tcp", 6443, (story,), (), ("note",))


def test_the_page_leads_with_the_verdict_and_marks_the_steps() -> None:
    """What fails is found by its mark; every step stands on the page."""
    stream = io.StringIO()
    write_explain_text(explanation(), stream)
    lines = stream.getvalue().splitlines()

    assert lines[0] == "BLOCKED: tcp 6443 from a to b (10.0.0.2)"
    assert "   purpose   the API (m, api; row: Row 1)" in lines
    assert "   where     the path between the hosts: 10.0.0.1 refused it" in lines
    assert "   to do     Allow it." in lines
    assert "   also      and this" in lines
    assert "   agents    agents says" in lines
    assert "   name      !! name says" in lines
    assert "   route     ?? route says" in lines
    assert "   listener  -- listener says" in lines
    assert "   way back  way-back says" in lines
    assert lines[-1] == "   notes     note"


def test_the_json_holds_steps_and_the_result_of_a_run() -> None:
    """Steps in their order, and a result with the keys of ``netprobe.run/1``."""
    stream = io.StringIO()
    write_explain_json(explanation(), stream)
    document = json.loads(stream.getvalue())
    flow = document["flows"][0]

    assert document["schema"] == "netprobe.explain/1"
    assert [step["name"] for step in flow["steps"]] == list(STEPS)
    assert set(flow["steps"][0]) == {"name", "status", "facts", "words"}
    assert flow["result"]["rejected_by"] == "10.0.0.1"
    assert flow["result"]["where"] == ["path"]


@pytest.mark.parametrize(
    ("verdict", "optional", "status"),
    [("pass", False, 0), ("blocked", False, 1), ("inconclusive", False, 3),
     ("not-tested", False, 3), ("exposed", False, 1), ("blocked", True, 0)],
)  # fmt: skip
def test_the_exit_status_is_that_of_a_run(verdict: str, optional: bool, status: int) -> None:
    """Optional requirements never decide, as everywhere."""
    summary = summary_of(explanation(verdict, optional=optional))

    assert exit_status(summary, interrupted=False) == status


def test_a_balancer_that_stands_in_is_explained_by_the_row_of_its_back_ends(
    request_of: Callable[..., FlowRequest], tmp_path: Path
) -> None:
    """Where it is rehearsed, at the ports that it names: elsewhere no requirement has the flow."""
    lb = {"addresses": ["10.0.0.9", "fd00::9"], "roles": [], "vantage": "none",
          "balances": ["master"], "health": {6443: {"https": "/readyz"}}}  # fmt: skip
    hosts = {name: INVENTORY["hosts"][name] for name in ("worker-0", "master-0")}  # type: ignore[index]
    wanted = request_of("worker-0", "lb", "tcp/6443", matrix=True)
    (tmp_path / "inventory.yaml").write_text(
        yaml.safe_dump(INVENTORY | {"hosts": hosts | {"lb": lb}})
    )
    plan = plan_flow(wanted, TODAY, ("balancer",))
    assert [
        (block.requirement.id, [one.name for one in block.sources], block.destinations[0][1].text)
        for block in plan.blocks if block.requirement.id != "path-mtu"
    ] == [
        ("api", ["worker-0"], "10.0.0.9"),
        ("api/balancer", ["worker-0", "master-0"], "10.0.0.9"),
        ("api", ["worker-0"], "fd00::9"),
        ("api/balancer", ["worker-0", "master-0"], "fd00::9"),
    ]  # fmt: skip
    assert "changes hosts for a moment" in plan.notes[0]
    other = replace(wanted, wire=Wire("tcp", 6444))
    for request, rehearse in ((wanted, ()), (other, ("balancer",))):
        (id_, *_) = (block.requirement.id for block in plan_flow(request, TODAY, rehearse).blocks)
        assert id_ == "explain"
