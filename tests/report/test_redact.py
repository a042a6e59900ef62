"""--redact: nothing of a report names a host, an address or a person; all else stays."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from netprobe.judge.findings import fold
from netprobe.model.accepted import CheckedAcceptance
from netprobe.model.result import HostReport
from netprobe.report import REPORTS
from netprobe.report.changes import compare, fates_of
from netprobe.report.collector import Report, collect
from netprobe.report.redact import redact_run
from tests.report.estate import make_estate
from tests.report.samples import BLOCKED, PASSED, everything, flow, report_of

NAMES = (
    r"master-\d", r"worker-\d", r"db-\d", r"\b10\.\d+\.\d+\.\d+", r"fd00:", r"192\.0\.2\.",
    r"inventory\.yaml", r"jane", r"corp",
)  # fmt: skip


def accepted_entry() -> CheckedAcceptance:
    return CheckedAcceptance(
        id="master-0-fix", matrix="deckhouse-nodes", requirement="etcd", from_=("master-0",),
        to=("master-1",), addresses=("10.0.0.11",), protocol="tcp", ports=((2380, 2380),),
        verdict="blocked", reason="until master-1 has moved", owner="jane@corp", ticket="CHG-1",
        since="2026-11-01", until="2027-01-31", state="active", flows=2,
    )  # fmt: skip


def hide(report: Report) -> Report:
    zones = {host.name: host.zone for host in report.info.hosts if host.zone}
    info, collector, changes = redact_run(report.info, report.collector, report.changes)
    zones = {host.name: host.zone for host in info.hosts if host.zone}
    return Report(info, collector, fold(collector.failures(), collector.passes(), zones), changes)


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_no_report_names_anybody(name: str) -> None:
    """Whatever the format; `wide` and `json` have all there is."""
    before = fates_of([replace(BLOCKED, rejected_by="10.7.7.7"), flow(PASSED, 1)])
    report = everything()
    told = replace(report, changes=compare(before, report.collector.results()))
    entry = accepted_entry()
    accepted = [*report.collector.results(), flow(BLOCKED, 9, accepted=entry.signature)]
    told = replace(told, collector=collect(accepted))
    told = replace(told, info=replace(told.info, accepted=(entry,)))
    stream = io.StringIO()
    REPORTS[name](hide(told), stream)

    text = stream.getvalue().replace("from:worker-1", "")  # the page's example
    assert not [pattern for pattern in NAMES if re.search(pattern, text)]
    if name in ("text", "wide", "json", "html"):
        assert "host-1" in stream.getvalue()


def test_everything_else_stays() -> None:
    """Counts, verdicts, ports and requirements are those of the run, in its order."""
    report = make_estate(9, 0.1)
    was = [
        (one.requirement, one.protocol, one.port, one.verdict, one.reason)
        for one in report.collector.results()
    ]
    counts, hosts = report.summary, report.info.hosts
    hidden = hide(report)

    assert [
        (one.requirement, one.protocol, one.port, one.verdict, one.reason)
        for one in hidden.collector.results()
    ] == was
    assert hidden.summary == counts
    assert [one.roles for one in hidden.info.hosts] == [one.roles for one in hosts]


def test_one_host_has_one_name_everywhere() -> None:
    """In fields, sentences, titles and advice; two hosts never share one."""
    report = make_estate(12)
    hidden = hide(report)
    names = {host.name for host in hidden.info.hosts}

    assert len(names) == 12
    results = list(hidden.collector.results())
    assert {one.source for one in results} == names
    (told, *_) = (one for one in results if one.verdict == "pass")
    assert told.because == f"our listener on {told.destination} answered our nonce"
    (vxlan, *_) = (one for one in hidden.findings if "8472" in one.title)
    assert "from zone zone-1 (4 hosts) to zone zone-3 (4 hosts)" in vxlan.title


def text_after(text: str) -> str:
    """Give one sentence of a run with the hosts of the sample as it is told to strangers."""
    report = report_of([replace(PASSED, because=text)])
    hidden = hide(report)
    (result,) = hidden.collector.results()
    return result.because


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("10.9.0.1 answered with ICMP 3/13", "address-4 answered with ICMP 3/13"),
        ("MASTER-0, master-0's and master-01", "host-1, host-1's and master-01"),
        ("fe80::1 at 52:54:00:12:34:56, 10:00:00", "address-4 at address-5, 10:00:00"),
        ("kubelet (pid 812) on 127.0.0.1, ::", "kubelet (pid 812) on 127.0.0.1, ::"),
        ("a certificate for api.acme.example", "a certificate for name-1"),
        ("Could not resolve hostname jump7: Name", "Could not resolve hostname name-1: Name"),
        ("to host jump7 port 22: `ssh jump7`", "to host name-1 port 22: `ssh name-1`"),
        ("anna@master-1: /home/anna/.ssh/id", "user@host-2: /home/user/.ssh/id"),
        ("worker-[1-40] and 3 more", "several hosts and 3 more"),
        ("Python 3.11.7, kernel 6.1, 4 SYNs", "Python 3.11.7, kernel 6.1, 4 SYNs"),
        ("9.9.9.9.", "address-4."),
        ("HostedCluster hc1: NodePool blue: x", "HostedCluster name-1: NodePool name-2: x"),
        ("the secondary network vlans/150, no", "the secondary network name-1, no"),
        ("identity provider staff is LDAP", "identity provider name-1 is LDAP"),
    ],
)  # fmt: skip
def test_sentences(text: str, shown: str) -> None:
    """Names of hosts, addresses, domains and logins go; numbers and words stay."""
    hosts = len({"10.0.0.10", "fd00::10", "10.0.0.11", "10.9.0.11"})

    assert text_after(text) == re.sub(
        r"address-(\d)", lambda found: f"address-{int(found[1]) + hosts - 3}", shown
    )


def test_logins_and_facts_of_hosts_go() -> None:
    """Of users only root stays."""
    report = report_of([PASSED])
    facts = {"taken": ["x on 10.1.1.1"], "user": "anna", "hostname": "vm7.acme", "cores": 2}
    extra = HostReport("master-0", "agent", user="anna", facts=facts, cost=("vm7.acme has none",))
    told = replace(report, info=replace(report.info, hosts=(extra,)))

    (host,) = hide(told).info.hosts

    assert host.user == "user"
    assert host.cost == ("machine-1 has none",)
    assert host.facts == {
        "taken": ["x on address-2"], "user": "user", "hostname": "machine-1", "cores": 2,
    }  # fmt: skip
