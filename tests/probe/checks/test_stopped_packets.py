"""Which host stops a silent flow's packets, by the counters of both kernels."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import Seen
from netprobe.agent.wire.host_messages import PacketCounts, PacketCountsOrder
from netprobe.agent.wire.orders import ProbeOrder, SeenOrder
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.model import ports as port_sets
from netprobe.model.evidence import NOT_COUNTED, Outcome, StoppedPackets, Witness
from netprobe.model.ports import Ports
from netprobe.model.story import Sight, Story, StoryPlace
from netprobe.probe.checks import stopped_packets
from netprobe.probe.checks.check import Scene
from netprobe.probe.checks.stopped_packets import (
    LOOKS,
    MOMENTS,
    MOST_PORTS,
    QuietHolders,
    StoppedPacketsLook,
)
from netprobe.probe.flows.prober import Observation
from netprobe.probe.settings import COUNTED
from tests.probe.builders import SOURCE, TARGET, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, kind, reply

# Where a packet of a flow ends; ``answered``: nowhere.
Fate = Literal["path", "request", "reply", "return", "answer", "answered"]
SILENT = Outcome("connect", "no-answer", left_host=True, attempts=5, packets=5)
NOTHING = kind(failure="no-answer", left=True, packets=1)
OPEN = kind(op="answer", answer="nonce", by=1)


@pytest.fixture(autouse=True)
def short_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters of these tests move at once, and chance draws the same each time."""
    monkeypatch.setattr(stopped_packets, "LEAST_LOOK_MS", 1)
    monkeypatch.setattr(stopped_packets, "SLOT_S", 0.01)
    monkeypatch.setattr(stopped_packets, "random", random.Random(7))


class World:
    """Two hosts whose kernels count; ``fates`` of the flows by port.

    ``noise`` gives packets of others that a host stops between two questions; ``loss``: of so many
    packets one is lost before it is counted; ``held``: whether kernels count what does not leave.
    A look sends ``packets`` of them.
    """

    def __init__(
        self,
        fates: dict[int, Fate],
        *,
        noise: Iterator[int] | None = None,
        loss: int = 0,
        held: bool = True,
        packets: int = 1,
        nothing: OutcomeKind = NOTHING,
    ) -> None:
        self._fates, self._nothing = fates, nothing
        self._noise, self._loss, self._held, self._packets = noise, loss, held, packets
        self._sent = 0
        self.source_counts = {"stopped": 5, "held": 3, "segments": 9}
        self.target_counts = {"stopped": 0, "held": 0, "segments": 0}
        self.source = FakeAgent(
            SOURCE,
            {ProbeOrder: self._probe, PacketCountsOrder: self._tell_counts(self.source_counts)},
        )
        self.target = FakeAgent(
            TARGET,
            {
                PacketCountsOrder: self._tell_counts(self.target_counts),
                SeenOrder: lambda order: Seen(order.id, [], [], [], []),
            },
        )
        self.scene: Scene = make_scene(self.source, self.target)

    def _tell_counts(self, counts: dict[str, int]) -> Callable[[PacketCountsOrder], PacketCounts]:
        def tell(order: PacketCountsOrder) -> PacketCounts:
            if self._noise is not None:
                counts["stopped"] += next(self._noise)
            held = counts["held"] if self._held else None
            return PacketCounts(order.id, counts["stopped"], held, counts["segments"])

        return tell

    def _probe(self, order: ProbeOrder) -> Any:
        for port in [*port_sets.each(tuple(order.blocks[0].ports))] * self._packets:
            self._sent += 1
            if not self._loss or self._sent % self._loss:
                self._send(self._fates[port])
        nothing = self._nothing._replace(packets=self._packets)
        return reply(order, lambda port: OPEN if self._fates[port] == "answered" else nothing)

    def _send(self, fate: Fate) -> None:
        if fate == "request":
            self.target_counts["stopped"] += 1
        elif fate != "path":
            self.target_counts["segments"] += 1
        if fate == "reply":
            self.target_counts["held"] += 1
        if fate == "answer":
            self.source_counts["stopped"] += 1

    async def look(self, *flows: Observation) -> dict[int, StoppedPackets]:
        """What the check finds, by port."""
        found = await look(StoppedPacketsLook(), self.scene, *flows)
        return {
            port: one.stopped for one in found for port in port_sets.each(one.ports)
        }  # fmt: skip

    @property
    def times(self) -> int:
        """How often flows were asked while counters were watched."""
        asked = len(self.source.orders(PacketCountsOrder))
        return asked // (2 * MOMENTS + 1)


