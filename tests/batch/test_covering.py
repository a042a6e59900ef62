"""A run in batch mode whose plan covers a larger one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.parts import OutcomeKind
from netprobe.batch.request import read_request, write_request
from netprobe.batch.rounds import make_first_round, make_next_round
from netprobe.cli.merge import choose_stored_part
from tests.batch.support import header
from tests.batch.world import SILENT, Merged, carry_out, plan_of, request_of
from tests.probe.fakes import host

HOSTS = tuple(
    replace(host(f"{zone}{number}", f"10.0.{zone}.{number}"), zone=f"zone-{zone}")
    for zone in (1, 2, 3)
    for number in (1, 2, 3, 4)
)


@pytest.mark.slow
def test_what_zones_leave_open_is_the_next_round() -> None:
    """Of one host that a whole zone cannot reach, all flows are probed in the end; the rest is
    covered, and no covered flow is a pass."""
    plan = plan_of(("web", "tcp", ((80, 80),)), hosts=HOSTS)
    made = request_of(plan, cover=(1, 0))
    request = read_request(write_request(made), "x")
    assert request.cover == (1, 0)
    probed = choose_stored_part(request).plan
    assert probed.flow_count() < plan.flow_count() / 2

    def drop(source: str, order: object, _port: int) -> OutcomeKind | None:
        is_there = getattr(order, "dst", "") == "10.0.3.4"
        return SILENT if is_there and source.startswith("1") else None

    request, scripts = make_first_round(request, probed)
    told = [carry_out(script, drop, hosts=HOSTS) for script in scripts]
    for _ in range(4):
        merged = Merged(request, told, choose_stored_part(request))
        request, scripts = make_next_round(request, probed, merged.fleet)
        if not scripts:
            break
        about = header()._replace(round=request.round)
        told += [replace(carry_out(script, drop, hosts=HOSTS), header=about) for script in scripts]

    blocked = {(one.source, one.destination) for one in merged.results if one.verdict == "blocked"}
    assert blocked == {(f"1{number}", "34") for number in (1, 2, 3, 4)}
    assert {one.verdict for one in merged.results} == {"pass", "blocked"}
    coverage = merged.info.coverage
    assert coverage is not None
    assert sum(one.flows for one in coverage.unprobed) == plan.flow_count() - len(merged.results)
    assert {one.verdict for one in coverage.unprobed} == {"covered"}
