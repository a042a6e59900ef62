"""A run of a made-up estate that has one of everything: each row of every verdict table, judged.

The evidence is made by hand and the judge does the rest, so that reports show all that a run can
say. Nothing of it depends on the machine or the day.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec.structs import replace

from netprobe.judge.accepted import Acceptances
from netprobe.judge.clocks_apart import judge_clocks
from netprobe.judge.findings import fold
from netprobe.judge.name_rows import ROWS as NAME_ROWS
from netprobe.judge.of_hosts import judge_resolvers
from netprobe.judge.rows import ALLOWED, DENIED, VerdictRow
from netprobe.judge.verdict import Rules, judge, judge_row
from netprobe.model.evidence import (
    CheckConclusion,
    Evidence,
    Icmp,
    Listener,
    Outcome,
    PathMtu,
    RefusalMaker,
    ServerClock,
    ServiceFinding,
    Trace,
    Witness,
)
from netprobe.model.icmp import ICMP_ERRORS
from netprobe.model.inventory import Host
from netprobe.model.matrix import Expect, Waiver
from netprobe.model.names import NameFacts, NameTold, ResolverFacts, ServerTold
from netprobe.model.plan import (
    BALANCER,
    CLOCK,
    MULTICAST,
    OVERLAY,
    PATH_MTU,
    QUALITY,
    RESOLVER,
    SEGMENT,
    AskedName,
    Block,
    Flow,
    HostFlow,
    PlannedRequirement,
    Skipped,
)  # fmt: skip
from netprobe.model.result import HostFacts, HostReport, Result
from netprobe.model.run import RunInfo
from netprobe.model.story import Story, StoryError, StoryPlace
from netprobe.model.struct_json import Nanoseconds
from netprobe.report.record.collector import Report, collect
from pages.combinations import BALANCERS, MULTICASTS, OVERLAYS, QUALITIES, SEGMENTS
from tests.judge.test_accepted import ENTRY, TODAY
from tests.plan.conftest import host, requirement
from tests.report.samples import INFO
from tests.report.test_coverage import ABOUT, GROUP, UNSEEN

MATRIX = "estate"
SOURCES = tuple(
    host(f"worker-{at}", "node", addresses=(f"10.0.{at}.10",), zone=zone)
    for at, zone in enumerate("aab", 1)
)
ENDS = tuple(
    host(f"db-{at}", "database", addresses=(f"10.1.{at}.20",), zone=zone)
    for at, zone in enumerate("bcc", 1)
)
ROUTER = "10.9.0.1"
SEEN = StoryPlace("yes", 3, Nanoseconds(1_763_800_000_123_456_789), "eth0", 62)
NEVER = StoryPlace("no")
# What recorders saw, by turns: nothing, the request at the source only, all but the answer.
STORIES = (
    Story(),
    Story(source_out=SEEN, destination_in=NEVER,
          errors=(StoryError(ROUTER, 3, 13, 64, 2, "tcp 443", left=None, arrived=True),)),
    Story(source_out=SEEN, destination_in=SEEN, destination_out=SEEN, source_in=NEVER),
)  # fmt: skip
CLOCKS = (
    ServerClock(16, good=False),
    ServerClock(2, good=True, distance_ms=4.0, offset_ms=90_000.0, error_ms=12.0),
    ServerClock(0, good=False, kiss="RATE"),
)


def make_block(
    id_: str, protocol: str, place: int, expect: Expect = "allowed", **changes: Any
) -> Block:
    """One flow of the estate as the plan has it; its place chooses the hosts and the port."""
    source, end = SOURCES[place % len(SOURCES)], ENDS[place // 3 % len(ENDS)]
    extra = {
        name: changes.pop(name)
        for name in ("probe", "optional", "quality", "persistence")
        if name in changes
    }
    wanted = requirement(id_, "node", "database", expect=expect, **extra)
    ports = ((2000 + place, 2000 + place),) if protocol in ("tcp", "udp") else ()
    ends = ((end, end.addresses[0]),)
    return Block(place, MATRIX, wanted, protocol, ports, 4, (source,), ends, **changes)


def make_evidence(block: Block, **facts: Any) -> Evidence:
    """What was seen of a block's only flow."""
    end, address = block.destinations[0]
    flow = Flow(block, block.sources[0], end, address)
    return Evidence(flow=flow, address=address.text, ports=block.ports, **facts)


