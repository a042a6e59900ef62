"""What a plan rehearses of its rows."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.model.inventory import Inventory, Vantage
from netprobe.model.plan import REHEARSALS, AnyOf, Plan
from netprobe.model.result import Also
from netprobe.plan.cover.cover import cover
from netprobe.plan.expand import make_plan
from netprobe.plan.rehearsals import note_cost, read_rehearsals, with_rehearsals
from netprobe.plan.select import Selection, select
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement
from tests.plan.covering import zone_hosts

INVENTORY = Inventory(
    (
        *(host(f"n{one}", "node", addresses=(f"10.0.0.{one}",)) for one in (1, 2)),
        host("bare", "node", addresses=("10.0.0.3",), vantage=Vantage("none")),
    )
)
MATRIX = chosen_matrix(
    [
        requirement("vxlan", "node", "node", udp=((8472, 8472),), probe="vxlan"),
        requirement("geneve", "node", "node", udp=((6081, 6081),), probe="geneve"),
        requirement("shut", "node", "node", udp=((4789, 4789),), probe="vxlan", expect="denied"),
        requirement("api", "node", "node"),
    ]
)


def rehearsed(*words: str, only: tuple[str, ...] = ()) -> Plan:
    """The plan with what is rehearsed."""
    plan = make_plan([MATRIX], INVENTORY, TODAY)
    return with_rehearsals(
        select(plan, Selection(only=only), [MATRIX], INVENTORY), words, [MATRIX], INVENTORY
    )


def test_a_row_of_vxlan_has_a_tunnel_for_each_pair() -> None:
    """Its flows are those of the row between hosts with agents, with an id of their own."""
    plan = rehearsed("overlay")
    (block,) = [one for one in plan.blocks if one.rehearsal]
    assert block.requirement.id == "vxlan/overlay"
    assert "kernels (vxlan: 8472): " in block.requirement.purpose
    assert (block.protocol, block.ports) == ("udp", ((8472, 8472),))
    ends = {(flow.source.name, flow.destination.name) for flow in block.flows()}
    assert ends == {("n1", "n2"), ("n2", "n1")}
    assert [one.index for one in plan.blocks] == list(range(len(plan.blocks)))
    assert "vxlan/overlay" in {one.id for one in plan.requirements}


def test_a_row_of_vrrp_has_its_multicast() -> None:
    """Between hosts with agents, with the segment; the one without is skipped with the reason, and
    the notes say what is sent. Other protocols have none."""
    rows = [requirement("vrrp", "node", "node", ipproto=(112,)),
            requirement("ipip", "node", "node", ipproto=(4,))]  # fmt: skip
    chosen = [chosen_matrix(rows)]
    plan = with_rehearsals(make_plan(chosen, INVENTORY, TODAY), ("segment",), chosen, INVENTORY)
    (block,) = [one for one in plan.blocks if one.rehearsal == "multicast"]
    assert (block.requirement.id, block.protocol, block.ports) == (
        "vrrp/segment", "ipproto/112", ()
    )  # fmt: skip
    ends = {(flow.source.name, flow.destination.name) for flow in block.flows()}
    assert ends == {("n1", "n2"), ("n2", "n1")}
    assert ("vrrp/segment", "bare") in {(one.requirement, one.destination) for one in plan.skipped}
    assert "VRRP's multicast on 2 ways, about 4 s in all" in note_cost(plan).notes[-1]


def test_what_is_not_rehearsed_is_skipped_with_the_reason() -> None:
    """Geneve, and a host without an agent; ports that must not answer are nobody's tunnel."""
    before = {*make_plan([MATRIX], INVENTORY, TODAY).skipped}
    skipped = [one for one in rehearsed("overlay").skipped if one not in before]
    assert {(one.requirement, one.destination) for one in skipped} == {
        ("geneve/overlay", None), ("vxlan/overlay", "bare"),
    }  # fmt: skip
    assert all(one.reason for one in skipped)


def test_the_notes_say_what_is_done() -> None:
    """First that hosts change for a moment; then what, how long, and what is touched: of the plan
    that is left, since a covering one has fewer tunnels."""
    plan = rehearsed("overlay")
    notes = note_cost(plan).notes
    assert "changes hosts for a moment" in notes[0]
    assert "2 tunnels, about 1 s in all" in notes[-1]
    assert "UDP port 8472 (row vxlan of m) and a VXLAN device" in notes[-1]
    some = [block for block in plan.blocks if block.rehearsal is None]
    assert note_cost(replace(plan, blocks=tuple(some))).notes == plan.notes


def test_a_covering_plan_has_tunnels_of_zones() -> None:
    """Each host has one to and one from each zone, not one to each host: 360 of 3,540."""
    zones, size = 6, 10
    inventory = Inventory(tuple(zone_hosts(zones, size, "node")))
    plan = make_plan([MATRIX], inventory, TODAY)
    plan = with_rehearsals(plan, ("overlay",), [MATRIX], inventory)
    whole, some = plan, cover(plan, 1, 0).plan
    assert "3,540 tunnels" in note_cost(whole).notes[-1]
    assert "360 tunnels" in note_cost(some).notes[-1]
    tunnels = [flow for block in some.blocks if block.rehearsal for flow in block.flows()]
    assert {one.block.requirement.id for one in tunnels} == {"vxlan/overlay"}
    to_zones = Counter((one.source.name, one.destination.zone) for one in tunnels)
    from_zones = Counter((one.source.zone, one.destination.name) for one in tunnels)
    for found in (to_zones, from_zones):
        assert (len(found), {*found.values()}) == (zones * size * zones, {1})


def test_without_the_option_the_plan_is_the_same() -> None:
    """Nothing is added, and nothing noted."""
    assert rehearsed() == make_plan([MATRIX], INVENTORY, TODAY)


def test_nothing_to_rehearse_is_said() -> None:
    """A plan without VXLAN says that the option does nothing."""
    plan = rehearsed("overlay", only=("api",))
    assert not any(one.rehearsal for one in plan.blocks)
    assert plan.notes[-1] == "--rehearse=overlay: no row of this plan has anything to rehearse"


def test_filters_choose_tunnels_with_their_rows() -> None:
    """``--only vxlan`` keeps the tunnels of that row."""
    ids = [one.requirement.id for one in rehearsed("overlay", only=("vxlan",)).blocks]
    assert ids[:2] == ["vxlan", "vxlan/overlay"]


def test_the_value_of_the_option() -> None:
    """Alone it means all that exist; a name that does not exist is refused with those that do."""
    assert read_rehearsals(None) == ()
    assert read_rehearsals("all") == REHEARSALS
    assert read_rehearsals("overlay,overlay") == ("overlay",)
    for text in ("quality", "overlay,quality", ""):
        with pytest.raises(RequestError, match="expected one of: overlay, balancer, segment"):
            read_rehearsals(text)


def test_a_rehearsal_is_no_choice_of_its_row() -> None:
    """Of rows of which one is enough, a tunnel decides by itself: its row must not excuse it. What
    other matrices demand, too, has the same name in them."""
    plan = make_plan([MATRIX], INVENTORY, TODAY)
    row, *rest = (one for one in plan.blocks if one.requirement.id == "vxlan")
    assert not rest
    row = replace(row, any_of=AnyOf("m", "pods"), also=(Also("other", "tunnels"),))
    plan = with_rehearsals(replace(plan, blocks=(row,)), ["overlay"], [MATRIX], INVENTORY)
    (block,) = [one for one in plan.blocks if one.rehearsal]
    assert block.group_name is None
    assert block.names_of_rows[1] == ("other", "tunnels/overlay")
