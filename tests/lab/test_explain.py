"""`netprobe explain` on real namespaces: source, two routers, destination, and firewalls of nft."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab, Namespace
from tests.lab.services import PYTHON

PORT, VXLAN = 7000, 8472
SOURCE, DESTINATION = "10.93.1.2", "10.93.3.2"
ROUTER_1, ROUTER_2 = "10.93.1.1", "10.93.2.2"
# What a run says of a flow, and explain must say too.
SAME = ("verdict", "state", "reason", "proof", "where", "rejected_by")
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "one-flow",
    "title": "The flow that is explained",
    "roles": {"src": {}, "dst": {}},
    "requirements": [
        {
            "id": "api",
            "from": "src",
            "to": "dst",
            "tcp": [PORT],
            "purpose": "the API",
            "process": PYTHON,
        },
        {"id": "overlay", "from": "src", "to": "dst", "udp": [PORT], "purpose": "the overlay"},
        {
            "id": "vxlan",
            "from": "src",
            "to": "dst",
            "udp": [VXLAN],
            "purpose": "the network",
            "probe": "vxlan",
        },
    ],
}


Timing = tuple[str, ...]
# Two SYNs in one look are enough where nothing is lost by chance; a dead host takes 3.06 s.
QUICK: Timing = ("--timeout", "1.5", "--retries", "0")
USUAL: Timing = ()


class Chain:
    """source - router-1 - router-2 - destination, with one network for each cable."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.source = lab.namespace("source")
        self.router_1 = lab.namespace("router-1", router=True)
        self.router_2 = lab.namespace("router-2", router=True)
        self.destination = lab.namespace("destination")
        parts = (self.source, self.router_1, self.router_2, self.destination)
        for number, (left, right) in enumerate(pairwise(parts), start=1):
            lab.cable(left, f"r{number}", right, f"l{number}")
            self._address(left, f"r{number}", number, 1 if number > 1 else 2)
            self._address(right, f"l{number}", number, 2 if number > 1 else 1)
        self._routes()
        lab.wait_until_ready()
        self.matrix = lab.write("matrix.yaml", json.dumps(MATRIX))

    @staticmethod
    def _address(part: Namespace, device: str, net: int, last: int) -> None:
        part.ip(
            f"address add 10.93.{net}.{last}/24 dev {device}",
            f"address add fd93:{net}::{last}/64 dev {device} nodad",
        )

    def _routes(self) -> None:
        for part, v4, v6 in (
            (self.source, ROUTER_1, "fd93:1::1"),
            (self.router_1, ROUTER_2, "fd93:2::2"),
            (self.destination, "10.93.3.1", "fd93:3::1"),
        ):
            part.ip(f"route add default via {v4}", f"route add default via {v6}")
        self.router_2.ip(
            "route add 10.93.1.0/24 via 10.93.2.1", "route add fd93:1::/64 via fd93:2::1"
        )

    def inventory(self, destination: str, *, agent: bool, six: str = "") -> str:
        """An inventory of both ends; without an agent the destination is an address only."""
        vantage: object = {"command": self.destination.enter} if agent else "none"
        ends = {"source": [SOURCE], "destination": [destination]}
        if six:
            ends = {"source": [SOURCE, "fd93:1::2"], "destination": [destination, six]}
        hosts = {
            "source": {"addresses": ends["source"], "roles": ["src"],
                       "vantage": {"command": self.source.enter}},
            "destination": {"addresses": ends["destination"], "roles": ["dst"],
                            "vantage": vantage},
        }  # fmt: skip
        document = {"schema": "netprobe.inventory/1", "hosts": hosts}
        return str(self.lab.write("inventory.yaml", yaml.safe_dump(document)))


@pytest.fixture
def chain() -> Iterator[Chain]:
    """A chain of its own for every test."""
    with Lab() as lab:
        yield Chain(lab)


def forward(part: Namespace, rule: str) -> None:
    """One rule for what a router forwards."""
    wall(part, "forward", rule)


def wall(part: Namespace, hook: str, *rules: str) -> None:
    """A firewall of its own for one hook; loopback stays open."""
    lines = "\n".join((f"type filter hook {hook} priority 0;", *rules))
    part.nft(f"table inet {hook} {{ chain {hook} {{\n{lines}\n}}\n}}")


