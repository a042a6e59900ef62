"""Whether the destination made what refuses a flow in its name."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.host_messages import RouteOrder
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder, WalkOrder
from netprobe.agent.wire.parts import WalkHop
from netprobe.agent.wire.questions import CONTROL_PORTS
from netprobe.model.evidence import (
    CheckConclusion,
    Icmp,
    Listener,
    Outcome,
    RefusalMaker,
    ResetOrigin,
)
from netprobe.model.notes import HigherNote, ResetNote
from netprobe.model.story import Story, StoryPlace, TrailEntry
from netprobe.probe.checks import refusal_makers
from netprobe.probe.checks.genuine import find_genuine
from netprobe.probe.checks.refusal_makers import (
    ELSEWHERE,
    FARTHER,
    HIGHER,
    LOWER,
    NEAR,
    OTHER,
    PASSED,
    RefusalMakers,
)
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import ROUTER, SOURCE, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, icmp, kind, reply, routed

ADDRESS = "10.0.0.2"
LAST = "10.0.8.1"
TTL = 62
SILENCE = kind(op="answer", failure="no-answer")
# Hops of a walk: the last router and the destination; a translation at the first router; one at
# the last.
PLAIN = (ROUTER, LAST, ADDRESS)
TRANSLATED = (None, ADDRESS)
AT_LAST = (ROUTER, None, ADDRESS)
# The last router translates, and says "time exceeded" in the destination's name.
IN_ITS_NAME = (ROUTER, LAST, ADDRESS, ADDRESS)


@dataclass
class World:
    """What walks see by port, and the TTL that echo replies and resets arrive with."""

    walks: dict[int, tuple[str | None, ...]] = field(default_factory=dict)
    others: tuple[str | None, ...] = PLAIN
    gateway: str | None = ROUTER
    echo_ttl: int | None = TTL
    resets: dict[int, int] = field(default_factory=dict)

    def agent(self) -> FakeAgent:
        """The source's agent."""
        return FakeAgent(
            SOURCE,
            {
                RouteOrder: routed(gateway=self.gateway),
                EchoOrder: self._echo,
                ProbeOrder: self._probe,
                WalkOrder: self._walk,
            },
        )

    def _echo(self, order: EchoOrder) -> object:
        answer = kind(op="answer", answer="echo", ttl=self.echo_ttl)
        return reply(order, SILENCE if self.echo_ttl is None else answer)

    def _probe(self, order: ProbeOrder) -> object:
        return reply(
            order,
            lambda port: (
                kind(failure="refused")
                if self.resets.get(port, 0) >= (order.min_ttl or 0)
                else kind(failure="no-answer")
            ),
        )

    def _walk(self, order: WalkOrder) -> Walked:
        other = self.others if order.port in CONTROL_PORTS else PLAIN
        hops = self.others if order.proto == "icmp" else self.walks.get(order.port, other)
        return Walked(order.id, [WalkHop(*one) for one in enumerate(hops, 1)], True, None, None)


def error(code: int, ttl: int = TTL, protocol: str = "udp", port: int = 53) -> Observation:
    """An ICMP error in the destination's name."""
    outcome = Outcome("answer", "refused", Icmp(3, code, ADDRESS, "destination", ttl))
    ports = () if protocol.startswith("ipproto") else ((port, port),)
    return make_observation(outcome, make_task(protocol, ports))


def reset(port: int, ttl: int | None = TTL) -> Observation:
    """A reset, and the TTL that the source's recorder saw; None: there is no recorder."""
    story = None if ttl is None else Story(source_in=StoryPlace("yes", 1, ttl=ttl))
    trail = (TrailEntry("forged-resets", note=ResetNote(answer_ttl=TTL)),)
    return make_observation(
        Outcome("connect", "refused"), make_task("tcp", ((port, port),)),
        story=story, reset=ResetOrigin(forged=False), trail=trail,
    )  # fmt: skip


def higher(port: int) -> Observation:
    """A reset that starts higher than answers do, as a floor has shown; there is no recorder."""
    note = ResetNote(answer_ttl=TTL, higher=HigherNote(65, True))
    trail = (TrailEntry("forged-resets", note=note),)
    return replace(reset(port, ttl=None), reset=ResetOrigin(), trail=trail)


