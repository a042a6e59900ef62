"""What several matrices demand alike becomes one flow, which has all of their names and purposes.

Blocks are cut where they overlap only in part: no flow of two matrices stands twice then. Rows of
one matrix stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from netprobe.model.inventory import Address, Host
from netprobe.model.matrix import Requirement, Stops, rank_weight
from netprobe.model.plan import PATH_MTU, Block
from netprobe.model.ports import Ports, cut_entries, intersect, normalise, subtract
from netprobe.model.result import PORTLESS, Also

BlockEnd = tuple[Host, Address]


def merge_blocks(blocks: Sequence[Block]) -> list[Block]:
    """Give blocks in which no two matrices have the same flow, in the order of the given ones.

    The alphabetically first matrix of a flow keeps it.
    """
    names = sorted({block.matrix for block in blocks})
    if len(names) < 2:
        return [*blocks]
    pieces: list[_Piece] = []
    numbered = [
        _Piece(number, part)
        for number, block in enumerate(blocks)
        for part in _part_local(block, blocks)
    ]
    for name in names:
        mine = [piece for piece in numbered if piece.block.matrix == name]
        pieces = _take_in(pieces, mine)
    return [piece.block for piece in sorted(pieces, key=lambda piece: piece.number)]


class _Piece(Struct, frozen=True):
    """A part of a block, and the number of the block."""

    number: int
    block: Block


class Overlap(Struct, frozen=True):
    """The hosts and the ports that two blocks have in common."""

    sources: frozenset[str]
    ends: frozenset[tuple[str, str]]
    ports: Ports


def find_overlap(one: Block, other: Block, *, same_ports: bool = True) -> Overlap | None:
    """Give what two blocks of one protocol and family have in common; None where it is nothing."""
    ports = intersect(normalise(one.ports or PORTLESS), normalise(other.ports or PORTLESS))
    if same_ports and not ports:
        return None
    sources = _source_names(one) & _source_names(other)
    ends = _end_names(one) & _end_names(other)
    if not sources or not ends:
        return None
    both_local = one.local and other.local
    if not both_local and len(sources) == 1 and all(name in sources for name, _ in ends):
        return None  # of a host to itself alone
    return Overlap(sources, ends, ports)


def _source_names(block: Block) -> frozenset[str]:
    return frozenset(host.name for host in block.sources)


def _end_names(block: Block) -> frozenset[tuple[str, str]]:
    return frozenset((host.name, address.text) for host, address in block.destinations)


def _part_local(block: Block, blocks: Sequence[Block]) -> Iterator[Block]:
    """Part a block with flows of hosts to themselves where others share all but these."""
    others = (one for one in blocks if not one.local and one.matrix != block.matrix)
    if not block.local or not any(
        _is_alike(one, block) and find_overlap(one, block) for one in others
    ):
        yield block
        return
    between = replace(block, local=False)
    if between.pair_count():
        yield between
    for host in block.sources:
        own = tuple(end for end in block.destinations if end[0].name == host.name)
        if own:
            yield replace(block, sources=(host,), destinations=own)


def _is_alike(one: Block, other: Block) -> bool:
    """Tell whether a flow of both would be sent alike."""
    if (one.protocol, one.family) != (other.protocol, other.family):
        return False
    left, right = one.requirement, other.requirement
    if left.expect != right.expect or (left.id == PATH_MTU) != (right.id == PATH_MTU):
        return False
    same_probe = left.probe is None or right.probe is None or left.probe == right.probe
    return same_probe and (not one.sni or not other.sni or one.sni == other.sni)


def _take_in(pieces: list[_Piece], mine: Iterable[_Piece]) -> list[_Piece]:
    """Give the pieces with those of one more matrix: what they have already gets its names."""
    added: list[_Piece] = []
    for new in mine:
        left = [new.block]
        further: list[_Piece] = []
        for piece in pieces:
            alike = _is_alike(piece.block, new.block)
            overlap = find_overlap(piece.block, new.block) if alike else None
            if overlap is None:
                further.append(piece)
                continue
            shared = _keep_part(piece.block, overlap)
            further.append(_Piece(piece.number, join_rows(shared, new.block)))
            further += (_Piece(piece.number, rest) for rest in _cut_off(piece.block, overlap))
            left = [rest for block in left for rest in _cut_off(block, overlap)]
        pieces = further
        added += (_Piece(new.number, block) for block in left)
    return [*pieces, *added]


def _keep_part(block: Block, overlap: Overlap) -> Block:
    return replace(
        block,
        sources=tuple(host for host in block.sources if host.name in overlap.sources),
        destinations=_choose_ends(block, overlap, inside=True),
        ports=cut_entries(block.ports, overlap.ports),
    )


def _cut_off(block: Block, overlap: Overlap) -> Iterator[Block]:
    """Give the block without the overlap: other sources, then other ends, then other ports."""
    common = tuple(host for host in block.sources if host.name in overlap.sources)
    others = tuple(host for host in block.sources if host.name not in overlap.sources)
    ends = _choose_ends(block, overlap, inside=True)
    rest = tuple(part for entry in block.ports for part in subtract((entry,), overlap.ports))
    parts = [
        replace(block, sources=others),
        replace(block, sources=common, destinations=_choose_ends(block, overlap, inside=False)),
        *([replace(block, sources=common, destinations=ends, ports=rest)] if rest else []),
    ]
    yield from (part for part in parts if part.pair_count())


def _choose_ends(block: Block, overlap: Overlap, *, inside: bool) -> tuple[BlockEnd, ...]:
    return tuple(
        (host, address)
        for host, address in block.destinations
        if ((host.name, address.text) in overlap.ends) == inside
    )


def join_rows(one: Block, other: Block) -> Block:
    """Give the first block with the names of the second, and with whatever is stricter in both."""
    rows = (one, other)
    excused = all(block.requirement.optional or block.waiver for block in rows)
    waivers = [block.waiver for block in rows if block.waiver is not None]
    added = Also(other.matrix, other.requirement.id, other.requirement.purpose)
    return replace(
        one,
        also=tuple(dict.fromkeys((*one.also, added))),
        requirement=_join_requirements(one, other),
        waiver=waivers[0] if excused and waivers else None,
        warnings=tuple(dict.fromkeys((*one.warnings, *other.warnings))),
        sni=one.sni or other.sni,
        existing=one.existing or other.existing,
        names=tuple(dict.fromkeys((*one.names, *other.names))),
        any_of=one.any_of or other.any_of,
        alone=_is_demanded_alone(one, other),
    )


def _is_demanded_alone(one: Block, other: Block) -> bool:
    """Tell whether a row without the group, or of another group, demands the flow, too."""
    if one.any_of is None and other.any_of is None:
        return False
    names = {block.any_of.name if block.any_of else None for block in (one, other)}
    return one.alone or other.alone or len(names) > 1


def _join_requirements(one: Block, other: Block) -> Requirement:
    first, second = one.requirement, other.requirement
    return replace(
        first,
        optional=first.optional and second.optional,
        probe=first.probe or second.probe,
        stops=_heavier_stops(one, other),
        process=tuple(dict.fromkeys((*first.process, *second.process))),
        binds="all" if "all" in (first.binds, second.binds) else first.binds or second.binds,
        persistence=first.persistence or second.persistence,
    )


def _heavier_stops(one: Block, other: Block) -> Stops | None:
    """Give what stops more, of those that decide where only one of them does."""
    rows = [one.requirement, other.requirement]
    deciding = [row for row in rows if not row.optional] or rows
    return min(deciding, key=lambda row: rank_weight(row.weight)).stops
