"""Rules in every syntax open exactly the flows asked for: random flows, read back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from netprobe.cli.options import REQUEST_FORMATS
from netprobe.model.firewall import Enforcer, FirewallRequest
from netprobe.model.result import Result
from netprobe.request.rules import RequestWishes
from netprobe.request.syntaxes import SYNTAXES
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


def of_places(*places: str) -> FirewallRequest:
    """The request with everything, of it the rules of these places only."""
    request = sample()
    kept = [one for one in request.rules if any(who.place in places for who in one.enforcers)]
    return replace(request, rules=tuple(kept))


def test_a_named_chain_has_one_direction() -> None:
    """It is that of routers, else of what comes in; the other rules keep their own directions."""
    cases = ((sample(), "forward"), (of_places("destination"), "input"))
    for request, way in cases:
        named = replace(request, into={"nftables": "ip/mine/OWN", "iptables": "OWN"})
        for syntax, word in (("nftables", "ip mine {}"), ("iptables", "-I {}")):
            plain, text = written(replace(request, into={"nftables": "ip/mine"}), syntax), ""
            for line in plain.splitlines():
                own = word.format(way if syntax == "nftables" else way.upper())
                text += line.replace(f" {own} ", f" {word.format('OWN')} ") + "\n"
            assert text == written(named, syntax)
            assert text.count("OWN") < text.count("netprobe 212c7a")


def test_a_file_for_several_places_must_not_be_applied_whole() -> None:
    """It says so where its rules would do something at a place that they are not for."""
    hosts = {"windows", "calico", "terraform-aws", "terraform-openstack"}
    pages = {"markdown", "text", "json", "csv", "xlsx", "tufin", "algosec"}
    both, router = sample(), replace(sample(), rules=sample().rules[:1])
    elsewhere = (Enforcer("path", "10.0.9.9"),)
    routers = replace(both, rules=(router.rules[0], replace(both.rules[2], enforcers=elsewhere)))
    for syntax in SYNTAXES.keys() - hosts - pages:
        assert "NEVER APPLY THE WHOLE FILE" in written(routers, syntax), syntax
        assert "NEVER APPLY THE WHOLE FILE" not in written(router, syntax), syntax
    for syntax in ("nftables", "iptables", "ufw", "firewalld", "aerleon"):
        assert "NEVER APPLY THE WHOLE FILE" in written(both, syntax), syntax


def test_a_file_says_how_another_place_is_named() -> None:
    """Whatever --into can name has its words at the head of the file, below what it is."""
    for name in (name for name, syntax in SYNTAXES.items() if syntax.into is not None):
        line = written(sample(), name).removeprefix("#!/bin/sh\n").splitlines()[1]
        assert f"another place of the rules: netprobe request ... --into {name}=" in line


def test_each_part_for_firewalld_makes_what_it_uses() -> None:
    """A part may be the only one for its device: policies and sets of addresses are its own."""
    _, *parts = written(sample(), "firewalld").split("\n# --- on ")
    assert len(parts) > 1
    for part in parts:
        used = {*re.findall(r"--policy=(\S+)", part), *re.findall(r'ipset="(\S+)"', part)}
        assert used
        assert used == {*re.findall(r"--new-(?:policy|ipset)=(\S+)", part)}
        assert part.rstrip().endswith("firewall-cmd --reload")