def silent(*ports: int, reached: bool = False, ours: bool = True, **more: Any) -> Observation:
    """Silent TCP flows; ``reached``: their packets came to a listener of ours."""
    ranges: Ports = port_sets.normalise((port, port) for port in ports or (443,))
    return make_observation(
        more.pop("outcome", SILENT),
        make_task("tcp", ranges),
        listener="ours" if ours else "unknown",
        mode="nonce" if ours else "connect",
        witness=Witness(socket=reached),
        **more,
    )


@pytest.mark.parametrize("loss", [0, 5])
@pytest.mark.parametrize(
    ("fate", "reached", "stopped"),
    [
        ("path", False, StoppedPackets(request=False, answer=False)),
        ("request", False, StoppedPackets(request=True, answer=False)),
        ("reply", True, StoppedPackets(reply=True, answer=False, taken=True)),
        ("return", True, StoppedPackets(reply=False, answer=False, taken=True)),
        ("answer", True, StoppedPackets(reply=False, answer=True, taken=True)),
        # TCP got it before anybody could look: what stopped the answer is told all the same.
        ("reply", False, StoppedPackets(reply=True, answer=False, taken=True)),
        ("return", False, StoppedPackets(reply=False, answer=False, taken=True)),
    ],
)
async def test_who_counts_them_stops_them(
    fate: Fate, reached: bool, stopped: StoppedPackets, loss: int
) -> None:
    """Also where every fifth packet is lost."""
    world = World({443: fate}, loss=loss)

    assert await world.look(silent(reached=reached)) == {443: stopped}


async def test_a_port_that_nobody_of_ours_holds_may_be_reached() -> None:
    """That nothing was stopped does not show that nothing came; nor, that a reply was made."""
    away, there = World({443: "path"}), World({443: "return"})

    assert await away.look(silent(ours=False)) == {443: StoppedPackets(answer=False)}
    taken = StoppedPackets(answer=False, taken=True)
    assert await there.look(silent(ours=False)) == {443: taken}


def quiet(
    came: Sight = "yes", state: Literal["live", "closed"] = "live", *ports: int, **more: Any
) -> Observation:
    """Datagrams to ports that must not answer, which a recorder saw come."""
    ranges: Ports = port_sets.normalise((port, port) for port in ports or (514,))
    seen = make_observation(
        Outcome("send", None, attempts=3, packets=9),
        make_task("udp", ranges, expect=more.pop("expect", "denied")),
        listener=state,
        mode="send",
        story=Story(destination_in=StoryPlace(came)),
    )
    return replace(seen, part=replace(seen.part, paced=True))


QUIET = kind(op="send", packets=3)


async def look_at_quiet(world: World, *flows: Observation) -> dict[int, StoppedPackets]:
    """What the check of ports that must not answer finds, by port."""
    found = await look(QuietHolders(), world.scene, *flows)
    assert all(one.part.paced for one in found)
    return {port: one.stopped for one in found for port in port_sets.each(one.ports)}


@pytest.mark.parametrize(
    ("came", "fate", "request_stopped"),
    [
        ("yes", "answer", False),
        ("yes", "request", True),
        ("unknown", "request", True),
        # It may not have come.
        ("unknown", "path", None),
    ],
)
async def test_of_what_a_recorder_saw_the_counters_tell_whether_the_host_takes_it(
    came: Sight, fate: Fate, request_stopped: bool | None
) -> None:
    """Although that host has a recorder; a holder that keeps quiet is asked without a pace."""
    world = World({514: fate}, nothing=QUIET)

    assert await look_at_quiet(world, quiet(came)) == {514: StoppedPackets(request=request_stopped)}
    assert all(order.pace is None for order in world.source.orders(ProbeOrder))