class Explained:
    """What explain said of a flow, and that a run says the same."""

    def __init__(
        self, chain: Chain, inventory: str, wire: str = f"tcp/{PORT}", timing: Timing = QUICK
    ) -> None:
        protocol = wire.partition("/")[0]
        words = ("-i", inventory, "-m", str(chain.matrix), "-o", "json", *timing)
        self.finished = netprobe("explain", "source", "destination", wire, *words)
        # A router that is just asking for a dead neighbour answers the next packet sooner.
        chain.router_2.run("ip", "neighbour", "flush", "all")
        run = netprobe("run", *words, "--protocol", protocol)
        self.flow: dict[str, Any] = self.finished.document["flows"][0]
        self.result: dict[str, Any] = self.flow["result"]
        assert self.finished.status == run.status, self.finished.stderr
        same = {key: self.result[key] for key in SAME} == {key: run.results[0][key] for key in SAME}
        assert same, json.dumps([self.flow, run.results[0], run.document["hosts"]], indent=1)
        # A router rations its errors, so that one of the two walks may miss one.
        hops = {self.result["last_hop"], run.results[0]["last_hop"]} - {None}
        assert len(hops) <= 1

    def step(self, name: str) -> dict[str, Any]:
        """One step by its name."""
        return next(step for step in self.flow["steps"] if step["name"] == name)

    def facts(self, name: str) -> dict[str, Any]:
        """The facts of one step."""
        found: dict[str, Any] = self.step(name)["facts"]
        return found

    def sights(self) -> list[str]:
        """What was seen at each of the six places."""
        return [place["seen"] for place in self.result["story"]["places"]]

    def words(self, name: str) -> str:
        """The sentences of one step."""
        return "; ".join(self.step(name)["words"])


def page(inventory: str, *words: str, destination: str = "destination") -> Finished:
    """The page for people."""
    return netprobe("explain", "source", destination, *words, "-i", inventory)


def hop_addresses(walk: dict[str, Any]) -> list[str]:
    """The hops that answered a walk."""
    return [hop["address"] for hop in walk["hops"] if hop["address"]]


def test_an_open_flow_is_followed_to_the_listener_and_back(chain: Chain) -> None:
    """Every step of a flow that passes, both families, with its facts."""
    seen = Explained(chain, chain.inventory(DESTINATION, agent=True, six="fd93:3::2"))

    assert seen.finished.status == 0
    assert [flow["address"] for flow in seen.finished.document["flows"]] == [
        DESTINATION,
        "fd93:3::2",
    ]
    assert seen.result["proof"] == "nonce"
    assert seen.facts("route")["source"] == SOURCE
    assert seen.facts("route")["gateway"] == ROUTER_1
    assert seen.facts("listener")["state"] == "ours"
    assert seen.facts("probe")["looks"][0]["answer"] == "nonce"
    assert seen.facts("arrival")["socket"] is True
    # Nobody asks a recorder about a flow that passes.
    assert seen.words("arrival") == "netprobe's listener on destination received the probe"
    assert seen.facts("way-back")["route"]["gateway"] == "10.93.3.1"
    assert seen.facts("control")["tcp/64999"]["failure"] == "refused"
    assert seen.facts("path-mtu")["path_mtu_bytes"] == 1500
    assert list(seen.facts("checks")) == ["arrivals"]
    for walk in ("flow", "icmp echo"):
        assert hop_addresses(seen.facts("hops")[walk]) == [ROUTER_1, ROUTER_2, DESTINATION]


@pytest.mark.parametrize("drops", [False, True])
def test_without_recorders_nothing_is_said_in_their_name(chain: Chain, drops: bool) -> None:
    """Both steps that they tell say that none ran."""
    if drops:
        forward(chain.router_2, f"tcp dport {PORT} drop")
    inventory = chain.inventory(DESTINATION, agent=True)
    finished = page(inventory, f"tcp/{PORT}", "--no-recorder", "-o", "json", *QUICK)
    steps = {one["name"]: one["words"] for one in finished.document["flows"][0]["steps"]}
    none_ran = "no packet recorder ran (--no-recorder)"

    assert finished.status == int(drops)
    assert steps["arrival"][1:] == [none_ran]
    assert (steps["story"] == [none_ran]) is drops


