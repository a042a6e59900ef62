"""Results of one host: faults of its name servers or its clock, which are those of no flow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from netprobe.judge.verdict import begin_result
from netprobe.judge.words import join_some
from netprobe.model.evidence import Evidence
from netprobe.model.names import NO_ANSWERS, ResolverFacts, ServerTold
from netprobe.model.plan import CLOCK, RESOLVER, HostFlow
from netprobe.model.result import Result

# The reason of each.
REASONS_OF_HOSTS: Final[dict[str, str]] = {RESOLVER: "no-resolver", CLOCK: "clock-apart"}


def judge_resolvers(found: Iterable[tuple[HostFlow, ResolverFacts]]) -> Iterator[Result]:
    """Give a result for each host of which no name server resolves what it looks up."""
    for one, facts in found:
        if facts.unresolved and not any(server.resolves for server in facts.servers):
            yield replace(
                make_fault(one, _word_servers(one, facts)),
                name_servers=tuple(server.server for server in facts.servers),
                next_hop=facts.gateway,
            )


def make_fault(one: HostFlow, because: str) -> Result:
    """Make the result of a host that has the fault which its requirement is about."""
    flow = one.flow
    unjudged = Evidence(flow, flow.address.text, flow.block.ports, outcome=None)
    base = begin_result(unjudged, one.order)
    ((port, last),) = flow.block.ports
    return replace(
        base, verdict="blocked", reason=REASONS_OF_HOSTS[base.requirement], where=("source",),
        because=because, port=port, end_port=last,
    )  # fmt: skip


def _word_servers(one: HostFlow, facts: ResolverFacts) -> str:
    servers = ", ".join(f"{told.server} {_word_server(told)}" for told in facts.servers)
    names = join_some(facts.unresolved)
    host = one.flow.source.name
    return (
        f"no name server that {host} is configured with resolves names ({servers}), and {host} has "
        f"no other way to an address of {names}"
    )


def _word_server(told: ServerTold) -> str:
    codes = dict.fromkeys(one.said for one in told.told if one.said not in NO_ANSWERS)
    return f"says {' or '.join(codes)} to all that it was asked" if codes else "answers nothing"
