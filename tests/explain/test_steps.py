"""Each step of an explanation says what the looks show, and how bad that is."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.explain.explain import tell_story
from netprobe.explain.extra_checks import Further
from netprobe.explain.view import View
from netprobe.model.evidence import (
    CheckConclusion,
    Icmp,
    Listener,
    Outcome,
    RefusalMaker,
    ResetOrigin,
    Witness,
)
from netprobe.model.notes import HigherNote, InterceptionNote, ResetNote, SilenceNote
from netprobe.model.story import Step, Story
from tests.estate.flows import (
    ALIVE,
    BACK,
    FAR,
    FULL_WALK,
    FURTHER,
    LONG_WALK,
    LOST_WALK,
    NO,
    OPEN,
    OURS,
    REPORTS,
    RESET,
    ROUTE,
    ROUTER,
    SILENT,
    YES,
    error,
    look,
    make_block,
    note,
    path_mtu,
    view,
)
from tests.probe.fakes import kind

NOBODY = Further()


def step(some: View, name: str) -> Step:
    """The step of this name."""
    return next(one for one in tell_story(some).steps if one.name == name)


@pytest.mark.parametrize(
    ("source", "destination", "status"),
    [("agent", "agent", "ok"), ("agent", "none", "ok"), ("agent", "lost", "doubt"),
     ("agent", "failed", "doubt"), ("failed", "agent", "bad")],
)  # fmt: skip
def test_without_an_agent_at_the_source_nothing_can_be_seen(
    source: Any, destination: Any, status: str
) -> None:
    """A destination without one is normal; one that was lost is a doubt."""
    states = {"a": source, "b": destination}
    reports = {name: replace(REPORTS[name], state=state) for name, state in states.items()}
    found = step(view(SILENT, reports=reports), "agents")

    assert (found.status, found.facts) == (status, {"states": states})


@pytest.mark.parametrize(
    ("listener", "status", "words"),
    [
        (OURS, "ok", "netprobe's own listener is bound to 10.0.2.2"),
        (Listener("ours", nat=True), "ok", "is bound to all its addresses"),
        (Listener("ours", note="it is deaf"), "doubt", "is bound, but it is deaf"),
        (Listener("live", "etcd"), "ok", "is held by etcd; it is probed as it is"),
        (Listener("loopback", "etcd"), "bad", "held on loopback only, by etcd"),
        (
            Listener("ours", beside="etcd", beside_loopback=True),
            "doubt",
            "is held on loopback, by etcd; netprobe's own listener is bound to",
        ),
        (Listener("closed"), "ok", "nothing listens on b tcp/6443, and netprobe opened none"),
        (
            Listener("bound", note="no listener could be opened: address-in-use"),
            "doubt",
            "nothing listens on b tcp/6443, and no listener of netprobe: no listener could",
        ),
        (Listener("lost"), "not-possible", "the agent of b was lost meanwhile"),
    ],
)
def test_who_holds_the_port(listener: Listener, status: str, words: str) -> None:
    """The step says who holds it, and how that was found out."""
    found = step(view(RESET, listener=listener, control_answered=True), "listener")

    assert found.status == status
    assert words in found.words[0]
    assert len(found.words) == 1 + listener.nat


@pytest.mark.parametrize("witness", [Witness(), Witness(socket=True), None])
def test_a_listener_was_reached_where_it_was_asked_what_it_saw(witness: Witness | None) -> None:
    """By some flow, or by its own agent: what nothing has reached has a note."""
    found = step(view(SILENT, listener=OURS, witness=witness), "listener")

    assert found.words[0].endswith(", and works: b or a flow reached it") == (witness is not None)


def test_echo_requests_and_denied_ports_need_no_listener() -> None:
    """The kernel answers itself; where nothing must answer, nothing is opened."""
    echo = view(OPEN, make_block("icmp"))
    denied = view(RESET, make_block(expect="denied"))

    assert {step(one, "listener").status for one in (echo, denied)} == {"not-needed"}


TTL = ResetNote(answer_ttl=62, min_ttl=63, refused_again=True)


@pytest.mark.parametrize(
    ("origin", "noted", "status", "last"),
    [
        (ResetOrigin(), ResetNote(), "not-possible", "no TTL of a genuine answer is known"),
        (ResetOrigin(True), TTL, "bad", "something on the way forged it"),
        (ResetOrigin(False), TTL, "ok", "it is the destination's own"),
        (ResetOrigin(), TTL._replace(higher=HigherNote(65, True)), "doubt", "nobody can say"),
        (ResetOrigin(None, True), TTL._replace(dies_at_first_hop=False), "doubt", "nobody can"),
    ],
)
def test_whose_a_reset_is(origin: ResetOrigin, noted: ResetNote, status: str, last: str) -> None:
    """The looks at its TTL are told first, then what follows from them."""
    found = step(view(RESET, reset=origin, trail=(note("forged-resets", noted),)), "reset")

    assert found.status == status
    assert last in found.words[-1]
    assert found.facts["forged"] is origin.forged
    assert ("full_ttl" in found.facts) == (origin.full_ttl is not None)


def test_a_doubt_about_a_reset_is_no_word_of_the_destination() -> None:
    """A run that does not know who made it does not say that it is the destination's own."""
    maker = RefusalMaker(own=False, doubt="its TTL is odd")
    trail = (note("forged-resets", TTL),)

    found = step(view(RESET, reset=ResetOrigin(False), maker=maker, trail=trail), "reset")

    assert (found.status, found.words[-1]) == (
        "doubt", "its TTL is odd: whose reset it is nobody can say",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "forged"), [({"left": "b"}, False), ({"not_left": "b"}, True), ({"left": "a"}, True)]
)
def test_a_recorder_knows_whose_a_reset_is(one: dict[str, str], forged: bool) -> None:
    """Its word is better than any TTL."""
    found = step(view(RESET, story=Story(errors=(error(**one),))), "reset")

    assert found.facts["forged"] is forged
    assert "recorder" in found.words[0]


