"""Which balancers a plan rehearses, and from where."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netprobe.model.inventory import Address, Health, Host, Inventory, Vantage
from netprobe.model.matrix import ChosenMatrix, Role
from netprobe.model.plan import Block, Plan
from netprobe.plan.expand import make_plan
from netprobe.plan.rehearsals import note_cost, with_rehearsals
from netprobe.plan.select import Selection, select
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement

READYZ = Health("https", "/readyz")
MASTERS = tuple(host(f"m{at}", "master", addresses=(f"10.0.0.{at}",)) for at in (1, 2))
CLIENT = host("c", "client", addresses=("10.0.1.1",))
LB = replace(
    host("lb", "vip", addresses=("10.0.2.1",), vantage=Vantage("none")),
    balances=("master",), health=(replace(READYZ, of=6443),),
)  # fmt: skip
PLAIN = chosen_matrix(
    [
        requirement("front", "client", "vip", tcp=((6443, 6443), (443, 443))),
        requirement("nodes", "client", "vip", tcp=((30000, 32767),)),
        requirement("etcd", "master", "master", tcp=((2379, 2379),)),
        requirement("api", "client", "master", tcp=((6443, 6443),)),
        requirement("watch", "lonely", "master", tcp=((10250, 10250),)),
    ]
)
ROLES = {name: Role(name) for name in ("client", "lonely", "master", "vip")}
MATRIX = replace(PLAIN, matrix=replace(PLAIN.matrix, roles=ROLES))


def rehearsed(*hosts: Host, matrix: ChosenMatrix = MATRIX) -> Plan:
    """The plan with the balancers of these hosts."""
    inventory = Inventory(hosts)
    plan = make_plan([matrix], inventory, TODAY)
    return with_rehearsals(plan, ["balancer"], [matrix], inventory)


def played(plan: Plan) -> list[Block]:
    return [block for block in plan.blocks if block.rehearsal]


def test_a_row_to_a_balancer_is_rehearsed() -> None:
    """From each source of the row and from each back end, at the ports that ``health`` names."""
    (block,) = played(rehearsed(*MASTERS, CLIENT, LB))
    assert (block.requirement.id, block.ports) == ("front/balancer", ((6443, 6443),))
    assert [one.name for one in block.back_ends] == ["m1", "m2"]
    flows = {(flow.source.name, flow.destination.name) for flow in block.flows()}
    assert flows == {("c", "lb"), ("m1", "lb"), ("m2", "lb")}


def test_without_named_ports_all_single_ones_of_the_row() -> None:
    """A range of ports, such as that of NodePorts, is none that a balancer is known to have."""
    for health in ((), (READYZ,)):
        blocks = played(rehearsed(*MASTERS, CLIENT, replace(LB, health=health)))
        assert [block.requirement.id for block in blocks] == ["front/balancer"]
        assert blocks[0].ports == ((443, 443), (6443, 6443))


@pytest.mark.parametrize("roles", [(), ("lonely",)])
def test_one_that_no_row_leads_to_stands_in_for_whom_it_balances(roles: tuple[str, ...]) -> None:
    """At the ports that its ``health`` names alone, and in no other row that leads to them: not in
    etcd's. Where it names none, as where no row has the port, that is said."""
    other = replace(LB, roles=roles)
    plan = rehearsed(*MASTERS, CLIENT, other)
    (block,) = played(plan)
    assert (block.requirement.id, block.ports) == ("api/balancer", ((6443, 6443),))
    probed = [one for one in plan.blocks if not one.rehearsal]
    assert not any(end.name == "lb" for one in probed for end, _ in one.destinations)
    for health in ((), (READYZ,), (replace(READYZ, of=6444),)):
        plan = rehearsed(*MASTERS, CLIENT, replace(other, health=health))
        assert not played(plan)
        assert "nothing is rehearsed of lb: no row leads to it" in plan.notes[0]


def test_one_that_a_row_leads_to_stands_in_nowhere() -> None:
    """Also where ``--only`` leaves that row out; and who chose rows is told of no other."""
    chosen, inventory = [MATRIX], Inventory((*MASTERS, CLIENT, LB))
    for row, found in (("front", ["front/balancer"]), ("api", [])):
        plan = select(
            make_plan(chosen, inventory, TODAY), Selection(only=(row,)), chosen, inventory
        )
        plan = with_rehearsals(plan, ["balancer"], chosen, inventory)
        assert [block.requirement.id for block in played(plan)] == found
        assert not any("nothing is rehearsed of" in note for note in plan.notes)


def test_what_cannot_be_played_is_one_line() -> None:
    """A role that no host has, and back ends without an agent."""
    nobody = rehearsed(*MASTERS, CLIENT, replace(LB, balances=("worker",)))
    closed = replace(MASTERS[1], vantage=Vantage("none"))
    without = rehearsed(MASTERS[0], closed, CLIENT, LB)
    for plan, words in (
        (nobody, "no host has the role worker, which lb balances"),
        (without, "back ends are played by their agents, and m2 is declared vantage: none"),
    ):
        assert not played(plan)
        assert [one.reason for one in plan.skipped if "/" in one.requirement] == [words]


def test_the_notes_say_what_is_done() -> None:
    """How many, how long, and what hosts open."""
    note = note_cost(rehearsed(*MASTERS, CLIENT, LB)).notes[-1]
    assert note.startswith(
        "--rehearse=balancer: 1 port of balancers, about 25 s in all; up to 100 s"
    )
    assert "m1, m2 open TCP port 6443 at all of their addresses" in note
    assert " slow. m1" in note
    with_port = replace(LB, health=(Health("http", "/readyz", 6080, 6443),))
    assert "TCP port 6080, 6443" in note_cost(rehearsed(*MASTERS, CLIENT, with_port)).notes[-1]


def test_what_shares_ports_of_back_ends_follows_one_another() -> None:
    """Both addresses of both balancers; one with other back ends, and another port, do not."""
    api, client, *masters = (
        replace(one, addresses=(*one.addresses, Address(f"fd00::{at}", 6)))
        for at, one in enumerate((LB, CLIENT, *MASTERS), 1)
    )
    inner = replace(LB, name="inner")
    other = replace(LB, name="other", balances=("client",))
    https = replace(LB, name="https", health=(replace(READYZ, of=443),))
    note = note_cost(rehearsed(*masters, client, api, inner, other, https)).notes[-1]
    assert "5 ports of balancers, about 75 s in all; up to 100 s for one" in note
    assert "slow, 300 s for those that share back ends' ports" in note
    checked = replace(
        LB, health=(replace(READYZ, of=443, port=9), replace(READYZ, of=6443, port=9))
    )
    assert "about 50 s in all" in note_cost(rehearsed(*MASTERS, CLIENT, checked)).notes[-1]
