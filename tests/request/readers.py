"""Read what syntaxes wrote, by the libraries of others where there are such, as single flows."""

from __future__ import annotations

import csv
import ipaddress
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise, product
from typing import Any

import yaml

from tests.request.flows import Flow, without_itself

Reader = Callable[[str], set[Flow]]
NUMBERS = {"1": "icmp", "58": "icmp", "6": "tcp", "17": "udp", "112": "ipproto/112"}


def flows_of(
    sources: Iterable[str], destinations: Iterable[str], protocol: str, ports: Iterable[int] = (0,)
) -> Iterator[Flow]:
    """Give all sources to all destinations at all ports."""
    ends = product(map(address_of, sources), map(address_of, destinations))
    every = list(ports)
    return without_itself((source, end, protocol, port) for source, end in ends for port in every)


def address_of(text: str) -> str:
    """Give the one address of a network; a wider network is an error."""
    network = ipaddress.ip_network(text)
    assert network.num_addresses == 1, text
    return str(network.network_address)


def ports_of(texts: Iterable[str], sign: str = "-") -> Iterator[int]:
    """Give every port of ranges."""
    for text in texts:
        first, _, last = text.partition(sign)
        yield from range(int(first), int(last or first) + 1)


def read_csv(text: str) -> set[Flow]:
    """Read the table with the library for it."""
    found: set[Flow] = set()
    for row in csv.DictReader(text.removeprefix("\ufeff").splitlines()):
        found |= set(_flows_of_row(row, ";"))
    return found


def _flows_of_row(row: Mapping[str, str], sign: str) -> Iterator[Flow]:
    assert row["Action"] == "Allow"
    name = row["Protocol"]
    protocol = "icmp" if name.startswith("icmp") else NUMBERS.get(name, name)
    ports = list(ports_of(row["Port"].split(sign))) if row["Port"] else [0]
    return flows_of(row["Source"].split(sign), row["Destination"].split(sign), protocol, ports)


def rows_of_table(rows: Iterable[Iterable[str]]) -> set[Flow]:
    """Read the cells of a workbook."""
    head, *body = (list(row) for row in rows)
    found: set[Flow] = set()
    for row in body:
        found |= set(_flows_of_row(dict(zip(head, row, strict=True)), "\n"))
    return found


def read_tufin(text: str) -> set[Flow]:
    """Read the ticket."""
    task = json.loads(text)["ticket"]["steps"]["step"][0]["tasks"]["task"][0]
    found: set[Flow] = set()
    for access in task["fields"]["field"][0]["access_request"]:
        assert access["action"] == "Accept"
        ends = (
            [f"{end['ip_address']}/{end['netmask']}" for end in access[f"{side}s"][side]]
            for side in ("source", "destination")
        )
        sources, destinations = ends
        for service in access["services"]["service"]:
            name = service["protocol"].lower()
            ports = list(ports_of([service["port"]])) if "port" in service else [0]
            found |= set(flows_of(sources, destinations, NUMBERS.get(name, name), ports))
    return found


def read_algosec(text: str) -> set[Flow]:
    """Read a body a line; IPv4 and IPv6 are never in one."""
    found: set[Flow] = set()
    for line in text.splitlines():
        body = json.loads(line)
        flows: set[Flow] = set()
        for one in body["traffic"]:
            sources, destinations, services = (
                [item["name"] for item in one[side]["items"]]
                for side in ("source", "destination", "service")
            )
            for service in services:
                name, _, rest = service.partition("/")
                name = {"proto": f"ipproto/{rest}", "icmpv6": "icmp"}.get(name, name)
                ports = list(ports_of([rest])) if name in ("tcp", "udp") else [0]
                flows |= set(flows_of(sources, destinations, name, ports))
        assert len({":" in flow[0] for flow in flows}) <= 1
        found |= flows
    return found


def read_calico(text: str) -> set[Flow]:
    """Read the policies."""
    found: set[Flow] = set()
    for policy in filter(None, yaml.safe_load_all(text)):
        for rule in [*policy["spec"].get("ingress", ()), *policy["spec"].get("egress", ())]:
            assert rule["action"] == "Allow"
            name = str(rule["protocol"]).lower().removesuffix("v6")
            ports = [str(port) for port in rule["destination"].get("ports", ())]
            every = list(ports_of(ports, ":")) if ports else [0]
            ends = (rule["source"]["nets"], rule["destination"]["nets"])
            found |= set(flows_of(*ends, NUMBERS.get(name, name), every))
    return found


def read_iptables(text: str) -> set[Flow]:
    """Read the options of the commands of a shell script."""
    found: set[Flow] = set()
    for words in commands_of(text, "iptables", "ip6tables"):
        given = dict(pairwise(words))
        assert given["-j"] == "ACCEPT"
        name = given["-p"].removeprefix("ipv6-")
        ports = list(ports_of(given["--dports"].split(","), ":")) if "--dports" in given else [0]
        ends = (given["-s"].split(","), given["-d"].split(","))
        found |= set(flows_of(*ends, NUMBERS.get(name, name), ports))
    return found


