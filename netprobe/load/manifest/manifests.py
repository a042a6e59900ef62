"""All manifests of a run: read, checked against each other, and put into the inventory."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from netprobe.errors import Problem
from netprobe.load.manifest.file import read_manifest_file, word_empty, word_unread
from netprobe.load.manifest.hosts import (
    RoleBook,
    add_hosts,
    add_proxies,
    addresses_of,
    make_role_book,
)
from netprobe.load.manifest.kinds import KINDS, OTHER_KINDS
from netprobe.load.manifest.kinds.hosted_cluster import cluster_of, is_pool_of, nodes_of, version_of
from netprobe.load.manifest.kinds.kubean import references_of
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.networks import NamedNetwork, read_network_options
from netprobe.load.manifest.proxies import check_secondary_networks, word_ldap, word_zero_workers
from netprobe.load.manifest.said import AddressSaid, NoteSaid, ProxySaid, Said, SettingSaid
from netprobe.load.manifest.settings import ChosenValues, choose_said, set_by_option
from netprobe.load.manifest.subnets import Surroundings, check_subnets
from netprobe.load.yaml.wording import quoted
from netprobe.model.inventory import Host, Inventory
from netprobe.model.matrix import Matrix


class GivenManifests(Struct, frozen=True):
    """The words of ``--manifest`` and ``--network``."""

    files: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.networks)


_EVERY_KIND = ", ".join((*KINDS, *sorted(OTHER_KINDS)))
NO_MANIFESTS = GivenManifests()


class Manifests(Struct, frozen=True):
    """Every object of all files, what they say, further networks, and notes."""

    objects: tuple[Manifest, ...] = ()
    said: tuple[Said, ...] = ()
    networks: tuple[NamedNetwork, ...] = ()
    notes: tuple[str, ...] = ()
    found: list[Problem] = field(default_factory=list)

    def of_kind(self, kind: str) -> tuple[Manifest, ...]:
        """Give the objects of a kind."""
        return tuple(one for one in self.objects if one.kind == kind)

    def settle(self, problems: list[Problem]) -> None:
        """Hand over the problems, each once: several rules may read one value."""
        known = set(problems)
        problems += (one for one in dict.fromkeys(self.found) if one not in known)
        self.found.clear()


def read_manifests(given: GivenManifests, problems: list[Problem]) -> Manifests:
    """Read all files and options; every problem is added."""
    found: list[Problem] = []
    networks = read_network_options(given.networks, problems)
    objects = [
        one for path in dict.fromkeys(given.files) for one in read_manifest_file(path, found)
    ]
    notes = [*word_unread(objects, frozenset(KINDS) | OTHER_KINDS), *word_empty(objects)]
    for path in dict.fromkeys(given.files):
        mine = [one for one in objects if one.document.file == path]
        if mine and not any(one.kind in KINDS or one.kind in OTHER_KINDS for one in mine):
            words = f"nothing in this file can be used, expected one of: {_EVERY_KIND}"
            found.append(Problem(path, 1, 1, words))
    used, strange = _leave_out_strange_pools(objects)
    notes += strange
    said = tuple(item for one in used if one.kind in KINDS for item in KINDS[one.kind](one))
    notes += [f"{one.place}: {one.text}" for one in said if isinstance(one, NoteSaid)]
    notes += _missing_references(objects)
    manifests = Manifests(tuple(used), said, tuple(networks), tuple(notes), found)
    manifests.settle(problems)
    return manifests


def _leave_out_strange_pools(objects: Sequence[Manifest]) -> tuple[list[Manifest], list[str]]:
    """Leave out NodePools of clusters that are not given, if any cluster is."""
    clusters = [one for one in objects if one.kind == "HostedCluster"]
    used, notes = [], []
    for one in objects:
        if one.kind != "NodePool" or not clusters or any(is_pool_of(one, o) for o in clusters):
            used.append(one)
            continue
        owner = cluster_of(one)
        path = ("spec", "clusterName")
        if any(owner == cluster.name for cluster in clusters):
            owner, path = f"{one.namespace}/{owner}", ("metadata", "namespace")
        notes.append(f"{one.place(*path)}: {one.title} is of {quoted(owner)}: nothing is taken")
    return used, notes


def _missing_references(objects: Sequence[Manifest]) -> Iterator[str]:
    maps = {one.name for one in objects if one.kind == "ConfigMap"}
    for one in objects:
        if one.kind == "Cluster":
            for place, key, name in references_of(one):
                if name not in maps:
                    yield f"{place}: {key} names the ConfigMap {quoted(name)}: give it too"


def check_manifests(
    manifests: Manifests,
    hosts: Sequence[Host],
    book: RoleBook,
    sets: Sequence[str],
    problems: list[Problem],
) -> list[str]:
    """Check what needs no packet: subnets and proxies. Problems are added; gives notes."""
    notes: list[str] = []
    wanted = set_by_option(sets, "version")
    workers = sum("worker" in book.of_host(host) for host in hosts)
    inventory = tuple(_host_networks(hosts))
    for cluster in manifests.of_kind("HostedCluster"):
        pools = [one for one in manifests.of_kind("NodePool") if is_pool_of(one, cluster)]
        told, nodes = _count_nodes(pools, 0), _count_nodes(pools, workers)
        by = f" by the inventory ({told[1]:,} by NodePools)" if told and told[1] < workers else ""
        around = Surroundings(manifests.networks, inventory, nodes, wanted, by)
        notes += check_subnets(cluster, around, version_of(cluster)[1])
        notes += word_zero_workers(cluster, told, workers)
        notes += word_ldap(cluster)
    notes += check_secondary_networks(
        manifests.of_kind("NodePool"),
        (*manifests.of_kind("Proxy"), *manifests.of_kind("install-config")),
        manifests.of_kind("NetworkAttachmentDefinition"),
        manifests.networks,
    )
    manifests.settle(problems)
    return list(dict.fromkeys(notes))


def _count_nodes(pools: Sequence[Manifest], workers: int) -> tuple[int, int] | None:
    """Count the nodes now and at most: of all pools, and never fewer than the inventory has."""
    counts = [count for count in map(nodes_of, pools) if count is not None]
    if not counts:
        return (workers, workers) if workers else None
    now, most = (sum(each) for each in zip(*counts, strict=True))
    return max(now, workers), max(most, workers)


def _host_networks(hosts: Sequence[Host]) -> Iterator[NamedNetwork]:
    for name, address in addresses_of(hosts):
        network = ipaddress.ip_network(address.text)
        yield NamedNetwork(name, network, name, address.text)


def apply_manifests(
    manifests: Manifests,
    matrices: Sequence[Matrix],
    inventory: Inventory,
    sets: Sequence[str],
    problems: list[Problem],
) -> tuple[Inventory, ChosenValues]:
    """Give the inventory with hosts, proxies and notes of the manifests, and their settings."""
    clusters = manifests.of_kind("HostedCluster")
    for other in clusters[1:]:
        words = f"a run is about one hosted cluster, and {clusters[0].title} is given too"
        expected = "expected one, as `oc get hostedcluster NAME -o yaml` prints it"
        other.problem(f"{words}, {expected}", "metadata", "name")
    settings = [one for one in manifests.said if isinstance(one, SettingSaid)]
    chosen, taken, notes = choose_said(settings, matrices, inventory, sets, problems)
    with_settings = replace(inventory, taken=(*inventory.taken, *taken))
    book = make_role_book(matrices)
    told = check_manifests(manifests, inventory.hosts, book, sets, problems)
    with_hosts, more = add_hosts(
        with_settings, [one for one in manifests.said if isinstance(one, AddressSaid)], book
    )
    with_proxies, others = apply_proxies(manifests, with_hosts, book)
    manifests.settle(problems)
    every = (*inventory.notes, *manifests.notes, *notes, *more, *others, *told)
    return replace(with_proxies, notes=every), chosen


def apply_proxies(
    manifests: Manifests, inventory: Inventory, book: RoleBook
) -> tuple[Inventory, list[str]]:
    """Give the hosts the proxies that the manifests say; and notes."""
    said = [one for one in manifests.said if isinstance(one, ProxySaid)]
    return add_proxies(inventory, said, book)
