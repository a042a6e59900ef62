"""A run without a coordinator finds what the firewall does, and says what it does not know."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.batch.support import change_content
from tests.lab.batch import MOST_ROUNDS, drive, netprobe, rows_of, stop
from tests.lab.netlab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]

MATRIX = """\
schema: netprobe.matrix/1
name: small
title: A few flows between three machines
roles:
  node: {description: A machine.}
requirements:
  - {id: web, from: node, to: node, tcp: [443, 8000-8009], purpose: Requests}
  - {id: gossip, from: node, to: node, udp: [7946], purpose: Who is alive}
  - {id: ping, from: node, to: node, icmp: echo, purpose: Monitoring}
"""
ADDRESSES = {"a": "10.83.1.2", "b": "10.83.2.2", "c": "10.83.3.2"}
# Dropped, and refused by the router.
DROPPED = {("web", "a", "b", port) for port in range(8003, 8006)} | {("gossip", "c", "a", 7946)}
REFUSED = {("web", "b", "c", 443)}
RULES = """
table inet lab { chain forward { type filter hook forward priority 0;
  ip saddr 10.83.1.2 ip daddr 10.83.2.2 tcp dport 8003-8005 drop
  ip saddr 10.83.3.2 ip daddr 10.83.1.2 udp dport 7946 drop
  ip saddr 10.83.2.2 ip daddr 10.83.3.2 tcp dport 443 reject with icmp admin-prohibited
  }
}
"""


class Done(NamedTuple):
    """What a run by an engine has left: its folder, and what every round was about."""

    folder: Path
    rounds: int


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    """Three machines behind one router, and an engine that drives them until nothing is open."""
    with Lab() as lab:
        router = lab.router("fw", "10.83.0.1")
        for name, address in ADDRESSES.items():
            lab.host(name, router, address)
        lab.wait_until_ready()
        router.nft(RULES)
        inventory = lab.inventory({name: ["node"] for name in ADDRESSES})
        matrix = lab.write("matrix.yaml", MATRIX)
        folder = tmp_path_factory.mktemp("batch") / "engine"
        netprobe("bundle", "-m", str(matrix), "-i", str(inventory), "--folder", str(folder))
        rounds = 0
        while json.loads((folder / "engine.json").read_bytes())["hosts"]:
            assert rounds < MOST_ROUNDS, "the rounds have no end"
            drive(lab, folder)
            rounds += 1
            netprobe("bundle", "--next", str(folder))
        stop(lab, folder, enumerate(_order(folder)))
        yield Done(folder, rounds)


def _order(folder: Path) -> list[str]:
    found: list[str] = json.loads((folder / "plan.json").read_bytes())["order"]
    return found


def _merge(folder: Path, *, status: int) -> dict[str, Any]:
    merged: dict[str, Any] = json.loads(
        netprobe("merge", str(folder), "-o", "json", ok=(status,)).stdout
    )
    return merged


def _flows(document: dict[str, Any], verdict: str) -> set[tuple[str, str, str, int]]:
    return {
        (key[0], key[1], key[2], key[5])
        for key, one in rows_of(document).items()
        if one["verdict"] == verdict
    }


def _copy(done: Done, place: Path) -> Path:
    return Path(shutil.copytree(done.folder, place / "copy"))


def test_the_report_is_that_of_a_run(done: Done) -> None:
    """Exactly what the firewall stops is blocked, on the path, and the refuser is named."""
    document = _merge(done.folder, status=1)

    assert _flows(document, "blocked") == DROPPED | REFUSED
    assert len(_flows(document, "pass")) == 6 * 13 - len(DROPPED | REFUSED)
    assert {tuple(one["where"]) for one in document["results"] if one["verdict"] == "blocked"} == {
        ("path",)
    }
    refused = [one for one in document["results"] if one["reason"] == "admin-prohibited"]
    assert {one["rejected_by"] for one in refused} == {"10.83.0.1"}
    assert {host["state"] for host in document["hosts"]} == {"agent"}
    assert 1 < done.rounds < MOST_ROUNDS


def test_hosts_without_a_file_are_not_tested(done: Done, tmp_path: Path) -> None:
    """Words of the engine say why, where it had some; nothing else changes."""
    folder = _copy(done, tmp_path)
    (folder / "results" / "c.npr").unlink()
    (folder / "results" / "c.error").write_text("ssh: connect to host c port 22: No route to host")

    document = _merge(folder, status=1)

    rest = {flow for flow in DROPPED | REFUSED if "c" not in flow[1:3]}
    assert _flows(document, "blocked") == rest
    untested = [one for one in document["results"] if one["verdict"] == "not-tested"]
    assert {flow for flow in _flows(document, "not-tested") if "c" not in flow[1:3]} == set()
    assert untested
    assert all("No route to host" in one["because"] for one in untested)


def test_a_file_that_is_cut_is_read_up_to_there(done: Done, tmp_path: Path) -> None:
    """Anywhere: nothing is blocked that the whole files do not show, and a note names the file."""
    folder = _copy(done, tmp_path)
    path = folder / "results" / "a.npr"
    whole = path.read_bytes()

    told = []
    for part in (0.1, 0.3, 0.7):
        path.write_bytes(whole[: int(len(whole) * part)])
        merged = netprobe("merge", str(folder), "-o", "json")
        assert _flows(json.loads(merged.stdout), "blocked") <= DROPPED | REFUSED
        told.append(b"a.npr: is cut off after" in merged.stderr)
    # Every round repeats what was there before, so that a later cut leaves a round whole.
    assert told[0]


def test_a_file_that_is_not_what_the_host_wrote_is_a_host_without_results(
    done: Done, tmp_path: Path
) -> None:
    """Swapped, altered, of another run: that host has failed with the reason, the others are
    reported as they were."""
    folder = _copy(done, tmp_path)
    one, other = (folder / "results" / f"{name}.npr" for name in "ab")
    whole = one.read_bytes()
    first = whole.index(b'"run":"') + 7
    bad = {
        other.read_bytes(): "is of b, not of a: were files swapped?",
        change_content(whole): "not ",
        whole[:first] + b"f" * 16 + whole[first + 16 :]: "is of run ffffffffffffffff, not of ",
    }
    for content, words in bad.items():
        one.write_bytes(content)
        document = _merge(folder, status=1)
        (failed,) = [host for host in document["hosts"] if host["state"] == "failed"]
        assert failed["name"] == "a"
        assert words in failed["words"]
        rest = {flow for flow in DROPPED | REFUSED if "a" not in flow[1:3]}
        assert _flows(document, "blocked") == rest
        assert len(_flows(document, "pass") - {("ping", "b", "a", 0), ("ping", "c", "a", 0)}) == (
            2 * 13 - len(rest)
        )
