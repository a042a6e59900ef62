"""Pages of results: what has room, in which order, and that no part of one is ever read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.agent.wire.answers import Listening, ProbeOutcomes, Seen, StoryTold
from netprobe.agent.wire.batch import IN_RESULTS
from netprobe.agent.wire.batch_pages import PAGE_FORMAT, PageHeader, encode_page, limit_page
from netprobe.agent.wire.codec import decode_message
from netprobe.agent.wire.frames import WIRE_VERSION, encode_message
from netprobe.batch.checked_lines import ResultsRefused
from netprobe.batch.results import HostRecording
from netprobe.batch.rounds import make_next_round
from netprobe.cluster.pages import OpenedPage, join_pages, read_page
from tests.agent.wire.test_codec import message_of
from tests.batch.merging import World, make_world
from tests.batch.support import HELLO, IDENTITY, RESULTS_KEY, header, result_key
from tests.batch.world import Merged, carry_out, hear_each_other, plan_of
from tests.cluster.pods import LARGE, make_pages

WEB = ("web", "tcp", ((8000, 8009),))
DNS = ("dns", "udp", ((53, 53), (8002, 8002)))
PING = ("ping", "icmp", ())
SMALL = 450
HEADER = PageHeader(PAGE_FORMAT, WIRE_VERSION, IDENTITY.run, 1, 3, "node-1", 1, 0, 0)


@pytest.fixture(scope="module")
def world() -> World:
    """Three hosts, of which two flows from b to c are dropped."""
    return make_world(plan_of(WEB, DNS, PING))


def open_pages(world: World, name: str, limits: tuple[int, ...]) -> list[OpenedPage]:
    """The pages of a host, read again: as many as it needs."""
    script, run = world.scripts[name], world.request.identity
    pages = make_pages(script, world.recordings[name], limits)
    assert all(len(page) <= limit for page, limit in zip(pages, limits, strict=False))
    return [read_page(page, "pod x", run, script.start.host) for page in pages]


def carry(world: World, name: str, *limits: int) -> HostRecording:
    """What of a host's results its pages carry."""
    pages = open_pages(world, name, limits)
    return join_pages(pages, world.request.identity, world.scripts[name])


def merge(world: World, *limits: int) -> Merged:
    """A merge of what pages of these lengths carry."""
    found = [carry(world, name, *limits) for name in world.scripts]
    return Merged(world.request, found, heard=True)


def verdicts(merged: Merged) -> dict[tuple[Any, ...], str]:
    """What became of each port."""
    return {
        (one.requirement, one.source, one.destination, port): one.verdict
        for one in merged.results
        for first, last in one.ports or ((0, 0),)
        for port in range(first, last + 1)
    }


def test_how_long_a_page_may_be() -> None:
    """As the kubelet has it: 12,288 bytes for all containers of a pod, and 4,096 for each."""
    assert [limit_page(count) for count in (1, 3, 4, 5)] == [4096, 4096, 3072, 2457]


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_what_is_written_is_read(data: st.DataObject) -> None:
    """Whatever the messages hold, and in their order."""
    records = st.sampled_from(sorted(IN_RESULTS)).flatmap(lambda name: message_of(IN_RESULTS[name]))
    messages = data.draw(st.lists(records, max_size=4))
    texts = [encode_message(one) for one in messages]
    page = encode_page(result_key(), HEADER, texts).decode("ascii")
    if len(page) > LARGE:
        with pytest.raises(ResultsRefused, match="pod x"):
            read_page(page, "pod x", IDENTITY, 3)
        return
    opened = read_page(page, "pod x", IDENTITY, 3)
    assert opened.header == HEADER
    lines = opened.text.split(b"\n") if texts else []
    assert [decode_message(line, IN_RESULTS) for line in lines] == [
        decode_message(text, IN_RESULTS) for text in texts
    ]


@given(limits=st.lists(st.integers(230, 700), min_size=1, max_size=4).map(tuple))
@settings(max_examples=12, deadline=None)
def test_all_is_carried_or_counted(world: World, limits: tuple[int, ...]) -> None:
    """Each order with all of its answers, or among those that had no room: whatever the length."""
    recording = world.recordings["b"]
    found, last = carry(world, "b", *limits), open_pages(world, "b", limits)[-1].header
    for order in found.orders:
        assert found.answers[order.id] == recording.answers[order.id]
    whole = [one.id for one in recording.orders]
    told = [one.id for one in found.orders]
    assert sorted(told) == sorted(set(told) & set(whole))
    assert len(set(whole)) - len(set(told)) == last.failed_left + last.others_left
    assert bool(found.words) == (len(set(told)) < len(set(whole)))
    assert (found.hello, found.marks) == (recording.hello, recording.marks)