async def test_denied_ports_of_which_one_is_stopped_are_told_apart() -> None:
    """By halves, as others are."""
    world = World({514: "answer", 515: "request"}, nothing=QUIET)

    told = {514: StoppedPackets(request=False), 515: StoppedPackets(request=True)}
    assert await look_at_quiet(world, quiet("yes", "live", 514, 515)) == told


@pytest.mark.parametrize(
    "flow",
    [
        quiet("no"),
        # Nothing listens there, and no translation of the platform may take it yet.
        quiet("yes", "closed"),
        quiet(expect="allowed"),
    ],
)
async def test_what_nobody_can_take_is_not_watched(flow: Observation) -> None:
    """Nor what is required, which another check looks at."""
    world = World({514: "request"}, nothing=QUIET)

    assert await look_at_quiet(world, flow) == {514: NOT_COUNTED}
    assert world.times == 0


async def test_kernels_that_do_not_count_what_leaves() -> None:
    """The source's end is told all the same."""
    world = World({443: "reply"}, held=False)

    told = StoppedPackets(answer=False, taken=True)
    assert await world.look(silent(reached=True)) == {443: told}


async def test_flows_of_one_fate_are_asked_together() -> None:
    """A pair's silent ports take as long as one of them."""
    ports = range(7000, 7009)
    world = World(dict.fromkeys(ports, "request"))

    found = await world.look(silent(*ports))

    assert found == dict.fromkeys(ports, StoppedPackets(request=True, answer=False))
    assert world.times == 1


async def test_flows_of_different_fates_are_told_apart() -> None:
    """No port stands for another."""
    world = World({7000: "path", 7001: "request", 7002: "path"})

    found = await world.look(silent(7000, 7001, 7002))

    assert found[7001] == StoppedPackets(request=True, answer=False)
    assert found[7000] == found[7002] == StoppedPackets(request=False, answer=False)


async def test_a_port_that_is_sent_several_packets_stands_for_no_other() -> None:
    """A look at UDP sends three datagrams: those of one port are as many as one of each of three
    ports would be."""
    world = World({7000: "path", 7001: "request", 7002: "path"}, packets=3)

    found = await world.look(silent(7000, 7001, 7002))

    assert found[7001] == StoppedPackets(request=True, answer=False)
    assert found[7000] == found[7002] == StoppedPackets(request=False, answer=False)


class SlowAgent(FakeAgent):
    """A busy machine: what is asked takes so many seconds."""

    takes_s = 1.0

    async def probe(self, order: Any, heard: Any = None) -> Any:
        await asyncio.sleep(self.takes_s)
        return await super().probe(order, heard)


def make_slow(world: World, takes_s: float) -> None:
    """Let the source be slow."""
    world.source = slow = SlowAgent(SOURCE, world.source.scripts)
    slow.takes_s = takes_s
    world.scene = make_scene(world.source, world.target)


async def test_asking_on_a_busy_machine_takes_longer() -> None:
    """So that more packets of others come meanwhile, which are none of the flow's."""
    world = World({443: "path"})
    make_slow(world, takes_s=1)
    begun = asyncio.get_running_loop().time()

    def tell(order: PacketCountsOrder) -> PacketCounts:
        others = round(40 * (asyncio.get_running_loop().time() - begun))
        return PacketCounts(order.id, others, others, 0)

    for agent in (world.source, world.target):
        agent.scripts[PacketCountsOrder] = tell

    assert await world.look(silent(reached=True)) == {443: NOT_COUNTED}


