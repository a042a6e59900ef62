"""The audit of listening ports as text, JSON and JUnit."""

from __future__ import annotations

import io
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # has no stubs
from msgspec.structs import replace

from netprobe.model.audit import (
    AuditedHost,
    AuditedMatrix,
    AuditedPort,
    AuditFinding,
    PortAudit,
    SocketHolder,
)
from netprobe.model.host_key import HostKey
from netprobe.report.verbs.audit import (
    KINDS,
    audit_schema_text,
    write_audit_json,
    write_audit_junit,
    write_audit_text,
)
from tests.report.test_junit import SCHEMA as JENKINS

FILE = Path(__file__).parents[2] / "schemas" / "audit.schema.json"
HOLDER = SocketHolder("ghost", "python3.11", 7, "ghost.service", None, "c0ffee")
FINDING = AuditFinding(
    "no-entry", "violation", "m0", "tcp", 9500, "ghost listens", "Stop it.", ("0.0.0.0",),
    (HOLDER,), ("row",), "ns/web",
)  # fmt: skip
UNSEEN = replace(FINDING, kind="unseen-owner", weight="unseen", port=9537, holders=())
ADVICE = replace(FINDING, kind="local-in-range", weight="advice", port=9600)
HOSTS = (
    AuditedHost(
        "m0", ("control-plane", "node"), "looked-at", "",
        (AuditedPort("tcp", 9500, ("0.0.0.0", "::"), (HOLDER,), ()),
         AuditedPort("tcp", 10250, ("0.0.0.0",), (HOLDER,), ("kubelet",))),
        ("2 UDP ports left out",),
    ),
    AuditedHost("n0", ("node",), "failed", "ssh said <no> \x1b[31m"),
    AuditedHost("vip", ("node",), "none", "the host is declared vantage: none"),
)  # fmt: skip
AUDIT = PortAudit(
    "2026-11-22T10:00:00Z",
    1.25,
    (AuditedMatrix("ocp", {"version": "4.16", "features": ("a", "b"), "guest": False}),),
    HOSTS,
    (FINDING, UNSEEN, ADVICE),
    ("a note",),
)


def _write(writer: Callable[[PortAudit, TextIO], None], audit: PortAudit = AUDIT) -> str:
    stream = io.StringIO()
    writer(audit, stream)
    return stream.getvalue()


def test_checked_in_schema_is_fresh() -> None:
    """The file under ``schemas/`` is what ``netprobe schema audit`` prints."""
    if os.environ.get("NETPROBE_REWRITE") == "docs":
        FILE.write_text(audit_schema_text(), encoding="utf-8")

    Draft202012Validator.check_schema(json.loads(audit_schema_text()))
    assert FILE.read_text(encoding="utf-8") == audit_schema_text(), "make docs"


def test_json_fits_its_schema() -> None:
    """Also an audit of nothing; another kind of finding does not fit."""
    validator = Draft202012Validator(json.loads(audit_schema_text()))
    for audit in (AUDIT, replace(AUDIT, hosts=(), findings=(), notes=())):
        validator.validate(json.loads(_write(write_audit_json, audit)))
    document = json.loads(_write(write_audit_json))
    document["findings"][0]["kind"] = "odd"
    assert not validator.is_valid(document)


def test_every_kind_is_explained() -> None:
    """docs/port-audit.md has a line for each kind of finding."""
    page = (FILE.parents[1] / "docs" / "port-audit.md").read_text(encoding="utf-8")

    assert [kind for kind in KINDS if f"| `{kind}` |" not in page] == []


def test_json_counts() -> None:
    """Hosts by state, ports, findings by weight and kind."""
    summary: dict[str, Any] = json.loads(_write(write_audit_json))["summary"]

    assert summary["hosts"] == {"looked_at": 1, "failed": 1, "none": 1}
    assert (summary["ports"], summary["violations"], summary["unseen"], summary["advice"]) == (
        2, 1, 1, 1,
    )  # fmt: skip
    assert summary["kinds"]["no-entry"] == 1


def test_untrusted_host_keys_are_one_line() -> None:
    """With the command that mends it for all of these hosts."""
    hosts = tuple(
        AuditedHost(
            name, ("node",), "failed", "...", host_key=HostKey(state="unknown", target=name)
        )
        for name in ("n1", "n2")
    )
    text = _write(write_audit_text, replace(AUDIT, hosts=(*HOSTS, *hosts)))

    assert text.count("\nnot looked at: the host keys of 2 hosts (n1, n2) are not known yet. ") == 1
    assert "n1 (node)" not in text


