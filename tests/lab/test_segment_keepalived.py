"""A real pair of keepalived on the hosts of a row of protocol 112, while it is rehearsed.

tcpdump says who speaks for the virtual address, and keepalived's own log what it made of
netprobe's packets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.lab.netlab import Lab, wait_for
from tests.lab.segments import VRID, Switch, Watching
from tests.lab.test_segment_multicast import ARRIVES, told, ways

pytestmark = [
    pytest.mark.lab, pytest.mark.slow, pytest.mark.full, pytest.mark.needs("tcpdump", "keepalived"),
]  # fmt: skip

# A router that has taken over tells its neighbours so, a second time after 5 s.
OWN = re.compile("ratuitous ARP|nsolicited Neighbour Advert")

# The second byte of a packet is the id. The magic word of netprobe's packets has this one.
E = ord("E")


@pytest.fixture
def switch() -> Iterator[Switch]:
    with Lab() as lab:
        made = Switch(lab)
        made.rows = [{"id": "vrrp", "ipproto": [112]}]
        yield made


@pytest.mark.parametrize("unicast", [False, True], ids=["group", "peers"])
@pytest.mark.parametrize(
    ("version", "family", "vrid"), [(2, 4, VRID), (3, 4, VRID), (3, 6, VRID), (2, 4, E), (3, 6, E)]
)
def test_a_pair_that_is_rehearsed(
    switch: Switch, version: int, family: int, vrid: int, unicast: bool
) -> None:
    """While all is probed and rehearsed, the first router alone speaks for the address, as often as
    before, and none of the two logs a word: not of the row's own packets, nor of the group's.
    """
    a, b = switch.hosts
    watching = Watching(switch.lab, b, words="ip proto 112 or ip6 proto 112")
    peers = (b, a) if unicast else (None, None)
    logs = [switch.keep_alive(a, version, family, vrid, priority=150, peer=peers[0])]
    watching.wait_for(f"vrid {vrid}, prio 150")
    logs.append(switch.keep_alive(b, version, family, vrid, priority=100, peer=peers[1]))
    for words in ("Startup complete", "VRRP sockpool"):
        wait_for(lambda words=words: words in logs[1].read_text(), "the second router")
    before = [one.read_text() for one in logs]
    done = switch.run("--rehearse=segment", "-o", "json")
    new = [one.read_text().removeprefix(text) for one, text in zip(logs, before, strict=True)]
    assert [[line for line in one.splitlines() if not OWN.search(line)] for one in new] == [[], []]
    assert "Entering MASTER STATE" in before[0]
    assert "MASTER" not in before[1]
    seen = [line for line in watching.end() if f"vrid {vrid}," in line]
    assert {line.split()[1] for line in seen} == {switch.link(a)}
    assert all("prio 150" in line for line in seen)
    assert told(done) == ways(ARRIVES)
    assert done.status == 0
