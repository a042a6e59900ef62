"""An agent that sends anything else than messages of this version is lost, and somebody learns why.

Nothing that an agent sends may end the task that reads it: then everybody would wait for ever.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

import pytest

from netprobe.agent.wire.answers import Done, Fault
from netprobe.agent.wire.codec import decode_message
from netprobe.agent.wire.frames import WIRE_VERSION, encode_message
from netprobe.agent.wire.host_messages import (
    Resolved,
    Routed,
    RouteOrder,
)
from netprobe.agent.wire.messages import ANSWERS
from netprobe.agent.wire.parts import StreamTimes
from netprobe.agent.wire.stream_messages import (
    StreamCredit,
    StreamEvent,
    StreamInfo,
    StreamOpened,
    StreamReceived,
)
from netprobe.errors import AgentError
from netprobe.vantage import stream as streams
from netprobe.vantage.link import FIRST_REQUEST_ID, MOST_FAULTS, AgentLink
from tests.patience import PATIENCE_S
from tests.probe.fakes import HELLO
from tests.vantage.conftest import Start
from tests.vantage.scripted import frame, scripted
from tests.vantage.support import gone, outcomes, probe

ROUTE = RouteOrder(0, "127.0.0.1", None)
RESOLVED = Resolved(FIRST_REQUEST_ID, [], None, "")
TIMES = StreamTimes(1.0, None)


async def loss(link: AgentLink) -> str:
    """Why a request learns that the agent is lost."""
    with pytest.raises(AgentError) as caught:
        await asyncio.wait_for(link.request(ROUTE, Routed), PATIENCE_S)
    assert caught.value.reason == "agent-lost"
    return str(caught.value)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (frame(b"{}"), "a message must be a list that begins with its kind"),
        (frame(b'["nonsense",1]'), "there is no message 'nonsense'"),
        (frame(b'["CloseOrder",1]'), "there is no message 'CloseOrder'"),
        (frame(b'["Done",1]'), "Done: Done needs 2 values"),
        (frame(b'["Done","1",false]'), "Done: id: expected a whole number, not '1'"),
        (frame(b'["Done",1,0]'), "Done: cancelled: expected true or false, not 0"),
        (frame(b'["Seen",1,[[7,[[1]],[],null]],[],[],[]]'), "Seen: orders: ports: expected 2 val"),
        (frame(b'["StreamReceived",1,[1,null],"%",null]'), "data: expected base64"),
        (frame(b'["StreamReceived",1,[NaN,null],"",null]'), "elapsed_ms: expected a number"),
        (frame(b'["StreamReceived",1,[1%s,null],"",null]' % (b"0" * 400)), "elapsed_ms: "),
        (frame(b"[" * 100_000), "lists are nested too deeply"),
        (frame(b'["Done",' + b"[" * 100_000 + b"]" * 100_000 + b",0]"), "nested too deeply"),
        (frame(b"\xff"), "can't decode"),
        (b"\xff\xff\xff\xff", "frame of 4294967295 bytes"),
    ],
    ids=[
        "object", "unknown-kind", "order", "too-few", "text-for-number", "number-for-bool",
        "part-of-a-part", "base64", "nan", "huge-number", "deep", "deep-field", "utf-8", "length",
    ],
)  # fmt: skip
async def test_what_is_no_message_loses_the_agent(
    tmp_path: Path, start: Start, sent: bytes, words: str
) -> None:
    """The sentence names the message and its field, and the reading ends without an exception."""
    link = await start(scripted(tmp_path, sent))
    told = await loss(link)
    assert "it sent something else than messages of this version (" in told
    assert words in told
    await asyncio.wait_for(link._tasks[0], PATIENCE_S)


@pytest.mark.slow
def test_lists_of_any_depth_are_no_message() -> None:
    """At the interpreter's own limit too, where a value can be read but not be shown."""
    for depth in range(1, sys.getrecursionlimit() + 100):
        body = b'["Seen",1,[[7,[' + b"[" * depth + b"]" * depth + b"],[],null]],[],[],[]]"
        with pytest.raises(ValueError, match=r"^Seen: orders: ports: |^lists are nested too"):
            decode_message(body, ANSWERS)


@pytest.mark.parametrize(
    "sent", [RESOLVED, Done(FIRST_REQUEST_ID, False)], ids=lambda sent: type(sent).__name__
)
async def test_the_answer_to_another_order_loses_the_agent(
    tmp_path: Path, start: Start, sent: object
) -> None:
    """Where one answer is due, no other class will do; and nobody waits for the right one."""
    link = await start(scripted(tmp_path, sent, after="RouteOrder"))
    told = await loss(link)
    assert told.endswith(f"was lost: it sent {type(sent).__name__} where Routed was due")


