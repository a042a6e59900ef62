"""The list of the checks: its order, its names, and that no check changes a measurement."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.answers import (
    Seen,
    Walked,
)
from netprobe.agent.wire.host_messages import (
    Egress,
    EgressOrder,
    ReturnPath,
    ReturnPathOrder,
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    EchoOrder,
    ProbeOrder,
    SeenOrder,
    WalkOrder,
)
from netprobe.agent.wire.parts import OutcomeKind, WalkHop
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Icmp, Listener, Outcome, Witness
from netprobe.probe.checks import CHECKS
from netprobe.probe.checks.check import Check, Scene, apply_check
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import ROUTER, SOURCE, TARGET, make_observation, make_scene, make_task
from tests.probe.fakes import FakeAgent, FakePipe, kind, reply, routed

# These send the flow's own probes again; the later measurement takes the place of the earlier one.
ASKS_AGAIN = ("silence", "one-way", "late-refusals", "story", "rate-limit")

REFUSED = Outcome("connect", "refused", rtt_ms=1.0)
SILENT = Outcome("connect", "no-answer", left_host=True, packets=6)
STAYED = Outcome("connect", "no-answer", left_host=False)
OPEN = Outcome("connect", None, answer="unasked", rtt_ms=2.0)
NONCE = Outcome("answer", None, answer="nonce", ttl=60)
EARLY = Outcome("connect", "host-unreachable", Icmp(3, 1, ROUTER, "router"), elapsed_ms=700)
LATE = Outcome("connect", "host-unreachable", Icmp(3, 1, ROUTER, "router"), elapsed_ms=3100)


def names() -> list[str]:
    return [check.name for check in CHECKS]


def test_every_check_has_a_name_of_its_own() -> None:
    """The trail, ``explain`` and the record know a check by its name."""
    assert len(set(names())) == len(CHECKS)
    assert all(name and name == name.lower() for name in names())


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        # What the listeners saw decides which one-way packets are sent again.
        ("arrivals", "one-way"),
        # A firewall's reset may be a limit's.
        ("forged-resets", "rate-limit"),
        # Whoever answers for everybody is no service.
        ("intercepted", "services"),
        # A dead host is no limit.
        ("dead-host", "rate-limit"),
        # What answers after all needs no walk.
        ("one-way", "traceroute"),
        ("rate-limit", "traceroute"),
    ],
)
def test_a_check_runs_after_those_whose_conclusions_it_reads(earlier: str, later: str) -> None:
    """The order is part of the behaviour."""
    assert names().index(earlier) < names().index(later)


def test_path_mtu_is_measured_last() -> None:
    """The flows tell which packets arrive, and full-size packets disturb no other look."""
    assert names()[-1] == "path-mtu"


def test_only_the_listeners_word_is_vital() -> None:
    """Flows to listeners mean nothing without it; every other look is an addition."""
    assert [check.name for check in CHECKS if check.vital] == ["arrivals"]


def test_checks_that_probe_our_listeners_say_so() -> None:
    """The loss of the destination's agent spoils these, and only these."""
    said = [check.name for check in CHECKS if check.probes_listeners]

    assert said == ["silence", "bundle", "slow-start", "one-way", "rate-limit"]


def flows(listener: str) -> list[Observation]:
    """A flow of every kind, each at a port of its own."""
    found = []
    outcomes = (REFUSED, SILENT, STAYED, OPEN, NONCE, EARLY, LATE, None)
    for port, outcome in enumerate(outcomes, 1):
        task = make_task("tcp", ((port * 10, port * 10 + 1),), probe="http-health")
        witness = Witness() if listener == "ours" else None
        found.append(make_observation(outcome, task, listener=listener, witness=witness))
    return found


def connect(order: ProbeOrder) -> Any:
    """Another answer than before at every port."""

    def tell(port: int) -> OutcomeKind:
        return kind(op="send", failure="refused" if port % 2 else "no-answer", elapsed_ms=9)

    return reply(order, tell)


def scene(with_agent: bool) -> Scene:
    """Both ends answer whatever a check asks."""
    hops = [WalkHop(1, ROUTER), WalkHop(2, None), WalkHop(3, "10.0.0.2")]
    source = FakeAgent(
        SOURCE,
        {
            ProbeOrder: connect,
            EchoOrder: lambda order: reply(order, kind(op="answer", answer="echo", ttl=60)),
            RouteOrder: routed(gateway=ROUTER),
            WalkOrder: lambda order: Walked(order.id, hops, True, None, None),
            EgressOrder: lambda order: Egress(
                order.id, "eth0", ROUTER, None, None, True, "no-buffers"
            ),
        },
    )
    source.pipes = lambda _: FakePipe(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    if not with_agent:
        return make_scene(source)
    back = ReturnPath(1, "eth0", None, "known", None, [], "no-route")
    target = FakeAgent(
        TARGET,
        {
            SeenOrder: lambda order: Seen(order.id, [], [], [], []),
            ReturnPathOrder: lambda order: back._replace(id=order.id),
            RouteOrder: routed(source="10.0.0.2"),
        },
    )
    return make_scene(source, target)


def measured(observations: list[Observation]) -> dict[int, tuple[Any, Listener]]:
    """What was measured at every port; ``forged`` and its like are conclusions."""
    found: dict[int, tuple[Any, Listener]] = {}
    for one in observations:
        out = one.outcome
        facts = out and (
            out.operation, out.failure, out.icmp, out.ttl, out.rtt_ms, out.elapsed_ms, out.blind,
            out.attempts, out.packets, out.answer, out.answered_by, out.said, out.refusal,
        )  # fmt: skip
        found |= {port: (facts, one.listener) for port in port_sets.each(one.ports)}
    return found


@pytest.mark.parametrize("listener", ["ours", "live", "unknown"])
@pytest.mark.parametrize("with_agent", [True, False])
@pytest.mark.parametrize("check", [one for one in CHECKS if one.name not in ASKS_AGAIN])
async def test_no_check_changes_what_was_measured(
    check: Check, with_agent: bool, listener: str
) -> None:
    """Conclusions are fields of their own, and every port is still there, once."""
    before = flows(listener)

    after = await apply_check(check, before, scene(with_agent=with_agent or check.needs == "agent"))

    assert measured(after) == measured(before)
    assert sum(port_sets.count(one.ports) for one in after) == len(measured(before))


@pytest.mark.parametrize("check", CHECKS)
async def test_the_trail_keeps_what_earlier_checks_left(check: Check) -> None:
    """Entries are added at the end, whoever asks again."""
    before = [one.noting("earlier") for one in flows("live")]

    after = await apply_check(check, before, scene(with_agent=check.needs != "no-agent"))

    assert {one.trail[0].name for one in after} == {"earlier"}
    assert {entry.name for one in after for entry in one.trail} <= {"earlier", "probe", check.name}
