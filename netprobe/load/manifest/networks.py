"""Networks: those that a hosted cluster names in either spelling, and those of --network."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from msgspec import Struct

from netprobe.errors import Problem
from netprobe.load.manifest.manifest import Manifest, path_text
from netprobe.load.yaml.document import PathStep
from netprobe.load.yaml.wording import quoted

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

# The key of one network and the key of a list of them, which manifests use side by side.
SPELLINGS = {
    "machine": ("machineCIDR", "machineNetwork"),
    "service": ("serviceCIDR", "serviceNetwork"),
    "cluster": ("podCIDR", "clusterNetwork"),
}


class NamedNetwork(Struct, frozen=True):
    """A network and what it is called; ``place`` and ``text`` as it stands in the file."""

    name: str
    network: IpNetwork
    place: str
    text: str


def networks_of(
    one: Manifest, base: tuple[PathStep, ...] = ("spec", "networking")
) -> list[NamedNetwork]:
    """Give the networks below ``base``, in both spellings. A bad one is a problem."""
    found = []
    for kind, keys in SPELLINGS.items():
        for key in keys:
            for path in _paths_of(one, (*base, key)):
                network = _read_network(one, path)
                if network is not None:
                    name = f"the {kind} network ({path_text(path)})"
                    found.append(NamedNetwork(name, network, one.place(*path), one.text(*path)))
    return found


def _paths_of(one: Manifest, base: tuple[PathStep, ...]) -> Iterator[tuple[PathStep, ...]]:
    """Give the paths of the CIDRs: a text, or a list of texts or of mappings with ``cidr``."""
    if not isinstance(one.get(*base), list):
        if one.has(*base):
            yield base
        return
    for path in one.each(*base):
        yield (*path, "cidr") if isinstance(one.get(*path), dict) else path


def _read_network(one: Manifest, path: tuple[PathStep, ...]) -> IpNetwork | None:
    text = one.text(*path)
    try:
        return _parse_cidr(text)
    except ValueError:
        one.problem(f"{quoted(text)} is no network, expected a CIDR such as 10.0.0.0/16", *path)
        return None


def _parse_cidr(text: str) -> IpNetwork:
    if "/" not in text:
        raise ValueError
    return ipaddress.ip_network(text, strict=False)


def read_network_options(texts: Sequence[str], problems: list[Problem]) -> list[NamedNetwork]:
    """Read ``--network NAME=CIDR``."""
    found = []
    for text in texts:
        name, equals, cidr = text.partition("=")
        try:
            if not name or not equals:
                raise ValueError
            network = _parse_cidr(cidr.strip())
        except ValueError:
            words = "expected NAME=CIDR, such as office=10.20.0.0/16"
            problems.append(Problem(f"--network {text}", 0, 0, words))
            continue
        found.append(NamedNetwork(name.strip(), network, f"--network {text}", cidr.strip()))
    return found