def test_a_drop_at_router_2_is_placed_between_the_hops(chain: Chain) -> None:
    """Silence, both routers answer the walk, and the destination's recorder saw nothing."""
    forward(chain.router_2, f"tcp dport {PORT} drop")
    seen = Explained(chain, chain.inventory(DESTINATION, agent=True))

    assert seen.finished.status == 1
    assert seen.result["where"] == ["path"]
    looks = seen.facts("probe")["looks"]
    assert looks
    assert all(look["failure"] == "no-answer" and look["left_host"] for look in looks)
    assert hop_addresses(seen.facts("hops")["flow"]) == [ROUTER_1, ROUTER_2]
    assert seen.facts("hops")["icmp echo"]["reached"] is True
    assert (seen.facts("arrival")["socket"], seen.facts("arrival")["interface"]) == (False, "no")
    assert {"story", "traceroute"} <= set(seen.facts("checks"))
    assert seen.facts("story") == seen.result["story"]
    assert seen.sights() == ["yes", "no", "no", "no", "no", "no"]
    left = seen.result["story"]["places"][0]
    assert (left["count"], left["interface"], left["ttl"]) == (2, "r1", 64)
    assert seen.step("silence")["words"] == [
        "2 looks left source, none reached destination; at 5 % loss the chance is 1 in 400"
    ]
    assert seen.flow["remarks"] == [
        f"tcp/{PORT} is lost between {ROUTER_2} (itself included) and {DESTINATION}, the next hop "
        "that icmp echo shows"
    ]


def test_a_reject_of_router_1_is_read_from_the_error_queue(chain: Chain) -> None:
    """The ICMP error's type, code, sender and TTL, and the hop that refuses."""
    forward(chain.router_1, f"udp dport {PORT} reject with icmpx admin-prohibited")
    seen = Explained(chain, chain.inventory(DESTINATION, agent=True), f"udp/{PORT}")

    assert seen.result["rejected_by"] == ROUTER_1
    icmp = seen.facts("probe")["looks"][0]["icmp"]
    assert icmp == {"type": 3, "code": 13, "word": "admin-prohibited", "offender": ROUTER_1,
                    "origin": "router", "ttl": 64}  # fmt: skip
    told = seen.result["story"]["errors"][0]
    assert (told["sender"], told["type"], told["code"], told["quoted"], told["left"]) == (
        ROUTER_1, 3, 13, f"udp {PORT}", None
    )  # fmt: skip
    assert f"ICMP 3/13 (admin-prohibited) from {ROUTER_1} about udp {PORT}" in seen.words("story")
    assert seen.facts("hops")["flow"]["refused"] is True
    assert hop_addresses(seen.facts("hops")["flow"]) == [ROUTER_1, ROUTER_1]
    assert ROUTER_1 in seen.flow["advice"]


