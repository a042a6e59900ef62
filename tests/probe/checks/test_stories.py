"""What both recorders saw becomes the story of a flow, port by port: what is sure, and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import Seen, StoryTold
from netprobe.agent.wire.host_messages import RouteOrder
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder, SeenOrder, StoryOrder
from netprobe.agent.wire.parts import OutcomeKind, SeenError, SeenPackets, SeenRun, TranslatedRun
from netprobe.errors import AgentError
from netprobe.model.evidence import Icmp, Outcome, Witness
from netprobe.model.ports import Ports
from netprobe.model.story import Story, StoryError, StoryPlace
from netprobe.model.struct_json import Nanoseconds
from netprobe.probe.agents.decode import ProbeReply
from netprobe.probe.checks.check import Scene
from netprobe.probe.checks.stories import MOST_RANGES, MOST_TRANSLATED, Stories
from netprobe.probe.flows.chance import LEAST_LOSS
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.work import join
from tests.probe.builders import (
    ROUTER,
    SOURCE,
    TARGET,
    look,
    make_observation,
    make_scene,
    make_task,
    make_want,
)
from tests.probe.fakes import HELLO, FakeAgent, host, kind, reply, routed

A, B = "10.0.0.1", "10.0.0.2"
SILENT = Outcome("connect", "no-answer", left_host=True)
PORTS: Ports = ((443, 443),)

Answer = Callable[[StoryOrder], StoryTold]


def packets(count: int = 1, ttl: int = 64, device: str = "eth0") -> SeenPackets:
    """So many packets of one port."""
    return SeenPackets(1, count, 1000, ttl, device)


def run(
    requests: int = 0, answers: int = 0, resets: int = 0, ports: Ports = PORTS, ttl: int = 64
) -> SeenRun:
    """What was seen of some ports; the numbers are those of packets."""
    seen = [packets(some, ttl) if some else None for some in (requests, answers, resets)]
    return SeenRun(list(ports), seen[0], seen[1], seen[2], [4711])


def told(*runs: SeenRun, **facts: Any) -> StoryTold:
    """A recorder that works, lost nothing and heard the source."""
    usual = StoryTold(1, True, None, list(runs), [], [], heard=True, awake=True, lost=0, full=False)
    return usual._replace(**facts)


def error(port: int = 443, **facts: Any) -> SeenError:
    """An ICMP error about a port, as it came in."""
    usual = SeenError(
        [(port, port)], ROUTER, 3, 13, 63, outgoing=False, local=False, packets=2, first_ns=1
    )
    return usual._replace(**facts)


def unheard(order: EchoOrder) -> ProbeReply:
    """Nobody answers a control."""
    return reply(order, kind(failure="no-answer"))


@dataclass
class World:
    """Both ends' recorders tell these; ``again``: the answer of every further probe."""

    at_source: StoryTold | Answer = field(default_factory=told)
    at_destination: StoryTold | Answer = field(default_factory=told)
    again: OutcomeKind = field(default_factory=lambda: kind(failure="no-answer"))
    records: tuple[bool, bool] = (True, True)
    agent: bool = True

    def __post_init__(self) -> None:
        self.source = FakeAgent(
            SOURCE,
            {
                StoryOrder: self._teller(self.at_source),
                ProbeOrder: lambda order: reply(order, self.again),
                RouteOrder: routed(source=A),
                EchoOrder: unheard,
            },
        )
        self.target = FakeAgent(
            TARGET,
            {
                StoryOrder: self._teller(self.at_destination),
                SeenOrder: lambda order: Seen(order.id, [], [], [], []),
                RouteOrder: routed(source=B, gateway=ROUTER),
                EchoOrder: unheard,
            },
        )
        self.source.recorder, self.target.recorder = self.records
        self.scene: Scene = make_scene(self.source, self.target if self.agent else None)

    def _teller(self, what: StoryTold | Answer) -> Answer:
        return (lambda order: what) if isinstance(what, StoryTold) else what

    async def look(self, *seen: Observation) -> list[Observation]:
        return await look(Stories(), self.scene, *seen)

    async def story(self, seen: Observation | None = None) -> Story:
        """The story of a single flow."""
        (found,) = await self.look(seen or silent())
        assert found.story is not None
        return found.story


def silent(
    protocol: str = "tcp", ports: Ports = PORTS, outcome: Outcome = SILENT, **facts: Any
) -> Observation:
    """A flow to our listener that got no answer, and that the listener did not see."""
    usual = {"listener": "ours", "witness": Witness(), "mode": "nonce", **facts}
    return make_observation(outcome, make_task(protocol, ports), **usual)