def _facts_of(place: int) -> dict[str, Any]:
    """Something for every word of the tables' sentences."""
    return {
        "listener": Listener("live", "sshd (pid 812) on 0.0.0.0", note="it could not be dialled"),
        "witness": Witness(next_hop="10.1.0.1", filtered_at="eth1", way_out="eth0"),
        "story": STORIES[place % len(STORIES)],
        "trace": Trace(ROUTER, 3) if place % 2 else None,
        "conclusion": CheckConclusion("host-down", "db-9", next_hop="10.0.0.254"),
        "service": ServiceFinding("tls", "TLS where plaintext is expected"),
        "host_down": "db-9",
        "given_up_by": ROUTER,
        "limited": place % 7 == 0,
    }


# Rows of flows that do not count, or that are there before the installation.
_DRESS: dict[int, dict[str, Any]] = {
    4: {"optional": True}, 8: {"existing": True},
    9: {"waiver": Waiver("r", "opened on Monday", "2027-01-31")},
}  # fmt: skip


def _judge_tables() -> Iterator[Result]:
    tables: tuple[tuple[Expect, tuple[VerdictRow, ...]], ...] = (
        ("allowed", ALLOWED), ("denied", DENIED),
    )  # fmt: skip
    rows = [(expect, row) for expect, table in tables for row in table]
    for place, (expect, row) in enumerate(rows):
        symptoms, protocols, *_ = row.patterns
        word = "answer" if symptoms[0] == "*" else symptoms[0]
        protocol = {"*": "tcp", "ipproto": "ipproto/4"}.get(protocols[0], protocols[0])
        dressed = _DRESS.get(place % 11, {})
        block = make_block(f"{word}-{place}", protocol, place, expect, **dressed)
        facts = _facts_of(place)
        if symptoms[0] == "refusal-unproved":
            facts["maker"] = RefusalMaker(own=False, doubt="it answers on other ports")
        evidence = make_evidence(block, outcome=_outcome_of(row, place), **facts)
        yield _judge_row(row, evidence)


def _outcome_of(row: VerdictRow, place: int) -> Outcome:
    origin: Any = ("router", "destination", "source")[place % 3]
    icmp = Icmp(3, (13, 1, 3)[place % 3], ROUTER, origin, 61)
    return Outcome(
        "connect",
        None if row.verdict == "pass" else "host-unreachable",
        icmp if "{icmp}" in row.reason + row.because else None,
        answered_by="proxy.example:3128", said="HTTP/1.1 403 Forbidden", refusal=403,
        ttl=61, attempts=2, packets=6, rtt_ms=1.234, elapsed_ms=800,
    )  # fmt: skip


def _judge_row(row: VerdictRow, evidence: Evidence) -> Result:
    """What a row makes of an evidence, with all later steps of the judge."""
    order = (evidence.flow.block.index, 0, 0)
    base = judge(replace(evidence, outcome=None), order, Rules())[0]
    assert evidence.outcome is not None
    return judge_row(row, base, evidence, evidence.outcome, Rules())


def _judge_rest(first: int) -> Iterator[Result]:
    """What stands beside the tables: path MTUs, clocks, names, and what nobody could look at."""
    for place, evidence in enumerate(_rest_of_evidence(first), first):
        yield from judge(evidence, (place, 0, 0), Rules(live=(place - first) % 2 == 0))


