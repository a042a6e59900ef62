"""Words, names and flows in few characters, without saying what is not so."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from netprobe.model.names import names_text
from netprobe.model.printable import clean
from netprobe.model.result import Result
from netprobe.report.page.flow_groups import Survey, flow_lines, needs
from netprobe.report.page.wording import duration, listed, plural, port_text, where_text
from netprobe.report.run.to_do import choose_to_do
from tests.report.samples import BLOCKED, PASSED, port


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a"], "a"),
        (["w-1", "w-2", "w-3"], "w-1, w-2, w-3"),
        (["w-8", "w-9", "w-10", "w-11"], "w-[8-11]"),
        (["w-08", "w-09", "w-10", "w-11"], "w-[08-11]"),
        (["w-8", "w-09", "w-10", "w-11"], "w-8, w-09, w-10, w-11"),
        (["n1.x.org", "n2.x.org", "n3.x.org", "n4.x.org"], "n[1-4].x.org"),
        (
            ["n1.x.org", "n2.x.org", "n3.y.org", "n4.y.org"],
            "n1.x.org, n2.x.org, n3.y.org, n4.y.org",
        ),
        (["m", *(f"w-{n}" for n in range(40)), "a", "b", "c"], "m, w-[0-39], a, b and 1 more"),
    ],
)
def test_names(names: list[str], text: str) -> None:
    """Runs of numbered names fold from four on; padding and domains are kept apart."""
    assert names_text(names, 4) == text


def test_small_words() -> None:
    """Numbers, durations and lists read as people write them."""
    assert plural(1, "flow") == "1 flow"
    assert plural(12345, "flow") == "12,345 flows"
    assert [duration(s) for s in (0.04, 59.94, 61, 7260)] == [
        "0.0 s",
        "59.9 s",
        "1 min 1 s",
        "2 h 1 min",
    ]
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"
    assert [port_text(port(PASSED, 1)), port_text(port(PASSED, 1, 2))] == ["1", "1-2"]
    assert port_text(replace(PASSED, port=None, end_port=None)) == ""


def test_where() -> None:
    """One place is named, several are said to be open; a refusing router is named."""
    assert where_text(PASSED) == "not known"
    assert where_text(replace(BLOCKED, where=("path",), rejected_by="10.0.1.1", last_hop=None)) == (
        "the path between the hosts: 10.0.1.1 refused it"
    )
    small = replace(
        BLOCKED, where=("path",), rejected_by="10.0.1.1", last_hop=None, reason="mtu-too-small"
    )
    assert where_text(small) == "the path between the hosts: the link behind 10.0.1.1"
    assert where_text(BLOCKED) == (
        "not narrowed down between the destination's own firewall and the path between the hosts"
    )


def between(sources: str, destinations: str, *ports: int) -> list[Result]:
    """Blocked results from each source to each other destination."""
    return [
        port(
            BLOCKED, number, source=source, destination=destination, address=f"10.0.0.{destination}"
        )
        for source, destination, number in product(sources, destinations, ports or (443,))
        if source != destination
    ]


def test_all_to_all_is_one_line() -> None:
    """A mesh of hosts is one line: a host to itself is no network flow."""
    assert flow_lines(between("abc", "abc"), {}) == [
        "a, b, c → b (10.0.0.b), c (10.0.0.c), a (10.0.0.a)  tcp 443"
    ]


@pytest.mark.parametrize(
    ("end", "known", "line"),
    [
        ("10.0.0.2", {"a": ("10.0.0.1", "fd00::1")}, "a (10.0.0.1) → x (10.0.0.2)  tcp 2379"),
        ("fd00::2", {"a": ("10.0.0.1", "fd00::1")}, "a (fd00::1) → x (fd00::2)  tcp 2379"),
        ("10.0.0.2", {"a": ("10.0.0.1", "10.9.0.1")},
         "a (10.0.0.1 or 10.9.0.1) → x (10.0.0.2)  tcp 2379"),
        ("x.example.com", {"a": ("10.0.0.1",)}, "a → x (x.example.com)  tcp 2379"),
        ("10.0.0.2", {"a": ("fd00::1",)}, "a → x (10.0.0.2)  tcp 2379"),
    ],
)  # fmt: skip
def test_sources_have_the_addresses_that_a_rule_needs(
    end: str, known: dict[str, tuple[str, ...]], line: str
) -> None:
    """Of the family that is probed; of several the kernel chose one, so all are named."""
    one = replace(BLOCKED, source="a", destination="x", address=end)

    assert flow_lines([one], known) == [line]


def test_holes_are_not_covered_up() -> None:
    """Where one pair is missing the lines name exactly the pairs that there are."""
    members = [one for one in between("ab", "xy") if (one.source, one.destination) != ("b", "y")]

    assert flow_lines(members, {}) == ["a, b → x (10.0.0.x)  tcp 443", "a → y (10.0.0.y)  tcp 443"]


def test_ports_fold_by_pair() -> None:
    """Ports that all pairs share stand together, with their protocols."""
    members = [
        *between("a", "xy", 80, 81, 443),
        *(replace(one, protocol="udp") for one in between("a", "xy", 53)),
        *(replace(one, protocol="icmp", port=None, end_port=None) for one in between("a", "xy", 1)),
    ]

    assert flow_lines(members, {}) == [
        "a → x (10.0.0.x), y (10.0.0.y)  tcp 80-81, 443; udp 53; icmp"
    ]


def test_many_groups_are_cut() -> None:
    """More lines than anybody reads are counted instead."""
    members = [one for index in range(9) for one in between("a", "bcdefghij"[index], index + 1)]

    assert str(flow_lines(members, {})[-1]) == "and 4 more groups, see -o wide"
    assert len(flow_lines(members, {})) == 6


def test_survey_and_needs() -> None:
    """A survey lists what occurs; purposes are listed once and cut."""
    survey = Survey(BLOCKED)
    for one in between("abcde", "xyz", 80, 81):
        survey.add(one)

    assert survey.text({}).endswith("tcp 80-81 (30 flows)")
    many = [replace(BLOCKED, requirement=f"r{index}") for index in range(9)]
    assert needs(many)[-1] == "and 6 more (r3, r4, r5, r6, r7, r8)"


@given(st.text(st.characters() | st.sampled_from("\x1b[]\x9b\u202e\u061c\u2028\xa0\xad\ufffe")))
def test_clean_is_printable(text: str) -> None:
    """Whatever comes in, one line of harmless characters comes out; clean text stays as it is."""
    once = clean(text)

    assert once.isprintable()
    assert clean(once) == once
    once.encode("utf-8")


@pytest.mark.parametrize("reason", ["no-vantage", "stopped", "agent-lost", "of-a-later-version"])
def test_what_nobody_could_look_at_has_something_to_do(reason: str) -> None:
    """Also for a reason that a later version has."""
    assert choose_to_do(reason).endswith(".")