def sights(story: Story) -> str:
    """One letter a place: y, n, or ?."""
    letters = {"yes": "y", "no": "n", "unknown": "?"}
    return "".join(letters[place.seen] for _, place in story.places())


@pytest.mark.parametrize(
    ("source", "destination", "places"),
    [
        # Where a silent flow ends, place by place.
        (told(), told(), "nnnnnn"),
        (told(run(5)), told(), "ynnnnn"),
        (told(run(5)), told(run(5)), "yynnnn"),
        (told(run(5)), told(run(5, answers=5)), "yyyynn"),
        (told(run(5)), told(run(5, resets=5)), "yynnnn"),
        (told(run(5, answers=5)), told(run(5, answers=5)), "yyyyyn"),
        # Some of them got lost: what arrived once, arrives.
        (told(run(9)), told(run(2)), "yynnnn"),
        # Whoever lost packets, stopped, or heard nothing of the source cannot say "no".
        (told(lost=1), told(run(5)), "?ynn?n"),
        (told(run(5), lost=1), told(run(5)), "yynn?n"),
        (told(full=True), told(), "?nnn?n"),
        (told(heard=False, awake=False), told(), "?nnn?n"),
        (told(run(5)), told(lost=3), "y???nn"),
        (told(run(5)), told(full=True), "y???nn"),
        (told(run(5)), told(heard=False, awake=False), "y???nn"),
        # It works, whomever it heard: the numbers name the packets under any address.
        (told(run(5)), told(heard=False), "ynnnnn"),
        (told(running=False), told(heard=False), "?????n"),
        # What was seen counts, whatever got lost.
        (told(run(5, answers=1), lost=9), told(run(5, answers=1), lost=9), "yyyyyn"),
        # Without the right to packet sockets nothing is known.
        (told(running=False), told(run(5)), "?ynn?n"),
        (told(run(5)), told(running=False), "y???nn"),
        # The destination saw what the source's recorder did not: that one missed it.
        (told(), told(run(5)), "?ynnnn"),
        # What comes to the source says nothing of the destination: others may answer.
        (told(run(0, answers=1)), told(run(0)), "?nnnyn"),
    ],
)
async def test_each_place_is_yes_no_or_unknown(
    source: StoryTold, destination: StoryTold, places: str
) -> None:
    """A silent flow to our listener, which saw nothing."""
    world = World(source, destination)

    assert sights(await world.story()) == places


@pytest.mark.parametrize(("came", "asked"), [(5, False), (2, True), (0, False)])
async def test_a_rule_does_not_let_some_packets_through(came: int, asked: bool) -> None:
    """Where only some came, loss may explain the silence, and it is asked more often."""
    there = told(run(came)) if came else told()
    world = World(told(run(5)), there, again=kind(op="answer", answer="nonce"))

    (found,) = await world.look(silent())

    assert bool(world.source.orders(ProbeOrder)) is asked
    assert (found.outcome is not None and found.outcome.answer == "nonce") is asked
    assert (world.scene.prober.chance.loss > LEAST_LOSS) is asked


@pytest.mark.parametrize(
    ("records", "agent", "places"),
    [
        ((True, False), True, "y???nn"),
        ((False, True), True, "?ynn?n"),
        ((True, True), False, "y???nn"),
    ],
)
async def test_without_a_recorder_its_places_are_unknown(
    records: tuple[bool, bool], agent: bool, places: str
) -> None:
    """An agent without the right to packet sockets says less, and never something false."""
    world = World(told(run(5)), told(run(5)), records=records, agent=agent)
    seen = silent() if agent else silent(listener="unknown", witness=None)

    assert sights(await world.story(seen)) == places


@pytest.mark.parametrize(("protocol", "socket"), [("tcp", "unknown"), ("udp", "no")])
async def test_a_listener_knows_no_connection_whose_syn_ack_got_lost(
    protocol: str, socket: str
) -> None:
    """Only the recorder sees a SYN-ACK leave; a datagram comes to its socket or does not."""
    world = World(told(run(5)), records=(True, False))

    assert (await world.story(silent(protocol))).socket.seen == socket


async def test_without_any_recorder_there_is_no_story() -> None:
    """And nothing is asked."""
    world = World(records=(False, False))
    seen = silent()

    assert await world.look(seen) == [seen]
    assert [*world.source.asked, *world.target.asked] == []


