"""One worker's way to the Konnectivity server, stage by stage, until a stage settles it.

It never registers as an agent: ``AgentService/Connect`` is not called, whatever the options are.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from netprobe.konnectivity import clocks, dialling, identity
from netprobe.konnectivity.answers import REACHED, look_at_answers
from netprobe.konnectivity.combining import combine
from netprobe.konnectivity.fanout import look_at_fan_out
from netprobe.konnectivity.findings import Conclusion, Log, diagnosis
from netprobe.konnectivity.hellos import look_at_hellos
from netprobe.konnectivity.holding import look_at_hold
from netprobe.konnectivity.loss import conclude_loss, count_losses
from netprobe.konnectivity.names import look_up
from netprobe.konnectivity.past_proxy import weigh_no_proxy
from netprobe.konnectivity.reach import Reach, source_for
from netprobe.konnectivity.request import ProxyRoute, Tunnel, warn_of_port
from netprobe.model.konnectivity import ADDRESS_STAGES, STAGES, Diagnosis
from netprobe.probe.agents.agent import AgentMethods

MOST_ADDRESSES = 8


async def diagnose(
    worker: str, agent: AgentMethods, tunnel: Tunnel, via: ProxyRoute, sources: tuple[str, ...]
) -> Diagnosis:
    """Look from one worker. Raises AgentError where its agent is lost."""
    found = await _look_from(worker, agent, tunnel, via, sources)
    return await weigh_no_proxy(found, agent, tunnel, via, sources)


async def _look_from(
    worker: str, agent: AgentMethods, tunnel: Tunnel, via: ProxyRoute, sources: tuple[str, ...]
) -> Diagnosis:
    log = Log()
    log.warnings += warn_of_port(tunnel)
    clocks.look_at_clock(agent.skew_s, tunnel.identity, log)
    first = tunnel.host if via.proxy is None else via.proxy.host
    addresses, what = await look_up(agent, first, log, proxy=via.proxy is not None)
    if what is not None:
        log.skip("not-possible", "stopped: names failed", *STAGES)
        return diagnosis(worker, via.said, log, what)
    port = tunnel.port if via.proxy is None else via.proxy.port
    reaches = [
        Reach(agent, tunnel, address, port, via.proxy, source_for(sources, address))
        for address in addresses[:MOST_ADDRESSES]
    ]
    results = await asyncio.gather(*(look_at(reach) for reach in reaches))
    return combine(worker, via.said, tunnel, log, tuple(zip(reaches, results, strict=True)))


async def look_at(reach: Reach) -> tuple[Log, Conclusion]:
    """Give every stage after the name, for one address.

    The first sign of lost packets begins a count beside the stages; they end where it finds loss,
    whatever they have found, and have no verdict before it has ended.
    """
    log = Log()
    looking = asyncio.create_task(_look_at_stages(reach, log))
    counting = asyncio.create_task(count_losses(reach))
    try:
        await asyncio.wait({looking, counting}, return_when=asyncio.FIRST_COMPLETED)
        if reach.doubted.is_set():
            what = conclude_loss(reach, lossy := log.until("tcp"), await counting)
            if what is not None:
                return _finish_log(lossy), _name_flow(reach, what)
            log.warnings += lossy.warnings
        what = await looking
        return _finish_log(log), _name_flow(reach, what)
    finally:
        looking.cancel()
        counting.cancel()
        await asyncio.gather(looking, counting, return_exceptions=True)


async def _look_at_stages(reach: Reach, log: Log) -> Conclusion:
    return (
        await dialling.look_at_route(reach, log)
        or await dialling.look_at_tcp(reach, log)
        or await dialling.look_at_proxy(reach, log)
        or await _look_behind_tcp(reach, log)
    )


def _name_flow(reach: Reach, what: Conclusion) -> Conclusion:
    flow = {"flow": [reach.address, f"tcp/{reach.port}"]}
    return replace(what, evidence={**what.evidence, **flow})


def _finish_log(log: Log) -> Log:
    """Fill in the stages that were skipped."""
    failed = [stage.name for stage in log.stages if stage.status == "bad"]
    if failed:
        log.skip("not-possible", f"stopped: {failed[0]} failed", *STAGES[STAGES.index(failed[0]) :])
    log.skip("not-needed", "not needed", *ADDRESS_STAGES)
    log.stages.sort(key=lambda stage: STAGES.index(stage.name))
    return log


async def _look_behind_tcp(reach: Reach, log: Log) -> Conclusion:
    hellos = await look_at_hellos(reach, log)
    if isinstance(hellos, Conclusion):
        return hellos
    small, large = hellos
    what = await look_at_answers(reach, log, small, large)
    if what.code not in (*REACHED, "KONN_H2_OK"):
        return what
    hello = identity.small_hello(reach.tunnel.sni)
    http2 = what.code != "KONN_REACHED_MTLS"
    return (
        await look_at_fan_out(reach, log, hello, small.seen.chain[:1])
        or await look_at_hold(reach, log, hello, http2)
        or what
    )
