"""Windows Defender Firewall: PowerShell for the hosts at the ends (New-NetFirewallRule)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netprobe.model.firewall import FirewallRequest, FirewallRule, RulePlace
from netprobe.request.services import echo_type, protocol_number, range_text
from netprobe.request.syntaxes.common import (
    direction,
    heading,
    left_out,
    word_state,
    write_sections,
    write_unless,
)

_PLACES: tuple[RulePlace, ...] = ("destination", "source")


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give the script; on each host the rules of other hosts match nothing."""

    def write(rule: FirewallRule, place: RulePlace) -> Iterator[str]:
        why_not = word_state(rule, "this firewall keeps")
        return write_unless(rule, why_not, _write_command(request, rule, place))

    yield from heading(request)
    yield from left_out(request, _PLACES)
    yield from write_sections(request, write, _PLACES)


def undo(request: FirewallRequest) -> Iterator[str]:
    """Give the script that removes them, by their group."""
    yield from heading(request, undo=True)
    yield f"Remove-NetFirewallRule -Group 'netprobe {request.id}'"


def _write_command(request: FirewallRequest, rule: FirewallRule, place: RulePlace) -> Iterator[str]:
    inbound = direction(rule, place) != "output"
    local, remote = (
        (rule.destinations, rule.sources) if inbound else (rule.sources, rule.destinations)
    )
    way = "Inbound" if inbound else "Outbound"
    words = [
        "New-NetFirewallRule",
        f"-Name 'NP-{request.id}-{rule.id}-{way}'",
        f"-DisplayName '{request.mark(rule)}'",
        f"-Group 'netprobe {request.id}'",
        f"-Direction {way}",
        f"-Action {'Allow' if rule.action == 'allow' else 'Block'}",
        "-Profile Any",
        *_write_service(rule, "Local" if inbound else "Remote"),
        f"-LocalAddress {_list_of([end.address for end in local])}",
        f"-RemoteAddress {_list_of([end.address for end in remote])}",
    ]
    yield " ".join(words)


def _write_service(rule: FirewallRule, side: str) -> Iterator[str]:
    number = protocol_number(rule)
    if number is not None:
        yield f"-Protocol {number}"
    elif rule.protocol == "icmp":
        yield f"-Protocol ICMPv{rule.family} -IcmpType {echo_type(rule)}"
    else:
        ports = _list_of([range_text(entry) for entry in rule.ports])
        yield f"-Protocol {rule.protocol.upper()} -{side}Port {ports}"


def _list_of(texts: Sequence[str]) -> str:
    return f"@({','.join(f'{chr(39)}{text}{chr(39)}' for text in texts)})"
