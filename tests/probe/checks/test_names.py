"""Which servers are asked for names, from where, and what is compared."""

from __future__ import annotations

from typing import Any

import dns.message
import pytest
from msgspec.structs import replace

from netprobe.agent.wire.host_messages import Nameservers, NameserversOrder
from netprobe.agent.wire.parts import OutcomeKind
from netprobe.model.evidence import Outcome
from netprobe.model.inventory import Address
from netprobe.model.notes import NamesNote
from netprobe.model.plan import AskedName
from netprobe.probe.agents.name_questions import NameQuestions
from netprobe.probe.checks.names import Names
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import Timing
from tests.probe.builders import SOURCE, TARGET, look, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, host

ANSWERED = Outcome("answer", None, answer="service", said="REFUSED")
NAME = AskedName("api-hostname", "api.x.test", ("10.0.0.5",))
SIBLING = (host("d", "10.0.0.3"), Address("10.0.0.3", 4))
NXDOMAIN = 3


def dns_task(*names: AskedName, **more: Any) -> Task:
    """The task of a row with these names, and with a second server."""
    task = make_task("udp", ((53, 53),), probe="dns", **more)
    (want,) = task.wants
    block = want.flow.block
    block = replace(block, names=names, destinations=(*block.destinations, SIBLING))
    return replace(task, wants=(replace(want, flow=replace(want.flow, block=block)),))


def answered(*names: AskedName, **more: Any) -> Observation:
    """A name server's answer to the probe."""
    return make_observation(ANSWERED, dns_task(*names, **more), listener="live")


def fails_for_itself() -> Observation:
    """A server that must run already says SERVFAIL to the question of the probe."""
    seen = answered()
    task = replace(seen.task, existing=True)
    return replace(seen, task=task, outcome=replace(ANSWERED, said="SERVFAIL"))


class Asking(FakeAgent):
    """A source with these servers in its resolv.conf; every server says NXDOMAIN."""

    def __init__(self, *resolvers: str, lost: bool = False) -> None:
        told = {NameserversOrder: lambda order: Nameservers(order.id, list(resolvers))}
        super().__init__(SOURCE, told, lost=lost)
        self.servers: set[tuple[str, str | None]] = set()
        self.names = NameQuestions("a", self.answer)

    async def answer(
        self, protocol: str, dst: str, port: int, request: bytes, timing: Timing,
        src: str | None = None,
    ) -> list[OutcomeKind]:  # fmt: skip
        """Say NXDOMAIN."""
        await self.wait_ready()
        self.servers.add((dst, src))
        reply = dns.message.make_response(dns.message.from_wire(request))
        reply.set_rcode(dns.rcode.Rcode(NXDOMAIN))
        rest = (None,) * 4
        return [
            OutcomeKind("answer", None, None, None, "bytes", None, reply.to_wire(), *rest, None)
        ]


@pytest.mark.parametrize(
    "seen",
    [
        answered(),
        replace(answered(NAME), outcome=Outcome("answer", "no-answer")),
        replace(answered(NAME), outcome=replace(ANSWERED, answer="nonce")),
        make_observation(ANSWERED, make_task("udp", ((53, 53),))),
        make_observation(ANSWERED, make_task("udp", ((123, 123),), probe="ntp")),
    ],
)
def test_nobody_is_asked(seen: Observation) -> None:
    """Without names, without an answer, of our own listener, and of other services."""
    assert not Names().concerns(seen)


async def test_a_server_that_fails_for_itself_is_asked_for_the_root() -> None:
    """No name is set; it must run already, and said SERVFAIL to the question of the probe."""
    failed = fails_for_itself()
    source = Asking("10.0.0.9")
    assert not Names().concerns(replace(failed, outcome=ANSWERED))
    assert not Names().concerns(replace(failed, task=replace(failed.task, existing=False)))

    (found,) = await look(Names(), make_scene(source), failed)

    assert found.names is not None
    assert (found.names.own.root, found.names.own.resolves) == ("NXDOMAIN", True)
    assert source.servers == {("10.0.0.2", None)}
    assert found.trail[-1].note == NamesNote("10.0.0.2", {".": "NXDOMAIN"})


async def test_a_lost_source_warns_only_where_names_were_to_be_asked() -> None:
    """In batch mode nobody asks: a flow without names has lost nothing."""
    failed = fails_for_itself()

    (found,) = await look(Names(), make_scene(Asking(lost=True)), failed)

    assert found.warnings == ()


async def test_every_server_that_the_source_may_use_is_asked() -> None:
    """The flow's, the row's others, and those of resolv.conf; none of them twice."""
    source = Asking("10.0.0.2", "10.0.0.9", "nonsense", "127.0.0.53", "10.0.0.99")

    (found,) = await look(Names(), make_scene(source), answered(NAME))

    assert found.names is not None
    assert {server for server, _ in source.servers} == {"10.0.0.2", "10.0.0.3", "10.0.0.9"}
    assert found.names.own.server == "10.0.0.2"
    others = [(one.server, one.resolver) for one in found.names.others]
    assert others == [("10.0.0.3", False), ("10.0.0.9", True)]
    assert found.trail[-1].note == NamesNote("10.0.0.2", {"api.x.test": "NXDOMAIN"})


async def test_programs_ask_from_the_kernels_choice() -> None:
    """Servers of the inventory are asked from its address, resolv.conf's from any."""
    there = replace(SOURCE, source_addresses=(Address("10.0.0.1", 4),))
    source = Asking("10.0.0.9")

    await look(Names(), make_scene(source), answered(NAME, source=there))

    assert source.servers == {
        ("10.0.0.2", "10.0.0.1"),
        ("10.0.0.3", "10.0.0.1"),
        ("10.0.0.9", None),
    }


async def test_a_source_that_is_lost_leaves_a_warning() -> None:
    """What the probe saw stands."""
    (found,) = await look(Names(), make_scene(Asking(lost=True)), answered(NAME))

    assert found.outcome == ANSWERED
    assert found.names is None
    assert found.warnings == ("no name was asked for: the agent of a was lost",)


def test_flows_to_one_server_are_compared() -> None:
    """Whoever asks the same server over the same protocol is in one group."""
    other = answered(NAME, source=host("c", "10.0.0.7"))
    assert Names().group(answered(NAME)) == Names().group(other)
    elsewhere = answered(NAME, target=replace(TARGET, addresses=(Address("10.0.0.8", 4),)))
    assert Names().group(answered(NAME)) != Names().group(elsewhere)
