"""A live UDP service that answers whatever it gets, where no ``probe:`` says what it should say."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.lab.cli import netprobe
from tests.lab.netlab import Lab
from tests.lab.services import PYTHON

pytestmark = pytest.mark.lab

TALKS, ECHOES, SAYS_NOTHING, LISTENS = 5140, 5141, 5142, 5143
# Any datagram is answered: by a text, by itself, by an empty one, not at all.
SERVICE = f"""
import select, socket
answers = {{{TALKS}: lambda data: b"statsd 1.0 ready", {ECHOES}: lambda data: data,
           {SAYS_NOTHING}: lambda data: b"", {LISTENS}: None}}
sockets = {{}}
for port in answers:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("0.0.0.0", port))
    sockets[sock] = answers[port]
while True:
    for sock in select.select(list(sockets), [], [])[0]:
        data, sender = sock.recvfrom(2048)
        if sockets[sock]:
            sock.sendto(sockets[sock](data), sender)
"""
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "udp",
    "title": "UDP",
    "roles": {"a": {}, "b": {}},
    "requirements": [
        {"id": f"udp-{port}", "from": "a", "to": "b", "udp": [port], "process": PYTHON}
        for port in (TALKS, ECHOES, SAYS_NOTHING, LISTENS)
    ]
    + [{"id": "dns", "from": "a", "to": "b", "udp": [TALKS], "probe": "dns", "process": PYTHON}]
    + [{"id": "denied", "from": "a", "to": "b", "udp": [TALKS], "expect": "denied"}],
}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Two hosts behind a router; the service runs on the second."""
    with Lab() as made:
        router = made.router("router", "10.87.0.1")
        made.host("source", router, "10.87.1.2")
        host = made.host("target", router, "10.87.2.2")
        made.wait_until_ready()
        host.spawn(sys.executable, "-c", SERVICE)
        host.wait_until_listening(*(f"udp 0.0.0.0:{port}" for port in (TALKS, LISTENS)))
        yield made


def _verdicts(lab: Lab, *words: str, agent: bool = True) -> dict[str, tuple[str, ...]]:
    hosts: dict[str, Any] = {
        name: {
            "address": lab[name].address(4),
            "roles": [role],
            "vantage": {"command": lab[name].enter},
        }
        for name, role in (("source", "a"), ("target", "b"))
    }
    if not agent:
        hosts["target"]["vantage"] = "none"
    inventory = lab.write(
        "inventory.yaml", yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": hosts})
    )
    matrix = lab.write("udp.yaml", yaml.safe_dump(MATRIX))
    done = netprobe("run", "-m", str(matrix), "-i", str(inventory), "-o", "json", *words)
    return {
        one["requirement"]: (one["verdict"], one["reason"], one["proof"])
        for one in json.loads(done.stdout)["results"]
    }


ANSWERED = ("pass", "udp-response", "handshake")
# Without an agent nobody tells which program holds a port that should still be free.
UNKNOWN = ("inconclusive", "unknown-holder", "handshake")


@pytest.mark.parametrize("agent", [True, False])
def test_any_answer_of_the_port_proves_the_flow(lab: Lab, agent: bool) -> None:
    """What the answer says is nobody's question, unless ``probe:`` asks; silence stays silence."""
    found = _verdicts(lab, agent=agent)

    expected = ANSWERED if agent else UNKNOWN
    assert [found[f"udp-{port}"] for port in (TALKS, ECHOES, SAYS_NOTHING)] == [expected] * 3
    assert found[f"udp-{LISTENS}"][0] == "inconclusive"
    assert found["dns"] == ("inconclusive", "udp-response", "none")
    assert found["denied"][0] == "exposed"


def test_strictly_it_is_only_a_handshake(lab: Lab) -> None:
    """With --strict whoever answers must be known, as for TCP."""
    assert _verdicts(lab, "--strict")[f"udp-{TALKS}"][0] == "inconclusive"
