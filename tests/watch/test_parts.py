"""The parts of a watch that need no host: times, suspects, held ports, and what is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.cli.watch import HostLines
from netprobe.history.ledger import open_ledger
from netprobe.history.outages import replay
from netprobe.model.host_key import HostKey
from netprobe.model.maintenance import MaintenanceWindow
from netprobe.model.outage import History, Outage
from netprobe.model.plan import Plan
from netprobe.model.ports import each
from netprobe.model.result import HostReport
from netprobe.watch.blind import hide
from netprobe.watch.clock import LabelClock, Stillness
from netprobe.watch.flows import flows_of
from netprobe.watch.held import LEFT_ALONE, HeldLedger, without_listeners
from netprobe.watch.keeping import LookKeeper
from netprobe.watch.maintenance import Maintenance
from netprobe.watch.suspects import MOST_LOOKS, Suspects, choose_controls, says_something
from tests.batch.world import plan_of
from tests.cli.command import netprobe
from tests.history.test_outages import TCP, bad, look
from tests.lab.watching import MATRIX
from tests.report.samples import BLOCKED, PASSED, flow, port

SILENT = port(BLOCKED, 1, 9)
REJECTED = replace(SILENT, state="closed", reason="admin-prohibited")
GOOD = port(PASSED, 1, 9)
PLACE = ("a", "tcp", "10.0.0.1")


class Clocks:
    """A wall clock that is set, and what has passed."""

    def __init__(self) -> None:
        self.wall = self.elapsed = 1000.0

    def pass_by(self, seconds: float, *, step: float = 0.0) -> None:
        self.elapsed += seconds
        self.wall += seconds + step


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(-1e4, 1e4)), max_size=20))
def test_labels_never_go_back_and_never_run_slower_than_time(
    steps: list[tuple[float, float]],
) -> None:
    """However the wall clock is set: between two labels lies at least what has passed."""
    clocks = Clocks()
    clock = LabelClock(None, lambda: clocks.wall, lambda: clocks.elapsed)
    for passed, step in steps:
        before = clock.now()
        clocks.pass_by(passed, step=step)
        after = clock.now()
        assert after - before >= passed - 1e-6
        assert after >= clocks.wall - 1e-6


def test_labels_begin_behind_what_is_kept_already() -> None:
    """A watch that starts after the clock was set back goes on behind the last look."""
    clocks = Clocks()
    clock = LabelClock(5000.0, lambda: clocks.wall, lambda: clocks.elapsed)
    clocks.pass_by(7)
    assert clock.now() == 5007.0
    assert clock.ahead_s == 4000.0


def test_a_process_that_stood_still_knows_it() -> None:
    """Ticks that come late by five seconds or more tell; a busy machine's do not."""
    clocks = Clocks()
    stillness = Stillness(lambda: clocks.elapsed)
    for passed in (0.25, 5.0, 0.25):
        clocks.pass_by(passed)
        assert stillness.note() == 0
    clocks.pass_by(6)
    assert stillness.note() == 1
    assert stillness.note() == 1


def test_silence_needs_more_looks_than_a_rejection() -> None:
    """Three and two, with the round's own; what passes meanwhile is no outage, port by port."""
    silent, rejected = Suspects([SILENT]), Suspects([REJECTED])
    rejected.note([REJECTED])
    silent.note([port(BLOCKED, 1, 5), port(PASSED, 6, 9)])
    assert flows_of(rejected.hard) == flows_of([REJECTED])
    assert silent.hard == []
    assert flows_of(silent.good) == flows_of([port(PASSED, 6, 9)])
    silent.note([SILENT])
    assert flows_of(silent.hard) == flows_of([port(BLOCKED, 1, 5)])
    assert silent.waiting == [] == silent.undecided()


def test_looks_that_find_nothing_out_make_no_outage() -> None:
    """They are asked so often, and then the next round has to see them."""
    suspects = Suspects([SILENT])
    for _ in range(MOST_LOOKS):
        assert suspects.waiting
        suspects.note([replace(SILENT, verdict="inconclusive")])
    assert suspects.waiting == [] == suspects.hard
    assert flows_of(suspects.undecided()) == flows_of([SILENT])


def test_a_look_that_healthy_flows_fail_says_nothing() -> None:
    """Half of them may; and there are as many as suspects, near ones first."""
    controls = [flow(GOOD, 1, source="x"), flow(GOOD, 2, source="y")]
    failed = [replace(one, verdict="blocked") for one in controls]
    assert says_something([controls[0], failed[1], SILENT], controls)
    assert not says_something([*failed, SILENT], controls)
    assert says_something([SILENT], [])
    far = [flow(GOOD, 3, source=f"far-{n}", destination="z") for n in range(5)]
    assert list(choose_controls([*far, GOOD], [SILENT])) == [port(PASSED, 1)]


