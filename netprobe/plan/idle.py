"""Hosts that have a role and no flow: a note, since a setting may be wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from netprobe.model.names import names_text
from netprobe.model.plan import Block

NAMES_SHOWN = 5


def note_idle_hosts(roles: Mapping[str, Iterable[str]], blocks: Sequence[Block]) -> Iterator[str]:
    """Note the hosts with roles that stand in no block, where others do."""
    busy = {host.name for block in blocks for host in block.sources}
    busy |= {host.name for block in blocks for host, _ in block.destinations}
    idle = [name for name, some in roles.items() if some and name not in busy]
    if busy and idle:
        names = names_text(idle, NAMES_SHOWN)
        listed = ", ".join(dict.fromkeys(role for name in idle for role in roles[name]))
        yield (
            f"nothing is tested from or to {names}: with these settings and hosts no row for the "
            f"role {listed} is left; `netprobe plan` lists what is skipped and why"
        )
