"""What a report of silent connections says, and which exit status it has."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from netprobe.cli.main import status_of
from netprobe.cli.measure import status_of_report
from netprobe.idle.pairs import PairKey, PlannedConnection, RowKeepalive, ZonePair
from netprobe.idle.run import tell_pair
from netprobe.idle.state import PairState
from netprobe.model.idle import BusyConnection, IdleReport, PairMemory, SideMemory
from netprobe.model.matrix import Keepalive
from netprobe.protocols import protocol_for
from netprobe.report.verbs.idle import write_idle_json, write_idle_text
from tests.probe.fakes import host

MATRIX = """schema: netprobe.matrix/1
name: m
title: M
roles: {node: {}}
requirements:
  - {id: api, from: node, to: node, tcp: [6443], purpose: API}
"""
INVENTORY = """schema: netprobe.inventory/1
hosts:
  a: {address: 192.0.2.7, roles: [node], vantage: none}
  b: {address: 192.0.2.8, roles: [node], vantage: {command: [/no/such/program]}}
"""

A, B = host("a", "10.0.0.1"), host("b", "10.0.0.2")
TRY = PlannedConnection("api", A, B.addresses[0], B, 6443, (B,), "tcp", protocol_for(None))


def told(
    source: SideMemory | None, destination: SideMemory | None, *, stopped: bool = False, **more: Any
) -> PairMemory:
    """The pair with keepalives of 30 s and 1 h."""
    pair = ZonePair(PairKey("a", "b", 4, None))
    rows = {"etcd": Keepalive(30), "tunnel": Keepalive(3600)}
    pair.keepalives = {RowKeepalive("m", name, one): None for name, one in rows.items()}
    pair.tries.append(TRY)
    state = PairState(pair, by_source=source, by_destination=destination, **more)
    return tell_pair(state, stopped)


def report_of(*pairs: PairMemory, stopped: bool = False) -> IdleReport:
    return IdleReport("2027-01-31T14:00:00Z", 70.0, 60, stopped, pairs)


def text_of(*pairs: PairMemory, stopped: bool = False) -> str:
    stream = io.StringIO()
    write_idle_text(report_of(*pairs, stopped=stopped), stream)
    return stream.getvalue()


def outcomes(pair: PairMemory) -> list[str]:
    return [one.outcome for one in pair.keepalives]


def test_the_worse_end_counts() -> None:
    """A silence is survived only if both ends may send first; each end is told."""
    pair = told(SideMemory(60), SideMemory(15, 30, "dropped"), busy=BusyConnection(15, 4, True))
    assert (pair.alive_s, pair.forgotten_s, pair.reset) == (15, 30, False)
    assert outcomes(pair) == ["too-long", "too-long"]
    text = text_of(pair)
    assert text.startswith("TOO SHORT: silent connections are forgotten sooner than a keepalive")
    assert (
        "from a to b (IPv4): silent TCP is forgotten between 15 and 30 s, without a reset; with a "
        "packet every 15 s it lives\n"
    ) in text
    assert "if the source sends first: lives for 60 s at least\n" in text
    assert "if the destination sends first: forgotten between 15 and 30 s, without a reset" in text
    assert "row tunnel (m) sends every 1h: too long\n" in text
    assert "idle timeout of what stands between them above 3,600 s, or let the programs" in text


def test_what_was_not_silent_for_so_long_cannot_be_told() -> None:
    """A keepalive beyond the longest silence is undecided, and what would decide it is said."""
    pair = told(SideMemory(60), SideMemory(60))
    assert (pair.alive_s, pair.forgotten_s, pair.reset) == (60, None, None)
    assert outcomes(pair) == ["lives", "untold"]
    text = text_of(pair)
    assert text.startswith("OK: no silent connection was forgotten within 60 s (1 pair of zones)")
    assert "row etcd (m) sends every 30s: that is enough\n" in text
    assert "cannot be told, no silence was so long; --up-to 1h would tell\n" in text


@pytest.mark.parametrize(
    ("via", "ended", "kind", "outcome"),
    [
        (None, "dropped", "tcp", "lives"),
        ("lb", "dropped", "tcp", "lives"),
        ("lb", "closed", "data", "too-long"),
        (None, "closed", "data", "too-long"),
        (None, None, "tcp", "lives"),
        ("lb", None, "data", "untold"),
    ],
)
def test_keepalives_of_the_kernel_count_against_firewalls(
    via: str | None, ended: Any, kind: str, outcome: str
) -> None:
    """Not where a FIN came, which only what ends TCP itself sends; nor where a balancer may be of
    that kind."""
    pair = ZonePair(PairKey("a", "b", 4, via))
    pair.keepalives = {RowKeepalive("k0s", "konnectivity", Keepalive(3600, 15)): None}
    memory = SideMemory(30, 60 if ended else None, ended)
    told = tell_pair(PairState(pair, by_source=memory, by_destination=memory), stopped=False)
    (held,) = told.keepalives
    assert (held.kind, held.outcome) == (kind, outcome)
    seconds = {"tcp": 15, "data": 3600}
    assert held.keepalive_s == seconds[kind]
    assert held.uncounted_s == (15 if kind == "data" else None)
    words = {
        "tcp": "row konnectivity (k0s) sends TCP keepalives every 15s: that is enough\n",
        "data": "sends every 1h (its TCP keepalives every 15s keep no proxy awake): ",
    }
    assert words[kind] in text_of(told)


def test_keepalives_of_the_kernel_alone_say_nothing_of_a_proxy() -> None:
    """Whether its programs send data too, nobody says."""
    pair = ZonePair(PairKey("a", "b", 4, "lb"))
    pair.keepalives = {RowKeepalive("m", "api", Keepalive(None, 15)): None}
    memory = SideMemory(60)
    told = tell_pair(PairState(pair, by_source=memory, by_destination=memory), stopped=False)
    assert outcomes(told) == ["untold"]


def test_udp_has_two_memories() -> None:
    """One question and its answer, and a conversation; the shorter one counts."""
    state = PairState(
        ZonePair(PairKey("a", "b", 4, None, "udp")),
        by_destination=SideMemory(60),
        one_exchange=SideMemory(15, 30, "dropped"),
    )
    pair = tell_pair(state, stopped=False)
    assert (pair.protocol, pair.alive_s, pair.forgotten_s, pair.reset) == ("udp", 15, 30, False)
    text = text_of(pair)
    assert "silent UDP is forgotten between 15 and 30 s, without a word\n" in text
    assert (
        "after one question and its answer: forgotten between 15 and 30 s, without a word\n" in text
    )
    assert "after a conversation of 3 s: lives for 60 s at least\n" in text


@pytest.mark.parametrize(
    ("ended", "reset"), [("reset", True), ("closed", True), ("dropped", False)]
)
def test_whether_an_end_is_told(ended: Any, reset: bool) -> None:
    """A FIN and a reset tell it, and a drop does not."""
    pair = told(SideMemory(15, 20, ended), SideMemory(15, 20, ended))
    assert pair.reset is reset


def test_what_a_signal_left() -> None:
    """What was asked by then is told, and what was not is not measured."""
    half = told(SideMemory(30), SideMemory(15), stopped=True)
    none = told(SideMemory(), SideMemory(), stopped=True)
    assert (half.alive_s, none.alive_s, none.reason) == (15, None, "stopped")
    assert outcomes(none) == ["untold", "untold"]
    text = text_of(half, none, stopped=True)
    assert text.startswith("STOPPED: what is known so far\n")
    assert "silent TCP lives for 15 s at least" in text
    assert "not measured (stopped)" in text
    assert "1 pair of zones measured, 1 not; 1 min 10 s\n" in text


LOST: dict[str, Any] = {"reason": "agent-lost", "because": "gone"}


@pytest.mark.parametrize(
    ("others", "head", "status"),
    [
        ([], "NOT KNOWN: 1 of 2 pairs of zones could not be measured to the end\n", 3),
        ([SideMemory(3600, 7200, "dropped")], "NOT KNOWN: 1 of 3 pairs of zones could not be "
         "measured to the end; silent connections of 1 pair are forgotten\n", 3),
        ([SideMemory(15, 30, "dropped")], "TOO SHORT: ", 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("alive_s", [0, 15])
def test_a_pair_that_was_not_measured_to_the_end(
    others: list[SideMemory], head: str, status: int, alive_s: int
) -> None:
    """Its keepalive may be too long: never OK, whether some silences were asked or none."""
    broken = told(SideMemory(alive_s), SideMemory(alive_s), **LOST)
    pairs = [told(SideMemory(60), SideMemory(60)), broken, *(told(one, one) for one in others)]
    assert outcomes(broken) == ["untold", "untold"]
    assert text_of(*pairs).startswith(head)
    assert status_of_report(report_of(*pairs)) == status
    footer = "2 pairs of zones measured, 1 not to the end;" if alive_s else "measured, 1 not;"
    assert footer in text_of(*pairs[:2])


def test_a_pair_where_no_agent_can_be_started_is_skipped() -> None:
    """As the inventory says: what the others showed stands."""
    pair = ZonePair(PairKey("a", "dns", 4, None))
    skipped = tell_pair(PairState(pair, reason="no-vantage"), stopped=False)
    known = told(SideMemory(60), SideMemory(60))
    text = text_of(known, skipped)
    assert text.startswith("OK: no silent connection was forgotten within 60 s (1 pair of zones, 1")
    assert status_of_report(report_of(known, skipped)) == 0
    assert status_of_report(report_of(skipped)) == 3


def test_the_keys_of_json() -> None:
    """Each pair has the keys that programs read."""
    stream = io.StringIO()
    pair = told(SideMemory(15, 30, "dropped"), SideMemory(15, 30, "dropped"))
    write_idle_json(IdleReport("2027-01-31T14:00:00Z", 1.0, 60, False, (pair,)), stream)
    document = json.loads(stream.getvalue())
    assert document["schema"] == "netprobe.idle/1"
    (read,) = document["pairs"]
    assert {key: read[key] for key in ("from", "to", "protocol", "alive_s", "forgotten_s", "reset")}
    assert [read[key] for key in ("from", "to", "protocol")] == ["a", "b", "tcp"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.yaml").write_text(MATRIX)
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_nothing_could_be_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 3, with the host where no agent can be started."""
    assert status_of(["measure", "idle", "-m", "./m.yaml", "--up-to", "1s"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("NOT MEASURED: no connection between zones could be held\n")
    assert "both ends need an agent, and none can be started on a" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--up-to", "2d"], "--up-to 2d: expected a time up to a day"),
        (["--protocol", "udp"], "no row"),
        (["-o", "html"], "html"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_wrong_requests(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Said before anything starts."""
    assert status_of(["measure", "idle", "-m", "./m.yaml", *words]) == 2
    assert message in capsys.readouterr().err
