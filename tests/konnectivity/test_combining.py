"""Several addresses of one name: which faults the agent gets over, and what they cost."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from netprobe.konnectivity.combining import AddressLook, combine
from netprobe.konnectivity.findings import Conclusion, Log, diagnosis
from netprobe.konnectivity.reach import Reach
from netprobe.konnectivity.request import Tunnel
from netprobe.model.konnectivity import STAGES, Diagnosis

TUNNEL = Tunnel("k.example.com", 443, "route", sni="k.example.com")
FINE = "KONN_REACHED_MTLS"


def combined(*addresses: tuple[str, str, dict[str, Any]]) -> Diagnosis:
    """One diagnosis of addresses with these codes and evidences."""

    async def combine_them() -> Diagnosis:
        names, found = Log(), []
        names.add("names", "ok", "said")
        for address, code, evidence in addresses:
            log = Log()
            log.add("tcp", "ok" if code == FINE else "bad", "said")
            log.skip("not-needed", "not needed", *STAGES[1:])
            reach = Reach(cast(Any, None), TUNNEL, address, 443)
            found.append(AddressLook(reach, log, Conclusion(code, "because", evidence)))
        what = combine(TUNNEL, names, found)
        return diagnosis("w", "direct", names, what)

    return asyncio.run(combine_them())


@pytest.mark.parametrize(
    ("addresses", "cost"),
    [
        ((("10.0.0.1", FINE, {}), ("10.0.0.2", "TCP_FILTERED", {})), "each connect 10 s"),
        (
            (
                ("10.0.0.1", FINE, {}),
                ("10.0.0.2", FINE, {}),
                ("10.0.0.3", "TCP_FILTERED", {}),
            ),
            "each connect 7 s",
        ),
        ((("10.0.0.1", FINE, {}), ("fd00::1", "TCP_FILTERED", {})), "after 0.3 s"),
        ((("10.0.0.1", FINE, {}), ("10.0.0.2", "HOST_UNREACHABLE", {})), "about 3 s longer"),
        ((("10.0.0.1", FINE, {}), ("10.0.0.2", "TCP_REFUSED", {})), "next to nothing"),
    ],
)
def test_a_deaf_address_is_a_warning_with_its_cost(
    addresses: tuple[tuple[str, str, dict[str, Any]], ...], cost: str
) -> None:
    """The dialler goes on to the next address, so the tunnel is fine."""
    found = combined(*addresses)
    assert (found.code, found.outcome, found.where) == (FINE, "ok", None)
    (warning,) = found.warnings
    assert cost in warning
    assert "1 of " in warning
    assert "bad" not in {stage.status for stage in found.stages}
    assert "doubt" in {stage.status for stage in found.stages}


@pytest.mark.parametrize("code", ["TLS_INTERCEPTED", "PMTU_BLACKHOLE_OUT", "NOT_KONNECTIVITY"])
def test_behind_tcp_the_agent_does_not_go_on(code: str) -> None:
    """An address that opens and then fails is a fault: who picks it does not connect."""
    found = combined(("10.0.0.1", FINE, {}), ("10.0.0.2", code, {}))
    assert (found.code, found.outcome, found.warnings) == ("FANOUT_ADDRESS_FAILS", "fault", ())


def test_no_address_that_answers_is_the_fault_itself() -> None:
    """Where all are deaf nothing is got over."""
    found = combined(("10.0.0.1", "TCP_FILTERED", {}), ("10.0.0.2", "TCP_FILTERED", {}))
    assert (found.code, found.outcome, found.where) == (
        "TCP_FILTERED",
        "fault",
        "path or destination",
    )
