"""What the root of one host makes of the file that he was given, against the results of another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from netprobe.batch.bundle import pack_bundle
from netprobe.batch.request import write_request
from netprobe.batch.script import derive_result_key
from tests.agent.batch.carried import run
from tests.batch.merging import FLOWS, WEB, World, count, make_world, merge_files
from tests.batch.world import carry_out, hear_each_other, plan_of, write_results
from tests.cli.command import netprobe

REASONS = (
    "says that it is of b, and was not written with the key of b",
    "is of a, not of b: were files swapped?",
    "which is no host of this run",
    "is not as the host wrote it",
)


@pytest.fixture(scope="module")
def world() -> World:
    """Two of sixty flows are blocked, both of b."""
    return make_world(plan_of(WEB))


@pytest.fixture(scope="module")
def plan(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan that stayed at home."""
    return world.write_plan(tmp_path_factory.mktemp("home") / "run")


def forge(world: World) -> Iterator[tuple[str, list[bytes]]]:
    """Everything that a's root may try to have b's flows pass: he even knows b's whole script."""
    mine, others = world.scripts["a"].start, world.scripts["b"].start
    wanted = carry_out(world.scripts["b"])
    keys = {
        "his own key": mine.result_key,
        "the run's key": world.request.key,
        "made of the run's key": derive_result_key(world.request.key, others.host),
        "made of his own key": derive_result_key(mine.result_key, others.host),
        "no key": bytes(32),
    }
    for words, key in keys.items():
        yield words, write_results(wanted, others, key)
        yield f"{words}, his own index", write_results(wanted, others, key, host=mine.host)
        yield f"{words}, his own name", write_results(wanted, others, key, name="a")
        yield f"{words}, all his own", write_results(wanted, mine, key)
        yield f"{words}, a host more", write_results(wanted, others, key, host=3)
        genuine = world.lines("b")
        for at in range(1, len(genuine)):
            rest = write_results(wanted, others, key)[at:]
            yield f"{words}, behind {at} genuine lines", [*genuine[:at], *rest]


@pytest.mark.slow
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.full)])
def test_no_host_writes_the_results_of_another(
    world: World, plan: Path, tmp_path: Path, step: int
) -> None:
    """In place of b's file whatever a's root makes is no result, and b has failed with the reason;
    what a and c say of each other is reported."""
    genuine = count(merge_files(plan, tmp_path, world.files()))
    assert genuine == {"pass": FLOWS - 2, "blocked": 2}

    tries = list(forge(world))[::step]
    assert len(tries) * step > 100
    for what, lines in tries:
        merged = merge_files(plan, tmp_path, world.files(b=lines))
        failed = merged.hosts["b"]
        assert failed.state == "failed", what
        assert failed.words.startswith(f"{tmp_path}/b.npr: "), what
        assert any(reason in failed.words for reason in REASONS), (what, failed.words)
        assert count(merged, "b") == {"not-tested": 20}, what
        assert count(merged, "a", "c") == count(merged, "c", "a") == {"pass": 10}, what


@pytest.mark.slow
def test_a_forged_file_beside_the_genuine_one_changes_nothing(
    world: World, plan: Path, tmp_path: Path
) -> None:
    """It counts for no host."""
    for what, lines in list(forge(world))[::20]:
        merged = merge_files(plan, tmp_path, {**world.files(), "other/b.npr": lines})
        assert count(merged) == {"pass": FLOWS - 2, "blocked": 2}, what


def test_a_bundle_runs_for_its_own_host_alone(world: World, plan: Path) -> None:
    """There is no other host in it."""
    done = run(plan.parent / "a.pyz", "--host", "b")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "netprobe: there is no host b in this run; its hosts are a\n"


@pytest.mark.slow
def test_one_bundle_for_all_says_in_its_report_what_that_means(
    world: World, plan: Path, tmp_path: Path
) -> None:
    """Whoever has it can write for all hosts; the head of its report says so, and of no other."""
    shared = replace(world.request, is_shared=True)
    bundle = tmp_path / "run.pyz"
    bundle.write_bytes(pack_bundle({}, world.scripts.values(), write_request(shared)))
    all_good = {**world.recordings, "b": carry_out(world.scripts["b"])}
    wanted = {one.name: one for one in hear_each_other([*all_good.values()])}
    forged = {name: write_results(wanted[name], world.scripts[name].start) for name in "bc"}
    # What c's listener has never noted is no pass: he writes c's file, too.
    alone = count(merge_files(bundle, tmp_path, world.files(b=forged["b"])))
    assert alone == {"pass": FLOWS - 2, "inconclusive": 2}
    assert count(merge_files(bundle, tmp_path, world.files(**forged))) == {"pass": FLOWS}

    names = [str(tmp_path / name) for name in world.files()]
    done = netprobe("merge", str(bundle), *names, cwd=tmp_path)
    assert done.returncode == 0
    head = done.stdout.splitlines()[:2]
    assert head[0].startswith("TRUST: one bundle held the keys of all hosts, so that each of them")
    assert head[1].startswith("PASS: all 60")
    report = json.loads(netprobe("merge", str(bundle), *names, "-o", "json", cwd=tmp_path).stdout)
    assert report["trust"] in head[0]

    done = netprobe("merge", str(plan), *names, "-o", "json", cwd=tmp_path)
    assert json.loads(done.stdout)["trust"] is None
