"""Agents that say what no agent may say, beside healthy ones, from the command line.

Every liar is a real agent whose messages of one kind are bent on their way. Whatever it says, only
its own flows are not tested: the run ends with a report, and never with 0.
"""

from __future__ import annotations

import http.server
import json
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import COMMAND, environment
from tests.cli.lying_agent import BENDS
from tests.cost import run_measured
from tests.ports import free_ports

# They start whole commands, some of them many.
pytestmark = pytest.mark.slow

LIAR = Path(__file__).with_name("lying_agent.py")
GOOD = ("good-0", "good-1")
MOST_KIB = 500_000
# What an agent sends in these ways is no message, or one of another shape, whatever its kind.
SHAPELESS = ("short", "long", "nested", "wide", "no-json")
# Somebody waits for an answer that is left out, or is another order's, until a deadline.
WAITED_FOR = ("missing", "other-order")
ANSWERED = [bend for bend in BENDS if bend not in (*WAITED_FOR, "truth", "endless", "claims")]

MATRIX = """\
schema: netprobe.matrix/1
name: lies
title: Everything that agents are asked
roles:
  node: {{description: has an agent}}
  good: {{description: has a healthy one}}
  name: {{description: has a name}}
requirements:
  - {{id: web, from: node, to: node, tcp: [{0}, "{1}-{2}"], purpose: Listeners}}
  - {{id: dgram, from: node, to: node, udp: [{0}], purpose: Datagrams}}
  - {{id: echo, from: node, to: node, icmp: echo, purpose: Echo}}
  - {{id: health, from: node, to: good, tcp: [{3}], probe: http-health, purpose: A, existing: true}}
  - {{id: named, from: node, to: name, tcp: [{3}], purpose: A name, existing: true}}
  - {{id: mute, from: node, to: good, udp: [{3}], purpose: Mute, optional: true, existing: true}}
"""


