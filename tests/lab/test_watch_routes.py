"""``netprobe watch`` and routes that change: each is a mark, and the report of an outage has it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from netprobe.model.outage import RouteMark
from tests.lab.cli import netprobe
from tests.lab.watching import DROP, MATRIX, TABLE, Moment, WatchLab, watch_lab
from tests.patience import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.full, pytest.mark.needs("namespaces")]
OTHER = "10.97.1.1"


@pytest.fixture
def lab() -> Iterator[WatchLab]:
    """A lab that is watched every second; another router is between the hosts, and has a cable to
    the first one."""
    with watch_lab(1) as lab:
        add_router(lab)
        yield lab


def add_router(lab: WatchLab) -> None:
    """Let there be another way from each host to the other."""
    other = lab.lab.router("other", OTHER)
    for name in ("client", "server"):
        lab.lab.cable(lab[name], "eth1", other, name)
        other.ip(f"route add {lab[name].address(4)}/32 dev {name}")
    lab.lab.cable(other, "router", lab["router"], "other")
    lab["router"].ip(f"route add {OTHER}/32 dev other")


def change_route(lab: WatchLab, name: str) -> Moment:
    """Let a host send by way of the other router; gives when."""
    before = time.time()
    lab[name].ip(f"route replace default via {OTHER} dev eth1 onlink")
    return Moment(before, time.time())


def contains_change(mark: RouteMark, changed: Moment) -> bool:
    return mark.last_before <= changed.before and mark.first_now >= changed.after


def test_a_route_that_changed_before_an_outage_is_told_with_it(lab: WatchLab) -> None:
    """Which next hop was replaced by which, between which moments; in the line of the watch, in
    each format of the history, and in nothing of an outage that came without a change."""
    with lab.watching():
        lab.plant(DROP)
        lab.wait_for(True)
        lab.clear()
        lab.wait_for(False)
        lab.wait_for_next_look()
        changed = change_route(lab, "client")
        lab.wait_for_next_look()
        chain = f"chain c {{ type filter hook forward priority 0; {DROP}; }}"
        lab["other"].nft(f"{TABLE}; table ip f {{ {chain}; }}")
        before, outage = lab.wait_for(False, True)
    (mark,) = outage.marks
    assert lab.read().marks == outage.marks
    assert before.marks == ()
    assert (mark.kind, mark.source, mark.destinations) == ("next-hop", "client", ("server",))
    assert (mark.before, mark.now) == ("10.96.1.1", OTHER)
    assert contains_change(mark, changed), (mark, changed)
    words = "next hop from client to server: 10.96.1.1 -> 10.97.1.1"
    lines = [line for line in lab.log().splitlines() if words in line]
    assert len(lines) == 1, lab.log()
    assert f"outage {outage.id} began: " in lines[0]
    assert "; the way changed " in lines[0]
    for form in ("text", "csv", "html"):
        said = netprobe("history", "--history", str(lab.db), "-o", form).stdout
        assert words in said.replace("&gt;", ">"), form
        assert said.count("the way changed ") == 1, form


def test_a_way_back_that_grew_and_a_path_that_shrank_are_marks(lab: WatchLab) -> None:
    """Answers pass one router more, and full-size packets get no farther than the narrow link."""
    vxlan = {"id": "vxlan", "udp": [4789], "probe": "vxlan", "purpose": "p"}
    rows = [*MATRIX["requirements"], {**vxlan, "from": "client", "to": "server"}]
    lab.lab.write("matrix.yaml", json.dumps({**MATRIX, "requirements": rows}))
    lab["other"].ip("route replace 10.96.1.2/32 via 10.96.1.1 dev router onlink")
    with lab.watching():
        lab.wait_for_next_look()
        changed = change_route(lab, "server")
        wait_until(lambda: len(lab.read().marks) == 2, lab.log())
        narrowed = time.time()
        lab["router"].ip("link set v3 mtu 1400")
        wait_until(lambda: len(lab.read().marks) >= 3, lab.log())
        history = lab.read()
    found = {(one.kind, one.source): one for one in history.marks}
    hops = found["hops", "client"]
    assert (hops.before, hops.now) == ("1", "2")
    assert contains_change(hops, changed), (hops, changed)
    assert found["next-hop", "server"].now == OTHER
    width = found["path-mtu", "client"]
    assert (width.before, width.now) == ("1500", "1400")
    assert contains_change(width, Moment(narrowed, narrowed))
