"""What others make of our rules: cisco_acl, python-hcl2, aerleon, openpyxl, firewalld's parser."""

from __future__ import annotations

import io
import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from netprobe.model.firewall import FirewallRequest
from netprobe.model.result import Result
from netprobe.request.rules import RequestWishes
from netprobe.request.syntaxes import SYNTAXES
from tests.needs import skip
from tests.request import readers
from tests.request.flows import ADDRESSES, Flow, ask, asked_flows, failures, written
from tests.request.readers import NUMBERS, flows_of, ports_of

# Their imports alone take a second: those that take long are within the tests.
pytestmark = pytest.mark.slow


@given(failures())
@settings(max_examples=10)
def test_cisco_ios(results: tuple[Result, ...]) -> None:
    """cisco_acl reads the groups and the access list of IOS as the flows asked for."""
    text = written(ask(results), "cisco-ios")
    asked = asked_flows(results, ("path",))
    ipv4, _, ipv6 = text.partition("ipv6 access-list")

    assert read_ios(ipv4) == {flow for flow in asked if ":" not in flow[0]}
    assert read_ios_ipv6(ipv6) == {flow for flow in asked if ":" in flow[0]}


def read_ios(text: str) -> set[Flow]:
    """Read by cisco_acl, of which only comments are kept."""
    import cisco_acl

    blocks = re.split(r"^(?=object-group|ip access-list extended)", text, flags=re.MULTILINE)
    kept = ["\n".join(one for one in block.splitlines() if one[:1] != "!") for block in blocks]
    groups = {
        group.name: [item.prefix for item in group.items]
        for group in (
            cisco_acl.AddrGroup(block, platform="ios")
            for block in kept
            if block.startswith("object-group")
        )
    }
    found: set[Flow] = set()
    for block in kept:
        if block.startswith("ip access-list extended"):
            entries: list[Any] = list(cisco_acl.Acl(block, platform="ios").items)
            for ace in entries:
                assert ace.action == "permit"
                sides = (groups[ace.srcaddr.addrgroup], groups[ace.dstaddr.addrgroup])
                name = ace.protocol.line
                ports = ace.dstport.ports or [0]
                found |= set(flows_of(*sides, NUMBERS.get(name, name), ports))
    return found


def read_ios_ipv6(text: str) -> set[Flow]:
    """Read the lines of an IPv6 list, which cisco_acl does not know."""
    entry = re.compile(
        r" sequence \d+ permit (\S+) host (\S+) host (\S+)(?: (?:eq|range) (.+)| echo-request)?"
    )
    found: set[Flow] = set()
    for line in text.splitlines()[1:]:
        match = entry.fullmatch(line)
        assert match is not None, line
        name, source, end, ports = match.groups()
        every = ports_of([ports.replace(" ", "-")]) if ports else [0]
        found |= set(flows_of([source], [end], NUMBERS.get(name, name), every))
    return found


@given(failures())
@settings(max_examples=10)
def test_cisco_asa(results: tuple[Result, ...]) -> None:
    """The entries of an ASA are those of NX-OS for cisco_acl, once its groups are spelt out."""
    assert read_asa(written(ask(results), "cisco-asa")) == asked_flows(results, ("path",))


def read_asa(text: str) -> set[Flow]:
    """Read the groups, and every entry by cisco_acl where it knows the family."""
    groups: dict[str, list[str]] = {}
    found: set[Flow] = set()
    for line in text.splitlines():
        words = line.split()
        if words[0] == "object-group":
            members = groups.setdefault(words[2], [])
        elif words[0] == "network-object":
            members.append(words[-1])
        elif words[0] == "port-object":
            members.append("-".join(words[2:]))
        elif words[0] != "!":
            assert words[:2] == ["access-list", "NETPROBE_EDIT_ME"]
            found |= _read_asa_entry(words[5:], groups)
    return found


def _read_asa_entry(words: list[str], groups: dict[str, list[str]]) -> set[Flow]:
    import cisco_acl

    # The service's group stands where IOS has its ports.
    ports = groups[words[7]] if len(words) > 7 else []
    ace = cisco_acl.Ace(" ".join([words[0], words[1].replace("icmp6", "icmp"), *words[2:6]]))
    assert ace.action == "permit"
    name = ace.protocol.line
    sides = (groups[ace.srcaddr.addrgroup], groups[ace.dstaddr.addrgroup])
    every = list(ports_of(ports)) if ports else [0]
    return set(flows_of(*sides, NUMBERS.get(name, name), every))


@given(failures())
@settings(max_examples=3)
def test_terraform(results: tuple[Result, ...]) -> None:
    """python-hcl2 reads the resources of both providers as the flows asked for."""
    import hcl2

    request = ask(results)
    aws = hcl2.loads(written(request, "terraform-aws")) if request.rules else {}
    openstack = hcl2.loads(written(request, "terraform-openstack")) if request.rules else {}

    assert read_terraform(aws, request) == asked_flows(results)
    assert read_terraform(openstack, request) == asked_flows(results)


