"""The loop of a request: run, ask, apply where it says, run again; and nothing else is open.

The independent truth are plain sockets: a way is open where a refusal comes back.
"""

from __future__ import annotations

import errno
import itertools
import json
import random
import selectors
import socket
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.lab.cli import netprobe
from tests.lab.netlab import Lab, LabError, Namespace, run, wait_for
from tests.needs import skip

pytestmark = [pytest.mark.lab, pytest.mark.slow]

# Source, destination, protocol, port.
Flow = tuple[str, str, str, int]

ROUTER = "10.97.0.1"
HOSTS = {
    "m0": ("10.97.1.1", "master"),
    "w0": ("10.97.2.1", "node"),
    "w1": ("10.97.2.2", "node"),
}
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "loop",
    "title": "Closed loop",
    "roles": {"master": {"implies": ["node"]}, "node": {}},
    "requirements": [
        {"id": "api", "from": "node", "to": "master", "tcp": [6443], "purpose": "API"},
        {"id": "ssh", "from": "node", "to": "node", "tcp": [22], "purpose": "ssh"},
        {"id": "overlay", "from": "node", "to": "master", "udp": [8472], "purpose": "VXLAN"},
        {"id": "kubelet", "from": "master", "to": "node", "tcp": [10250, "30000-30003"],
         "purpose": "kubelet"},
        {"id": "ping", "from": "node", "to": "master", "icmp": "echo", "purpose": "monitoring"},
    ],
}  # fmt: skip
# Answers come within milliseconds; who hears none for so long hears none.
QUIET_S = 1.2
# The kernel gives none of them: from a port of netprobe's, whose datagram was answered, the router
# would let a datagram through for half a minute.
UDP_PORTS = itertools.cycle(range(10000, 32768))
PAIRS = [pair for pair in itertools.permutations(HOSTS, 2)]
# What the router lets through already. And w1 itself drops the kubelet's port.
OPEN = "tcp dport 22 accept"
KUBELET = "ip saddr 10.97.1.1 tcp dport 10250 accept"
REQUIRED: set[Flow] = {
    *((one, two, "tcp", 22) for one, two in PAIRS),
    *((one, "m0", protocol, port) for one in ("w0", "w1")
      for protocol, port in (("tcp", 6443), ("udp", 8472))),
    *(("m0", two, "tcp", port) for two in ("w0", "w1")
      for port in (10250, *range(30000, 30004))),
}  # fmt: skip
NFT = f"""
table inet filter {{
    chain forward {{
        type filter hook forward priority 0; policy drop;
        ct state established,related accept
        {OPEN}
        {KUBELET}
        ip saddr 10.97.2.2 udp dport 8472 drop
        reject with icmp type admin-prohibited
    }}
}}
"""
NFT_W1 = """
table inet filter {
    chain input {
        type filter hook input priority 0; policy accept;
        ip saddr != 10.97.2.2 tcp dport 10250 drop
    }
}
"""
IPTABLES = """\
*filter
:INPUT ACCEPT
:FORWARD DROP
:OUTPUT ACCEPT
-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
-A FORWARD -p tcp --dport 22 -j ACCEPT
-A FORWARD -s 10.97.1.1 -p tcp --dport 10250 -j ACCEPT
-A FORWARD -s 10.97.2.2 -p udp --dport 8472 -j DROP
-A FORWARD -j REJECT --reject-with icmp-admin-prohibited
COMMIT
"""
IPTABLES_W1 = """\
*filter
:INPUT ACCEPT
-A INPUT ! -s 10.97.2.2 -p tcp --dport 10250 -j DROP
COMMIT
"""
FIREWALLD = """
mount -t tmpfs none /run && mount -t tmpfs none /etc/firewalld && mkdir /run/dbus
cat >/run/bus.conf <<X
<busconfig><type>system</type><listen>unix:path=/run/dbus/system_bus_socket</listen>
<auth>EXTERNAL</auth><policy context="default"><allow user="*"/><allow own="*"/>
<allow send_type="method_call"/><allow send_destination="*"/><allow receive_sender="*"/></policy>
</busconfig>
X
dbus-daemon --config-file=/run/bus.conf --fork --nopidfile
echo 'DefaultZone=drop' >/etc/firewalld/firewalld.conf
exec firewalld --nofork --nopid
"""
FIREWALLD_RULES = """
firewall-cmd --permanent --zone=drop --remove-forward
firewall-cmd --permanent --new-policy=site
firewall-cmd --permanent --policy=site --add-ingress-zone=ANY
firewall-cmd --permanent --policy=site --add-egress-zone=ANY
firewall-cmd --permanent --policy=site --add-rich-rule='rule family="ipv4" port port="22" \
protocol="tcp" accept' --add-rich-rule='rule family="ipv4" source address="10.97.1.1" port \
port="10250" protocol="tcp" accept'
firewall-cmd --reload
"""


