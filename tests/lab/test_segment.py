"""Addresses of a segment that somebody else has, and routers with virtual ones: what is said."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.lab.cli import COMMAND, environment
from tests.lab.netlab import Lab, unprivileged, wait_for
from tests.lab.overlays import LISTINGS
from tests.lab.segments import VIP, VRID, Switch, Watching, segments, speak_vrrp_6, told

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.needs("tcpdump")]

FAMILIES = (4, 6)
MOMENTS = 6
FREE, ALONE = ("pass", "address-free"), ("pass", "one-machine")
IN_USE, TAKEN = ("blocked", "address-in-use"), ("blocked", "vrid-taken")
OTHER = ("blocked", "other-machine")
HEALTHY = {("vip", family): FREE for family in FAMILIES} | {
    (host, family): ALONE for host in "ab" for family in FAMILIES
}  # fmt: skip


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab() as made:
        yield made


def test_somebody_has_the_virtual_address(lab: Lab) -> None:
    """The IPv4 address that should be free is another machine's, and a host's IPv6 address has two
    machines: each is a finding with the MAC that answered; all else passes."""
    switch = Switch(lab)
    stranger = switch.plug("stranger", 9)
    switch.give(stranger, VIP[4], "fd96::2")
    done = switch.run("--rehearse=segment", "-o", "json")
    assert told(done) == HEALTHY | {("vip", 4): IN_USE, ("b", 6): OTHER}
    taken, double = segments(done)["vip", 4], segments(done)["b", 6]
    assert (taken["where"], double["where"]) == (["host"], ["path"])
    for one in (taken, double):
        assert switch.link(stranger) in one["because"]
    assert len(done.document["findings"]) == 2
    assert done.status == 1


@pytest.mark.full
def test_a_healthy_segment(lab: Lab) -> None:
    """All addresses pass; tcpdump saw one question of each kind for each address that a host has,
    three for the free ones, at most 20 a second, and no neighbour knows more than before."""
    switch = Switch(lab)
    quiet = switch.plug("quiet", 9)
    assert switch.run().status == 0
    before = _list_neighbours(switch)
    watching = Watching(lab, quiet, words="arp or icmp6")
    done = switch.run("--rehearse=segment", "-o", "json")
    frames = watching.end()
    _check_pace(frames)
    assert (told(done), done.status) == (HEALTHY, 0)
    probed = [line.split("who-has ")[1].split()[0] for line in frames if "tell 0.0.0.0" in line]
    probed += [line.split("who has ")[1].split(",")[0] for line in frames if " :: > " in line]
    own = [address for host in switch.hosts for address in host.addresses]
    assert sorted(probed) == sorted([*VIP.values(), *VIP.values(), *VIP.values(), *own])
    asked = [line for line in frames if f"who-has {VIP[4]} tell 10.96.0.1," in line]
    assert len(asked) == 3
    assert any("who-has 10.96.0.2 tell 10.96.0.1," in line for line in frames)
    assert _list_neighbours(switch) == before


def _check_pace(frames: list[str]) -> None:
    """No second has more than 20 questions."""
    asked = [line for line in frames if "who-has" in line or " :: > " in line]
    clocks = (line.split()[0].split(":") for line in asked)
    times = [int(hour) * 3600 + int(minute) * 60 + float(rest) for hour, minute, rest in clocks]
    assert all(sum(0 <= other - one < 1 for other in times) <= 20 for one in times)


def _list_neighbours(switch: Switch) -> list[str]:
    """The addresses and MACs that each machine knows, whatever their states."""
    lines = [
        f"{host.name} {line}"
        for host in (*switch.hosts, *filter(None, (switch.lab.namespaces.get("quiet"),)))
        for line in host.run("ip", "neigh").splitlines()
    ]
    return sorted(" ".join(line.split()[:6]) for line in lines if "lladdr" in line)


@pytest.mark.full
@pytest.mark.needs("keepalived")
@pytest.mark.parametrize(("version", "family"), [(2, 4), (3, 4), (3, 6)])
def test_a_router_with_a_virtual_address(lab: Lab, version: int, family: int) -> None:
    """A real keepalived of no host of the inventory: a warning at the address of its family; with
    the same id as `vrid:` it is blocked, with another one it is not."""
    switch = Switch(lab)
    other = switch.plug("other", 9)
    watching = Watching(lab, other, words="ip proto 112 or ip6 proto 112")
    switch.keep_alive(other, version, family)
    watching.wait_for(f"VRRPv{version}, Advertisement, vrid {VRID}")
    done = switch.run("--rehearse=segment", "-o", "json")
    assert (told(done), done.status) == (HEALTHY, 0)
    warned = {key: one["warnings"] for key, one in segments(done).items() if one["warnings"]}
    assert {*warned} == {("vip", family)}
    (warning,) = warned["vip", family]
    sender = "10.96.0.9" if family == 4 else "fe80::"
    assert warning.startswith(f"vrid-taken: VRRPv{version} id {VRID}, priority 150, from {sender}")
    assert switch.link(other) in warning
    checked = switch.run("--hosts", verb="check")
    assert f"heard by a, b: VRRPv{version} id {VRID}, priority 150, from {sender}" in checked.stdout
    assert (checked.status, "no address of the inventory's hosts" in checked.stdout) == (0, True)
    done = switch.run("--rehearse=segment", "-o", "json", vip={"vrid": VRID})
    assert (told(done), done.status) == (HEALTHY | {("vip", family): TAKEN}, 1)
    done = switch.run("--rehearse=segment", "-o", "json", vip={"vrid": VRID + 1})
    assert (told(done), done.status) == (HEALTHY, 0)


@pytest.mark.full
@pytest.mark.needs("keepalived")
@pytest.mark.parametrize(("version", "family"), [(2, 4), (3, 6)])
def test_the_own_routers_are_none_of_others(lab: Lab, version: int, family: int) -> None:
    """The platform's own keepalived, on a host of the inventory, is no warning, of `check --hosts`
    neither; of what no agent was asked it says so."""
    switch = Switch(lab)
    watching = Watching(lab, switch.hosts[1], words="ip proto 112 or ip6 proto 112")
    switch.keep_alive(switch.hosts[0], version, family)
    watching.wait_for(f"vrid {VRID}")
    done = switch.run("--rehearse=segment", "-o", "json", vip={"vrid": VRID})
    assert (told(done), done.status) == (HEALTHY, 0)
    assert not any(one["warnings"] for one in segments(done).values())
    assert "VRRP" not in switch.run("--hosts", verb="check").stdout
    limited = switch.run("--hosts", "--limit", "b", verb="check").stdout
    maybe = "perhaps a host of the inventory, of which no agent was asked"
    assert [maybe in line for line in limited.splitlines() if "VRRP" in line] == [True] * (
        family == 6
    )


@pytest.mark.full
def test_a_host_has_the_virtual_address_already(lab: Lab) -> None:
    """After the installation a host has it: that address is skipped with the reason; with a second
    holder it is blocked all the same."""
    switch = Switch(lab)
    switch.give(switch.hosts[0], VIP[4])
    done = switch.run("--rehearse=segment", "-o", "json")
    assert told(done) == {key: one for key, one in HEALTHY.items() if key != ("vip", 4)}
    reasons = [one["reason"] for one in done.document["skipped"]]
    assert f"a has {VIP[4]} already" in reasons
    assert done.status == 0
    switch.give(switch.plug("stranger", 9), VIP[4])
    assert told(switch.run("--rehearse=segment", "-o", "json")) == HEALTHY | {("vip", 4): IN_USE}


@pytest.mark.full
def test_asked_again(lab: Lab) -> None:
    """`--retry` rehearses only the address that failed, and starts who can ask for it."""
    switch = Switch(lab)
    stranger = switch.plug("stranger", 9)
    switch.give(stranger, VIP[4])
    switch.give(switch.hosts[1], VIP[6])
    record = str(lab.folder / "run.jsonl")
    assert switch.run("--rehearse=segment", "--record", record).status == 1
    stranger.ip(f"address del {VIP[4]}/24 dev e0")
    done = switch.run("--retry", record, "-o", "json")
    # The other one is a host's, and skipped both times.
    healthy = {key: one for key, one in HEALTHY.items() if key != ("vip", 6)}
    assert (told(done), done.status) == (healthy, 0)
    assert "8 pass of" in done.stderr


@pytest.mark.full
def test_a_host_without_an_agent_has_the_address(lab: Lab) -> None:
    """Of three hosts the third has no agent in this run, and has the virtual address already: that
    is no stranger, and skipped with the reason; a stranger is told as ever."""
    switch = Switch(lab, hosts=3)
    switch.give(switch.hosts[2], VIP[4])
    stranger = switch.plug("stranger", 9)
    switch.give(stranger, VIP[6])
    done = switch.run("--rehearse=segment", "-o", "json", "--from", "a", "--to", "b")
    assert ("vip", 4) not in told(done)
    assert told(done)["vip", 6] == IN_USE
    reasons = [one["reason"] for one in done.document["skipped"]]
    assert f"10.96.0.3 has {VIP[4]} already" in reasons


@pytest.mark.full
def test_a_virtual_router_that_may_be_a_host_without_an_agent(lab: Lab) -> None:
    """Over IPv6 its addresses name nobody: where a host has no agent in this run, it may be the
    platform's own, and that is a warning; where all have one it is another's."""
    switch = Switch(lab, hosts=3)
    speak_vrrp_6(switch.hosts[2], f"00:00:5e:00:02:{VRID:02x}")
    done = switch.run("--rehearse=segment", "-o", "json", "--to", "b", vip={"vrid": VRID})
    assert told(done)["vip", 6] == TAKEN
    words = ("--rehearse=segment", "-o", "json", "--from", "a", "--to", "b")
    done = switch.run(*words, vip={"vrid": VRID})
    assert (told(done)["vip", 6], done.status) == (FREE, 0)
    (warning,) = segments(done)["vip", 6]["warnings"]
    assert warning.endswith("which is perhaps 10.96.0.3, fd96::3: no agent is there to tell")


@pytest.mark.full
def test_one_host_alone(lab: Lab) -> None:
    """A host without another one asks for the virtual address all the same."""
    switch = Switch(lab, hosts=1)
    switch.give(switch.plug("stranger", 9), VIP[4])
    done = switch.run("--rehearse=segment", "-o", "json")
    assert (told(done), done.status) == ({("vip", 4): IN_USE, ("vip", 6): FREE}, 1)


@pytest.mark.full
def test_a_switch_that_drops_questions(lab: Lab) -> None:
    """Where no host is answered for its own address, silence of the free one proves nothing."""
    switch = Switch(lab)
    for host in switch.hosts:
        host.run("sysctl", "-qw", "net.ipv4.conf.e0.arp_ignore=8")
    done = switch.run("--rehearse=segment", "-o", "json")
    assert told(done)["vip", 4] == ("inconclusive", "segment-silent")
    assert told(done)["vip", 6] == FREE


@pytest.mark.full
def test_without_rights(lab: Lab) -> None:
    """Agents without packet sockets: not tested, with the reason, and status 3; one agent that has
    the right is enough for all but its own addresses."""
    switch = Switch(lab)
    bare = {"a": unprivileged(), "b": unprivileged()}
    done = switch.run("--rehearse=segment", "-o", "json", enter=bare)
    assert {*told(done).values()} == {("not-tested", "no-permission")}
    assert done.status == 3
    some = told(switch.run("--rehearse=segment", "-o", "json", enter={"a": unprivileged()}))
    assert some["vip", 4] == FREE
    assert some["a", 4] == ALONE
    assert some["b", 4] == ("not-tested", "no-permission")


def _list_all(switch: Switch) -> dict[str, str]:
    """List what the kernel shows of all machines, with the groups that devices take in."""
    return {
        f"{host.name}: {' '.join(words)}": host.run(*words)
        for host in switch.hosts
        for words in (*LISTINGS, ("ip", "maddr"), ("ss", "-Hanp0"))
    }


@pytest.mark.full
@pytest.mark.parametrize("who", ["agents", "coordinator"])
def test_nothing_stays_after_kill_9(lab: Lab, who: str) -> None:
    """Killed while they listen, ask, and are members of VRRP's group, agents leave nothing: no
    socket, no group of a device, no address, route, rule or setting is there that was not there
    before."""
    switch = Switch(lab)
    switch.rows = [{"id": "vrrp", "ipproto": [112]}]
    before = _list_all(switch)
    words = [*COMMAND, "run", "--rehearse=segment", *switch.write_files()]
    seed = random.Random(who)
    for _ in range(MOMENTS):
        quiet = subprocess.DEVNULL
        running = subprocess.Popen(words, stdout=quiet, stderr=quiet, env=environment())
        try:
            wait_for(lambda: _is_listening(switch), "an agent that listens")
            time.sleep(seed.uniform(0, 3))
            for pid in switch.hosts[0].pids() + switch.hosts[1].pids() if who == "agents" else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        finally:
            running.kill()
            running.wait()
        wait_for(lambda: not any(host.pids() for host in switch.hosts), "the end of all agents")
        wait_for(lambda: _list_all(switch) == before, "the machines as they were")


def _is_listening(switch: Switch) -> bool:
    """Tell whether the device of a takes in frames to the group of VRRP."""
    return "01:00:5e:00:00:12" in switch.hosts[0].run("ip", "maddr")