async def test_a_recorder_needs_the_right_to_packet_sockets() -> None:
    """Its hello says so."""
    world = World(told(run(5)), told(run(5)))
    world.target._hello = HELLO._replace(net_raw=False)

    assert sights(await world.story()) == "y???nn"
    assert world.target.orders(StoryOrder) == []


async def test_places_tell_what_was_seen() -> None:
    """Packets, the first one's time and TTL, and the interface."""
    left, came = SeenPackets(3, 5, 111, 64, "eth7"), SeenPackets(2, 4, 222, 61, "ens3")
    world = World(
        told(SeenRun([(443, 443)], left, None, None, [1])),
        told(SeenRun([(443, 443)], came, None, None, [1])),
    )

    story = await world.story()

    assert story.source_out == StoryPlace("yes", 5, Nanoseconds(111), "eth7", 64)
    assert story.destination_in == StoryPlace("yes", 4, Nanoseconds(222), "ens3", 61)


async def test_another_ports_answer_is_no_word_of_the_socket() -> None:
    """A translation at the destination took the data there."""
    other = silent(outcome=Outcome("answer", None, answer="other"))
    assert (await World(told(run(5)), told(run(5, answers=1))).story(other)).socket.seen != "yes"


@pytest.mark.parametrize(
    ("seen", "socket"),
    [
        (silent(), "no"),
        (silent(witness=Witness(socket=True)), "yes"),
        # Nobody asked the listener, or there is none.
        (silent(witness=None), "unknown"),
        (silent(listener="live"), "unknown"),
        (silent(listener="unknown", witness=None), "unknown"),
    ],
)
async def test_the_listeners_word_tells_of_the_socket(seen: Observation, socket: str) -> None:
    """A handshake tells, too: the kernel answers only for a socket."""
    assert (await World(told(run(5)), told(run(5))).story(seen)).socket.seen == socket
    # How often is not known: the kernel repeats its answers.
    answered = World(told(run(5)), told(run(5, answers=8)))
    assert (await answered.story(seen)).socket == StoryPlace("yes")
    # A reset is the kernel's own.
    refused = World(told(run(5)), told(run(5, resets=5)))
    assert (await refused.story(seen)).socket.seen == socket


@pytest.mark.parametrize(
    ("outcome", "prober"),
    [
        (SILENT, "no"),
        (Outcome("connect", None, answer="unasked"), "yes"),
        (Outcome("connect", "refused"), "unknown"),
        (Outcome("send", None), "unknown"),
    ],
)
async def test_the_prober_knows_what_came(outcome: Outcome, prober: str) -> None:
    """A refusal may be this host's own."""
    assert (await World().story(silent(outcome=outcome))).prober.seen == prober


async def test_something_harmless_wakes_recorders_that_heard_nothing() -> None:
    """An echo request and a SYN to a free port, once a pair; then it is asked again."""
    deaf = told(heard=False, awake=False)
    world = World(told(run(5)), lambda order: told() if world.source.orders(EchoOrder) else deaf)

    found = await world.look(silent(), silent("udp"))

    assert [sights(one.story) for one in found if one.story] == ["ynnnnn", "ynnnnn"]
    (echo,), (probe,) = world.source.orders(EchoOrder), world.source.orders(ProbeOrder)
    assert echo.dsts == [B]
    assert probe.blocks[0].ports == [(64999, 64999)]
    assert not world.target.orders(EchoOrder)


async def test_a_recorder_that_hears_nobody_asks_its_next_hop() -> None:
    """All that the source sends is dropped, but the answer of the router comes in."""
    world = World(
        told(run(5)),
        lambda order: told(heard=False, awake=bool(world.target.orders(EchoOrder))),
    )

    assert sights(await world.story()) == "ynnnnn"
    (echo,) = world.target.orders(EchoOrder)
    assert (echo.dsts, echo.src) == ([ROUTER], B)


async def test_who_was_heard_is_not_woken() -> None:
    """Recorders that work need nothing."""
    world = World(told(run(5)), told(run(5)))

    await world.look(silent())

    assert not [*world.source.orders(EchoOrder), *world.source.orders(ProbeOrder)]


async def test_ports_are_cut_where_their_stories_differ() -> None:
    """One question tells of all ports of a pair and protocol."""
    world = World(
        told(run(5, ports=((1, 6),))),
        told(run(5, ports=((1, 2),)), run(5, answers=5, ports=((4, 4),))),
    )

    found = await world.look(silent(ports=((1, 8),)))

    assert [(one.ports, sights(one.story)) for one in found if one.story] == [
        (((1, 2),), "yynnnn"),
        (((3, 3), (5, 6)), "ynnnnn"),
        (((4, 4),), "yyyynn"),
        (((7, 8),), "nnnnnn"),
    ]
    assert len(world.source.orders(StoryOrder)) == len(world.target.orders(StoryOrder)) == 1
    assert all(one.trail[-1].name == "story" for one in found)