def _rest_of_evidence(place: int) -> Iterator[Evidence]:
    for size, router in ((None, None), (1450, None), (1400, ROUTER), (1400, None)):
        mtu = PathMtu(size, 1450, "nonce", "echo requests", router, 1400 if router else None)
        block = make_block("path-mtu", "icmp", place, probe=PATH_MTU)
        yield make_evidence(block, outcome=Outcome(PATH_MTU, None), mtu=mtu)
        place += 1
    for back in (False, True):
        mtu = PathMtu(1400, 1450, "nonce", "TCP segments", lost_back=back)
        answer = Outcome("answer", None, answer="nonce", rtt_ms=0.4)
        yield make_evidence(make_block("segments", "tcp", place), outcome=answer, mtu=mtu)
        place += 1
    for clock in CLOCKS:
        answer = Outcome("answer", None, answer="service", said="NTP answer", clock=clock)
        block = make_block("ntp", "udp", place, probe="ntp")
        yield make_evidence(block, outcome=answer)
        place += 1
    # Twice each: before the installation, and with --live.
    for kind in NAME_ROWS:
        for _ in range(2):
            answer = Outcome("answer", None, answer="service", said="NOERROR")
            block = make_block("dns", "udp", place, probe="dns")
            yield make_evidence(block, outcome=answer, names=_names_of(kind))
            place += 1
    for family, type_, code in ICMP_ERRORS:
        error = Icmp(type_, code, {4: ROUTER, 6: "fd00:9::1"}[family], "router", 61)
        refused = Outcome("connect", "host-unreachable", error, elapsed_ms=100)
        yield make_evidence(make_block("icmp-error", "tcp", place), outcome=refused)
        place += 1
    existing = make_block("existing", "tcp", place, existing=True)
    yield make_evidence(existing, outcome=Outcome("connect", "refused"))
    place += 1
    for reason, words in (
        ("no-python", "no Python 3.6 or newer; install python3"),
        ("agent-lost", "the agent of worker-1 was lost"),
        ("holder-changed", "another process holds the port each time"),
        (
            "row-stopped",
            "UDP port 8472 itself is stopped on the way to worker-1",
        ),
    ):
        yield make_evidence(
            make_block(reason, "tcp", place), outcome=None, untested=(reason, words)
        )
        place += 1
    on_loopback = Listener("ours", beside="etcd (pid 7) on 127.0.0.1", beside_loopback=True)
    answer = Outcome("answer", None, answer="nonce", rtt_ms=0.4)
    held = make_block("loopback", "tcp", place)
    yield make_evidence(held, outcome=answer, listener=on_loopback, witness=Witness(socket=True))
    yield from _rehearsed_evidence(place + 1)


def _rehearsed_evidence(first: int) -> Iterator[Evidence]:
    """What agents saw that played an overlay and the back ends of a balancer, and of a segment."""
    for place, facts in enumerate(OVERLAYS.values(), first):
        block = make_block("vxlan/overlay", "udp", place, probe=OVERLAY)
        yield make_evidence(block, outcome=Outcome(OVERLAY, None), rehearsed=facts)
    for place, seen in enumerate(BALANCERS.values(), first + len(OVERLAYS)):
        block = make_block("api/balancer", "tcp", place, probe=BALANCER, persistence="none")
        yield make_evidence(block, outcome=Outcome(BALANCER, None), rehearsed=seen)
    first += len(OVERLAYS) + len(BALANCERS)
    for place, (samples, limits) in enumerate(QUALITIES, first):
        block = make_block("etcd/quality", "tcp", place, probe=QUALITY, quality=limits)
        yield make_evidence(block, outcome=Outcome(QUALITY, None), rehearsed=samples)
    unasked = make_block("etcd/quality", "tcp", first + len(QUALITIES), probe=QUALITY)
    words = "no echo request was answered: by echo requests, because db-1 has no agent"
    yield make_evidence(unasked, outcome=None, untested=("no-samples", words))
    for place, shown in enumerate(SEGMENTS.values(), first + len(QUALITIES) + 1):
        block = make_block(SEGMENT, "icmp", place, probe=SEGMENT)
        yield make_evidence(block, outcome=Outcome(SEGMENT, None), rehearsed=shown)
    first += len(QUALITIES) + 1 + len(SEGMENTS)
    for place, sent in enumerate(MULTICASTS.values(), first):
        block = make_block("vrrp/segment", "ipproto/112", place, probe=MULTICAST)
        yield make_evidence(block, outcome=Outcome(MULTICAST, None), rehearsed=sent)


