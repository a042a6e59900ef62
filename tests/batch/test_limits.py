"""What is refused costs little: bounds come from what the plan allows."""

from __future__ import annotations

import io
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from netprobe.agent.wire.answers import Closed
from netprobe.agent.wire.frames import encode_message
from netprobe.agent.wire.parts import ProbeDestination
from netprobe.batch.bundle import open_bundle, pack_plan
from netprobe.batch.limits import MIB, MOST_PLAN_BYTES, allow, count_flows, count_values
from netprobe.batch.request import write_request
from netprobe.batch.results import PLAN_FILE, open_run
from netprobe.errors import RequestError
from tests.batch.merging import WEB, World, count, make_world, merge_files
from tests.batch.support import HELLO
from tests.batch.world import plan_of
from tests.cli.command import COMMAND, environment
from tests.cost import Cost, run_measured
from tests.vantage.support import probe

MOST_SECONDS, MOST_KIB = 10.0, 300 * 1024
TOO_MUCH = "more than the plan allows, which is "


@pytest.fixture(scope="module")
def world() -> World:
    """Sixty flows over TCP, two of which are blocked."""
    return make_world(plan_of(WEB))


@pytest.fixture(scope="module")
def plan(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan that stayed at home."""
    return world.write_plan(tmp_path_factory.mktemp("home") / "run")


def pack(world: World, *texts: bytes) -> bytes:
    """A file of a whose lines unpack to these texts, under its own key."""
    lines = world.sign("a", [[HELLO]])
    signer = world.signer("a", lines)
    return b"".join((*lines, *map(signer.add, texts)))


def _repeat(message: object, times: int) -> bytes:
    return b"\n".join([encode_message(message)] * times)


# Files of a that are larger than all that a host has to say, and the reason that it fails with: as
# large as somebody makes them, or (``size`` 1) a little too large.
LARGE: dict[str, tuple[Callable[[World, int], bytes], str]] = {
    "a small line of many messages": (
        lambda w, size: pack(w, _repeat(Closed(1), size * 100_000)), TOO_MUCH,
    ),
    "a line of one large message": (
        lambda w, size: pack(w, b'["Closed",1' + b" " * size * 9 * MIB + b"]"), TOO_MUCH,
    ),
    "twenty lines of one large message": (
        lambda w, size: pack(w, *[b'["Closed",1' + b" " * size * MIB + b"]"] * 20), TOO_MUCH,
    ),
    "many values": (
        lambda w, size: pack(w, b'["SeenOrder",1,1,[' + b"0," * size * 600_000 + b"0]]"), TOO_MUCH,
    ),
    "lists in lists": (
        lambda w, size: pack(w, b"[" + (b"[" * 500 + b"]" * 500) * size * 1100 + b"]"), TOO_MUCH,
    ),
    "many small lines": (
        lambda w, size: pack(w, *[_repeat(Closed(1), 500)] * 150 * min(size, 9)), TOO_MUCH,
    ),
    "orders that ask every port of many addresses": (
        lambda w, _: pack(
            w,
            encode_message(
                probe(1, "tcp", "10.0.0.2", [(port, port) for port in range(1, 20000, 2)])._replace(
                    more=[ProbeDestination(2, "10.0.0.3", None, [])] * 9000
                )
            ),
        ),
        "orders that ask more than the plan does",
    ),
    "noise, as much as a file may hold": (
        lambda w, size: pack(w, random.Random(1).randbytes(min(6, size) * MIB)),
        "holds what no host",
    ),
    "objects, as many as there may be": (
        lambda w, _: pack(w, b'["StreamInfo",1,[' + b'{"":1},' * 180_000 + b"0]]"),
        "an object",
    ),
    "many bytes of nothing": (lambda _, size: bytes(9 * MIB * size), "larger than 8 MiB"),
    "many first lines": (
        lambda w, size: b"".join(w.lines("a")[:1] * 100_000 * size), "larger than 8 MiB",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", LARGE)
def test_a_file_that_is_too_large_is_one_bad_host(
    world: World, plan: Path, tmp_path: Path, what: str
) -> None:
    """Packed or not: that host has failed with the reason, and the others are reported."""
    make, reason = LARGE[what]
    merged = merge_files(plan, tmp_path, world.files(a=[make(world, 1)]))
    assert merged.hosts["a"].state == "failed"
    assert reason in merged.hosts["a"].words
    assert count(merged, "b", "c") == {"pass": 8, "blocked": 2}
    assert count(merged, "c", "b") == {"pass": 10}


def test_what_a_host_may_write_grows_with_the_plan() -> None:
    """64 messages for each flow that begins or ends there, whoever the other end is."""
    found = count_flows(plan_of(WEB, ("ping", "icmp", ())))
    # Ten ports and an echo; three ends each way, its own too.
    assert found == dict.fromkeys("abc", 11 * 6)
    assert allow(0).messages == 64_000
    assert allow(66).messages - allow(0).messages == 66 * 64
    assert count_values(b'[1,[2,{"a":3}]]') == 6


@pytest.mark.slow
def test_a_whole_line_of_all_that_is_allowed_is_read(
    world: World, plan: Path, tmp_path: Path
) -> None:
    """Not one message less; what it says is of no order, so that it changes nothing."""
    most = allow(count_flows(world.request.plan)["a"]).messages
    data = b"".join(world.lines("a"))
    lines = len([one for some in world.recordings["a"].answers.values() for one in some])
    text = _repeat(Closed(9999), most - 2 * lines - 20)
    more = world.signer("a", world.lines("a")).add(text)
    merged = merge_files(plan, tmp_path, world.files(a=[data, more]))
    assert merged.hosts["a"].state == "agent"
    assert count(merged) == {"pass": 58, "blocked": 2}


def bundle_with(plan: bytes, directory: int = 0) -> bytes:
    """A plan's file; ``directory``: how many empty members it has besides."""
    packed = io.BytesIO(pack_plan({}, plan))
    with zipfile.ZipFile(packed, "a") as archive:
        for number in range(directory):
            archive.writestr(f"{number}", b"")
    return packed.getvalue()


def change_plan(world: World, **values: object) -> bytes:
    """The plan with other values."""
    return json.dumps({**json.loads(write_request(world.request)), **values}).encode()


# Files that are given as bundles, and the reason that they are refused with.
PLANS: dict[str, tuple[Callable[[World, int], bytes], str]] = {
    "a plan of zeros": (lambda _, size: bundle_with(bytes(size * 49 * MIB)), "is no bundle"),
    "a plan of values": (
        lambda _, size: bundle_with(b"[" + b"{}," * min(16_000_000, size * 2_000_000) + b"0]"),
        "its plan is larger",
    ),
    "a plan of lists in lists": (
        lambda _, size: bundle_with(b"[" * 500 * min(90_000, size * 6000)), "its plan is larger",
    ),
    "a round of the far future": (
        lambda w, _: bundle_with(change_plan(w, round=10**12)), "expected a number from 1 to",
    ),
    "an order of the far future": (
        lambda w, _: bundle_with(change_plan(w, next_id=10**12)), "expected a number from 1 to",
    ),
    "an archive of many members": (lambda _, size: bundle_with(b"", 40 * size), "is no bundle"),
    "many bytes of nothing": (lambda _, size: bytes(size * MIB), "is no bundle"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", PLANS)
def test_a_bundle_that_is_too_large_is_refused_by_name(
    world: World, tmp_path: Path, what: str
) -> None:
    """Before it is unpacked and read."""
    make, reason = PLANS[what]
    path = tmp_path / "run.pyz"
    path.write_bytes(make(world, 1))
    with pytest.raises(RequestError, match=reason) as caught:
        open_run(path, [])
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.slow
def test_what_is_written_can_be_read(world: World, tmp_path: Path) -> None:
    """A plan may be as large as a file that is read; a larger one is not written."""
    path = tmp_path / "run.pyz"
    path.write_bytes(bundle_with(bytes(MOST_PLAN_BYTES)))
    assert len(open_bundle(path).plan) == MOST_PLAN_BYTES


def test_an_engines_folder_has_the_same_bounds(world: World, tmp_path: Path) -> None:
    """Its plan and its results are files like others."""
    (tmp_path / "results").mkdir()
    plan, results = tmp_path / PLAN_FILE, tmp_path / "results"
    plan.write_bytes(write_request(world.request))
    (results / "a.npr").symlink_to("/dev/zero")
    (results / "a.error").symlink_to("/dev/zero")
    for name in "bc":
        (results / f"{name}.npr").write_bytes(b"".join(world.lines(name)))
    stored = open_run(tmp_path, [])
    assert [one.name for one in stored.recordings] == ["b", "c"]
    assert "this is a device" in stored.missing["a"]
    plan.unlink()
    plan.symlink_to("/dev/zero")
    with pytest.raises(RequestError, match="this is a device, expected a folder of"):
        open_run(tmp_path, [])


def merge_in_child(folder: Path, *words: Path) -> tuple[Cost, str]:
    """Merge by the command; gives what it cost, and what it said."""
    with tempfile.TemporaryFile(dir=folder) as err:
        cost = run_measured(
            [*COMMAND, "merge", *words, "-o", "json"], cwd=folder, env=environment(),
            stdout=subprocess.DEVNULL, stderr=err,
        )  # fmt: skip
        return cost, os.pread(err.fileno(), 1 << 20, 0).decode()


def _list_costly(world: World, folder: Path) -> Iterator[tuple[str, int, list[Path]]]:
    """Everything at its largest: what it is, the status of the merge, and its words."""
    plan = folder / "run" / "plan.pyz"
    good = [folder / f"{name}.npr" for name in "bc"]
    bad = folder / "a.npr"
    for what, (make, _) in LARGE.items():
        bad.write_bytes(make(world, 80))
        yield what, 1, [plan, bad, *good]
    bad.unlink()
    bad.touch()
    os.truncate(bad, 1 << 40)
    yield "a terabyte of nothing", 1, [plan, bad, *good]
    for make_file, what in ((os.mkfifo, "a pipe without a writer"), (_link_zero, "a device")):
        bad.unlink()
        make_file(bad)
        yield f"{what} as results", 1, [plan, bad, *good]
        yield f"{what} as a bundle", 2, [bad, *good]
    for what, (make, _) in PLANS.items():
        path = folder / "run.pyz"
        path.write_bytes(make(world, 40))
        yield f"a bundle: {what}", 2, [path, *good]


def _link_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.full
def test_whatever_is_refused_costs_little(world: World, tmp_path: Path) -> None:
    """10 s of processor and 300 MB, whatever somebody has made of a file; so does a whole merge."""
    world.write_plan(tmp_path / "run")
    for name, lines in world.files().items():
        (tmp_path / name).write_bytes(b"".join(lines))
    names = [tmp_path / name for name in world.files()]
    whole = "a whole merge", 1, [tmp_path / "run" / "plan.pyz", *names]
    for what, expected, words in itertools.chain([whole], _list_costly(world, tmp_path)):
        cost, said = merge_in_child(tmp_path, *words)
        sys.stderr.write(f"{what:60} {cost.seconds:6.1f} s {cost.kib // 1024:5} MiB\n")
        assert cost.status == expected, (what, said)
        assert "Traceback" not in said, what
        assert cost.seconds < MOST_SECONDS, what
        assert cost.kib < MOST_KIB, what
