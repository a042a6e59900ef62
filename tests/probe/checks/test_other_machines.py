"""Who answers for an address, where no nonce of the destination's agent says so."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.host_messages import (
    Egress,
    EgressOrder,
    RouteOrder,
)
from netprobe.agent.wire.segment_messages import SegmentAskOrder
from netprobe.model.evidence import CheckConclusion, Icmp, Outcome, PathMtu, Witness
from netprobe.model.plan import PATH_MTU
from netprobe.model.story import Story, StoryPlace
from netprobe.probe.checks.check import Scene
from netprobe.probe.checks.other_machines import OtherMachines
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import (
    ROUTER,
    SOURCE,
    TARGET,
    look,
    make_observation,
    make_scene,
    make_task,
)
from tests.probe.fakes import HELLO, FakeAgent, answering, host, routed

ADDRESS = TARGET.addresses[0].text
MINE, STRANGE = "02:00:00:00:00:02", "02:00:00:00:00:99"

NONCE = Outcome("answer", None, answer="nonce")
ECHO = Outcome("answer", None, answer="echo")
RESET = Outcome("connect", "refused")
FOREIGN = Outcome("answer", None, answer="foreign", answered_by="x")
SILENT = Outcome("connect", "no-answer")
REFUSED = Outcome("send", "refused", Icmp(3, 3, ADDRESS, "destination"))


def seen(outcome: Outcome, port: int = 443, **facts: Any) -> Observation:
    return make_observation(
        outcome, make_task("tcp", ((port, port),)), **{"listener": "ours"} | facts
    )


def scene(
    *,
    target: tuple[str, ...] = (ADDRESS,),
    source: tuple[str, ...] = ("10.0.0.1",),
    link: str | None = MINE,
    gateway: str | None = None,
    others: tuple[FakeAgent, ...] = (),
    machines: tuple[str, str] = ("a", "b"),
    holders: tuple[str, ...] = (),
    start: str = "agent",
) -> Scene:
    """Source and destination with these addresses; ``link`` answers the source's ARP, and
    ``holders`` a question to everybody. ``start``: whether the destination has an agent."""
    scripts: dict[type[Any], Any] = {
        RouteOrder: routed(gateway=gateway),
        EgressOrder: lambda order: Egress(0, "eth0", ADDRESS, "known", link, True, None),
        SegmentAskOrder: answering(*holders),
    }
    one = HELLO._replace(machine=machines[0], addresses=list(source))
    other = HELLO._replace(machine=machines[1], addresses=list(target), links=[MINE])
    return make_scene(
        FakeAgent(SOURCE, scripts, hello=one),
        FakeAgent(TARGET, hello=other if start == "agent" else None),
        *others,
    )


def third(*addresses: str, links: tuple[str, ...] = (), machine: str = "x") -> FakeAgent:
    hello = HELLO._replace(machine=machine, addresses=list(addresses), links=list(links))
    scripts = {RouteOrder: routed(gateway=ROUTER)}
    return FakeAgent(host("x", "10.0.0.9"), scripts, hello=hello)


async def concluded(here: Scene, *flows: Observation) -> list[CheckConclusion | None]:
    return [one.conclusion for one in await look(OtherMachines(), here, *flows)]


@pytest.mark.parametrize("other", [ECHO, RESET, SILENT])
async def test_an_address_of_the_source_itself_is_never_left(other: Outcome) -> None:
    """Nothing goes out, whatever answers."""
    here = scene(source=("10.0.0.1", ADDRESS))

    assert await concluded(here, seen(other)) == [CheckConclusion("address-here", "a")]


async def test_one_machine_under_two_names_has_its_address() -> None:
    """Both agents run on it."""
    here = scene(source=(ADDRESS,), machines=("m", "m"))

    assert await concluded(here, seen(ECHO, 1), seen(SILENT, 2)) == [None, None]


@pytest.mark.parametrize("link", [MINE, None])
async def test_who_has_the_address_and_answers_is_not_doubted(link: str | None) -> None:
    """Its own device answers, or nobody knows which."""
    assert await concluded(scene(link=link), seen(RESET)) == [None]
    assert await concluded(scene(link=STRANGE, gateway=ROUTER), seen(RESET)) == [None]


async def test_a_strange_device_that_answers_arp_proves_nothing() -> None:
    """A duplicate address; but some routers answer for all."""
    said = f"{STRANGE} answers ARP requests for {ADDRESS}, and is no device of b"
    unproved = CheckConclusion("unproved-machine", said)

    assert await concluded(scene(link=STRANGE), seen(RESET)) == [unproved]
    # What is silent is not answered by anybody.
    assert await concluded(scene(link=STRANGE), seen(ECHO, 1), seen(SILENT, 2)) == [unproved, None]


async def test_the_device_of_another_host_names_it() -> None:
    """Its agent knows its devices."""
    here = scene(link=STRANGE, others=(third(links=(STRANGE,)),))

    assert await concluded(here, seen(RESET)) == [CheckConclusion("other-machine", "x")]


@pytest.mark.parametrize("outcome", [ECHO, RESET, Outcome("connect", None, answer="unasked"),
                                     REFUSED])  # fmt: skip
async def test_a_host_without_the_address_is_not_proven(outcome: Outcome) -> None:
    """The inventory may be wrong, or a translation on the way."""
    here = scene(target=("10.0.0.77",))
    said = f"b does not have {ADDRESS}"

    assert await concluded(here, seen(outcome)) == [CheckConclusion("unproved-machine", said)]


async def test_the_agent_that_has_it_is_named() -> None:
    """Unless it is the same machine under another name."""
    where = ("10.0.0.77",)

    (found,) = await concluded(scene(target=where, others=(third(ADDRESS),)), seen(ECHO))
    assert found == CheckConclusion("other-machine", "x")
    same = third(ADDRESS, machine="b")
    (found,) = await concluded(scene(target=where, others=(same,)), seen(ECHO))
    assert found is not None
    assert found.name == "unproved-machine"


@pytest.mark.parametrize(
    "proof", [seen(NONCE, 1), seen(RESET, 1, witness=Witness(socket=True)),
              seen(RESET, 1, story=Story(destination_in=StoryPlace("yes")))]
)  # fmt: skip
async def test_a_nonce_proves_the_machine(proof: Observation) -> None:
    """A translated address leads to it, and its own firewall may refuse the rest."""
    here = scene(target=("10.0.0.77",), link=STRANGE)

    assert await concluded(here, proof, seen(ECHO, 2)) == [None, None]


async def test_a_nonce_of_another_host_names_it() -> None:
    """It answers this source in the destination's name."""
    found = await concluded(scene(), seen(FOREIGN, 1), seen(ECHO, 2))

    assert found == [CheckConclusion("other-machine", "x")] * 2