def accepted(ttl: int | None, *, existing: bool = False, state: str = "unknown") -> Observation:
    """A connection that somebody accepted; its SYN-ACK came with this TTL."""
    story = None if ttl is None else Story(source_in=StoryPlace("yes", 1, ttl=ttl))
    seen = make_observation(
        Outcome("connect", None, answer="unasked"), make_task("tcp", ((443, 443),)), story=story,
        listener=Listener(state),  # type: ignore[arg-type]
    )  # fmt: skip
    return replace(seen, task=replace(seen.task, existing=existing))


async def makers(world: World, *seen: Observation) -> dict[int, RefusalMaker | None]:
    """Who refuses each port, as far as that was asked."""
    found = await look(RefusalMakers(), make_scene(world.agent()), *seen)
    return {one.ports[0][0] if one.ports else 0: one.maker for one in found}


@pytest.mark.parametrize(
    ("gateway", "ttl", "doubt"),
    [
        (ROUTER, 64, NEAR.format(arrived=64)),
        # Two routers are on the way, and it has passed one of them.
        (ROUTER, 63, PASSED.format(arrived=63)),
        (ROUTER, 62, None),
        # A neighbour's own packets have a full TTL.
        (None, 64, None),
    ],
)
@pytest.mark.parametrize("kind_of", ["accepted", "refused"])
async def test_what_has_passed_fewer_routers_than_there_are_is_doubted(
    gateway: str | None, ttl: int, doubt: str | None, kind_of: str
) -> None:
    """Nothing genuine was ever heard of the address; who answered may be a router."""
    world = World({443: TRANSLATED}, gateway=gateway, echo_ttl=None)
    seen = accepted(ttl) if kind_of == "accepted" else error(3, ttl, port=443)

    maker = (await makers(world, seen))[443]

    assert (maker and maker.doubt) == doubt
    assert maker is None or not maker.own


@pytest.mark.parametrize("kind_of", ["accepted", "refused"])
@pytest.mark.parametrize(("hops", "own"), [(PLAIN, True), (TRANSLATED, False), (AT_LAST, False)])
async def test_a_shorter_way_back_is_no_translation(
    hops: tuple[str | None, ...], own: bool, kind_of: str
) -> None:
    """The address answers neither echo nor a closed port; packets to the flow's port get as far."""
    world = World({443: hops}, others=(ROUTER, LAST), echo_ttl=None)
    seen = accepted(63) if kind_of == "accepted" else error(3, 63, port=443)

    assert await makers(world, seen) == {443: RefusalMaker(own, PASSED.format(arrived=63))}


async def test_a_refusal_without_a_reason_to_doubt_it_is_not_looked_at() -> None:
    """Its TTL is that of the destination's answers, so nothing walks."""
    world = World({53: TRANSLATED, 443: TRANSLATED})
    agent = world.agent()

    found = await look(RefusalMakers(), make_scene(agent), error(3), reset(443))

    assert [one.maker for one in found] == [None, None]
    assert agent.orders(WalkOrder) == []


@pytest.mark.parametrize(
    ("seen", "doubt"),
    [
        (error(3, ttl=61), OTHER.format(ttl=TTL, arrived=61)),
        (reset(53, ttl=40), OTHER.format(ttl=TTL, arrived=40)),
        (reset(53, ttl=None), LOWER.format(ttl=TTL)),
        (higher(53), HIGHER.format(ttl=TTL)),
    ],
    ids=["port-unreach", "reset", "reset without a recorder", "reset that starts higher"],
)
@pytest.mark.parametrize(
    ("hops", "own"),
    [(PLAIN, True), (TRANSLATED, False), (AT_LAST, False), (IN_ITS_NAME, False)],
    ids=["plain", "translated", "translated at the last router", "in its name"],
)  # fmt: skip
async def test_another_ttl_makes_a_refusal_doubtful(
    seen: Observation, doubt: str, hops: tuple[str | None, ...], own: bool
) -> None:
    """A walk on its own port settles the doubt, where it meets the last router under its own
    address."""
    world = World({53: hops}, resets={53: 40})

    assert await makers(world, seen) == {53: RefusalMaker(own, doubt)}


