"""Metrics and notifications of a watch: a real scrape, a real server, a real program."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from netprobe.errors import NetprobeError, RequestError
from netprobe.history.ledger import HistoryFile, open_ledger
from netprobe.history.outages import replay
from netprobe.model.outage import Cause, History, RunLook, SeenFinding
from netprobe.model.plan import Plan
from netprobe.report.record.collector import Collector, collect
from netprobe.watch.asking_for import RuleTexts
from netprobe.watch.flows import flows_of
from netprobe.watch.looking import LookEnd
from netprobe.watch.metrics import WatchMetrics
from netprobe.watch.notify import Notifier, read_receiver
from netprobe.watch.round import RoundSeen
from tests.patience import until
from tests.ports import free_port
from tests.report.samples import BLOCKED, INFO, PASSED

FAILS = flows_of([BLOCKED])
FINDING = SeenFinding("dropped", Cause("blocked", "no-response", ("path",), None), "none", FAILS)
GOOD, BAD = RunLook(10, 11, FAILS, (), {}), RunLook(20, 21, FAILS, (FINDING,), {})
BEFORE, DURING = replay([GOOD]), replay([GOOD, BAD])
AFTER = replay([GOOD, BAD, RunLook(30, 31, FAILS, (), {})])


def round_of(results: Collector, **blind: tuple[str, str]) -> RoundSeen:
    return RoundSeen(Plan((), ()), LookEnd(20.0, 22.5, True, INFO), results, blind, {})


def scrape(port: int) -> dict[tuple[str, ...], float]:
    """The samples of a scrape, by name and sorted labels."""
    with closing(HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text"})
        text = connection.getresponse().read().decode()
    return {
        (
            sample.name,
            *(f"{key}={sample.labels[key]}" for key in sorted(sample.labels)),
        ): sample.value
        for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }


def test_a_scrape_has_flows_outages_and_blind_hosts(request: pytest.FixtureRequest) -> None:
    """By requirement and roles; an outage stays at 0 for an hour, and its seconds are counted."""
    now, port = [100.0], free_port()
    metrics = WatchMetrics(300.0, lambda: now[0])
    request.addfinalizer(metrics.close)
    metrics.listen(f"127.0.0.1:{port}")
    why = {"x": ("agent-lost", "silent"), "y": ("no-vantage", "ssh"), "z": ("maintenance", "now")}
    with closing(collect([BLOCKED])) as seen:
        metrics.take_round(round_of(seen, **why))
    metrics.state.take_history(DURING)
    now[0] = 130.0
    during = scrape(port)
    roles = ("destination_role=master", "requirement=etcd", "source_role=master")
    (outage,) = DURING.outages
    names = (f"finding={outage.id}", "reason=no-response", "requirement=etcd")
    blocked = ("matrix=deckhouse-nodes", *roles[1:], "verdict=blocked")
    assert during["netprobe_flows", roles[0], *blocked] == 1
    assert during["netprobe_outage_open", *names] == 1
    assert during["netprobe_outage_started_timestamp_seconds", names[0]] == 21
    assert during["netprobe_outage_seconds_total", *roles] == 30
    assert during["netprobe_blind_hosts", "reason=agent-lost"] == 1
    assert during["netprobe_blind_hosts", "reason=no-way-in"] == 1
    assert during["netprobe_blind_hosts", "reason=maintenance"] == 1
    assert during["netprobe_looks_total", "result=blocked"] == 1
    assert during["netprobe_round_duration_seconds",] == 2.5
    assert during["netprobe_round_interval_seconds",] == 300

    with closing(collect([PASSED])) as seen:
        metrics.take_round(round_of(seen))
    metrics.state.take_history(AFTER)
    now[0] = 160.0
    after = scrape(port)
    assert after["netprobe_outage_open", *names] == 0
    assert after["netprobe_outage_seconds_total", *roles] == 30
    assert after["netprobe_flows", roles[0], *blocked] == 0
    assert after["netprobe_rtt_seconds_count", *roles] == 1
    now[0] = 31 + 3601.0
    assert ("netprobe_outage_open", *names) not in scrape(port)
    with pytest.raises(NetprobeError, match="cannot listen there"):
        metrics.listen(f"127.0.0.1:{port}")


@pytest.mark.parametrize(
    "text",
    [
        *("mail=a", "webhook=", "webhook=ftp://a/", "alertmanager", "webhook=http://[::1"),
        *("webhook=http://", "webhook=http://127.0.0.1:99999/", "webhook=http://xn--a/"),
        *("exec=/no/such/program", "exec=/bin/true x", "exec=/"),
    ],
)
def test_a_receiver_is_named_by_kind_and_place(text: str) -> None:
    """Whatever else is given is refused, with what is expected."""
    with pytest.raises(RequestError, match="expected"):
        read_receiver(text)


class Server:
    """An HTTP server that keeps what it gets, and answers with a status."""

    def __init__(self) -> None:
        self.port = free_port()
        self.status = 200
        self.got: list[tuple[str, Any]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._answer, "127.0.0.1", self.port)
        async with server:
            yield

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if line)
        body = json.loads(await reader.readexactly(int(fields["content-length"])))
        if self.status == 200:
            self.got.append((head.split()[1], body))
        writer.write(f"HTTP/1.1 {self.status} x\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def notifying(
    ledger: HistoryFile,
    text: str,
    *histories: History,
    rules: RuleTexts | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Notifier]:
    """A notifier that runs, and was given these histories."""
    notifier = Notifier(read_receiver(text), ledger, rules or RuleTexts(), 300.0, tell)
    for history in histories:
        notifier.take_history(history)
    task = asyncio.create_task(notifier.run())
    try:
        yield notifier
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def told(ledger: HistoryFile, receiver: str) -> list[str]:
    """What a receiver was told of outages, as the history has it."""
    kept = ledger.told(receiver) or {}
    return [status for name, status in kept.items() if name]


def statuses(server: Server) -> list[str]:
    return [body["status"] for _, body in server.got]


@pytest.mark.slow
async def test_a_webhook_is_told_once_that_it_begins_and_once_that_it_ends(tmp_path: Path) -> None:
    """In the body of Alertmanager's webhook, with the rules that would end it; a restart tells
    nothing twice."""
    server, rules = Server(), RuleTexts()
    with closing(collect([BLOCKED])) as seen:
        rules.take_round(round_of(seen))
    webhook = f"webhook=http://127.0.0.1:{server.port}/hook"
    with open_ledger(str(tmp_path / "h.db"), create=True) as ledger:
        async with server.running():
            async with notifying(ledger, webhook, BEFORE, DURING, rules=rules) as notifier:
                await until(lambda: told(ledger, webhook) == ["firing"])
                notifier.take_history(DURING)
            async with notifying(ledger, webhook, DURING) as notifier:
                notifier.take_history(AFTER)
                await until(lambda: told(ledger, webhook) == ["resolved"])
            async with notifying(ledger, webhook, AFTER), notifying(ledger, webhook + "2", DURING):
                await until(lambda: len(server.got) == 3)
    assert statuses(server) == ["firing", "resolved", "firing"]
    assert [path for path, _ in server.got] == ["/hook", "/hook", "/hook2"]
    path, body = server.got[0]
    (alert,) = body["alerts"]
    assert (path, body["version"]) == ("/hook", "4")
    assert alert["labels"]["requirement"] == "etcd"
    assert alert["startsAt"] == "1970-01-01T00:00:21.000000Z"
    request = alert["annotations"]["firewall_request"]
    assert "tcp 2379" in request
    assert "a round of netprobe watch" in request
    assert server.got[1][1]["alerts"][0]["endsAt"] == "1970-01-01T00:00:31.000000Z"


async def test_who_is_away_is_told_later_and_once(tmp_path: Path) -> None:
    """What began and ended meanwhile is sent once, as resolved, also after a restart; and a new
    receiver hears nothing of what is over."""
    server = Server()
    webhook = f"webhook=http://127.0.0.1:{server.port}/"
    with open_ledger(str(tmp_path / "h.db"), create=True) as ledger:
        async with notifying(ledger, webhook, BEFORE, DURING) as notifier:
            notifier.take_history(AFTER)
        server.status = 500
        async with server.running(), notifying(ledger, webhook, AFTER):
            server.status = 200
            await until(lambda: server.got)
        async with server.running(), notifying(ledger, webhook + "new", AFTER, DURING):
            await until(lambda: len(server.got) == 2)
    assert statuses(server) == ["resolved", "firing"]
    assert server.got[1][0] == "/new"


async def test_who_is_away_is_named_once_and_without_secrets(tmp_path: Path) -> None:
    """One line when it cannot be told, and one when it can be again."""
    server, lines = Server(), list[str]()
    server.status = 500
    webhook = f"webhook=http://me:secret@127.0.0.1:{server.port}/token"
    with open_ledger(str(tmp_path / "h.db"), create=True) as ledger:
        async with server.running(), notifying(ledger, webhook, DURING, tell=lines.append) as one:
            await until(lambda: lines)
            one.take_history(DURING)  # tries at once
            server.status = 200
            await until(lambda: len(lines) == 2)
    place = f"webhook=127.0.0.1:{server.port}"
    assert lines == [
        f"{place} cannot be told, and is tried again: HTTP status 500",
        f"{place} is told again",
    ]


@pytest.mark.parametrize("proxy", ["socks9://127.0.0.1:1", "http://127.0.0.1:x"])
async def test_no_receiver_ends_a_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    """Also where the environment names a proxy that is none."""
    monkeypatch.setenv("ALL_PROXY", proxy)
    lines: list[str] = []
    webhook = "webhook=http://192.0.2.1/"
    with open_ledger(str(tmp_path / "h.db"), create=True) as ledger:
        async with notifying(ledger, webhook, DURING, tell=lines.append):
            await until(lambda: lines)
    assert lines[0].startswith("webhook=192.0.2.1 cannot be told, and is tried again: ")


async def test_an_alertmanager_gets_alerts_that_end_by_themselves(tmp_path: Path) -> None:
    """Three rounds ahead while it goes on, and the true end at last."""
    server = Server()
    alertmanager = f"alertmanager=http://127.0.0.1:{server.port}/"
    with open_ledger(str(tmp_path / "h.db"), create=True) as ledger:
        async with server.running(), notifying(ledger, alertmanager, DURING) as notifier:
            await until(lambda: server.got)
            notifier.take_history(AFTER)
            await until(lambda: len(server.got) == 2)
    (path, (first,)), (_, (last,)) = server.got
    assert path == "/api/v2/alerts"
    assert first.keys() == {"labels", "annotations", "startsAt", "endsAt"}
    assert first["endsAt"] > "2026" > last["endsAt"] == "1970-01-01T00:00:31.000000Z"


@pytest.mark.slow
async def test_a_program_gets_the_body_and_is_asked_again_where_it_fails(tmp_path: Path) -> None:
    """On its standard input, without a shell."""
    got, program = tmp_path / "got", tmp_path / "a program; false"
    ready = tmp_path / "ready"
    lines = ("#!/bin/sh", f"test -e {ready} || {{ touch {ready}; exit 1; }}", f"cat >>{got}", "")
    program.write_text("\n".join(lines))
    program.chmod(0o700)
    with open_ledger(str(tmp_path / "h.db"), create=True) as ledger:
        async with notifying(ledger, f"exec={program}", DURING):
            await until(lambda: told(ledger, f"exec={program}"))
    body = json.loads(got.read_text())
    assert (body["status"], body["alerts"][0]["annotations"]["summary"]) == ("firing", "dropped")
