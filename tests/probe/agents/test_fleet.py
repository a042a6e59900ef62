"""All agents of one run: their starts, their reports, their shares of the rate, their end."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import StoryTold
from netprobe.agent.wire.host_messages import RouteOrder
from netprobe.agent.wire.orders import RateOrder, RecordOrder, StoryOrder
from netprobe.agent.wire.segment_messages import SegmentAskOrder
from netprobe.errors import AgentError
from netprobe.model.inventory import Address, Host, Vantage
from netprobe.model.result import HostReport
from netprobe.probe.agents import live_fleet
from netprobe.probe.agents.agent import Agent
from netprobe.probe.agents.live_fleet import FEW_FILES, LiveFleet, host_report
from netprobe.probe.agents.templates import Templates
from netprobe.probe.settings import WALKS
from netprobe.vantage.launch import Launcher
from netprobe.vantage.link import AgentLink
from tests.patience import PATIENCE_S
from tests.probe.fakes import HELLO, answering, host, routed
from tests.probe.links import FakeLink, start_by

A, B, C = host("a", "10.0.0.1"), host("b", "10.0.0.2"), host("c", "10.0.0.3", kind="none")
FAILED = AgentError("no-python", "b: no Python")

NO_RAW = (
    "no packet recorder and no raw IP protocols: only its kernel's counters tell its own firewall "
    "from the path"
)


class Bench:
    """A fleet whose agents start without a process; ``failed`` are hosts whose start fails."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *hosts: Host, failed: tuple[str, ...] = ()
    ) -> None:
        self.failure = FAILED
        self.links: dict[str, FakeLink] = {}
        self.reports: list[HostReport] = []

        async def start(one: Host) -> AgentLink:
            if one.name in failed:
                raise self.failure
            return self.links.setdefault(one.name, FakeLink(one.name))

        start_by(monkeypatch, start)
        self.fleet = LiveFleet(hosts, Launcher(), self.reports.append)

    async def start(self, rate: int | None = None) -> LiveFleet:
        """Start all, and wait for the last."""
        self.fleet.start()
        self.fleet.begin_run(rate)
        await self.fleet.settled()
        return self.fleet


async def test_nothing_is_started_on_a_closed_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reason is its report, and that of all who ask it; no later start tries it either."""
    bench = Bench(monkeypatch, A, replace(B, closed="b runs windows"))

    fleet = await bench.start()
    fleet.start_again()
    await fleet.settled()

    assert list(bench.links) == ["a"]
    assert [(one.name, one.state, one.words) for one in bench.reports if one.name == "b"] == [
        ("b", "failed", "b runs windows")
    ]
    with pytest.raises(AgentError, match="b runs windows"):
        await fleet.agent(B).wait_ready()
    await fleet.close()


async def test_every_host_has_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ready, failed with words, or declared without an agent; each settles."""
    bench = Bench(monkeypatch, A, B, C, failed=("b",))

    fleet = await bench.start()

    by_name = {report.name: report for report in bench.reports}
    assert [by_name[name].state for name in "abc"] == ["agent", "failed", "none"]
    assert by_name["b"].words == "b: no Python"
    assert len(bench.reports) == 3
    for one, reason in ((B, "no-python"), (C, "no-vantage")):
        assert fleet.agent(one).settled.is_set()
        with pytest.raises(AgentError) as caught:
            await fleet.agent(one).wait_ready()
        assert caught.value.reason == reason
    await fleet.agent(A).wait_ready()
    assert len(fleet.key) == 32
    await fleet.close()


@pytest.mark.parametrize(
    ("links", "fix"),
    [
        (["02:00:00:00:00:01", "02:00:00:00:00:02"],
         "b: refused; 02:00:00:00:00:01 and 02:00:00:00:00:02 all answer ARP requests for "
         "10.0.0.2: two machines have the address, and ssh may have met the wrong one: give one of "
         "them another address"),
        (["02:00:00:00:00:01"], "b: refused; is sshd running?"),
        ([], "b: refused; is sshd running?"),
    ],
)  # fmt: skip
async def test_a_neighbour_tells_whether_ssh_met_another_machine(
    monkeypatch: pytest.MonkeyPatch, links: list[str], fix: str
) -> None:
    """Then its own fix would be wrong."""
    scripts = {
        RouteOrder: routed(), SegmentAskOrder: answering(*links),
    }  # fmt: skip
    bench = Bench(monkeypatch, A, replace(B, vantage=Vantage("ssh")), failed=("b",))
    bench.links["a"] = FakeLink("a", scripts)
    bench.failure = AgentError("no-vantage", "b: refused", "is sshd running?")

    fleet = await bench.start()

    (report,) = (one for one in bench.reports if one.name == "b")
    assert report.words == fix
    with pytest.raises(AgentError, match=r"^b: refused; ") as caught:
        await fleet.agent(B).wait_ready()
    assert caught.value.reason == ("other-machine" if len(links) > 1 else "no-vantage")
    await fleet.close()


