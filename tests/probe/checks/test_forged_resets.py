"""Which resets are the destination's own, by the TTL that they arrive with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from netprobe.agent.wire.answers import (
    Walked,
)
from netprobe.agent.wire.host_messages import (
    OwnResets,
    OwnResetsOrder,
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    EchoOrder,
    ProbeOrder,
    WalkOrder,
)
from netprobe.agent.wire.parts import OutcomeKind, WalkHop
from netprobe.agent.wire.questions import CONTROL_PORTS
from netprobe.model import ports as port_sets
from netprobe.model.evidence import CheckConclusion, Icmp, Outcome
from netprobe.model.notes import HigherNote, ResetNote
from netprobe.model.ports import Ports
from netprobe.model.story import Sight, Story, StoryPlace
from netprobe.probe.checks.forged_resets import ForgedResets, is_forged
from netprobe.probe.checks.genuine import genuine_ttl
from netprobe.probe.flows.chance import LEAST_LOOKS
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import ROUTER, SOURCE, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, host, icmp, kind, reply, routed

RESET = Outcome("connect", "refused")
SILENCE = kind(op="answer", failure="no-answer")


@dataclass
class World:
    """What stands between source and destination: the TTLs of resets and answers on arrival.

    ``resets`` by port, ``else_ttl`` of all other ports (None: they stay silent); ``echo_ttl`` and
    ``udp_ttl`` of the destination's answers; ``lost``: how many resets get lost; ``own``: what the
    source's own firewall resets.
    """

    resets: dict[int, int] = field(default_factory=dict)
    else_ttl: int | None = None
    echo_ttl: int | None = None
    udp_ttl: int | None = None
    gateway: str | None = ROUTER
    dev: str = "eth0"
    first_hop: str | None = ROUTER
    lost: int = 0
    own: Ports = ()

    def agent(self) -> FakeAgent:
        """The source's agent."""
        return FakeAgent(
            SOURCE,
            {
                ProbeOrder: self._probe,
                EchoOrder: self._echo,
                RouteOrder: routed(gateway=self.gateway, dev=self.dev),
                WalkOrder: self._walk,
                OwnResetsOrder: self._tell_own,
            },
        )

    def _tell_own(self, order: OwnResetsOrder) -> OwnResets:
        return OwnResets(
            order.id, list(port_sets.intersect(port_sets.normalise(order.ports), self.own))
        )

    def _walk(self, order: WalkOrder) -> Walked:
        return Walked(order.id, [WalkHop(1, self.first_hop)], False, None, None)

    def _echo(self, order: EchoOrder) -> object:
        answer = kind(op="answer", answer="echo", ttl=self.echo_ttl)
        return reply(order, SILENCE if self.echo_ttl is None else answer)

    def _probe(self, order: ProbeOrder) -> object:
        if order.proto == "udp":
            refusal = kind(
                op="answer", failure="refused", icmp=icmp(3, 3, "10.0.0.2", self.udp_ttl)
            )
            return reply(order, SILENCE if self.udp_ttl is None else refusal)
        return reply(order, lambda port: self._connect(port, order.min_ttl))

    def _connect(self, port: int, min_ttl: int | None) -> OutcomeKind:
        ttl = self.resets.get(port, self.else_ttl)
        if ttl is None or ttl < (min_ttl or 0):
            return kind(failure="no-answer")
        if self.lost and min_ttl not in (None, 64):
            self.lost -= 1
            return kind(failure="no-answer")
        return kind(failure="refused")


def reset(*ports: int, ttl: int | None = None, left: Sight = "unknown") -> Observation:
    """A reset at these ports; ``ttl`` and ``left`` are what the source's recorder saw."""
    ranges = port_sets.normalise((port, port) for port in ports or (443,))
    arrived = StoryPlace() if ttl is None else StoryPlace("yes", 1, ttl=ttl)
    story = Story(source_out=StoryPlace(left), source_in=arrived)
    return make_observation(RESET, make_task("tcp", ranges), story=story)


def answered(ttl: int) -> Observation:
    """A flow that our listener answered, with this TTL."""
    outcome = Outcome("answer", None, answer="nonce", ttl=ttl)
    return make_observation(outcome, make_task("udp", ((53, 53),)), listener="ours")


def words(found: list[Observation]) -> list[tuple[Ports, Any]]:
    """What became of each reset: ports, and (forged, full TTL)."""
    return [
        (one.ports, (one.reset.forged, one.reset.full_ttl))
        for one in found
        if one.outcome is not None and one.outcome.failure == "refused"
    ]


