"""Turns what a live service said into warnings."""

from __future__ import annotations

from netprobe.probe.flows.work import Task
from netprobe.protocols.services import SERVICES, ServiceFinding

# TLS handshakes cost the service more than they cost us.
AT_ONCE = 8
# Only what may be the service's own answer needs an explanation.
_UNEXPECTED = ("other", "tls", "plaintext")


def service_warnings(task: Task, finding: ServiceFinding) -> tuple[str, ...]:
    """Make the warnings that a reader gets beside the verdict."""
    title = SERVICES[task.probe or ""].title
    if finding.told in _UNEXPECTED:
        return (f"{title} is expected there, and something else answered",)
    if finding.told != "service":
        words = {"closed": "it closed the connection", "reset": "the connection was reset"}
        what = words.get(finding.told, "it said nothing")
        return (f"{title} is expected there; when it was asked who it is, {what}",)
    return () if finding.note is None else (f"{title} answers, but {finding.note}",)
