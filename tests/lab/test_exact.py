"""Exactness: a firewall between all hosts, and what is reported blocked is what its rules block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.lab.cli import Finished, flows_of, netprobe
from tests.lab.expected import (
    PATH_MTU,
    Flow,
    Hosts,
    Line,
    before_services,
    blocked_flows,
    required,
    requirement_ids,
    rulesets,
)
from tests.lab.netlab import FIRST_EPHEMERAL_PORT, Lab
from tests.lab.platforms import PLATFORM_SCENARIOS
from tests.lab.scenarios import KINDS, SCENARIOS, Kind, Scenario, draw_rules, fitting
from tests.matrices.source import LAYERS, PLATFORMS

ALL = (*SCENARIOS, *PLATFORM_SCENARIOS)


def _ask(lab: Lab, scenario: Scenario) -> Finished:
    inventory = lab.inventory(scenario.hosts, settings=scenario.settings)
    matrix = lab.write("site.yaml", before_services(scenario.matrix, scenario.override))
    return netprobe("run", "--matrix", str(matrix), "-i", str(inventory), "-o", "json")


def _build(lab: Lab, scenario: Scenario) -> None:
    router = lab.router("fw", "10.88.0.1", "fd88::1")
    for name, texts in scenario.addresses().items():
        lab.host(name, router, *texts)
    lab.wait_until_ready()


def _short(flows: set[Flow]) -> str:
    shown = "\n  ".join(" ".join(map(str, flow)) for flow in sorted(flows, key=str)[:12])
    return f"{len(flows)}:\n  {shown}"


def _said_of(results: Sequence[dict[str, Any]], flows: set[Flow]) -> list[str]:
    """What the results that hold any of the flows say instead."""
    return [_say(result) for result in results if flows & set(flows_of(result))]


def _say(result: dict[str, Any]) -> str:
    keys = ("requirement", "source", "address", "protocol", "port", "end_port", "verdict")
    return " ".join(str(result[key]) for key in (*keys, "reason", "proof", "because"))


def _not_proved(results: Sequence[dict[str, Any]], blocked: set[Flow]) -> list[str]:
    """Required, unblocked flows that are no pass, or a pass with less than an agent's proof."""
    wrong = []
    for result in results:
        if result["expect"] == "denied" or set(flows_of(result)) <= blocked:
            continue
        proofs = ("service",) if result["protocol"] == "icmp" else ("nonce", "witness")
        if result["verdict"] != "pass" or result["proof"] not in proofs:
            wrong.append(_say(result))
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [pytest.param(one, id=one.name, marks=pytest.mark.full if one.full else ()) for one in ALL],
)
def test_blocked_is_what_the_rules_block(scenario: Scenario) -> None:
    """Nothing is missed and nothing invented; what nothing blocks passes with an agent's proof."""
    hosts = Hosts(scenario.hosts, scenario.addresses())
    lines = required(scenario.matrix, hosts, scenario.settings, scenario.override)
    assert all(b < FIRST_EPHEMERAL_PORT for line in lines for _, b in line.ports)
    rules = draw_rules(lines, scenario.name) if scenario.rules else []
    with Lab() as lab:
        _build(lab, scenario)
        for name, text in rulesets(rules, hosts.addresses).items():
            lab[name].nft(text)
        done = _ask(lab, scenario)
    expected = blocked_flows(lines, rules)
    _compare(scenario, done, lines, expected)


def _compare(scenario: Scenario, done: Finished, lines: list[Line], expected: set[Flow]) -> None:
    document = done.document
    results = [r for r in done.results if r["requirement"] != PATH_MTU]
    seen = {flow for result in results for flow in flows_of(result)}
    wanted = {flow for line in lines for flow in line.flows()}
    blocked = {
        flow for result in results if result["verdict"] == "blocked" for flow in flows_of(result)
    }
    assert document["complete"] is True
    assert not wanted - seen, f"never tested {_short(wanted - seen)}"
    assert not seen - wanted, f"not required {_short(seen - wanted)}"
    missed = expected - blocked
    assert not missed, f"missed {_short(missed)}\n" + "\n".join(_said_of(results, missed)[:12])
    assert not blocked - expected, f"invented {_short(blocked - expected)}"
    wrong = _not_proved(results, expected)
    assert not wrong, f"{len(wrong)} not proved:\n" + "\n".join(wrong[:12])
    assert not [r for r in results if r["verdict"] == "exposed"]
    _compare_path_mtu([r for r in done.results if r["requirement"] == PATH_MTU], lines, expected)
    assert done.status == _status(lines, expected, done.results)
    named = {r["requirement"] for r in results} | {s["requirement"] for s in document["skipped"]}
    assert named - {PATH_MTU} == requirement_ids(scenario.matrix)


