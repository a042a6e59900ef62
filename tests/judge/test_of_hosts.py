"""Faults of one host, judged: name servers that resolve nothing, and clocks that are apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing

import pytest
from msgspec.structs import replace

from netprobe.judge.clocks_apart import ServerAnswer, judge_clocks
from netprobe.judge.findings import fold
from netprobe.judge.of_hosts import judge_resolvers
from netprobe.model.codec import info_to_json
from netprobe.model.evidence import ServerClock
from netprobe.model.inventory import Address
from netprobe.model.matrix import Stops
from netprobe.model.names import NameTold, ResolverFacts, ServerTold
from netprobe.model.plan import AskedName, Block, Plan, PlannedMatrix
from netprobe.model.result import Result
from netprobe.model.run import info_before
from netprobe.plan.of_hosts import list_clocks, list_lookups
from netprobe.report.record.collector import Report, collect
from netprobe.report.record.contradictions import check_alone
from netprobe.report.run.headline import totals
from tests.plan.conftest import host, requirement

NAME = "api.x.test"
SOURCES = tuple(host(name, "node", addresses=(f"10.0.0.{at}",)) for at, name in enumerate("abc", 1))
SERVER = host("time", "ntp", addresses=("10.0.0.9",))
BLOCK = Block(
    4, "m", requirement("dns", "node", "ntp", udp=((53, 53),), probe="dns"), "udp", ((53, 53),), 4,
    SOURCES, ((SERVER, Address("10.0.0.9", 4)),), names=(AskedName("api-hostname", NAME),),
)  # fmt: skip
PLAN = Plan((), (BLOCK,))
DEAD = ServerTold("a", "10.0.0.2", (NameTold(NAME, "no answer"),), alive=False, resolves=False)
STUB = ServerTold("a", "127.0.0.53", (NameTold(NAME, "SERVFAIL"),), resolves=False)
KNOWS = ServerTold("a", "10.0.0.3", (NameTold(NAME, "NXDOMAIN"),))
GOOD = ServerClock(2, True, None, 10.0, 0.0, 1.0)


def resolvers(*servers: ServerTold, unresolved: tuple[str, ...] = (NAME,)) -> list[Result]:
    """The results of the first source with these name servers."""
    (first, *_) = list_lookups(PLAN)
    return list(judge_resolvers([(first, ResolverFacts(servers, unresolved))]))


def test_a_host_without_a_name_server_that_resolves() -> None:
    """One result, blocked, of the host itself; a stub that fails for everything is no server."""
    (result,) = resolvers(DEAD, STUB)

    assert (result.requirement, result.verdict, result.reason) == (
        "resolver", "blocked", "no-resolver",
    )  # fmt: skip
    assert (result.source, result.destination, result.port, result.where) == (
        "a", "a", 53, ("source",),
    )  # fmt: skip
    for words in ("10.0.0.2 answers nothing", "127.0.0.53 says SERVFAIL", f"address of {NAME}"):
        assert words in result.because
    check_alone(result)


@pytest.mark.parametrize(
    ("servers", "unresolved"), [((DEAD, KNOWS), (NAME,)), ((DEAD, STUB), ()), ((KNOWS,), (NAME,))]
)
def test_who_resolves_has_no_fault(
    servers: tuple[ServerTold, ...], unresolved: tuple[str, ...]
) -> None:
    """One server that knows names is enough, and so are /etc/hosts and caches."""
    assert resolvers(*servers, unresolved=unresolved) == []


def test_hosts_with_one_fault_are_one_finding() -> None:
    """However many hosts have it."""
    facts = ResolverFacts((DEAD,), (NAME,))
    (finding,) = fold(judge_resolvers((one, facts) for one in list_lookups(PLAN)))

    assert len(finding.members) == 3
    assert finding.title == "no configured name server of a, b, c resolves names (3 flows)"


def test_an_optional_row_makes_an_optional_result() -> None:
    """It counts as much as the row that needs names; one required row of two makes it required."""
    optional = replace(BLOCK, requirement=replace(BLOCK.requirement, optional=True))
    for blocks, expected in (((optional,), True), ((optional, BLOCK), False)):
        (first, *_) = list_lookups(Plan((), blocks))
        assert first.flow.block.requirement.optional is expected


def test_who_has_no_names_is_not_asked() -> None:
    """Without a name of a setting or a destination nobody looks anything up."""
    assert list_lookups(Plan((), (replace(BLOCK, names=()),))) == ()
    named = replace(
        BLOCK, names=(), family=None, destinations=((SERVER, Address("t.x.test", None)),)
    )
    assert [one.ends for one in list_lookups(Plan((), (named,)))] == [("t.x.test",)] * 3


@pytest.mark.parametrize(
    ("block", "names", "said"),
    [
        (BLOCK, 1, False),
        (replace(BLOCK, names=()), 0, True),
        (replace(BLOCK, names=(), requirement=requirement("web", "node", "ntp")), 0, True),
    ],
)
def test_the_report_says_where_no_name_was_set(block: Block, names: int | None, said: bool) -> None:
    """Beside the counts of what was checked; JSON has the number."""
    info = replace(info_before(Plan((), (block,)), "now"), complete=True)
    with closing(collect([])) as collector:
        line = totals(Report(info, collector)).text

    assert info.names_set == names == info_to_json(info).get("names_set")
    assert ("; no name was looked up; " in line) is said


def test_the_report_says_what_names_could_be_set() -> None:
    """One as an option to type, and how many more; each is one setting, whatever matrices have it.

    A matrix without such a setting has none to name.
    """
    plan = Plan((PlannedMatrix("m", names=("api", "web")), PlannedMatrix("n", names=("web",))), ())
    with closing(collect([])) as collector:
        info = replace(info_before(plan, "now"), complete=True)
        line = totals(Report(info, collector)).text
    assert "; no name was looked up (--set api=NAME, or 1 more setting); " in line


def clocks(hosts_s: Mapping[str, float], servers_s: Iterable[float] = ()) -> dict[str, str]:
    """What is said of each clock: of hosts, and of a server as the source ``a`` sees it."""
    answers = [
        ServerAnswer("a", "time", GOOD._replace(offset_ms=(hosts_s["a"] - ahead_s) * 1000))
        for ahead_s in servers_s
    ]
    found = list(judge_clocks(list_clocks(PLAN), hosts_s, answers))
    for one in found:
        check_alone(one)
        assert (one.requirement, one.verdict, one.reason) == ("clock", "blocked", "clock-apart")
    return {one.source: one.because for one in found}


@pytest.mark.parametrize(
    ("hosts_s", "servers_s", "expected"),
    [
        ({"a": 0.0, "b": 0.0, "c": 299.9}, (), ""),
        ({"a": 0.0, "b": 0.0, "c": 300.0}, (), "c"),
        ({"a": 0.0, "b": 0.0, "c": -420.0}, (), "c"),
        ({"a": 3600.0, "b": 3600.0, "c": 3600.0}, (), ""),
        ({"a": 0.0, "b": 420.0}, (), "a b"),
        ({"a": 0.0, "b": 420.0, "c": 900.0}, (), "a b c"),
        ({"a": 420.0}, (0.0,), "a"),
        ({"a": 0.0, "b": 420.0}, (0.0,), "b"),
        ({"a": 0.0, "b": 0.0, "c": 0.0}, (-3600.0,), "time"),
        ({"a": 0.0, "b": 0.0, "c": 420.0}, (-3600.0,), "c time"),
    ],
)  # fmt: skip
def test_clocks_apart(
    hosts_s: dict[str, float], servers_s: tuple[float, ...], expected: str
) -> None:
    """Each is held against the majority; of as many clocks those with a time server are right."""
    assert sorted(clocks(hosts_s, servers_s)) == expected.split()


def test_the_words_of_a_clock_that_is_apart() -> None:
    """They say by how much and from whom; of two clocks nobody knows which is wrong."""
    third = clocks({"a": 0.0, "b": 0.0, "c": 420.0})["c"]
    assert third == "the clock of c is 420.0 s ahead of the clock of a, b"
    server = clocks({"a": 0.0, "b": 0.0}, (-3600.0,))["time"]
    assert server == "the clock of the time server time is 3,600.0 s behind the clock of a, b"
    alone = clocks({"a": 420.0}, (0.0,))["a"]
    assert alone.endswith(
        "of the time server time, and no other clock tells which of them is wrong"
    )


def test_a_server_without_time_is_no_clock() -> None:
    """What is not synchronised, or turns hosts away, says nothing of anybody's clock."""
    for clock in (ServerClock(16, False, offset_ms=9e6), ServerClock(0, False, "RATE", 0.0, 9e6)):
        answers = [ServerAnswer("a", "time", clock)]
        assert list(judge_clocks(list_clocks(PLAN), {"a": 0.0, "b": 0.0}, answers)) == []


def test_a_fault_of_a_host_stops_what_its_heaviest_row_stops() -> None:
    """Of the rows that make netprobe look at a host, the one that stops most counts."""
    rows = [
        replace(BLOCK, requirement=replace(BLOCK.requirement, stops=stops))
        for stops in (None, Stops("monitoring"), Stops("nodes"), Stops("pods"))
    ]
    plan = Plan((), tuple(rows))
    first, *_ = list_lookups(plan)
    (result,) = judge_resolvers([(first, ResolverFacts((DEAD,), (NAME,)))])

    assert result.stops == "nodes"
    assert list_clocks(plan)["a"].flow.block.requirement.stops == Stops("nodes")
