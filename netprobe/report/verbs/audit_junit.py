"""The audit of listening ports as JUnit XML: a suite for each host, a case for each port."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TextIO

from netprobe.model.audit import AuditedHost, AuditFinding, AuditWeight, PortAudit
from netprobe.report.page.junit_xml import CaseFate, JunitCase, JunitSuite, write_suites
from netprobe.report.verbs.audit import KINDS

# The child element of a case; advice fails nothing.
_FATES: Final[dict[AuditWeight, CaseFate]] = {
    "violation": "failure", "unseen": "error",
}  # fmt: skip


@dataclass(slots=True)
class _PortCase:
    """One test case: a port of a host, or the host itself."""

    name: str
    found: list[AuditFinding] = field(default_factory=list)
    words: str = ""

    @property
    def fate(self) -> CaseFate | None:
        """The worst of what was found; None where all is as it should be."""
        fates = [_FATES[one.weight] for one in self.found if one.weight in _FATES]
        if self.words:
            return "error"
        return "failure" if "failure" in fates else "error" if fates else None


def write_audit_junit(audit: PortAudit, stream: TextIO) -> None:
    """Write a suite for each host; names are equal from run to run."""
    suites = [
        JunitSuite(host.name, [_tell_case(host.name, one) for one in _list_cases(host, audit)])
        for host in audit.hosts
        if host.state != "none"
    ]
    write_suites("netprobe audit", suites, audit.started_at, audit.elapsed_s, stream)


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


def _tell_case(host: str, case: _PortCase) -> JunitCase:
    told = [one for one in case.found if _FATES.get(one.weight) == case.fate]
    kinds = ", ".join(dict.fromkeys(one.kind for one in told)) or "not-looked-at"
    message = "; ".join(dict.fromkeys(KINDS[one.kind] for one in told)) or case.words
    lines = [f"{one.because}. {one.remedy}" for one in case.found] or [case.words]
    return JunitCase(f"audit.{host}", case.name, case.fate, kinds, message, lines)
