"""``--cover``, ``--seed`` and ``--zone-groups`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import netprobe

pytestmark = pytest.mark.slow

TINY = ("-m", "./tiny.yaml")
# Six hosts on loopback: one machine, so that zones of groups are all that tells them apart.
SIX = "schema: netprobe.inventory/1\nhosts:\n" + "".join(
    f"  h{number}: {{address: 127.0.1.{number + 1}, roles: [node, rack_{number // 3}], "
    "vantage: local}\n"
    for number in range(6)
)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ["--cover", "some"],
            "netprobe: --cover some: expected all, zones, or zones:K with K from",
        ),
        (["--cover", "zones:0"], "netprobe: --cover zones:0: expected all, zones, or zones:K"),
        (["--cover", "zones", "--sample", "2"], "--cover zones and --sample contradict each other"),
        (
            ["--cover", "zones", "--zone-groups", "rack*"],
            "--zone-groups rack*: no group or role of",
        ),
    ],
)
def test_wrong_words(folder: Path, words: list[str], problem: str) -> None:
    """Exit 2, and what would be right."""
    done = netprobe("run", *TINY, *words, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr


def test_a_plan_tells_what_it_covers(folder: Path) -> None:
    """The count has the sentence; JSON the pairs, and only the flows that are probed."""
    (folder / "inventory.yaml").write_text(SIX)
    words = ("--cover", "zones", "--zone-groups", "rack_*", "--only", "web")
    counted = netprobe("plan", *TINY, *words, "--count", cwd=folder)
    first, second = counted.stdout.splitlines()
    assert counted.returncode == 0
    assert second.startswith("coverage: ")
    assert "flows are probed" in second
    assert "each of 6 hosts to and from each of 2 zones" in second
    plan = json.loads(netprobe("plan", *TINY, *words, "-o", "json", cwd=folder).stdout)
    assert sorted(plan["coverage"]["zones"]) == ["rack_0", "rack_1"]
    assert (plan["coverage"]["pairs"], plan["coverage"]["required"]) == (12, 36 * 22)
    probed = sum(b - a + 1 for flow in plan["flows"] for a, b in flow["ports"])
    assert probed == plan["totals"]["flows"] == plan["coverage"]["probed"]
    assert first.startswith(f"{probed} flows")
    other = json.loads(
        netprobe("plan", *TINY, *words, "--seed", "1", "-o", "json", cwd=folder).stdout
    )
    assert [(one["source"], one["destination"]) for one in other["flows"]] != [
        (one["source"], one["destination"]) for one in plan["flows"]
    ]


def test_a_covering_run_and_its_record(folder: Path) -> None:
    """Where all hosts are one machine all pass; the record gives the same report again."""
    (folder / "inventory.yaml").write_text(SIX)
    words = ("--cover", "zones", "--zone-groups", "rack_*", "--only", "web", "--no-recorder")
    done = netprobe("run", *TINY, *words, "--record", "r", "-o", "json", cwd=folder)
    run = json.loads(done.stdout)
    assert (done.returncode, run["complete"]) == (0, True)
    assert run["summary"]["pass"] == run["coverage"]["probed"]
    assert run["summary"]["pass"] + run["summary"]["covered"] == 36 * 22
    again = netprobe("report", "r", "-o", "json", cwd=folder)
    assert again.returncode == 0
    assert json.loads(again.stdout)["coverage"] == run["coverage"]