def test_text() -> None:
    """Findings by weight, then hosts with their ports, notes and totals; no escape passes."""
    text = _write(write_audit_text)
    heads = [line for line in text.splitlines() if line[:1].isdigit() and ". " in line[:4]]

    assert text.startswith("VIOLATIONS: 1 violation on 1 host\nnetprobe ")
    assert "ocp (version=4.16, features=a+b, guest=false)" in text
    assert heads == [
        "1. VIOLATION: tcp 9500 on m0: a process without an entry (no-entry)",
        "2. NOT SEEN: tcp 9537 on m0: the owner could not be seen (unseen-owner)",
        "3. advice: tcp 9600 on m0: local, and in a documented range (local-in-range)",
    ]
    assert "   tcp 9500   0.0.0.0, ::  ghost (python3.11)  ghost.service  -\n" in text
    assert "n0 (node): not looked at: ssh said <no> " in text.replace("\n", " ")
    assert "\x1b" not in text
    assert text.endswith(
        "1 of 3 hosts looked at, 2 listening ports, 1 violation, 1 not seen, 1 advised; 1.2 s\n"
    )


def test_findings_that_are_alike_are_one() -> None:
    """Of many hosts with one fault it says which, and lists no ports; other programs are others."""
    hosts = tuple(replace(HOSTS[0], name=f"n{number}") for number in range(9))
    same = [
        replace(FINDING, host=host.name, holders=(replace(HOLDER, pid=number),))
        for number, host in enumerate(hosts)
    ]
    other = replace(FINDING, host="n0", holders=(replace(HOLDER, process="other"),))
    text = _write(write_audit_text, replace(AUDIT, hosts=hosts, findings=(*same, other)))

    assert "1. VIOLATION: tcp 9500 on n0, n1, n2 and 6 more: a process" in text
    assert "   hosts     n0, n1, n2, n3, n4, n5, n6, n7, n8\n" in text
    assert "2. VIOLATION: tcp 9500 on n0: a process" in text
    assert "3. VIOLATION" not in text
    assert "process  unit or pod" not in text
    assert "-o json lists the ports of every host" in text


@pytest.mark.parametrize(
    ("audit", "head"),
    [
        (replace(AUDIT, findings=(ADVICE,)),
         "UNSURE: no violation seen; 1 host not looked at, 0 findings in doubt"),
        (replace(AUDIT, findings=(UNSEEN,), hosts=HOSTS[:1]),
         "UNSURE: no violation seen; 0 hosts not looked at, 1 finding in doubt"),
        (replace(AUDIT, findings=(), hosts=HOSTS[::2]),
         "OK: every listening port of 1 host is registered"),
        (replace(AUDIT, findings=(), hosts=HOSTS[1:]),
         "NOT LOOKED AT: no host could be looked at"),
    ],
)  # fmt: skip
def test_the_first_line(audit: PortAudit, head: str) -> None:
    """It says what the exit status says."""
    assert _write(write_audit_text, audit).splitlines()[0] == head


def test_junit() -> None:
    """A suite a host, a case a port: failure for a violation, error for what nobody saw."""
    root = ElementTree.fromstring(_write(write_audit_junit))
    cases = {
        f"{case.attrib['classname']} {case.attrib['name']}": case[0].tag if len(case) else None
        for case in root.findall("*/testcase")
    }

    assert cases == {
        "audit.m0 the host was looked at": None,
        "audit.m0 tcp 9500": "failure",
        "audit.m0 tcp 9537": "error",
        "audit.m0 tcp 9600": None,
        "audit.m0 tcp 10250": None,
        "audit.n0 the host was looked at": "error",
    }
    assert (root.attrib["failures"], root.attrib["errors"]) == ("1", "2")


@pytest.mark.needs("xmllint")
def test_jenkins_schema_holds(tmp_path: Path) -> None:
    """Also of an audit of nothing."""
    for number, audit in enumerate((AUDIT, replace(AUDIT, hosts=(), findings=()))):
        file = tmp_path / f"{number}.xml"
        file.write_text(_write(write_audit_junit, audit))
        words = ("xmllint", "--noout", "--nonet", "--schema", str(JENKINS), str(file))
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
