"""--redact: nothing of a report names a host, an address or a person; all else stays."""

from __future__ import annotations

import io
import re
import time

import pytest
from msgspec.structs import replace

from netprobe.judge.findings import fold
from netprobe.model.accepted import CheckedAcceptance
from netprobe.model.codec import keep_findings
from netprobe.model.host_key import HostKey
from netprobe.model.result import HostFacts, HostReport
from netprobe.report.record.changes import compare, fates_of
from netprobe.report.record.collector import Report, collect
from netprobe.report.record.redact import Redactor, redact_run
from netprobe.report.run import REPORTS
from tests.report.estate import make_estate
from tests.report.samples import BLOCKED, INFO, PASSED, everything, flow, report_of

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


def test_numbers_of_findings_stay() -> None:
    """The members of a finding that a file keeps have the new names, too."""
    report = report_of([BLOCKED, flow(BLOCKED, 5, requirement="other", port=1, end_port=1)])
    kept = keep_findings(fold(report.collector.results()))
    assert kept is not None
    numbered = tuple(replace(one, number=one.number + 6, evidence="/home/jane") for one in kept)

    info, collector, _ = redact_run(replace(report.info, findings=numbered), report.collector, None)
    found = fold(collector.failures(), kept=info.findings or ())

    assert [(one.number, one.evidence) for one in found] == [(one.number, None) for one in numbered]
    assert [one.members[0].source for one in found] == ["host-1"] * len(found)


def test_nobody_guesses_names_by_a_question() -> None:
    """Its digest may hold names and addresses of hosts."""
    report = everything()
    rows = tuple(replace(one, question="abcdef012345") for one in report.info.requirements)

    info, _, _ = redact_run(replace(report.info, requirements=rows), report.collector, None)
    assert {one.question for one in info.requirements} == {""}


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_no_report_names_anybody(name: str) -> None:
    """Whatever the format; `wide` and `json` have all there is."""
    before = fates_of([replace(BLOCKED, rejected_by="10.7.7.7"), flow(PASSED, 1)])
    report = everything()
    told = replace(report, changes=compare(before, report.collector.results()))
    entry = accepted_entry()
    accepted = [*report.collector.results(), flow(BLOCKED, 9, accepted=entry.signature)]
    told = replace(told, collector=collect(accepted))
    key = HostKey(state="changed", target="ssh://admin@10.0.0.10", name="master-0", file="/home/j")
    hosts = (replace(told.info.hosts[0], state="failed", host_key=key), *told.info.hosts[1:])
    told = replace(told, info=replace(told.info, accepted=(entry,), hosts=hosts))
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


@pytest.mark.slow
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
        ("MASTER-0, master-0's and master-01", "host-1, host-1's and name-1"),
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
    facts = HostFacts(taken=("x on 10.1.1.1",), user="anna", hostname="vm7.acme", cores=2)
    extra = HostReport(
        name="master-0", state="agent", user="anna", facts=facts, cost=("vm7.acme has none",)
    )
    told = replace(report, info=replace(report.info, hosts=(extra,)))

    (host,) = hide(told).info.hosts

    assert host.user == "user"
    assert host.cost == ("machine-1 has none",)
    assert host.facts == HostFacts(
        taken=("x on address-2",), user="user", hostname="machine-1", cores=2
    )


# What names an address of the run, whose number is 167772170, and a person, as others write them.
KNOWN = [
    ("CN=worker-77", "CN=W"),
    ("subject=CN = worker-77, O = Acme Corp", "subject=CN = W, O = name-1"),
    ("O=Acme Corp,OU=Net, CN=worker-77 is not", "O=name-1,OU=name-2, CN=W is not"),
    ("system:node:worker-77", "system:node:W"),
    ("system:serviceaccount:shop:till", "system:serviceaccount:name-1"),
    ("DNS:worker-77, DNS:*.shop.example", "DNS:W, DNS:name-1"),
    ("vm_worker_77_disk Worker-77.log", "vm_W_disk name-1"),
    ("secret_host_1, SECRET-HOST-1", "S, S"),
    ("http://jdoe:pw@worker-77:80/x?y", "http://user@W:80/x?y"),
    ("https://10.0.0.10/ https://[fd00:0::10]:1/", "https://A/ https://[B]:1/"),
    ("jdoe said: jdoe's, /var/home/jdoe/x", "user said: user's, /var/home/user/x"),
    ("0a00000a 0x0A00000A 0a:00:00:0a 0A00000A", "A A A A"),
    ("167772170, 10,0,0,10, 10-0-0-10 and 10_0_0_10", "A, A, A and A"),
    ("ip-10-0-0-10 fd00-0000-0000-0000-0000-0000-0000-0010", "ip-A B"),
    ("fd000000000000000000000000000010 FD00:0:0::10", "B B"),
]
# What no list of the run has.
UNKNOWN = [
    ("jdoe@bastion7: Permission denied", "user@name-1: Permission denied"),
    ("http://jdoe:p@w@proxy, ftp://proxy.", "http://user@name-1, ftp://name-1."),
    ("CN=worker77", "CN=name-1"),
    ("system:node:worker77: no", "system:node:name-1 no"),
    ("uid=1000(jdoe) gid=0(root)", "uid=1000(user) gid=0(root)"),
    ("secret_host_1, db-2 and lb01a", "name-1, name-2 and name-3"),
    ("52-54-00-12-34-56, 5254.0012.3456", "address-5, address-6"),
    ("0:1c:42:0:0:8 525400-123456 525400123456", "address-5 address-6 address-7"),
    ("C:\\Users\\jdoe\\x, \\home\\jdoe, ~jdoe/x", "C:\\Users\\user\\x, \\home\\user, user/x"),
    ("ssh jump ended with status 255", "ssh name-1 ended with status 255"),
    ("ssh -l jdoe: closed by jump port 22", "ssh -l user: closed by name-1 port 22"),
    ("give --network 'a b=CIDR'", "give --network 'name-1=CIDR'"),
]  # fmt: skip
STAYS = [
    "IPv4 and IPv6 by eth0, ens192, vlan150: TLSv1.3, sha256, HTTP/1.1, utf-8, h2, x86_64",
    "kernel 6.1.0-13-amd64, Python 3.11.7, icmp 3/13, tcp 2379-2380 at 10:00:00 of 2026-11-20",
    "1,234,567,890 flows; up-to-10 (3 flows); 12 %; 0x1f; run 7f3a0c1d2e4b5968; 127.0.0.1:22",
    'User "system:anonymous" cannot get path "/"; /root/x; [host, path]; -o json',
]


