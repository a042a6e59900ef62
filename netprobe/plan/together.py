"""Whether the chosen matrices go together: notes on contradictions, and on lonely layers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from netprobe.model.matrix import CLAIMS_NOTHING, LEFT_TO_ANOTHER, ChosenMatrix, SettingRef
from netprobe.model.plan import Block
from netprobe.model.ports import text as ports_text
from netprobe.model.printable import word_command
from netprobe.plan.contradictions import word_contradictions
from netprobe.plan.merge import Overlap, find_overlap

# A cluster has one of these, on one port.
OVERLAYS = ("vxlan", "geneve", "ipip")

RowName = tuple[str, str]


def list_contradictions(chosen: Sequence[ChosenMatrix], blocks: Sequence[Block]) -> list[str]:
    """List what matrices say against each other, and what they lack; ``blocks`` are not merged."""
    return [
        *_list_lonely_layers(chosen),
        *_list_left_out(chosen),
        *_compare_claims(chosen),
        *word_contradictions(blocks),
        *dict.fromkeys(_compare_blocks(blocks)),
    ]


def _list_lonely_layers(chosen: Sequence[ChosenMatrix]) -> Iterator[str]:
    layers = [one.matrix.name for one in chosen if one.matrix.layer]
    if layers and len(layers) == len(chosen):
        are = "is a layer" if len(layers) == 1 else "are layers"
        yield (
            f"{' and '.join(layers)} {are}: the rows of the platform are missing; give its matrix "
            "too (`netprobe matrix list` has the platforms)"
        )


def _compare_claims(chosen: Sequence[ChosenMatrix]) -> Iterator[str]:
    for one, other in combinations(chosen, 2):
        for name in one.matrix.claims:
            values = [_read_claim(each, name) for each in (one, other)]
            if all(values) and values[0] != values[1]:
                told = [_word_claim(each, name) for each in (one, other)]
                yield (
                    f"contradiction: {told[0]}, and {told[1]}, and a cluster has one {name}: "
                    f"{_advise_claims((one, other), name)}"
                )


def _list_left_out(chosen: Sequence[ChosenMatrix]) -> Iterator[str]:
    """What each matrix that knows of it leaves to another one, and none has."""
    for name in dict.fromkeys(name for one in chosen for name in one.matrix.claims):
        knowing = [one for one in chosen if name in one.matrix.claims]
        leaving = [one for one in knowing if one.read_claim(name) in LEFT_TO_ANOTHER]
        if leaving and not any(_read_claim(one, name) for one in knowing):
            yield (
                f"{leaving[0].matrix.name} leaves the {name} to another matrix"
                f"{_name_setting(leaving[0], name)}, and no chosen one claims it: without "
                "a layer its rows are missing (`netprobe matrix list` has the layers)"
            )


def _read_claim(chosen: ChosenMatrix, name: str) -> str | None:
    """Read the value that a matrix claims; None where it claims nothing."""
    text = chosen.read_claim(name)
    return None if text in CLAIMS_NOTHING else text


def _word_claim(chosen: ChosenMatrix, name: str) -> str:
    by = _name_setting(chosen, name)
    return f"{chosen.matrix.name} says {name} {_read_claim(chosen, name)}{by}"


def _name_setting(chosen: ChosenMatrix, name: str) -> str:
    claim = chosen.matrix.claims[name]
    return f" (setting {claim.setting})" if isinstance(claim, SettingRef) else ""


def _advise_claims(chosen: Iterable[ChosenMatrix], name: str) -> str:
    """Advise the setting by which one of them leaves it to the other, where there is one."""
    for one in chosen:
        claim = one.matrix.claims[name]
        setting = one.matrix.settings[claim.setting] if isinstance(claim, SettingRef) else None
        free = [value for value in setting.values if value in CLAIMS_NOTHING] if setting else []
        if setting and free:
            given = f"{one.matrix.name}:{setting.name}={free[0]}"
            return f"{word_command(['--set', given])} leaves it to the other"
    return "leave one of the matrices out, or give both the same"


def _compare_blocks(blocks: Sequence[Block]) -> Iterator[str]:
    """Compare overlays of different matrices between the same hosts."""
    groups: dict[object, list[Block]] = {}
    for block in blocks:
        if block.requirement.probe in OVERLAYS:
            groups.setdefault(block.family, []).append(block)
    for one, other in (pair for some in groups.values() for pair in combinations(some, 2)):
        if one.matrix != other.matrix and _is_rival(one, other):
            yield from _word_rivals(one, other)


def _is_rival(one: Block, other: Block) -> bool:
    """Tell whether both are the overlay of the cluster, and only one can be."""
    first, second = one.requirement, other.requirement
    same = first.probe == second.probe and one.ports == other.ports
    return not same and first.expect == second.expect == "allowed"


def _word_rivals(one: Block, other: Block) -> Iterator[str]:
    overlap = find_overlap(one, other, same_ports=False)
    if overlap is None:
        return
    kinds = [str(block.requirement.probe) for block in (one, other)]
    rows = [f"{_name_row(block)} on {_word_wire(block)}" for block in (one, other)]
    hosts = _word_hosts(one, overlap)
    if kinds[0] == kinds[1]:
        words = f"are both {kinds[0]} {hosts}: a cluster has it on one port"
    else:
        words = f"are {kinds[0]} and {kinds[1]} {hosts}: a cluster has one of them, as a rule"
    yield f"contradiction: {rows[0]} and {rows[1]} {words}; see the settings of both"


def _word_wire(block: Block) -> str:
    return f"{block.protocol} {ports_text(block.ports)}" if block.ports else block.protocol


def _name_row(block: Block) -> str:
    return f"{block.matrix} ({block.requirement.id})"


def _word_hosts(block: Block, overlap: Overlap) -> str:
    """Name the first pair that both have."""
    pairs = (
        f"from {source.name} to {host.name}"
        for source in block.sources
        for host, address in block.destinations
        if source.name in overlap.sources
        and (host.name, address.text) in overlap.ends
        and source.name != host.name
    )
    return next(pairs, "of hosts to themselves")
