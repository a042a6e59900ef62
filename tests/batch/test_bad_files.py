"""One host's bad file is one host without results: all others are reported as they were."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from netprobe.agent.wire.answers import Closed, EchoOutcomes, ProbeOutcomes, Seen
from netprobe.agent.wire.host_messages import Routed, RouteOrder
from netprobe.agent.wire.orders import (
    CloseOrder,
    EchoOrder,
    SeenOrder,
    StopOrder,
    WalkOrder,
)
from netprobe.agent.wire.parts import EchoRun, OrderArrivals, OutcomeRun
from netprobe.batch.engine_folder import results_file
from netprobe.batch.request import write_request
from netprobe.batch.results import PLAN_FILE, open_run
from netprobe.errors import RequestError
from tests.batch.merging import FLOWS, WEB, World, count, make_world, merge_files
from tests.batch.support import HELLO, KIND
from tests.batch.world import Merged, plan_of, write_results
from tests.vantage.support import probe

PING = ("ping", "icmp", ())
OLD = Path(__file__).parents[1] / "golden" / "0.1.0" / "batch.npr"
Lines = list[bytes]


@pytest.fixture(scope="module")
def world() -> World:
    """Sixty flows over TCP, two of which are blocked, and six echoes."""
    return make_world(plan_of(WEB, PING))


@pytest.fixture(scope="module")
def plan(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan that stayed at home."""
    return world.write_plan(tmp_path_factory.mktemp("home") / "run")


def change_line(lines: Lines, at: int) -> Lines:
    """The same with one character of a line changed."""
    old = lines[at]
    new = old[:-9] + (b"a" if old[-9:-8] != b"a" else b"b") + old[-8:]
    return [*lines[:at], new, *lines[at + 1 :]]


def of_version(world: World, **changes: Any) -> Lines:
    """What a host of another version has written."""
    return write_results(world.recordings["a"], world.scripts["a"].start, **changes)


# What became of a's file, and the reason that its host has failed with.
BAD: dict[str, tuple[Callable[[World], Lines], str]] = {
    "a line that is there twice, and not alike": (
        lambda w: [*w.lines("a"), change_line(w.lines("a"), 3)[3]], "line 3 is there twice",
    ),
    "a changed line": (lambda w: change_line(w.lines("a"), 4), "line 4 is not as the host wrote"),
    "a changed first line": (
        lambda w: change_line(w.lines("a"), 0), "its first line was changed",
    ),
    "a line that is missing": (
        lambda w: [*w.lines("a")[:2], *w.lines("a")[3:]], "line 2 is missing",
    ),
    "lines in another order": (
        lambda w: [*w.lines("a")[:2], w.lines("a")[3], w.lines("a")[2], *w.lines("a")[4:]],
        "line 2 is missing",
    ),
    "another format": (lambda w: of_version(w, format=1), "by another version of netprobe"),
    "of 0.1.0": (lambda _: [OLD.read_bytes()], "by another version of netprobe"),
    "another wire": (lambda w: of_version(w, wire=4), "by another version of netprobe"),
    "another run": (lambda w: of_version(w, run="f" * 16), "is of run ffffffffffffffff, not of"),
    "another round": (lambda w: of_version(w, round=2), "is of round 2; expected: 1"),
    "a host of no run": (lambda w: of_version(w, name="x", host=9), "is of x, which is no host"),
    "another host's": (lambda w: w.lines("b"), "is of b, not of a: were files swapped?"),
    "two hosts'": (lambda w: [*w.lines("a"), *w.lines("b")], "is of b, not of a"),
    "a first line that is no object": (lambda w: [b"NPR1 0 x []\n"], "its first line was changed"),
    "a first line that has no end": (
        lambda w: [b"NPR1 0 x %s\n" % (b"[" * 5000)], "its first line was changed",
    ),
}  # fmt: skip


def refuse(world: World, plan: Path, folder: Path, lines: Sequence[bytes]) -> str:
    """Merge with such a file of a, and give why a has failed; b and c are as they were."""
    merged = merge_files(plan, folder, world.files(a=lines))
    assert {name: host.state for name, host in merged.hosts.items()} == {
        "a": "failed", "b": "agent", "c": "agent",
    }  # fmt: skip
    assert count(merged, "b", "c") == {"pass": 9, "blocked": 2}
    assert count(merged, "c", "b") == {"pass": 11}
    assert count(merged, "a") == {"not-tested": 22}
    return merged.hosts["a"].words


@pytest.mark.slow
@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_is_one_host_without_results(
    world: World, plan: Path, tmp_path: Path, what: str
) -> None:
    """Doubled, cut out, changed, of another version or run, of two hosts: the reason is named."""
    make, reason = BAD[what]
    words = refuse(world, plan, tmp_path, make(world))
    assert words.startswith(f"{tmp_path}/a.npr: ")
    assert reason in words


def test_lines_that_came_twice_and_a_cut_end_are_no_fault(
    world: World, plan: Path, tmp_path: Path
) -> None:
    """Engines repeat what hosts print, and hosts are switched off."""
    lines = world.lines("a")
    merged = merge_files(plan, tmp_path, world.files(a=[*lines[:4], *lines[2:], *lines]))
    assert count(merged) == {"pass": FLOWS + 6 - 2, "blocked": 2}
    merged = merge_files(plan, tmp_path, world.files(a=[*lines[:-2], lines[-2][:-9]]))
    assert merged.hosts["a"].state == "lost"
    assert count(merged, "b", "c") == {"pass": 9, "blocked": 2}


