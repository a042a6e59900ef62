"""firewalld 0.9 or later: policies of this request's own, with rich rules and ipsets.

Zones only cover what comes to the host itself; policies cover all three ways
(firewalld.policies(5)). Their priority is below zero, so that they come before the zones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from netprobe.model.firewall import FirewallRequest, FirewallRule
from netprobe.request.groups import AddressGroup, end_groups
from netprobe.request.services import protocol_number, range_text
from netprobe.request.syntaxes.common import (
    Direction,
    Section,
    direction,
    forbid_whole_file,
    heading,
    remarks,
    sections,
    word_state,
    write_unless,
)

# Ingress zone, egress zone.
_ZONES: dict[Direction, tuple[str, str]] = {
    "forward": ("ANY", "ANY"),
    "input": ("ANY", "HOST"),
    "output": ("HOST", "ANY"),
}
_COMMAND = "firewall-cmd --permanent"
_MOST_OPTIONS = 50
_VERDICTS = {"allow": "accept", "deny": "drop"}


def lines(request: FirewallRequest) -> Iterator[str]:
    """Give a shell script of firewall-cmd."""
    yield "#!/bin/sh"
    yield from heading(request)
    yield "set -e"
    yield from forbid_whole_file(request)
    for section in sections(request):
        yield section.title
        yield from _section_lines(request, section, set())
        yield "firewall-cmd --reload"


def undo(request: FirewallRequest) -> Iterator[str]:
    """Give the script that deletes this request's policies and ipsets."""
    yield "#!/bin/sh"
    yield from heading(request, undo=True)
    made: set[str] = set()
    for section in sections(request):
        _ = [*_section_lines(request, section, made)]
    # A set that a rule still uses cannot be deleted: policies go first.
    for name in sorted(made, key=lambda name: (not name.startswith("np-"), name)):
        kind = "policy" if name.startswith("np-") else "ipset"
        yield f"{_COMMAND} --delete-{kind}={name}"
    yield "firewall-cmd --reload"


def _section_lines(request: FirewallRequest, section: Section, made: set[str]) -> Iterator[str]:
    """Give the commands of a part; ``made`` gets the names of what they make.

    Each part makes all that it needs, since it may be the only one for its device.
    """
    for rule in section.rules:
        way = direction(rule, section.enforcer.place)
        policy = f"np-{request.id}-{way[:3]}"
        if policy not in made:
            made.add(policy)
            yield from _policy_lines(policy, way)
        yield from remarks(rule)
        why_not = word_state(rule, "firewalld keeps")
        yield from write_unless(rule, why_not, _rule_lines(request, rule, policy, made))


def _rule_lines(
    request: FirewallRequest, rule: FirewallRule, policy: str, made: set[str]
) -> Iterator[str]:
    sides = end_groups(request, rule)
    for group in sides:
        if len(group.ends) > 1 and group.name not in made:
            made.add(group.name)
            yield from _ipset_lines(group)
    rules = (_write_rich_rule(rule, sides, service) for service in _write_services(rule))
    yield from _add_options(f"--policy={policy}", (f"--add-rich-rule='{one}'" for one in rules))


def _policy_lines(policy: str, way: Direction) -> Iterator[str]:
    ingress, egress = _ZONES[way]
    yield _write_new("policy", policy)
    # Each option is a command of its own: firewall-cmd takes no two of them.
    yield f"{_COMMAND} --policy={policy} --set-priority=-100"
    yield f"{_COMMAND} --policy={policy} --set-target=CONTINUE"
    yield f"{_COMMAND} --policy={policy} --add-ingress-zone={ingress}"
    yield f"{_COMMAND} --policy={policy} --add-egress-zone={egress}"


def _ipset_lines(group: AddressGroup) -> Iterator[str]:
    family = " --option=family=inet6" if group.family == 6 else ""
    yield _write_new("ipset", group.name, f" --type=hash:ip{family}")
    yield from _add_options(
        f"--ipset={group.name}", (f"--add-entry={end.address}" for end in group.ends)
    )


def _write_new(kind: str, name: str, options: str = "") -> str:
    """Give the command that makes what another part may have made on the same device."""
    known = f"{_COMMAND} --info-{kind}={name} >/dev/null 2>&1"
    return f"{known} || {_COMMAND} --new-{kind}={name}{options}"


def _add_options(where: str, options: Iterable[str]) -> Iterator[str]:
    """Add many things by few commands: each takes a third of a second."""
    rest = list(options)
    while rest:
        yield f"{_COMMAND} {where} {' '.join(rest[:_MOST_OPTIONS])}"
        rest = rest[_MOST_OPTIONS:]


def _write_rich_rule(rule: FirewallRule, sides: Sequence[AddressGroup], service: str) -> str:
    source, destination = (
        f'ipset="{group.name}"' if len(group.ends) > 1 else f'address="{group.ends[0].address}"'
        for group in sides
    )
    return (
        f'rule priority="-100" family="ipv{rule.family}" source {source} '
        f"destination {destination} {service} {_VERDICTS[rule.action]}"
    )


def _write_services(rule: FirewallRule) -> Iterator[str]:
    """Give one element for each: a rich rule takes one port or one range."""
    number = protocol_number(rule)
    if number is not None:
        yield f'protocol value="{number}"'
    elif rule.protocol == "icmp":
        yield 'icmp-type name="echo-request"'
    else:
        for entry in rule.ports:
            yield f'port port="{range_text(entry)}" protocol="{rule.protocol}"'