@pytest.mark.parametrize(
    ("port", "packets"), [pytest.param(PORT, 6, marks=pytest.mark.full), (VXLAN, 9)]
)
def test_datagrams_are_counted_alike_in_every_step(chain: Chain, port: int, packets: int) -> None:
    """A flow that was asked again; nobody answers VXLAN, so it is silent in words of its own."""
    forward(chain.router_2, f"udp dport {port} drop")
    inventory = chain.inventory(DESTINATION, agent=True)
    finished = page(inventory, f"udp/{port}", "-m", str(chain.matrix), "-o", "json")
    chain.router_2.run("ip", "neighbour", "flush", "all")
    text = page(inventory, f"udp/{port}", "-m", str(chain.matrix)).stdout
    (flow,) = finished.document["flows"]
    steps = {step["name"]: step for step in flow["steps"]}

    left = flow["result"]["story"]["places"][0]
    assert flow["result"]["because"].startswith(f"{packets} datagrams")
    assert (flow["result"]["attempts"], left["count"]) == (packets // 3, packets)
    assert steps["silence"]["facts"]["looks"] == packets
    assert f"{packets} looks left source, none reached destination" in text
    assert f"the chance is 1 in {20**packets:,}" in text
    assert f"yes     left source, {packets} times" in text


def test_a_forged_reset_of_router_1_is_unmasked(chain: Chain) -> None:
    """The destination's recorder never saw it leave, and the hops show where it was made."""
    forward(chain.router_1, f"tcp dport {PORT} reject with tcp reset")
    seen = Explained(chain, chain.inventory(DESTINATION, agent=True))

    assert (seen.result["verdict"], seen.result["where"]) == ("blocked", ["path"])
    assert seen.facts("reset")["forged"] is True
    assert "destination's recorder never saw it leave" in seen.words("reset")
    (told,) = seen.result["story"]["errors"]
    assert (told["type"], told["left"], told["not_left"], told["ttl"]) == (
        None, None, "destination", 64
    )  # fmt: skip
    assert f"reset from {DESTINATION} of tcp {PORT}: " in seen.words("story")
    assert "recorder never saw it leave: it was made on the way" in seen.words("story")
    assert seen.step("hops")["status"] == "doubt"
    assert f"stands at {ROUTER_1} or right behind it" in seen.flow["remarks"][0]


def test_a_dropped_answer_is_seen_to_leave_and_not_to_come(chain: Chain) -> None:
    """The request arrived at the listener; both recorders place the loss on the way back."""
    forward(chain.router_1, f"tcp sport {PORT} drop")
    seen = Explained(chain, chain.inventory(DESTINATION, agent=True))

    assert seen.result["where"] == ["return-path"]
    assert seen.facts("arrival")["socket"] is True
    back = seen.facts("way-back")
    assert (back["answer_left"], back["answer_arrived"]) == ("yes", "no")
    assert seen.step("way-back")["status"] == "bad"
    assert seen.step("arrival")["status"] == "ok"
    assert seen.sights() == ["yes", "yes", "yes", "yes", "no", "no"]
    assert "answers left destination, none reached source; at 5 % loss" in seen.words("silence")


def test_the_destinations_own_drop_is_seen_on_the_wire_only(chain: Chain) -> None:
    """The recorder there saw the requests, the listener behind the firewall did not."""
    wall(chain.destination, "input", 'iifname "lo" accept', f"tcp dport {PORT} drop")
    seen = Explained(chain, chain.inventory(DESTINATION, agent=True))

    assert seen.result["where"] == ["destination"]
    assert (seen.facts("arrival")["socket"], seen.facts("arrival")["interface"]) == (False, "yes")
    assert seen.step("arrival")["status"] == "bad"


def test_a_missing_route_back_is_the_destinations_own(chain: Chain) -> None:
    """Its kernel says that it has no way to the source."""
    chain.destination.ip(f"route add blackhole {SOURCE}/32")
    seen = Explained(chain, chain.inventory(DESTINATION, agent=True))

    assert seen.result["where"] == ["return-path"]
    assert seen.facts("way-back")["route"]["failure"] == "invalid-route"
    assert seen.step("way-back")["status"] == "bad"


def test_a_live_service_is_named_and_probed_as_it_is(chain: Chain) -> None:
    """Who holds the port, and that ports which nobody uses do not open too."""
    serve = ("-m", "http.server", str(PORT), "--bind", DESTINATION)
    chain.destination.spawn(sys.executable, *serve, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)  # fmt: skip
    chain.destination.wait_until_listening(f"tcp {DESTINATION}:{PORT}")
    seen = Explained(chain, chain.inventory(DESTINATION, agent=True))

    assert (seen.result["verdict"], seen.result["proof"]) == ("pass", "handshake")
    assert seen.facts("listener")["state"] == "live"
    assert "python" in seen.facts("listener")["owner"]
    assert "which nobody uses: refused by a reset" in seen.words("control")
    assert "destination's recorder saw its answers leave" in seen.words("way-back")
    assert seen.facts("control")["false_open"] is False


@pytest.mark.needs("haproxy")
def test_a_port_that_is_taken_is_shown_as_the_fault(chain: Chain) -> None:
    """A program that the matrix does not list holds it before the installation."""
    config = chain.lab.write(
        "squatter.cfg",
        "defaults\n  mode tcp\n  timeout connect 9s\n  timeout client 9s\n  timeout server 9s\n"
        f"frontend f\n  bind {DESTINATION}:{PORT}\n",
    )
    chain.destination.spawn("haproxy", "-db", "-f", str(config), stderr=subprocess.DEVNULL)
    chain.destination.wait_until_listening(f"tcp {DESTINATION}:{PORT}")
    seen = Explained(chain, chain.inventory(DESTINATION, agent=True))

    assert (seen.result["verdict"], seen.result["reason"]) == ("blocked", "port-taken")
    assert seen.step("listener")["status"] == "bad"
    assert "is taken by haproxy" in seen.words("listener")


def test_an_answer_for_everybody_is_shown_as_a_false_open(chain: Chain) -> None:
    """A router that takes every connection itself: the control ports open too."""
    chain.router_1.nft(
        "table ip nat { chain pre { type nat hook prerouting priority -100;\n"
        f"ip daddr {DESTINATION} tcp dport 1-65535 redirect to :{PORT}\n}}\n}}\n"
    )
    serve = ("-m", "http.server", str(PORT))
    chain.router_1.spawn(sys.executable, *serve, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)  # fmt: skip
    chain.router_1.wait_until_listening(f"tcp 0.0.0.0:{PORT}")
    seen = Explained(chain, chain.inventory(DESTINATION, agent=False))

    assert (seen.result["verdict"], seen.result["reason"]) == ("inconclusive", "false-open")
    assert seen.facts("control")["false_open"] is True
    assert seen.step("control")["status"] == "doubt"
    assert "they accept connections too" in seen.words("control")


@pytest.mark.full
def test_a_host_that_is_down_is_reported_by_the_last_router(chain: Chain) -> None:
    """Nobody answers for the address, and the steps that need an agent there say so."""
    seen = Explained(chain, chain.inventory("10.93.3.9", agent=False), timing=USUAL)

    assert (seen.result["reason"], seen.result["where"]) == ("host-down", ["host", "path"])
    icmp = seen.facts("probe")["looks"][0]["icmp"]
    assert (icmp["word"], icmp["offender"]) == ("host-unreach", ROUTER_2)
    assert not [said for said in seen.flow["remarks"] if "large packets" in said]
    for name in ("listener", "arrival", "way-back"):
        assert seen.step(name)["status"] == "not-possible"
        assert "no agent" in seen.words(name)


def test_a_narrow_link_is_shown_beside_a_flow_that_passes(chain: Chain) -> None:
    """The path's MTU never decides the flow, and its router and limit are named."""
    for part, device in ((chain.router_1, "r2"), (chain.router_2, "l2")):
        part.ip(f"link set {device} mtu 1400")
    seen = Explained(chain, chain.inventory(DESTINATION, agent=True))

    assert seen.finished.status == 0
    facts = seen.facts("path-mtu")
    assert (facts["path_mtu_bytes"], facts["limited_by"], facts["limit"]) == (1400, ROUTER_1, 1400)
    assert seen.step("path-mtu")["status"] == "bad"


def test_an_address_outside_the_inventory_is_explained_without_an_agent(chain: Chain) -> None:
    """The page for people says what could not be looked at; a refusal is weighed by its TTL."""
    finished = page(chain.inventory(DESTINATION, agent=True), "tcp/9", destination=ROUTER_2)

    assert finished.status == 0, finished.stderr
    assert f"PASS: tcp 9 from source to {ROUTER_2}" in finished.stdout
    assert "it is the destination's own" in finished.stdout
    assert f"{ROUTER_2} is not in the inventory" in finished.stdout


def test_a_name_that_does_not_resolve_has_its_own_step(chain: Chain) -> None:
    """The source's resolver speaks; nothing is sent."""
    finished = page(
        chain.inventory(DESTINATION, agent=True), "tcp/9", "-o", "json", destination="x.invalid"
    )
    flow = finished.document["flows"][0]

    assert (finished.status, flow["result"]["reason"]) == (1, "name-not-resolved")
    assert {step["name"]: step["status"] for step in flow["steps"]}["name"] == "bad"


def test_a_mistyped_host_is_a_wrong_request(chain: Chain) -> None:
    """Exit 2 and the nearest name, before anything is started."""
    finished = page(chain.inventory(DESTINATION, agent=True), "tcp/9", destination="destinaton")

    assert finished.status == 2
    assert "did you mean destination?" in finished.stderr
