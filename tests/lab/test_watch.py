"""``netprobe watch``: outages that are planted on a router, by the lab's own clock."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.kills import kill_watches, make_kill_table
from tests.lab.losses import watch_losses
from tests.lab.outages import make_table, plant_outages
from tests.lab.services import shift_clock
from tests.lab.watching import (
    MATRIX,
    REJECT,
    WatchLab,
    contains,
    watch_lab,
)
from tests.patience import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.needs("namespaces")]


@pytest.fixture
def lab() -> Iterator[WatchLab]:
    """A lab that is watched every second."""
    with watch_lab(1) as lab:
        yield lab


def test_an_outage_is_an_interval_that_contains_the_true_one(lab: WatchLab) -> None:
    """It has the flow that was rejected and no other, says by whom, and a second watch ends it."""
    with lab.watching():
        begun = lab.plant(REJECT)
        lab.wait_for(True)
    with lab.watching():
        ended = lab.clear()
        (outage,) = lab.wait_for(False)
        lab.wait_for_next_look()

    assert lab.count_now() == {("web", "pass"): 2, ("dns", "pass"): 1, ("back", "pass"): 1}
    (member,) = outage.members
    assert (member.key[1:4], member.ports) == (("web", "client", "server"), ((3001, 3001),))
    assert (outage.cause.reason, outage.cause.rejected_by) == ("admin-prohibited", "10.96.1.1")
    assert contains(outage.times, begun, ended), (outage.times, begun, ended)
    assert outage.marks == () == lab.read().marks
    assert "is open: 10.96.1.1 rejects tcp 3001 from client to server" in lab.log()
    assert lab["client"].pids() == [] == lab["server"].pids()


@pytest.mark.full
def test_what_a_host_resets_itself_is_an_outage(lab: WatchLab) -> None:
    """Quick looks do not take it for a refusal of the neighbour, which has no agent."""
    near = {"id": "near", "from": "client", "to": "gateway", "tcp": ["3009-3010"], "purpose": "p"}
    roles, requirements = {**MATRIX["roles"], "gateway": {}}, [*MATRIX["requirements"], near]
    matrix = {**MATRIX, "roles": roles, "requirements": requirements}
    lab.lab.write("matrix.yaml", json.dumps(matrix))
    lab.hosts["gateway"] = {"address": "10.96.1.1", "roles": ["gateway"], "vantage": "none"}
    lab.write_inventory()
    chain = "type filter hook output priority 0; tcp dport 3009 reject with tcp reset;"
    lab["client"].nft(f"table ip own {{ chain c {{ {chain} }}; }}")

    with lab.watching():
        (outage,) = lab.wait_for(True)

    (member,) = outage.members
    assert (member.key[1:4], member.ports) == (("near", "client", "gateway"), ((3009, 3009),))
    assert (outage.cause.reason, outage.cause.where) == ("local-firewall", ("source",))
    assert lab.count_now()["near", "pass"] == 1


@pytest.mark.full
@pytest.mark.alone
def test_the_error_bars_are_as_short_as_promised() -> None:
    """EVERY + 2 s at the start and 2 s at the end, whatever stops the flow; others stay open. A
    handful of the table that `python -m tests.lab.outages` prints of 100."""
    every_s = 3
    planted = plant_outages(12, lanes=2, every_s=every_s)
    table = "\n".join([*make_table(planted, every_s), *map(str, planted)])
    assert len(planted) == 12
    assert all(one.is_as_promised(every_s) for one in planted), table


@pytest.mark.full
def test_a_host_whose_agent_is_gone_is_blind(lab: WatchLab) -> None:
    """That is no outage, in neither direction, though nothing of it answers; it comes back."""
    down = lab.let_agent_die("server")
    with lab.watching():
        down.touch()
        lab.plant("drop")
        for pid in lab["server"].pids():
            lab["server"].run("kill", "-9", str(pid))
        wait_until(lambda: lab.read().blind, lab.log())
        lab.clear()
        down.unlink()
        wait_until(lambda: lab.read().blind[0].until is not None, lab.log())
        history = lab.read()
    assert {(one.host, one.reason) for one in history.blind} == {("server", "agent-lost")}
    assert history.outages == ()
    assert "blind for server: " in lab.log()
    assert "server is back" in lab.log()


@pytest.mark.full
def test_a_host_that_dies_without_a_word_is_blind(lab: WatchLab) -> None:
    """Until its agent is missed it looks like a firewall; that is waited for, and is no outage."""
    down = lab.let_agent_die("server")
    with lab.watching():
        down.touch()
        for pid in lab["server"].pids():
            lab["server"].run("kill", "-STOP", str(pid))
        lab.plant("drop")
        wait_until(lambda: lab.read().blind, lab.log())
        lab.wait_for_next_round()
        history = lab.read()
    assert {(one.host, one.reason) for one in history.blind} == {("server", "agent-lost")}
    assert history.outages == ()


@pytest.mark.full
def test_a_host_in_maintenance_is_in_no_outage(lab: WatchLab) -> None:
    """Its flows are not tested while the window is open, and others are; a file that cannot be read
    leaves the old windows; with the window gone the same fault is an outage."""
    third = lab.lab.host("third", lab["router"], "10.96.3.2")
    lab.add_host("third", "client", third, "10.96.3.2")
    lab.write_maintenance("client")
    with lab.watching(blind=True) as process:
        lab.plant("ip saddr 10.96.1.2 drop", "ip saddr 10.96.3.2 tcp dport 3000 drop")
        lab.wait_for(True)
        lab.lab.write("maintenance.yaml", "- [")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: "the old times of maintenance stay: " in lab.log())
        lab.wait_for_next_round()
        (outage,) = lab.read().outages
        assert {one.key[2] for one in outage.members} == {"third"}
        now = lab.count_now()
        assert (now["web", "not-tested"], now["web", "blocked"], now["dns", "pass"]) == (2, 1, 1)
        (blind,) = lab.read().blind
        assert (blind.host, blind.reason, blind.until) == ("client", "maintenance", None)
        lab.write_maintenance("client", begin_s=3600)
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: "client is in maintenance no more" in lab.log())
        wait_until(lambda: lab.has_outage_of("client"), lab.log())


@pytest.mark.full
def test_a_cable_that_is_out_is_an_outage(lab: WatchLab) -> None:
    """The agent goes on, so that it is known that the host is there: one of both directions."""
    with lab.watching():
        lab.pull_cable("server")
        (outage,) = lab.wait_for(True)
        lab.wait_for_next_round()
        (outage,) = lab.read().outages
    assert {one.key[1] for one in outage.members} == {"web", "dns", "back"}
    assert outage.title.startswith("server is cut off: ")
    assert lab.read().blind == ()


@pytest.mark.full
def test_a_watch_that_stood_still_invents_no_outage(lab: WatchLab) -> None:
    """What went wrong and was mended while it was stopped was not seen; an outage that was there
    before goes on as the same one, and ends when it is mended."""
    with lab.watching() as process:
        begun = lab.plant(REJECT)
        lab.wait_for(True)
        process.send_signal(signal.SIGSTOP)
        lab.plant("drop")
        time.sleep(60)  # its agents end after 30 s without a word
        lab.plant(REJECT)
        process.send_signal(signal.SIGCONT)
        lab.wait_for_next_look(process)
        (outage,) = lab.wait_for(True)
        ended = lab.clear()
        (outage,) = lab.wait_for(False)
    assert [one.ports for one in outage.members] == [((3001, 3001),)]
    assert contains(outage.times, begun, ended), (outage.times, begun, ended)


@pytest.mark.full
@pytest.mark.needs("faketime")
def test_a_clock_that_is_set_makes_no_outage_and_no_longer_one(lab: WatchLab) -> None:
    """An hour forward, and back during an outage: there is that one, as long as it was."""
    library, *words = shift_clock("+0")[1:3]
    clock = lab.lab.write("clock", "+0\n")
    file = f"FAKETIME_TIMESTAMP_FILE={clock}"
    lab.before = ("env", library, *words, file, "FAKETIME_NO_CACHE=1")
    with lab.watching():
        clock.write_text("+3600\n")
        wait_for_another_look(lab)
        begun = time.monotonic()
        lab.plant(REJECT)
        lab.wait_for(True)
        clock.write_text("+0\n")
        lab.wait_for(True)
        lasted = time.monotonic() - begun
        lab.clear()
        (outage,) = lab.wait_for(False)
        wait_for_another_look(lab)
        looks = lab.read_looks()
        assert len(lab.read().outages) == 1
    times = outage.times
    assert times.last_good is not None
    assert times.first_good is not None
    assert times.last_good > time.time() + 3000
    assert times.first_good - times.last_good >= lasted
    assert times.last_bad - times.first_bad <= lasted
    assert [one.begun for one in looks] == sorted(one.begun for one in looks)


def wait_for_another_look(lab: WatchLab) -> None:
    """Wait for a look that is kept after now, whatever its label."""
    last = lab.read_looks()[-1].begun
    wait_until(lambda: lab.read_looks()[-1].begun != last, lab.log())


@pytest.mark.full
def test_one_watch_has_a_history(lab: WatchLab) -> None:
    """A second one ends with status 4 and one line, also by another name of the file; the first
    one goes on."""
    other = lab.folder / "other.db"
    other.symlink_to(lab.db)
    with lab.watching() as first:
        for words in ((), ("--history", str(other))):
            lab.words = words
            assert lab.start().wait(60) == 4
        assert lab.log().count("another netprobe watch has this history") == 2
        assert not Path(f"{other}.lock").exists()
        lab.wait_for_next_look(first)


@pytest.mark.full
def test_a_kill_at_any_moment_loses_nothing() -> None:
    """Killed while an outage begins, goes on and ends, and in the middle of a write: it is one, and
    whole. A handful of the table that `python -m tests.lab.kills` prints of 50."""
    (lane,) = lanes = kill_watches(10, lanes=1)
    assert len(lane.kills) == 10
    assert sum(one.in_write for one in lane.kills) >= 4
    assert lane.is_as_promised, "\n".join([*make_kill_table(lanes), str(lane)])


@pytest.mark.full
def test_loss_is_no_outage() -> None:
    """A minute of what `python -m tests.lab.losses` does for an hour."""
    seen = watch_losses(1, percent=1, every_s=1)
    assert seen.is_as_promised, seen


@pytest.mark.full
def test_a_service_gets_its_port_back(lab: WatchLab) -> None:
    """While it is away the watch says so, and listens nowhere on its port; then it is good."""
    words = ("python3", "-m", "http.server", "3000", "--bind", "10.96.2.2")
    service = lab["server"].spawn(*words)
    lab["server"].wait_until_listening("tcp 10.96.2.2:3000")
    with lab.watching():
        lab.wait_for_next_look()
        service.kill()
        service.wait()
        (outage,) = lab.wait_for(True)
        assert (outage.cause.reason, outage.cause.where) == ("nothing-listens", ("service",))
        assert [one.ports for one in outage.members] == [((3000, 3000),)]
        passed = {("web", "pass"): 1, ("dns", "pass"): 1, ("back", "pass"): 1}
        assert lab.count_now() == {("web", "blocked"): 1} | passed
        lab["server"].spawn(*words)
        lab["server"].wait_until_listening("tcp 10.96.2.2:3000")
        lab.wait_for(False)
    with lab.watching():
        lab.wait_for(False)


@pytest.mark.full
def test_a_hangup_reads_the_inventory_again(lab: WatchLab) -> None:
    """New hosts are watched, those that are gone are not; bad files change nothing."""
    router = lab["router"]
    with lab.watching() as process:
        lab.lab.write("inventory.yaml", "hosts: [")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: "the old inventory and matrices stay: " in lab.log())
        lab.wait_for_next_look()
        hosts, lab.hosts = lab.hosts, {"client": lab.hosts["client"]}
        lab.write_inventory()
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: "stay: nothing to watch: the plan has no flows" in lab.log())
        lab.hosts = hosts
        lab.add_host("second", "client", lab.lab.host("second", router, "10.96.3.2"), "10.96.3.2")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: any(key[2] == "second" for key in lab.read_looks()[-1].asked))
        assert {key[2] for key in lab.read_looks()[-1].asked} == {"client", "second", "server"}
        del lab.hosts["second"]
        lab.write_inventory()
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: all(key[2] != "second" for key in lab.read_looks()[-1].asked))
        assert lab["second"].pids() == []
    assert lab.read().outages == ()
    assert lab.read().blind == ()


@pytest.mark.full
@pytest.mark.parametrize("how", ["hangup", "restart"])
def test_who_leaves_the_inventory_ends_its_outages(lab: WatchLab, how: str) -> None:
    """Nobody looks at them any more; that of a host that stays goes on, and who returns begins
    anew."""
    lab.add_host(
        "second", "client", lab.lab.host("second", lab["router"], "10.96.3.2"), "10.96.3.2"
    )
    whole = dict(lab.hosts)
    with lab.watching() as process:
        lab.plant("ip saddr 10.96.3.2 tcp dport 3000 drop", REJECT)
        lab.wait_for(True, True)
        del lab.hosts["second"]
        lab.write_inventory()
        if how == "hangup":
            process.send_signal(signal.SIGHUP)
            lab.wait_for(True, False)
            assert "not required since" in lab.log()
    with lab.watching():
        left, stays = lab.wait_for(True, False)
        if left.is_open:
            left, stays = stays, left
        assert {one.key[2] for one in left.members} == {"second"}
        assert (left.times.first_good, left.times.not_required_since) == (None, left.times.end)
        assert {one.key[2] for one in stays.members if one.times.end is None} == {"client"}
        if how == "restart":
            return
    lab.hosts = whole
    lab.write_inventory()
    with lab.watching():
        wait_until(lambda: lab.has_outage_of("second"), lab.log())
    assert {one.times.end for one in lab.read().outages if one.id == left.id} == {left.times.end}


@pytest.mark.full
def test_a_hangup_at_the_start_is_kept_for_the_watch(lab: WatchLab) -> None:
    """It comes while files are read, and ends nothing: they are read again."""
    windows = lab.folder / "maintenance.yaml"
    os.mkfifo(windows)
    process = lab.start()
    try:
        with windows.open("w") as pipe:  # when the watch has opened it, too
            process.send_signal(signal.SIGHUP)
            windows.unlink()
            lab.write_maintenance("client")
            pipe.write("[]")
        wait_until(lambda: "read again: 4 flows of 2 hosts" in lab.log(), lab.log())
        wait_until(lambda: "client is in maintenance until" in lab.log(), lab.log())
    finally:
        process.terminate()
        assert process.wait(60) == 0