async def test_one_question_stands_for_a_pair_and_protocol() -> None:
    """With the ports of all of them."""
    world = World()
    flows = [silent(), silent(ports=((80, 81),)), silent("udp"), silent("icmp", ())]

    found = await world.look(*flows)

    assert len(found) == 4
    asked = {order.proto: order for order in world.source.orders(StoryOrder)}
    assert asked["tcp"].ports == [(80, 81), (443, 443)]
    assert (asked["udp"].ports, asked["icmp"].ports) == ([(443, 443)], [])
    assert len(asked) == len(world.source.orders(StoryOrder)) == 3


async def test_results_of_their_own_are_asked_apart() -> None:
    """Neighbouring ports of other requirements and outcomes too; overlapping ones stay joined."""
    world = World()
    beside = join([make_want(ports=((440, 441),)), make_want(ports=((442, 449), (445, 460)))], {})
    refused = silent(ports=((461, 461),), outcome=Outcome("connect", "refused"))

    await world.look(make_observation(SILENT, beside[0]), refused)

    (order,) = world.source.orders(StoryOrder)
    assert order.ports == [(440, 441), (442, 460), (461, 461)]


async def test_very_many_ranges_are_asked_together() -> None:
    """Cut into so many pieces a flow would take too long."""
    world, every = World(), tuple((port, port) for port in range(1, 2 * MOST_RANGES + 3, 2))

    await world.look(silent(ports=every), silent(ports=((2, 2),)))

    (order,) = world.source.orders(StoryOrder)
    assert order.ports == [(1, 3), *every[2:]]


async def test_a_flow_that_was_asked_again_is_asked_for_by_all_its_looks() -> None:
    """Datagrams are known by their orders and own ports, which are others each time."""
    world = World(told(run(6)), told())
    first = silent("udp", sport=40000, order=9)
    (again,) = await world.scene.prober.again(first)
    again = replace(again, sport=40001)

    await world.look(again)

    (order,) = world.source.orders(StoryOrder)
    assert order.numbers == sorted([9, again.order])
    assert order.own_ports == [40000, 40001]


async def test_what_is_asked_names_the_packets() -> None:
    """TCP by the sequence numbers that the source saw leave, datagrams by their orders."""
    world = World(told(run(5)), told(run(5)))

    await world.look(silent(), silent("udp", sport=40000, order=9), silent("ipproto/4", ()))

    asked = {order.proto: order for order in world.source.orders(StoryOrder)}
    there = {order.proto: order for order in world.target.orders(StoryOrder)}
    assert all((one.asker, one.target, one.sent) == (A, B, True) for one in asked.values())
    assert all((one.asker, one.target, one.sent) == (A, B, False) for one in there.values())
    assert (asked["tcp"].numbers, there["tcp"].numbers) == ([], [4711])
    assert asked["udp"].numbers == there["udp"].numbers == [9]
    assert asked["udp"].own_ports == [40000]
    assert asked["ipproto"].number == 4


async def test_flows_without_a_nonce_are_told_by_the_own_port() -> None:
    """Other datagrams to the same service are of other programs; a translation of the source's
    address may change its port."""
    world, translated = World(told(), told()), World(told(), told(heard=False))
    known = silent("udp", listener="live", mode="bytes", sport=40000, witness=None)
    unknown = silent("udp", listener="live", mode="bytes", witness=None)

    assert sights(await world.story(known)) == "nn?nnn"
    assert sights(await translated.story(known)) == "n???nn"
    assert sights(await world.story(unknown)) == "?????n"


async def test_a_kernel_that_is_asked_late_has_forgotten_what_reached_it() -> None:
    """Hosts of a bundle tell at the end: a SYN whose answer is stopped may have come in."""
    world = World(told(run(5)), told(run(5)))
    world.scene.fleet.sees_waiting = False

    assert sights(await world.story()) == "yy?nnn"


