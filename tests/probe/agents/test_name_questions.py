"""Questions for names: what is asked again, how, and what is made of the answers."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import dns.flags
import dns.message
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import pytest

from netprobe.agent.wire.parts import OutcomeKind
from netprobe.errors import AgentError
from netprobe.model.names import NameTold
from netprobe.probe.agents.name_questions import NameQuestions, NameSurvey, make_stranger
from netprobe.probe.settings import Timing

EMPTY = OutcomeKind("answer", None, None, None, None, None, None, None, None, None, None, None)
SILENCE = EMPTY._replace(failure="no-answer")
ADDRESS = "10.0.0.5"

# Answers a question, given its protocol; None: silence.
Server = Callable[[dns.message.Message, str], dns.message.Message | None]


class Line:
    """A server behind ``ask_service``, and what it was asked."""

    def __init__(self, server: Server, stood: int = 0) -> None:
        """``stood``: the source stands still for so many questions at first."""
        self.server = server
        self.stood = stood
        self.asked: list[tuple[str, str, int]] = []

    async def __call__(
        self, protocol: str, dst: str, port: int, request: bytes, timing: Timing,
        src: str | None = None,
    ) -> list[OutcomeKind]:  # fmt: skip
        asked = dns.message.from_wire(request[2:] if protocol == "tcp" else request)
        self.asked.append((protocol, asked.question[0].to_text(), asked.payload))
        reply = self.server(asked, protocol)
        if len(self.asked) <= self.stood:
            return [EMPTY._replace(failure="stood-still")]
        if reply is None:
            return [SILENCE]
        wire = reply.to_wire(max_size=65535)
        data = len(wire).to_bytes(2, "big") + wire if protocol == "tcp" else wire
        return [EMPTY._replace(answer="bytes", data=data)]


def reply(
    asked: dns.message.Message, *addresses: str, rcode: int = 0, cut: bool = False
) -> dns.message.Message:
    """A server's answer."""
    made = dns.message.make_response(asked)
    made.set_rcode(dns.rcode.Rcode(rcode))
    made.flags |= dns.flags.TC if cut else 0
    kind = dns.rdatatype.to_text(asked.question[0].rdtype)
    some = [one for one in addresses if kind == ("AAAA" if ":" in one else "A")]
    if some:
        made.answer.append(dns.rrset.from_text(asked.question[0].name, 9, "IN", kind, *some))
    return made


async def ask(server: Server, name: str = "api.x.test") -> tuple[NameTold, Line]:
    """Ask over UDP, and give what was told of the name."""
    line = Line(server)
    survey = NameSurvey((name,), "udp", make_stranger(b"key"))
    told = await NameQuestions("a", line).ask("10.0.0.2", survey)
    assert told.of(name) is not None
    return told.told[0], line


async def test_one_answer_is_enough() -> None:
    """The name, a name that nobody made, and the zone's serial: five questions, each once."""
    told, line = await ask(lambda asked, _: reply(asked, ADDRESS))

    assert told == NameTold("api.x.test", "NOERROR", (ADDRESS,), told.size)
    assert sorted(text.split()[2] for _, text, _ in line.asked) == ["A", "A", "AAAA", "AAAA", "SOA"]
    assert any(text.startswith("netprobe-") for _, text, _ in line.asked)


async def test_a_server_that_answers_in_turn_is_known() -> None:
    """A balancer gives one of its addresses each time; another server always gives the same."""
    turns = itertools.count(1)
    survey = NameSurvey(("api.x.test",), "udp", "nobody")
    for server, varying in (
        (lambda asked, _: reply(asked, f"10.0.0.{next(turns)}"), ("api.x.test",)),
        (lambda asked, _: reply(asked, ADDRESS), ()),
    ):
        questions = NameQuestions("a", Line(server))
        told = await questions.ask("10.0.0.2", survey)
        assert (await questions.find_varying(told, survey)).varying == varying


@pytest.mark.parametrize("alive", [True, False])
async def test_a_server_may_answer_other_questions(alive: bool) -> None:
    """One whose forwarder is dead says who it is, and nothing of the names."""

    def serve(asked: dns.message.Message, protocol: str) -> dns.message.Message | None:
        return reply(asked) if alive and asked.question[0].rdclass == dns.rdataclass.CH else None

    questions = NameQuestions("a", Line(serve))
    told = await questions.ask("10.0.0.2", NameSurvey(("api.x.test",), "udp", "nobody"))

    assert told.told[0].said == "no answer"
    assert told.alive is alive


