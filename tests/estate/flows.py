"""Explained flows: every step of ``explain`` in every way that it can go, from prepared looks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec.structs import replace

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.host_messages import Resolved, Routed
from netprobe.agent.wire.parts import IcmpFact, OutcomeKind, WalkHop
from netprobe.explain.explain import tell_story
from netprobe.explain.extra_checks import Further
from netprobe.explain.view import View
from netprobe.judge.verdict import Rules, judge
from netprobe.model.evidence import (
    CheckConclusion,
    Evidence,
    Icmp,
    Listener,
    Outcome,
    PathMtu,
    RefusalMaker,
    ResetOrigin,
    ServiceFinding,
    Trace,
    Witness,
)
from netprobe.model.explanation import Explanation
from netprobe.model.inventory import Vantage
from netprobe.model.notes import (
    BundleNote,
    ConclusionNote,
    GreetingNote,
    HigherNote,
    InterceptionNote,
    LimitNote,
    LookNote,
    MakerNote,
    NamesNote,
    NextHopNote,
    ResetNote,
    ScoutNote,
    ServiceNote,
    SilenceNote,
    SilentHopNote,
    SizeNote,
    SlowStartNote,
    StoryNote,
    WalkNote,
)
from netprobe.model.plan import PATH_MTU, Block, Flow
from netprobe.model.result import HostFacts, HostReport
from netprobe.model.story import Story, StoryError, StoryPlace, TrailEntry, TrailStatus
from netprobe.model.struct_json import Nanoseconds
from tests.plan.conftest import host, requirement
from tests.probe.fakes import kind

A = host("a", "node", addresses=("10.0.0.1",))
B = host("b", "node", addresses=("10.0.2.2",))
FAR = host("far", "node", addresses=("10.0.2.9",), vantage=Vantage("none"))
NAMED = host("api", "node", addresses=("api.example",), vantage=Vantage("none"))
ROUTER = "10.0.0.254"
REPORTS = {
    "a": HostReport(name="a", state="agent", python="3.11.7", user="root", privileged=True,
                    facts=HostFacts(kernel="6.1.0", net_raw=True)),
    "b": HostReport(name="b", state="agent", python="3.6.8", user="core", cost=("no recorder",)),
}  # fmt: skip
OURS = Listener("ours")
ROUTE = Routed(1, "10.0.0.1", "eth0", 1500, 1500, gateway=ROUTER, failure=None)
BACK = Routed(2, "10.0.2.2", "eth1", 1450, 1500, gateway=None, failure=None)
FULL_WALK = Walked(3, [WalkHop(1, ROUTER), WalkHop(2, "10.0.2.2")], True, None, None)
LOST_WALK = Walked(3, [WalkHop(1, ROUTER), WalkHop(2, None), WalkHop(3, None)], False, None, None)
LONG_WALK = Walked(
    4, [WalkHop(1, ROUTER), WalkHop(2, "10.0.1.254"), WalkHop(3, "10.0.2.2")], True, None, None
)
REFUSED_WALK = Walked(
    5, [WalkHop(1, ROUTER), WalkHop(2, ROUTER)], False, None, IcmpFact(3, 13, ROUTER, 64)
)
ECHO = Outcome("answer", None, answer="echo", ttl=62, rtt_ms=0.3)
RESET = Outcome("connect", "refused", rtt_ms=0.2)
SILENT = Outcome("connect", "no-answer", left_host=True, attempts=2, packets=6)
OPEN = Outcome("answer", None, answer="nonce", rtt_ms=0.4)
ALIVE = {"icmp": ECHO, "tcp/64999": RESET}
FURTHER = Further(ROUTE, BACK, ALIVE, FULL_WALK, "icmp echo", FULL_WALK)
YES = StoryPlace("yes", 3, Nanoseconds(1_763_800_000_123_456_789), "eth0", 62)
ONCE = StoryPlace("yes", 1)
NO = StoryPlace("no")


def note(name: str, what: Any = None, status: TrailStatus = "ok") -> TrailEntry:
    """What a check leaves in the trail."""
    return TrailEntry(name, status, what, elapsed_ms=12)


def make_block(protocol: str = "tcp", destination: Any = B, **changes: Any) -> Block:
    """The one flow that is explained."""
    extra = {key: changes.pop(key) for key in ("probe", "expect", "optional") if key in changes}
    wanted = requirement("etcd", "node", "node", **extra)
    ports = ((6443, 6443),) if protocol in ("tcp", "udp") else ()
    ends = ((destination, destination.addresses[0]),)
    return Block(0, "m", wanted, protocol, ports, 4, (A,), ends, **changes)


def look(
    block: Block, what: OutcomeKind, icmp: Icmp | None = None, mode: str = "nonce", **row: Any
) -> TrailEntry:
    """A look of the flow's own probes: what was sent, and what came back."""
    template, rtt_us, looks = row.get("template", 0), row.get("rtt_us"), row.get("looks", 1)
    sent = LookNote(block.protocol, mode, template, what, rtt_us, looks, icmp)
    return TrailEntry("probe", note=sent)