def commands_of(text: str, *programs: str) -> Iterator[list[str]]:
    """Give the words of every command of a script, as a shell splits them."""
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] in programs:
            yield words
        else:
            assert not words or words[0] in ("set", "firewall-cmd"), line


def read_ufw(text: str) -> set[Flow]:
    """Read the commands of a shell script."""
    found: set[Flow] = set()
    for words in commands_of(text, "ufw"):
        assert "allow" in words
        given = dict(pairwise(words))
        ports = list(ports_of(given["port"].split(","), ":")) if "port" in given else [0]
        name = {"vrrp": "ipproto/112"}.get(given["proto"], given["proto"])
        found |= set(flows_of([given["from"]], [given["to"]], name, ports))
    return found


def read_windows(text: str) -> set[Flow]:
    """Read the parameters of the commands."""
    found: set[Flow] = set()
    for line in text.splitlines():
        if not line.startswith("New-NetFirewallRule "):
            assert not line or line.startswith("#"), line
            continue
        given = dict(re.findall(r"-(\w+) (@\([^)]*\)|'[^']*'|\S+)", line))
        lists = {name: re.findall(r"'([^']*)'", words) for name, words in given.items()}
        inbound = given["Direction"] == "Inbound"
        sides = (lists["RemoteAddress"], lists["LocalAddress"])
        name = re.sub(r"v[46]$", "", given["Protocol"].lower())
        port_texts = lists.get("LocalPort" if inbound else "RemotePort", [])
        ports = list(ports_of(port_texts)) if port_texts else [0]
        ends = sides if inbound else (sides[1], sides[0])
        found |= set(flows_of(*ends, NUMBERS.get(name, name), ports))
    return found


def read_paloalto(text: str) -> set[Flow]:
    """Read the ``set`` commands."""
    addresses: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    services: dict[str, tuple[str, str]] = {}
    found: set[Flow] = set()
    for words in (line.split() for line in text.splitlines() if line.startswith("set ")):
        if words[1] == "address":
            addresses[words[2]] = words[4]
        elif words[1] == "address-group":
            groups[words[2]] = [addresses[name] for name in words[5:-1]]
        elif words[1] == "service":
            services[words[2]] = (words[4], words[6])
        else:
            given = dict(pairwise(words))
            assert given["action"] == "allow"
            name, ports = services.get(given["service"], ("icmp", "0"))
            sides = (groups[given["source"]], groups[given["destination"]])
            found |= set(flows_of(*sides, name, ports_of(ports.split(","))))
    return found


def read_junos(text: str) -> set[Flow]:
    """Read the ``set`` commands."""
    addresses: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    services: dict[str, list[tuple[str, str]]] = {}
    policies: dict[str, dict[str, str]] = {}
    for words in (line.split() for line in text.splitlines() if line.startswith("set ")):
        given = dict(pairwise(words))
        if "address-set" in given:
            groups.setdefault(given["address-set"], []).append(addresses[words[-1]])
        elif "address-book" in given:
            addresses[words[-2]] = words[-1]
        elif "application" in given and "applications" in given:
            term = (given["protocol"], given.get("destination-port", "0"))
            services.setdefault(given["application"], []).append(term)
        elif "description" not in given:
            policies.setdefault(given["policy"], {}).update(given)
    found: set[Flow] = set()
    for policy in policies.values():
        assert policy["then"] == "permit"
        sides = (groups[policy["source-address"]], groups[policy["destination-address"]])
        for name, ports in services[policy["application"]]:
            protocol = NUMBERS.get(name, name.removesuffix("6"))
            found |= set(flows_of(*sides, protocol, ports_of([ports])))
    return found


def read_fortios(text: str) -> set[Flow]:
    """Read the blocks of the configuration."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for line in (line.strip() for line in text.splitlines()):
        words = shlex.split(line, comments=True)
        if words[:1] == ["config"]:
            table = tables.setdefault(words[2], [])
        elif words[:1] == ["edit"]:
            table.append({"name": words[1]})
        elif words[:1] == ["set"]:
            table[-1][words[1]] = words[2:]
    addresses = {
        one["name"]: "/".join(one.get("subnet", one.get("ip6", ())))
        for kind in ("address", "address6")
        for one in tables.get(kind, ())
    }
    groups = {
        one["name"]: [addresses[name] for name in one["member"]]
        for kind in ("addrgrp", "addrgrp6")
        for one in tables.get(kind, ())
    }
    services = {one["name"]: one for one in tables.get("service", ())}
    found: set[Flow] = set()
    for policy in tables.get("policy", ()):
        assert policy["action"] == ["accept"]
        six = "6" if "srcaddr6" in policy else ""
        sides = (groups[policy[f"srcaddr{six}"][0]], groups[policy[f"dstaddr{six}"][0]])
        name, ports = _service_of_fortios(services[policy["service"][0]])
        found |= set(flows_of(*sides, name, ports_of(ports)))
    return found


def _service_of_fortios(service: Mapping[str, list[str]]) -> tuple[str, list[str]]:
    for name in ("tcp", "udp"):
        if f"{name}-portrange" in service:
            return name, service[f"{name}-portrange"]
    if "protocol-number" in service:
        return f"ipproto/{service['protocol-number'][0]}", ["0"]
    assert "icmptype" in service
    return "icmp", ["0"]
