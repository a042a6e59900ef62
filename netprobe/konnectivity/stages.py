"""One worker's way to the Konnectivity server, stage by stage, until a stage settles it.

It never registers as an agent: ``AgentService/Connect`` is not called, whatever the options are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from netprobe.konnectivity import clocks, dialling
from netprobe.konnectivity.answers import REACHED, look_at_answers
from netprobe.konnectivity.combining import AddressLook, combine
from netprobe.konnectivity.findings import Conclusion, Log, diagnosis
from netprobe.konnectivity.further import look_at_fan_out, look_at_hold
from netprobe.konnectivity.hellos import look_at_hellos
from netprobe.konnectivity.loss import conclude_loss, count_losses
from netprobe.konnectivity.reach import Reach, Tasks, open_tunnel
from netprobe.konnectivity.request import ProxyRoute, Tunnel, warn_of_port
from netprobe.model.konnectivity import ADDRESS_STAGES, STAGES, Diagnosis
from netprobe.probe.agents.agent import AgentMethods
from netprobe.protocols.services.proxy_url import ProxyUrl

MOST_ADDRESSES = 8
# How long the proxy is tried that NO_PROXY keeps from being used.
PASSED_S = 5.0


async def diagnose(
    worker: str, agent: AgentMethods, tunnel: Tunnel, via: ProxyRoute, sources: tuple[str, ...]
) -> Diagnosis:
    """Look from one worker. Raises AgentError where its agent is lost.

    Where NO_PROXY decided for a way that fails, it is named, and the proxy is tried.
    """
    log = Log()
    what = await _look_from(log, agent, tunnel, via, sources)
    found = diagnosis(worker, via.said, log, what)
    past = via.passed
    if past is None or found.outcome == "ok" or _is_answered(found.stage):
        return found
    leads = await _proxy_leads_there(agent, tunnel, past, sources)
    because = (
        f"{found.because}; NO_PROXY entry {via.entry} sends the agent past the proxy {past}, and "
        f"CONNECT {tunnel.host}:{tunnel.port} through it {'opens' if leads else 'fails too'}"
    )
    if not leads:
        remedy = f"{found.remedy}; or narrow NO_PROXY ({via.entry}) if the proxy is to be used"
        return replace(found, because=because, remedy=remedy)
    evidence = {
        **found.evidence,
        "entry": via.entry,
        "proxy": str(past),
        "host": tunnel.host,
        "port": tunnel.port,
        "direct": found.code,
        "direct_remedy": found.remedy,
        "direct_log": found.logs,
        "where": "worker",
    }
    wide = replace(
        what, code="NO_PROXY_TOO_WIDE", because=because, evidence=evidence, where="worker"
    )
    return diagnosis(worker, via.said, log, wide)


def _is_answered(stage: str | None) -> bool:
    """Tell whether the fault is of a stage that somebody answered: there is a direct way."""
    return stage is None or STAGES.index(stage) > STAGES.index("mtu")


async def _proxy_leads_there(
    agent: AgentMethods, tunnel: Tunnel, proxy: ProxyUrl, sources: tuple[str, ...]
) -> bool:
    """Ask the proxy for a tunnel; nothing is sent through it."""
    try:
        async with asyncio.timeout(PASSED_S):
            addresses, _ = await dialling.look_up(agent, proxy.host, Log(), proxy=True)
            for reach in _make_reaches(agent, tunnel, addresses, proxy, sources):
                async with open_tunnel(reach) as (_, failure):
                    if failure is None:
                        return True
    except TimeoutError:
        pass
    return False


def _make_reaches(
    agent: AgentMethods,
    tunnel: Tunnel,
    addresses: Sequence[str],
    proxy: ProxyUrl | None,
    sources: Sequence[str],
) -> list[Reach]:
    """Give the way to each address, from the host's source address of the same family."""
    port = tunnel.port if proxy is None else proxy.port
    by_family = {":" in source: source for source in reversed(sources)}
    return [
        Reach(agent, tunnel, address, port, proxy, by_family.get(":" in address))
        for address in addresses
    ]


async def _look_from(
    log: Log, agent: AgentMethods, tunnel: Tunnel, via: ProxyRoute, sources: tuple[str, ...]
) -> Conclusion:
    log.warnings += warn_of_port(tunnel)
    clocks.look_at_clock(agent.skew_s, tunnel.identity, log)
    first = tunnel.host if via.proxy is None else via.proxy.host
    addresses, what = await dialling.look_up(agent, first, log, proxy=via.proxy is not None)
    if what is not None:
        log.skip("not-possible", "stopped: names failed", *STAGES)
        return what
    reaches = _make_reaches(agent, tunnel, addresses[:MOST_ADDRESSES], via.proxy, sources)
    return combine(tunnel, log, await asyncio.gather(*map(look_at, reaches)))


async def look_at(reach: Reach) -> AddressLook:
    """Give every stage after the name, for one address.

    The first sign of lost packets begins a count beside the stages; they end where it finds loss,
    whatever they have found, and have no verdict before it has ended.
    """
    log = Log()
    async with Tasks() as tasks:
        looking = tasks.begin(_look_at_stages(reach, log))
        counting = tasks.begin(count_losses(reach))
        await asyncio.wait({looking, counting}, return_when=asyncio.FIRST_COMPLETED)
        if reach.doubted.is_set():
            what = conclude_loss(reach, lossy := log.until("tcp"), await counting)
            if what is not None:
                return _finish_look(reach, lossy, what)
            log.warnings += lossy.warnings
        return _finish_look(reach, log, await looking)


def _finish_look(reach: Reach, log: Log, what: Conclusion) -> AddressLook:
    """Fill in the stages that were skipped, and the flow."""
    failed = [stage.name for stage in log.stages if stage.status == "bad"]
    if failed:
        log.skip("not-possible", f"stopped: {failed[0]} failed", *STAGES[STAGES.index(failed[0]) :])
    log.skip("not-needed", "not needed", *ADDRESS_STAGES)
    log.stages.sort(key=lambda stage: STAGES.index(stage.name))
    flow = (reach.address, f"tcp/{reach.port}")
    evidence = {**what.evidence, "flow": list(flow)}
    return AddressLook(reach, log, replace(what, evidence=evidence, flow=flow))


async def _look_at_stages(reach: Reach, log: Log) -> Conclusion:
    for look in (dialling.look_at_route, dialling.look_at_tcp, dialling.look_at_proxy):
        if (failed := await look(reach, log)) is not None:
            return failed
    hellos = await look_at_hellos(reach, log)
    if isinstance(hellos, Conclusion):
        return hellos
    small, large = hellos
    what = await look_at_answers(reach, log, small, large)
    if what.code not in (*REACHED, "KONN_H2_OK"):
        return what
    http2 = what.code != "KONN_REACHED_MTLS"
    return (
        await look_at_fan_out(reach, log, small.seen.chain[:1])
        or await look_at_hold(reach, log, http2)
        or what
    )