async def test_a_slow_start_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each settles on its own."""
    bench = Bench(monkeypatch, A, C)
    bench.fleet.start()
    assert not bench.fleet.agent(A).settled.is_set()

    await bench.fleet.agent(C).settled.wait()
    await bench.fleet.agent(A).settled.wait()
    await bench.fleet.close()


async def test_a_second_run_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents that are there get its orders; an earlier limit, spent walks and routes are over."""
    bench = Bench(monkeypatch, A)
    first, second = RecordOrder([(53, 53)], [], None), RecordOrder([], [4], None)
    fleet = bench.fleet
    fleet.start()
    fleet.begin_run(300, first)
    await fleet.settled()
    agent, phases = fleet.agent(A), fleet.phases
    agent.walks_left = 0

    fleet.begin_run(None, second)

    sent = bench.links["a"].sent
    assert sent[:2] == [first, RateOrder(300.0)]
    assert sent[-2:] == [second, RateOrder(None)]
    assert agent.walks_left == WALKS
    assert agent.phases is fleet.phases is not phases
    await fleet.close()


async def test_a_rate_is_shared_from_the_first_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among the agents that may start; who has none takes nothing."""
    bench = Bench(monkeypatch, A, B, C)

    await bench.start(rate=300)

    assert [link.sent for link in bench.links.values()] == [[RateOrder(150.0)]] * 2
    await bench.fleet.close()


async def test_without_a_rate_nobody_is_slowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No order, no limit."""
    bench = Bench(monkeypatch, A)

    await bench.start()

    assert bench.links["a"].sent == []
    await bench.fleet.close()


async def test_answers_name_hosts_by_their_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of the hosts is that of the run."""
    bench = Bench(monkeypatch, A, B)

    assert [bench.fleet.name_of(index) for index in (0, 1, 2, -1)] == ["a", "b", None, None]
    assert [bench.fleet.agent(one).index for one in bench.fleet.hosts()] == [0, 1]
    assert bench.fleet.hosts() == [A, B]


async def test_a_lost_agent_is_reported_and_no_link_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The report has the words of the loss."""
    bench = Bench(monkeypatch, A, B)
    fleet = await bench.start()
    assert len(fleet.links()) == 2

    bench.links["a"].lose("killed")
    await asyncio.sleep(0)

    assert [(one.name, one.state, one.words) for one in bench.reports[2:]] == [
        ("a", "lost", "killed")
    ]
    assert [link.host for link in fleet.links()] == ["b"]
    await fleet.close()


async def test_the_end_of_a_run_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every agent is closed, and nothing more is reported."""
    bench = Bench(monkeypatch, A, B)
    fleet = await bench.start()

    await fleet.close()
    await asyncio.sleep(0)

    assert all(link.closed for link in bench.links.values())
    assert [report.state for report in bench.reports] == ["agent", "agent"]


async def test_starts_in_progress_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt waits for no ssh; everybody who waits for the host goes on."""
    bench = Bench(monkeypatch, A)
    bench.fleet.start()
    await asyncio.sleep(0)

    await bench.fleet.close()

    assert bench.fleet.agent(A).settled.is_set()
    assert not bench.fleet.agent(A).alive
    assert bench.reports == []


@pytest.mark.parametrize(
    ("own", "chosen", "expected"),
    [
        (["10.0.0.1", "fd00::1"], [], ("10.0.0.1", "fd00::1")),
        (["10.0.0.1", "10.0.0.2", "fd00::1"], ["10.0.0.9"], ("10.0.0.9", "fd00::1")),
        (["10.0.0.1"], ["fd00::9", "10.0.0.9"], ("fd00::9", "10.0.0.9")),
    ],
)
async def test_a_report_has_the_addresses_that_probes_start_from(
    monkeypatch: pytest.MonkeyPatch, own: list[str], chosen: list[str], expected: tuple[str, ...]
) -> None:
    """Where the inventory names a source address, that one alone of its family."""
    one = replace(
        host("a", *own, kind="none"),
        source_addresses=tuple(Address(text, 6 if ":" in text else 4) for text in chosen),
    )
    named = replace(one, addresses=(*one.addresses, Address("a.example.com", None)))
    bench = Bench(monkeypatch, named)

    await bench.start()

    assert bench.reports[0].addresses == expected


@pytest.mark.parametrize(
    ("lacks", "costs"),
    [
        ({}, ()),
        ({"net_raw": False}, (NO_RAW,)),
        ({"low_ports": False}, ("no listeners below port 1024",)),
        ({"sees_owners": False}, ("the owners of held ports stay unknown",)),
        (
            {"net_raw": False, "low_ports": False, "sees_owners": False},
            (NO_RAW, "no listeners below port 1024", "the owners of held ports stay unknown"),
        ),
        (
            {"nofile": FEW_FILES - 1},
            ("only 255 files may be open at once (ulimit -n): few listeners and probes at a time",),
        ),
        ({"nofile": FEW_FILES}, ()),
    ],
)
async def test_what_missing_rights_cost(lacks: dict[str, Any], costs: tuple[str, ...]) -> None:
    """One sentence each, and nothing where nothing is missing."""
    report = host_report(FakeLink("a", hello=HELLO._replace(**lacks)))

    assert report.cost == costs
    assert (report.name, report.state, report.python, report.user) == (
        "a", "agent", "3.11.2", "root",
    )  # fmt: skip
    assert report.privileged is lacks.get("net_raw", True)
    assert report.facts.nofile == lacks.get("nofile", 65536)
    assert not report.facts.sudo_failed