def test_failures_of_blind_hosts_are_not_known() -> None:
    """In both directions; what passed has passed."""
    blind = {"master-1": ("agent-lost", "it was silent")}
    hidden = list(hide([SILENT, GOOD, replace(SILENT, destination="other")], blind))
    assert [one.verdict for one in hidden] == ["not-tested", "pass", "blocked"]
    assert (hidden[0].reason, hidden[0].because) == ("agent-lost", "it was silent")


def test_a_host_is_in_maintenance_from_the_begin_of_a_window_to_its_end() -> None:
    """Windows may overlap; hosts that are not watched are told of, and blind for nothing."""
    lines: list[str] = []
    clocks = Clocks()
    maintenance = Maintenance(lines.append, lambda: clocks.wall)
    windows = [MaintenanceWindow(("a", "z"), 1010, 1020), MaintenanceWindow(("a",), 1015, 1030)]
    maintenance.take(windows, {"a", "b"})
    found = {}
    for _ in range(40):
        found[clocks.wall] = maintenance.find({"a", "b"}).keys()
        clocks.pass_by(1)
    assert [at for at, hosts in found.items() if hosts] == [float(at) for at in range(1010, 1030)]
    assert set().union(*found.values()) == {"a"}
    assert lines == [
        "maintenance of z: no host of this name is watched",
        "a is in maintenance until 1970-01-01 00:17:00Z",
        "a is in maintenance no more",
    ]


