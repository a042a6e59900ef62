"""Rows of a plan that contradict each other: one needs a port that must not answer by another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netprobe.model.names import names_text
from netprobe.model.plan import Block
from netprobe.model.ports import Ports, intersect, normalise
from netprobe.model.ports import text as ports_text

NAMES_SHOWN = 5

# Two rows, the one that allows first: matrix and id of each.
RowPair = tuple[str, str, str, str]


def word_contradictions(blocks: Sequence[Block]) -> Iterator[str]:
    """Give a note for each two rows of which one must fail, whatever the network does."""
    counting = [one for one in blocks if one.waiver is None]
    denied = [one for one in counting if one.requirement.expect == "denied"]
    allowed = [one for one in counting if one.requirement.expect == "allowed"]
    found: dict[RowPair, dict[str, Ports]] = {}
    hosts: dict[RowPair, dict[str, None]] = {}
    optional: set[tuple[str, str]] = set()
    for block in denied:
        for other in allowed:
            ends = _list_common_ends(other, block)
            common = intersect(other.ports, block.ports)
            if ends and common:
                rows = (other.matrix, other.requirement.id, block.matrix, block.requirement.id)
                ports = found.setdefault(rows, {})
                known = ports.get(block.protocol, ())
                ports[block.protocol] = normalise((*known, *common))
                hosts.setdefault(rows, {}).update(dict.fromkeys(ends))
                optional |= {_name_row(one) for one in (block, other) if one.requirement.optional}
    for rows, ports in found.items():
        yield f"{_word_contradiction(rows, ports, list(hosts[rows]))}: {_advise(rows, optional)}"


def _list_common_ends(allowed: Block, denied: Block) -> list[str]:
    """List the destinations that some source has in both, by any address of theirs."""
    if (allowed.protocol, allowed.family) != (denied.protocol, denied.family):
        return []
    sources = {host.name for host in allowed.sources} & {host.name for host in denied.sources}
    known = {host.name for host, _ in denied.destinations}
    ends = dict.fromkeys(host.name for host, _ in allowed.destinations if host.name in known)
    return [end for end in ends if sources - {end}]


def _word_contradiction(rows: RowPair, ports: dict[str, Ports], hosts: Sequence[str]) -> str:
    allowing, needed, denying, refused = rows
    wires = "; ".join(f"{name} {ports_text(some)}" for name, some in ports.items())
    return (
        f"contradiction: {allowing}: {needed} needs {wires} of "
        f"{names_text(hosts, NAMES_SHOWN)}, which {denying}: {refused} says must not answer"
    )


def _name_row(block: Block) -> tuple[str, str]:
    return (block.matrix, block.requirement.id)


def _advise(rows: RowPair, optional: set[tuple[str, str]]) -> str:
    """Say what to do; an optional row fails, and decides nothing."""
    free = [f"{matrix}: {row}" for matrix, row in (rows[:2], rows[2:]) if (matrix, row) in optional]
    if free:
        return f"{' and '.join(free)} is optional, and does not decide"
    return "one of the two fails whatever is done; waive one of them, or correct a setting"