@pytest.mark.parametrize(
    ("seen", "doubt"),
    [
        (error(3, ttl=63, port=443), OTHER.format(ttl=TTL, arrived=63)),
        (accepted(63), OTHER.format(ttl=TTL, arrived=63)),
        (error(13, ttl=63, protocol="tcp", port=443), ""),
    ],
    ids=["refused", "accepted", "rejected"],
)
async def test_what_comes_from_one_hop_nearer_may_be_the_last_routers(
    seen: Observation, doubt: str
) -> None:
    """A walk meets its answer where it would meet the destination's, so it settles nothing."""
    assert await makers(World({443: PLAIN}), seen) == {443: RefusalMaker(False, doubt)}


@pytest.mark.parametrize(
    ("seen", "doubt"),
    [
        (accepted(60), OTHER.format(ttl=TTL, arrived=60)),
        (accepted(TTL), None),
        (accepted(None), None),
        (accepted(60, existing=True), None),
        (accepted(60, state="ours"), None),
    ],
)
async def test_who_accepts_with_another_ttl_may_be_behind_a_translation(
    seen: Observation, doubt: str | None
) -> None:
    """Before the installation, where no agent of the destination tells who it is."""
    found = await makers(World({443: TRANSLATED}), seen)

    assert found == {443: doubt and RefusalMaker(False, doubt)}
    assert (await makers(World(), seen))[443] in (None, RefusalMaker(True, doubt or ""))


async def test_a_reset_with_the_ttl_of_answers_is_settled_without_a_recorder() -> None:
    """It still comes where the kernel ignores all with a lower TTL."""
    assert await makers(World({53: TRANSLATED}, resets={53: TTL}), reset(53, ttl=None)) == {
        53: None
    }


@pytest.mark.parametrize("other", ["intercepted", "foreign", "translated"])
async def test_what_answers_on_another_port_makes_refusals_doubtful(other: str) -> None:
    """A translation or a proxy was seen there: nothing shows whose proto-unreach it is."""
    opened = make_observation(
        Outcome("connect", None, answer="foreign" if other == "foreign" else "unasked"),
        make_task("tcp", ((80, 80),)),
        conclusion=CheckConclusion("intercepted") if other == "intercepted" else None,
    )
    beside = error(13, port=80) if other == "translated" else opened
    found = await makers(World({80: TRANSLATED}), beside, error(2, protocol="ipproto/4"))

    assert found[0] == RefusalMaker(own=False, doubt=ELSEWHERE)


@pytest.mark.parametrize("hops", [PLAIN, TRANSLATED, AT_LAST])
@pytest.mark.parametrize("code", [0, 2, 10, 13])
async def test_whose_firewall_rejects_is_always_asked(
    code: int, hops: tuple[str | None, ...]
) -> None:
    """The place of a rejection depends on it, whatever its TTL."""
    found = await makers(World({53: hops}), error(code, protocol="tcp"))

    assert found == {53: RefusalMaker(own=hops == PLAIN)}


