"""The audit of listening ports as text, JSON and JUnit."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator

from netprobe.model.audit import (
    AuditedHost,
    AuditedMatrix,
    AuditedPort,
    AuditFinding,
    PortAudit,
    SocketHolder,
)
from netprobe.report.audit_junit import write_audit_junit
from netprobe.report.audit_report import audit_schema_text, write_audit_json, write_audit_text
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


def test_json_counts() -> None:
    """Hosts by state, ports, findings by weight and kind."""
    summary: dict[str, Any] = json.loads(_write(write_audit_json))["summary"]

    assert summary["hosts"] == {"looked_at": 1, "failed": 1, "none": 1}
    assert (summary["ports"], summary["violations"], summary["unseen"], summary["advice"]) == (
        2, 1, 1, 1,
    )  # fmt: skip
    assert summary["kinds"]["no-entry"] == 1


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


@pytest.mark.parametrize(
    ("audit", "head"),
    [
        (replace(AUDIT, findings=(ADVICE,)),
         "UNSURE: no violation seen; 1 host not looked at, 0 owners unseen"),
        (replace(AUDIT, findings=(UNSEEN,), hosts=HOSTS[:1]),
         "UNSURE: no violation seen; 0 hosts not looked at, 1 owner unseen"),
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


@pytest.mark.skipif(not shutil.which("xmllint"), reason="xmllint is missing (make lab-packages)")
def test_jenkins_schema_holds(tmp_path: Path) -> None:
    """Also of an audit of nothing."""
    for number, audit in enumerate((AUDIT, replace(AUDIT, hosts=(), findings=()))):
        file = tmp_path / f"{number}.xml"
        file.write_text(_write(write_audit_junit, audit))
        words = ("xmllint", "--noout", "--nonet", "--schema", str(JENKINS), str(file))
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
