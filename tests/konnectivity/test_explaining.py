"""Silence points to ``explain``, with words that it takes."""

from __future__ import annotations

import asyncio
import shlex
from datetime import date
from pathlib import Path

import pytest

from netprobe.explain.request import FlowRequest, parse_wire, plan_flow
from netprobe.konnectivity.findings import Conclusion, Log, diagnosis
from netprobe.konnectivity.run import word_explain
from netprobe.konnectivity.verdicts import VERDICTS
from netprobe.model.konnectivity import Diagnosis

INVENTORY = """\
schema: netprobe.inventory/1
hosts:
  w-1:
    addresses: [192.0.2.1, "2001:db8::1"]
    roles: [worker]
"""


def verdict(code: str, flow: tuple[str, str], *, silent: bool = False) -> Diagnosis:
    """A worker's verdict about this flow."""

    async def conclude() -> Diagnosis:
        what = Conclusion(code, "as it was seen", flow=flow, silent=silent)
        return diagnosis("w-1", "direct", Log(), what)

    return asyncio.run(conclude())


@pytest.mark.parametrize("flow", [("10.0.0.9", "tcp/443"), ("fd00::9", "udp/53")])
def test_explain_takes_the_words(tmp_path: Path, flow: tuple[str, str]) -> None:
    """Every word is where ``explain`` expects it, and the flow is one that it can plan."""
    inventory = tmp_path / "my inventory.yaml"
    inventory.write_text(INVENTORY)
    words = shlex.split(word_explain(verdict("TCP_FILTERED", flow), [str(inventory)]))
    assert words == ["netprobe", "explain", "w-1", *flow, "-i", str(inventory)]
    request = FlowRequest(words[2], words[3], parse_wire(words[4]), (words[6],))
    assert plan_flow(request, date(2026, 11, 20)).blocks


def test_only_silence_is_explained() -> None:
    """Who answers has been found: a refusal needs no search for a hop."""
    flow = ("10.0.0.9", "tcp/443")
    assert word_explain(verdict("TCP_REFUSED", flow), ["i"]) == ""
    assert word_explain(verdict("PROXY_UNREACHABLE", flow), ["i"]) == ""
    assert word_explain(verdict("PROXY_UNREACHABLE", flow, silent=True), ["i"])


def test_without_an_inventory_the_words_have_a_place_for_it() -> None:
    """``explain`` starts from a host of an inventory."""
    words = word_explain(verdict("TCP_FILTERED", ("10.0.0.9", "tcp/443")), [])
    assert words == "netprobe explain THIS-HOST 10.0.0.9 tcp/443 -i INVENTORY"


def test_every_silent_verdict_is_a_fault() -> None:
    """Nobody is sent to look for a hop where all is well."""
    silent = {code for code, one in VERDICTS.items() if one.silent}
    assert {"TCP_FILTERED", "NAME_SERVERS_SILENT", "SERVER_SILENT", "CLIENTHELLO_DROPPED"} < silent
    assert {VERDICTS[code].outcome for code in silent} == {"fault"}