async def test_a_reset_with_the_ttl_of_answers_is_genuine() -> None:
    """The destination's own answers in the same group tell the TTL; nothing else is asked.

    It is asked so often that loss does not explain the silence.
    """
    agent = World({443: 60}).agent()

    found = await look(ForgedResets(), make_scene(agent), answered(60), reset())

    assert words(found) == [(((443, 443),), (False, False))]
    assert [order.min_ttl for order in agent.orders(ProbeOrder)] == [61] * LEAST_LOOKS
    assert len(agent.orders(ProbeOrder)) == LEAST_LOOKS
    assert found[0].trail[0].note == ResetNote(answer_ttl=60, min_ttl=61, refused_again=False)


async def test_a_reset_that_has_crossed_fewer_routers_is_forged() -> None:
    """Port by port: one firewall rule may stand beside genuine refusals.

    What has lost a hop was not made by the source itself.
    """
    world = World({443: 63, 444: 60, 445: 64})
    flows = answered(60), reset(443, 444, 445)

    found = await look(ForgedResets(), make_scene(world.agent()), *flows)

    assert words(found) == [
        (((443, 443),), (True, False)),
        (((444, 444),), (False, False)),
        (((445, 445),), (True, None)),
    ]
    answers = [one for one in found if one.task.protocol == "udp"]
    assert [one.trail for one in answers] == [()]


@pytest.mark.parametrize("ttl", [65, 251])
async def test_resets_that_start_with_a_higher_ttl_tell_nothing(ttl: int) -> None:
    """A destination may answer echo from 64 and reset from 255."""
    agent = World({443: ttl}).agent()

    found = await look(ForgedResets(), make_scene(agent), answered(60), reset())

    higher = agent.orders(ProbeOrder)[-1]
    assert (higher.min_ttl, higher.blocks[0].ports) == (65, [(443, 443)])

    assert words(found) == [(((443, 443),), (None, None))]
    assert found[0].notes(ResetNote)[0].higher == HigherNote(65, True)


@pytest.mark.parametrize(("left", "forged"), [("yes", False), ("no", True), ("unknown", False)])
@pytest.mark.parametrize("ttl", [64, None])
async def test_a_neighbours_resets_may_be_the_own_firewalls(
    left: Sight, ttl: int | None, forged: bool
) -> None:
    """Both arrive with a full TTL; only the recorder tells whether the SYN was sent."""
    world = World({443: 64})
    scene = make_scene(world.agent())

    found = await look(ForgedResets(), scene, answered(64), reset(ttl=ttl, left=left))

    assert words(found) == [(((443, 443),), (forged, None))]


@pytest.mark.parametrize(
    ("echo_ttl", "gateway", "forged"), [(64, None, False), (None, None, None), (64, ROUTER, False)]
)
async def test_without_a_recorder_the_source_tells_its_own_resets(
    echo_ttl: int | None, gateway: str | None, forged: bool | None
) -> None:
    """Port by port, whether or not the neighbour answers anything else."""
    ports = {port: 64 for port in range(7000, 7005)}
    world = World(ports, echo_ttl=echo_ttl, gateway=gateway, own=((7000, 7003),))

    found = await look(ForgedResets(), make_scene(world.agent()), reset(*ports))

    assert [(one.ports, one.reset.forged, one.reset.own) for one in found] == [
        (((7000, 7003),), True, True),
        (((7004, 7004),), forged, False),
    ]


async def test_behind_a_router_no_port_stands_for_the_sources_own_ones() -> None:
    """A sample of a range has a TTL that the router has lowered, and none of the own resets."""
    ports = {port: 62 for port in range(7000, 7101)} | {port: 64 for port in range(7001, 7004)}
    world = World(ports, echo_ttl=62, gateway=ROUTER, own=((7001, 7003),))

    found = await look(ForgedResets(), make_scene(world.agent()), reset(*ports))

    own = [one.ports for one in found if one.reset.own]
    assert own == [((7001, 7003),)]
    assert {one.reset.forged for one in found if not one.reset.own} == {False}


async def test_on_one_machine_all_resets_come_in_by_loopback() -> None:
    """A closed port of an address of this machine is refused by nobody's firewall."""
    world = World({443: 64}, echo_ttl=64, gateway=None, dev="lo", own=((443, 443),))
    agent = world.agent()

    (found,) = await look(ForgedResets(), make_scene(agent), reset())

    assert agent.orders(OwnResetsOrder) == []
    assert found.reset.forged is False