def test_nothing_is_missing_where_there_is_room(world: World) -> None:
    """The recording is the one that a file would give, but for the order of what it holds."""
    for name, recording in world.recordings.items():
        found = carry(world, name, LARGE)
        assert found.words == ""
        assert set(map(repr, found.orders)) == set(map(repr, recording.orders))
        assert found.answers == recording.answers


def test_what_failed_comes_first(world: World) -> None:
    """Listeners, then what failed; then what arrived, what passed, and what recorders saw."""
    kinds: list[type[Any]] = []
    wrong: list[bool] = []
    for (answer,) in carry(world, "b", LARGE).answers.values():
        kinds.append(type(answer))
        wrong.append(
            isinstance(answer, ProbeOutcomes) and any(kind.failure for kind in answer.kinds)
        )
    assert kinds[0] is Listening
    assert wrong.index(True) == 1
    assert wrong[1 : wrong.count(True) + 1] == [True] * wrong.count(True)
    passed = [at for at, kind in enumerate(kinds) if kind is ProbeOutcomes and not wrong[at]]
    assert kinds.index(Seen) < min(passed)
    assert max(passed) < kinds.index(StoryTold)


def test_a_small_page_keeps_what_failed_and_says_what_is_left(world: World) -> None:
    """The words count it; a page that has no room for the host's own words is none."""
    found = carry(world, "b", SMALL)
    probes = [one for some in found.answers.values() for one in some
              if isinstance(one, ProbeOutcomes)]  # fmt: skip
    assert next(any(kind.failure for kind in one.kinds) for one in probes)
    left = len({one.id for one in world.recordings["b"].orders}) - len(found.answers)
    assert left > 1
    assert found.words == f"{left} answers had no room in its messages"
    with pytest.raises(ValueError, match="a page of 200 bytes has no room"):
        make_pages(world.scripts["b"], world.recordings["b"], (200,))


def test_a_node_of_many_pods_has_room(world: World) -> None:
    """Of hundreds of addresses and links the page has the run's own first, and some others."""
    links = [f"02:00:00:00:{at // 256:02x}:{at % 256:02x}" for at in range(500)]
    addresses = [*(f"10.1.{at}.1" for at in range(200)), "10.0.0.2"]
    hello = HELLO._replace(addresses=addresses, links=links)
    crowded = replace(world.recordings["b"], hello=hello)
    (page,) = make_pages(world.scripts["b"], crowded)
    opened = read_page(page, "x", world.request.identity, 1)
    found = join_pages([opened], world.request.identity, world.scripts["b"])
    assert found.hello is not None
    assert (found.hello.addresses[0], len(found.hello.addresses)) == ("10.0.0.2", 32)
    assert found.hello.links == links[:16]


def test_each_cut_is_refused_by_name(world: World) -> None:
    """The kubelet keeps the beginning of a long message, or the end of a long file."""
    (page,) = make_pages(world.scripts["b"], world.recordings["b"])
    run = world.request.identity
    assert read_page(page, "pod x", run, 1).header.name == "b"
    for at in range(len(page)):
        pieces = [page[:at], page[at + 1 :], page[:at] + page[at + 1 :], page[at : at + 50]]
        for piece in pieces[:2] if at % 40 else pieces:
            with pytest.raises(ResultsRefused, match=r"^pod x, container r1: ") as caught:
                read_page(piece, "pod x, container r1", run, 1)
            assert caught.value.hosts == ("b",)
    for piece in (page[:-1], page[:3], page[1:], page[600:]):
        with pytest.raises(ResultsRefused, match="is cut off"):
            read_page(piece, "x", run, 1)


def test_each_change_is_refused(world: World) -> None:
    """One character in another's place, or something behind the end."""
    (page,) = make_pages(world.scripts["b"], world.recordings["b"])
    for at in range(len(page)):
        changed = page[:at] + ("0" if page[at] != "0" else "1") + page[at + 1 :]
        with pytest.raises(ResultsRefused):
            read_page(changed, "x", world.request.identity, 1)
    with pytest.raises(ResultsRefused, match="has 2 characters behind its end"):
        read_page(page + "é\n", "x", world.request.identity, 1)


