"""What a plan rehearses of segments, and what it leaves alone that must be free."""

from __future__ import annotations

from msgspec.structs import replace

from netprobe.model.inventory import Inventory, Vantage
from netprobe.model.plan import Plan
from netprobe.plan.expand import make_plan
from netprobe.plan.rehearsals import note_cost, with_rehearsals
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement

VIP = replace(
    host("vip", "external", addresses=("10.0.0.100", "fd00::100"), vantage=Vantage("none")),
    free=True, vrid=51,
)  # fmt: skip
HOSTS = (
    *(host(f"n{one}", "node", addresses=(f"10.0.0.{one}", "127.0.0.1")) for one in (1, 2)),
    host("router", "external", addresses=("10.0.0.9",), vantage=Vantage("none")),
)
ROWS = chosen_matrix(
    [requirement("ssh", "node", "node"), requirement("api", "node", "external"),
     requirement("back", "external", "node")]
)  # fmt: skip


def planned(*words: str, vip: object = VIP, limited_to: frozenset[str] = frozenset()) -> Plan:
    """The plan with what is rehearsed."""
    inventory = Inventory((*HOSTS, vip))  # type: ignore[arg-type]
    plan = replace(make_plan([ROWS], inventory, TODAY), limited_to=limited_to)
    return with_rehearsals(plan, words, [ROWS], inventory)


def list_addresses(plan: Plan) -> list[tuple[str, str, str]]:
    """Ends and address of each flow of the rehearsal."""
    played = [block for block in plan.blocks if block.rehearsal]
    return [
        (flow.source.name, flow.destination.name, flow.address.text)
        for block in played
        for flow in block.flows()
    ]


def test_each_address_leads_to_itself() -> None:
    """Those that must be free first, then those of hosts with agents; loopback is on no network,
    and a host without an agent may be anything."""
    plan = planned("segment")
    assert list_addresses(plan) == [
        ("vip", "vip", "10.0.0.100"), ("vip", "vip", "fd00::100"), ("n1", "n1", "10.0.0.1"),
        ("n2", "n2", "10.0.0.2"),
    ]  # fmt: skip
    (ids,) = {(one.id, one.protocol) for one in plan.requirements if one.id == "segment"}
    assert ids == ("segment", "icmp")
    block = next(block for block in plan.blocks if block.rehearsal)
    assert {"10.0.0.9", "10.0.0.100"} <= {*block.listed}
    assert "4 addresses, about 6 s in all" in note_cost(plan).notes[-1]


def test_networks_without_dhcp() -> None:
    """`dhcp: none` of the inventory stands in every block of segments."""
    plan = make_plan([ROWS], Inventory(HOSTS), TODAY)
    for no_dhcp in (False, True):
        made = with_rehearsals(plan, ("segment",), [ROWS], Inventory(HOSTS, no_dhcp=no_dhcp))
        assert {one.no_dhcp for one in made.blocks if one.rehearsal} == {no_dhcp}


def test_a_free_address_has_no_rows() -> None:
    """To it nothing is probed, with the reason, and nothing is missed that would start there."""
    plan = planned()
    ends = {end.name for block in plan.blocks for end, _ in block.destinations}
    assert "vip" not in ends
    (reason,) = [one.reason for one in plan.skipped if one.destination == "vip"]
    assert "`free: true`" in reason
    assert not any("vip" in {one.name for one in block.sources} for block in plan.unable)
    taken = planned(vip=replace(VIP, free=False))
    assert "vip" in {end.name for block in taken.blocks for end, _ in block.destinations}
    balanced = planned(vip=replace(VIP, balances=("node",)))
    assert "vip" in {end.name for block in balanced.blocks for end, _ in block.destinations}


def test_a_limit_holds_for_addresses_that_must_be_free() -> None:
    """``--limit n1``: nobody asks for the virtual address."""
    names = {
        name for name, _, _ in list_addresses(planned("segment", limited_to=frozenset({"n1"})))
    }
    assert "vip" not in names


def test_without_the_word_nothing_is_added() -> None:
    """``--rehearse=overlay`` leaves segments alone."""
    assert not list_addresses(planned("overlay"))


def test_those_who_ask_are_there() -> None:
    """Also where only one address is asked again: all hosts with agents for one that must be free,
    the hosts beside it for a host's own."""
    blocks = {block.sources[0].name: block for block in planned("segment").blocks if block.listed}
    asking = {name: [one.name for one in block.back_ends] for name, block in blocks.items()}
    assert asking == {"vip": ["n1", "n2"], "n1": ["n2"], "n2": ["n1"]}
