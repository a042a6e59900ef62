"""Plans, matrices, hosts and differences as people read them."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.errors import Problem
from netprobe.load.yaml.source import parse
from netprobe.model.host_key import HostKey
from netprobe.model.plan import PlanCost
from netprobe.model.result import HostFacts, HostReport
from netprobe.report.record.changes import compare, fates_of
from netprobe.report.verbs.diff import RunDiff, write_diff_text
from netprobe.report.verbs.hosts import write_hosts_json, write_hosts_text
from netprobe.report.verbs.matrix import to_yaml
from netprobe.report.verbs.plan import write_plan_count, write_plan_json, write_plan_text
from tests.report.golden import check_golden
from tests.report.plans import PLAN
from tests.report.samples import BLOCKED, INFO, PASSED, everything, port

# What the plan stage would say.
COST = PlanCost(
    flows=3_013, packets=18_074, listeners=1_002, seconds=14.2, seconds_dropped=16.7,
    paced_udp_seconds=10.2,
)  # fmt: skip


def test_plan_text() -> None:
    """Every flow is a line, then what is skipped, the notes and the totals."""
    stream = io.StringIO()
    write_plan_text(PLAN, COST, stream)

    check_golden("plan.txt", stream.getvalue())


def test_plan_count() -> None:
    """The count is the last line of the text."""
    stream = io.StringIO()
    write_plan_count(PLAN, COST, stream)

    assert stream.getvalue() == (
        "3,013 flows, about 18,074 packets, 1,002 listeners, about 14.2 s, 10.2 s of them UDP "
        "pacing where nothing is blocked, 16.7 s where something is dropped, "
        "if each host is an idle machine of its own; 2 requirements skipped\n"
    )


@pytest.mark.parametrize("count", [False, True])
def test_plan_json(count: bool) -> None:
    """The plan as JSON: totals always, flows unless only the count was asked for."""
    stream = io.StringIO()
    write_plan_json(PLAN, COST, stream, count=count)
    read = json.loads(stream.getvalue())

    assert read["schema"] == "netprobe.plan/1"
    assert read["totals"]["flows"] == 3_013
    assert ("flows" in read) != count
    if not count:
        assert len(read["flows"]) == 9
        assert read["flows"][0]["ports"] == [[2379, 2379], [2380, 2380]]
        assert read["flows"][-1]["waived"] == "on Monday"


def test_hosts() -> None:
    """Each host is a line; words and costs stand below with the host's name once."""
    hosts = [
        HostReport(
            name="master-0",
            state="agent",
            python="3.6.8",
            user="core",
            cost=("no raw sockets, so no ipproto probes",),
            facts=HostFacts(net_raw=False, low_ports=True, kernel="4.18.0"),
            start_s=0.4,
        ),
        HostReport(
            name="worker-1", state="failed", words="worker-1: ssh: \x1b[1mtimed out", start_s=65
        ),
        HostReport(name="vip", state="none"),
    ]
    stream = io.StringIO()
    write_hosts_text(hosts, stream)

    check_golden("hosts.txt", stream.getvalue())
    stream = io.StringIO()
    write_hosts_json(hosts, stream)
    assert [one["name"] for one in json.loads(stream.getvalue())["hosts"]] == [
        "master-0",
        "worker-1",
        "vip",
    ]


def test_untrusted_host_keys_of_check_hosts_are_one_line() -> None:
    """Below the table, with the command for all of them."""
    hosts = [
        HostReport(
            name=name, state="failed", words="...", host_key=HostKey(state="unknown", target=name)
        )
        for name in ("a", "b")
    ]
    stream = io.StringIO()
    write_hosts_text(hosts, stream)

    (line,) = [one for one in stream.getvalue().splitlines() if "host key" in one]
    assert line.startswith("the host keys of 2 hosts (a, b) are not known yet. Compare each")
    assert "\na: " not in stream.getvalue()


def test_a_host_without_its_sudo_is_limited() -> None:
    """An agent without the rights that the inventory asks for is not counted as whole."""
    cost = "sudo failed (Sorry, try again), so the agent runs unprivileged"
    host = HostReport(
        name="m", state="agent", user="admin", cost=(cost,), facts=HostFacts(sudo_failed=True)
    )
    stream = io.StringIO()
    write_hosts_text([host], stream)
    lines = stream.getvalue().splitlines()

    assert lines[1].split()[:2] == ["m", "limited"]
    assert f"m: {cost}" in lines
    assert lines[-1].startswith("1 host: 1 with an agent (1 of them limited: sudo failed), 0 with")


def test_a_python_that_was_sent_is_marked() -> None:
    """The version is not one that the host has."""
    hosts = [
        HostReport(name="m", state="agent", python="3.11.2", facts=HostFacts(python_sent=True)),
        HostReport(name="n", state="agent", python="3.9.18"),
    ]
    stream = io.StringIO()
    write_hosts_text(hosts, stream)

    lines = stream.getvalue().splitlines()
    assert lines[1].split()[:4] == ["m", "yes", "3.11.2", "(sent)"]
    assert lines[2].split()[2:4] == ["3.9.18", "-"]