def _compare_path_mtu(results: list[dict[str, Any]], lines: list[Line], blocked: set[Flow]) -> None:
    """Every overlay's pair is measured, and no path here is too narrow for anything."""
    pairs = {(r["source"], r["destination"], r["address"]) for r in results}
    overlays = {line.ends[1:] for line in lines if line.overlay and line.source != line.destination}
    cut = {flow[1:4] for flow in blocked}
    unmeasured = [r for r in results if r["verdict"] != "pass"]

    assert overlays <= pairs
    assert {r["verdict"] for r in unmeasured} <= {"inconclusive"}
    assert {(r["source"], r["destination"], r["address"]) for r in unmeasured} <= cut


def _status(lines: list[Line], expected: set[Flow], results: Sequence[dict[str, Any]]) -> int:
    optional = {line.requirement for line in lines if not line.decides}
    if any(flow.requirement not in optional for flow in expected):
        return 1
    unsure = [r for r in results if r["verdict"] in ("inconclusive", "not-tested")]
    return 3 if not results or any(not r["optional"] for r in unsure) else 0


def test_one_host_without_local_flows_tests_nothing() -> None:
    """A single node under a matrix without local flows tests nothing, and the report says so."""
    scenario = Scenario("single", "openshift-host-ports", {"only": ["control-plane"]})
    with Lab() as lab:
        _build(lab, scenario)
        done = _ask(lab, scenario)
        inventory = str(lab.folder / "inventory.yaml")
        text = netprobe("run", "--matrix", scenario.matrix, "-i", inventory)

    assert done.results == []
    assert done.status == 3
    assert "nothing was tested" in text.stdout.splitlines()[0].lower()


def test_every_kind_of_rule_is_drawn_somewhere() -> None:
    """The table of kinds has no row that no scenario tries, also of those that always run; and each
    draw stops something."""
    drawn, always = set(), set()
    for scenario in (*SCENARIOS, *(one for one in PLATFORM_SCENARIOS if not one.full)):
        kinds = _drawn_kinds(scenario)
        drawn |= kinds
        always |= set() if scenario.full else kinds

    assert drawn == always == set(KINDS)


@pytest.mark.full
def test_every_draw_for_a_platform_stops_something() -> None:
    """Each of their clusters has flows that most kinds of rules are drawn for."""
    for scenario in PLATFORM_SCENARIOS:
        assert len(_drawn_kinds(scenario)) > len(KINDS) / 2, scenario.name


def _drawn_kinds(scenario: Scenario) -> set[Kind]:
    """The kinds of rules that are drawn for a scenario, after each draw has stopped something."""
    if not scenario.rules:
        return set()
    hosts = Hosts(scenario.hosts, scenario.addresses())
    lines = required(scenario.matrix, hosts, scenario.settings, scenario.override)
    assert all(blocked_flows(lines, [rule]) for rule in draw_rules(lines, scenario.name))
    return {kind for kind, fit in fitting(lines) if fit}


def test_every_row_of_a_platform_is_tried_somewhere() -> None:
    """With other settings where its own exclude each other: none is left to a plan alone."""
    tried: dict[str, set[str]] = {}
    for one in PLATFORM_SCENARIOS:
        lines = required(one.matrix, Hosts(one.hosts, one.addresses()), one.settings)
        tried.setdefault(one.matrix, set()).update(line.requirement for line in lines)

    assert set(tried) == {*PLATFORMS, *LAYERS}
    for name, rows in tried.items():
        assert rows == requirement_ids(name), name