async def test_a_failed_sudo_is_the_cost() -> None:
    """It says all that the missing rights would."""
    report = host_report(FakeLink("a", hello=HELLO._replace(net_raw=False), cost="sudo failed"))

    assert report.cost == ("sudo failed",)
    assert report.facts.sudo_failed


@pytest.mark.parametrize("cost", [None, "sudo failed"])
async def test_an_agent_knows_that_its_sudo_failed(cost: str | None) -> None:
    """So no advice asks for what has just failed."""
    agent = Agent(A, 0, Templates())
    assert not agent.sudo_failed
    agent.link = cast(Any, FakeLink("a", cost=cost))
    assert agent.sudo_failed is (cost is not None)


async def test_a_start_that_fails_as_nobody_foresaw_is_that_hosts_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its report and its error name the exception; the others start."""

    async def start(one: Host) -> AgentLink:
        if one.name == "b":
            raise UnicodeError("odd")
        return FakeLink(one.name)

    bench = Bench(monkeypatch, A, B)
    start_by(monkeypatch, start)
    fleet = await bench.start()

    by_name = {report.name: report for report in bench.reports}
    assert (by_name["a"].state, by_name["b"].state) == ("agent", "failed")
    assert "UnicodeError: odd; a bug in netprobe" in by_name["b"].words
    with pytest.raises(AgentError, match="UnicodeError"):
        await fleet.agent(B).wait_ready()


@pytest.mark.parametrize(
    ("lost", "full", "words"),
    [
        (1, False, "its packet recorder missed 1 packet: that it did not see one says nothing"),
        (1200, False, "its packet recorder missed 1,200 packets: "),
        (0, True, "its packet recorder was full: "),
        (0, False, None),
    ],
)
async def test_a_recorder_that_missed_packets_is_reported(
    monkeypatch: pytest.MonkeyPatch, lost: int, full: bool, words: str | None
) -> None:
    """Among the limits of the run, beside what missing rights cost; the others stay as they are."""
    bench = Bench(monkeypatch, A, B)
    bench.fleet.start()
    bench.fleet.begin_run(None, RecordOrder([], [], None))
    await bench.fleet.settled()
    well = StoryTold(0, True, None, [], [], [], heard=False, awake=False, lost=0, full=False)
    bench.links["a"].scripts[StoryOrder] = lambda order: well._replace(lost=lost, full=full)
    bench.links["b"].scripts[StoryOrder] = lambda order: well

    await bench.fleet.tell_losses()
    await bench.fleet.close()

    costs = [cost for report in bench.reports[2:] for cost in report.cost]
    assert [report.name for report in bench.reports[2:]] == ["a"] * (words is not None)
    assert words is None or any(cost.startswith(words) for cost in costs)


async def test_a_recorder_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its agent may have stopped after its part: what it missed is a note only."""
    monkeypatch.setattr(live_fleet, "LOSS_S", 0.01)
    bench = Bench(monkeypatch, A, B)
    bench.fleet.start()
    bench.fleet.begin_run(None, RecordOrder([], [], None))
    await bench.fleet.settled()
    well = StoryTold(0, True, None, [], [], [], heard=False, awake=False, lost=3, full=False)
    never = asyncio.Event()

    async def tell_story(order: StoryOrder) -> StoryTold:
        await never.wait()
        return well

    monkeypatch.setattr(bench.fleet.agent(A), "tell_story", tell_story)
    bench.links["b"].scripts[StoryOrder] = lambda order: well

    async with asyncio.timeout(PATIENCE_S):
        await bench.fleet.tell_losses()
    await bench.fleet.close()

    assert [report.name for report in bench.reports[2:]] == ["b"]


async def test_a_second_interrupt_waits_for_the_ends_of_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All are killed, and their ends are heard of before the loop is closed."""
    bench = Bench(monkeypatch, A, B)
    fleet = await bench.start()
    ended: list[str] = []
    for link in bench.links.values():
        _stop_at_a_kill_only(monkeypatch, link, ended)

    closing = asyncio.create_task(fleet.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing

    assert sorted(ended) == ["a", "b"]


def _stop_at_a_kill_only(monkeypatch: pytest.MonkeyPatch, link: FakeLink, ended: list[str]) -> None:
    """Let the process of a link stand still until it is killed; ``ended`` gets its host then."""
    killed = asyncio.Event()

    async def close(patience_s: float = 0.0) -> None:
        await killed.wait()
        ended.append(link.host)

    monkeypatch.setattr(link, "close", close)
    monkeypatch.setattr(link, "kill", killed.set)
