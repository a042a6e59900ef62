"""Whose port it is: what a process that holds a required port means before the installation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from msgspec.structs import replace

from netprobe.agent.wire.frames import PROCESS_NAME
from netprobe.model.evidence import Evidence
from netprobe.model.ports import PortRange, Ports, normalise
from netprobe.model.ports import text as ports_text
from netprobe.model.result import Result
from netprobe.protocols import protocol_for
from netprobe.protocols.services.services import service_for

# The kernel keeps so much of the name of a process (TASK_COMM_LEN, less the NUL).
COMM_LENGTH = 15

HolderWord = Literal[
    "ours", "live", "taken", "hidden", "other-run", "loopback", "bound", "free", "closed",
    "unwatched", "unknown"
]  # fmt: skip


def must_run(evidence: Evidence, live: bool) -> bool:
    """Tell whether a service is supposed to run there already.

    ``live`` says so of everything, the matrix of what exists before the installation.
    """
    return live or evidence.flow.block.existing


def holder_word(evidence: Evidence, live: bool) -> HolderWord:
    """Give the listener column of the tables.

    Only before the installation somebody else's process is in the way, and only a process that
    neither answers nor is listed as the row's service; a raw socket takes nothing from others.
    """
    listener = evidence.listener
    runs = must_run(evidence, live) or evidence.platform_runs
    has_ports = evidence.flow.block.protocol in ("tcp", "udp")
    state = "unknown" if listener.state == "lost" else listener.state
    if state == "unknown" and has_ports and not runs:
        return "unwatched"
    if state == "closed" and not runs:
        return "free"
    if state != "live" or not has_ports:
        return state
    if PROCESS_NAME in listener.processes:
        return "other-run"
    if runs:
        return "live"
    listed = evidence.flow.block.requirement.process
    if _is_listed(listener.processes, listed):
        return "live"
    return "hidden" if listed and not listener.processes else "taken"


def judge_beside(result: Result, evidence: Evidence) -> Result:
    """Say of a way that is open that the row's program may find its port held all the same.

    Our listener has the flow's own address; a process holds the port on another one of the host. A
    program that wants all addresses cannot start beside it. On loopback it is often the row's own
    service, or a part of it, so that it takes the matrix to say that it is in nobody's way.
    """
    listener, requirement = evidence.listener, evidence.flow.block.requirement
    if listener.beside is None or result.verdict != "pass" or result.expect == "denied":
        return result
    if requirement.binds == "all" and not _is_listed(listener.processes, requirement.process):
        return replace(
            result, verdict="blocked", reason="port-taken", proof="none", where=("service",),
            because=f"{result.because}; but {listener.beside} holds the port before the "
            "installation, and the row's program wants it on all addresses (binds: all)",
            holder=listener.beside,
        )  # fmt: skip
    if not listener.beside_loopback:
        return result
    if requirement.binds == "address":
        on_loopback = (
            f"on {result.destination} the port is held on loopback only: {listener.beside}; the "
            "row's program listens on one address alone (binds: address)"
        )
        return replace(result, warnings=(*result.warnings, on_loopback))
    return replace(
        result, verdict="inconclusive", reason="loopback-holder", proof="none", where=("service",),
        because=f"the way is open ({result.because}); but {listener.beside} holds the port on "
        "loopback, and the matrix does not say whether the row's program wants all addresses "
        "(binds: all) or one (binds: address)",
        holder=listener.beside,
    )  # fmt: skip


# What ``check --hosts`` tells of a holder, by its word.
_FACTS: Final[dict[HolderWord, str]] = {
    "taken": "taken", "other-run": "other_run", "hidden": "doubtful", "loopback": "doubtful",
}  # fmt: skip


def say_held(flows: Iterable[Evidence]) -> dict[str, tuple[str, ...]]:
    """Judge the held ports of a host before anything is probed, as fields of ``HostFacts``.

    ``held`` has a phrase for each holder; ``taken``, ``other_run``, ``unasked`` and ``doubtful``
    those of ports that are in the way, or may be; a run asks an ``unasked`` one who it is. What
    does not decide a run is never in the way.
    """
    words: dict[tuple[str, str, Ports], set[str]] = {}
    for one in flows:
        block = one.flow.block
        decides = not block.requirement.optional and block.waiver is None
        fact = _find_fact(one) if decides else None
        if fact == "taken" and one.listener.state == "live" and _may_show_itself(one):
            fact = "unasked"
        some = words.setdefault((str(one.listener.owner), block.protocol, one.ports), set())
        some.update(() if fact is None else (fact,))
    holders: dict[tuple[str, frozenset[str]], dict[str, list[PortRange]]] = {}
    for (owner, protocol, ports), some in words.items():
        # Where another row is certain that it is in the way, no answer helps.
        kinds = frozenset(some - {"unasked"} if "taken" in some else some)
        holders.setdefault((owner, kinds), {}).setdefault(protocol, []).extend(ports)
    facts: dict[str, list[str]] = {name: [] for name in ("held", "unasked", *_FACTS.values())}
    for (owner, kinds), held in holders.items():
        for fact in ("held", *kinds):
            facts[fact].append(f"{_word_ports(held)}: {owner}")
    return {fact: tuple(sorted(phrases)) for fact, phrases in facts.items()}


def _find_fact(evidence: Evidence) -> str | None:
    word = holder_word(evidence, live=False)
    if word == "loopback" and not must_run(evidence, live=False) and not evidence.platform_runs:
        binds = evidence.flow.block.requirement.binds
        return {"all": "taken", "address": None, None: "doubtful"}[binds]
    return _FACTS.get(word)


def _word_ports(held: Mapping[str, list[PortRange]]) -> str:
    """Word ports of several protocols: ``tcp 2379-2380, 6443; udp 8472``."""
    told = sorted(held.items())
    return "; ".join(f"{name} {ports_text(normalise(ranges))}" for name, ranges in told)


def _may_show_itself(evidence: Evidence) -> bool:
    """Tell whether a run asks the holder something that only the row's service answers."""
    block = evidence.flow.block
    probe = block.requirement.probe
    service = service_for(probe)
    if block.protocol == "tcp" and service is not None:
        return not service.vague
    family = 6 if ":" in evidence.address else 4
    protocol = protocol_for(probe)
    return not protocol.one_way and protocol.service_request(block.protocol, family) is not None


def _is_listed(processes: Iterable[str], listed: Iterable[str]) -> bool:
    """Tell whether the matrix lists a process, by its program file or by the kernel's word."""
    names = {short for name in listed for short in (name, name[:COMM_LENGTH])}
    return not names.isdisjoint(processes)