@pytest.mark.parametrize("is_rationed", [True, False])
async def test_a_host_that_rations_its_errors_is_asked_again(
    is_rationed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its distance by UDP came to nothing, because what was asked before had taken all errors."""
    monkeypatch.setattr(refusal_makers, "RATION_S", 0.0)
    agent = World().agent()
    walk = agent.scripts[WalkOrder]
    silent = 1 if is_rationed else 2

    def ration(order: WalkOrder) -> Walked:
        is_silent = order.proto == "udp" and len(agent.orders(WalkOrder)) <= silent
        return (
            Walked(order.id, [WalkHop(1, ROUTER)], False, None, None) if is_silent else walk(order)
        )

    agent.scripts[WalkOrder] = ration
    (found,) = await look(RefusalMakers(), make_scene(agent), error(13, protocol="icmp", port=0))

    assert found.maker == RefusalMaker(own=is_rationed)


async def test_a_distance_is_measured_once_by_each_protocol() -> None:
    """What echo or a closed UDP port has told is not asked again for the flows of others."""
    agent = World().agent()
    scene = make_scene(agent)
    echo, tcp, udp = (error(13, protocol=one, port=0) for one in ("icmp", "tcp", "udp"))

    await look(RefusalMakers(), scene, echo, tcp, udp)

    asked = [(order.proto, order.port) for order in agent.orders(WalkOrder)]
    assert asked == [("udp", CONTROL_PORTS[0]), ("icmp", 0), ("tcp", 0), ("udp", 0)]


async def test_nothing_translates_between_neighbours() -> None:
    """Without a router on the way nobody is asked."""
    agent = World(gateway=None).agent()

    (found,) = await look(RefusalMakers(), make_scene(agent), error(13, protocol="tcp"))

    assert found.maker == RefusalMaker(own=True)
    assert agent.orders(WalkOrder) == []


async def test_who_has_walked_enough_proves_nothing() -> None:
    """The walks of a source are numbered, and these are too."""
    agent = World().agent()
    agent.walks_left = 1

    found = await look(
        RefusalMakers(), make_scene(agent),
        error(13, protocol="tcp", port=1), error(13, protocol="tcp", port=2),
    )  # fmt: skip

    assert [one.maker for one in found] == [RefusalMaker(own=True), RefusalMaker(own=False)]


@pytest.mark.parametrize(("ports", "walked"), [(((1, 3),), [1, 2, 3]), (((1, 9),), [1, 5, 9])])
async def test_a_few_ports_stand_for_a_range(
    ports: tuple[tuple[int, int], ...], walked: list[int]
) -> None:
    """Of three each has its own walk; a range is the destination's if all that stand for it are."""
    agent = World({3: TRANSLATED, 9: TRANSLATED}).agent()
    outcome = Outcome("connect", "refused", Icmp(3, 13, ADDRESS, "destination", TTL))

    found = await look(
        RefusalMakers(), make_scene(agent), make_observation(outcome, make_task("tcp", ports))
    )

    own = {one.ports: one.maker and one.maker.own for one in found}
    assert own == ({((1, 2),): True, ((3, 3),): False} if len(walked) == 3 and 2 in walked
                   else {((1, 9),): False})  # fmt: skip
    assert [one.port for one in agent.orders(WalkOrder) if one.proto == "tcp"] == walked


async def test_a_merge_that_has_no_walks_says_two_places() -> None:
    """Where nobody can be asked any more, nothing is proven, and what was seen stands."""
    agent = FakeAgent(SOURCE, {}, lost=True)

    (found,) = await look(RefusalMakers(), make_scene(agent), error(13, protocol="tcp"))

    assert found.maker == RefusalMaker(own=False)


@pytest.mark.parametrize(("echo_ttl", "ttl"), [(TTL, TTL), (None, 50)])
async def test_answers_tell_a_ttl_before_refusals_do(echo_ttl: int | None, ttl: int) -> None:
    """The port that was refused may be translated: it counts where nothing else is heard."""
    scene = make_scene(World(echo_ttl=echo_ttl).agent())
    refused = error(3, ttl=50)

    assert (await find_genuine(refused.task, [refused], scene)).ttl == ttl


@pytest.mark.parametrize(("control_ttl", "ttl"), [(50, 50), (TTL, TTL), (None, TTL)])
async def test_an_echo_reply_may_have_a_ttl_of_its_own(control_ttl: int | None, ttl: int) -> None:
    """Where a port that nobody uses is refused with the TTL of the flow's, that is the host's."""
    agent = World().agent()
    refusal = kind(op="answer", failure="refused", icmp=icmp(3, 3, ADDRESS, control_ttl))
    closed = SILENCE if control_ttl is None else refusal
    agent.scripts[ProbeOrder] = lambda order: reply(order, closed)
    refused = error(3, ttl=50)

    assert (await find_genuine(refused.task, [refused], make_scene(agent))).ttl == ttl


@pytest.mark.parametrize("has_recorder", [True, False])
@pytest.mark.parametrize(
    ("ttl", "walk", "is_doubtful"),
    [(64, PLAIN, True), (64, TRANSLATED, False), (63, PLAIN, False)],
    ids=["farther", "it-ends-there", "of-the-last-router"],
)
async def test_a_reset_is_not_forged_where_packets_come_farther(
    ttl: int, walk: tuple[str | None, ...], is_doubtful: bool, has_recorder: bool
) -> None:
    """A router that sets TTLs makes the host's own resets look nearer; a firewall's walk ends."""
    seen = replace(reset(443, ttl if has_recorder else None), reset=ResetOrigin(forged=True))
    agent = World({443: walk}, resets={443: ttl}).agent()

    (found,) = await look(RefusalMakers(), make_scene(agent), seen)

    assert found.maker == (RefusalMaker(own=False, doubt=FARTHER) if is_doubtful else None)
    assert found.reset.forged is (None if is_doubtful else True)
    # What the last router may have made needs no walk: that router says so itself.
    assert len([one for one in agent.orders(WalkOrder) if one.proto == "tcp"]) == (ttl == 64)
