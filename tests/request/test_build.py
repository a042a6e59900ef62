"""Which failures become rules, for whom, and what no rule will mend."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.judge.findings import fold
from netprobe.model.coverage import Coverage, Unprobed
from netprobe.model.firewall import RuleEnd
from netprobe.model.inventory import Inventory, Vantage
from netprobe.model.result import AcceptedBy, Result
from netprobe.model.run import info_before
from netprobe.model.story import Story, StoryPlace
from netprobe.plan.expand import make_plan
from netprobe.request.build import request_of_plan, request_of_run
from netprobe.request.groups import address_group
from netprobe.request.rules import RequestWishes
from tests.plan.conftest import chosen_matrix, host, requirement
from tests.report.samples import BLOCKED, INFO
from tests.request.flows import ask, opened_flows, written

PATH = replace(BLOCKED, where=("path",))


def rules_text(*results: Result, **wishes: Any) -> list[str]:
    """What is asked for, a line a rule."""
    request = ask(results, RequestWishes(**wishes), INFO)
    return [
        f"{rule.id} {rule.action} {'answers ' if rule.answers else ''}"
        f"{rule.sources[0].address} -> {rule.destinations[0].address} on {rule.who}"
        for rule in request.rules
    ]


@pytest.mark.parametrize(
    ("where", "changes", "who"),
    [
        (("path",), {"rejected_by": "192.0.2.1", "reason": "admin-prohibited"},
         "192.0.2.1, which refuses it"),
        (("path",), {}, "the firewall on the way"),
        (("destination",), {}, "the firewall of the destination itself"),
        (("source",), {"reason": "local-firewall"}, "the firewall of the source itself"),
        (("destination", "host", "path", "return-path", "source"), {},
         "the firewall on the way or the firewall of the destination itself or the firewall of the "
         "source itself (to be confirmed)"),
    ],
)  # fmt: skip
def test_who_applies_a_rule(where: Any, changes: dict[str, Any], who: str) -> None:
    """The places that are still possible say it, the likeliest first."""
    failure = replace(BLOCKED, where=where, **changes)

    assert rules_text(failure) == [f"R1 allow 10.0.0.10 -> 10.0.0.11 on {who}"]


@pytest.mark.parametrize(
    ("where", "seen", "source"),
    [
        (("path",), {"sent_from": "10.5.0.5"}, "10.5.0.5"),
        (("path",), {"sent_from": "10.5.0.5", "came_from": "10.6.0.6"}, "10.5.0.5"),
        (("path",), {"came_from": "10.6.0.6"}, "10.0.0.10"),
        (("path",), {"sent_from": "host-7"}, "10.0.0.10"),
        (("path",), {"sent_from": "fd00::5"}, "10.0.0.10"),
        (("destination",), {"sent_from": "10.5.0.5", "came_from": "10.6.0.6"}, "10.6.0.6"),
        (("destination",), {"sent_from": "10.5.0.5"}, "10.5.0.5"),
        (("destination", "path"), {"came_from": "10.6.0.6"}, "10.0.0.10"),
        (("path",), {}, "10.0.0.10"),
    ],
)
def test_a_rule_names_the_address_that_its_enforcer_sees(
    where: Any, seen: dict[str, str], source: str
) -> None:
    """A source may send from an address that the inventory does not have, or be translated on the
    way; a note says the latter."""
    failure = replace(BLOCKED, where=where, **seen)
    (rule,) = ask([failure], RequestWishes(), INFO).rules

    assert [end.address for end in rule.sources] == [source]
    assert {end.host for end in rule.sources} == {BLOCKED.source}
    is_said = "came_from" in seen
    assert any("is translated on the way" in note for note in rule.notes) == is_said


def test_a_source_without_a_known_address_may_have_shown_one() -> None:
    """As one that the inventory has by its name only."""
    hosts = tuple(replace(one, addresses=()) for one in INFO.hosts)
    unknown = replace(INFO, hosts=hosts)

    assert ask([PATH], RequestWishes(), unknown).rules == ()
    (rule,) = ask([replace(PATH, sent_from="10.5.0.5")], RequestWishes(), unknown).rules
    assert [end.address for end in rule.sources] == ["10.5.0.5"]


@pytest.mark.parametrize(
    ("where", "state", "reason"),
    [
        (("host",), "unreachable", "host-down"),
        (("path",), "unreachable", "net-unreach"),
        (("path",), "unreachable", "routing-loop"),
        (("source",), "unreachable", "no-route"),
        (("destination", "path"), "unreachable", "host-unreach"),
        (("path", "source"), "filtered", "next-hop-silent"),
        (("path",), "filtered", "mtu-too-small"),
        (("destination", "path"), "filtered", "mtu-black-hole"),
        (("destination",), "filtered", "reverse-path-filter"),
        (("source",), "filtered", "no-buffers"),
        (("path", "source"), "filtered", "proxy-unreachable"),
        (("service",), "open", "port-taken"),
        (("service",), "closed", "nothing-listens"),
        (("source",), "unknown", "name-not-resolved"),
    ],
)
def test_no_rule_will_help(where: Any, state: Any, reason: str) -> None:
    """Dead hosts, routes, MTU, names and services: the finding is listed with what does help."""
    failure = replace(BLOCKED, where=where, state=state, reason=reason, path_mtu_bytes=1400,
                      needed_mtu_bytes=1500, next_hop="10.0.0.7", holder="nginx")  # fmt: skip
    request = ask([failure], None, INFO)

    assert (request.rules, request.asked) == ((), ())
    (finding,) = fold([failure])
    assert [(one.title, one.help, one.flows) for one in request.unmended] == [
        (finding.title.removesuffix(" (1 flow)"), finding.advice, 1)
    ]


def test_no_rule_helps_whatever_the_plan_has_first() -> None:
    """Answers that are lost behind a dead next hop are of its finding, and need no rule."""
    back = replace(BLOCKED, order=(0, 0, 0), where=("return-path",))
    hop = replace(
        BLOCKED, order=(0, 1, 0), source=back.destination, destination=back.source,
        address="10.0.0.10", state="unreachable", reason="next-hop-down",
        where=("path", "source"), next_hop="10.0.0.1",
    )  # fmt: skip
    request = ask([back, hop], None, INFO)

    assert request.rules == ()
    assert [one.flows for one in request.unmended] == [2]


def test_a_rule_for_name_servers_asks_for_no_name() -> None:
    """Names that do not resolve since a firewall stops the questions have its finding."""
    dns = replace(PATH, protocol="udp", port=53, end_port=53)
    own = replace(
        dns, destination=dns.source, address="10.0.0.10", state="unknown", reason="no-resolver",
        where=("source",), name_servers=(dns.address,),
    )  # fmt: skip
    request = ask([dns, own], None, INFO)

    assert [(one.protocol, one.ports, one.findings) for one in request.rules] == [
        ("udp", ((53, 53),), (1,))
    ]
    assert request.asked == (dns,)


def test_the_way_back() -> None:
    """Lost answers need a rule only where no state is kept, or where the source itself drops."""
    back = replace(BLOCKED, where=("return-path",))
    own = replace(BLOCKED, where=("source",))

    assert rules_text(back) == []
    line = "R1 allow answers 10.0.0.11 -> 10.0.0.10 on the firewall "
    assert rules_text(back, stateless=True) == [f"{line}on the way"]
    assert rules_text(own) == [f"{line}of the source itself"]
    assert [one.split(" on ")[0] for one in rules_text(PATH, stateless=True)] == [
        "R1 allow 10.0.0.10 -> 10.0.0.11",
        "R2 allow answers 10.0.0.11 -> 10.0.0.10",
    ]


def test_answers_that_the_destination_keeps() -> None:
    """What reached a socket there needs a rule for its answers, beside what did not."""
    there = Story(socket=StoryPlace("yes"), destination_out=StoryPlace("no"))
    kept = replace(BLOCKED, where=("destination",), story=there)
    stopped = replace(kept, port=2381, end_port=2381, story=None)

    where = "on the firewall of the destination itself"
    assert rules_text(kept, stopped) == [
        f"R1 allow answers 10.0.0.11 -> 10.0.0.10 {where}",
        f"R2 allow 10.0.0.10 -> 10.0.0.11 {where}",
    ]
    (finding,) = fold([kept, stopped])
    assert finding.advice == (
        "Allow tcp 2381 from master-0 to master-1 in the firewall of master-1 itself. Let the "
        "answers to tcp 2379 from master-0 to master-1 out in the firewall of master-1 itself."
    )


def test_an_answer_that_never_left_may_be_kept() -> None:
    """No socket tells whether the request came in: a note names both."""
    quiet = Story(destination_in=StoryPlace("yes"), destination_out=StoryPlace("no"))
    (rule,) = ask([replace(BLOCKED, where=("destination",), story=quiet)], None, INFO).rules

    note = "or the destination's own firewall lets the request in, and no answer out"
    assert not rule.answers
    assert note in rule.notes
    lost = replace(quiet, destination_in=StoryPlace("no"))
    assert note not in ask([replace(PATH, story=lost)], None, INFO).rules[0].notes


def test_waived_flows_are_nobodys_wish() -> None:
    """What somebody waived or accepted is not asked for, and not listed as beyond help."""
    accepted = replace(PATH, accepted=AcceptedBy("a1", "later", "team", "2027-01-31"))
    for excused in (replace(PATH, waived="later"), accepted):
        request = ask([excused], None, INFO)

        assert (request.rules, request.unmended, request.asked) == ((), (), ())


def test_exposed_ports_are_closed_on_demand() -> None:
    """Only with --include exposed, at the destination, and never from the host to itself."""
    open_port = replace(PATH, verdict="exposed", state="open", expect="denied")
    back = replace(open_port, source="master-1", destination="master-0", address="10.0.0.10")
    wished = ask([open_port, back], RequestWishes(include=frozenset({"exposed"})), INFO)

    assert rules_text(open_port) == []
    assert ask([open_port], None, INFO).unmended == ()
    assert {rule.action for rule in wished.rules} == {"deny"}
    assert len(wished.rules) == 2
    assert not [rule for rule in wished.rules if set(rule.sources) & set(rule.destinations)]


def test_doubtful_flows_are_counted_or_asked_for() -> None:
    """What is inconclusive is left out and counted, and asked for with --include inconclusive."""
    doubt = replace(PATH, verdict="inconclusive", state="open|filtered", protocol="udp")
    blind = replace(PATH, verdict="not-tested", state="unknown", reason="no-python")
    wished = RequestWishes(include=frozenset({"inconclusive"}))

    left = request_of_run(INFO, (), [doubt, blind], "run.json", RequestWishes())
    assert left.rules == ()
    assert [(one.title, one.flows) for one in left.unmended] == [
        ("not asked for: inconclusive", 1),
        ("not asked for: not-tested", 1),
    ]
    asked = request_of_run(INFO, (), [doubt, blind], "run.json", wished)
    assert [rule.protocol for rule in asked.rules] == ["udp"]
    assert [one.title for one in asked.unmended] == ["not asked for: not-tested"]


def test_who_asked_for_doubtful_flows_is_not_told_to() -> None:
    """No rule mends a port that somebody holds, nor a size that nobody could try."""
    held = replace(PATH, verdict="inconclusive", state="open", reason="unknown-holder",
                   where=("service",))  # fmt: skip
    size = replace(PATH, verdict="inconclusive", state="unknown", reason="mtu-not-measured")
    drop = replace(PATH, verdict="inconclusive", state="open|filtered", protocol="udp")
    wished = RequestWishes(include=frozenset({"inconclusive"}))

    for doubts, wishes, advised in (
        ([held, size], RequestWishes(), [False]), ([held], wished, [False]),
        ([drop, size], RequestWishes(), [True, False]),
    ):  # fmt: skip
        left = request_of_run(INFO, (), doubts, "run.json", wishes).unmended
        assert {one.title for one in left} == {"not asked for: inconclusive"}
        assert ["--include inconclusive" in one.help for one in left] == advised


def test_ends_without_an_address() -> None:
    """No rule is written with a name, nor for a source whose address nobody knows."""
    by_name = replace(PATH, destination="api", address="api.example.com")
    unknown = replace(PATH, source="stranger")
    request = ask([by_name, unknown], None, INFO)

    assert request.rules == ()
    assert [one.title for one in request.unmended] == [
        "api is known by name only (api.example.com), and rules need addresses",
        "stranger has no address of this family in the run: which one does it send from?",
    ]


def test_each_router_has_its_own_rules() -> None:
    """Flows of one finding go to the router that refused each of them, silent ones to its own."""
    refused = replace(PATH, reason="admin-prohibited", rejected_by="192.0.2.1")
    silent = replace(PATH, port=2381, end_port=2381)
    back = replace(refused, source="master-1", destination="master-0", address="10.0.0.10",
                   rejected_by="192.0.2.2", order=(0, 1, 0))  # fmt: skip
    quiet = replace(back, port=2381, end_port=2381, rejected_by=None, reason="no-response")
    flows = (refused, silent, back, quiet)
    (finding,) = fold(flows)
    assert finding.rejected_by is None

    lines = ["R1 allow 10.0.0.10 -> 10.0.0.11 on 192.0.2.1, which refuses it",
             "R2 allow 10.0.0.11 -> 10.0.0.10 on 192.0.2.2, which refuses it"]  # fmt: skip
    assert rules_text(*flows) == lines
    assert rules_text(*flows, at="192.0.2.2") == lines[1:]
    part = ask(flows, RequestWishes(at="192.0.2.1"), INFO)
    assert part.asked == (refused, silent)


def test_a_router_that_no_rule_is_for() -> None:
    """It is refused with the places that there are, unless nobody needs a rule at all."""
    refused = replace(PATH, reason="admin-prohibited", rejected_by="192.0.2.1")
    own = replace(BLOCKED, where=("destination",), order=(1, 0, 0))
    with pytest.raises(RequestError) as error:
        ask([refused, own], RequestWishes(at="192.0.2.9"), INFO)

    places = "the rules are for 192.0.2.1, destination"
    assert str(error.value) == f"--at 192.0.2.9: no rule is for this router, {places}"
    assert ask([], RequestWishes(at="192.0.2.9"), INFO).rules == ()
    elsewhere = ask([refused, own], RequestWishes(at="source"), INFO)
    assert elsewhere.why_none == f"none is for source, {places}"


def test_why_there_is_no_rule() -> None:
    """Markdown and scripts say it: nothing failed, accepted, waived, or not asked for."""
    accepted = replace(PATH, accepted=AcceptedBy("a1", "later", "team", "2027-01-31"))
    waived = replace(PATH, waived="later", port=2380, end_port=2382, order=(1, 0, 0))
    exposed = replace(PATH, verdict="exposed", state="open", expect="denied")
    dead = replace(PATH, where=("host",), state="unreachable", reason="host-down")
    for results, why in (
        ((), "no flow is known to be blocked"),
        ((accepted,), "1 flow is accepted"),
        ((accepted, waived), "1 flow is accepted, 3 flows are waived"),
        ((exposed,), "1 flow is exposed (--include exposed asks to close them)"),
        ((dead,), "no rule will help"),
    ):
        request = ask(results, None, INFO)
        assert request.why_none == why
        assert f": no rule to ask for: {why}." in written(request, "markdown").replace("\\", "")
        assert "#   no rule: " in written(request, "nftables")


def test_what_is_to_be_confirmed_is_said_once() -> None:
    """The line that names the candidates does not end with what it begins with."""
    page = written(ask([replace(BLOCKED, where=("destination", "path"))], None, INFO), "markdown")

    assert "\n- to be confirmed: the firewall on the way or the firewall of the" in page
    assert "(to be confirmed)" not in page


def test_a_rule_names_its_findings_and_their_packets() -> None:
    """In every format that a ticket is made of."""
    (found,) = fold([PATH])
    request = request_of_run(
        INFO, [replace(found, evidence="ev/finding-01.pcapng")], (), "run.json", RequestWishes()
    )
    (rule,) = request.rules

    assert (rule.findings, rule.packets) == ((1,), ("ev/finding-01.pcapng",))
    told = {"text": "finding          1; packets: ", "markdown": "- finding: 1; packets: "}
    told |= dict.fromkeys(("tufin", "algosec"), "; finding 1; packets: ")
    told |= dict.fromkeys(("nftables", "cisco-asa"), "finding 1, packets: ")
    for syntax, words in told.items():
        assert f"{words}ev/finding-01.pcapng" in written(request, syntax), syntax
    for syntax in ("csv", "json"):
        assert "ev/finding-01.pcapng" in written(request, syntax), syntax


@pytest.mark.parametrize("syntax", ["text", "markdown", "csv", "json"])
def test_what_no_rule_mends_is_counted_once(syntax: str) -> None:
    """Its finding counts its flows, too."""
    down = replace(BLOCKED, where=("host",), state="unreachable", reason="host-down")

    assert written(ask([down], RequestWishes(), INFO), syntax).count("(1 flow)") < 2


@pytest.mark.parametrize(("where", "noted"), [(("path",), True), (("destination",), False)])
def test_routers_are_noted_where_a_firewall_on_the_way_may_be(where: Any, *, noted: bool) -> None:
    """Who keeps a host needs no router on the way to it."""
    (rule,) = ask([replace(BLOCKED, where=where)], RequestWishes(), INFO).rules

    assert (rule.notes == ("last routers that answered: 10.0.0.1",)) is noted


def test_groups_are_named_by_what_their_hosts_are() -> None:
    """By a role that these hosts have and no others, else by what each of them is itself."""
    master, node = ("master", "node"), ("node",)
    roles = {"m0": master, "m1": master, "m2": master, "w0": node, "w1": node, "w2": node, "x": ()}
    request = replace(ask([PATH], RequestWishes(), INFO), roles=roles)

    def name(*hosts: str) -> str:
        ends = [RuleEnd(host, f"10.0.0.{place + 1}") for place, host in enumerate(hosts)]
        return address_group(request, 4, ends).name.removeprefix("NP_").rpartition("_")[0]

    assert name("m0", "m1", "m2") == name("m0", "m1") == "MASTER"
    assert name("m0", "m1", "m2", "w0", "w1", "w2") == name("w0", "w1") == "NODE"
    assert name("m0", "m1", "w0") == "MASTER_NODE"
    assert (name("m0"), name("x", "x"), name("x", "y")) == ("M0", "X", "HOSTS")


def test_two_requests_have_two_names() -> None:
    """Marks on devices and names of groups never meet, and the same run gives the same again."""
    first, again = ask([PATH], None, INFO), ask([PATH], None, INFO)
    other = ask([replace(PATH, port=2380, end_port=2380)], None, INFO)

    assert first == again
    assert first.id != other.id


def test_before_any_run() -> None:
    """A plan asks for everything that it requires, and for nothing that it denies."""
    hosts = tuple(host(f"n{n}", "node", addresses=(f"10.0.1.{n}",)) for n in range(1, 4))
    wanted = [
        requirement("mesh", "node", "node", tcp=((22, 22), (7000, 7999))),
        replace(requirement("no", "node", "node", tcp=((25, 25),)), expect="denied"),
    ]
    plan = make_plan([chosen_matrix(wanted)], Inventory(hosts), date(2026, 11, 22))
    request = request_of_plan(plan, "2026-11-22T00:00:00Z", RequestWishes())
    closing = request_of_plan(plan, "", RequestWishes(include=frozenset({"exposed"})))

    assert len(request.rules) == 1
    assert len(opened_flows(request.rules)) == request.rules[0].flows == 6 * 1001
    assert request.rules[0].who == "the firewall on the way"
    at = request_of_plan(plan, "", RequestWishes(at="destination")).rules[0]
    assert at.who == "the firewall of the destination itself"
    assert {rule.action for rule in closing.rules} == {"allow", "deny"}


def test_before_any_run_rules_say_what_is_optional_and_what_is_multicast() -> None:
    """Whoever applies them sees what may be left out, and what such a rule does not open."""
    hosts = tuple(host(f"n{n}", "node", addresses=(f"10.0.1.{n}",)) for n in (1, 2))
    wanted = [
        requirement("api", "node", "node"),
        requirement("ping", "node", "node", icmp=True, optional=True, any_of="health"),
        requirement("vrrp", "node", "node", ipproto=(112,), multicast="224.0.0.18"),
    ]
    plan = make_plan([chosen_matrix(wanted)], Inventory(hosts), date(2026, 11, 22))
    request = request_of_plan(plan, "", RequestWishes())
    notes = {rule.protocol: rule.notes for rule in request.rules}

    assert notes["tcp"] == ()
    assert notes["icmp"] == ("optional (m, ping): one of health is enough",)
    assert notes["ipproto/112"][0].startswith("sent to the multicast group 224.0.0.18 in truth")
    assert "optional (m, ping)" in written(request, "csv")


def test_what_nothing_can_probe_is_asked_for_before_a_run_and_told_after_it() -> None:
    """Its sources can run nothing: the plan skips it, and a firewall must open it all the same."""
    nodes = [host(f"n{n}", "node", addresses=(f"10.0.1.{n}",)) for n in (1, 2)]
    bare = host("lb", "external", addresses=("10.0.2.1",), vantage=Vantage("none"))
    rows = [
        requirement("mesh", "node", "node"),
        requirement("back", "external", "node", tcp=((80, 80),)),
        replace(requirement("no", "external", "node", tcp=((25, 25),)), expect="denied"),
    ]
    plan = make_plan([chosen_matrix(rows)], Inventory((*nodes, bare)), date(2026, 11, 22))
    assert plan.flow_count() == 2
    before = request_of_plan(plan, "", RequestWishes())
    after = request_of_run(info_before(plan, ""), (), (), "run.json", RequestWishes())

    assert sorted((one.sources[0].host, one.ports) for one in before.rules) == [
        ("lb", ((80, 80),)), ("n1", ((6443, 6443),)),
    ]  # fmt: skip
    for request, words in ((before, "The rules have these flows"), (after, "--from-plan` asks")):
        (told,) = request.unprobed
        assert (request.unmended, told.title) == ((), "what lb must reach")
        assert written(request, "text").endswith(f"Not probed:\n   {told.title}. {told.help}\n")
        assert "## Not probed\n\n- what lb must reach" in written(request, "markdown")
        assert json.loads(written(request, "json"))["unprobed"][0]["title"] == told.title
        assert "the source is declared vantage: none" in told.help
        assert "Required, by roles: tcp 80 to node (m, back). " in told.help
        assert words in told.help


def test_a_part_keeps_its_names() -> None:
    """The rules of one place have the numbers that they have in the request for all."""
    flows = [replace(BLOCKED, where=("destination",), order=(0, 0, 0)),
             replace(PATH, port=2380, end_port=2380, order=(1, 0, 0))]  # fmt: skip
    everything = ask(flows, None, INFO)
    part = ask(flows, RequestWishes(at="path", until="2027-01-31"), INFO)

    assert part.id == everything.id
    assert [rule.id for rule in part.rules] == [everything.rules[1].id] == ["R2"]
    assert part.asked == everything.asked[1:]


def test_a_part_is_for_its_place_alone() -> None:
    """A rule that several places may lack stands once, with all of them; the file may be applied
    as a whole, and --into names the chain of this place."""
    either = replace(BLOCKED, where=("destination", "path"))
    into = {"nftables": "inet/filter/own"}
    for at, chain in (("path", "forward"), ("destination", "input")):
        for wished, named in (
            (RequestWishes(at=at), chain),
            (RequestWishes(at=at, into=into), "own"),
        ):
            text = written(ask([either], wished, INFO), "nftables")
            assert text.count("insert rule") == 1
            assert f"insert rule inet filter {named} " in text
            assert "NEVER APPLY" not in text
            assert "(to be confirmed)" in text


def test_what_is_covered_by_a_failure_is_told_and_not_asked_for() -> None:
    """Nobody probed it; who writes the rule should write it for the zones."""
    group = Unprobed(
        matrix="m", requirement="etcd", protocol="tcp", ports=((2379, 2379),), from_zone="a",
        to_zone="b", flows=9_900, by=(("x", "y", 2379, 2379),), by_verdict="blocked",
    )  # fmt: skip
    groups = (group, replace(group, by_verdict="pass"), replace(group, optional=True))
    about = Coverage(host_sets=(("x",),), unprobed=groups)
    made = request_of_run(replace(INFO, coverage=about), (), (), "run.json", RequestWishes())
    assert [(one.title, one.help) for one in made.unmended] == [
        (
            "not asked for: 9,900 flows that were not probed: tcp 2379 from zone a to zone b fails "
            "where it was",
            "Allow tcp 2379 from zone a to zone b: all hosts of these zones, not only those of the "
            "rules.",
        )
    ]
