"""What a run takes over from an earlier one, and at which place of its plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.model.plan import PATH_MTU, PlannedMatrix
from netprobe.model.result import AcceptedBy
from netprobe.report.record.changes import compare, key_of
from netprobe.report.record.earlier import TakeOver, done_ports, word_changes
from netprobe.report.record.record import RecordWriter, read_record
from tests.report.plans import ETCD, PLAN
from tests.report.samples import BLOCKED, INFO, PASSED, REFUSED, port
from tests.report.test_record import HEADER, written

UNSURE = replace(BLOCKED, verdict="inconclusive")


def taken(path: Path, option: str) -> TakeOver:
    """A record, to resume or to retry."""
    return TakeOver(option, read_record(str(path)))


def test_done_ports() -> None:
    """What is kept need not be probed again: its ports, joined, for every flow."""
    echo = replace(PASSED, protocol="icmp", port=None, end_port=None)
    done = done_ports(
        [
            port(PASSED, 7000, 7100),
            port(BLOCKED, 7101, 7102),
            port(PASSED, 7200, verdict="exposed"),
            echo,
        ]
    )

    assert done == {key_of(PASSED): ((7000, 7102), (7200, 7200)), key_of(echo): ()}


def test_kept_is_what_the_plan_still_asks(tmp_path: Path) -> None:
    """A host that moved or left the inventory, and what is not final, is not kept."""
    *rest, ntp = PLAN.blocks
    wanted = replace(ntp, requirement=replace(ntp.requirement, expect="allowed"))
    named = replace(
        PASSED,
        requirement="ntp",
        destination="time",
        address="192.0.2.123",
        protocol="icmp",
        port=None,
        end_port=None,
    )
    moved = replace(PASSED, address="10.0.0.99")
    path = written(
        tmp_path / "r", PASSED, port(BLOCKED, 2380), moved, replace(PASSED, source="x"), named,
        port(UNSURE, 2381),
    )  # fmt: skip

    kept = taken(path, "--resume").kept(replace(PLAN, blocks=(*rest, wanted)))
    assert list(kept) == [
        replace(PASSED, order=(0, 0, 1)),
        replace(port(BLOCKED, 2380), order=(0, 0, 1)),
        replace(named, order=(2, 0, 0), purpose="", row="", waived="on Monday"),
    ]


def test_what_was_accepted_then_is_forgotten(tmp_path: Path) -> None:
    """Today's files say what is accepted and known; an earlier run's do not."""
    accepted = AcceptedBy("a1", "later", "team", "2027-01-31")
    path = written(tmp_path / "r", replace(BLOCKED, accepted=accepted, known="base.json"))

    assert list(taken(path, "--resume").kept(PLAN)) == [replace(BLOCKED, order=(0, 0, 1))]


def test_other_settings_cannot_be_resumed(tmp_path: Path) -> None:
    """A record of other matrices or settings is refused, and both are named."""
    path = written(tmp_path / "r", PASSED)
    other = replace(PLAN, matrices=(PlannedMatrix("deckhouse-nodes", {"cni": "flannel"}),))

    with pytest.raises(RequestError) as caught:
        list(taken(path, "--resume").kept(other))
    assert "of deckhouse-nodes (cni=cilium, modules=sds,cloud, ha=True), this one is of" in str(
        caught.value
    )


def test_resume_into_the_same_file(tmp_path: Path) -> None:
    """The old record is whole until the new one holds all that was kept of it."""
    path = written(tmp_path / "r", PASSED, port(UNSURE, 2380))
    writer = RecordWriter(str(path), HEADER, taken(path, "--resume").kept(PLAN))
    writer.add(port(PASSED, 2380))
    writer.close(INFO)

    moved = replace(PASSED, order=(0, 0, 1))
    assert list(read_record(str(path)).read_results()) == [moved, port(PASSED, 2380)]
    assert [one.name for one in tmp_path.iterdir()] == ["r"]


def test_retry_keeps_passes_only(tmp_path: Path) -> None:
    """What was blocked is asked again; what became of it is one line."""
    path = written(tmp_path / "r", PASSED, port(BLOCKED, 2380), port(BLOCKED, 2381))
    again = taken(path, "--retry")
    fates = again.fates()

    assert list(again.kept(PLAN)) == [replace(PASSED, order=(0, 0, 1))]
    assert fates is not None
    changes = compare(fates, [PASSED, port(PASSED, 2380)])
    assert word_changes(changes) == (
        "2 failed before: 1 pass now, 1 outside of this selection (the exit status does not count "
        "them)"
    )


@pytest.mark.parametrize("option", ["--retry", "--resume"])
def test_name_and_time_servers_are_asked_again(option: str, tmp_path: Path) -> None:
    """What they answer is held against their answers to others, and against clocks, of one run;
    faults of hosts are looked for anew."""
    (first, *_) = PLAN.blocks
    asking = replace(first, requirement=replace(first.requirement, probe="ntp"))
    fault = replace(
        BLOCKED, requirement="clock", destination=BLOCKED.source, protocol="udp",
        state="unknown", reason="clock-apart", where=("source",), rejected_by=None, last_hop=None,
    )  # fmt: skip
    again = taken(written(tmp_path / "r", PASSED, port(BLOCKED, 2380), fault), option)

    kept = list(again.kept(replace(PLAN, blocks=(asking,))))
    assert [one.verdict for one in kept] == (["blocked"] if option == "--resume" else [])
    assert not [one for one in kept if one.requirement == "clock"]


def test_what_the_plan_knows_comes_from_the_plan(tmp_path: Path) -> None:
    """A record cannot make a failure optional or waived, nor name it otherwise."""
    forged = replace(
        BLOCKED, optional=True, waived="on Monday", purpose="?", row="?", stops="monitoring"
    )
    path = written(tmp_path / "r", forged, end=False)

    (kept,) = taken(path, "--resume").kept(PLAN)
    assert kept == replace(BLOCKED, order=(0, 0, 1))
    assert kept.decides


def test_only_what_the_plan_asks_is_done(tmp_path: Path) -> None:
    """Ports that the plan does not have, and what was expected otherwise, fill no gaps."""
    denied = replace(REFUSED, expect="denied", port=2380, end_port=2380)
    drbd = replace(PASSED, requirement="drbd")
    path = written(
        tmp_path / "r", port(PASSED, 2300, 2379), denied, port(drbd, 6000, 8000), end=False
    )
    kept = list(taken(path, "--resume").kept(PLAN))

    assert [(one.requirement, one.ports, one.optional) for one in kept] == [
        ("etcd", ((2379, 2379),), False),
        ("drbd", ((7000, 7999),), True),
    ]


def test_each_path_mtu_is_kept_in_its_own_place(tmp_path: Path) -> None:
    """Two overlays between the same hosts are two flows of the plan, one of them optional."""
    blocks = [
        replace(
            PLAN.blocks[0], index=index, protocol="icmp", ports=(),
            requirement=replace(ETCD, id=PATH_MTU, purpose=name, optional=bool(index)),
        )
        for index, name in enumerate(("vxlan", "geneve"))
    ]  # fmt: skip
    echo = replace(PASSED, requirement=PATH_MTU, protocol="icmp", port=None, end_port=None,
                   reason="full-size")  # fmt: skip
    some = [replace(echo, purpose="geneve"), replace(echo, purpose="vxlan")]
    path = written(tmp_path / "r", *some)
    kept = taken(path, "--resume").kept(replace(PLAN, blocks=tuple(blocks)))

    assert [(one.order, one.purpose, one.optional) for one in kept] == [
        ((1, 0, 1), "geneve", True),
        ((0, 0, 1), "vxlan", False),
    ]


def test_what_passed_and_is_asked_again_is_explained(tmp_path: Path) -> None:
    """Beside what is kept: other rows on ports that failed, and servers that are compared."""
    ntp = replace(
        PASSED, requirement="ntp", destination="time", address="192.0.2.123", protocol="icmp",
        port=None, end_port=None,
    )  # fmt: skip
    other = replace(port(BLOCKED, 2379), requirement="etcd-2")
    path = written(tmp_path / "r", PASSED, port(PASSED, 2380), other, ntp)
    (etcd, *rest) = PLAN.blocks
    time = next(one for one in rest if one.requirement.id == "ntp")
    asking = replace(
        time, waiver=None, requirement=replace(time.requirement, probe="ntp", expect="allowed")
    )
    plan = replace(PLAN, blocks=(etcd, asking))
    retry = taken(path, "--retry")

    again = retry.count_again(plan)
    assert (again.rows, again.servers) == (1, 1)
    assert sum(one.port_count for one in retry.kept(plan)) == 1
    assert retry.word_kept({"pass": 1}, again).endswith(
        "kept, not probed again; asked again although they passed: 1 on ports that failed in other "
        "rows, 1 of name or time servers, whose answers are compared"
    )
    assert retry.word_kept({"pass": 1}).endswith("kept, not probed again")