def test_diff() -> None:
    """What became worse leads; ranges are cut where their ports had different fates."""
    old = [
        port(PASSED, 7000, 7009),
        port(BLOCKED, 7010, 7019),
        port(BLOCKED, 80),
        port(PASSED, 81),
        port(BLOCKED, 83, reason="admin-prohibited", rejected_by="10.0.0.1"),
        replace(PASSED, protocol="icmp", port=None, end_port=None),
    ]
    new = [
        port(BLOCKED, 7005, 7014),
        port(PASSED, 7015, 7019),
        port(PASSED, 80, verdict="inconclusive"),
        port(BLOCKED, 82, 83),
        replace(BLOCKED, protocol="icmp", port=None, end_port=None),
    ]
    changes = compare(fates_of(old), new)
    stream = io.StringIO()
    write_diff_text(RunDiff(("old", "new"), (INFO, INFO), changes), stream)

    assert [(one.protocol, one.port, one.end_port) for one in changes.worse] == [
        ("tcp", 7005, 7009),
        ("icmp", None, None),
    ]
    assert [(one.port, one.end_port) for one in changes.still] == [(7010, 7014)]
    assert [(one.port, one.end_port) for one in changes.fixed] == [(7015, 7019)]
    assert [one.port for one in changes.unknown] == [80]
    assert [*map(str, changes.moved)] == [
        "filtered, admin-prohibited [destination, path] by 10.0.0.1"
    ]
    assert (changes.only_later.flows, changes.only_later.failed) == (1, 1)
    assert (changes.only_earlier.flows, changes.only_earlier.failed) == (6, 0)
    check_golden("diff.txt", stream.getvalue())


def test_flows_that_only_the_earlier_run_has_are_counted() -> None:
    """Who takes a dead host out of the inventory has not mended its flows."""
    old = [port(PASSED, 81), port(BLOCKED, 7010, 7019), port(PASSED, 7000, verdict="inconclusive")]
    changes = compare(fates_of(old), [port(PASSED, 81), port(BLOCKED, 7010, 7014)])
    stream = io.StringIO()
    write_diff_text(RunDiff(("old", "new"), (INFO, INFO), changes), stream)

    gone = changes.only_earlier
    assert (gone.flows, gone.failed, changes.only_later.flows) == (6, 5, 0)
    assert (
        "\nONLY THE EARLIER RUN PROBED (6 flows, 5 of them blocked or exposed)\n"
        "   etcd (deckhouse-nodes): master-0 (10.0.0.10) → master-1 (10.0.0.11)  "
        "tcp 7000, 7015-7019 (6 flows)\n"
    ) in f"\n{stream.getvalue()}"
    last = stream.getvalue().splitlines()[-1]
    assert last.endswith(
        "1 unchanged; 0 probed by the later run only, "
        "6 probed by the earlier run only (5 failed there)"
    )


def test_same_runs_have_no_difference() -> None:
    """A run compared with itself changes nothing."""
    results = list(everything().collector.results())
    changes = compare(fates_of(results), results)

    assert (changes.worse, changes.fixed, changes.unknown) == ([], [], [])
    assert changes.unchanged == 1_002 + 2  # passes, and what is open as before


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-9, 99999)
    | st.text(st.characters(codec="utf-8"), max_size=9)
)
KEYS = st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=8)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
TRAPS = ["22:30", "on", "No", "010", "1e3", "~", "", "a: b", "#x", "- a", "*a", "{a}", "0x1f", ".5"]


@pytest.mark.slow
@given(st.dictionaries(KEYS, DATA, min_size=1, max_size=4))
def test_yaml_round_trip(data: dict[str, object]) -> None:
    """Any plain data is the same after our own YAML reader has read it."""
    text = to_yaml({"data": data, "traps": TRAPS})
    problems: list[Problem] = []
    document = parse(text.encode("utf-8"), problems, "text")

    assert problems == []
    assert document is not None
    assert document.value == {"data": data, "traps": TRAPS}


def test_taken_ports_are_the_first_lines() -> None:
    """Before the table; what the row's own process holds is not listed at all."""
    facts = HostFacts(
        held=("tcp 22: sshd (pid 1) on 0.0.0.0",),
        taken=("tcp 4222: python3 (pid 7) on 0.0.0.0",),
        unasked=("udp 53: dnsmasq (pid 6) on 10.0.0.1",),
        other_run=("tcp 6443: netprobe-agent (pid 8) on 10.0.0.1",),
        doubtful=("tcp 2379: etcd (pid 9) on 127.0.0.1",),
    )
    stream = io.StringIO()
    write_hosts_text([HostReport(name="m0", state="agent", facts=facts)], stream)

    lines = stream.getvalue().splitlines()
    assert lines[:4] == [
        "PORT TAKEN on m0: tcp 4222: python3 (pid 7) on 0.0.0.0",
        "port held on m0: udp 53: dnsmasq (pid 6) on 10.0.0.1; a run will ask whether it is the "
        "service",
        "another netprobe run is active on m0: tcp 6443: netprobe-agent (pid 8) on 10.0.0.1",
        "",
    ]
    assert "m0: port held: tcp 2379: etcd (pid 9) on 127.0.0.1" in lines
    assert "sshd" not in stream.getvalue()
