"""The nouns of a request: rules, who applies them, and what no rule can mend."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct, field

from netprobe.model.inventory import Family
from netprobe.model.plan import PlannedMatrix
from netprobe.model.ports import Ports
from netprobe.model.result import Result
from netprobe.model.shapes import (
    AddressText,
    LastDay,
    LineText,
    Name,
    ProtocolText,
    RowId,
    RuleId,
)

Action = Literal["allow", "deny"]
# Where a rule can be applied. The likeliest place comes first.
RulePlace = Literal["path", "destination", "source"]
RULE_PLACES: tuple[RulePlace, ...] = ("path", "destination", "source")

PERMANENT = "permanent"


class RuleEnd(Struct, frozen=True):
    """One address of one host, at either end of a rule."""

    host: LineText
    address: AddressText

    @property
    def order(self) -> tuple[int, int, str]:
        """Sort key: by the number of the address."""
        address = ipaddress.ip_address(self.address)
        return (address.version, int(address), self.host)


class Enforcer(Struct, frozen=True):
    """Who can apply a rule; ``router`` is the address that refused, None where nobody did."""

    place: RulePlace
    router: AddressText | None = None

    def is_at(self, at: str | None) -> bool:
        """Tell whether it is the place or the router of this name; all are where there is none."""
        return at is None or at in (self.place, self.router)

    @property
    def words(self) -> str:
        """Name it, for people."""
        if self.place == "destination":
            return "the firewall of the destination itself"
        if self.place == "source":
            return "the firewall of the source itself"
        if self.router is not None:
            return f"{self.router}, which refuses it"
        return "the firewall on the way"


class RuleNeed(Struct, frozen=True):
    """Why: a line of a matrix."""

    matrix: Name
    requirement: RowId
    document: str = ""
    purpose: str = ""
    row: str = ""

    @property
    def words(self) -> str:
        """``etcd replication (deckhouse-nodes, etcd; row: Master to master nodes traffic)``."""
        row = f"; row: {self.row}" if self.row and self.row != self.purpose else ""
        document = f"; document: {self.document}" if self.document else ""
        where = f"{self.matrix}, {self.requirement}{row}{document}"
        return f"{self.purpose or self.requirement} ({where})"


class FirewallRule(Struct, frozen=True, kw_only=True):
    """All sources to all destinations, for one protocol of one family.

    ``ports`` are those of the destinations, for ``answers`` those of the sources: then the rule
    lets only answers through. ``flows`` counts ports, as reports do. ``findings`` are the numbers
    of a report of the run, ``packets`` the files with packets of them. ``until`` is a date
    (YYYY-MM-DD) or ``permanent``.
    """

    id: RuleId
    action: Action = "allow"
    family: Family
    protocol: ProtocolText
    ports: Ports = ()
    sources: tuple[RuleEnd, ...]
    destinations: tuple[RuleEnd, ...]
    answers: bool = False
    enforcers: tuple[Enforcer, ...]
    needs: tuple[RuleNeed, ...] = ()
    findings: tuple[int, ...] = ()
    evidence: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    until: LastDay = PERMANENT
    flows: int = 0
    packets: tuple[str, ...] = ()

    @property
    def confirmed(self) -> bool:
        """Tell whether it is known who must apply it."""
        return len(self.enforcers) == 1

    @property
    def candidates(self) -> str:
        """Name everybody who may have to apply it."""
        return " or ".join(enforcer.words for enforcer in self.enforcers)

    @property
    def who(self) -> str:
        """Say who applies it."""
        return self.candidates if self.confirmed else f"{self.candidates} (to be confirmed)"

    @property
    def findings_text(self) -> str:
        """``2, 3; packets: run/finding-02.pcapng``; nothing for a rule of no finding."""
        packets = f"; packets: {', '.join(self.packets)}" if self.packets else ""
        return ", ".join(map(str, self.findings)) + packets if self.findings else ""

    @property
    def why(self) -> tuple[str, ...]:
        """Say what it is for, a sentence for each line of a matrix."""
        return tuple(need.words for need in self.needs)


class FirewallRules(Struct, frozen=True):
    """What is read of the file of a request beside its results."""

    rules: tuple[FirewallRule, ...]


class Unmended(Struct, frozen=True):
    """What no rule will mend, or what no rule can be written for; ``help`` says what helps.

    ``flows`` is 0 where it is not about flows that were probed.
    """

    title: str
    help: str
    flows: int


class FirewallRequest(Struct, frozen=True, kw_only=True):
    """Everything that one request asks for. ``id`` names it on devices: 6 hexadecimal digits.

    ``roles`` are those of the hosts. ``asked`` are the results that the rules are to mend, none
    where the request was made from a plan. ``of`` says what it was made from, and ``why_none`` why
    it asks for nothing, where it has no rules. ``unprobed`` is what no run ever looks at.
    """

    id: str
    of: str
    started_at: str = ""
    matrices: tuple[PlannedMatrix, ...] = ()
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rules: tuple[FirewallRule, ...] = ()
    why_none: str = ""
    unmended: tuple[Unmended, ...] = ()
    unprobed: tuple[Unmended, ...] = ()
    asked: tuple[Result, ...] = ()
    # What the customer's forms need beside the rules: names of fields, and their values.
    ticket: Mapping[str, str] = field(default_factory=dict)
    # Where a syntax puts its rules, as --into says.
    into: Mapping[str, str] = field(default_factory=dict)
    one_per_row: bool = False
    # The place or the router whose rules alone are asked for; None: those of all.
    at: str | None = None

    def into_of(self, syntax: str, default: str) -> str:
        """Give the chain, list or zones that the rules of a syntax go into."""
        return self.into.get(syntax, default)

    def enforcers_of(self, rule: FirewallRule) -> Iterator[Enforcer]:
        """Give those of a rule's enforcers that this request is for."""
        return (one for one in rule.enforcers if one.is_at(self.at))

    def mark(self, rule: FirewallRule) -> str:
        """Give the text by which a rule is found again on a device."""
        return f"netprobe {self.id} {rule.id}"