def view(outcome: Outcome | None, block: Block | None = None, **known: Any) -> View:
    """Everything known of the flow; ``known`` has facts of the evidence, and fields of the view."""
    block = block or make_block()
    end, address = block.destinations[0]
    names = ("further", "reports", "mtu", "recorded")
    given = {name: known.pop(name) for name in names if name in known}
    rules = Rules(live=known.pop("live", False))
    evidence = Evidence(
        **{
            "flow": Flow(block, A, end, address), "address": address.text, "ports": block.ports,
            "outcome": outcome, **known,
        }
    )  # fmt: skip
    result = judge(evidence, (0, 0, 0), rules)[0]
    return View(evidence, result, **{"further": FURTHER, "reports": REPORTS, **given})


def path_mtu(path: int | None, **more: Any) -> tuple[Evidence, Any]:
    """What was measured of the path beside the flow."""
    measured = PathMtu(path, 1450, "nonce", "echo requests", **more)
    block = make_block("icmp", probe=PATH_MTU)
    seen = view(Outcome(PATH_MTU, None), block, mtu=None)
    evidence = replace(seen.evidence, mtu=measured)
    return evidence, judge(evidence, (1, 0, 0), Rules())[0]


def error(**changes: Any) -> StoryError:
    """A reset in the destination's name."""
    return StoryError(**{"sender": "10.0.2.2", "type": None, "code": None, "ttl": 62, "count": 1,
                         "quoted": "tcp 6443", **changes})  # fmt: skip


def list_views() -> Iterator[View]:
    """Every case, one after the other; a new one goes to the end."""
    yield from _passing()
    yield from _silent()
    yield from _refused()
    yield from _opened()
    yield from _without_agents()
    yield from _holders()
    yield from _checked()


def _passing() -> Iterator[View]:
    tcp, udp, icmp = make_block(), make_block("udp"), make_block("icmp")
    told = kind(op="answer", answer="nonce")
    yield view(OPEN, listener=OURS, trail=(look(tcp, told, rtt_us=400),), mtu=path_mtu(1450))
    again = (look(udp, kind(op="answer", failure="no-answer", packets=3), looks=2),
             look(udp, told._replace(ttl=62), rtt_us=1234))  # fmt: skip
    yield view(OPEN, udp, listener=OURS, trail=again, witness=Witness(socket=True))
    yield view(ECHO, icmp, trail=(look(icmp, kind(op="answer", answer="echo"), mode="echo"),))
    dns = make_block("udp", probe="dns")
    service = look(dns, kind(op="answer", answer="bytes"), mode="bytes", template=3, rtt_us=900)
    yield view(Outcome("answer", None, answer="service", said="NOERROR"), dns, trail=(service,))
    yield view(OPEN, listener=OURS, witness=Witness(seen_from="10.9.9.9"),
               story=Story(source_out=YES, destination_in=ONCE, socket=ONCE))  # fmt: skip
    nearer = replace(FURTHER, other_walk=LONG_WALK)
    yield view(OPEN, listener=OURS, further=nearer)


def _silent() -> Iterator[View]:
    tcp = make_block()
    sent = look(tcp, kind(failure="no-answer", left=True, packets=6), mode="connect", looks=2)
    silence = note("silence", SilenceNote(16, 0.05))
    walked = note("traceroute", WalkNote(6443, LOST_WALK))
    lost = replace(FURTHER, flow_walk=LOST_WALK, other_walk=LONG_WALK)
    base: dict[str, Any] = {
        "listener": OURS, "witness": Witness(), "further": lost, "trace": Trace(ROUTER, 1),
        "trail": (sent, silence, walked),
    }  # fmt: skip
    errors = (
        error(type=3, code=13, sender=ROUTER, count=2),
        error(left="b"), error(not_left="b"), error(left="a"), error(arrived=False),
    )  # fmt: skip
    for story in (
        None,
        Story(source_out=YES, destination_in=NO),
        Story(source_out=YES, destination_in=YES, errors=errors),
        Story(source_out=YES, destination_in=YES, destination_out=YES, source_in=NO),
        Story(source_out=NO),
    ):
        yield view(SILENT, story=story, mtu=path_mtu(1400, limited_by=ROUTER, limit=1400), **base)
    yield view(SILENT, recorded=False, mtu=path_mtu(1400), **base)
    yield view(SILENT, mtu=path_mtu(None), **{**base, "witness": None})
    failing = Witness(socket=True, reply_failure="not-permitted")
    yield view(SILENT, story=Story(destination_out=NO), **{**base, "witness": failing})
    one_way = make_block("ipproto/4")
    arrived = (look(one_way, kind(op="send"), mode="send"), note("one-way", SilenceNote(9, 0.1)))
    yield view(Outcome("send", None), one_way, listener=OURS, witness=Witness(), trail=arrived)
    # Nothing left the source.
    stuck = look(tcp, kind(failure="no-answer", left=False, packets=2), mode="connect")
    yield view(replace(SILENT, left_host=False), listener=OURS, witness=Witness(), trail=(stuck,),
               further=replace(lost, route=ROUTE._replace(failure="network-unreachable", dev=None),
                               back=None, controls={}, other_walk=None))  # fmt: skip


