"""Rules in every syntax open exactly the flows asked for: random flows, read back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from netprobe.cli.options import REQUEST_FORMATS
from netprobe.model.result import Result
from netprobe.request.rules import RequestWishes
from netprobe.request.syntaxes import SYNTAXES
from netprobe.request.syntaxes.common import sections
from tests.request import readers
from tests.request.flows import ask, asked_flows, failures, opened_flows, placed, written
from tests.request.samples import sample

ALL = ("path", "destination", "source")
ALL_PROTOCOLS = ("tcp", "udp", "icmp", "ipproto/112")
# Reader, the places whose rules the syntax writes, and the protocols that it has words for.
READERS: dict[str, tuple[readers.Reader, tuple[str, ...], tuple[str, ...]]] = {
    "csv": (readers.read_csv, ALL, ALL_PROTOCOLS),
    "tufin": (readers.read_tufin, ALL, ALL_PROTOCOLS),
    "algosec": (readers.read_algosec, ALL, ALL_PROTOCOLS),
    "calico": (readers.read_calico, ALL, ALL_PROTOCOLS),
    "iptables": (readers.read_iptables, ALL, ALL_PROTOCOLS),
    "ufw": (readers.read_ufw, ALL, ("tcp", "udp", "ipproto/112")),
    "windows": (readers.read_windows, ("destination", "source"), ALL_PROTOCOLS),
    "paloalto": (readers.read_paloalto, ("path",), ("tcp", "udp", "icmp")),
    "junos": (readers.read_junos, ("path",), ALL_PROTOCOLS),
    "fortios": (readers.read_fortios, ("path",), ALL_PROTOCOLS),
}


def test_the_command_line_knows_all_syntaxes() -> None:
    """The help lists the syntaxes without importing them."""
    assert tuple(SYNTAXES) == REQUEST_FORMATS


@pytest.mark.slow
@given(failures())
@settings(max_examples=40)
def test_rules_open_exactly_what_was_asked_for(results: tuple[Result, ...]) -> None:
    """All of it, nothing more; and with --by nothing else than the grouping changes."""
    asked = asked_flows(results)

    assert opened_flows(ask(results).rules) == asked
    assert opened_flows(ask(results, RequestWishes(by="finding")).rules) == asked
    assert opened_flows(ask(results, RequestWishes(by="requirement")).rules) == asked


@pytest.mark.slow  # together they take a second
@given(results=failures())
@settings(max_examples=15)
@pytest.mark.parametrize("syntax", READERS)
def test_what_is_written_opens_exactly_that(syntax: str, results: tuple[Result, ...]) -> None:
    """Read back, a syntax's text is the flows asked for; what it cannot say, it says so."""
    read, places, protocols = READERS[syntax]
    text = written(ask(results), syntax)
    asked = {flow for flow in asked_flows(results, places) if flow[2] in protocols}

    assert read(text) == asked
    left = [
        one
        for one in placed(results)
        if one.protocol not in protocols or not set(places) & {*one.where}
    ]
    assert ("NOT WRITTEN" in text) == bool(left)


@given(failures())
@settings(max_examples=5)
def test_one_per_row(results: tuple[Result, ...]) -> None:
    """With --one-per-row every cell has one value, and the flows are the same."""
    text = written(ask(results, RequestWishes(one_per_row=True)), "csv")
    rows = [line.split(",") for line in text.splitlines()[1:]]

    assert readers.read_csv(text) == asked_flows(results)
    assert not [cell for row in rows for cell in row[2:8] if ";" in cell]


def test_a_named_chain_is_that_of_the_routers_or_of_all_hosts() -> None:
    """Where rules go to both, hosts keep the chain of the direction, in the table that is named."""
    both, hosts = sample(), sample()
    hosts = replace(
        hosts,
        rules=tuple(
            one for one in hosts.rules if all(each.place != "path" for each in one.enforcers)
        ),
    )
    assert hosts.rules
    for request, is_named in ((both, False), (hosts, True)):
        named = replace(request, into={"nftables": "ip/mine/OWN", "iptables": "OWN"})
        for syntax, own in (("nftables", " ip mine input "), ("iptables", " INPUT ")):
            text = written(named, syntax)
            rules = [line for line in text.splitlines() if line and not line.startswith("#")]
            assert any("OWN" in line for line in rules)
            assert any(own in line for line in rules) is not is_named
        assert ("NEVER APPLY THE WHOLE FILE" in text) is (len(list(sections(request))) > 1)
