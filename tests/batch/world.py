"""Hosts that carry out scripts in memory, in a network that loses what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from netprobe.agent.wire.answers import EchoOutcomes, ProbeOutcomes, Seen
from netprobe.agent.wire.batch import BatchStart, HostBudgets, PhaseClock, ResultHeader
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder, RecordOrder, SeenOrder, TemplatesOrder
from netprobe.agent.wire.parts import EchoRun, OrderArrivals, OutcomeKind, OutcomeRun
from netprobe.agent.wire.result_lines import LineMaker
from netprobe.batch.ideal import IdealAgent, make_ideal_hello
from netprobe.batch.replay import Replay
from netprobe.batch.request import BatchRequest
from netprobe.batch.results import HostRecording
from netprobe.batch.rounds import make_first_round
from netprobe.batch.script import HostScript
from netprobe.cli.run import run_until_end
from netprobe.model.inventory import Host
from netprobe.model.matrix import Requirement
from netprobe.model.plan import Block, Plan
from netprobe.model.ports import Ports, normalise
from netprobe.model.result import HostReport, Result
from netprobe.plan.choices import PlanPart
from netprobe.probe.agents.templates import Templates
from netprobe.probe.collect import list_hosts
from netprobe.probe.jumping_loop import JumpingLoop
from netprobe.probe.settings import ProbeSettings
from netprobe.session import RunRequest
from tests.probe.fakes import host

A, B, C = host("a", "10.0.0.1"), host("b", "10.0.0.2"), host("c", "10.0.0.3")
KEY, RESULTS_KEY = bytes(range(32)), bytes(range(32, 64))
BEGAN_S = 1_000_000.0
# Tells what becomes of a port: an outcome instead of the good one, or None.
Fault = Callable[[str, Any, int], OutcomeKind | None]
SILENT = OutcomeKind(
    "connect", "no-answer", None, True, None, None, None, None, None, None, 3, None
)


def plan_of(*blocks: tuple[str, str, Ports], hosts: Sequence[Host] = (A, B, C)) -> Plan:
    """A plan between all hosts: requirement, protocol, ports; denied where it is called so."""
    made = []
    for index, (name, protocol, ports) in enumerate(blocks):
        wanted = Requirement(
            name, ("node",), ("node",), purpose="x", row="Row",
            expect="denied" if name.startswith("denied") else "allowed",
        )  # fmt: skip
        ends = tuple((one, one.addresses[0]) for one in hosts)
        made.append(Block(index, "m", wanted, protocol, ports, 4, tuple(hosts), ends))
    return Plan((), tuple(made))


def request_of(plan: Plan, barrier: str = "engine", **changes: Any) -> BatchRequest:
    """A run of a plan."""
    usual: dict[str, Any] = {
        "run": "0" * 16, "key": KEY, "results_key": RESULTS_KEY, "plan": plan, "hosts": (),
        "settings": ProbeSettings(), "barrier": barrier,
        "starts_at": BEGAN_S if barrier == "clock" else None,
        "window_s": 60.0, "margin_s": 10.0, "budgets": HostBudgets(0, 0, 0, 0),
    }  # fmt: skip
    return BatchRequest(**{**usual, **changes})


def carry_out(
    script: HostScript,
    fault: Fault = lambda *_: None,
    ahead_s: float = 0.0,
    hosts: Sequence[Host] = (A, B, C),
) -> HostRecording:
    """Give what a host would have written whose clock is so far ahead."""
    start = script.start
    mine = next(one for one in hosts if one.name == start.name)
    agent = IdealAgent(mine, Templates(), iter(range(1, 1 << 20)).__next__, [])
    orders = [
        order
        for _, some in script.phases
        for order in some
        if not isinstance(order, TemplatesOrder | RecordOrder)
    ]
    answers = {order.id: (_answer(agent, order, fault),) for order in orders}
    return HostRecording(
        f"{start.name}.npr", start.name, None, make_ideal_hello(mine), _marks(ahead_s),
        tuple(orders), answers, is_cut=False,
    )  # fmt: skip


def _marks(ahead_s: float) -> tuple[PhaseClock, ...]:
    times = (("listening", -10.0), ("go", 0.0), ("probed", 20.0), ("tell", 70.0), ("end", 71.0))
    return tuple(PhaseClock(1, name, BEGAN_S + at + ahead_s) for name, at in times)


def _answer(agent: IdealAgent, order: Any, fault: Fault) -> Any:
    if isinstance(order, ProbeOrder | EchoOrder):
        return _probe(agent, order, fault)
    if isinstance(order, SeenOrder):
        return Seen(order.id, [], [], [], [])
    return asyncio.run(agent.request(order, object))


def hear_each_other(recordings: Sequence[HostRecording]) -> list[HostRecording]:
    """Give recordings in which listeners have noted what they answered to the other hosts."""
    heard: dict[str, dict[int, OrderArrivals]] = {}
    for one in recordings:
        for order in one.orders:
            for told in one.answers.get(order.id, ()):
                if isinstance(told, ProbeOutcomes):
                    ports = _list_answered(told)
                    arrived = OrderArrivals(order.id, ports, ["10.0.0.9"], None)
                    heard.setdefault(order.dst, {}).update({order.id: arrived} if ports else {})
    return [_note_arrivals(one, heard) for one in recordings]


def _list_answered(told: ProbeOutcomes) -> list[tuple[int, int]]:
    answered = [run for run in told.runs if told.kinds[run.kind].answer == "nonce"]
    return list(normalise((run.first, run.last) for run in answered))


def _note_arrivals(
    recording: HostRecording, heard: Mapping[str, Mapping[int, OrderArrivals]]
) -> HostRecording:
    addresses = recording.hello.addresses if recording.hello else []
    mine = sorted(one for address in addresses for one in heard.get(address, {}).values())
    answers = {
        number: tuple(one._replace(orders=mine) if isinstance(one, Seen) else one for one in told)
        for number, told in recording.answers.items()
    }
    return replace(recording, answers=answers)


def _probe(agent: IdealAgent, order: Any, fault: Fault) -> Any:
    reply = asyncio.run(agent.probe(order))
    if isinstance(order, EchoOrder):
        kind = fault(agent.host.name, order, 0) or reply.rows[0].kind
        return EchoOutcomes(order.id, [kind], [EchoRun(1, 1, 0, [1000], 1)])
    kinds: list[OutcomeKind] = []
    runs: list[OutcomeRun] = []
    for row in reply.rows:
        for port in range(row.first, row.last + 1):
            kinds.append(fault(agent.host.name, order, port) or row.kind)
            runs.append(OutcomeRun(port, port, len(kinds) - 1, [1000], 1))
    return ProbeOutcomes(order.id, [(1, 1)], kinds, runs, [])


def write_results(
    recording: HostRecording, start: BatchStart, key: bytes | None = None, **changes: Any
) -> list[bytes]:
    """Give the lines of a host's file, one for each order with its answers. ``changes``: of the
    header; ``key``: another than the host's own."""
    lines = LineMaker(start.result_key if key is None else key)
    header = ResultHeader(
        start.format, start.wire, start.run, start.round, start.host, start.name,
        "2026-11-22T14:00:00Z",
    )  # fmt: skip
    marks: list[Any] = list(recording.marks)
    hello: Any = recording.hello
    found = [lines.begin(header._replace(**changes)), lines.add([hello, marks[0]])]
    for order in recording.orders:
        found.append(lines.add([order, *recording.answers.get(order.id, ())]))
    return [*found, lines.add(marks[1:])]


