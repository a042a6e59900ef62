"""JSON: the request itself (``netprobe.request/1``), for programs and for ``run --retry``; tickets.

Tickets of Tufin SecureChange and AlgoSec FireFlow, as their REST interfaces take them.
Names of workflows, steps and fields are the customer's own, so ``--ticket KEY=VALUE`` sets them.
What is no key that we know becomes a further field of the ticket.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator, Mapping

import netprobe
from netprobe.model.codec import REQUEST_SCHEMA, result_to_json
from netprobe.model.firewall import FirewallRequest, FirewallRule, RuleEnd
from netprobe.model.printable import clean
from netprobe.model.struct_json import Json, to_json
from netprobe.request.services import protocol_number, range_text

TUFIN_KEYS: Mapping[str, str] = {
    "subject": "",
    "priority": "Normal",
    "workflow": "Firewall Change Request",
    "step": "Submit Access Request",
    "task": "Default",
    "field": "Required Access",
    "requester": "",
}
ALGOSEC_KEYS: Mapping[str, str] = {
    "template": "Standard",
    "subject": "",
    # Its documentation names the key of an address in both ways.
    "address-key": "name",
    "field-key": "name",
}
_ICMP = {4: 1, 6: 58}


def document(request: FirewallRequest) -> Iterator[str]:
    """Give the document: one rule or result a line. All is ASCII, so that nothing damages it."""
    head: Json = {
        "schema": REQUEST_SCHEMA,
        "netprobe_version": netprobe.__version__,
        "id": request.id,
        "of": request.of,
        "started_at": request.started_at,
        "matrices": to_json(request.matrices),
        "ticket": dict(request.ticket),
    }
    before = "{"
    for key, value in head.items():
        yield f'{before}"{key}": {json.dumps(value)},'
        before = " "
    yield from _array_lines(
        "rules", [{**to_json(rule), "who": rule.who} for rule in request.rules], ","
    )
    yield from _array_lines("unmended", [to_json(one) for one in request.unmended], ",")
    yield from _array_lines("unprobed", [to_json(one) for one in request.unprobed], ",")
    yield from _array_lines("results", map(result_to_json, request.asked), "")
    yield "}"


def _array_lines(key: str, items: Iterator[Json] | list[Json], end: str) -> Iterator[str]:
    shown = ",\n  ".join(json.dumps(item) for item in items)
    yield f' "{key}": [{shown and f"{chr(10)}  {shown}"}]{end}'


def tufin(request: FirewallRequest) -> Iterator[str]:
    """Give the ticket for POST /securechangeworkflow/api/securechange/tickets."""
    words = {**TUFIN_KEYS, **request.ticket}
    fields: list[Json] = [
        {
            "@xsi.type": "multi_access_request",
            "name": clean(words["field"]),
            "access_request": [_tufin_access(request, rule) for rule in _choose_forward(request)],
        }
    ]
    fields += [
        {"@xsi.type": "text_area", "name": clean(key), "text": clean(value)}
        for key, value in request.ticket.items()
        if key not in TUFIN_KEYS
    ]
    task = {"name": clean(words["task"]), "fields": {"field": fields}}
    ticket: Json = {
        "subject": _word_subject(request),
        "priority": clean(words["priority"]),
        "workflow": {"name": clean(words["workflow"])},
        "steps": {"step": [{"name": clean(words["step"]), "tasks": {"task": [task]}}]},
    }
    if words["requester"]:
        ticket["requester"] = clean(words["requester"])
    yield json.dumps({"ticket": ticket}, indent=1)


def _word_subject(request: FirewallRequest) -> str:
    return clean(request.ticket.get("subject", "")) or f"netprobe request {request.id}"


def _choose_forward(request: FirewallRequest) -> Iterator[FirewallRule]:
    """Both products know stateful firewalls: the way back is theirs to find."""
    return (rule for rule in request.rules if not rule.answers)


def _tufin_access(request: FirewallRequest, rule: FirewallRule) -> Json:
    return {
        "order": rule.id.replace("R", "AR"),
        # Its topology mode takes no IPv6.
        "use_topology": rule.family == 4,
        "action": "Accept" if rule.action == "allow" else "Drop",
        "sources": {"source": [_tufin_end(end) for end in rule.sources]},
        "destinations": {"destination": [_tufin_end(end) for end in rule.destinations]},
        "services": {"service": list(_tufin_services(rule))},
        "comment": _word_comment(request, rule),
    }


def _word_comment(request: FirewallRequest, rule: FirewallRule) -> str:
    finding = [f"finding {rule.findings_text}"] if rule.findings else []
    words = [request.mark(rule), *rule.why, f"apply on {rule.who}", *rule.evidence, *finding]
    return clean("; ".join([*words, *rule.notes, f"until {rule.until}"]))


def _tufin_end(end: RuleEnd) -> Json:
    network = ipaddress.ip_network(end.address)
    mask = str(network.netmask) if network.version == 4 else str(network.prefixlen)
    return {"@type": "IP", "ip_address": end.address, "netmask": mask}


def _tufin_services(rule: FirewallRule) -> Iterator[Json]:
    number = protocol_number(rule)
    if rule.protocol == "icmp":
        number = _ICMP[rule.family]
        yield {"@type": "PROTOCOL", "protocol": "ICMP" if number == 1 else str(number)}
    elif number is not None:
        yield {"@type": "PROTOCOL", "protocol": str(number)}
    for entry in rule.ports:
        protocol = rule.protocol.upper()
        yield {"@type": "PROTOCOL", "protocol": protocol, "port": range_text(entry)}


def algosec(request: FirewallRequest) -> Iterator[str]:
    """Give a body a line for POST /FireFlow/api/change-requests/traffic.

    A request may not mix IPv4 and IPv6, so each has its own.
    """
    for family in (4, 6):
        rules = [rule for rule in _choose_forward(request) if rule.family == family]
        if rules:
            yield json.dumps(_algosec_body(request, rules))


def _algosec_body(request: FirewallRequest, rules: list[FirewallRule]) -> Json:
    words = {**ALGOSEC_KEYS, **request.ticket}
    key = clean(words["field-key"])
    fields = {"Subject": _word_subject(request)}
    fields |= {name: text for name, text in request.ticket.items() if name not in ALGOSEC_KEYS}
    dates = {rule.until for rule in rules} - {"permanent"}
    if dates:
        fields.setdefault("Expires", min(dates))
    return {
        "template": clean(words["template"]),
        "fields": [{key: clean(name), "values": [clean(text)]} for name, text in fields.items()],
        "traffic": [_algosec_traffic(request, rule, words["address-key"]) for rule in rules],
    }


def _algosec_traffic(request: FirewallRequest, rule: FirewallRule, key: str) -> Json:
    return {
        "source": {"items": [{clean(key): end.address} for end in rule.sources]},
        "destination": {"items": [{clean(key): end.address} for end in rule.destinations]},
        "service": {"items": [{"name": name} for name in _algosec_services(rule)]},
        "action": "Allow" if rule.action == "allow" else "Drop",
        "fields": [{"name": "Comment", "values": [_word_comment(request, rule)]}],
    }


def _algosec_services(rule: FirewallRule) -> Iterator[str]:
    number = protocol_number(rule)
    if number is not None:
        yield f"proto/{number}"
    elif rule.protocol == "icmp":
        yield "icmp" if rule.family == 4 else "icmpv6"
    yield from (f"{rule.protocol}/{range_text(entry)}" for entry in rule.ports)
