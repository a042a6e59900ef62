"""Scripts from a dry run, and verdicts from what hosts wrote, without a network."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import StoryTold
from netprobe.agent.wire.orders import (
    HeldOrder,
    ListenOrder,
    ProbeOrder,
    SeenOrder,
    StoryOrder,
    TemplatesOrder,
)
from netprobe.batch.request import read_request, write_request
from netprobe.batch.rounds import make_next_round, move_start
from netprobe.batch.script import write_script
from netprobe.model.plan import Plan
from netprobe.probe.settings import ProbeSettings
from tests.batch.support import header
from tests.batch.world import (
    BEGAN_S,
    SILENT,
    A,
    B,
    C,
    Merged,
    carry_out,
    first_round,
    plan_of,
    request_of,
)

WEB = ("web", "tcp", ((80, 80), (443, 443)))
DNS = ("dns", "udp", ((53, 53),))
PING = ("ping", "icmp", ())
# What b sent to a, known by sequence numbers.
NUMBERED = StoryOrder(0, "tcp", None, "10.0.0.2", "10.0.0.1", [(80, 80)], False, [4711], [])


def _orders(scripts: Any, kind: Any) -> list[Any]:
    return [
        order
        for script in scripts
        for _, some in script.phases
        for order in some
        if isinstance(order, kind)
    ]


def test_the_same_request_gives_the_same_scripts() -> None:
    """Ids, ports and order: nothing is left to chance but the key."""
    request = request_of(plan_of(WEB, DNS, PING))

    one, other = first_round(request)[1], first_round(request)[1]

    assert [write_script(script) for script in one] == [write_script(script) for script in other]
    assert {script.start.name for script in one} == {"a", "b", "c"}


def test_a_round_can_be_moved() -> None:
    """It is the round that would have been made for that start."""
    plan = plan_of(("web", "tcp", ((80, 80),)))
    request = request_of(plan, "clock")
    later = replace(request, starts_at=2_000_000.0)
    assert move_start(*first_round(request), 2_000_000.0) == first_round(later)


def test_all_listeners_are_open_before_anybody_probes() -> None:
    """However many rounds a live run would need: they are orders of one phase."""
    request = request_of(plan_of(("many", "tcp", ((1000, 19999),))))

    _, scripts = first_round(request)

    for script in scripts:
        names = [name for name, some in script.phases
                 if any(isinstance(order, ListenOrder) for order in some)]  # fmt: skip
        opened = [order for name, some in script.phases for order in some
                  if isinstance(order, ListenOrder)]  # fmt: skip
        assert names == ["listen"]
        assert len(opened) > 1
        ports = sum(last - first + 1 for one in opened for block in one.blocks
                    for first, last in block.ports)  # fmt: skip
        assert ports == 19000


def test_a_host_tells_everything_that_came_to_it() -> None:
    """Of every round of listeners, of packets of both others, without naming any order."""
    _, scripts = first_round(request_of(plan_of(WEB)))

    seen = _orders(scripts[:1], SeenOrder)
    stories = [one for one in _orders(scripts[:1], StoryOrder) if not one.sent]
    assert [one.orders for one in seen] == [[]]
    # SYNs, and the nonces on connections that opened.
    assert {(one.asker, one.target, one.proto) for one in stories} == {
        (asker, "10.0.0.1", proto)
        for asker in ("10.0.0.2", "10.0.0.3")
        for proto in ("tcp", "tcp-nonce")
    }


def test_denied_ports_are_asked_in_a_phase_of_their_own() -> None:
    """No listener of ours may answer there; where one has to, nobody can ask at the same time."""
    denied = ("denied-ssh", "tcp", ((22, 22), (80, 80)))

    request, scripts = first_round(request_of(plan_of(WEB, ("denied-x", "tcp", ((22, 22),)))))
    asked = [order for script in scripts for name, some in script.phases if name == "denied"
             for order in some if isinstance(order, ProbeOrder)]  # fmt: skip
    assert {tuple(block.ports[0]) for order in asked for block in order.blocks} == {(22, 22)}
    merged = Merged(request, [carry_out(script) for script in scripts])
    assert "not-tested" not in set.union(*merged.verdicts().values())

    request, scripts = first_round(request_of(plan_of(WEB, denied)))
    merged = Merged(request, [carry_out(script) for script in scripts])
    assert {one.reason for one in merged.results if one.requirement == denied[0]} == {"not-asked"}


def test_listeners_beside_services_that_run_already() -> None:
    """A live run looks at their ports when its listeners are open, under the number of the round:
    a host carries out both at once, and each answer has one order."""
    web, ssh = plan_of(WEB, ("ssh", "tcp", ((22, 22),))).blocks
    request, scripts = first_round(request_of(Plan((), (web, replace(ssh, existing=True)))))

    for script in scripts:
        kinds = {type(order) for order in dict(script.phases)["listen"]}
        assert {ListenOrder, HeldOrder} <= kinds
        numbers = [order.id for _, some in script.phases for order in some if hasattr(order, "id")]
        assert len(numbers) == len(set(numbers))
    merged = Merged(request, [carry_out(script) for script in scripts])
    assert merged.verdicts()["web", "a", "b"] == {"pass"}
    assert "not-tested" not in set.union(*merged.verdicts().values())


@pytest.mark.parametrize("live", [False, True])
def test_who_holds_denied_ports_of_udp_is_asked_first(live: bool) -> None:
    """Nothing is opened for them, and no other look is planned at what may be taken."""
    rows = (WEB, ("denied-x", "udp", ((514, 514),)))
    request, scripts = first_round(request_of(plan_of(*rows), settings=ProbeSettings(live=live)))

    for script in scripts:
        phases = dict(script.phases)
        held = [order for order in phases["listen"] if isinstance(order, HeldOrder)]
        assert [block.ports for order in held[:1] for block in order.blocks] == [[(514, 514)]]
        asked = [order for order in phases.get("denied", phases["go"])
                 if isinstance(order, ProbeOrder) and order.proto == "udp"]  # fmt: skip
        assert len(asked) == 2
    merged = Merged(request, [carry_out(script) for script in scripts])
    denied = {one.verdict for one in merged.results if one.requirement == "denied-x"}
    assert (denied, merged.fleet.outstanding) == ({"pass"}, [])


def test_where_all_is_well_all_flows_pass() -> None:
    """A merge asks for nothing that the scripts had not asked."""
    request, scripts = first_round(request_of(plan_of(WEB, DNS, PING)))

    merged = Merged(request, [carry_out(script) for script in scripts])

    assert {one.verdict for one in merged.results} == {"pass"}
    assert sum(one.port_count for one in merged.results) == 6 * 4
    assert merged.fleet.outstanding == []
    assert merged.info.complete


def test_the_next_round_asks_about_silence_and_nothing_else() -> None:
    """A port that was asked once is not known to be silent; a round later it is."""
    request, scripts = first_round(request_of(plan_of(WEB, DNS)))

    def lose(source: str, order: Any, port: int) -> Any:
        lost = getattr(order, "dst", None) == "10.0.0.2" and source == "a" and port == 443
        return SILENT if lost else None

    recordings = [carry_out(script, lose) for script in scripts]
    merged = Merged(request, recordings)
    bad = [one for one in merged.results if one.verdict != "pass"]
    assert [(one.source, one.destination, one.port, one.verdict) for one in bad] == [
        ("a", "b", 443, "not-tested")
    ]
    assert "nobody has asked again" in bad[0].because

    following, more = make_next_round(request, request.plan, merged.fleet)
    asked = _orders(more, ProbeOrder)
    assert following.round == 2
    assert {(one.dst, tuple(one.blocks[0].ports)) for one in asked if one.host is not None} == {
        ("10.0.0.2", ((443, 443),))
    }
    assert min(one.id for one in asked) >= request.next_id
    second = [
        replace(carry_out(script, lose), header=header()._replace(round=2)) for script in more
    ]
    again = Merged(following, [*recordings, *second])
    bad = [one for one in again.results if one.verdict != "pass"]
    assert [(one.source, one.destination, one.port, one.verdict) for one in bad] == [
        ("a", "b", 443, "blocked")
    ]


def test_hosts_without_a_file_are_not_tested_with_words() -> None:
    """Both ways, and the others as if nothing were missing. An echo reply needs no agent."""
    request, scripts = first_round(request_of(plan_of(WEB, PING)))

    merged = Merged(request, [carry_out(one) for one in scripts if one.start.name != "b"])

    for (requirement, source, destination), some in merged.verdicts().items():
        if source == "b" or (destination == "b" and requirement != "ping"):
            assert some == {"not-tested"}
        else:
            assert some == {"pass"}
    told = {one.because for one in merged.results if one.verdict == "not-tested"}
    assert all("no result file of b was given" in words for words in told), told
    assert merged.hosts["b"].state == "failed"


def test_a_closed_host_has_no_script_and_is_not_tested_with_its_reason() -> None:
    """As a destination it is one without an agent: others ask it, and no listener waits there."""
    shut = replace(B, closed="b runs windows")
    plan = plan_of(WEB, PING, hosts=(A, shut, C))
    request, scripts = first_round(request_of(plan))
    assert [one.start.name for one in scripts] == ["a", "c"]
    # The reason goes with the plan to whoever merges.
    request = read_request(write_request(request), "plan")

    merged = Merged(request, [carry_out(one) for one in scripts])

    told = {one.because for one in merged.results if one.source == "b"}
    assert len(told) == 1
    assert "b runs windows" in told.pop()
    verdicts = merged.verdicts()
    assert verdicts["ping", "b", "a"] == verdicts["web", "b", "a"] == {"not-tested"}
    assert verdicts["ping", "a", "b"] == verdicts["web", "a", "c"] == {"pass"}
    assert (merged.hosts["b"].state, merged.hosts["b"].words) == ("failed", "b runs windows")


@pytest.mark.slow
def test_what_is_missing_of_a_cut_file_is_not_tested() -> None:
    """Cut after any answer: nothing is blocked that was not seen to be."""
    request, scripts = first_round(request_of(plan_of(WEB, DNS, PING)))
    whole = [carry_out(script) for script in scripts]

    for count in range(0, len(whole[0].orders), 3):
        kept = {order.id for order in whole[0].orders[:count]}
        cut = replace(
            whole[0], is_cut=True, words="is cut off",
            answers={number: some for number, some in whole[0].answers.items() if number in kept},
        )  # fmt: skip
        merged = Merged(request, [cut, *whole[1:]])
        verdicts = {one.verdict for one in merged.results}
        assert verdicts <= {"pass", "not-tested", "inconclusive"}, (count, verdicts)


@pytest.mark.parametrize("ahead_s", [-1200.0, 1200.0])
def test_a_clock_that_is_wrong_makes_flows_untested(ahead_s: float) -> None:
    """Silence that another clock explains is never said to be blocked."""
    request, scripts = first_round(request_of(plan_of(WEB, PING), "clock"))

    def lose(source: str, order: Any, _: int) -> Any:
        there = getattr(order, "dst", None) or order.dsts[0]
        return SILENT if (source == "b") != (there == "10.0.0.2") else None

    shift = {"b": ahead_s}
    merged = Merged(
        request, [carry_out(one, lose, shift.get(one.start.name, 0.0)) for one in scripts]
    )

    for (_, source, destination), some in merged.verdicts().items():
        assert some == ({"not-tested"} if "b" in (source, destination) else {"pass"})
    told = {one.because for one in merged.results if one.verdict == "not-tested"}
    assert all("windows did not overlap" in words for words in told), told


def test_a_clock_that_nothing_proves_is_not_believed() -> None:
    """It says the right times; but of two hosts that never heard each other nobody knows."""
    request, scripts = first_round(request_of(plan_of(WEB), "clock"))

    def lose(source: str, order: Any, _: int) -> Any:
        return SILENT if (source == "b") != (order.dst == "10.0.0.2") else None

    merged = Merged(request, [_without_stories(carry_out(one, lose)) for one in scripts])

    for (_, source, destination), some in merged.verdicts().items():
        assert some == ({"not-tested"} if "b" in (source, destination) else {"pass"})
    told = {one.because for one in merged.results if one.verdict == "not-tested"}
    assert all("no packet shows how the clocks" in words for words in told), told


def _without_stories(recording: Any) -> Any:
    kept = tuple(one for one in recording.orders if not isinstance(one, StoryOrder))
    return replace(recording, orders=kept)


def _without_requests(recording: Any) -> Any:
    answers = {
        number: tuple(
            one._replace(runs=[run._replace(requests=None) for run in one.runs])
            if isinstance(one, StoryTold)
            else one
            for one in told
        )
        for number, told in recording.answers.items()
    }
    return replace(recording, answers=answers)


def test_two_files_of_one_host_are_no_results_of_it() -> None:
    """Which of them counts is not known, unless they are copies; the other hosts are reported."""
    request, scripts = first_round(request_of(plan_of(WEB)))
    whole = [carry_out(script) for script in scripts]
    copied = Merged(request, [*whole, replace(whole[0], source="usb/a.npr")])
    assert {one.verdict for one in copied.results} == {"pass"}

    other = replace(whole[0], source="usb/a.npr", marks=whole[0].marks[:-1])
    merged = Merged(request, [*whole, other])

    assert merged.hosts["a"].state == "failed"
    assert merged.hosts["a"].words == "usb/a.npr: is of a, and so is a.npr; give one of them"
    for (_, *ends), some in merged.verdicts().items():
        assert some == ({"not-tested"} if "a" in ends else {"pass"})


def test_nothing_is_left_to_ask_where_all_is_well() -> None:
    """The next round has no scripts, and the request stays as it was."""
    request, scripts = first_round(request_of(plan_of(WEB)))
    merged = Merged(request, [carry_out(script) for script in scripts])

    assert make_next_round(request, request.plan, merged.fleet) == (request, [])


def test_hosts_that_nobody_talks_to_listen_again_in_the_next_round() -> None:
    """Only at the ports that are asked again; they have been started anew, and know no packets."""
    request, scripts = first_round(request_of(plan_of(WEB, DNS), "clock"))

    def lose(source: str, order: Any, port: int) -> Any:
        lost = getattr(order, "dst", None) == "10.0.0.2" and source == "a" and port == 443
        return SILENT if lost else None

    merged = Merged(request, [carry_out(script, lose) for script in scripts])
    following, more = make_next_round(request, request.plan, merged.fleet, starts_at=BEGAN_S + 3600)

    by_name = {script.start.name: script for script in more}
    opened = _orders([by_name["b"]], ListenOrder)
    assert [(block.proto, block.ports) for order in opened for block in order.blocks] == [
        ("tcp", [(443, 443)])
    ]
    assert all(script.start.starts_at == BEGAN_S + 3600 for script in more)
    (known,) = _orders([by_name["a"]], TemplatesOrder)
    assert len(known.items) == len(following.templates)


@pytest.mark.parametrize("barrier", ["engine", "clock"])
def test_who_starts_again_is_not_asked_about_packets_of_earlier_rounds(barrier: str) -> None:
    """Its recorder would say that they did not come; an agent of an engine has seen them."""
    request, scripts = first_round(request_of(plan_of(WEB), barrier))
    merged = Merged(request, [carry_out(script) for script in scripts])
    merged.fleet.note_outstanding("a", NUMBERED)

    _, more = make_next_round(request, request.plan, merged.fleet, starts_at=BEGAN_S + 3600)

    asked = [one.numbers for one in _orders(more, StoryOrder)]
    assert asked == ([[4711]] if barrier == "engine" else [])


@pytest.mark.parametrize("requests", [True, False])
def test_packets_that_a_number_alone_would_show_may_have_come(requests: bool) -> None:
    """A host cannot know sequence numbers when it tells: what is translated on the way it takes for
    others', and the source's answers are no sign that its requests keep their address."""
    request, scripts = first_round(request_of(plan_of(WEB)))
    recordings = [carry_out(script) for script in scripts]
    if not requests:
        recordings = [_without_requests(one) for one in recordings]
    fleet = Merged(request, recordings).fleet

    told = asyncio.run(fleet.agent(A).tell_story(NUMBERED))

    assert (told.heard, told.awake) == (requests, False)
    assert [one for one in fleet.outstanding if one.order == NUMBERED]


def test_listeners_that_are_open_are_not_opened_again() -> None:
    """Where a merge wants more ports, as to complete zones: the agent would be in its own way."""
    request, scripts = first_round(request_of(plan_of(WEB, DNS)))
    more = plan_of(("web", "tcp", ((80, 80), (443, 443), (8080, 8080))), DNS)

    merged = Merged(replace(request, plan=more), [carry_out(script) for script in scripts])
    _, further = make_next_round(request, more, merged.fleet)

    opened = _orders(further, ListenOrder)
    assert len(opened) == 3
    assert {(block.proto, tuple(block.ports)) for one in opened for block in one.blocks} == {
        ("tcp", ((8080, 8080),))
    }