@pytest.mark.parametrize("stood", [1, 2])
async def test_a_host_that_stood_still_asks_once_more(stood: int) -> None:
    """What it could not hear is no silence of the server: it asks again, and then says nothing."""
    line = Line(lambda asked, _: reply(asked, ADDRESS), stood=stood)
    asking = NameQuestions("a", line).ask_plainly(
        "10.0.0.2", "api.x.test", "A", "udp", Timing(None, 1, 1)
    )
    if stood == 1:
        assert await asking == "NOERROR"
    else:
        with pytest.raises(AgentError, match="a stood still while it asked") as caught:
            await asking
        assert caught.value.reason == "machine-busy"
    assert len(line.asked) == 2


async def test_a_server_is_asked_once() -> None:
    """Whoever asks the same later gets the same."""
    line = Line(lambda asked, _: reply(asked, ADDRESS))
    questions = NameQuestions("a", line)
    survey = NameSurvey(("api.x.test",), "tcp", "nobody")

    assert await questions.ask("10.0.0.2", survey) == await questions.ask("10.0.0.2", survey)
    assert len(line.asked) == 5


async def test_what_a_server_without_edns_says() -> None:
    """FORMERR is an answer: the plain question follows, and nothing is wrong."""

    def old(asked: dns.message.Message, _: str) -> dns.message.Message:
        if asked.edns >= 0:
            return reply(asked, rcode=dns.rcode.FORMERR)
        return reply(asked, ADDRESS)

    told, _ = await ask(old)
    assert (told.said, told.addresses, told.trouble) == ("NOERROR", (ADDRESS,), "")


async def test_questions_with_edns_that_nobody_answers() -> None:
    """Silence to these, and an answer to the plain one."""
    told, _ = await ask(lambda asked, _: None if asked.edns >= 0 else reply(asked, ADDRESS))
    assert told.trouble == "edns"


async def test_a_loss_is_no_trouble() -> None:
    """The answer in full size was lost, and the same one came whole in small: no fragments."""
    told, _ = await ask(lambda asked, _: None if asked.payload == 4096 else reply(asked, ADDRESS))
    assert (told.addresses, told.trouble) == ((ADDRESS,), "")


async def test_fragments() -> None:
    """Silence in full size, cut off in small, and over TCP larger than a packet."""
    many = [f"10.9.{number // 250}.{number % 250}" for number in range(120)]

    def server(asked: dns.message.Message, protocol: str) -> dns.message.Message | None:
        if protocol == "tcp":
            return reply(asked, *many)
        return None if asked.payload == 4096 else reply(asked, cut=True)

    told, _ = await ask(server)
    assert (len(told.addresses), told.trouble) == (120, "lost")
    assert told.size > 1472


async def test_cut_off_and_tcp_silent() -> None:
    """What came is no whole answer."""
    told, line = await ask(
        lambda asked, protocol: None if protocol == "tcp" else reply(asked, ADDRESS, cut=True)
    )
    assert told.trouble == "cut"
    assert "tcp" in {protocol for protocol, _, _ in line.asked}


async def test_silence() -> None:
    """No question is answered: that is all there is to say."""
    told, _ = await ask(lambda *_: None)
    assert (told.said, told.trouble) == ("no answer", "")


async def test_both_families() -> None:
    """An address of either is an answer; without any the failure of either counts."""
    some: tuple[str, ...] = ()
    for some in ((ADDRESS,), ("fd00::5",), (ADDRESS, "fd00::5")):
        told, _ = await ask(lambda asked, _: reply(asked, *some))  # noqa: B023  # called at once
        assert (told.said, told.addresses) == ("NOERROR", some)

    told, _ = await ask(lambda asked, _: reply(asked))
    assert (told.said, told.addresses) == ("no record", ())

    def half(asked: dns.message.Message, _: str) -> dns.message.Message:
        is_six = asked.question[0].rdtype == 28
        return reply(asked, rcode=dns.rcode.SERVFAIL if is_six else dns.rcode.NOERROR)

    told, _ = await ask(half)
    assert told.said == "SERVFAIL"


async def test_a_wildcard_is_asked_for_by_a_name_below_it() -> None:
    """The star itself is no question."""
    told, line = await ask(lambda asked, _: reply(asked, ADDRESS), "*.apps.x.test")

    assert (told.name, told.addresses) == ("*.apps.x.test", (ADDRESS,))
    assert not any("*" in text for _, text, _ in line.asked)


async def test_a_server_is_asked_anew_where_its_asker_stood_still() -> None:
    """Who needs it a minute later does not get the standstill of then."""
    questions = NameQuestions("a", Line(lambda asked, _: reply(asked, ADDRESS), stood=2))
    survey = NameSurvey(("api.x.test",), "udp", "nobody")
    with pytest.raises(AgentError):
        await questions.ask("10.0.0.2", survey)

    assert (await questions.ask("10.0.0.2", survey)).alive