@dataclass
class Site:
    """The lab, with the run that found out what is blocked there."""

    lab: Lab
    first: Path

    @property
    def router(self) -> Namespace:
        return self.lab["router"]

    @property
    def asked(self) -> Path:
        """The request for all of it."""
        return self.lab.folder / "request.json"

    def run(self, *words: str) -> tuple[int, str, str]:
        """Run the matrix over the inventory."""
        folder = self.lab.folder
        files = ("-m", f"{folder}/matrix.yaml", "-i", f"{folder}/inventory.yaml")
        done = netprobe("run", *files, *words)
        return done.status, done.stdout, done.stderr

    def ask(self, syntax: str, place: str) -> tuple[Path, Path]:
        """Make the request for one place; give its file and the one that undoes it."""
        made, undo = (self.lab.folder / f"{syntax}-{place}.{kind}" for kind in ("add", "undo"))
        words = ("-o", f"{syntax}={made}", "--undo", f"{syntax}={undo}", "--at", place)
        done = netprobe("request", str(self.first), *words)
        assert done.status == 0, done.stderr
        return made, undo


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Three hosts behind a router that refuses what it does not know, and the run that says so."""
    with Lab() as lab:
        router = lab.router("router", ROUTER)
        router.run("sysctl", "-q", "-w", "net.ipv4.icmp_ratelimit=0")
        for name, (address, _) in HOSTS.items():
            host = lab.host(name, router, address)
            # Every refusal must come back: they are the truth.
            host.run("sysctl", "-q", "-w", "net.ipv4.icmp_ratelimit=0")
        lab.wait_until_ready()
        lab.write("matrix.yaml", json.dumps(MATRIX))
        hosts = {
            name: {"address": address, "roles": [role], "vantage": {"command": lab[name].enter}}
            for name, (address, role) in HOSTS.items()
        }
        inventory = {"schema": "netprobe.inventory/1", "hosts": hosts}
        lab.write("inventory.yaml", yaml.safe_dump(inventory, sort_keys=False))
        router.nft(NFT)
        lab["w1"].nft(NFT_W1)
        site = Site(lab, lab.folder / "first.json")
        status, _, stderr = site.run("-o", f"json={site.first}")
        assert status == 1, stderr
        asked = netprobe("request", str(site.first), "-o", f"json={site.asked}")
        assert asked.status == 0, asked.stderr
        yield site


@pytest.fixture
def blank(site: Site) -> Site:
    """The lab without any firewall."""
    for name in ("router", "w1"):
        site.lab[name].nft("flush ruleset")
    return site


def open_flows(lab: Lab, flows: Iterable[Flow]) -> set[Flow]:
    """Give the flows to which an answer or a refusal of the destination comes back."""
    waiting: dict[socket.socket, Flow] = {}
    found: set[Flow] = set()
    with selectors.DefaultSelector() as selector:
        for flow in flows:
            kind = socket.SOCK_STREAM if flow[2] == "tcp" else socket.SOCK_DGRAM
            one = lab[flow[0]].socket(socket.AF_INET, kind)
            waiting[one] = flow
            one.setblocking(False)
            if flow[2] == "udp":
                one.bind(("", next(UDP_PORTS)))
            one.connect_ex((HOSTS[flow[1]][0], flow[3]))
            if flow[2] == "udp":
                one.send(b"who is there?")
            events = selectors.EVENT_WRITE if flow[2] == "tcp" else selectors.EVENT_READ
            selector.register(one, events)
        while waiting and (ready := selector.select(QUIET_S)):
            for key, _ in ready:
                one = key.fileobj  # type: ignore[assignment] # a socket was registered
                error = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error in (0, errno.ECONNREFUSED):
                    found.add(waiting[one])
                selector.unregister(one)
                del waiting[one]
                one.close()
        for one in waiting:
            one.close()
    return found


def random_flows(count: int) -> list[Flow]:
    """Give flows that nobody requires: near to the required ones, and anywhere."""
    chance = random.Random(14)
    near = [21, 23, 6442, 6443, 6444, 8471, 8472, 10249, 10250, 29999, 30000, 30004]
    found: set[Flow] = set()
    while len(found) < count:
        port = chance.choice(near) if chance.random() < 0.3 else chance.randint(1, 59999)
        flow = (*chance.choice(PAIRS), chance.choice(("tcp", "tcp", "udp")), port)
        if flow not in REQUIRED:
            found.add(flow)
    return sorted(found)


def close_the_loop(site: Site) -> None:
    """Probe again what the request asks for: all is done."""
    status, stdout, stderr = site.run("--retry", str(site.asked))

    assert status == 0, stdout + stderr
    assert "PASS: all" in stdout
    assert "done: R1" in stdout
    assert "not done" not in stdout


def blocked_flows(site: Site) -> set[Flow]:
    """Give the flows that the first run found blocked, but for echo."""
    results = json.loads(site.first.read_text())["results"]
    return {
        (one["source"], one["destination"], one["protocol"], port)
        for one in results
        if one["verdict"] == "blocked" and one["port"] is not None
        for port in range(one["port"], one["end_port"] + 1)
    }


def test_the_run_found_what_is_closed(site: Site) -> None:
    """The first run and plain sockets agree on what is required and closed."""
    assert blocked_flows(site) == REQUIRED - open_flows(site.lab, REQUIRED)


# For each place the syntax, the machine, and the words before the name of a script.
Steps = dict[str, tuple[str, Namespace, list[str]]]


def check_loop(site: Site, steps: Steps) -> None:
    """Ask, apply at each place, see what is open, run again, and undo."""
    closed = random_flows(1000)
    before = open_flows(site.lab, closed)
    asked = blocked_flows(site)
    assert not open_flows(site.lab, asked), "the firewall of this test is not the run's"
    states = {place: rules_of(machine) for place, (_, machine, _) in steps.items()}
    undone = {}
    for place, (syntax, machine, words) in steps.items():
        made, undone[place] = site.ask(syntax, place)
        machine.run(*words, str(made))

    assert open_flows(site.lab, asked) == asked
    assert open_flows(site.lab, closed) == before
    close_the_loop(site)
    for place, (syntax, machine, words) in steps.items():
        machine.run(*(["sh"] if syntax == "nftables" else words), str(undone[place]))
        assert rules_of(machine) == states[place]


def rules_of(machine: Namespace) -> str:
    """Give the rules that are loaded, without their counters."""
    return machine.run("nft", "-s", "list", "ruleset")


def test_nftables(blank: Site) -> None:
    """Rules go into the chains that drop, on the router and on w1; then they are gone again."""
    blank.router.nft(NFT)
    blank.lab["w1"].nft(NFT_W1)
    check_loop(blank, {"path": nft_step(blank.router), "destination": nft_step(blank.lab["w1"])})


def nft_step(machine: Namespace) -> tuple[str, Namespace, list[str]]:
    """Give the step of a machine that has nftables."""
    return "nftables", machine, ["nft", "-f"]


def test_iptables(blank: Site) -> None:
    """The same with the scripts of iptables."""
    blank.router.run("iptables-restore", text=IPTABLES)
    blank.lab["w1"].run("iptables-restore", text=IPTABLES_W1)
    places = {"path": blank.router, "destination": blank.lab["w1"]}
    check_loop(blank, {name: ("iptables", one, ["sh"]) for name, one in places.items()})


@pytest.mark.needs("firewall-cmd", "dbus-daemon")
@pytest.mark.full
def test_firewalld(blank: Site) -> None:
    """The same with firewalld on the router; w1 keeps nftables."""
    script = blank.lab.write("firewalld.sh", FIREWALLD)
    log = blank.lab.folder / "firewalld.log"
    with log.open("wb") as stream:
        started = blank.router.spawn(
            "unshare", "-m", "sh", str(script), stdout=stream, stderr=subprocess.STDOUT
        )
    enter = ["nsenter", "-t", str(started.pid), "-m", "-n"]
    try:
        wait_for(lambda: is_running(enter) or started.poll() is not None, "firewalld")
    except LabError:
        skip(f"firewalld does not start here: {log.read_text()[-300:]}", "XXX")
    rules = blank.lab.write("firewalld-rules.sh", FIREWALLD_RULES)
    run(*enter, "sh", "-e", str(rules))
    blank.lab["w1"].nft(NFT_W1)
    step = ("firewalld", blank.router, [*enter[:-1], "sh"])
    check_loop(blank, {"path": step, "destination": nft_step(blank.lab["w1"])})


def is_running(enter: list[str]) -> bool:
    """Tell whether firewalld answers."""
    return run(*enter, "firewall-cmd", "--state", check=False).returncode == 0