@pytest.mark.parametrize("seen_from", [None, "192.0.2.8"])
async def test_a_translated_source_has_its_story(seen_from: str | None) -> None:
    """What came under another address is asked for, with its answers."""

    def tell(order: StoryOrder) -> StoryTold:
        if order.asker == A:
            other = TranslatedRun("192.0.2.9", B, [(443, 443)], 5)
            return told(heard=False, translated=[other])
        return told(run(5, answers=5), heard=False)

    world = World(told(run(5)), tell)
    (found,) = await world.look(silent(witness=Witness(seen_from=seen_from)))

    assert found.story is not None
    assert sights(found.story) == "yyyynn"
    assert found.witness is not None
    # The listener's word comes first.
    assert found.witness.seen_from == (seen_from or "192.0.2.9")
    moved = world.target.orders(StoryOrder)[1]
    assert (moved.asker, moved.target, moved.sent) == ("192.0.2.9", B, False)


async def test_what_nobody_tells_of_a_translated_address_may_be_the_packet() -> None:
    """Results of hosts have no answer about an address that nobody knew when they were asked."""

    def tell(order: StoryOrder) -> StoryTold:
        if order.asker == A:
            return told(translated=[TranslatedRun("192.0.2.9", B, [(443, 443)], 5)])
        raise AgentError("not-asked", "b was not asked this")

    assert sights(await World(told(run(5)), tell).story()) == "y???nn"


@pytest.mark.parametrize(
    ("seen", "places"),
    [
        (silent("udp", order=9, sport=40000), "yynnnn"),
        (silent("ipproto/50", (), order=9), "yynnnn"),
        (silent(outcome=Outcome("answer", None, answer="silent"), order=9), "yynnnn"),
        # Without a nonce nothing tells what the source's packets look like there.
        (silent("udp", listener="live", mode="bytes", witness=None, sport=40000), "y???nn"),
    ],
)
async def test_a_nonce_names_packets_under_any_address_and_port(
    seen: Observation, places: str
) -> None:
    """Who translates the source's address may give its packets other ports."""
    ports = seen.ports or ((0, 0),)

    def tell(order: StoryOrder) -> StoryTold:
        if order.asker == A:
            return told(translated=[TranslatedRun("192.0.2.9", B, list(ports), 5)])
        return told(run(5, ports=ports)) if order.numbers == [9] else told()

    assert sights(await World(told(run(5, ports=ports)), tell).story(seen)) == places


@pytest.mark.parametrize(
    ("sender", "places"), [("192.0.2.9", "y???nn"), (A, "yn?nnn"), (None, "yn?nnn")]
)
async def test_packets_without_a_name_may_come_from_the_address_that_nonces_come_from(
    sender: str | None, places: str
) -> None:
    """What the destination's recorder hears of the source's own address are answers, then."""
    quiet = silent("udp", listener="live", mode="bytes", witness=None, sport=40000)
    world = World(told(run(5)), told())
    world.scene.origins.note(quiet.task, [sender] if sender else [])

    assert sights(await world.story(quiet)) == places


PAIR: Ports = ((443, 444),)
NAT = "192.0.2.9"
RIVAL = make_task(ports=PAIR, source=host("c", "10.0.0.3"))


def behind_nat(*runs: SeenRun, **facts: Any) -> Answer:
    """What the destination tells of an address that sources share; 443 has a number of a's."""

    def tell(order: StoryOrder) -> StoryTold:
        if order.asker == A:
            return told(heard=False, translated=[TranslatedRun(NAT, B, [(443, 443)], 5)])
        return told(*runs, **facts)

    return tell


@pytest.mark.parametrize(
    ("source", "destination", "places"),
    [
        # What came to 444 may be the other's alone.
        (run(5, ports=PAIR), run(10, ports=PAIR), ["yynnnn", "y???nn"]),
        (run(5, ports=PAIR), run(10, answers=5, ports=PAIR), ["yy??nn", "y???nn"]),
        (run(5, 4, ports=PAIR), run(10, answers=9, ports=PAIR), ["yyyyyn", "y???yn"]),
        (run(5, ports=PAIR), run(10, resets=5, ports=PAIR), ["yy??nn", "y???nn"]),
        # Nobody's packets came there.
        (run(5, ports=PAIR), run(10), ["yynnnn", "ynnnnn"]),
    ],
)
async def test_what_other_sources_send_from_the_same_address_is_not_this_ones(
    source: SeenRun, destination: SeenRun, places: list[str]
) -> None:
    """Only a number ties requests to a source, and an answer is its own where it arrives."""
    world = World(told(source), behind_nat(destination))
    world.scene.origins.expect([RIVAL])

    found = await world.look(silent(ports=PAIR))

    assert [(one.ports, sights(one.story)) for one in found if one.story] == list(
        zip([((443, 443),), ((444, 444),)], places, strict=True)
    )
    assert all(not one.story.errors for one in found if one.story)
    # Of twice as many that came half are the other's.
    assert all(one.story.destination_in.count in (0, 5) for one in found if one.story)