async def test_an_agent_that_does_not_know_its_addresses_says_nothing() -> None:
    """Neither is there anything to ask where it is gone."""
    assert await concluded(scene(target=()), seen(ECHO)) == [None]
    gone = scene(target=("10.0.0.77",))
    gone.agent.lost = True  # type: ignore[attr-defined]  # it is a fake
    assert await concluded(gone, seen(ECHO)) == [None]


async def test_live_services_are_not_asked_for_their_devices() -> None:
    """They prove themselves; a running cluster has thousands."""
    assert await concluded(scene(link=STRANGE), seen(RESET, listener="live")) == [None]


@pytest.mark.parametrize(
    ("outcome", "story", "here"),
    [
        (RESET, None, True),
        (SILENT, None, True),
        # A service may be what is meant: a virtual address that the source holds at present.
        (Outcome("connect", None, answer="unasked"), None, False),
        (RESET, Story(source_out=StoryPlace("yes")), False),
    ],
)
async def test_without_an_agent_there_the_source_knows_its_own_addresses(
    outcome: Outcome, story: Story | None, here: bool
) -> None:
    """What it sends to them never leaves it."""
    own = HELLO._replace(addresses=["10.0.0.1", ADDRESS])
    alone = make_scene(FakeAgent(SOURCE, {RouteOrder: routed()}, hello=own))
    seen_there = seen(outcome, listener="unknown", story=story)

    wanted = CheckConclusion("address-here", "a") if here else None
    assert await concluded(alone, seen_there) == [wanted]


@pytest.mark.parametrize("link", [MINE, STRANGE, None])
@pytest.mark.parametrize("outcome", [RESET, SILENT, REFUSED])
async def test_a_source_may_hold_a_virtual_address(outcome: Outcome, link: str | None) -> None:
    """Where another agent's network resolves it to the source, too: its flows count as for others.
    Else the source may have the address of another machine."""
    virtual = FakeAgent(host("b", ADDRESS, kind="none"), hello=None)
    own = HELLO._replace(addresses=["10.0.0.1", ADDRESS], links=[MINE])
    scripts: dict[type[Any], Any] = {
        RouteOrder: routed(),
        EgressOrder: lambda order: Egress(0, "eth0", ADDRESS, "known", link, True, None),
    }
    peer = FakeAgent(host("x", "10.0.0.9"), scripts, hello=HELLO._replace(machine="x"))
    source = FakeAgent(SOURCE, {RouteOrder: routed()}, hello=own)
    here = make_scene(source, virtual, peer)

    (found,) = await look(OtherMachines(), here, seen(outcome, listener="unknown"))

    said = (
        f"a has {ADDRESS} itself: what it sends there does not leave it, which says nothing of the "
        "network"
    )
    assert found.warnings == ((said,) if link == MINE else ())
    assert (found.conclusion is None) is (link == MINE)