def test_what_is_no_reset_needs_no_look_at_one() -> None:
    """Silence, an ICMP error, and a refusal that is wanted."""
    icmp = Outcome("connect", "refused", Icmp(3, 13, ROUTER, "router"))
    views = (view(SILENT), view(icmp), view(RESET, make_block(expect="denied")))

    assert {step(one, "reset").status for one in views} == {"not-needed"}


@pytest.mark.parametrize(
    ("story", "words"),
    [
        (None, "a looked 16 times, none was answered"),
        (Story(source_out=YES, destination_in=NO), "3 looks left a, none reached b"),
        (Story(source_out=YES, destination_in=YES), "3 looks left a, 3 reached b, none was"),
        (Story(destination_out=YES), "3 answers left b, none reached a"),
    ],
)
def test_silence_is_counted_at_the_last_place_that_saw_it(story: Story | None, words: str) -> None:
    """So often it was lost there, if loss explains it."""
    seen = view(SILENT, story=story, trail=(note("silence", SilenceNote(16, 0.5)),))
    found = step(seen, "silence")

    assert found.words[0].startswith(words)
    assert found.facts["chance"] == 0.5 ** found.facts["looks"]


def test_an_answer_needs_no_count_of_silence() -> None:
    """Whatever was asked before it came."""
    assert step(view(OPEN, trail=(note("silence", SilenceNote(3, 0.5)),)), "silence").facts == {}


@pytest.mark.parametrize(
    ("some", "status", "words"),
    [
        (view(OPEN), "not-needed", "the answer itself says where it was"),
        (view(SILENT, recorded=False), "not-possible", "--no-recorder"),
        (view(SILENT), "not-possible", "no packet recorder for b"),
        (view(SILENT, story=Story(source_out=YES)), "bad", "source-out      yes     left a, 3 ti"),
    ],
)
def test_a_story_needs_recorders(some: View, status: str, words: str) -> None:
    """Six places, or the reason why nobody saw any."""
    found = step(some, "story")

    assert found.status == status
    assert words in found.words[0]


@pytest.mark.parametrize(
    ("known", "status"),
    [
        ({"listener": OURS, "witness": Witness(socket=True)}, "ok"),
        ({"listener": OURS, "witness": Witness()}, "bad"),
        ({"story": Story(destination_in=YES)}, "ok"),
        ({"story": Story(destination_in=NO)}, "bad"),
        ({"story": Story()}, "not-possible"),
        ({}, "not-possible"),
        ({"block": make_block(destination=FAR)}, "not-possible"),
    ],
)
def test_arrival(known: dict[str, Any], status: str) -> None:
    """A listener or a recorder at the destination saw the request, or nobody could."""
    assert step(view(SILENT, **known), "arrival").status == status


@pytest.mark.parametrize(
    ("further", "known", "status"),
    [
        (FURTHER, {}, "ok"),
        (FURTHER, {"story": Story(destination_out=YES)}, "bad"),
        (replace(FURTHER, back=BACK._replace(failure="network-unreachable")), {}, "bad"),
        (NOBODY, {}, "not-possible"),
        (FURTHER, {"block": make_block(destination=FAR)}, "not-possible"),
    ],
)
def test_way_back(further: Further, known: dict[str, Any], status: str) -> None:
    """The destination's own route, and answers that left and did not come."""
    assert step(view(SILENT, further=further, **known), "way-back").status == status


