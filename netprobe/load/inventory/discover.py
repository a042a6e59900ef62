"""The inventory of a run: given or found, YAML, Ansible's or a cluster's nodes, joined to one.

Roles may have other names: by ``roles_map:`` of inventories and ``--role`` on the command line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from netprobe.errors import FileErrors, Problem, all_problems
from netprobe.files import MAX_TEXT_BYTES, MIB, memory_file, read_file
from netprobe.load.inventory.ansible import read_ansible
from netprobe.load.inventory.file import read_inventory
from netprobe.load.inventory.nodes import MOST_NODES_BYTES, find_objects, read_nodes
from netprobe.load.inventory.suspects import address_problems, loopback_notes, shared_notes
from netprobe.load.yaml.document import MANIFEST_KEY, problem_at, word_manifest
from netprobe.load.yaml.source import top_keys
from netprobe.load.yaml.wording import quoted, unknown
from netprobe.model.inventory import Host, Inventory, RolesMap
from netprobe.model.matrix import fold_role

VARIABLE = "NETPROBE_INVENTORY"
DEFAULT = "inventory.yaml"

NO_INVENTORY = (
    f"give one with -i FILE, set {VARIABLE}, or have ./{DEFAULT} here; "
    f"netprobe init --matrix NAME > {DEFAULT} writes one to start from"
)

_FILE = "a YAML file"
_NO_MANIFEST = "an inventory, or the nodes of a cluster as JSON: `kubectl get nodes -o json`"
_OUR_SCHEMA = re.compile(rb"""^\s*["']?schema["']?\s*:\s*["']?netprobe\.""", re.MULTILINE)
_YAML_NAMES = (".yaml", ".yml", ".json")
_OUR_KEYS = {"hosts", "settings", "defaults"}


def load_inventory(paths: Sequence[str]) -> Inventory:
    """Load one inventory of all files; FileErrors with every problem of all of them."""
    with all_problems() as problems:
        return read_inventories(paths, problems)


def read_inventories(
    paths: Sequence[str], problems: list[Problem], roles: Sequence[str] = ()
) -> Inventory:
    """As :func:`load_inventory`, but problems are added to a list and the rest goes on.

    ``roles`` are the words of ``--role``.
    """
    found: list[tuple[str, Inventory]] = []
    paths = paths or find_inventories()
    if not paths:
        problems.append(Problem("no inventory", 0, 0, NO_INVENTORY))
    for path in dict.fromkeys(paths):
        one = _read_one(path, problems)
        if one is not None:
            found.append((path, one))
    inventory = found[0][1] if len(found) == 1 else _merge_inventories(found, problems)
    # Many hosts of an Ansible inventory take no part in a run.
    hosts = inventory.hosts
    of_yaml = [host for host in hosts if host.place]
    problems.extend(address_problems(hosts, of_yaml))
    notes = (*inventory.notes, *shared_notes(hosts), *loopback_notes(hosts))
    return _map_roles(replace(inventory, notes=notes), roles, problems)


def _read_one(path: str, problems: list[Problem]) -> Inventory | None:
    if os.path.isdir(path):
        return read_ansible(path, problems)
    try:
        raw = read_file(path, _FILE, MOST_NODES_BYTES)
    except FileErrors as error:
        problems.extend(error.problems)
        return None
    objects = find_objects(raw)
    if objects is not None:
        return read_nodes(path, objects, problems)
    if len(raw) > MAX_TEXT_BYTES:
        problems.append(
            Problem(path, 0, 0, f"larger than {MAX_TEXT_BYTES // MIB} MiB, expected {_FILE}")
        )
        return None
    if not is_ansible(path, raw):
        return read_inventory(path, problems)
    if MANIFEST_KEY in (top_keys(raw) or ()):
        problems.append(Problem(path, 0, 0, word_manifest(_NO_MANIFEST)))
        return None
    if os.path.isfile(path):
        return read_ansible(path, problems)
    with memory_file(raw) as handle:  # a pipe, which Ansible would find empty
        return read_ansible(path, problems, handle)


def is_ansible(path: str, raw: bytes) -> bool:
    """Tell whether Ansible must read a file: a program, INI, or YAML that is not ours."""
    if _OUR_SCHEMA.search(raw):
        return False
    if raw.startswith(b"#!") and os.access(path, os.X_OK):
        return True
    keys = top_keys(raw)
    if keys is None:
        # No mapping, or no YAML: an Ansible inventory unless its name says that it is YAML.
        return bool(raw.strip()) and not path.endswith(_YAML_NAMES)
    return not (_OUR_KEYS & set(keys) or "schema" in keys)


def find_inventories() -> tuple[str, ...]:
    """Find the inventory if no ``-i`` is given; nothing where there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        return tuple(part for part in named.split(os.pathsep) if part)
    return (DEFAULT,) if os.path.exists(DEFAULT) else ()


