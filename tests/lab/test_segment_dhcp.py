"""DHCP servers that answer on a segment: what is said of them, and that nothing is leased."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.netlab import Lab
from tests.lab.segments import Switch, Watching, segments, told
from tests.lab.test_segment import HEALTHY

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.needs("tcpdump", "dnsmasq")]

FOREIGN = ("blocked", "dhcp-foreign")


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


@pytest.mark.full
def test_two_servers_where_there_should_be_none(lab: Lab) -> None:
    """Two real dnsmasq with `dhcp: none`: a finding for each family, with both servers, their MACs
    and what they offer; tcpdump saw one DISCOVER and one SOLICIT, and nothing is leased."""
    switch = Switch(lab)
    switch.inventory["dhcp"] = "none"
    servers = [switch.plug(name, number) for name, number in (("first", 8), ("second", 9))]
    leases = [switch.serve_dhcp(host, 150 + 10 * place) for place, host in enumerate(servers)]
    watching = Watching(lab, servers[0], words="-v udp port 67 or udp port 547")
    done = switch.run("--rehearse=segment", "-o", "json")
    frames = "\n".join(watching.end())
    assert (told(done), done.status) == (HEALTHY | {("a", 4): FOREIGN, ("a", 6): FOREIGN}, 1)
    assert len(done.document["findings"]) == 2
    for family, begin in ((4, "10.96.0.1"), (6, "fd96::1")):
        one = segments(done)["a", family]
        assert one["where"] == ["service"]
        for place, host in enumerate(servers):
            assert f"({switch.link(host)}) offers {begin}{5 + place}" in one["because"]
    assert "10.96.0.8 (" in segments(done)["a", 4]["because"]
    assert frames.count("DHCP-Message (53), length 1: Discover") == 1
    assert frames.count("dhcp6 solicit") == 1
    assert "DHCP-Message (53), length 1: Request" not in frames
    assert "dhcp6 request" not in frames
    assert not any(one.exists() and "10.96" in one.read_text() for one in leases)


@pytest.mark.full
def test_servers_are_told_of(lab: Lab) -> None:
    """Without `dhcp: none` a server is a warning at one address of its family, and all passes; with
    it and without a server there is none."""
    switch = Switch(lab)
    switch.inventory["dhcp"] = "none"
    done = switch.run("--rehearse=segment", "-o", "json")
    assert (told(done), done.status) == (HEALTHY, 0)
    assert not any(one["warnings"] for one in segments(done).values())
    server = switch.plug("server", 9)
    switch.serve_dhcp(server, 150)
    switch.inventory.clear()
    done = switch.run("--rehearse=segment", "-o", "json")
    assert (told(done), done.status) == (HEALTHY, 0)
    warned = {key: one["warnings"] for key, one in segments(done).items() if one["warnings"]}
    assert {*warned} == {("a", 4), ("a", 6)}
    (warning,) = warned["a", 4]
    assert warning.startswith("DHCP on the network of this address: 10.96.0.9 (")
    assert switch.link(server) in warning


@pytest.mark.full
def test_a_graver_fault_of_the_address(lab: Lab) -> None:
    """A second machine has the address that tells of the servers: both are said, the graver first;
    a server on a host of the inventory is named so."""
    switch = Switch(lab)
    switch.inventory["dhcp"] = "none"
    switch.serve_dhcp(switch.hosts[1], 150)
    switch.give(switch.plug("stranger", 9), "10.96.0.1")
    done = switch.run("--rehearse=segment", "-o", "json")
    one = segments(done)["a", 4]
    assert one["reason"] == "other-machine"
    assert any(w.startswith("dhcp-foreign, too: 10.96.0.2 (b) offers") for w in one["warnings"])
