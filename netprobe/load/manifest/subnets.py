"""The internal OVN subnets of hosted clusters, against the sentences of the okd-hcp document.

"Configuring internal OVN IPv4 subnets for hosted clusters" says what both fields must be. Nothing
of it needs a packet. Where the document leaves something open, a note says so and decides nothing.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from netprobe.load.manifest.kinds.hosted_cluster import NODE_LOCAL
from netprobe.load.manifest.kinds.shared import why_no_version
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.networks import SPELLINGS, NamedNetwork, networks_of
from netprobe.load.yaml.document import PathStep
from netprobe.load.yaml.wording import listed, quoted
from netprobe.model.version import in_range

# What is checked: docs/subnets.md prints it.
RULES: Final[Mapping[str, str]] = {
    "notation": "an IPv4 network with a prefix; `/0` to `/30`; the first octet is not 0, nor that "
    'of the network if host bits are set; 9 to 18 characters, spaces included (`""` has 0)',
    "values": "not the same, the defaults 100.64.0.0/16 and 100.88.0.0/16 included where a field "
    "is left out",
    "size": "one address for each node: of the cluster's NodePools (`replicas`, or "
    "`autoScaling.max`), and never fewer than the inventory has workers (where these are more "
    "than the NodePools say, the sentence names both)",
    "overlap": "with each other; with machine, service and cluster networks in both spellings "
    "(`machineCIDR`, `machineNetwork` ...); with the node-local proxy (`172.20.0.1`, or "
    "`advertiseAddress`); with hosts of the inventory; with every `--network NAME=CIDR`",
    "prerequisites": "custom values only with `networkType: OVNKubernetes`, and from version 4.20 "
    "(`--set version=` wins over the image's tag)",
}
BASE: tuple[PathStep, ...] = (
    *("spec", "operatorConfiguration", "clusterNetworkOperator", "ovnKubernetesConfig", "ipv4"),
)
DEFAULTS = {
    "internalJoinSubnet": "100.64.0.0/16",
    "internalTransitSwitchSubnet": "100.88.0.0/16",
}
FIRST_VERSION = "4.20"
PLUGIN = "OVNKubernetes"
MOST_PREFIX = 30
SHORTEST, LONGEST = 9, 18

# The document's own sentences; a problem ends with the one that it breaks.
_NOTATION = (
    "Both subnet fields in this section must be in a valid IPv4 CIDR notation, such as "
    "192.168.1.0/24."
)
_PREFIX = "The prefix range is /0 to /30, inclusive."
_OCTET_AND_LENGTH = "The first octet cannot be 0, and the string length must be 9-18 characters."
_SAME = "The subnet fields cannot use the same value."
_LARGE = "The subnet must be large enough to accommodate one IP address per node in the cluster."
_GROWTH = "When you plan subnet size, consider future cluster growth."
_OVERLAP = (
    "Custom subnets must not overlap with the following subnets: Machine CIDRs, Service CIDRs, "
    "Cluster network CIDRs, Any other networks in your infrastructure"
)
_TYPE = "For the network type, your hosted cluster must use networkType: OVNKubernetes."
_VERSION = "Your hosted cluster version must be OKD 4.20 or later."

# The defaults of HyperShift where a HostedCluster names no network; the document names none.
_ASSUMED = {"service": "172.31.0.0/16", "cluster": "10.132.0.0/14"}

_MOST_HOSTS = 4
_CIDR = re.compile(r"(\d{1,3})\.\d{1,3}\.\d{1,3}\.\d{1,3}/(\d{1,3})")


class Surroundings(Struct, frozen=True):
    """What is around a hosted cluster: further networks, and the addresses of hosts.

    ``nodes``: how many there are now and at most, None where nobody says. ``version`` of ``--set``.
    ``counted``: by whom, where the inventory has more workers than NodePools say.
    """

    networks: tuple[NamedNetwork, ...] = ()
    hosts: tuple[NamedNetwork, ...] = ()
    nodes: tuple[int, int] | None = None
    version: str | None = None
    counted: str = ""


class _Subnet(Struct, frozen=True):
    """A field with its value; ``network`` is None where the value is no network."""

    key: str
    text: str
    is_custom: bool
    network: ipaddress.IPv4Network | None

    @property
    def words(self) -> str:
        """The field and its value, for sentences."""
        return f"{self.key} {self.text}" + ("" if self.is_custom else " (its default)")


def check_subnets(one: Manifest, around: Surroundings, version: str) -> Iterator[str]:
    """Add a problem for every sentence that a HostedCluster breaks; give notes.

    ``version`` is the cluster's, empty where it is not known.
    """
    is_custom = any(one.get(*BASE, key) is not None for key in DEFAULTS)
    kind = one.text("spec", "networking", "networkType") or PLUGIN
    if kind != PLUGIN:
        if is_custom:
            _add_problem(one, BASE, f"networkType is {kind}", _TYPE)
        return
    if is_custom:
        yield from _check_version(one, around.version or version)
    subnets = [_read_subnet(one, key) for key in DEFAULTS]
    for subnet in subnets:
        if subnet.is_custom:
            yield from _check_host_bits(one, subnet)
        yield from _check_size(one, subnet, around)
    yield from _check_overlaps(one, subnets, around)
    _check_each_other(one, *subnets)


def _check_version(one: Manifest, version: str) -> Iterator[str]:
    place = one.place(*BASE)
    if not version:
        why = why_no_version(one.text("spec", "release", "image"))
        words = f"the manifest does not say its version: {why} in spec.release.image"
        yield f'warning: {place}: {words}; "{_VERSION}"'
    elif not in_range(version, f">={FIRST_VERSION}"):
        _add_problem(one, BASE, f"the version is {version}", _VERSION)


def _read_subnet(one: Manifest, key: str) -> _Subnet:
    """Read a field, or its default. A value may break several sentences; each is a problem."""
    path = (*BASE, key)
    value = one.get(*path)
    if value is None:
        return _Subnet(key, DEFAULTS[key], False, ipaddress.IPv4Network(DEFAULTS[key]))
    # Spaces are characters, too: of a text, all that stands there counts.
    text = value if isinstance(value, str) else one.text(*path)
    shown = f"{key} {quoted(text)}"
    network = _parse_network(text)
    shape = _CIDR.fullmatch(text)
    if network is None and not (shape and int(shape[2]) <= 32 and _is_address(text)):
        _add_problem(one, path, f"{shown} is no IPv4 network with a prefix", _NOTATION)
    if shape and int(shape[2]) > MOST_PREFIX:
        _add_problem(one, path, f"the prefix of {shown} is /{shape[2]}", _PREFIX)
        network = None
    if shape and int(shape[1]) == 0:
        _add_problem(one, path, f"the first octet of {shown} is 0", _OCTET_AND_LENGTH)
    elif network is not None and str(network).startswith("0."):
        words = f"{shown} is the network {network}, the first octet of which is 0"
        _add_problem(one, path, words, _OCTET_AND_LENGTH)
    if not SHORTEST <= len(text) <= LONGEST:
        words = f"{shown} has {len(text)} characters"
        _add_problem(one, path, words, _OCTET_AND_LENGTH)
    return _Subnet(key, text, True, network)


def _is_address(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text.partition("/")[0])
    except ValueError:
        return False
    return True


def _parse_network(text: str) -> ipaddress.IPv4Network | None:
    # A netmask behind the slash is no prefix, and neither is nothing at all.
    if not _CIDR.fullmatch(text):
        return None
    try:
        return ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        return None


def _check_host_bits(one: Manifest, subnet: _Subnet) -> Iterator[str]:
    network = subnet.network
    if network is None or ipaddress.IPv4Interface(subnet.text).ip == network.network_address:
        return
    place = one.place(*BASE, subnet.key)
    yield (
        f"warning: {place}: {subnet.words} has host bits set; the document leaves open whether "
        f"that is valid CIDR notation; it is taken as {subnet.network}"
    )


def _check_size(one: Manifest, subnet: _Subnet, around: Surroundings) -> Iterator[str]:
    """One address for each node; the document leaves open whether all addresses count."""
    if subnet.network is None:
        return
    place = one.place(*BASE, subnet.key)
    total = subnet.network.num_addresses
    usable = total - 2
    lasts = f"{subnet.words} lasts for {_word_nodes(usable)}"
    if around.nodes is None:
        yield f"{place}: {lasts}; nothing says how many the cluster has"
        return
    now, most = around.nodes
    has = _word_nodes(most) + (f" at most ({now:,} now)" if now != most else "") + around.counted
    if most > total:
        words = f"{subnet.words} has {total:,} addresses, and the cluster has {has}"
        _add_problem(one, (*BASE, subnet.key), words, f"{_LARGE} {_GROWTH}")
    elif most > usable:
        yield (
            f"warning: {place}: {subnet.words} has {total:,} addresses, {usable:,} without the "
            f"network's own and the broadcast address, and the cluster has {has}; the document "
            f'leaves open which count: "{_LARGE}"'
        )
    elif most == usable:
        yield f'warning: {place}: {lasts}, and the cluster has {has}: no room; "{_GROWTH}"'
    else:
        yield f"{place}: {lasts}, and the cluster has {has}: room for {usable - most:,} more"


def _word_nodes(count: int) -> str:
    return f"{count:,} node{'' if count == 1 else 's'}"


def _check_overlaps(
    one: Manifest, subnets: Sequence[_Subnet], around: Surroundings
) -> Iterator[str]:
    own = networks_of(one)
    fixed = (*own, _node_local_proxy(one), *around.networks)
    for subnet in subnets:
        for other in fixed:
            if _meets_network(subnet, other):
                words = f"{subnet.words} overlaps with {other.name} {other.text}"
                _add_problem(one, (*BASE, subnet.key), words, _OVERLAP)
        inside = [host for host in around.hosts if _meets_network(subnet, host)]
        if inside:
            names = listed(f"{host.name} ({host.text})" for host in inside[:_MOST_HOSTS])
            more = len(inside) - _MOST_HOSTS
            who = f"{names} and {more:,} more hosts" if more > 0 else names
            words = f"{subnet.words} overlaps with {who} of the inventory"
            _add_problem(one, (*BASE, subnet.key), words, _OVERLAP)
        for other in _assumed_networks(one):
            if _meets_network(subnet, other):
                place = one.place(*BASE, subnet.key)
                yield (
                    f"warning: {place}: {subnet.words} overlaps with {other.text}, which "
                    f'HyperShift takes where {other.name} is left out; "{_OVERLAP}"'
                )


def _meets_network(subnet: _Subnet, other: NamedNetwork) -> bool:
    network = subnet.network
    if network is None or not isinstance(other.network, ipaddress.IPv4Network):
        return False
    return network.overlaps(other.network)


def _node_local_proxy(one: Manifest) -> NamedNetwork:
    path = ("spec", "networking", "apiServer", "advertiseAddress")
    text = one.text(*path) or NODE_LOCAL
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        network = ipaddress.ip_network(NODE_LOCAL)
    return NamedNetwork("the node-local proxy", network, one.place(*path), text)


def _assumed_networks(one: Manifest) -> Iterator[NamedNetwork]:
    for kind, text in _ASSUMED.items():
        if not any(one.has("spec", "networking", key) for key in SPELLINGS[kind]):
            place = one.place("spec", "networking")
            yield NamedNetwork(f"the {kind} network", ipaddress.ip_network(text), place, text)


def _check_each_other(one: Manifest, join: _Subnet, transit: _Subnet) -> None:
    later = transit if transit.is_custom or not join.is_custom else join
    first = join if later is transit else transit
    path = (*BASE, later.key)
    if join.text == transit.text:
        _add_problem(one, path, f"{later.words} is the value of {first.key} too", _SAME)
    elif join.network and transit.network and join.network.overlaps(transit.network):
        _add_problem(one, path, f"{later.words} overlaps with {first.words}", _OVERLAP)


def _add_problem(one: Manifest, path: tuple[PathStep, ...], words: str, sentence: str) -> None:
    one.problem(f'{words}; the document: "{sentence}"', *path)
