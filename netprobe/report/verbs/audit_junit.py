"""The audit of listening ports as JUnit XML: a suite for each host, a case for each port."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Final, Literal, TextIO
from xml.sax.saxutils import XMLGenerator

from netprobe.model.audit import AuditedHost, AuditFinding, AuditWeight, PortAudit
from netprobe.model.printable import clean
from netprobe.report.page.junit_xml import clean_text, start_element
from netprobe.report.verbs.audit import KINDS

# The child element of a case; advice fails nothing.
_FATES: Final[dict[AuditWeight, Literal["failure", "error"]]] = {
    "violation": "failure", "unseen": "error",
}  # fmt: skip


@dataclass(slots=True)
class _PortCase:
    """One test case: a port of a host, or the host itself."""

    name: str
    found: list[AuditFinding] = field(default_factory=list)
    words: str = ""

    @property
    def fate(self) -> Literal["failure", "error", "skipped"] | None:
        """The worst of what was found; None where all is as it should be."""
        fates = [_FATES[one.weight] for one in self.found if one.weight in _FATES]
        if self.words:
            return "error"
        return "failure" if "failure" in fates else "error" if fates else None


def write_audit_junit(audit: PortAudit, stream: TextIO) -> None:
    """Write a suite for each host; names are equal from run to run."""
    suites = {host.name: _list_cases(host, audit) for host in audit.hosts if host.state != "none"}
    whole = io.BytesIO()
    xml = XMLGenerator(whole, "us-ascii", short_empty_elements=True)
    xml.startDocument()
    elapsed = {"time": f"{audit.elapsed_s:.3f}"}
    cases = [case for suite in suites.values() for case in suite]
    start_element(xml, "testsuites", {"name": "netprobe audit", **_count_fates(cases), **elapsed})
    for name, suite in suites.items():
        more = {"skipped": "0", "timestamp": audit.started_at.rstrip("Z"), **elapsed}
        start_element(xml, "testsuite", {"name": name, **_count_fates(suite), **more})
        for case in suite:
            _write_case(xml, f"audit.{name}", case)
        xml.endElement("testsuite")
    xml.endElement("testsuites")
    xml.endDocument()
    stream.write(f"{whole.getvalue().decode()}\n")


def _list_cases(host: AuditedHost, audit: PortAudit) -> list[_PortCase]:
    looked = _PortCase("the host was looked at", words=host.words)
    cases = {
        (one.protocol, one.port): _PortCase(f"{one.protocol} {one.port}") for one in host.ports
    }
    for one in audit.findings:
        if one.host == host.name:
            key = (one.protocol, one.port)
            cases.setdefault(key, _PortCase(f"{one.protocol} {one.port}")).found.append(one)
    return [looked, *(case for _, case in sorted(cases.items()))]


def _count_fates(cases: list[_PortCase]) -> dict[str, str]:
    fates = [case.fate for case in cases]
    return {
        "tests": str(len(cases)),
        "failures": str(fates.count("failure")),
        "errors": str(fates.count("error")),
    }


def _write_case(xml: XMLGenerator, class_name: str, case: _PortCase) -> None:
    start_element(xml, "testcase", {"name": clean(case.name), "classname": class_name})
    fate = case.fate
    if fate is not None:
        told = [one for one in case.found if _FATES.get(one.weight) == fate]
        kinds = ", ".join(dict.fromkeys(one.kind for one in told)) or "not-looked-at"
        message = "; ".join(dict.fromkeys(KINDS[one.kind] for one in told)) or case.words
        start_element(xml, fate, {"type": kinds, "message": message})
        lines = [f"{one.because}. {one.remedy}" for one in case.found] or [case.words]
        xml.characters("\n".join(map(clean_text, lines)))
        xml.endElement(fate)
    xml.endElement("testcase")
