"""What is probed at a destination: joined where packets are the same, less what is known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.model import ports as port_sets
from netprobe.model.evidence import Evidence, Outcome
from netprobe.model.inventory import Inventory
from netprobe.model.plan import Plan
from netprobe.model.ports import Ports
from netprobe.plan.expand import make_plan
from netprobe.probe.flows.listeners import Spot, restrict, rounds, spots
from netprobe.probe.flows.work import UNTOLD, Want, Work, join
from netprobe.protocols import protocol_for
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement
from tests.probe.builders import NAMED, make_want


def plan_of(*wanted: object, **extra: object) -> Plan:
    hosts = [
        host("a", "node", addresses=("10.0.0.1",)),
        host("b", "external", addresses=("10.0.0.2",)),
        host("c", "external", addresses=("c.example.com",)),
    ]
    return make_plan([chosen_matrix(list(wanted), **extra)], Inventory(tuple(hosts)), TODAY)  # type: ignore[arg-type]


def test_requirements_that_want_the_same_packets_share_a_task() -> None:
    """Two requirements with overlapping ports are one set of probes."""
    plan = plan_of(
        requirement("x", "node", "external", tcp=((1, 5),)),
        requirement("y", "node", "external", tcp=((4, 9),)),
    )
    work = Work(plan)
    tasks = join(work.wants(work.destinations[0]), {})

    assert [(task.address, task.ports, len(task.wants)) for task in tasks] == [
        ("10.0.0.2", ((1, 9),), 2)
    ]


def test_denied_ports_are_tasks_of_their_own() -> None:
    """They are looked at before any listener of ours is open."""
    plan = plan_of(
        requirement("x", "node", "external", tcp=((1, 5),)),
        requirement("y", "node", "external", tcp=((4, 4),), expect="denied"),
    )
    work = Work(plan)
    tasks = join(work.wants(work.destinations[0]), {})

    assert [(task.denied, task.ports) for task in tasks] == [(False, ((1, 5),)), (True, ((4, 4),))]
    assert [spot.ports for spot in spots(tasks)] == [((1, 5),)]


def test_names_are_probed_at_every_address_that_the_source_resolved() -> None:
    """Each address of a name is a task; a name without one has none."""
    plan = plan_of(requirement("x", "node", "external"))
    work = Work(plan)
    named = work.destinations[1]

    assert join(work.wants(named), {}) == []
    resolved = {("a", "c.example.com"): ("192.0.2.1", "2001:db8::1")}
    assert [task.address for task in join(work.wants(named), resolved)] == list(
        resolved["a", "c.example.com"]
    )


def test_what_an_earlier_run_knows_is_not_probed() -> None:
    """Resume: final ports are left out, and a flow that is whole is not there at all."""
    plan = plan_of(requirement("x", "node", "external", tcp=((1, 9), (20, 20))))
    key = ("m", "x", "a", "b", "10.0.0.2", "tcp")

    (task,) = join(Work(plan, {key: ((2, 20),)}).wants(plan.blocks[0].destinations[0][0]), {})
    assert task.ports == ((1, 1),)
    work = Work(plan, {key: ((1, 20),)})
    assert list(work.wants(plan.blocks[0].destinations[0][0])) == []


def test_a_port_has_one_packet() -> None:
    """Where two requirements want different packets on a port, its listener knows one of them."""
    plan = plan_of(
        requirement("x", "node", "external", udp=((53, 53),), probe="dns"),
        requirement("y", "node", "external", udp=((50, 60),)),
    )
    work = Work(plan)
    found = spots(join(work.wants(work.destinations[0]), {}))

    assert [(spot.packet.name, spot.ports) for spot in found] == [
        ("dns", ((53, 53),)),
        ("plain", ((50, 52), (54, 60))),
    ]


ranges = st.lists(
    st.tuples(st.integers(1, 60000), st.integers(0, 900)).map(lambda one: (one[0], sum(one))),
    min_size=1,
    max_size=6,
)


@given(ranges, st.integers(0, 3000))
def test_rounds_hold_every_port_once_and_fit(
    wanted: list[tuple[int, int]], descriptors: int
) -> None:
    """However few descriptors an agent has, every port has its round."""
    ports = port_sets.normalise(wanted)
    cut = rounds([Spot("tcp", "10.0.0.2", protocol_for(None), ports)], descriptors)
    sizes = [sum(spot.size for spot in some) for some in cut]
    entries = [entry for some in cut for spot in some for entry in spot.ports]

    assert port_sets.normalise(entries) == ports
    assert sum(sizes) == port_sets.count(ports)
    assert max(sizes) <= max(1, descriptors - 512, descriptors // 4)


def test_a_round_has_the_ports_that_it_listens_on() -> None:
    """Tasks without ports go with the first round, and so do the listeners of IP protocols: one
    that opened in a later round heard nothing."""
    plan = plan_of(
        requirement("x", "node", "external", tcp=((1, 100),)),
        requirement("y", "node", "external", icmp=True),
        requirement("z", "node", "external", ipproto=(50,)),
    )
    work = Work(plan)
    tasks = join(work.wants(work.destinations[0]), {})
    cut = rounds(spots(tasks), 4 * 60)
    seen = [
        [(task.protocol, task.ports) for task in restrict(tasks, some, first=number == 0)]
        for number, some in enumerate(cut)
    ]

    assert [("ipproto/50" in [spot.protocol for spot in some]) for some in cut] == [True, False]
    assert seen == [
        [("tcp", ((1, 60),)), ("icmp", ()), ("ipproto/50", ())],
        [("tcp", ((61, 100),))],
    ]


def untold(want: Want, found: list[Evidence]) -> list[tuple[str, Ports]]:
    """Address and ports of what nobody told of."""
    told = want.with_untold(found)
    assert told[: len(found)] == found
    rest = told[len(found) :]
    assert {one.untested for one in rest} <= {UNTOLD}
    return [(one.address, one.ports) for one in rest]


def seen(want: Want, ports: Ports, address: str = "10.0.0.2") -> Evidence:
    return Evidence(want.flow, address, ports, outcome=Outcome("connect", None))


def test_what_nobody_told_of_is_not_tested() -> None:
    """Every port that should be probed has evidence, whatever was told of the others."""
    want = make_want("tcp", ((5, 9), (20, 20)))

    assert untold(want, []) == [("10.0.0.2", ((5, 9), (20, 20)))]
    assert untold(want, [seen(want, ((6, 7),))]) == [("10.0.0.2", ((5, 5), (8, 9), (20, 20)))]
    assert untold(want, [seen(want, ((5, 9),)), seen(want, ((20, 20),))]) == []


def test_a_protocol_without_ports_needs_one_result() -> None:
    """There is nothing that could be missing from it."""
    want = make_want("icmp", ())

    assert untold(want, []) == [("10.0.0.2", ())]
    assert untold(want, [seen(want, ())]) == []


def test_what_an_earlier_run_told_is_not_missing() -> None:
    """Only what is probed must be told of; of a name every address by itself."""
    want = make_want("tcp", ((5, 9),), kept={"10.0.0.2": ((5, 8),)})
    assert untold(want, []) == [("10.0.0.2", ((9, 9),))]
    assert untold(want, [seen(want, ((9, 9),))]) == []

    named = make_want("tcp", ((5, 9),), target=NAMED, kept={"10.0.0.2": ((5, 9),)})
    assert untold(named, []) == []
    assert untold(named, [seen(named, ((5, 6),), "10.0.0.3")]) == [("10.0.0.3", ((7, 9),))]


def test_parts_of_a_flow_share_what_has_results() -> None:
    """A proxy splits a flow: each part asks for the rest of its own ports."""
    want = make_want("tcp", ((80, 80), (443, 443)))
    direct, proxied = (
        replace(want, flow=replace(want.flow, block=replace(want.flow.block, ports=ports)))
        for ports in (((80, 80),), ((443, 443),))
    )

    direct.note_evidence([seen(direct, ((80, 80),))])

    assert want.left("10.0.0.2") == proxied.left("10.0.0.2") == ((443, 443),)
    assert direct.left("10.0.0.2") is None
    assert want.left_of(((80, 80), (443, 443)), "10.0.0.2") == ((443, 443),)
    assert direct.left_of(((80, 80), (443, 443)), "10.0.0.2") is None
    assert proxied.left_of(((80, 80),), "10.0.0.2") is None