@pytest.mark.parametrize(
    ("world", "seen"),
    [
        # A router has lowered it, as a recorder tells; a recorder saw the SYN leave.
        (World({443: 62}, echo_ttl=62), reset(ttl=62)),
        (World({443: 64}, echo_ttl=64, gateway=None), reset(ttl=64, left="yes")),
        (World({443: 64}, echo_ttl=64, gateway=None), reset(left="no")),
    ],
)
async def test_what_is_known_to_have_left_is_not_asked_again(
    world: World, seen: Observation
) -> None:
    """The question costs connects."""
    agent = world.agent()

    (found,) = await look(ForgedResets(), make_scene(agent), seen)

    assert agent.orders(OwnResetsOrder) == []
    assert found.reset.own is False


async def test_what_never_left_is_told_port_by_port() -> None:
    """One rule of the own OUTPUT chain says nothing of the neighbour's other ports."""
    agent = World({443: 64, 444: 64}).agent()
    mine, theirs = reset(443, left="no"), reset(444, ttl=64, left="yes")

    found = await look(ForgedResets(), make_scene(agent), answered(64), mine, theirs)

    assert words(found) == [(((443, 443),), (True, None)), (((444, 444),), (False, None))]


async def test_recorded_resets_with_the_ttl_of_answers_are_not_asked_about() -> None:
    """The recorder saw the TTL of every reset: of 1,000 closed ports none is asked again."""
    agent = World().agent()
    many = reset(*range(1000, 2000), ttl=60)

    (found,) = [one for one in await look(ForgedResets(), make_scene(agent), answered(60), many)
                if one.outcome is not None and one.outcome.failure]  # fmt: skip

    assert words([found]) == [(many.ports, (False, None))]
    assert agent.asked == []


@pytest.mark.parametrize(
    ("answer_ttl", "ttl", "forged"),
    [
        (60, 60, False),
        (60, 63, True),
        (60, 64, True),
        # Made farther away than the answers, behind a forwarded port.
        (60, 58, False),
        # Stacks start with another TTL for resets, or forgers do: the lost hops are held together.
        (60, 251, False),
        (60, 254, True),
        (60, 124, False),
        (125, 61, False),
        (125, 62, True),
        (251, 60, False),
        (251, 255, True),
    ],
)
async def test_recorded_resets_that_lost_fewer_hops_are_forged(
    answer_ttl: int, ttl: int, forged: bool
) -> None:
    """The recorder saw the TTL of every reset: nothing is asked."""
    agent = World().agent()

    found = await look(ForgedResets(), make_scene(agent), answered(answer_ttl), reset(ttl=ttl))

    assert words(found) == [(((443, 443),), (forged, None))]
    assert agent.asked == []


async def test_recorded_resets_are_split_by_their_ttl() -> None:
    """A forger's ports beside closed ones of the host."""
    agent = World().agent()

    found = await look(
        ForgedResets(), make_scene(agent), answered(60), reset(80, ttl=63), reset(81, ttl=60)
    )

    assert words(found) == [(((80, 80),), (True, None)), (((81, 81),), (False, None))]


@pytest.mark.parametrize("ttl", [64, 63])
async def test_without_a_genuine_ttl_the_recorders_is_taken(ttl: int) -> None:
    """Nobody asks with a floor for what the recorder saw."""
    agent = World({443: ttl}).agent()

    found = await look(ForgedResets(), make_scene(agent), reset(ttl=ttl))

    assert words(found) == [(((443, 443),), (True if ttl == 64 else None, ttl == 64))]
    floors = [order for order in agent.orders(ProbeOrder) if order.min_ttl is not None]
    assert all(order.blocks[0].ports == [(CONTROL_PORTS[0],) * 2] for order in floors)


@pytest.mark.parametrize("world", [World({443: 63}, echo_ttl=60), World({443: 63}, udp_ttl=60)])
async def test_without_an_answer_the_ttl_is_asked_for(world: World) -> None:
    """By echo, else by a closed UDP port."""
    agent = world.agent()

    assert words(await look(ForgedResets(), make_scene(agent), reset()))[0][1][0] is True
    udp = [order for order in agent.orders(ProbeOrder) if order.proto == "udp"]
    assert [order.blocks[0].ports for order in udp] == (
        [] if world.echo_ttl else [[(CONTROL_PORTS[0],) * 2]]
    )


