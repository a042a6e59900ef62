"""What is rehearsed for the rows of a plan: flows of its own beside theirs, with the id ROW/WORD.

A rehearsal is a function of a block in ``with_rehearsals``; the probe stage and the judge have one
of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.model.inventory import Inventory
from netprobe.model.matrix import ChosenMatrix
from netprobe.model.plan import (
    BALANCER,
    MULTICAST,
    OVERLAY,
    REHEARSALS,
    SEGMENT,
    Block,
    Plan,
    Skipped,
    find_row,
)
from netprobe.model.ports import Ports, each, union
from netprobe.model.ports import text as ports_text
from netprobe.plan.balancers import list_stand_ins, make_balancers, note_unrehearsed
from netprobe.plan.cost import (
    HEAR_S,
    LONGEST_BALANCER_S,
    count_balancers,
    estimate_balancers_s,
    estimate_rehearsals_s,
    estimate_segments_s,
)
from netprobe.plan.planned import list_requirements
from netprobe.plan.segments import make_segments

ALL: Final = "all"
# One whose TCP fails is tried up to four times, and each time silence is waited for.
LONGEST_TRIAL_S = 15
VRRP: Final = "ipproto/112"
Maker = Callable[[Block], Iterator[Block | Skipped]]
_GENEVE: Final = "only VXLAN is rehearsed: netprobe plays no Geneve tunnel"


def read_rehearsals(text: str | None) -> tuple[str, ...]:
    """Read the value of ``--rehearse``. Raises RequestError with the list of those that exist."""
    if text is None:
        return ()
    words = REHEARSALS if text == ALL else tuple(dict.fromkeys(text.split(",")))
    unknown = [word for word in words if word not in REHEARSALS]
    if unknown:
        known = ", ".join(REHEARSALS)
        raise RequestError(
            f"--rehearse={text}: no rehearsal {unknown[0]!r}, expected one of: {known}"
        )
    return words


def with_rehearsals(
    plan: Plan, words: Iterable[str], chosen: Sequence[ChosenMatrix], inventory: Inventory
) -> Plan:
    """Give the plan with what is rehearsed of its rows; without words the plan itself."""
    words = tuple(words)
    makers: Mapping[str, Maker] = {
        OVERLAY: _make_overlay,
        SEGMENT: _make_multicast,
        BALANCER: partial(
            make_balancers,
            inventory=inventory,
            roles=plan.roles,
            stand_ins=list_stand_ins(chosen, inventory),
        ),
    }
    if not words:
        return plan
    blocks: list[Block] = []
    skipped: dict[Skipped, None] = {}
    for block in plan.blocks:
        blocks.append(block)
        for word in words if block.requirement.expect == "allowed" else ():
            for one in makers[word](block) if word in makers else ():
                if isinstance(one, Block):
                    blocks.append(one)
                else:
                    skipped[one] = None
    if SEGMENT in words:
        blocks += make_segments(plan, inventory)
    numbered = tuple(replace(block, index=index) for index, block in enumerate(blocks))
    played = [block for block in numbered if block.rehearsal is not None]
    made = replace(plan, blocks=numbered, skipped=(*plan.skipped, *skipped))
    notes = (*plan.notes, *(note_unrehearsed(made, inventory) if BALANCER in words else ()))
    if not played:
        nothing = f"--rehearse={','.join(words)}: no row of this plan has anything to rehearse"
        return replace(made, notes=(*notes, nothing))
    return replace(
        made,
        notes=(word_change(words), *notes),
        requirements=(*plan.requirements, *list_requirements(played)),
    )


def word_change(words: Iterable[str]) -> str:
    """Say what a run does to hosts: the first line of its output."""
    words = tuple(words)
    if words == (SEGMENT,):
        return (
            "--rehearse=segment asks the networks of hosts for addresses and DHCP servers, a frame "
            "for each; nothing is leased, no neighbour notes who asked (docs/rehearsal.md)"
        )
    return (
        f"--rehearse={','.join(words)} changes hosts for a moment: netprobe plays parts of the "
        "platform there, and removes all of it (docs/rehearsal.md)"
    )


def _make_overlay(block: Block) -> Iterator[Block | Skipped]:
    """Give the tunnels between the pairs of a row of VXLAN."""
    row = block.requirement
    if row.probe == "geneve":
        yield Skipped(block.matrix, f"{row.id}/{OVERLAY}", _GENEVE)
    if row.probe != "vxlan":
        return
    purpose = f"TCP through a VXLAN tunnel of the kernels ({row.id}: {ports_text(block.ports)}): "
    need = "both ends of a tunnel need an agent"
    yield from _make_pairs(block, OVERLAY, OVERLAY, need, purpose + row.purpose)


def _make_multicast(block: Block) -> Iterator[Block | Skipped]:
    """Give the ways of a row of VRRP, whose packets go to all routers at once."""
    if block.protocol == VRRP:
        yield from _make_pairs(
            block, SEGMENT, MULTICAST, "both ends of VRRP need an agent",
            f"VRRP's multicast: {block.requirement.purpose}",
        )  # fmt: skip


def _make_pairs(
    block: Block, word: str, probe: str, need: str, purpose: str
) -> Iterator[Block | Skipped]:
    """Give what is rehearsed between the pairs of a row; ``need``: why both ends must have an
    agent."""
    row = block.requirement
    for host in {host.name: host for host, _ in block.destinations}.values():
        if host.vantage.kind == "none":
            why = f"{need}, and the host is declared vantage: none"
            yield Skipped(block.matrix, f"{row.id}/{word}", why, destination=host.name)
    played = replace(
        block,
        requirement=replace(row, id=f"{row.id}/{word}", probe=probe, any_of=None, purpose=purpose),
        destinations=tuple(end for end in block.destinations if end[0].vantage.kind != "none"),
        local=False,
        any_of=None,
        also=tuple(replace(one, requirement=f"{one.requirement}/{word}") for one in block.also),
    )
    if played.pair_count():
        yield played


def note_cost(plan: Plan) -> Plan:
    """Give the plan with a note of what is done, for how long, and what is touched.

    Only now: a covering plan has fewer tunnels than rows have pairs.
    """
    notes = [
        word(some)
        for name, word in (
            (OVERLAY, _word_tunnels),
            (BALANCER, _word_balancers),
            (SEGMENT, _word_segments),
            (MULTICAST, _word_multicast),
        )
        if (some := [block for block in plan.blocks if block.rehearsal == name])
    ]
    return replace(plan, notes=(*plan.notes, *notes)) if notes else plan


def _word_tunnels(tunnels: Sequence[Block]) -> str:
    count = sum(block.flow_count() for block in tunnels)
    about = max(1, round(estimate_rehearsals_s(tunnels)))
    return (
        f"--rehearse=overlay: {count:,} {'tunnel' if count == 1 else 'tunnels'}, about {about} s "
        f"in all; up to {LONGEST_TRIAL_S} s for one that carries no TCP. For each, both hosts open "
        f"UDP port {_word_ports(tunnels)} and a VXLAN device in a network namespace that "
        "the agent alone holds; 400 kB go through. No device, route or setting of the hosts "
        "changes; the kernel's module vxlan may stay loaded"
    )


def _word_balancers(blocks: Sequence[Block]) -> str:
    count = count_balancers(blocks)
    ports = sorted({port for block in blocks for port in _list_back_ports(block)})
    hosts = {host.name: None for block in blocks for host in block.back_ends}
    about_s, most_s = estimate_balancers_s(blocks)
    sharing = f", {most_s} s for those that share back ends' ports and follow one another"
    return (
        f"--rehearse=balancer: {count} {'port' if count == 1 else 'ports'} of balancers, about "
        f"{about_s} s in all; up to {LONGEST_BALANCER_S} s for one that lacks a back end or is "
        f"slow{sharing if most_s > LONGEST_BALANCER_S else ''}. {', '.join(hosts)} open "
        f"TCP port {', '.join(map(str, ports))} at all of their addresses for that time, and "
        "answer with certificates that exist in memory only; sources and back ends dial the "
        "balancer, its health checks find the back ends up, and where `health:` says what they "
        "ask, one back end after the other down for a while"
    )


def _word_segments(blocks: Sequence[Block]) -> str:
    count = sum(block.pair_count() for block in blocks)
    return (
        f"--rehearse=segment: {count} {'address' if count == 1 else 'addresses'}, about "
        f"{estimate_segments_s(blocks)} s in all. Agents listen for VRRP, CARP and HSRP, and ask "
        "once for each address who has it, by a frame without an address of who asks: neighbours "
        "answer and note nothing. Of each network one agent asks once for DHCP servers, and "
        "requests nothing of them. An address that a host is just being given (IPv6: tentative) "
        "would be refused there meanwhile"
    )


def _word_multicast(blocks: Sequence[Block]) -> str:
    count = sum(block.pair_count() for block in blocks)
    return (
        f"--rehearse=segment: VRRP's multicast on {count} {'way' if count == 1 else 'ways'}, about "
        f"{HEAR_S} s in all. Hosts join its group, as routers do, so that switches hear a report "
        "of IGMP or MLD, and send three packets of the id 0, which no router can have"
    )


def _list_back_ports(block: Block) -> Iterator[int]:
    for port in each(block.ports):
        for host, _ in block.destinations:
            yield from host.list_back_ports(port)


def _word_ports(tunnels: Iterable[Block]) -> str:
    """Say which ports the tunnels have, and which rows list them."""
    rows: dict[tuple[str, str], Ports] = {}
    for block in tunnels:
        row = (block.matrix, find_row(block.requirement.id))
        rows[row] = union((rows.get(row, ()), block.ports))
    return ", ".join(
        f"{ports_text(ports)} (row {row} of {matrix})" for (matrix, row), ports in rows.items()
    )