def _refused() -> Iterator[View]:
    tcp = make_block()
    sent = look(tcp, kind(failure="refused", elapsed_ms=0), mode="connect")
    ttl: dict[str, Any] = {"answer_ttl": 62, "min_ttl": 63, "refused_again": True}
    cases: tuple[tuple[bool | None, bool | None, dict[str, Any]], ...] = (
        (None, None, {}),
        (True, None, ttl),
        (False, None, {**ttl, "refused_again": False}),
        (None, None, {**ttl, "higher": HigherNote(65, True)}),
        (True, True, {"min_ttl": 64, "refused_again": True, "dies_at_first_hop": True}),
        (None, True, {"min_ttl": 64, "refused_again": True, "dies_at_first_hop": False}),
        (False, False, ttl),
        (None, None, {"refused_by": ROUTER, "refusal_ttl": 64}),
    )
    for forged, full, facts in cases:
        trail = (sent, note("forged-resets", ResetNote(**facts)))
        whose = ResetOrigin(forged, full)
        yield view(RESET, listener=OURS, witness=Witness(), trail=trail, reset=whose)
    walked = note("refusal-maker", MakerNote(own=False, translated=True, distance=3), "doubt")
    doubted = (sent, note("forged-resets", ResetNote(**ttl)), walked)
    maker = RefusalMaker(own=False, doubt="it answers on other ports")
    yield view(RESET, trail=doubted, reset=ResetOrigin(False), maker=maker)
    left = replace(RESET, left_host=False)
    yield view(left, listener=OURS, trail=(sent, note("forged-resets", ResetNote(**ttl))),
               story=Story(source_out=NO), reset=ResetOrigin(forged=True))  # fmt: skip
    for one in (error(left="b"), error(not_left="b"), error(left="a")):
        story = Story(source_out=YES, errors=(one,))
        yield view(RESET, listener=OURS, trail=(sent,), story=story)
    yield view(RESET, make_block(expect="denied"), trail=(sent,))
    for origin, code in (("router", 13), ("destination", 3), ("source", 1)):
        icmp = Icmp(3, code, ROUTER, origin, 64)  # type: ignore[arg-type]
        fact = kind(failure="host-unreachable", icmp=IcmpFact(3, code, ROUTER, 64), elapsed_ms=800)
        answer = look(tcp, fact, icmp, mode="connect")
        refused = Outcome("connect", "host-unreachable", icmp, elapsed_ms=800)
        yield view(refused, listener=OURS, trail=(answer,),
                   further=replace(FURTHER, flow_walk=REFUSED_WALK,
                                   controls={"icmp": refused, "udp/64999": SILENT}))  # fmt: skip


def _opened() -> Iterator[View]:
    tcp = make_block()
    sent = look(tcp, kind(op="answer", answer="silent", ttl=64), rtt_us=100)
    opened = Outcome("answer", None, answer="silent")
    facts: dict[str, Any] = {"control_ports": [64999, 64998], "control_opened": True}
    nearer = CheckConclusion("intercepted", "something nearer opens it")
    near = replace(FURTHER, flow_walk=Walked(1, [WalkHop(1, "10.0.2.2")], True, None, None))
    noted = note("intercepted", InterceptionNote(**facts), "bad")
    yield view(opened, listener=OURS, trail=(sent, noted), conclusion=nearer, further=near)
    facts |= {"control_opened": False, "ttl": 1, "opened": True}
    yield view(opened, listener=OURS, trail=(sent, note("intercepted", InterceptionNote(**facts))),
               further=replace(near, controls={"icmp": ECHO, "tcp/64999": OPEN}))  # fmt: skip
    service = ServiceFinding("tls", "TLS where plaintext is expected")
    told = note("services", ServiceNote("tls", "TLS where plaintext is expected"))
    live = Listener("live", "etcd (pid 7) on 0.0.0.0")
    yield view(Outcome("answer", None, answer="unasked"), make_block(probe="http"), listener=live,
               service=service, trail=(told,))  # fmt: skip


