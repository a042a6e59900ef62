"""nft, iptables and ufw themselves read the rules of requests: random ones, and the golden ones."""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from netprobe.model.result import Result
from tests.lab.netlab import Lab, Namespace
from tests.needs import skip
from tests.request.flows import Flow, ask, asked_flows, failures, written
from tests.request.readers import NUMBERS, flows_of
from tests.request.samples import sample

pytestmark = pytest.mark.lab

CHAINS = """
flush ruleset
table inet filter { chain forward { }; chain input { }; chain output { }; }
"""
GOLDEN = Path(__file__).parents[1] / "golden" / "request"
SAVE = """
echo =====
iptables-save | grep -v '^[#:]'
ip6tables-save | grep -v '^[#:]'
cat /etc/ufw/user*.rules
"""
UFW = f"""
mount --make-rprivate /
mount -t tmpfs none /run
cp -a /etc/ufw /run/etc && mount --bind /run/etc /etc/ufw
ufw --force enable
ufw allow 1/tcp && ufw delete allow 1/tcp  # its first change completes its own chains
{SAVE}
sh {{golden}}/ufw.add >/dev/null
{SAVE}
sh {{golden}}/ufw.undo >/dev/null
{SAVE}
"""
OWN = "iptables -N OWN; iptables -A OWN -d 10.0.0.10 -j DROP; ip6tables -N OWN"
EDGE = """
flush ruleset
table inet edge {
    chain own { tcp dport 22 accept; }; chain input { tcp dport 22 drop; }; chain output { };
}
"""


@pytest.fixture(scope="module")
def machine() -> Iterator[Namespace]:
    """A machine without cables."""
    with Lab() as lab:
        yield lab.namespace("firewall")


@given(results=failures())
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nft_reads_the_flows_asked_for(machine: Namespace, results: tuple[Result, ...]) -> None:
    """What nft lists as JSON, loaded, is what was asked for; undone, nothing is left."""
    request = ask(results)
    machine.nft(CHAINS)
    machine.nft(written(request, "nftables"))
    listed = json.loads(machine.run("nft", "-j", "list", "ruleset"))["nftables"]
    found = {flow for one in listed if "rule" in one for flow in flows_of_rule(one["rule"])}

    assert found == asked_flows(results)
    machine.run("sh", text=written(request, "nftables", undo=True))
    assert '"rule"' not in machine.run("nft", "-j", "list", "ruleset")


def flows_of_rule(rule: dict[str, Any]) -> Iterator[Flow]:
    """Give the single flows of a rule as nft lists it."""
    ends: dict[str, list[str]] = {}
    protocol, ports = "", [0]
    assert {"accept": None} in rule["expr"]
    for match in (one["match"] for one in rule["expr"] if "match" in one):
        payload, right = match["left"].get("payload", {}), match["right"]
        items = right["set"] if isinstance(right, dict) and "set" in right else [right]
        field = payload.get("field")
        if field in ("saddr", "daddr"):
            ends[field] = [str(ipaddress.ip_address(item)) for item in items]
        elif field == "dport":
            protocol, ports = payload["protocol"], [port for one in items for port in each(one)]
        elif field == "type":
            assert items == ["echo-request"]
            protocol = "icmp"
        else:
            assert match["left"] == {"meta": {"key": "l4proto"}}
            protocol = NUMBERS.get(str(right), {"vrrp": "ipproto/112"}.get(str(right), str(right)))
    return flows_of(ends["saddr"], ends["daddr"], protocol, ports)


def each(item: Any) -> range:
    """Give the ports of a range, or the one port."""
    first, last = item["range"] if isinstance(item, dict) else (item, item)
    return range(first, last + 1)


def test_nft_loads_every_kind_of_rule(machine: Namespace) -> None:
    """Both families, ranges, echo, raw protocols, answers, a rule that closes, hostile texts."""
    machine.nft(CHAINS)
    machine.run("nft", "-f", str(GOLDEN / "nftables.add"))

    listed = machine.run("nft", "list", "ruleset")
    rules = sample().rules
    # Each rule stands with everybody who can apply it.
    assert listed.count("comment") == sum(len(rule.enforcers) for rule in rules)
    assert all(f'"netprobe {sample().id} {rule.id}"' in listed for rule in rules)
    machine.run("sh", str(GOLDEN / "nftables.undo"))
    assert "comment" not in machine.run("nft", "list", "ruleset")


def test_iptables_loads_every_kind_of_rule(machine: Namespace) -> None:
    """The script of the same rules runs to its end, and that which deletes them too."""
    machine.nft("flush ruleset")
    machine.run("sh", str(GOLDEN / "iptables.add"))
    assert f"netprobe {sample().id} R16" in machine.run("iptables-save")
    assert "ipv6-icmp" in machine.run("ip6tables-save")
    machine.run("sh", str(GOLDEN / "iptables.undo"))
    saved = machine.run("iptables-save") + machine.run("ip6tables-save")
    assert "netprobe" not in saved


@pytest.mark.needs("ufw")
def test_ufw_takes_every_rule(machine: Namespace) -> None:
    """ufw reads each command; without being enabled it changes nothing."""
    if not os.access("/etc/ufw/user.rules", os.R_OK):
        skip("ufw's own rules cannot be read here", "root that may read /etc/ufw")
    lines = [line for line in (GOLDEN / "ufw.add").read_text().splitlines() if line[:4] == "ufw "]
    assert len(lines) > 9
    for line in lines[::3]:
        told = machine.run("sh", "-c", line.replace("ufw ", "ufw --dry-run ", 1))
        assert "ERROR" not in told
        assert "### tuple ###" in told


@pytest.mark.needs("ufw")
@pytest.mark.full
def test_ufw_is_as_before_after_the_undo(machine: Namespace) -> None:
    """Enabled, in files and kernel of its own, it takes every rule and gives each back."""
    if not os.access("/etc/ufw/user.rules", os.R_OK):
        skip("ufw's own rules cannot be read here", "root that may read /etc/ufw")
    machine.nft("flush ruleset")
    told = machine.run("unshare", "-m", "sh", "-e", "-c", UFW.format(golden=GOLDEN))

    before, added, after = told.split("=====\n")[1:]
    assert before == after
    assert added.count("10.0.0.10") > before.count("10.0.0.10")


@pytest.mark.parametrize(
    ("syntax", "into", "load", "show"),
    [
        ("nftables", "inet/edge/own", ["nft", "-f", "-"], "nft -s list ruleset"),
        ("iptables", "OWN", ["sh"], "(iptables-save; ip6tables-save) | grep -v '^[#:]'"),
    ],
)
def test_the_undo_of_a_named_chain_leaves_what_was_there(
    machine: Namespace, syntax: str, into: str, load: list[str], show: str
) -> None:
    """Rules go into that chain and its neighbours, and the script takes just these away."""
    machine.nft(EDGE)
    machine.run("sh", "-e", text=OWN)
    request = replace(sample(), into={syntax: into})
    before = machine.run("sh", "-c", show)
    machine.run(*load, text=written(request, syntax))
    added = machine.run("sh", "-c", show)
    machine.run("sh", text=written(request, syntax, undo=True))

    assert added.count(f'"netprobe {request.id} R') >= len(request.rules)
    assert machine.run("sh", "-c", show) == before