TWICE = CheckConclusion("held-twice", f"{STRANGE} answers ARP requests for {ADDRESS}, beside b")


async def test_an_address_that_two_machines_have_is_held_twice() -> None:
    """Both answer a neighbour; what is refused or accepted may have met the wrong one. Silence may
    have other causes, too; where nothing but that shows it, it is concluded of silence."""
    here = scene(holders=(MINE, STRANGE))

    flows = (seen(RESET, 1), seen(SILENT, 2), seen(ECHO, 3))
    assert await concluded(here, *flows) == [TWICE, None, TWICE]
    assert await concluded(here, seen(SILENT, 1), seen(SILENT, 2)) == [TWICE] * 2
    named = scene(holders=(MINE, STRANGE), others=(third(links=(STRANGE,)),))
    said = f"x answers ARP requests for {ADDRESS}, beside b"
    assert await concluded(named, seen(RESET)) == [CheckConclusion("held-twice", said)]
    assert await concluded(scene(holders=(MINE,)), seen(RESET)) == [None]
    # Its own second device.
    assert await concluded(scene(holders=(MINE, MINE)), seen(SILENT)) == [None]


def shut(outcome: Outcome, port: int, **facts: Any) -> Observation:
    """A port that must not answer."""
    task = make_task("tcp", ((port, port),), expect="denied")
    return make_observation(outcome, task, **facts)


async def test_answers_of_another_machine_vouch_for_no_silence() -> None:
    """That a port which must not answer keeps quiet shows a drop only beside the same machine's
    answers. What came to the right machine is not doubted, nor what is required."""
    here = scene(target=("10.0.0.77",))
    unproved = CheckConclusion("unproved-machine", f"b does not have {ADDRESS}")
    came = Story(destination_in=StoryPlace("yes"))

    flows = (seen(ECHO, 1), shut(SILENT, 2), seen(SILENT, 4))
    assert await concluded(here, *flows) == [unproved, unproved, None]
    assert await concluded(here, shut(SILENT, 2)) == [None]
    assert await concluded(scene(), seen(ECHO, 1), shut(SILENT, 2)) == [None, None]
    twice = scene(holders=(MINE, STRANGE))
    flows = (seen(RESET, 1), shut(SILENT, 2), shut(SILENT, 3, story=came))
    assert await concluded(twice, *flows) == [TWICE, TWICE, None]


async def test_what_came_to_its_own_machine_met_no_other() -> None:
    """Nor is silence of one port beside others that get through doubted: it may be a firewall."""
    here = scene(holders=(MINE, STRANGE))
    came, lost = (Story(destination_in=StoryPlace(word)) for word in ("yes", "no"))

    assert await concluded(here, seen(NONCE, 1), seen(SILENT, 2)) == [None, None]
    assert not here.fleet.agent(SOURCE).orders(SegmentAskOrder)  # type: ignore[attr-defined]
    found = await concluded(
        here, seen(NONCE, 1), seen(RESET, 2), seen(SILENT, 3), seen(SILENT, 4, story=lost),
        seen(SILENT, 5, story=came),
    )  # fmt: skip
    assert found == [None, TWICE, None, TWICE, None]
    # One question for all flows of the run.
    assert len(here.fleet.agent(SOURCE).orders(SegmentAskOrder)) == 1  # type: ignore[attr-defined]


async def test_refusals_of_two_machines_are_no_pass_where_the_way_onto_the_host_has_failed() -> (
    None
):
    """ssh may have met the other one; with one machine there, or a service, nothing is doubted."""
    said = f"{MINE} and {STRANGE} all answer ARP requests for {ADDRESS}"
    twice = CheckConclusion("held-twice", said)
    failed = scene(holders=(MINE, STRANGE), start="failed")

    flows = (seen(RESET, 1, listener="unknown"), seen(ECHO, 2, listener="unknown"))
    assert await concluded(failed, *flows) == [twice] * 2
    width = seen(Outcome(PATH_MTU, None), 3, mtu=PathMtu(1500, 1500, "service", "echo"))
    assert await concluded(failed, *flows, width) == [twice] * 3
    assert await concluded(scene(holders=(MINE,), start="failed"), *flows) == [None] * 2
    live = scene(holders=(MINE, STRANGE))
    assert await concluded(live, seen(RESET, listener="live")) == [None]