# The code of DNS that shows each kind of trouble with names.
_CODES = {
    "not-found": "NXDOMAIN", "no-record": "no record", "server-failure": "SERVFAIL",
    "server-refuses": "REFUSED", "unanswered": "no answer", "odd-answer": "no DNS",
}  # fmt: skip


def _names_of(kind: str) -> NameFacts:
    """What servers told of one name, with this kind of trouble and some more beside it."""
    name, server = "api.estate.example", "10.1.1.20"
    asked = AskedName("apiHost", name, ("10.1.1.31",) if kind == "other-address" else ())
    trouble: Any = kind if kind in ("lost", "edns", "cut") else ""
    addresses = () if kind in _CODES else ("10.1.1.30",)
    told = NameTold(name, _CODES.get(kind, "NOERROR"), addresses, 1600, trouble)
    own = ServerTold("worker-1", server, (told,), serials=(("estate.example", 7),))
    stranger = NameTold("*.estate.example", "NOERROR", ("10.1.1.30",))
    others = {
        "stale": replace(_change_answer(own, "10.1.2.20"), serials=(("estate.example", 8),)),
        "servers-differ": _change_answer(own, "10.1.2.20"),
        "other-resolver": replace(_change_answer(own, "10.1.2.20"), resolver=True),
        "mute-resolver": ServerTold(
            "worker-1", "10.1.2.20", (NameTold(name, "no answer"),), resolver=True
        ),
        "dead-resolver": ServerTold("worker-1", "10.1.2.20", (), resolver=True, alive=False),
    }  # fmt: skip
    return NameFacts(
        (asked,),
        replace(own, strangers=(stranger,)) if kind == "wildcard" else own,
        (others[kind],) if kind in others else (),
        (replace(_change_answer(own, server), source="worker-2"),) if kind == "split" else (),
    )


def _change_answer(told: ServerTold, server: str) -> ServerTold:
    """Another server, or the same one to another source, with another address."""
    changed = tuple(replace(one, addresses=("10.1.1.32",)) for one in told.told)
    return replace(told, server=server, told=changed)


def list_results() -> list[Result]:
    """Every result of the estate, in the order of its plan."""
    results = list(_judge_tables())
    results += _judge_rest(len(results))
    results += _judge_hosts(len(results))
    return results


def _judge_hosts(place: int) -> Iterator[Result]:
    """Faults that are those of a host: its name servers, and its clock."""
    source = SOURCES[0]
    for at, kind in enumerate((RESOLVER, CLOCK), place):
        block = make_block(kind, "udp", at)
        block = replace(
            block, sources=(source,), destinations=((source, source.addresses[0]),), local=True
        )
        one = HostFlow(make_evidence(block, outcome=None).flow, (at, 0, 0))
        if kind == RESOLVER:
            dead = ServerTold(source.name, "10.1.2.20", (), resolver=True, resolves=False)
            yield from judge_resolvers([(one, ResolverFacts((dead,), ("api.example.com",)))])
        else:
            ahead_s = {source.name: 420.0, SOURCES[1].name: 0.0, SOURCES[2].name: 0.1}
            yield from judge_clocks({source.name: one}, ahead_s, ())


