"""Runs as a program starts them: a request, an open fleet, and a session; no command line."""

from __future__ import annotations

from contextlib import closing

import pytest

from netprobe.judge.verdict import Rules
from netprobe.model.inventory import Address, Host, Vantage
from netprobe.plan.choices import PlanPart
from netprobe.probe.agents.live_fleet import open_fleet
from netprobe.probe.collect import list_hosts
from netprobe.probe.settings import ProbeSettings
from netprobe.report.record.changes import compare, fates_of
from netprobe.report.record.collector import Collector
from netprobe.report.record.earlier import Baseline
from netprobe.session import RunRequest, Session
from netprobe.vantage.launch import Launcher
from tests.batch.world import plan_of
from tests.ports import free_port


@pytest.mark.slow
async def test_a_program_runs_twice_over_one_fleet() -> None:
    """Each run has all of its results, and the second is held against the first, without a file."""
    port = free_port()
    hosts = [Host(f"h{n}", (Address(f"127.0.0.{n}", 4),), (), Vantage("local")) for n in (1, 2)]
    plan = plan_of(("web", "tcp", ((port, port),)), hosts=hosts)
    part, session = PlanPart(plan, plan), Session()
    first = RunRequest(part=part, settings=ProbeSettings(listen=False), rules=Rules(live=True))
    async with open_fleet(list_hosts(plan), Launcher(), lambda report: None) as fleet:
        with closing(Collector()) as earlier, closing(Collector()) as later:
            info = await session.run(first, fleet, [earlier])
            assert (info.complete, earlier.summary(0).counts["blocked"]) == (True, 2)

            baseline = Baseline("run 1", info, fates_of(earlier.results()), only_new=True)
            second = RunRequest(part=part, marks=(baseline.mark,))
            info = await session.run(second, fleet, [later])
            assert (info.complete, later.summary(0).counts["pass"]) == (True, 2)
            changes = compare(baseline.fates, later.results())
            assert baseline.word_changes(changes).endswith("0 still, 2 fixed")
    assert [host.state for host in info.hosts] == ["agent", "agent"]
