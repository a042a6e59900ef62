"""Files of accepted flows: what they hold, and for how long anything may be accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from netprobe.errors import FileErrors
from netprobe.load.accepted import load_accepted
from netprobe.load.check import check_files
from netprobe.model.accepted import Acceptance

GOOD = Path(__file__).parent / "good" / "accepted.yaml"
LONG = GOOD.read_text().replace("2027-01-31", "2027-11-23")


def test_entries() -> None:
    """Every key arrives; one host or port stands for a list of one; ports are ranges."""
    first, second = load_accepted([str(GOOD)])

    assert first == Acceptance(
        id="a1",
        matrix="base",
        requirement="etcd",
        from_=("master-0", "master-1"),
        to=("master-0", "master-1"),
        addresses=("10.0.0.10", "10.0.0.11"),
        protocol="tcp",
        ports=((2380, 2380), (7000, 7010)),
        verdict="blocked",
        where=("path", "destination"),
        reason="the new firewall comes in January",
        owner="platform-team",
        ticket="CHG-77",
        since="2026-11-22",
        until="2027-01-31",
    )
    assert (second.from_, second.to, second.ports, second.where) == (
        ("master-0",),
        ("master-1",),
        (),
        (),
    )
    assert second.until == "never"


@pytest.mark.parametrize(("days", "fine"), [(365, False), (366, True)])
def test_longest_time(days: int, fine: bool, tmp_path: Path) -> None:
    """An entry that holds for longer than --max-acceptance is refused at its last day."""
    path = tmp_path / "a.yaml"
    path.write_text(LONG)

    if fine:
        assert len(load_accepted([str(path)], days)) == 2
        return
    with pytest.raises(FileErrors) as caught:
        load_accepted([str(path)], days)
    assert str(caught.value) == (
        f"{path}:17:12: 2027-11-23 is 366 days after since (2026-11-22), "
        "expected 365 at most (--max-acceptance), or never"
    )


def test_several_files(tmp_path: Path) -> None:
    """Files are read together: an id that two of them have is a problem with both places."""
    path = tmp_path / "a.yaml"
    path.write_text(GOOD.read_text().replace("id: a2", "id: a3"))

    with pytest.raises(FileErrors) as caught:
        load_accepted([str(GOOD), str(path)])
    assert str(caught.value) == (
        f'{path}:3:9: the id "a1" stands at {GOOD}:3:5 already, expected every id once'
    )


def test_check(tmp_path: Path) -> None:
    """The file is summed up in a line; what has ended is a note."""
    path = tmp_path / "a.yaml"
    path.write_text(GOOD.read_text().replace("2026-11-22", "2020-11-22").replace("2027-", "2021-"))

    assert check_files([str(path)]).splitlines() == [
        f"{path}: accepted flows, 2 entries, no problems",
        "  note: a1 ended on 2021-01-31: it holds no more",
    ]
    path.write_text(
        GOOD.read_text()
        .replace("since: 2026-11-22", "since: 2999-11-22")
        .replace("2027-", "2999-")
        .replace("-01-31", "-12-31")
    )
    assert check_files([str(path)]).splitlines()[1:] == [
        "  note: a1 begins on 2999-11-22: it does not hold yet",
        "  note: a2 begins on 2999-11-22: it does not hold yet",
    ]
