"""Where NO_PROXY sends a worker past its proxy, and that fails: does the proxy lead there?"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from netprobe.konnectivity.findings import Conclusion, Log, word_verdict
from netprobe.konnectivity.names import look_up
from netprobe.konnectivity.reach import Reach, open_tunnel, source_for
from netprobe.konnectivity.request import PassedProxy, ProxyRoute, Tunnel
from netprobe.model.konnectivity import STAGES, Diagnosis
from netprobe.probe.agents.agent import AgentMethods

WAIT_S = 5.0
# A fault of a later stage was answered by somebody: there is a direct way.
_LAST_STAGE = "mtu"


async def weigh_no_proxy(
    found: Diagnosis, agent: AgentMethods, tunnel: Tunnel, via: ProxyRoute, sources: tuple[str, ...]
) -> Diagnosis:
    """Name NO_PROXY where it decided for a way that fails; the proxy is tried then.

    Raises AgentError where the agent is lost.
    """
    past = via.passed
    if past is None or found.outcome == "ok" or _is_answered(found.stage):
        return found
    decided = f"NO_PROXY entry {past.entry} sends the agent past the proxy {past.proxy}"
    leads = await _proxy_leads_there(agent, tunnel, past, sources)
    asked = f"CONNECT {tunnel.host}:{tunnel.port} through it {'opens' if leads else 'fails too'}"
    because = f"{found.because}; {decided}, and {asked}"
    if not leads:
        remedy = f"{found.remedy}; or narrow NO_PROXY ({past.entry}) if the proxy is to be used"
        return replace(found, because=because, remedy=remedy)
    evidence = {
        **found.evidence,
        "entry": past.entry,
        "proxy": str(past.proxy),
        "host": tunnel.host,
        "port": tunnel.port,
        "direct": found.code,
        "direct_remedy": found.remedy,
        "direct_log": found.logs,
        "where": "worker",
    }
    return word_verdict(found, Conclusion("NO_PROXY_TOO_WIDE", because, evidence))


def _is_answered(stage: str | None) -> bool:
    return stage is None or STAGES.index(stage) > STAGES.index(_LAST_STAGE)


async def _proxy_leads_there(
    agent: AgentMethods, tunnel: Tunnel, past: PassedProxy, sources: tuple[str, ...]
) -> bool:
    """Ask the proxy for a tunnel; nothing is sent through it."""
    try:
        async with asyncio.timeout(WAIT_S):
            addresses, _ = await look_up(agent, past.proxy.host, Log(), proxy=True)
            for address in addresses:
                source = source_for(sources, address)
                reach = Reach(agent, tunnel, address, past.proxy.port, past.proxy, source)
                async with open_tunnel(reach) as (_, failure):
                    if failure is None:
                        return True
    except TimeoutError:
        pass
    return False