def test_what_is_not_of_this_run_and_host_is_refused() -> None:
    """Another host's page, another run's, and one that is right but for its header."""
    page = encode_page(result_key(4), HEADER._replace(host=4, name="node-2"), []).decode()
    assert read_page(page, "x", IDENTITY, 4).header.name == "node-2"
    with pytest.raises(ResultsRefused, match="was not written with the key of node-1"):
        read_page(page, "x", IDENTITY, 3)
    with pytest.raises(ResultsRefused, match="was not written with the key of node-2"):
        read_page(page, "x", replace(IDENTITY, results_key=RESULTS_KEY[::-1]), 4)
    for change, words in (
        ({"run": "0" * 16}, "another run"), ({"name": "node-2"}, "another run"),
        ({"round": 2}, "round 2"), ({"format": 99}, "another format"), ({"wire": 99}, "format"),
    ):  # fmt: skip
        page = encode_page(result_key(), HEADER._replace(**change), []).decode()
        with pytest.raises(ResultsRefused, match=f"no host of this version writes .*{words}"):
            read_page(page, "x", IDENTITY, 3)
    for other in ("", "Error", "bash: python3: command not found\n", "\x1b[31mNPP1"):
        with pytest.raises(ResultsRefused, match=r"^x: .*is cut off"):
            read_page(other, "x", IDENTITY, 3)


def test_a_page_that_unpacks_to_very_much_is_refused() -> None:
    """A host's root can sign a page of a few bytes that are all memory."""
    page = encode_page(result_key(), HEADER, [b" " * (1 << 21)]).decode()
    assert len(page) < LARGE
    with pytest.raises(ResultsRefused, match="more than 1,048,576 bytes"):
        read_page(page, "x", IDENTITY, 3)


def test_pages_are_joined_from_the_first_on(world: World) -> None:
    """In any order; one that is missing in between is named, and the others count. Where the first
    one is missing, or one is there twice, the host has no results."""
    pages = open_pages(world, "b", (SMALL, 400, 400))
    assert len(pages) == 3
    run, script = world.request.identity, world.scripts["b"]
    whole = join_pages(pages, run, script)
    assert join_pages(pages[::-1], run, script).answers == whole.answers
    assert len(join_pages(pages[:1], run, script).answers) < len(whole.answers)
    without = join_pages([pages[0], pages[2]], run, script)
    assert without.words.startswith("page 2 of its results has not arrived")
    assert without.answers.items() < whole.answers.items()
    for some in (pages[1:], [pages[0], pages[0]]):
        with pytest.raises(ResultsRefused, match="expected each once from 1 on"):
            join_pages(some, run, script)


def test_a_merge_of_pages_is_that_of_files(world: World) -> None:
    """Where all has room, the same verdicts."""
    files = Merged(world.request, list(world.recordings.values()), heard=True)
    assert verdicts(merge(world, LARGE)) == verdicts(files)
    assert "blocked" in verdicts(files).values()


def test_what_had_no_room_is_never_blocked(world: World) -> None:
    """Whatever is missing: the verdict of the whole, or none; and the words say why."""
    whole = verdicts(merge(world, LARGE))
    least = set()
    for limit in range(240, 700, 60):
        merged = merge(world, limit)
        for flow, verdict in verdicts(merged).items():
            assert verdict in (whole[flow], "not-tested", "inconclusive"), (limit, flow)
            least.add(verdict)
        untested = {one.because for one in merged.results if one.verdict == "not-tested"}
        assert all("had no room in its messages" in words for words in untested), untested
    assert {"pass", "blocked", "not-tested"} <= least


def test_the_next_round_asks_what_had_no_room(world: World) -> None:
    """And then all is known."""
    found = [carry(world, name, SMALL) for name in world.scripts]
    first = Merged(world.request, found, heard=True)
    assert "not-tested" in verdicts(first).values()
    request, scripts = make_next_round(world.request, world.request.plan, first.fleet)
    assert scripts
    answered = hear_each_other([carry_out(one) for one in scripts])
    again = [replace(one, header=None) for one in answered]
    merged = Merged(request, [*found, *(_of_round(one, 2) for one in again)], heard=True)
    assert "not-tested" not in verdicts(merged).values()


def _of_round(recording: HostRecording, number: int) -> HostRecording:
    """A recording of a later round."""
    return replace(recording, header=header()._replace(round=number, name=recording.name))