@pytest.mark.parametrize("seed", range(8))
async def test_answers_that_a_kernel_repeats_are_met_by_no_moment(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A SYN-ACK that was stopped comes again after 1 and 3 s; a slow machine still asks then."""
    monkeypatch.setattr(stopped_packets, "SLOT_S", 2.0)
    monkeypatch.setattr(stopped_packets, "random", random.Random(seed))
    world = World({443: "answer"})
    make_slow(world, takes_s=0.15)
    loop, send = asyncio.get_running_loop(), world._send

    def repeat() -> None:
        world.source_counts["stopped"] += 1

    def send_and_repeat(fate: Fate) -> None:
        send(fate)
        for after_s in (1, 3):
            loop.call_later(after_s, repeat)

    monkeypatch.setattr(world, "_send", send_and_repeat)

    assert (await world.look(silent()))[443].answer is True


async def test_a_machine_that_stands_still_is_not_waited_for() -> None:
    """What is counted then tells nothing."""
    world = World({443: "request"})
    make_slow(world, takes_s=30)
    begun = asyncio.get_running_loop().time()

    assert await world.look(silent()) == {443: NOT_COUNTED}
    assert asyncio.get_running_loop().time() - begun == pytest.approx(30)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("fate", ["path", "request"])
async def test_packets_of_others_never_mislead(fate: Fate, seed: int) -> None:
    """SYN-ACKs that are repeated, and scanners: the counters tell it rightly, or nothing."""
    chance = random.Random(seed)
    noise = iter(lambda: chance.choice((0, 0, 0, 8, 16, 40)), None)
    world = World({443: fate}, noise=noise)

    stopped = (await world.look(silent()))[443]

    assert stopped.request in (fate == "request", None)
    assert stopped.answer in (False, None)


async def test_what_answers_meanwhile_is_asked_once_more() -> None:
    """The flow is not what it was, and no longer silent."""
    world = World({443: "answered"})

    (found,) = await look(StoppedPacketsLook(), world.scene, silent())

    assert found.stopped == NOT_COUNTED
    assert found.outcome is not None
    assert found.outcome.answer == "nonce"


async def test_nobody_asks_for_ever() -> None:
    """A host's flows are asked a few times in all; the others stay as they were."""
    ports = range(7000, 7000 + MOST_PORTS)
    world = World({port: "request" if port % 2 else "path" for port in ports})

    await world.look(silent(*ports))

    assert world.times == COUNTED
    assert world.source.counted_left == world.target.counted_left == 0


@pytest.mark.parametrize(
    "seen",
    [
        silent(outcome=replace(SILENT, left_host=False)),
        silent(outcome=Outcome("connect", "refused")),
        replace(silent(), witness=Witness(reply_failure="network-unreachable")),
        silent(*range(1, MOST_PORTS + 2)),
        make_observation(SILENT, make_task("icmp", ())),
        make_observation(SILENT, replace(make_task("tcp"), address="127.0.0.2")),
    ],
)
async def test_some_flows_are_not_asked(seen: Observation) -> None:
    """What never left, what was refused, what a host without a route cannot answer, too many ports,
    what goes one at a time, and what is on one machine."""
    world = World(defaultdict(lambda: "path"))

    await world.look(seen)

    assert world.source.orders(PacketCountsOrder) == []


@pytest.mark.parametrize("end", ["source", "target"])
async def test_where_a_recorder_told_nobody_counts(end: str) -> None:
    """The other end is asked all the same."""
    world = World({443: "path"})
    known = StoryPlace("no")
    story = Story(source_in=known) if end == "source" else Story(destination_in=known)

    found = await world.look(silent(story=story))

    stopped = StoppedPackets(request=False) if end == "source" else StoppedPackets(answer=False)
    assert found == {443: stopped}


async def test_without_counters_nothing_is_asked() -> None:
    """A kernel that says nothing costs no time."""
    world = World({443: "path"})
    nothing: Callable[[Any], PacketCounts] = lambda order: PacketCounts(order.id, None, None, None)  # noqa: E731
    for agent in (world.source, world.target):
        agent.scripts[PacketCountsOrder] = nothing

    assert await world.look(silent()) == {443: NOT_COUNTED}
    assert world.source.orders(ProbeOrder) == []


async def test_it_asks_with_many_looks_at_once() -> None:
    """Eight connects a moment, in half of the moments."""
    world = World({443: "path"})

    await world.look(silent())

    assert len(world.source.orders(ProbeOrder)) == MOMENTS * LOOKS