# What a host's root may write under its own key, and no agent does.
LIES: dict[str, tuple[list[Any], str]] = {
    "an order of nobody": ([RouteOrder(5000, "10.0.0.2", None)], "order 5000, which no script has"),
    "another host's own order": ([CloseOrder((1 << 31) + (1 << 15))], "which no script has"),
    "an order twice": ([CloseOrder(1), CloseOrder(1)], "order 1, twice"),
    "an order of a live run": ([StopOrder()], "an order StopOrder"),
    "another order's answer": (
        [RouteOrder(1, "10.0.0.2", None), Closed(1)],
        "an answer Closed to RouteOrder",
    ),
    "a walk's answer to a route": (
        [WalkOrder(1, "tcp", "10.0.0.2", 80, None, 9, 0), Routed(1, *[None] * 6)],
        "an answer Routed to WalkOrder",
    ),
    "an echo of nothing": ([EchoOrder(1, [], None, 1, 1, 1, None, [])], "0 numbers for 0"),
    "an echo with a number too many": (
        [EchoOrder(1, ["10.0.0.2"], None, 1, 1, 1, None, [1, 2])],
        "2 numbers for 1 destinations",
    ),
    "a probe of nothing": (
        [probe(1, "tcp", "10.0.0.2", [])._replace(blocks=[])],
        "a probe of nothing",
    ),
    "outcomes of what was not asked": (
        [
            EchoOrder(1, ["10.0.0.2"], None, 1, 1, 1, None, []),
            EchoOutcomes(1, [KIND._replace(answer="echo")], [EchoRun(2, 2, 0, [1], 1)]),
        ],
        "destination 2-2, not asked or told before",
    ),
    "a probe's outcomes as an echo's": (
        [
            EchoOrder(1, ["10.0.0.2"], None, 1, 1, 1, None, []),
            ProbeOutcomes(1, [(1, 1)], [KIND], [OutcomeRun(80, 80, 0, [1], 1)], []),
        ],
        "an answer ProbeOutcomes to EchoOrder",
    ),
    "senders that are no addresses": (
        [
            SeenOrder(1, 1, [], rest=True),
            Seen(1, [OrderArrivals(1, [(80, 80)], ["x"], None)], [], [], []),
        ],
        "an address 'x'",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", LIES)
def test_a_host_that_lies_has_no_results(
    world: World, plan: Path, tmp_path: Path, what: str
) -> None:
    """Under its own key it may write anything: what no agent writes is no result of any flow."""
    messages, reason = LIES[what]
    words = refuse(world, plan, tmp_path, world.sign("a", [[HELLO, *messages]]))
    assert reason in words


def test_files_that_cannot_be_read_are_bad_files(world: World, plan: Path, tmp_path: Path) -> None:
    """A device, a pipe that nobody writes to, a folder: the reason is named, and nothing waits."""
    for name, lines in world.files().items():
        (tmp_path / name).write_bytes(b"".join(lines))
    paths = [tmp_path / name for name in world.files()]
    ways: list[tuple[Callable[[Path], None], str]] = [
        (lambda path: path.symlink_to("/dev/zero"), "this is a device"),
        (lambda path: path.symlink_to("/nowhere"), "there is no such file"),
        (lambda path: path.mkdir(), "this is a directory"),
    ]
    for make, reason in ways:
        (tmp_path / "a.npr").unlink()
        make(tmp_path / "a.npr")
        stored = open_run(plan, paths)
        assert [one.name for one in stored.recordings] == ["b", "c"]
        assert reason in stored.missing["a"]
        if (tmp_path / "a.npr").is_dir():
            os.rmdir(tmp_path / "a.npr")
            (tmp_path / "a.npr").touch()


def test_where_no_file_is_of_the_run_nothing_is_reported(
    world: World, plan: Path, tmp_path: Path
) -> None:
    """The user has taken another plan, or other files: each of them is named."""
    for name in ("x", "y"):
        (tmp_path / f"{name}.npr").write_bytes(b"nonsense")
    with pytest.raises(RequestError) as caught:
        open_run(plan, [tmp_path / "x.npr", tmp_path / "y.npr"])
    assert str(caught.value) == "\n".join(
        f"{tmp_path}/{name}.npr: holds no results: not even its first line is whole"
        for name in "xy"
    )


def test_a_file_of_no_host_is_a_note(world: World, plan: Path, tmp_path: Path) -> None:
    """The others are reported."""
    (tmp_path / "x.npr").write_bytes(b"nonsense")
    paths = [tmp_path / name for name in world.files()]
    for path in paths:
        path.write_bytes(b"".join(world.files()[path.name]))
    stored = open_run(plan, [*paths, tmp_path / "x.npr"])
    assert len(stored.recordings) == 3
    assert stored.missing == {}
    (note,) = stored.notes
    assert note.startswith(f"{tmp_path}/x.npr: holds no results")


def test_an_engine_says_why_results_end_early(world: World, tmp_path: Path) -> None:
    """A host that was started, and then hung or flooded: its words stand in the report."""
    (tmp_path / PLAN_FILE).write_bytes(write_request(world.request))
    for name in world.scripts:
        lines = world.lines(name)[: 3 if name == "a" else None]
        results_file(tmp_path, name).parent.mkdir(exist_ok=True)
        results_file(tmp_path, name).write_bytes(b"".join(lines))
    results_file(tmp_path, "a").with_suffix(".error").write_text("wait took longer than 89 s\n")

    stored = open_run(tmp_path, [])
    merged = Merged(stored.request, stored.recordings, missing=stored.missing)

    words = {one.name: one.words for one in stored.recordings}
    assert words["a"].endswith(": wait took longer than 89 s")
    assert words["b"] == words["c"] == ""
    assert count(merged, "bc", "bc")["pass"] > 0
    assert count(merged, "a")["pass"] == 0
    told = {one.because for one in merged.results if one.source == "a"}
    assert all("wait took longer than 89 s" in words for words in told), told
