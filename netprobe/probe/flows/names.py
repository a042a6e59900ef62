"""Names, resolved on the source: every address that a name gives is a result of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from msgspec import Struct

from netprobe.agent.wire.host_messages import (
    Resolved,
)
from netprobe.errors import AgentError
from netprobe.model.evidence import Evidence, Outcome
from netprobe.model.inventory import Host
from netprobe.model.story import TrailEntry
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.work import Want, addresses, family_of

# (source name, name)
NameKey = tuple[str, str]


class ResolvedNames(Struct, frozen=True):
    """``addresses`` that a source uses; ``failed`` has (reason, words) where there are none.

    ``answers`` are the resolvers' own, as far as the sources could be asked.
    """

    addresses: Mapping[NameKey, tuple[str, ...]]
    failed: Mapping[NameKey, tuple[str, str]]
    answers: Mapping[NameKey, Resolved]

    def entries(self, want: Want) -> tuple[TrailEntry, ...]:
        """Make the trail entry of a flow's name; a flow to an address has none."""
        answer = self.answers.get((want.flow.source.name, want.flow.address.text))
        if answer is None:
            return ()
        return (TrailEntry("name", "ok" if answer.addresses else "bad", answer),)

    def evidence(self, want: Want) -> list[Evidence]:
        """Make the evidence of a flow whose name gives the source no address; else nothing."""
        address = want.flow.address
        if addresses(want, self.addresses):
            return []
        family = want.flow.block.requirement.family
        other_family = ("other-family", f"{address.text} has no IPv{family} address")
        failure = self.failed.get((want.flow.source.name, address.text), other_family)
        reason, words = failure
        ports, trail = want.flow.block.ports, self.entries(want)
        if reason != "name-not-resolved":
            return [Evidence(want.flow, address.text, ports, outcome=None, untested=failure)]
        outcome = Outcome("resolve", reason, said=words)
        return [Evidence(want.flow, address.text, ports, outcome=outcome, trail=trail)]


def needs_name(want: Want) -> bool:
    """Tell whether the source resolves the flow's address itself, by the way that it takes."""
    return want.flow.address.family is None and want.via is None


async def resolve_names(wants: Sequence[Want], fleet: Fleet) -> ResolvedNames:
    """Ask every source for every name that it needs, once."""
    needed = {}
    for want in wants:
        if needs_name(want):
            key = (want.flow.source.name, want.flow.address.text)
            needed[key] = want.flow.source
    usable: dict[NameKey, tuple[str, ...]] = {}
    failed: dict[NameKey, tuple[str, str]] = {}
    answers: dict[NameKey, Resolved] = {}

    async def ask(key: NameKey, source: Host) -> None:
        try:
            answer = answers[key] = await fleet.lookups.resolve(fleet.agent(source), key[1])
        except AgentError as error:
            failed[key] = (error.reason, str(error))
            return
        chosen = _choose_addresses(source, answer)
        if chosen:
            usable[key] = chosen
        else:
            words = "the name has no address of a family that the source lists"
            failed[key] = ("name-not-resolved", answer.words or words)

    await asyncio.gather(*(ask(key, source) for key, source in needed.items()))
    return ResolvedNames(usable, failed, answers)


def _choose_addresses(source: Host, answer: Resolved) -> tuple[str, ...]:
    """Choose the addresses of families that the source lists; all where it lists none."""
    spoken = {address.family for address in source.addresses} - {None}
    return tuple(one for one in answer.addresses if not spoken or family_of(one) in spoken)