def redactor(*names: str, login: str | None = None) -> Redactor:
    """A run with the hosts of the sample and these, of which the first has an address."""
    hosts = [
        HostReport(
            name=name, state="agent", addresses=("10.0.0.10", "fd00::10")[: 2 - 2 * bool(place)]
        )
        for place, name in enumerate(names)
    ]
    first, *rest = report_of([PASSED]).info.hosts
    info = replace(INFO, hosts=(replace(first, user=login), *rest, *hosts))
    return Redactor(info, collect([PASSED]))


@pytest.mark.parametrize(("text", "shown"), KNOWN)
def test_what_the_run_knows_is_found_in_any_spelling(text: str, shown: str) -> None:
    """Names behind labels and underscores, addresses as numbers, logins of agents."""
    hide = redactor("worker-77", "secret-host-1", login="jdoe").text
    names = {"A": "10.0.0.10", "B": "fd00::10", "W": "worker-77", "S": "secret-host-1"}
    ends = {sign: hide(name) for sign, name in names.items()}

    assert hide(text) == re.sub(
        r"(?<![A-Za-z])[ABSW](?![A-Za-z])", lambda found: ends[found[0]], shown
    )


@pytest.mark.parametrize(("text", "shown"), UNKNOWN)
def test_what_looks_like_a_name_goes(text: str, shown: str) -> None:
    """Where only a name can stand, and words that end in a number as those of hosts do."""
    assert redactor().text(text) == shown


@pytest.mark.parametrize("text", STAYS)
def test_what_names_nobody_stays(text: str) -> None:
    """Versions, protocols, interfaces, ports and times."""
    assert redactor("worker-77").text(text) == text


def test_roles_matrices_and_requirements_stay() -> None:
    """They say what is to be mended, also where they look like names of hosts."""
    info = report_of([PASSED]).info
    host = replace(info.hosts[0], roles=("gpu_1", "master"))
    result = replace(PASSED, matrix="own-2", requirement="etcd-v3-7", because="etcd-v3-7 of own-2")
    report = report_of([result], info=replace(info, hosts=(host, *info.hosts[1:])))

    (hidden,) = hide(report).collector.results()
    assert (hidden.matrix, hidden.requirement) == ("own-2", "etcd-v3-7")
    assert hidden.because == "etcd-v3-7 of own-2"
    redact = Redactor(report.info, report.collector)
    assert redact.text("gpu_1 needs etcd-v3-7") == "gpu_1 needs etcd-v3-7"


def test_a_login_is_known_once_it_is_seen() -> None:
    """A person whom ssh names in one sentence is known in all others."""
    info = report_of([PASSED]).info
    host = replace(
        info.hosts[0], words="anna@jump: Permission denied", cost=("uid=5(bert) has no",)
    )
    redact = Redactor(replace(info, hosts=(host, *info.hosts[1:])), collect([PASSED]))

    assert redact.text("anna and bert, Anna's") == "user and user, user's"


# Each begins something again and again, or never ends it.
ENDLESS = (
    "a",
    "a.",
    "a_",
    "1,",
    "[1",
    "://a@",
    "a@",
    "CN=A ",
    "f:",
    "~a",
    "host a",
    "worker77_",
    "0(a",
)


@pytest.mark.slow
def test_time_is_that_of_the_length() -> None:
    """200,000 letters take seconds of the processor, not minutes."""
    redact = redactor("worker-77", "web server [1]", login="jdoe")
    began = time.process_time()
    redact.text("".join(ENDLESS) * (200_000 // len("".join(ENDLESS))))
    for again in ENDLESS:
        redact.text(again * (20_000 // len(again)))

    assert time.process_time() - began < 20
