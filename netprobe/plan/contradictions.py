"""Rows of a plan that contradict each other: one needs a port that must not answer by another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from netprobe.model.names import names_text
from netprobe.model.plan import Block
from netprobe.model.ports import Ports, intersect, normalise
from netprobe.model.ports import text as ports_text

NAMES_SHOWN = 5

RowName = tuple[str, str]


class _Contradiction(Struct):
    """A row that needs ports, and rows of one matrix by which they must not answer."""

    needing: RowName
    hosts: tuple[str, ...]
    denying: dict[RowName, None] = field(default_factory=dict)
    ports: dict[str, Ports] = field(default_factory=dict)

    def add_ports(self, protocol: str, more: Ports) -> None:
        """Add what both have."""
        self.ports[protocol] = normalise((*self.ports.get(protocol, ()), *more))


def word_contradictions(blocks: Sequence[Block]) -> Iterator[str]:
    """Give a note for each row that must fail, or others must, whatever the network does."""
    counting = [one for one in blocks if one.waiver is None]
    denied = [one for one in counting if one.requirement.expect == "denied"]
    allowed = [one for one in counting if one.requirement.expect == "allowed"]
    found: dict[tuple[RowName, str, tuple[str, ...]], _Contradiction] = {}
    optional: set[RowName] = set()
    for block in denied:
        for other in allowed:
            ends = tuple(_list_common_ends(other, block))
            common = intersect(other.ports, block.ports)
            if ends and common:
                key = (_name_row(other), block.matrix, ends)
                one = found.setdefault(key, _Contradiction(_name_row(other), ends))
                one.denying[_name_row(block)] = None
                one.add_ports(block.protocol, common)
                optional |= {_name_row(row) for row in (block, other) if row.requirement.optional}
    for one in found.values():
        yield f"{_word_contradiction(one)}: {_advise_rows(one, optional)}"


def _list_common_ends(allowed: Block, denied: Block) -> list[str]:
    """List the destinations that some source has in both, by any address of theirs."""
    if (allowed.protocol, allowed.family) != (denied.protocol, denied.family):
        return []
    sources = {host.name for host in allowed.sources} & {host.name for host in denied.sources}
    known = {host.name for host, _ in denied.destinations}
    ends = dict.fromkeys(host.name for host, _ in allowed.destinations if host.name in known)
    return [end for end in ends if sources - {end}]


def _name_row(block: Block) -> RowName:
    return (block.matrix, block.requirement.id)


def _word_contradiction(one: _Contradiction) -> str:
    wires = "; ".join(f"{name} {ports_text(some)}" for name, some in one.ports.items())
    matrix, _ = next(iter(one.denying))
    refusing = f"{matrix}: {', '.join(row for _, row in one.denying)}"
    say = "says" if len(one.denying) == 1 else "say"
    return (
        f"contradiction: {': '.join(one.needing)} needs {wires} of "
        f"{names_text(one.hosts, NAMES_SHOWN)}, which {refusing} {say} must not answer"
    )


def _advise_rows(one: _Contradiction, optional: set[RowName]) -> str:
    """Say what to do; an optional row fails, and decides nothing."""
    if one.needing in optional or optional.issuperset(one.denying):
        free = [one.needing] if one.needing in optional else [*one.denying]
        rows = ", ".join(": ".join(row) for row in free)
        return f"{rows} {'is' if len(free) == 1 else 'are'} optional, which decides nothing"
    return "one of the two fails whatever is done; waive one of them, or correct a setting"