@pytest.mark.parametrize("elsewhere", [True, False])
async def test_an_address_that_no_other_source_may_have_is_the_sources(elsewhere: bool) -> None:
    """One number shows the translation for all ports."""
    world = World(told(run(5, ports=PAIR)), behind_nat(run(5, ports=PAIR)))
    if elsewhere:
        world.scene.origins.expect([RIVAL])
        world.scene.origins.note(RIVAL, ["10.0.0.3"])

    found = await world.look(silent(ports=PAIR))

    assert [(one.ports, sights(one.story)) for one in found if one.story] == [(PAIR, "yynnnn")]


async def test_errors_to_several_sources_are_of_the_one_that_got_them() -> None:
    """Those that left for the other got lost on no way of this one."""
    left = error(sender=B, outgoing=True, ttl=64)
    refused = World(told(run(5), errors=[error(sender=B)]), behind_nat(run(10), errors=[left]))
    quiet = World(told(run(5)), behind_nat(run(10), errors=[left]))
    for world in (refused, quiet):
        world.scene.origins.expect([RIVAL])

    assert [one.left for one in (await refused.story()).errors] == ["b"]
    assert (await quiet.story()).errors == ()


async def test_echo_requests_of_several_sources_are_not_mixed_up() -> None:
    """Every source may send some; the replies to this one arrive at it."""
    ports = ((0, 0),)
    there = told(translated=[TranslatedRun(NAT, B, list(ports), 5)])
    moved = told(run(9, answers=9, ports=ports))
    world = World(told(run(5, ports=ports)), lambda order: there if order.asker == A else moved)
    world.scene.origins.expect([RIVAL])

    assert sights(await world.story(silent("icmp", (), listener="unknown"))) == "yy??nn"


async def test_behind_a_shared_address_every_port_has_its_number() -> None:
    """A few tell that a range is translated, and not whose packets came to the rest."""
    ports = ((1000, 1199),)

    def tell(order: StoryOrder) -> StoryTold:
        runs = [SeenRun([one], packets(5), None, None, [one[0]]) for one in order.ports]
        return told(*runs)

    def tell_there(order: StoryOrder) -> StoryTold:
        if order.asker == A:
            known = [(first, first + 63) for first in order.numbers]
            return told(translated=[TranslatedRun(NAT, B, known, 5)])
        return told(run(10, ports=ports))

    world = World(tell, tell_there)
    world.scene.origins.expect([replace(RIVAL, ports=ports)])

    found = await world.look(silent(ports=ports))

    asked = world.source.orders(StoryOrder)[-1]
    assert (asked.ports, asked.sent) == (
        [(1000, 1063), (1064, 1127), (1128, 1191), (1192, 1199)], True,
    )  # fmt: skip
    assert [(one.ports, sights(one.story)) for one in found if one.story] == [(ports, "yynnnn")]


async def test_a_translated_destination_is_no_translated_source() -> None:
    """The packets come from whom they say."""

    def tell(order: StoryOrder) -> StoryTold:
        if order.target == B:
            return told(translated=[TranslatedRun(A, "10.9.9.9", [(443, 443)], 5)])
        return told(run(5))

    (found,) = await World(told(run(5)), tell).look(silent())

    assert found.story is not None
    assert sights(found.story) == "yynnnn"
    assert found.witness == Witness()


async def test_of_many_translated_addresses_some_are_asked_about() -> None:
    """A pool of addresses is large."""
    many = [TranslatedRun(f"192.0.2.{n}", B, [(443, 443)], 1) for n in range(1, 30)]
    world = World(told(run(5)), lambda order: told(translated=many if order.asker == A else []))

    await world.look(silent())

    assert len(world.target.orders(StoryOrder)) == 1 + MOST_TRANSLATED


async def test_errors_tell_who_saw_them_leave() -> None:
    """The destination's recorder, the source's own firewall, or nobody."""
    world = World(
        told(
            run(5),
            errors=[error(), error(sender=A, local=True), error(sender=A, outgoing=True)],
        ),
        told(run(5), errors=[error(sender=B, outgoing=True), error(sender="10.0.9.9")]),
    )

    story = await world.story()

    assert [(one.sender, one.left) for one in story.errors] == [(B, "b"), (ROUTER, None), (A, "a")]
    assert story.errors[1] == StoryError(ROUTER, 3, 13, 63, 2, "tcp 443", arrived=True)
    assert [one.arrived for one in story.errors] == [False, True, False]