async def test_another_answer_among_outcomes_loses_the_agent(tmp_path: Path, start: Start) -> None:
    """The same holds for an order that is answered bit by bit."""
    link = await start(scripted(tmp_path, RESOLVED._replace(id=7), after="ProbeOrder"))
    with pytest.raises(AgentError, match="it sent Resolved where ProbeOutcomes was due"):
        await outcomes(link, probe(7, "tcp", "127.0.0.1", [(1, 1)]))
    assert "where ProbeOutcomes was due" in await loss(link)


STREAM = 7
OPENED = StreamOpened(STREAM, TIMES, None, True, None, 100, None, None, None, {})
FIN = StreamEvent(STREAM, "fin", TIMES, None, None, None, {}, 0)


def received(data: bytes) -> StreamReceived:
    return StreamReceived(STREAM, TIMES, data, None)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ([RESOLVED._replace(id=STREAM)], "it sent Resolved where StreamOpened was due"),
        ([FIN], "it sent StreamEvent where StreamOpened was due"),
        ([OPENED, OPENED], "it sent StreamOpened where StreamEvent was due"),
        ([OPENED, StreamInfo(STREAM, None)], "it sent StreamInfo where StreamEvent was due"),
        ([OPENED, received(b"")], "it sent StreamReceived: no bytes"),
        ([OPENED, received(bytes(65536)), received(b".")], "more bytes than were credited"),
        ([OPENED, FIN._replace(kind="odd")], "it sent StreamEvent: an event 'odd'"),
        ([OPENED, FIN._replace(kind="data")], "it sent StreamEvent: an event 'data'"),
        ([OPENED, *[FIN] * 50], "it sent StreamEvent: more than can happen"),
        ([OPENED, StreamCredit(STREAM, 1)], "it sent StreamCredit: more than was sent"),
    ],
    ids=[
        "foreign", "too-early", "twice", "unasked", "no-bytes", "too-many-bytes", "unknown-event",
        "data-event", "events", "credit",
    ],
)  # fmt: skip
async def test_another_answer_on_a_stream_loses_the_agent(
    tmp_path: Path,
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    sent: list[object],
    words: str,
) -> None:
    """A stream opens once, and then has events; numbers of TCP_INFO come when they are asked."""
    monkeypatch.setattr(streams, "_IDS", itertools.count(STREAM))
    link = await start(scripted(tmp_path, *sent, after="StreamOpenOrder"))

    async def talk() -> None:
        async with streams.open_stream(link, streams.Target("127.0.0.1", 1)) as stream:
            for _ in range(60):
                await stream.receive(5)

    with pytest.raises(AgentError, match=words):
        await asyncio.wait_for(talk(), PATIENCE_S)
    assert words in await loss(link)


@pytest.mark.parametrize(
    ("hello", "words"),
    [
        (
            encode_message(HELLO._replace(wire=99)),
            f"speaks version 99 of the wire, not {WIRE_VERSION}",
        ),
        (b'["HelloLine",99]', f"speaks version 99 of the wire, not {WIRE_VERSION}"),
        (b'["hello", 1, {"python": "3.99"}]', f"version 1 of the wire, not {WIRE_VERSION}"),
        (b'{"wire": 1, "python": "3.6.8"}', "a message must be a list that begins with its kind"),
        (b'["HelloLine",%d]' % WIRE_VERSION, "HelloLine: HelloLine needs 19 values"),
        (encode_message(HELLO._replace(user=5)), "HelloLine: user: expected a text, not 5"),  # type: ignore[arg-type]
        (b"[" * 100_000, "lists are nested too deeply"),
        (b"\xff", "can't decode"),
    ],
    ids=["version", "short", "unlike", "object", "too-few", "type", "deep", "utf-8"],
)
async def test_a_hello_that_is_none_fails_the_start(
    tmp_path: Path, start: Start, hello: bytes, words: str
) -> None:
    """The sentence says what is wrong with it, and not that the command was killed for it."""
    with pytest.raises(AgentError) as caught:
        await start(scripted(tmp_path, hello=hello))
    assert caught.value.reason == "no-vantage"
    assert str(caught.value).startswith("me: the agent s")
    assert words in str(caught.value)


async def test_an_agent_that_is_refused_is_ended(tmp_path: Path, start: Start) -> None:
    """Its processes are gone before the run is over, so that no listener of its own answers."""
    link = await start(scripted(tmp_path, frame(b"{}")))
    await loss(link)
    assert link.is_refused
    await gone(link.pid)


async def test_an_agent_that_only_reports_bugs_is_lost(tmp_path: Path, start: Start) -> None:
    """One is a warning; who sends them without end fills the terminal."""
    link = await start(scripted(tmp_path, *[Fault(None, "a bug", None)] * (MOST_FAULTS + 1)))
    await asyncio.wait([link.lost], timeout=PATIENCE_S)
    assert f"more than {MOST_FAULTS} bugs of its own" in await loss(link)
