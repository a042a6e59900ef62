"""One cause is one finding: faults of routes, links and firewalls in an estate of nine hosts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.lab.causes import FAULTS, Estate, Fault

pytestmark = [pytest.mark.lab, pytest.mark.slow]


def find_causes(faults: Sequence[Fault]) -> tuple[int, list[str]]:
    """Plant the faults, and give the exit status and the titles of the findings."""
    with Estate() as lab:
        for fault in faults:
            fault.plant(lab)
        done = lab.run()
    assert done.document["summary"]["pass"] > 250
    return done.status, [one["title"] for one in done.document["findings"]]


@pytest.mark.full
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_one_finding(fault: Fault) -> None:
    """Whatever protocols, ports and directions it stops."""
    status, (title,) = find_causes([fault])

    assert (status, title[: len(fault.title)]) == (1, fault.title)


@pytest.mark.full
def test_the_healthy_twin_has_none() -> None:
    """Every flow passes without a fault."""
    assert find_causes([]) == (0, [])


def test_all_faults_at_once_are_as_many_findings() -> None:
    """None of them takes members of another one."""
    status, titles = find_causes(FAULTS)

    assert status == 1
    assert sorted(title for title in titles) == sorted(
        next((one for one in titles if one.startswith(fault.title)), fault.title)
        for fault in FAULTS
    )