class Health(http.server.BaseHTTPRequestHandler):
    """A live service: its health probe says ok."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *words: Any) -> None:
        """Nobody reads it."""


class Service(http.server.ThreadingHTTPServer):
    """Has room for all who connect at once: a kernel whose queue is full drops their SYNs."""

    request_queue_size = 1024


@pytest.fixture
def base() -> Iterator[int]:
    """The first of 16 ports; the last is held by a service (tcp) and by a mute socket (udp)."""
    first = free_ports("0.0.0.0", socket.SOCK_STREAM, 16)
    with ExitStack() as stack:
        mute = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        mute.bind(("0.0.0.0", first + 15))
        server = Service(("0.0.0.0", first + 15), Health)
        stack.callback(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        yield first


@dataclass(frozen=True)
class Told:
    """What a run printed, and how much memory it took."""

    status: int
    text: str
    errors: str
    run: dict[str, Any]
    most_kib: int

    def verdicts(self, source: str, ends: tuple[str, ...]) -> Counter[tuple[str, str]]:
        """How many flows of a source to these hosts have which requirement and verdict."""
        found: Counter[tuple[str, str]] = Counter()
        for one in self.run["results"]:
            if one["source"] == source and one["destination"] in ends:
                ports = 1 if one["port"] is None else one["end_port"] - one["port"] + 1
                found[one["requirement"], one["verdict"]] += ports
        return found

    @property
    def lost(self) -> dict[str, str]:
        """Why which agents were lost, or did not start."""
        hosts = self.run["hosts"]
        return {one["name"]: one["words"] for one in hosts if one["state"] in ("lost", "failed")}


def run_with(folder: Path, base: int, *lies: tuple[str, str]) -> Told:
    """Run two healthy agents, and one for each lie: kind of message and how it is bent."""
    hosts = [
        f"  {name}: {{address: 127.0.77.{n}, roles: [node, good], vantage: local}}\n"
        for n, name in enumerate(GOOD, 1)
    ]
    hosts.append("  named: {address: localhost, roles: [name], vantage: none}\n")
    for number, (kind, how) in enumerate(lies, 3):
        command = json.dumps([sys.executable, "-I", "-S", str(LIAR), kind, how])
        place = f"address: 127.0.77.{number}, roles: [node]"
        hosts.append(f"  {name_of(kind, how)}: {{{place}, vantage: {{command: {command}}}}}\n")
    (folder / "lies.yaml").write_text(MATRIX.format(base, base + 1, base + 9, base + 15))
    (folder / "i.yaml").write_text(f"schema: netprobe.inventory/1\nhosts:\n{''.join(hosts)}")
    words = ["run", "-m", "./lies.yaml", "-i", "i.yaml", "-o", "text", "-o", "json=run.json"]
    words += ["--timeout", "1.5", "--retries", "0"]
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        cost = run_measured(
            [*COMMAND, *words], cwd=folder, env=environment(), stdout=out, stderr=err
        )
    text, errors = ((folder / name).read_text() for name in ("out", "err"))
    run = json.loads((folder / "run.json").read_text()) if cost.status in (0, 1, 3) else {}
    return Told(cost.status, text, errors, run, cost.kib)


def name_of(kind: str, how: str) -> str:
    return f"{kind.lower()}-{how}"


def assert_only_liars_suffer(told: Told, *lies: tuple[str, str]) -> None:
    """The report is whole, and what healthy agents said of each other is right."""
    assert told.status in (0, 1, 3), told.errors
    assert "Traceback" not in told.errors
    assert "a bug in netprobe" not in told.errors + told.text
    assert told.run["complete"] is True
    flows = sum(told.run["summary"][word] for word in VERDICTS)
    assert flows == told.run["planned_flows"]
    for here, there in (GOOD, GOOD[::-1]):
        assert told.verdicts(here, (there, "named")) == {
            ("web", "pass"): 10,
            ("dgram", "pass"): 1,
            ("echo", "pass"): 1,
            ("health", "pass"): 1,
            ("named", "pass"): 1,
            ("mute", "inconclusive"): 1,
        }
    assert set(told.lost) <= {name_of(*lie) for lie in lies}
    assert told.most_kib < MOST_KIB


VERDICTS = ("pass", "blocked", "exposed", "inconclusive", "not_tested")


def test_an_agent_that_tells_the_truth_passes(tmp_path: Path, base: int) -> None:
    """The liar's own way is no lie: every required flow is measured, and the status is 0."""
    told = run_with(tmp_path, base, ("ProbeOutcomes", "truth"))

    assert_only_liars_suffer(told)
    assert told.status == 0
    assert told.lost == {}
    assert told.verdicts("probeoutcomes-truth", GOOD) == {
        ("web", "pass"): 20, ("dgram", "pass"): 2, ("echo", "pass"): 2, ("health", "pass"): 2,
        ("mute", "inconclusive"): 2,
    }  # fmt: skip


# What is said of outcomes that are left out, are another order's, or come twice.
NEVER_MEASURED = {
    "missing": "it sent Done: before the outcome of ",
    "other-order": "it sent Done: before the outcome of ",
    "twice": "not asked or told before",
}


def test_flows_that_nobody_measured_never_pass(tmp_path: Path, base: int) -> None:
    """Outcomes that are left out, are another order's or come twice: its flows are not tested."""
    lies = [(kind, how) for kind in ("ProbeOutcomes", "EchoOutcomes") for how in NEVER_MEASURED]
    told = run_with(tmp_path, base, *lies)

    assert_only_liars_suffer(told, *lies)
    assert told.status == 3
    assert told.text.startswith("UNKNOWN: nothing is blocked, but ")
    for kind, how in lies:
        liar = name_of(kind, how)
        assert told.lost[liar].startswith(f"the agent of {liar} was lost: it sent ")
        assert NEVER_MEASURED[how] in told.lost[liar]
        assert f"{liar}: agent lost: the agent of {liar} was lost: " in told.errors
        late = told.verdicts(liar, GOOD)
        assert late[("echo" if kind == "EchoOutcomes" else "web"), "not-tested"] > 0