class Merged:
    """A merge of recordings: its results and hosts, and the orders that it left open.

    ``heard``: their listeners have noted what they answered.
    """

    def __init__(
        self,
        request: BatchRequest,
        recordings: Sequence[HostRecording],
        part: PlanPart | None = None,
        missing: Mapping[str, str] | None = None,
        *,
        heard: bool = False,
    ) -> None:
        self.results: list[Result] = []
        self.hosts: dict[str, HostReport] = {}
        self.replay = Replay(request, recordings if heard else hear_each_other(recordings))
        part = part or PlanPart(request.plan, request.plan)
        run = RunRequest(part=part, settings=request.settings)
        hosts = list_hosts(part.plan)
        self.fleet = self.replay.make_fleet(hosts, self.host, missing or {})
        self.info = run_until_end(run, self.fleet, [self], self, JumpingLoop)

    def add(self, result: Result) -> None:
        """Keep a result."""
        self.results.append(result)

    def progress(self, done: int, total: int, waits_for: str = "") -> None:
        """Nobody watches."""

    def host(self, report: HostReport) -> None:
        """Keep a host's last report."""
        self.hosts[report.name] = report

    def verdicts(self) -> dict[tuple[str, str, str], set[str]]:
        """Requirement, source and destination: their verdicts."""
        found: dict[tuple[str, str, str], set[str]] = {}
        for one in self.results:
            place = (one.requirement, one.source, one.destination)
            found.setdefault(place, set()).add(one.verdict)
        return found


def first_round(request: BatchRequest) -> tuple[BatchRequest, list[HostScript]]:
    """The first round's scripts, as ``bundle`` makes them."""
    return make_first_round(request, request.plan)