def test_a_watch_does_not_start_without_its_maintenance(tmp_path: Path) -> None:
    """A file that cannot be read ends it with status 2 and the place, before it makes a history."""
    (tmp_path / "m.yaml").write_text("- {hosts: [a], from: tomorrow, until: never}")
    done = netprobe("watch", "-m", "k3s", "--maintenance", "m.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert 'm.yaml:1:22: "tomorrow" is no time' in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["m.yaml"]


def test_what_is_no_history_is_refused_and_nothing_is_beside_it(tmp_path: Path) -> None:
    """Status 2, also where it is a folder."""
    hosts = {"a": {"address": "10.0.0.1", "roles": ["client", "server"]},
             "b": {"address": "10.0.0.2", "roles": ["client", "server"]}}  # fmt: skip
    inventory = {"schema": "netprobe.inventory/1", "hosts": hosts}
    texts = {"m.yaml": json.dumps(MATRIX), "i.yaml": json.dumps(inventory), "text": "hello"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    before = {*tmp_path.iterdir()}
    for path in ("text", "."):
        done = netprobe("watch", "-m", "./m.yaml", "-i", "i.yaml", "--history", path, cwd=tmp_path)
        assert done.returncode == 2
        assert f"netprobe: {path}: " in done.stderr
    assert {*tmp_path.iterdir()} == before


def test_a_port_that_a_service_held_twice_is_never_listened_on_again() -> None:
    """One that was held once is left alone for some rounds."""
    ledger = HeldLedger({})
    assert ledger.note({PLACE: ((1, 4),)}) == {}
    assert ledger.note({PLACE: ((3, 9),)}) == {PLACE: ((3, 4),)}
    assert ledger.left_alone() == {PLACE: ((1, 9),)}
    for _ in range(LEFT_ALONE + 1):
        assert ledger.note({}) == {}
    assert ledger.left_alone() == {PLACE: ((3, 4),)}
    assert HeldLedger(ledger.stays).left_alone() == {PLACE: ((3, 4),)}


def test_held_ports_are_served_and_all_flows_stay() -> None:
    """The plan has the same flows, each with a place of its own; at held ones nothing listens."""
    plan = plan_of(("web", "tcp", ((1, 4), (5, 9))), ("dns", "udp", ((53, 53),)))
    address = plan.blocks[0].destinations[0][1].text
    name = plan.blocks[0].destinations[0][0].name
    served = without_listeners(plan, {(name, "tcp", address): ((4, 6),)})
    assert served.flow_count() == plan.flow_count()
    held = [one for one in served.blocks if one.existing]
    assert {(end.name, one.ports) for one in held for end, _ in one.destinations} == {
        (name, ((4, 4), (5, 6)))
    }
    places = [
        one.order(source, end)
        for one in served.blocks
        for source in range(len(one.sources))
        for end in one.peers(source)
    ]
    assert len(places) == len(set(places))
    assert flows_in(served) == flows_in(plan)


def flows_in(plan: Plan) -> set[tuple[str, str, str, int]]:
    """Every port of every flow."""
    return {
        (one.block.requirement.id, one.source.name, one.destination.name, port)
        for one in plan.flows()
        for port in each(one.block.ports)
    }


class Told:
    """Keeps what a keeper tells."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def began(self, outage: Outage) -> None:
        self.lines.append(f"began {outage.title}")

    def ended(self, outage: Outage) -> None:
        self.lines.append(f"ended {outage.title}")

    def changed(self, history: History) -> None:
        self.history = history

    def trouble(self, words: str) -> None:
        self.lines.append(words or "written again")


DROPPED = bad({TCP: ((5, 9),)})


def test_what_begins_and_ends_is_told_once_and_kept(tmp_path: Path) -> None:
    """A quick look that changes nothing is kept only as the last one before a change."""
    told = Told()
    with open_ledger(str(tmp_path / "h.db"), create=True) as ledger:
        keeper = LookKeeper(ledger, told)
        keeper.keep(look(10), b"run")
        keeper.keep(look(20, DROPPED), b"worse")
        for at in (30, 32, 34):
            keeper.hold(lambda at=at: look(at, DROPPED))  # type: ignore[misc]  # a default
        keeper.keep(look(40))
        begun = [one.begun for one in ledger.looks()]
        (outage,) = replay(ledger.looks()).outages
        assert ledger.run_at(45) == b"worse"
    assert begun == [10, 20, 34, 40]
    assert (outage.times.last_good, outage.times.last_bad, outage.times.first_good) == (10, 34, 41)
    assert told.lines == ["began dropped", "ended dropped"]


@pytest.mark.slow
def test_looks_in_a_row_that_saw_the_same_take_no_room(tmp_path: Path) -> None:
    """The first and the last stay, and each outage has the same times as with all of them."""
    path = str(tmp_path / "h.db")
    looks = [look(at) for at in range(0, 200, 2)]
    looks += [look(at, DROPPED) for at in range(200, 400, 2)]
    looks += [look(at) for at in range(400, 500, 2)]
    with open_ledger(path, create=True) as ledger:
        for number, one in enumerate(looks):
            ledger.follow(one, b"run" if number % 100 == 0 else None)
        kept = list(ledger.looks())
    assert [one.begun for one in kept] == [0, 198, 200, 398, 400, 498]
    assert [one.times for one in replay(kept).outages] == [
        one.times for one in replay(looks).outages
    ]


def test_a_long_watch_keeps_few_looks_in_mind(tmp_path: Path) -> None:
    """Of those in a row that saw the same the first and the last, by which outages are dated."""
    with open_ledger(str(tmp_path / "h.db"), create=True) as ledger:
        keeper, good = LookKeeper(ledger, Told()), look(0)
        for at in range(10, 100):
            keeper.keep(replace(good, begun=at, decided=at + 1))
        keeper.keep(look(100, DROPPED))
        keeper.keep(look(110))
        history = keeper.history
    assert [begun for begun, _ in history.looks] == [10, 99, 100, 110]
    assert [one.times.last_good for one in history.outages] == [99]


def test_looks_wait_while_the_history_cannot_be_written(tmp_path: Path) -> None:
    """It is told once, and they are written as soon as it can be, in their order."""
    told, looks = Told(), [look(10), look(20, DROPPED), look(30)]
    with open_ledger(str(tmp_path / "h.db"), create=True) as ledger:
        keeper = LookKeeper(ledger, told)
        keeper.keep(looks[0], b"run")
        ledger._connection.execute("PRAGMA query_only = ON")
        keeper.keep(looks[1], b"worse")
        keeper.keep(looks[2])
        ledger._connection.execute("PRAGMA query_only = OFF")
        keeper.keep(look(40))
        assert [one.begun for one in ledger.looks()] == [10, 20, 30, 40]
    assert [line.split(":")[0].split(" /")[0] for line in told.lines] == [
        "cannot write", "began dropped", "ended dropped", "written again",
    ]  # fmt: skip


def test_what_was_open_before_is_open_after_a_start(tmp_path: Path) -> None:
    """A watch that starts again goes on with it, and does not begin it a second time."""
    path, told = str(tmp_path / "h.db"), Told()
    with open_ledger(path, create=True) as ledger:
        LookKeeper(ledger, Told()).keep(look(10, DROPPED), b"run")
    with open_ledger(path) as ledger:
        keeper = LookKeeper(ledger, told)
        assert [one.title for one in keeper.open.values()] == ["dropped"]
        keeper.keep(look(20, DROPPED), b"run 2")
        keeper.keep(look(30))
    assert told.lines == ["ended dropped"]


def test_a_host_that_cannot_be_reached_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Its words may begin with its name; a second failure is no news, and a return is."""
    lines = HostLines()
    for state in ("failed", "failed", "agent"):
        lines.tell(HostReport(name="b", state=state, words="b: ssh ended"))

    assert capsys.readouterr().err.splitlines() == [
        "netprobe: blind for b: ssh ended", "netprobe: b is back",
    ]  # fmt: skip


def test_hosts_with_untrusted_keys_are_one_line_of_a_round(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the command that mends it, and once."""
    lines = HostLines()
    for name in "ab":
        key = HostKey(state="unknown", target=name)
        lines.tell(HostReport(name=name, state="failed", words="...", host_key=key))
    for _ in range(2):
        lines.tell_held()

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("netprobe: no agent: the host keys of 2 hosts (a, b) are not known yet")
    assert line.endswith('; do ssh -o StrictHostKeyChecking=ask "$host" true; done')
