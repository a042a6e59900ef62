"""One cause is one finding: faults of routes, links and firewalls in an estate of nine hosts."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.lab.causes import ALONE, FAULTS, Estate, Fault
from tests.lab.causes6 import FAULTS_6, Estate6
from tests.lab.cli import Finished, netprobe

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.needs("dnsmasq")]

# How a finding begins in the text, and on the page.
IN_TEXT = re.compile(r"^\d+\. BLOCKED: (.*)$", re.M)
IN_MARKDOWN = re.compile(r"^#+ \d+\. BLOCKED: (.*)$", re.M)
IN_PAGE = re.compile(r'<h3 id="finding-\d+">.*?</span>\d+\. BLOCKED: (.*?)</h3>')
BY_NAME = {fault.name: fault for fault in FAULTS}


def probe_with(
    faults: Sequence[Fault], estate: type[Estate] = Estate
) -> tuple[Finished, dict[str, str]]:
    """Plant the faults and probe; give the run, and its reports and request by format."""
    with estate() as lab:
        for fault in faults:
            fault.plant(lab)
        reports = {name: lab.folder / f"report.{name}" for name in ("text", "markdown", "html")}
        written = [word for name, path in reports.items() for word in ("-o", f"{name}={path}")]
        done = lab.run(*written)
        run = lab.write("run.json", done.stdout)
        asked = netprobe("request", str(run), "-o", "json")
        texts = {name: path.read_text() for name, path in reports.items()}
        return done, texts | {"request": asked.stdout}


def list_titles(document: dict[str, Any]) -> list[str]:
    """The titles of a JSON report's findings; most flows pass."""
    assert document["summary"]["pass"] > 250
    assert document["summary"]["refusals"] == 0
    return [one["title"] for one in document["findings"]]


def match_titles(titles: Sequence[str], faults: Sequence[Fault]) -> None:
    """Every cause has its finding, and there are no others."""
    wanted = [title for fault in faults for title in fault.titles]
    assert sorted(titles) == sorted(
        next((one for one in titles if one.startswith(title)), title) for title in wanted
    )


def match_reports(done: Finished, reports: dict[str, str], faults: Sequence[Fault]) -> None:
    """Every cause has its finding in every report, in the same words, and the request its rules."""
    titles = list_titles(done.document)
    match_titles(titles, faults)
    assert IN_TEXT.findall(reports["text"]) == titles
    assert IN_MARKDOWN.findall(reports["markdown"].replace("\\", "")) == titles
    assert IN_PAGE.findall(html.unescape(reports["html"])) == titles
    rules = json.loads(reports["request"])["rules"]
    assert len(rules) == sum(fault.rules for fault in faults)


def test_a_machine_and_a_rule_are_two_findings() -> None:
    """As far as one host and one requirement meet them."""
    twice, chain = BY_NAME["held twice"], BY_NAME["a chain"]
    with Estate() as lab:
        twice.plant(lab)
        chain.plant(lab)
        document = lab.run("--only", "kubelet", "--limit", "b1").document

    assert [one["title"] for one in document["findings"]] == [
        chain.titles[0], f"{twice.titles[0]}answers from b1 to b3 (4 flows)"
    ]  # fmt: skip
    assert document["summary"]["pass"] == 27


@pytest.mark.full
@pytest.mark.parametrize("name", ["own firewall", "a chain", "output chain"])
def test_a_retry_of_a_request_has_the_findings_of_the_run(name: str) -> None:
    """It asks nothing that passes, so that it cannot claim that nothing gets through."""
    fault = BY_NAME[name]
    with Estate() as lab:
        fault.plant(lab)
        run, request = lab.folder / "run.json", lab.folder / "request.json"
        lab.run("-o", f"json={run}")
        assert netprobe("request", str(run), "-o", f"json={request}").status == 0
        again = lab.run("--retry", str(request)).document
        before = json.loads(run.read_text())

    match_titles([one["title"] for one in again["findings"]], [fault])
    assert again["summary"]["blocked"] == before["summary"]["blocked"]


@pytest.mark.full
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_one_finding(fault: Fault) -> None:
    """Whatever protocols, ports and directions it stops; every report has its title, and the
    request a rule only where one helps."""
    done, reports = probe_with([fault])

    assert done.status == 1
    match_reports(done, reports, [fault])


@pytest.mark.full
@pytest.mark.parametrize("fault", FAULTS_6, ids=lambda fault: fault.name)
def test_over_ipv6_the_same_faults_are_one_finding(fault: Fault) -> None:
    """A twin of each, in the words of its family, and all else passes."""
    done, reports = probe_with([fault], Estate6)

    assert done.status == 1
    match_reports(done, reports, [fault])
    members = [one for finding in done.document["findings"] for one in finding["members"]]
    concerned = {one[end] for one in members for end in ("source", "destination")}
    beside = [one for one in done.results if not {one["source"], one["destination"]} & concerned]
    assert {one["verdict"] for one in beside} == {"pass"}


@pytest.mark.full
def test_the_healthy_twin_over_ipv6_has_none() -> None:
    """All flows between the nine are of IPv6, and every flow passes."""
    done, _ = probe_with([], Estate6)

    assert (done.status, list_titles(done.document)) == (0, [])
    nine = {*Estate6.probed}
    assert all(":" in one["address"] for one in done.results if one["destination"] in nine)


@pytest.mark.full
@pytest.mark.parametrize(
    "words",
    [
        "s-c link set p-c3 down",
        "s-c link set p-c3 nomaster",
        "c3 link set eth0 down",
    ],
    ids=["cable out", "in another network", "device down"],
)
def test_a_host_that_is_cut_off_is_one_finding(words: str) -> None:
    """Whatever its kernel, its neighbours and routers say; a rule elsewhere stays another one."""
    machine, change = words.split(maxsplit=1)
    cut_off = Fault("cut off", lambda lab: lab[machine].ip(change), (
        "c3 is cut off: nothing that was probed gets to it or from it: tcp 6443, 7000, 9100, "
        "10250; udp 8472; icmp echo, and no names resolve on c3 (",
    ))  # fmt: skip
    faults = [cut_off, BY_NAME["output chain"]]
    done, reports = probe_with(faults)

    match_titles(list_titles(done.document), faults)
    assert len(json.loads(reports["request"])["rules"]) == 1


@pytest.mark.full
@pytest.mark.parametrize("fault", ALONE, ids=lambda fault: fault.name)
def test_a_fault_of_everything_is_one_finding(fault: Fault) -> None:
    """Though it shows in several ways, and hosts differ in what they hear of it."""
    done, reports = probe_with([fault])

    match_titles(list_titles(done.document), [fault])
    assert bool(json.loads(reports["request"])["rules"]) == bool(fault.rules)


@pytest.mark.full
def test_the_healthy_twin_has_none() -> None:
    """Every flow passes without a fault."""
    done, reports = probe_with([])

    assert (done.status, list_titles(done.document)) == (0, [])
    assert not IN_TEXT.findall(reports["text"])


@pytest.mark.full
def test_all_faults_at_once_are_as_many_findings() -> None:
    """In every report, and none of them takes members of another one; the request has their
    rules."""
    done, reports = probe_with(FAULTS)

    assert done.status == 1
    match_reports(done, reports, FAULTS)
    blocked = [one for one in done.results if one["verdict"] == "blocked"]
    assert sum(len(one["members"]) for one in done.document["findings"]) == len(blocked)
