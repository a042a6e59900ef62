"""Which ways a plan measures, and by how many samples."""

from __future__ import annotations

import pytest

from netprobe.errors import RequestError
from netprobe.model.inventory import Inventory
from netprobe.model.plan import QUALITY, Plan
from netprobe.model.quality import QualityLimits
from netprobe.plan.cost import estimate
from netprobe.plan.expand import make_plan
from netprobe.plan.quality import note_quality, read_samples, with_quality
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement

INVENTORY = Inventory(
    tuple(host(f"n{one}", "node", addresses=(f"10.0.0.{one}",)) for one in (1, 2))
)
LOSS, P99 = QualityLimits(loss=0.01), QualityLimits(rtt_p99_us=66_000)
MATRIX = chosen_matrix([
    requirement("etcd", "node", "node", tcp=((2379, 2380),), quality=P99),
    requirement("dns", "node", "node", tcp=(), udp=((53, 53),), quality=LOSS),
    requirement("ipip", "node", "node", tcp=(), ipproto=(4,), quality=LOSS),
    requirement("api", "node", "node"),
])  # fmt: skip


def measured(text: str | None) -> Plan:
    return with_quality(make_plan([MATRIX], INVENTORY, TODAY), read_samples(text))


def test_rows_with_limits_are_measured() -> None:
    """One port of a range, by enough samples to bound a percentile where the row has such a limit;
    a number that is asked for holds for all."""
    blocks = {one.requirement.id: one for one in measured("usual").blocks if one.rehearsal}
    assert {name: (one.ports, one.samples) for name, one in blocks.items()} == {
        "etcd/quality": (((2379, 2379),), 300), "dns/quality": (((53, 53),), 200),
    }  # fmt: skip
    assert {one.rehearsal for one in blocks.values()} == {QUALITY}
    asked = {one.samples for one in measured("1000").blocks if one.rehearsal}
    assert asked == {1000}


def test_nothing_is_measured_unasked() -> None:
    """Without the option the plan is the same; other protocols are skipped with the reason."""
    plan = make_plan([MATRIX], INVENTORY, TODAY)
    assert measured(None) == plan
    (left,) = [one for one in measured("usual").skipped if one.requirement == "ipip/quality"]
    assert "TCP, UDP and ICMP" in left.reason
    empty = make_plan([chosen_matrix([requirement("api", "node", "node")])], INVENTORY, TODAY)
    assert "no row of this plan says how good" in with_quality(empty, 0).notes[-1]


@pytest.mark.parametrize("text", ["0", "9", "10001", "many", "-5", "1.5", ""])
def test_a_wrong_number_is_a_wrong_request(text: str) -> None:
    """With the numbers that are possible."""
    with pytest.raises(RequestError, match="from 10 to 10,000"):
        read_samples(text)


def test_the_plan_says_what_it_costs() -> None:
    """Flows, samples, pace and time; the estimate of a plan has them too."""
    plan = note_quality(measured("1000"))
    assert "4 flows of rows with `quality:`, 4,000 samples in all, 50 a second" in plan.notes[-1]
    assert "about 20 s" in plan.notes[-1]
    bare = make_plan([MATRIX], INVENTORY, TODAY)
    assert estimate(plan).seconds >= estimate(bare).seconds + 20
    assert estimate(plan).packets > 4_000
    assert note_quality(bare) == bare