@pytest.mark.parametrize("gateway", [None, "10.0.0.2"])
async def test_without_ttl_and_gateway_nobody_knows(gateway: str | None) -> None:
    """A neighbour's resets have a full TTL of their own."""
    agent = World({443: 64}, gateway=gateway).agent()

    found = await look(ForgedResets(), make_scene(agent), reset())

    assert words(found) == [(((443, 443),), (None, None))]
    assert all(order.min_ttl is None for order in agent.orders(ProbeOrder))


@pytest.mark.parametrize(
    ("world", "said"),
    [
        # The first hop's: a SYN dies there, and a port that nobody needs is silent.
        (World({443: 64}), (True, True)),
        (World({443: 128}), (True, True)),
        (World({443: 255}), (True, True)),
        # A router has lowered it.
        (World({443: 62}), (None, False)),
        (World({443: 65}), (None, False)),
        (World({443: 100}), (None, False)),
        (World({443: 254}), (None, False)),
        # That hop resets everything: it may only set the TTL of all that it forwards.
        (World({443: 64}, else_ttl=64), (None, True)),
        # The first hop is the destination, or says nothing.
        (World({443: 64}, first_hop="10.0.0.2"), (None, True)),
        (World({443: 64}, first_hop=None), (None, True)),
        # One reset was lost: the TTL must not look full.
        (World({443: 100}, lost=1), (None, False)),
    ],
)
async def test_a_full_ttl_can_only_be_the_first_hops(world: World, said: Any) -> None:
    """Where nothing tells the destination's TTL, a full one tells of the gateway."""
    found = await look(ForgedResets(), make_scene(world.agent()), reset())

    assert words(found) == [(((443, 443),), said)]


@pytest.mark.parametrize("gateway", [ROUTER, None])
async def test_what_never_left_is_the_own_firewalls(gateway: str | None) -> None:
    """Whatever the first hop says, and where there is none."""
    agent = World({443: 64}, first_hop=None, gateway=gateway).agent()

    (found,) = await look(ForgedResets(), make_scene(agent), reset(left="no"))

    assert found.reset.forged is True


async def test_only_ports_with_a_full_ttl_are_the_first_hops() -> None:
    """The destination's own resets stand beside those of a firewall before it."""
    world = World({443: 64, 444: 61})

    agent = world.agent()
    found = await look(ForgedResets(), make_scene(agent), reset(443, 444))

    assert words(found) == [
        (((443, 443),), (True, True)),
        (((444, 444),), (None, False)),
    ]
    walks = [(order.proto, order.port, order.max_ttl) for order in agent.orders(WalkOrder)]
    assert walks == [("tcp", 443, 1)]
    assert agent.orders(ProbeOrder)[-1].blocks[0].ports == [(CONTROL_PORTS[0],) * 2]
    assert found[0].notes(ResetNote)[0].dies_at_first_hop is True


async def test_a_lowered_ttl_is_seen_at_the_first_question() -> None:
    """No more is asked than is needed."""
    agent = World({443: 62}).agent()

    await look(ForgedResets(), make_scene(agent), reset())

    tcp = [order for order in agent.orders(ProbeOrder) if order.proto == "tcp"]
    assert [order.min_ttl for order in tcp] == [64] * LEAST_LOOKS
    assert agent.orders(WalkOrder) == []


async def test_a_host_that_probes_itself_is_not_doubted() -> None:
    """Nothing stands between a host and its own address."""
    agent = World({443: 64}, echo_ttl=60).agent()
    mine = make_observation(RESET, make_task(target=host("b", "10.0.0.1")))

    assert await look(ForgedResets(), make_scene(agent), mine) == [mine]
    assert agent.asked == []


async def test_without_resets_nothing_is_asked() -> None:
    """Answers alone raise no doubt."""
    agent = World(echo_ttl=60).agent()
    seen = answered(60)

    assert await look(ForgedResets(), make_scene(agent), seen) == [seen]
    assert agent.asked == []


