"""Every worker at once: start its agent, diagnose from there, and end it, whatever happens."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from netprobe.errors import AgentError, RequestError
from netprobe.konnectivity.clocks import compare_clocks
from netprobe.konnectivity.combining import causes, compare_names
from netprobe.konnectivity.findings import Conclusion, Log, diagnosis
from netprobe.konnectivity.request import ProxyRoute, Tunnel, choose_via
from netprobe.konnectivity.stages import diagnose
from netprobe.model.inventory import Host, Inventory, Vantage
from netprobe.model.konnectivity import STAGES, Diagnosis, TunnelReport
from netprobe.model.names import word_unknown
from netprobe.model.printable import word_command
from netprobe.model.run import Events
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.live_fleet import open_fleet
from netprobe.protocols.services.http_exchange import load_http
from netprobe.signals import run_to_end
from netprobe.vantage.launch import Launcher

LOCAL = Host("this host", (), (), Vantage("local"))
WORKER = "worker"
FORKS = 50


def choose_hosts(inventory: Inventory, words: Sequence[str]) -> tuple[Host, ...]:
    """Choose the hosts that ``--from`` names, by name or role; without it those of role ``worker``.

    Raises RequestError where a word is unknown or no host is left.
    """
    roles = sorted({role for host in inventory.hosts for role in host.roles})
    known = {host.name for host in inventory.hosts} | set(roles)
    for word in words:
        if word not in known:
            raise RequestError(f"--from {word}: {word_unknown('host or role', word, known)}")
    wanted = set(words or (WORKER,))
    hosts = tuple(h for h in inventory.hosts if h.name in wanted or wanted & set(h.roles))
    if not hosts:
        raise RequestError(
            f"the inventory has no host of role {WORKER}: say from where with --from ROLE or "
            f"--from HOST; roles: {', '.join(roles) or 'none'}"
        )
    return hosts


def run(
    tunnel: Tunnel,
    hosts: Sequence[Host],
    proxy: str,
    inventories: Sequence[str],
    launcher: Launcher,
    events: Events,
) -> TunnelReport:
    """Diagnose from every host. Raises KeyboardInterrupt where a signal ended it.

    ``proxy`` is ``none``, ``env`` or a URL. ``inventories`` are the files that name the workers,
    none for this host.
    """
    # Proxies are decided first: a URL that is wrong is found before anything starts.
    vias = {host.name: choose_via(tunnel, proxy, host, os.environ) for host in hosts}
    started, begun_s = datetime.now(UTC), time.monotonic()
    found = run_to_end(_diagnose_all(tunnel, hosts, vias, launcher, events))
    diagnoses = tuple(
        replace(one, explain=word_explain(one, inventories))
        for one in compare_names(tunnel.host, found)
    )
    return TunnelReport(
        server=tunnel.host,
        port=tunnel.port,
        publishing=tunnel.publishing,
        flavour=tunnel.flavour,
        hostname=tunnel.sni,
        started_at=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        elapsed_s=round(time.monotonic() - begun_s, 3),
        diagnoses=diagnoses,
        causes=causes(diagnoses),
        notes=compare_clocks(diagnoses),
    )


def word_explain(one: Diagnosis, inventories: Sequence[str]) -> str:
    """Word the command that follows this flow hop by hop; "" where nothing was silent.

    ``explain`` takes its source from an inventory: without one the words have a place for it.
    """
    if one.flow is None:
        return ""
    worker = one.worker if inventories else "THIS-HOST"
    files = [word for file in inventories or ("INVENTORY",) for word in ("-i", file)]
    return word_command(["netprobe", "explain", worker, *one.flow, *files])


async def _diagnose_all(
    tunnel: Tunnel,
    hosts: Sequence[Host],
    vias: Mapping[str, ProxyRoute],
    launcher: Launcher,
    events: Events,
) -> tuple[Diagnosis, ...]:
    slots = asyncio.Semaphore(FORKS)

    async def diagnose_from(fleet: Fleet, host: Host) -> Diagnosis:
        via = vias[host.name]
        sources = tuple(address.text for address in host.source_addresses)
        async with slots:
            try:
                agent = fleet.agent(host)
                await agent.wait_ready()
                return await diagnose(host.name, agent, tunnel, via, sources)
            except AgentError as error:
                return _not_tested(host, via, error)

    # Streams need no rights: an agent that needs no sudo cannot fail by it.
    plain = [replace(host, become=None) for host in hosts]
    async with open_fleet(plain, launcher, events.host) as fleet:
        await load_http()
        return tuple(await asyncio.gather(*(diagnose_from(fleet, host) for host in hosts)))


def _not_tested(host: Host, via: ProxyRoute, error: AgentError) -> Diagnosis:
    log = Log()
    log.skip("not-possible", "no agent", *STAGES)
    words = str(error).removeprefix(f"{host.name}: ")
    fix = "repair the way onto the worker (`netprobe check --hosts` tries it), then run again"
    return diagnosis(host.name, via.said, log, Conclusion("NOT_TESTED", words, {"fix": fix}))
