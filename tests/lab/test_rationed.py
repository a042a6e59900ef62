"""UDP ports of a host without an agent: refusals are few a second, and silence has no pace."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.lab.cli import netprobe
from tests.lab.netlab import Lab
from tests.lab.test_truth import table

pytestmark = [pytest.mark.lab, pytest.mark.full]

# The first six are those that go first.
FIRST, LAST = 2000, 2019
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "datagrams",
    "title": "A range of UDP ports",
    "roles": {"client": {}, "server": {}},
    "requirements": [{"id": "range", "from": "client", "to": "server", "udp": [f"{FIRST}-{LAST}"]}],
}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A client, a server without an agent, and a router that may drop."""
    with Lab() as made:
        router = made.router("fw", "10.99.0.1")
        for at, name in enumerate("ab", start=1):
            made.host(name, router, f"10.99.{at}.2")
        made.wait_until_ready()
        made.inventory({"a": ["client"], "b": ["server"]}, without_agent=["b"])
        made.write("matrix.yaml", yaml.safe_dump(MATRIX))
        yield made


@pytest.mark.parametrize(
    ("dropped", "passing"),
    [
        ("2000-2019", range(0)),
        # The pace begins only when the others are refused.
        ("2000-2005", range(2006, LAST + 1)),
        ("2003, 2011", set(range(FIRST, LAST + 1)) - {2003, 2011}),
    ],
)
def test_every_refusal_is_heard(lab: Lab, dropped: str, passing: range | set[int]) -> None:
    """What the server's kernel refuses passes, and what the router drops stays open."""
    drop = f"udp dport {{ {dropped} }} drop"
    rules = table("filter hook forward priority 0", "wall", drop)
    lab["fw"].nft(f"table inet wall {{}}\ndelete table inet wall\n{rules}")
    matrix, inventory = lab.folder / "matrix.yaml", lab.folder / "inventory.yaml"

    done = netprobe("run", "-m", str(matrix), "-i", str(inventory), "-o", "json")

    passes = {
        port
        for one in json.loads(done.stdout)["results"]
        if one["verdict"] == "pass"
        for port in range(one["port"], one["end_port"] + 1)
    }
    assert passes == set(passing), done.stderr