@pytest.mark.parametrize(
    ("outcome", "concerned"),
    [
        (RESET, True),
        (Outcome("answer", "refused", Icmp(3, 3, "10.0.0.2", "destination", 60)), True),
        (Outcome("answer", "refused", Icmp(3, 13, ROUTER, "router", 60)), True),
        (Outcome("connect", "refused", blind=True), False),
        (Outcome("connect", "no-answer"), False),
        (Outcome("answer", None, answer="service", ttl=60), True),
        (Outcome("answer", None, answer="nonce"), False),
        (None, False),
    ],
)
def test_resets_and_ttls_concern_the_check(outcome: Outcome | None, concerned: bool) -> None:
    """A refusal in an ICMP error is not a reset; a blind kernel cannot tell them apart."""
    assert ForgedResets().concerns(make_observation(outcome)) is concerned


@pytest.mark.parametrize(
    ("outcome", "ttl"),
    [
        (Outcome("answer", "refused", Icmp(3, 3, "10.0.0.2", "destination", 61)), 61),
        (Outcome("answer", "refused", Icmp(3, 3, ROUTER, "router", 61)), None),
        (Outcome("answer", None, answer="echo", ttl=60), 60),
        # Something nearer may have opened it.
        (Outcome("connect", None, answer="unasked", ttl=60), None),
        (None, None),
    ],
)
def test_only_the_addresss_own_answers_tell_a_ttl(outcome: Outcome | None, ttl: int | None) -> None:
    """An answer that anybody on the way can give says nothing of the destination."""
    assert genuine_ttl(outcome) == ttl


@pytest.mark.parametrize(
    ("world", "forged"),
    [
        (World({443: 60}, echo_ttl=60), False),
        (World({443: 61}, echo_ttl=60), True),
        (World({443: 63}, echo_ttl=60), True),
        (World({443: 63}, echo_ttl=60, lost=4), True),
        (World({443: 60}), None),
    ],
)
async def test_a_reset_that_is_asked_alone(world: World, forged: bool | None) -> None:
    """A limit of new connections forges resets only for what comes too fast."""
    scene = make_scene(world.agent())

    assert await is_forged(reset(), [reset()], scene) is forged


async def test_where_the_source_is_lost_its_resets_stand() -> None:
    """Nobody can say whose they are."""
    agent = World({443: 63}).agent()
    agent.lost = True
    seen = [answered(60), reset()]

    found = await look(ForgedResets(), make_scene(agent), *seen)

    assert words(found) == [(((443, 443),), (None, None))]
    assert all(one.trail == () for one in found)


def refused_by_router(ttl: int | None) -> Observation:
    """A router on the way refuses another port, with this TTL."""
    outcome = Outcome("send", "refused", Icmp(3, 3, ROUTER, "router", ttl))
    return make_observation(outcome, make_task("udp", ((53, 53),)))


DOUBT = CheckConclusion("reset-unproved", ROUTER)


@pytest.mark.parametrize(
    ("ttl", "arrived", "forged", "conclusion"),
    [
        # From the router's distance, from nearer, and from farther away.
        (63, 63, True, None),
        (63, 64, True, None),
        (63, 62, None, DOUBT),
        (None, 63, None, DOUBT),
    ],
)
@pytest.mark.parametrize("recorded", [True, False])
async def test_a_router_that_refuses_for_a_mute_host_may_make_its_resets(
    ttl: int | None, arrived: int, forged: bool | None, conclusion: object, recorded: bool
) -> None:
    """Nothing that only the host itself sends was ever heard of it."""
    agent = World({443: arrived}).agent()
    seen = reset(ttl=arrived if recorded else None)

    found = await look(ForgedResets(), make_scene(agent), refused_by_router(ttl), seen)

    (one,) = [one for one in found if one.task.protocol == "tcp"]
    assert (one.reset.forged, one.conclusion) == (forged, conclusion)


async def test_a_host_that_answers_anything_speaks_for_itself() -> None:
    """Then its TTL is known, whoever else refuses."""
    agent = World({443: 60}, echo_ttl=60).agent()

    found = await look(ForgedResets(), make_scene(agent), refused_by_router(63), reset())

    assert words(found)[0] == (((443, 443),), (False, False))


@pytest.mark.parametrize("came", ["yes", "no"])
async def test_what_the_destinations_recorder_tells_is_not_asked(came: Sight) -> None:
    """It knows whether the request came."""
    agent = World({443: 63}, echo_ttl=60).agent()
    story = Story(destination_in=StoryPlace(came))
    seen = make_observation(RESET, make_task("tcp", ((443, 443),)), story=story)

    assert await look(ForgedResets(), make_scene(agent), answered(60), seen)
    assert agent.asked == []
