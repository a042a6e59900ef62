"""What a row asks of its flows, as a short word: rows of two runs with one word ask the same.

The ends and the ports of a flow are no part of it; of hosts only what else changes an answer is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256

from netprobe.model.inventory import Host
from netprobe.model.matrix import probe_to_file
from netprobe.model.plan import Block
from netprobe.model.struct_json import Json, to_json

_OF_ROW = ("expect", "process", "binds", "multicast", "quality", "persistence")
_OF_BLOCK = ("existing", "sni", "overlay_mtu", "listed", "no_dhcp", "row_probe")
_LENGTH = 12


def word_question(blocks: Sequence[Block]) -> str:
    """Give the word of a row with these blocks."""
    is_mixed = len({block.existing for block in blocks}) > 1
    described = [_describe_block(block, is_mixed=is_mixed) for block in blocks]
    told = {json.dumps(one, sort_keys=True) for one in described}
    return sha256("\n".join(sorted(told)).encode()).hexdigest()[:_LENGTH]


def _describe_block(block: Block, *, is_mixed: bool) -> Json:
    row = block.requirement
    return {
        "probe": probe_to_file(row.probe),
        **{name: to_json(getattr(row, name)) for name in _OF_ROW},
        **{name: to_json(getattr(block, name)) for name in _OF_BLOCK},
        # Of a row whose services run already at some of its destinations alone: at which.
        "at": sorted(host.name for host, _ in block.destinations) if is_mixed else [],
        "hosts": sorted(map(list, _describe_hosts(block))),
    }


def _describe_hosts(block: Block) -> Iterator[tuple[str, str, str]]:
    """Give what the inventory says of hosts that no address tells: name, key and value."""
    ends = [host for host, _ in block.destinations]
    for host in {host.name: host for host in (*block.sources, *ends)}.values():
        names = [one.text for one in host.addresses if one.family is None]
        if names:
            yield host.name, "names", ",".join(names)
        if host.vrid is not None:
            yield host.name, "vrid", str(host.vrid)
    for host in block.sources:
        yield from _describe_proxy(host, block)
    for host in block.back_ends:
        yield host.name, "back end", ",".join(sorted(host.listed_addresses))
    for host in ends if block.back_ends else ():
        yield host.name, "health", json.dumps(to_json(host.health))


def _describe_proxy(source: Host, block: Block) -> Iterator[tuple[str, str, str]]:
    """Give the proxy that a source asks a service through, without its password."""
    probe = block.requirement.probe
    proxy = None if probe is None or block.protocol != "tcp" else source.proxy_for(probe)
    if proxy is not None:
        urls = [(url or "").rpartition("@")[2] for url in (proxy.https_proxy, proxy.http_proxy)]
        yield source.name, "proxy", ",".join((*urls, *proxy.no_proxy))
