"""A source whose own firewall resets what would leave for a neighbour without an agent.

source - router-1, which is the neighbour here: its resets and the source's own arrive with one TTL,
and without rights no recorder tells them apart.
"""

from __future__ import annotations

import sys

import pytest

from tests.lab.netlab import Lab, Namespace
from tests.lab.test_truth import THERE, Chain, table

pytestmark = pytest.mark.lab

OUTPUT = "filter hook output priority 0"
NEIGHBOUR = {4: "10.94.1.1", 6: "fd94:1::1"}
OWN, THEIRS = (7000, 7003), (7004, 7004)

Said = tuple[str, str, tuple[str, ...]]


def find_verdicts(
    chain: Chain, ports: str, there: dict[int, str], *, rights: bool
) -> dict[tuple[int, int], set[Said]]:
    """What both families say of each range of ports."""
    results = chain.run({"tcp": [ports]}, agent=False, there=there, rights=rights)
    found: dict[tuple[int, int], set[Said]] = {}
    for one in results.values():
        said = one["verdict"], one["reason"], tuple(one["where"])
        found.setdefault((one["port"], one["end_port"]), set()).add(said)
    return found


# Another program that uses loopback all the time, and rests in between.
CHATTER = """
import socket, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    sock.sendto(b"x", ("127.0.0.1", 9))
    time.sleep(0.002)
"""


def use_loopback(source: Namespace) -> None:
    """Let another program of the source use its loopback."""
    source.spawn(sys.executable, "-c", CHATTER)


@pytest.mark.parametrize(
    "rights", [pytest.param(True, marks=pytest.mark.full, id="capture"), False]
)
@pytest.mark.parametrize(
    "busy", [pytest.param(True, marks=pytest.mark.full, id="busy-loopback"), False]
)
def test_own_resets_of_the_source_are_blocked_there(rights: bool, busy: bool) -> None:
    """Port by port: 7004 the neighbour refuses itself, and that passes."""
    with Lab() as lab:
        chain = Chain(lab)
        wall = f"tcp dport {OWN[0]}-{OWN[1]} reject with tcp reset"
        chain.source.nft(table(OUTPUT, "own", wall))
        if busy:
            use_loopback(chain.source)

        found = find_verdicts(chain, "7000-7004", NEIGHBOUR, rights=rights)

    assert found == {
        OWN: {("blocked", "local-firewall", ("source",))},
        THEIRS: {("pass", "reset", ())},
    }


def test_own_resets_behind_a_router() -> None:
    """Without rights, three ports of a hundred: a few of a range do not stand for them."""
    with Lab() as lab:
        chain = Chain(lab)
        chain.source.nft(table(OUTPUT, "own", "tcp dport 7021-7023 reject with tcp reset"))

        found = find_verdicts(chain, "7000-7100", THERE, rights=False)

    passed = {("pass", "reset", ())}
    assert found == {
        (7000, 7020): passed,
        (7021, 7023): {("blocked", "local-firewall", ("source",))},
        (7024, 7100): passed,
    }
