"""The table of the audit: facts about a listening port on the left, what is wrong on the right.

Every row is looked at: a port may break several rules at once. docs/port-audit.md explains them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from netprobe.model.audit import AuditKind, AuditWeight

# Where the port stands in the registry: in a row for this host, only in rows for other hosts or
# settings, among the ports given up, or nowhere. ``client``: the kernel gave it to a UDP client.
Entry = Literal["here", "elsewhere", "retired", "none", "client"]
# Whether a row names the process, names others, names nobody, or nobody could see it. ``waiting``:
# systemd alone holds the socket, for a service that runs when somebody connects.
OwnerWord = Literal["named", "other", "anybody", "unseen", "waiting"]
# What the rows say it is for.
Meant = Literal["local", "others", "unsaid"]
Bound = Literal["loopback", "open"]
RangeWord = Literal["in", "out", "undocumented"]
Count = Literal["one", "several"]


class PortFacts(Struct, frozen=True):
    """What the audit knows of one port of one host."""

    entry: Entry
    owner: OwnerWord
    meant: Meant
    bound: Bound
    range: RangeWord
    owners: Count


class AuditRule(Struct, frozen=True):
    """``when`` lists for a fact the words that fit; a fact that is not listed may be any.

    ``because`` and ``remedy`` are sentences with places for words of the port.
    """

    kind: AuditKind
    weight: AuditWeight
    when: Mapping[str, tuple[str, ...]]
    because: str
    remedy: str

    def fits(self, facts: PortFacts) -> bool:
        """Tell whether the rule speaks of these facts."""
        return all(getattr(facts, name) in words for name, words in self.when.items())


_UNREGISTERED: Final = ("none", "elsewhere")

RULES: Final = (
    AuditRule(
        "no-entry", "violation", {"entry": ("none",)},
        "{who} listens on {where}, and no row of {matrices} has {port}",
        "Register {port}, or stop the process, or let it listen elsewhere.",
    ),
    AuditRule(
        "no-entry", "violation", {"entry": ("elsewhere",)},
        "{who} listens on {where}, and {port} is registered, but not for this host: {elsewhere}",
        "Give the host its roles and the matrix its settings, or stop the process.",
    ),
    AuditRule(
        "retired", "violation", {"entry": ("retired",)},
        "{who} listens on {where}, and {port} was given up ({purpose})",
        "Stop the process, or let it listen elsewhere.",
    ),
    AuditRule(
        "wrong-owner", "violation", {"entry": ("here",), "owner": ("other",)},
        "{who} listens on {where}, and {port} belongs to {names} ({rows})",
        "Stop the process, or let it listen elsewhere.",
    ),
    AuditRule(
        "unseen-owner", "unseen", {"entry": ("here",), "owner": ("unseen",)},
        "nobody could see who listens on {where}, and {port} belongs to {names} ({rows})",
        "Let the agent run as root with the processes of the host in sight (become: sudo; where "
        "that failed, mend sudo).",
    ),
    AuditRule(
        "unseen-owner", "unseen", {"entry": ("here",), "owner": ("waiting",)},
        "{who} holds {where} for a service that does not run now, and {port} belongs to {names} "
        "({rows})",
        "See with `systemctl list-sockets` whose it is; start it, or name systemd in the row.",
    ),
    AuditRule(
        "not-local", "violation", {"entry": ("here",), "meant": ("local",), "bound": ("open",)},
        "{who} listens on {where}, and {port} is for the host itself only ({rows})",
        "Bind the process to 127.0.0.1 or ::1.",
    ),
    AuditRule(
        "outside-ranges", "violation",
        {"entry": _UNREGISTERED, "bound": ("open",), "range": ("out",)},
        "{who} listens on {where}, and {port} lies outside of the documented ranges ({ranges})",
        "Choose a port of a documented range, or bind the process to 127.0.0.1.",
    ),
    AuditRule(
        "local-in-range", "advice",
        {"entry": _UNREGISTERED, "bound": ("loopback",), "range": ("in",)},
        "{who} listens on {where} only, and {port} takes room in a documented range",
        "Choose a port outside of the documented ranges.",
    ),
    AuditRule(
        "two-owners", "violation",
        {"entry": ("here", "elsewhere", "retired", "none"), "owners": ("several",)},
        "{port} has several owners: {holders}",
        "Leave the port to one of them.",
    ),
)  # fmt: skip


def rules_for(facts: PortFacts) -> tuple[AuditRule, ...]:
    """Give every rule that the port breaks, in the order of the table."""
    return tuple(rule for rule in RULES if rule.fits(facts))