# Each of these ended the run before, or counted as fine: what is said of it.
NAMED = {
    ("ProbeOutcomes", "huge"): "expected a number from 0 to ",
    ("ProbeOutcomes", "slow"): "rtts_us: expected a number from 0 to ",
    ("ProbeOutcomes", "off-by-99"): "kind 99 of 1",
    # Of an operation or of a failure, whichever the first outcomes have.
    ("ProbeOutcomes", "odd-text"): r" '\x1b[31m",
    ("ProbeOutcomes", "endless"): "not asked or told before",
    ("ProbeOutcomes", "wide"): "more than 1000000 values",
    ("EchoOutcomes", "backwards"): "expected a text, not None",
    ("EchoOutcomes", "endless"): "not asked or told before",
    ("Listening", "nothing"): "0 blocks of ",
    ("Listening", "zero"): "ports that were not asked",
    ("Seen", "doubled-lists"): "one order twice",
    ("Walked", "off-by-99"): "out of order",
    ("Resolved", "odd-text"): "an address ",
    ("StreamReceived", "no-text"): "no bytes",
    ("HelloLine", "huge"): "the agent sent no hello of this version",
}


# A million values take their liar long; beside others, too long.
HEAVY = ("ProbeOutcomes", "wide")


@pytest.mark.parametrize(
    "lies", [[HEAVY], [lie for lie in NAMED if lie != HEAVY]], ids=["heavy", "others"]
)
def test_a_lie_is_told_by_its_name(tmp_path: Path, base: int, lies: list[tuple[str, str]]) -> None:
    """An agent that lies is lost, and what is said of it is its lie."""
    told = run_with(tmp_path, base, *lies)

    assert_only_liars_suffer(told, *lies)
    assert told.status == 3
    found = {lie: told.lost.get(name_of(*lie), "not lost") for lie in lies}
    assert {lie: words for lie, words in found.items() if NAMED[lie] not in words} == {}


KINDS = (
    "HelloLine", "Listening", "Closed", "Seen", "ProbeOutcomes",
    "EchoOutcomes", "Done", "Walked", "Bye", "Alive", "Resolved", "Routed", "ReturnPath", "Egress",
    "StreamOpened", "StreamReceived", "StreamEvent", "StreamInfo", "StreamCredit", "StoryTold",
)  # fmt: skip
# Whoever bends these is found out while flows wait for it. (Others are seldom sent, or at the end.)
EARLY = ("HelloLine", "Listening", "Seen", "ProbeOutcomes", "EchoOutcomes", "Resolved")


# Only `make lab` bends these too: kinds that are answered like others.
ALIKE = (
    "StreamInfo", "StreamCredit", "StreamReceived", "Bye", "Alive", "Egress", "ReturnPath",
    "Closed", "Walked", "Routed", "Listening", "Seen", "StreamOpened", "StoryTold", "Done",
    "EchoOutcomes", "Resolved", "StreamEvent",
)  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.full if kind in ALIKE else ()) for kind in KINDS],
)
def test_every_message_bent_in_every_way(tmp_path: Path, base: int, kind: str) -> None:
    """All at once, a liar each: the healthy agents do not notice."""
    lies = [(kind, how) for how in ANSWERED]
    told = run_with(tmp_path, base, *lies)

    assert_only_liars_suffer(told, *lies)
    if kind in EARLY:
        assert told.status in (1, 3)
        assert {name_of(kind, how) for how in SHAPELESS} <= set(told.lost)
        assert "not-tested" in {word for liar in told.lost for _, word in told.verdicts(liar, GOOD)}


@pytest.mark.full
def test_every_answer_that_does_not_come(tmp_path: Path, base: int) -> None:
    """Each of these liars owes an answer for which flows wait, until a deadline ends it."""
    lies = [(kind, how) for kind in EARLY for how in WAITED_FOR]
    told = run_with(tmp_path, base, *lies)

    assert_only_liars_suffer(told, *lies)
    assert told.status == 3
    assert set(told.lost) == {name_of(*lie) for lie in lies}
    # What one of them measured before it was found out counts.
    for lie in [one for one in lies if one[0] in ("HelloLine", "ProbeOutcomes")]:
        assert "not-tested" in {word for _, word in told.verdicts(name_of(*lie), GOOD)}
