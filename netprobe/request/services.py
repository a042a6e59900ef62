"""The service of a rule: its protocol and ports, as words and in parts."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from netprobe.model.firewall import FirewallRule, RuleEnd
from netprobe.model.ports import PortRange


def service_text(rule: FirewallRule) -> str:
    """``tcp 2379-2380, 6443``, ``icmp echo``, ``ip protocol 112``."""
    if rule.protocol == "icmp":
        return "icmp echo"
    number = protocol_number(rule)
    if number is not None:
        return f"ip protocol {number}"
    return f"{rule.protocol} {', '.join(range_text(one) for one in rule.ports)}"


def range_text(entry: PortRange, sign: str = "-") -> str:
    """``6443`` or ``7400-7499``."""
    first, last = entry
    return str(first) if first == last else f"{first}{sign}{last}"


def protocol_number(rule: FirewallRule) -> int | None:
    """Give the number of a raw IP protocol, None for tcp, udp and icmp."""
    name, _, number = rule.protocol.partition("/")
    return int(number) if name == "ipproto" else None


def protocol_name(rule: FirewallRule, icmp6: str) -> str:
    """Name the protocol: a raw one by its number, and ICMP of IPv6 by the word of a syntax."""
    number = protocol_number(rule)
    if number is not None:
        return str(number)
    return icmp6 if rule.protocol == "icmp" and rule.family == 6 else rule.protocol


def cidr_of(end: RuleEnd) -> str:
    """``10.0.0.1/32``."""
    return f"{end.address}/{128 if ':' in end.address else 32}"


def echo_type(rule: FirewallRule) -> int:
    """Give the ICMP type of an echo request, or of its answer."""
    if rule.family == 6:
        return 129 if rule.answers else 128
    return 0 if rule.answers else 8


def split_ports(rule: FirewallRule, most: int) -> Iterator[FirewallRule]:
    """Split a rule where one of the device takes only so many ports; a range counts as two."""
    part: list[PortRange] = []
    room = most
    for entry in rule.ports:
        size = 1 if entry[0] == entry[1] else 2
        if size > room:
            yield replace(rule, ports=tuple(part))
            part, room = [], most
        part.append(entry)
        room -= size
    yield replace(rule, ports=tuple(part))
