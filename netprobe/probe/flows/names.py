"""Names, resolved on the source: every address that a name gives is a result of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netprobe.errors import AgentError
from netprobe.model.evidence import Evidence, Outcome
from netprobe.model.inventory import Host
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.work import Want, family_of


@dataclass(frozen=True, slots=True)
class Resolved:
    """``addresses`` by (source name, name); ``failed`` has (reason, words) where there are none."""

    addresses: Mapping[tuple[str, str], tuple[str, ...]]
    failed: Mapping[tuple[str, str], tuple[str, str]]

    def evidence(self, want: Want) -> list[Evidence]:
        """What is known of a flow whose name the source could not resolve; else nothing."""
        address = want.flow.address
        failure = self.failed.get((want.flow.source.name, address.text))
        if address.family is not None or failure is None or want.via is not None:
            return []
        reason, words = failure
        ports = want.flow.block.ports
        if reason != "name-not-resolved":
            return [Evidence(want.flow, address.text, ports, None, untested=failure)]
        outcome = Outcome("resolve", reason, said=words)
        return [Evidence(want.flow, address.text, ports, outcome)]


async def resolve(wants: Sequence[Want], fleet: Fleet) -> Resolved:
    """Ask every source for every name that it needs, once."""
    needed = {}
    for want in wants:
        if want.flow.address.family is None and want.via is None:
            key = (want.flow.source.name, want.flow.address.text)
            needed[key] = want.flow.source
    answers = await asyncio.gather(
        *(_ask(fleet, source, name) for (_, name), source in needed.items())
    )
    addresses, failed = {}, {}
    for key, (found, failure) in zip(needed, answers, strict=True):
        if found:
            addresses[key] = found
        else:
            failed[key] = failure
    return Resolved(addresses, failed)


async def _ask(fleet: Fleet, source: Host, name: str) -> tuple[tuple[str, ...], tuple[str, str]]:
    try:
        reply = await fleet.agent(source).resolve(name)
    except AgentError as error:
        return (), (error.reason, str(error))
    spoken = {address.family for address in source.addresses} - {None}
    found = tuple(
        address for address in reply.addresses if not spoken or family_of(address) in spoken
    )
    words = reply.words or "the name has no address of a family that the source lists"
    return found, ("name-not-resolved", words)
