"""One bad link of a bundle: a hash over the source port decides which packets are lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lab.cli import netprobe
from tests.lab.netlab import Lab

pytestmark = pytest.mark.lab

ROLES = {"a": ["src"], "b": ["dst"]}
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "bundle",
    "title": "Many flows of one pair",
    "roles": {"src": {}, "dst": {}},
    "requirements": [
        {"id": "api", "from": "src", "to": "dst", "tcp": ["7000-7039"], "purpose": "x"},
        {"id": "dns", "from": "src", "to": "dst", "udp": [53], "purpose": "x"},
    ],
}
# A quarter of all source ports meets the bad link, on the way there or back; else random packets.
# Of any 16 neighbours it is 4. By a hash it would be none of them once in a hundred runs.
BAD_LINK = "tcp {} & 6 == 6 drop"
LOSS = "numgen random mod 4 0 drop"


def run(*rules: str) -> list[dict[str, Any]]:
    """The results of a run through a router with these rules."""
    with Lab() as lab:
        router = lab.router("router", "10.98.0.1")
        for number, name in enumerate(ROLES):
            lab.host(name, router, f"10.98.{number + 1}.2")
        lab.wait_until_ready()
        lines = "\n".join(("type filter hook forward priority 0;", *rules))
        router.nft(f"table inet bundle {{ chain forward {{\n{lines}\n}}\n}}")
        matrix = lab.write("matrix.json.yaml", json.dumps(MATRIX))
        inventory = lab.inventory(ROLES)
        return netprobe("run", "-m", str(matrix), "-i", str(inventory), "-o", "json").results


@pytest.mark.parametrize(
    ("end", "back"), [("dport 7000-7039", "sport"), ("sport 7000-7039", "dport")]
)
def test_a_bad_link_is_told_from_loss(end: str, back: str) -> None:
    """Some source ports fail every time; what was asked from others gets through."""
    results = run(f"tcp {end} {BAD_LINK.format(back)}")

    bad = [one for one in results if one["reason"] == "bad-link"]
    assert bad
    assert {one["verdict"] for one in results if one not in bad} == {"pass"}
    assert {(one["verdict"], tuple(one["where"])) for one in bad} == {
        ("blocked", ("path", "return-path"))
    }
    assert bad[0]["because"].startswith("4 of 16 source ports fail every time (")


def test_datagrams_that_all_met_the_bad_link_are_asked_from_other_ports() -> None:
    """All packets of one look at UDP come from one source port."""
    results = run("udp dport 53 udp sport != 20000-29999 drop", "udp sport & 2 == 2 drop")

    (dns,) = (one for one in results if one["protocol"] == "udp")
    assert (dns["verdict"], dns["reason"]) == ("blocked", "bad-link")
    assert dns["because"].startswith("8 of 16 source ports fail every time (")


def test_random_loss_is_no_bad_link() -> None:
    """Then other packets get lost each time."""
    assert {one["verdict"] for one in run(f"ip protocol tcp {LOSS}")} == {"pass"}