def test_a_route_that_there_is_not() -> None:
    """The source's kernel has no way."""
    gone = ROUTE._replace(failure="network-unreachable")
    found = step(view(SILENT, further=replace(FURTHER, route=gone)), "route")

    assert (found.status, found.facts["failure"]) == ("bad", "network-unreachable")
    assert step(view(SILENT, further=NOBODY), "route").status == "not-possible"


@pytest.mark.parametrize(
    ("flow", "other", "status", "words"),
    [
        (FULL_WALK, FULL_WALK, "ok", "tcp/6443: 1 10.0.0.254, 2 10.0.2.2 answers"),
        (FULL_WALK, LONG_WALK, "doubt", "something nearer answers in its name"),
        (LOST_WALK, LONG_WALK, "bad", "what stops tcp/6443 does not stop it"),
        (None, None, "not-possible", "there is no address to ask about"),
    ],
)
def test_hops(flow: Any, other: Any, status: str, words: str) -> None:
    """Both walks, and what follows where they differ."""
    further = replace(FURTHER, flow_walk=flow, other_walk=other)
    found = step(view(SILENT, further=further), "hops")

    assert found.status == status
    assert words in " ".join(found.words)


@pytest.mark.parametrize(
    ("controls", "known", "status"),
    [
        (ALIVE, {}, "ok"),
        ({"icmp": SILENT}, {}, "doubt"),
        ({**ALIVE, "tcp/64999": OPEN}, {}, "doubt"),
        (ALIVE, {"conclusion": CheckConclusion("intercepted")}, "doubt"),
        ({}, {}, "not-possible"),
        ({"icmp": SILENT, "tcp/443": OPEN}, {}, "ok"),
        (
            {"icmp": SILENT, "tcp/443": OPEN},
            {"conclusion": CheckConclusion("intercepted")},
            "doubt",
        ),
    ],
)
def test_controls(controls: Any, known: dict[str, Any], status: str) -> None:
    """An address that answers nothing, or everything, is odd."""
    beside = tuple(name for name in controls if name == "tcp/443")
    further = replace(FURTHER, controls=controls, beside=beside)
    assert step(view(SILENT, further=further, **known), "control").status == status


def test_the_runs_own_look_at_unused_ports_is_told_there() -> None:
    """And what opens to packets that do not live so long."""
    noted = InterceptionNote((64999, 64998), control_opened=False, ttl=2, opened=True)
    words = step(view(OPEN, trail=(note("intercepted", noted),)), "control").words

    assert words[-2:] == (
        "tcp 64999, 64998, asked because tcp/6443 opened: they do not accept connections",
        "a connection whose packets only live for 2 hops opens too",
    )


@pytest.mark.parametrize(
    ("mtu", "status"),
    [(path_mtu(1450), "ok"), (path_mtu(1400), "bad"), (path_mtu(None), "not-possible"),
     (None, "not-possible")],
)  # fmt: skip
def test_path_mtu(mtu: Any, status: str) -> None:
    """Whether the interface's own size arrives."""
    assert step(view(SILENT, mtu=mtu), "path-mtu").status == status


def test_every_look_of_the_probe_is_a_line() -> None:
    """The later ones say that they ask again."""
    tcp = make_block()
    sent = kind(failure="no-answer", left=True, packets=6)
    trail = (look(tcp, sent, mode="connect", looks=2), look(tcp, sent, mode="connect"))
    found = step(view(SILENT, tcp, trail=trail), "probe")

    assert found.status == "bad"
    assert [line[:6] for line in found.words] == ["TCP co", "again:"]
    assert [one["attempts"] for one in found.facts["looks"]] == [2, 1]


def test_an_address_that_answers_beside_the_flow_is_no_host_that_is_down() -> None:
    """Neither place nor advice speak of one, as in a run whose other flows get an answer."""
    silent = view(SILENT, listener=Listener("unknown"), reports=REPORTS)
    told = {
        alive: tell_story(replace(silent, further=replace(FURTHER, controls=controls)))
        for alive, controls in ((True, ALIVE), (False, {"icmp": SILENT}))
    }

    more = replace(FURTHER, controls={"icmp": SILENT, "tcp/443": OPEN}, beside=("tcp/443",))
    assert tell_story(replace(silent, further=more)).result.where == told[True].result.where
    assert set(told[False].result.where) - set(told[True].result.where) == {"host"}
    assert "Check that b runs" in told[False].advice
    assert "Check that b runs" not in told[True].advice
    assert told[True].remarks[-1] == (
        "asked beside the flow, 10.0.2.2 does answer: the host itself is up"
    )
    assert not [said for said in told[False].remarks if "does answer" in said]