async def test_an_error_that_left_and_arrived_is_one() -> None:
    """Whoever translates addresses gives it the one that was asked; its TTL is that on arrival."""
    left = error(sender="10.0.9.9", outgoing=True, ttl=64)
    world = World(told(run(5), errors=[error(sender=B, ttl=62)]), told(run(5), errors=[left]))

    story = await world.story()

    assert story.errors == (StoryError(B, 3, 13, 62, 2, "tcp 443", left="b", arrived=True),)


@pytest.mark.parametrize(
    ("source", "destination", "expected"),
    [
        (2, 0, StoryError(B, None, None, 64, 2, "tcp 443", not_left="b")),
        (2, 2, StoryError(B, None, None, 64, 2, "tcp 443", left="b")),
        (0, 3, StoryError(B, None, None, 64, 3, "tcp 443", left="b", arrived=False)),
    ],
)
async def test_resets_tell_who_saw_them_leave(
    source: int, destination: int, expected: StoryError
) -> None:
    """One that the destination's recorder never saw leave was made on the way."""
    world = World(told(run(5, resets=source)), told(run(5, resets=destination)))

    assert (await world.story()).errors == (expected,)


async def test_who_heard_nothing_of_the_source_gets_other_packets_first() -> None:
    """A recorder that gets an echo request and not the flow's packets says that these did not come.

    One that gets neither says nothing."""
    heard = told(heard=True)
    first = [told(heard=False)]
    world = World(told(run(5)), lambda order: first.pop() if first else heard)
    deaf = World(told(run(5)), told(heard=False, awake=False))

    assert sights(await world.story()) == "ynnnnn"
    assert [order.proto for order in world.source.orders(ProbeOrder)] == ["tcp"]
    assert sights(await deaf.story()) == "y???nn"
    assert len(deaf.target.orders(StoryOrder)) == 3


async def test_errors_belong_to_their_ports() -> None:
    """Those of another port of the pair say nothing."""
    world = World(told(run(5), errors=[error(443), error(80)]), told())

    (first, second) = await world.look(silent(), silent(ports=((81, 81),)))

    assert first.story is not None
    assert second.story is not None
    errors = {one.ports: one.story.errors for one in (first, second) if one.story}
    assert len(errors[PORTS]) == 1
    assert errors[((81, 81),)] == ()


@pytest.mark.parametrize(
    ("errors", "source_in"),
    [([error()], "unknown"), ([error(sender=A, local=True)], "no"), ([], "no")],
)
async def test_an_error_that_came_is_an_answer_too(errors: list[SeenError], source_in: str) -> None:
    """Whatever the own firewall did with it."""
    world = World(told(run(5), errors=errors), told())

    assert (await world.story()).source_in.seen == source_in


OPEN = kind(op="answer", answer="nonce", by=1)


@pytest.mark.parametrize(("again", "answer"), [(OPEN, "nonce"), (kind(failure="no-answer"), None)])
async def test_late_answers_are_asked_for_again_without_hurry(
    again: OutcomeKind, answer: str | None
) -> None:
    """They came to the interface when nobody waited any more: only who waits sees them."""
    world = World(told(run(5, answers=5)), told(run(5, answers=5)), again=again)

    (found,) = await world.look(silent())

    (order,) = world.source.orders(ProbeOrder)
    assert (order.first_ms, order.look_ms, order.looks) == (4000, 4000, 1)
    assert order.blocks[0].mode == "nonce"
    assert found.outcome is not None
    assert found.outcome.answer == answer
    assert found.story is not None
    assert sights(found.story) == ("yyyyyy" if answer else "yyyyyn")
    assert len(world.source.orders(StoryOrder)) == 2


@pytest.mark.parametrize(("came", "asked"), [(9, False), (4, True)])
async def test_a_late_answer_on_a_lossy_way_is_asked_for_more_often(came: int, asked: bool) -> None:
    """The one unhurried look may get lost, too: then the own firewall is not to blame."""
    world = World(told(run(9, answers=4)), told(run(came, answers=4)))

    (found,) = await world.look(silent())

    assert found.silent
    assert (len(world.source.orders(ProbeOrder)) > 1) is asked


@pytest.mark.parametrize(("left", "asked"), [(5, False), (9, True)])
async def test_answers_that_get_lost_on_the_way_back_are_loss(left: int, asked: bool) -> None:
    """Where only some of the answers came, none is held back by a rule."""
    there = told(run(5, answers=left))
    world = World(told(run(5, answers=5)), there)

    await world.look(silent())

    assert (len(world.source.orders(ProbeOrder)) > 1) is asked


