"""What is accepted behind a real firewall: what nft stops, and not one flow more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.cli import netprobe
from tests.lab.netlab import Lab
from tests.lab.test_retry import filter_on_router, lab, run_netprobe

__all__ = ["lab"]

pytestmark = [pytest.mark.lab, pytest.mark.slow]

REJECT = "reject with tcp reset"
WHO = ("--reason", "vendor", "--owner", "team", "--ticket", "CHG-7", "--until", "never")


def ports_of(path: Path, key: str) -> set[int]:
    """The TCP ports of a JSON report that have this key, or this verdict."""
    return {
        port
        for one in json.loads(path.read_text())["results"]
        if one["protocol"] == "tcp" and (one.get(key) or one["verdict"] == key)
        for port in range(one["port"], one["end_port"] + 1)
    }


def test_a_firewall_that_moves_its_rules(lab: Lab) -> None:
    """Accepted is what was stopped then; what is stopped since decides; all else is open."""
    folder = Path(lab.folder)
    first, second, third = (folder / f"{name}.json" for name in "abc")
    accepted = folder / "accepted.yaml"
    before, after = {*range(3010, 3020), 3050}, {*range(3010, 3013), 3050, 3060}
    everything = set(range(3000, 3100))

    filter_on_router(lab, f"tcp dport {{ 3010-3019, 3050 }} {REJECT}")
    run = run_netprobe(lab, "-o", f"json={first}")
    findings = json.loads(first.read_text())["findings"]
    numbers = [word for one in findings for word in ("--finding", str(one["number"]))]
    entries = netprobe("accept", str(first), *numbers, *WHO)
    accepted.write_text(entries.stdout)
    same = run_netprobe(lab, "--accepted", str(accepted), "-o", f"json={second}", "-o", "text")

    assert (run.status, entries.status, same.status) == (1, 0, 0), same.stderr
    assert same.stdout.startswith("PASS: all 90 other required flows are as they should be; 11 acc")
    assert ports_of(second, "accepted") == ports_of(second, "blocked") == before
    assert ports_of(second, "pass") == everything - before

    filter_on_router(lab, f"tcp dport {{ 3010-3012, 3050, 3060 }} {REJECT}")
    words = ("--accepted", str(accepted), "--baseline", str(first), "--fail-on", "new")
    moved = run_netprobe(lab, *words, "-o", f"json={third}", "-o", "text")
    told = json.loads(third.read_text())["accepted"]

    assert moved.status == 1, moved.stderr
    assert moved.stdout.startswith("BLOCKED: 1 blocked of 97 required flows, 1 finding; 4 accepted")
    assert ports_of(third, "accepted") == before & after
    assert ports_of(third, "known") == before & after
    assert ports_of(third, "blocked") == after
    assert ports_of(third, "pass") == everything - after
    assert {"too-wide"} <= {one["state"] for one in told} <= {"too-wide", "active"}
    assert sum(one["passing"] for one in told) == len(before - after)

    diff = netprobe("diff", str(first), str(third), "-o", "json")
    assert diff.status == 1
    assert diff.document["counts"] | {"unchanged": 0} == {
        **dict.fromkeys(diff.document["counts"], 0),
        "worse": 1, "fixed": 7, "still": 4, "failed": 11,
    }  # fmt: skip
