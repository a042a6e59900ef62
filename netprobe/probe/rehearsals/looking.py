"""A balancer whose back ends hold the port already: nothing is played, and nothing is stopped.

Each back end's agent asks its own port which certificate it shows; sources dial the balancer, and
what they are shown tells where they arrived, where each back end has a certificate of its own.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from netprobe.errors import AgentError
from netprobe.model.balanced import BalancerFacts, HeldPool
from netprobe.model.inventory import Health, Host
from netprobe.probe.flows.work import family_of
from netprobe.probe.rehearsals.back_end import VisitLog
from netprobe.probe.rehearsals.dials import (
    OPEN_S,
    BalancerDial,
    Dialling,
    dial_once,
    make_sources,
)
from netprobe.probe.rehearsals.rehearsal import NotPlayedError, Played, Stage
from netprobe.probe.rehearsals.seen_pool import describe_source, refuse_stopped
from netprobe.protocols.services.own_authority import ALPN
from netprobe.protocols.services.tls import Hello
from netprobe.vantage.stream import Target

READY = "HTTP 200"


async def look_at_pool(stages: Sequence[Stage], health: Health | None, why: str) -> list[Played]:
    """Give what each source saw by looking alone. ``why``: nothing is played."""
    first = stages[0]
    hello = Hello(first.flow.block.sni or None, ALPN)
    hosts = first.flow.block.back_ends
    path = health.path if health is not None and health.kind == "https" and not health.port else ""
    looks = await asyncio.gather(*(_look_at(host, first, hello, path) for host in hosts))
    own = {host.name: dial for host, dial in zip(hosts, looks, strict=True)}
    certificates = {name: dial.certificate for name, dial in own.items()}
    mute = [name for name, certificate in certificates.items() if not certificate]
    if mute:
        words = f"{why}; nor does looking help: {', '.join(mute)} showed no certificate there"
        return [NotPlayedError("port-held", words)] * len(stages)
    dialling = make_looking(stages, hello, certificates)
    await dialling.run()
    ready = tuple(name for name, dial in own.items() if dial.words == READY)
    held = HeldPool(why, tuple(_list_alike(certificates)), ready)
    return [_describe_look(stage, dialling, certificates, held) for stage in stages]


async def _look_at(host: Host, stage: Stage, hello: Hello, path: str) -> BalancerDial:
    """Let a back end's agent ask its own port; with a path, also whether it is ready."""
    family = family_of(stage.address)
    address = next((one.text for one in host.addresses if one.family == family), None)
    dial = BalancerDial(0, 0.0)
    if address is not None:
        target = Target(address, stage.port, None, timeout_s=OPEN_S)
        await dial_once(stage.fleet.agent(host), target, hello, path, dial)
    return dial


def make_looking(
    stages: Sequence[Stage], hello: Hello, certificates: Mapping[str, bytes]
) -> Dialling:
    """Let sources dial and be told apart by certificates; there is nothing to wait for."""
    names = {certificate: name for name, certificate in certificates.items()}
    return Dialling(
        make_sources(stages), hello, tuple(certificates), lambda _: "",
        lambda dial: names.get(dial.certificate), least_s=0.0,
    )  # fmt: skip


def _list_alike(certificates: Mapping[str, bytes]) -> list[str]:
    """List the back ends whose certificate others show, too."""
    counts = Counter(certificates.values())
    return [name for name, certificate in certificates.items() if counts[certificate] > 1]


def _describe_look(
    stage: Stage, dialling: Dialling, certificates: Mapping[str, bytes], held: HeldPool
) -> Played:
    source = dialling.find_source(stage.flow.source.name)
    if isinstance(source.error, AgentError):
        return source.error
    if source.error is not None:
        raise source.error
    facts = describe_source(source, dialling, certificates, VisitLog(""), None)
    stopped = refuse_stopped(facts, source)
    if stopped is None and held.alike and not facts.foreign:
        return NotPlayedError("port-held", _word_alike(facts, held))
    return stopped or facts._replace(held=held)


def _word_alike(facts: BalancerFacts, held: HeldPool) -> str:
    """Say what is known where certificates do not tell back ends apart."""
    return (
        f"{held.why}; {facts.dials - facts.lost} of {facts.dials} connections through the balancer "
        f"showed certificates of the back ends, and {', '.join(held.alike)} show the same one: "
        "which of them are in its pool cannot be told by looking"
    )