def read_terraform(document: dict[str, Any], request: FirewallRequest) -> set[Flow]:
    """Read the rules of security groups; the variable says whose group it is."""
    lists: dict[str, list[str]] = {}
    found: set[Flow] = set()
    hosts = {
        name.strip('"'): one["description"].strip('"').partition(": ")[2].split(", ")
        for block in document.get("variable", ())
        for name, one in block.items()
    }
    for kind, name, body in _resources_of(document):
        if kind == "aws_ec2_managed_prefix_list":
            lists[name] = [entry["cidr"].strip('"') for entry in body["entry"]]
            continue
        own = [
            address
            for host in hosts[_name_in(body["security_group_id"])]
            for address in ADDRESSES[host]
        ]
        if "prefix_list_id" in body:
            other = lists[_name_in(body["prefix_list_id"].removesuffix(".id}"))]
        else:
            other = re.findall(r'"([^"]+)"', body["for_each"])
        six = ":" in other[0]
        own = [address for address in own if (":" in address) == six]
        ends = (own, other) if "egress" in kind or "egress" in name else (other, own)
        protocol = str(body.get("ip_protocol", body.get("protocol"))).strip('"')
        protocol = NUMBERS.get(protocol, re.sub("^(ipv6-)?icmp(v6)?$", "icmp", protocol))
        first = body.get("from_port", body.get("port_range_min", 0))
        last = body.get("to_port", body.get("port_range_max", 0))
        ported = protocol in ("tcp", "udp")
        found |= set(flows_of(*ends, protocol, range(first, last + 1) if ported else [0]))
    return found


def _name_in(reference: str) -> str:
    return str(re.findall(r"\w+", reference)[-1])


def _resources_of(document: dict[str, Any]) -> Iterable[tuple[str, str, dict[str, Any]]]:
    for block in document.get("resource", ()):
        for kind, named in block.items():
            for name, body in named.items():
                yield kind.strip('"'), name.strip('"'), body


PROBED_PORTS = (6439, 6440, 6443, 6446, 6449, 6452, 6453)


@given(failures(protocols=("tcp", "udp")))
@settings(max_examples=3)
def test_aerleon(results: tuple[Result, ...]) -> None:
    """aerleon's AclCheck says of every pair, at ports in and beside the ranges, what was asked."""
    from aerleon import api
    from aerleon.lib import naming

    document = yaml.safe_load(written(ask(results), "aerleon"))
    definitions = naming.Naming()
    named = {key: document.get(key) or {} for key in ("networks", "services")}
    definitions.ParseDefinitionsObject(named, "")
    if not results:
        return
    policy: Any = {"filename": "asked", "filters": document["filters"]}
    asked = asked_flows(results)
    ends = sorted({(flow[0], flow[1]) for flow in asked} | {(flow[1], flow[0]) for flow in asked})
    for source, end in ends[:8]:
        for protocol in ("tcp", "udp"):
            for port in PROBED_PORTS:
                found = api.AclCheck(
                    policy, definitions, src=source, dst=end, dport=str(port), proto=protocol
                )
                allowed = bool(next(iter(found.values()), {}))
                assert allowed == ((source, end, protocol, port) in asked)


@given(failures())
@settings(max_examples=5)
def test_xlsx(results: tuple[Result, ...]) -> None:
    """openpyxl finds the same flows in the workbook, and no formula."""
    from openpyxl import load_workbook

    stream = io.TextIOWrapper(io.BytesIO())
    SYNTAXES["xlsx"].write(ask(results, RequestWishes(ticket={"Owner": "=1+1"})), stream)
    sheet = load_workbook(stream.buffer)["Rules"]

    assert not [cell for row in sheet.rows for cell in row if cell.data_type == "f"]
    rows = [[str(cell.value or "") for cell in row] for row in sheet.rows]
    assert readers.rows_of_table(rows) == asked_flows(results)
    assert rows[-1][-1] == ("=1+1" if results else "Owner")


SYSTEM_PYTHON = Path("/usr/bin/python3")
PARSER = """
import json, sys
from firewall.core.rich import Rich_Rule, Rich_Port, Rich_Protocol, Rich_IcmpType
for line in sys.stdin:
    rule = Rich_Rule(rule_str=line)
    rule.check()
    one = rule.element
    kind = {Rich_Port: "port", Rich_Protocol: "protocol", Rich_IcmpType: "icmp"}[type(one)]
    service = [one.protocol, one.port] if kind == "port" else [kind, getattr(one, "value", None)]
    ends = [[end.addr, end.ipset] for end in (rule.source, rule.destination)]
    print(json.dumps([ends, service, type(rule.action).__name__]))
"""


@given(failures())
@settings(max_examples=5)
def test_firewalld(results: tuple[Result, ...]) -> None:
    """firewalld's own parser takes every rich rule, and they are the flows asked for."""
    words = list(readers.commands_of(written(ask(results), "firewalld"), "firewall-cmd"))
    sets: dict[str, list[str]] = {}
    rules: list[str] = []
    for one in words:
        name = one[2].partition("=")[2] if "--permanent" in one else ""
        for option, _, value in (word.partition("=") for word in one[3:]):
            if option == "--add-entry":
                sets.setdefault(name, []).append(value)
            elif option == "--add-rich-rule":
                rules.append(value)
    done = subprocess.run(
        [SYSTEM_PYTHON, "-c", PARSER], input="\n".join(rules), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if "No module named 'firewall'" in done.stderr:
        skip("python3-firewall is not installed", "`make lab-packages` as root")
    assert done.returncode == 0, done.stderr
    found: set[Flow] = set()
    for line in done.stdout.splitlines():
        ends, (name, value), action = json.loads(line)
        assert action == "Rich_Accept"
        sides = [[address] if address else sets[group] for address, group in ends]
        protocol = {"protocol": f"ipproto/{value}"}.get(name, name)
        ports = ports_of([value]) if name in ("tcp", "udp") else [0]
        found |= set(flows_of(sides[0], sides[1], protocol, ports))
    assert found == asked_flows(results)