def _merge_inventories(
    found: Sequence[tuple[str, Inventory]], problems: list[Problem]
) -> Inventory:
    hosts: dict[str, tuple[str, Host]] = {}
    settings: dict[str, object] = {}
    places: dict[str, str] = {}
    notes: list[str] = []
    roles_map: dict[str, tuple[str, ...]] = {}
    map_places: dict[str, str] = {}
    for path, inventory in found:
        for role, stands_for in inventory.roles_map.items():
            if roles_map.setdefault(role, stands_for) != stands_for:
                words = f"roles_map says another thing of {quoted(role)} than an earlier file"
                problems.append(Problem(path, 0, 0, f"{words}, expected one meaning"))
        map_places = {**inventory.map_places, **map_places}
        for host in inventory.hosts:
            place = host.place or path
            if host.name in hosts:
                words = f"host {quoted(host.name)} stands in {hosts[host.name][0]} too"
                problems.append(problem_at(place, f"{words}, expected every host once"))
            hosts.setdefault(host.name, (place, host))
        for name, value in inventory.settings.items():
            if name in settings and settings[name] != value:
                words = f"setting {quoted(name)} has another value in {places[name]}"
                place = inventory.setting_places[name]
                problems.append(problem_at(place, f"{words}, expected one value"))
            settings.setdefault(name, value)
            places.setdefault(name, inventory.setting_places[name])
        notes.extend(inventory.notes)
    every = tuple(host for _, host in hosts.values())
    no_dhcp = any(inventory.no_dhcp for _, inventory in found)
    return Inventory(every, settings, places, tuple(notes), roles_map, map_places, no_dhcp=no_dhcp)


def _map_roles(inventory: Inventory, texts: Sequence[str], problems: list[Problem]) -> Inventory:
    """Give every host the roles that its own stand for; ``--role`` wins over the inventory."""
    known = sorted({role for host in inventory.hosts for role in host.roles})
    wanted = {**inventory.roles_map, **_read_role_options(texts, known, problems)}
    if not wanted:
        return inventory
    hosts = (
        replace(
            host,
            roles=tuple(dict.fromkeys(_translate_roles(host.roles, wanted))),
            balances=tuple(dict.fromkeys(_translate_roles(host.balances, wanted))),
        )
        for host in inventory.hosts
    )
    return replace(inventory, hosts=tuple(hosts))


def check_role_options(
    texts: Sequence[str], words: Collection[str], roles: Sequence[str]
) -> Iterator[Problem]:
    """Give a problem for every role that ``--role`` maps to and no matrix knows by a word."""
    for text in texts:
        for target in filter(None, text.partition("=")[2].split(",")):
            if fold_role(target) not in words:
                yield Problem(f"--role {text}", 0, 0, unknown("role", target, roles))


def _translate_roles(roles: Sequence[str], wanted: RolesMap) -> Iterator[str]:
    for role in roles:
        yield from wanted.get(fold_role(role), (role,))


def _read_role_options(
    texts: Sequence[str], known: Sequence[str], problems: list[Problem]
) -> Mapping[str, tuple[str, ...]]:
    """Read ``ROLE=ROLE[,ROLE]``; several of one role add up."""
    found: dict[str, tuple[str, ...]] = {}
    roles = {fold_role(role) for role in known}
    for text in texts:
        name, _, given = text.partition("=")
        targets = tuple(part for part in given.split(",") if part)
        words = ""
        if not name or not targets:
            words = "this maps nothing, expected ROLE=ROLE, such as kube_node=node"
        elif fold_role(name) not in roles:
            words = f"no host of the inventory has it: {unknown('role', name, known)}"
        if words:
            problems.append(Problem(f"--role {text}", 0, 0, words))
        else:
            found[fold_role(name)] = (*found.get(fold_role(name), ()), *targets)
    return found