def _report_hosts() -> tuple[HostReport, ...]:
    hosts: tuple[Host, ...] = (*SOURCES, *ENDS)
    states: tuple[dict[str, Any], ...] = (
        {"state": "agent", "python": "3.11.7", "user": "root", "privileged": True, "start_s": 0.4,
         "facts": HostFacts(kernel="6.1.0", net_raw=True, low_ports=True, sees_owners=True)},
        {"state": "agent", "python": "3.6.8", "user": "core", "start_s": 1.2,
         "cost": ("no recorder, so a drop before the host cannot be told from one on it",)},
        {"state": "failed", "words": "worker-3: ssh: connect to host 10.0.3.10 port 22: timed out"},
        {"state": "agent", "python": "3.9.2", "user": "root", "privileged": True,
         "facts": HostFacts(python_sent=True)},
        {"state": "lost", "words": "its agent said nothing for 30 s"},
        {"state": "none"},
    )  # fmt: skip
    return tuple(
        HostReport(name=one.name, roles=one.roles, zone=one.zone, named=False,
                   addresses=tuple(each.text for each in one.addresses), **state)
        for one, state in zip(hosts, states, strict=True)
    )  # fmt: skip


def _list_requirements(results: list[Result]) -> tuple[PlannedRequirement, ...]:
    found = {
        (one.requirement, one.protocol): PlannedRequirement(
            matrix=MATRIX,
            id=one.requirement,
            from_=("node",),
            to=("database",),
            ports=one.ports,
            protocol=one.protocol,
            purpose=one.purpose,
            row=one.row,
            expect=one.expect,
        )
        for one in results
    }
    return tuple(found.values())


@cache
def make_run() -> Report:
    """The finished run: with coverage, a sample, accepted flows, a baseline, notes and skips."""
    results = list_results()
    blocked = [one for one in results if one.verdict == "blocked" and one.decides and one.port]
    accepted = Acceptances(tuple(_accept(at, one) for at, one in enumerate(blocked[:6])), TODAY)
    marked = [part for one in results for part in accepted.mark(one)]
    known = {one.order for one in blocked[6:9]}
    marked = [replace(one, known="base.jsonl") if one.order in known else one for one in marked]
    collector = collect(marked)
    info = _make_info(results)
    info = replace(info, accepted=accepted.check(collector.results(), info))
    zones = {one.name: one.zone for one in info.hosts if one.zone}
    return Report(info, collector, fold(collector.failures(), collector.passes(), zones))


def _accept(at: int, result: Result) -> Any:
    """An entry for a flow; some are over, some end soon, one is of something else."""
    until = ("2027-01-31", "2026-11-27", "2026-11-21", "never")[at % 4]
    return replace(
        ENTRY, id=f"a{at}", matrix=MATRIX, requirement=result.requirement, from_=(result.source,),
        to=(result.destination,), protocol=result.protocol, ports=result.ports, until=until,
        verdict="exposed" if at == 4 else "blocked", reason="new firewall",
    )  # fmt: skip


def _make_info(results: list[Result]) -> RunInfo:
    unprobed = tuple(replace(one, matrix=MATRIX) for one in (GROUP, UNSEEN))
    return replace(
        INFO,
        matrices=(replace(INFO.matrices[0], name=MATRIX),),
        hosts=_report_hosts(),
        requirements=_list_requirements(results),
        planned_flows=len(results) + sum(one.flows for one in unprobed),
        phases={"starts": 1.2, "probes": 2.5, "own work": 0.534},
        selection="--only estate: 170 of 262 flows",
        earlier="12 flows were taken over from earlier.jsonl",
        sample="3 peers of each host, 412 of 9,900 flows",
        coverage=replace(ABOUT, unprobed=unprobed),
        trust="all keys were in one file for all hosts",
        baseline="4 flows fail that did not fail in base.jsonl",
        skipped=(
            Skipped(MATRIX, "webhook", "setting modules lacks cloud-provider-vcd"),
            Skipped(MATRIX, "frontend", "no host has the role frontend"),
        ),
        notes=("inventory.yaml: no matrix knows the role balancer; nearest: frontend",),
    )
