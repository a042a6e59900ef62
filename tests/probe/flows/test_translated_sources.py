"""Whose a packet from a translated address is."""

from __future__ import annotations

from msgspec.structs import replace

from netprobe.model.inventory import Inventory
from netprobe.model.ports import Ports
from netprobe.plan.expand import make_plan
from netprobe.probe.flows.listeners import Origins
from netprobe.probe.flows.work import Task, Work, join
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement

PORT = 6443
ROUTER = "192.0.2.1"
HOSTS = (
    host("a", "node", addresses=("10.0.0.1",)),
    host("b", "external", addresses=("10.0.0.2",)),
    host("c", "node", addresses=("10.0.0.3",)),
)


def tasks() -> list[Task]:
    """The flows of a and c to b."""
    wanted = requirement("x", "node", "external", tcp=((PORT, PORT),))
    work = Work(make_plan([chosen_matrix([wanted])], Inventory(HOSTS), TODAY))
    return sorted(join(work.wants(work.destinations[0]), {}), key=lambda task: task.source.name)


def test_an_address_is_known_by_the_nonces_that_came_from_it() -> None:
    """Before, it is a stranger's; an address of another host is never the source's."""
    origins = Origins(HOSTS)
    first, _ = tasks()
    origins.expect([first])

    assert origins.is_of(first, PORT, "10.0.0.1") is True
    assert origins.is_of(first, PORT, "10.0.0.3") is False
    assert origins.is_of(first, PORT, ROUTER) is None
    origins.note(first, [ROUTER])
    assert origins.is_of(first, PORT, ROUTER) is True


def test_a_shared_address_tells_nothing() -> None:
    """Two sources behind one router ask the same port: whose SYN is it?"""
    origins = Origins(HOSTS)
    first, second = tasks()
    origins.expect([first, second])
    origins.note(first, [ROUTER])

    assert origins.is_of(first, PORT, ROUTER) is None
    origins.note(second, ["10.0.0.3"])
    assert origins.is_of(first, PORT, ROUTER) is True
    origins.note(second, [ROUTER])
    assert origins.is_of(first, PORT, ROUTER) is None


def test_others_may_have_asked_the_same_from_a_translated_address() -> None:
    """Who came from elsewhere did not; any source may send echo requests."""
    origins = Origins(HOSTS)
    first, second = tasks()
    origins.expect([first])
    origins.expect([second])

    def rivals(task: Task) -> list[Ports]:
        return list(origins.list_rivals(task, ROUTER))

    assert rivals(first) == [second.ports]
    assert rivals(replace(first, protocol="icmp", ports=())) == [second.ports]
    assert rivals(replace(first, protocol="udp")) == []
    assert rivals(replace(first, family=6)) == []
    origins.note(second, ["10.0.0.3"])
    assert rivals(first) == []
    origins.note(second, [ROUTER])
    assert rivals(first) == [second.ports]