def _without_agents() -> Iterator[View]:
    failed = HostReport(
        name="a", state="failed", words="a: ssh: connect to host 10.0.0.1 port 22: timed out"
    )
    unasked = Further()
    yield view(None, untested=("no-vantage", "a: no way onto it"), further=unasked,
               reports={"a": failed, "b": REPORTS["b"]})  # fmt: skip
    lost = replace(REPORTS["b"], state="lost", words="b: it said nothing for 30 s")
    yield view(SILENT, listener=Listener("lost"), reports={**REPORTS, "b": lost})
    far = make_block("udp", FAR)
    sent = look(far, kind(op="send"), mode="send")
    beside = replace(FURTHER, back=None, other="udp/64999", other_walk=LOST_WALK)
    silence = note("silence", SilenceNote(3, 0.5))
    yield view(Outcome("answer", "no-answer"), far, trail=(sent, silence), further=beside)
    named = make_block(destination=NAMED)
    answers = Resolved(1, ["10.0.2.2", "10.0.2.3"], None, "")
    names = TrailEntry("name", "ok", answers)
    yield view(SILENT, named, address="10.0.2.2", trail=(names,))
    nothing = answers._replace(addresses=[], failure="not-found", words="Name or service not known")
    unknown = TrailEntry("name", "bad", nothing)
    unresolved = Outcome("resolve", "not-found", said="Name or service not known")
    yield view(unresolved, named, trail=(unknown,), further=unasked)
    yield view(None, named, untested=("agent-lost", "a was lost"), further=unasked)
    alone = replace(make_block(), sources=(A,), destinations=((A, A.addresses[0]),))
    yield view(OPEN, alone, listener=OURS)


def _holders() -> Iterator[View]:
    for listener in (
        Listener("ours", nat=True), Listener("ours", note="it could not be dialled"),
        Listener("loopback", "etcd (pid 7) on 127.0.0.1"), Listener("closed"),
        Listener("closed", note="port 6443 is reserved"), Listener("live", "sshd (pid 8)"),
        Listener("bound", note="no listener could be opened: address-in-use"), Listener("unknown"),
    ):  # fmt: skip
        yield view(RESET, listener=listener, control_answered=True)
    yield view(None, untested=("no-source-address", "a does not have it"))
    yield view(RESET, make_block(expect="denied"), listener=Listener("unknown"))


def _checked() -> Iterator[View]:
    """Notes of all checks, which the last step prints."""
    trail = (
        note("names", NamesNote("10.1.1.20", {"api.example": ["10.0.2.2"]})),
        note("next-hop", NextHopNote("eth0", ROUTER, "00:00:5e:00:01:01")),
        note("next-hop", NextHopNote("eth0", None, "failed"), "bad"),
        note("route", SilentHopNote(ROUTER)),
        note("greeting", GreetingNote("220 mail.example ESMTP")),
        note("bundle", BundleNote(2), "bad"),
        note("slow-start", SlowStartNote(16, "6443"), "bad"),
        note("machine", ConclusionNote("other-machine"), "bad"),
        note("dead-host", ScoutNote("tcp", 22)),
        note("dead-host", ConclusionNote("host-down")),
        note("rate-limit", LimitNote(True)),
        note("path-width", SizeNote(1400, 1450), "bad"),
        note("path-mtu", SizeNote(1400, 1450)),
        note("egress", status="bad"),
        note("story", StoryNote(True)),
        note("traceroute", WalkNote(6443, FULL_WALK)),
        TrailEntry("arrivals", elapsed_ms=3),
        TrailEntry("late-refusals", elapsed_ms=4),
        TrailEntry("return-path", elapsed_ms=5),
    )
    yield view(SILENT, listener=OURS, trail=trail, live=True)
    yield view(SILENT, listener=OURS, trail=trail[6:7])
    yield view(SILENT, listener=OURS, trail=trail[7:8])
    # Data that a router refused, which only the recorder saw.
    lost = Outcome("answer", "host-unreachable", attempts=2)
    yield view(lost, listener=OURS, witness=Witness(), refusal=Icmp(3, 13, ROUTER, "router", 61))


@cache
def make_explanation() -> Explanation:
    """All of them as addresses of one flow."""
    stories = tuple(tell_story(one) for one in list_views())
    hosts = tuple(REPORTS.values())
    notes = ("also required by m: other",)
    started = "2026-11-20T10:00:00Z"
    return Explanation(started, 4.2, "a", "b", "tcp", 6443, stories, hosts, notes)