async def test_only_what_came_late_is_asked_again() -> None:
    """Other ports of the same flow keep what was seen."""
    world = World(
        told(run(5, answers=5, ports=((1, 2),)), run(5, ports=((3, 4),))), told(), again=OPEN
    )

    found = await world.look(silent(ports=((1, 4),)))

    (order,) = world.source.orders(ProbeOrder)
    assert order.blocks[0].ports == [(1, 2)]
    assert [(one.ports, one.silent) for one in found] == [(((1, 2),), False), (((3, 4),), True)]


@pytest.mark.parametrize("lost", ["source", "destination"])
async def test_a_lost_agent_tells_nothing(lost: str) -> None:
    """What was seen before stands."""
    world = World(told(run(5)), told(run(5)))

    def lose(order: StoryOrder) -> StoryTold:
        raise AgentError("agent-lost", "gone")

    (world.source if lost == "source" else world.target).scripts[StoryOrder] = lose
    story = await world.story()

    assert sights(story) == ("?ynn?n" if lost == "source" else "y???nn")


@pytest.mark.parametrize(
    ("outcome", "concerned"),
    [
        (SILENT, True),
        (Outcome("connect", "refused"), True),
        (Outcome("connect", None, answer="unasked"), True),
        (Outcome("send", None), True),
        (Outcome("answer", None, answer="nonce"), False),
        (None, False),
    ],
)
def test_whatever_our_listener_did_not_answer_concerns_the_check(
    outcome: Outcome | None, concerned: bool
) -> None:
    """A nonce answered by our listener passes whatever recorders say."""
    seen = make_observation(outcome)

    assert Stories().concerns(seen) is concerned
    assert not Stories().concerns(replace(seen, task=replace(seen.task, via=object())))


async def test_of_connections_that_opened_the_nonces_are_asked_for() -> None:
    """By their orders; the SYNs of other ports by their numbers."""
    opened = Outcome("answer", None, answer="silent")
    world = World(told(run(2)), told())

    (found,) = await world.look(silent(outcome=opened, witness=Witness()))

    asked = [(one.proto, one.numbers) for one in world.source.orders(StoryOrder)]
    assert asked == [("tcp-nonce", [7]), ("tcp", [])]
    assert [(one.proto, one.numbers) for one in world.target.orders(StoryOrder)] == asked[:1]
    assert found.story is not None
    assert sights(found.story) == "ynnnnn"


@pytest.mark.parametrize(("connects", "sight"), [(True, "?"), (False, "n")])
async def test_a_peer_without_a_window_holds_data_back(connects: bool, sight: str) -> None:
    """Only where no SYN left either, something on the source itself opened the connection."""
    opened = Outcome("answer", None, answer="silent")

    def tell(order: StoryOrder) -> StoryTold:
        return told(run(2)) if order.proto == "tcp" and connects else told()

    (found,) = await World(tell, told()).look(silent(outcome=opened, witness=Witness()))

    assert found.story is not None
    assert sights(found.story) == f"{sight}nnnnn"


async def test_nonces_of_other_protocols_are_not_looked_for() -> None:
    """The recorder knows only what plain ones begin with."""
    opened = Outcome("answer", None, answer="silent")
    task = replace(make_task("tcp", PORTS), probe="dns")
    seen = make_observation(opened, task, listener="ours", mode="nonce", witness=Witness())

    assert sights(await World(told(), told()).story(seen)) == "?????n"


async def test_what_stays_on_the_loopback_device_has_no_story() -> None:
    """The source has the address itself."""
    world = World()
    world.source.scripts[RouteOrder] = routed(source=A, dev="lo")

    assert sights(await world.story()) == "?????n"
    assert world.source.orders(StoryOrder) == []


@pytest.mark.parametrize(("left", "came"), [(False, "no"), (True, "unknown")])
async def test_an_error_in_its_name_that_it_never_sent_is_somebody_elses(
    left: bool, came: str
) -> None:
    """A translation gives errors of others the destination's address."""
    outcome = Outcome("answer", "net-unreachable", Icmp(3, 0, B, "destination"))
    errors = [error(sender=B, outgoing=True)] if left else []
    world = World(told(run(5), errors=[error(sender=B)]),
                  told(heard=False, awake=False, errors=errors))  # fmt: skip

    assert (await world.story(silent(outcome=outcome))).destination_in.seen == came
