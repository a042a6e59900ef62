"""Our own inventory file (YAML) becomes an inventory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from netprobe.errors import Problem
from netprobe.load.inventory.addresses import parse_address
from netprobe.load.inventory.models import (
    DefaultsFile,
    HealthFile,
    HostFile,
    InventoryFile,
    SshDefaultsFile,
    SshFile,
    VantageFile,
)
from netprobe.load.yaml.document import Document, check_header
from netprobe.load.yaml.source import read_document
from netprobe.load.yaml.validation import validate
from netprobe.load.yaml.wording import quoted
from netprobe.model.inventory import Address, Health, Host, Inventory, Proxy, Ssh, Vantage
from netprobe.model.matrix import fold_role


def read_inventory(path: str, problems: list[Problem]) -> Inventory | None:
    """Read a YAML inventory; None after its problems were noted."""
    document = read_document(path, problems)
    before = len(problems)
    if document is None or not check_header(document, "inventory"):
        return None
    file = validate(InventoryFile, document)
    _check_hosts(document)
    if file is None or len(problems) > before:
        return None
    return _make_inventory(file, document)


def _check_hosts(document: Document) -> None:
    """Check rules over several keys, on plain values, so that other problems do not hide them."""
    if document.get(("hosts",)) == {}:
        words = "there is no host in it, expected at least one"
        document.add_key_problem(("hosts",), words)
    for name, body in document.items(("hosts",)).items():
        if isinstance(body, dict):
            _check_host(document, ("hosts", name), body)


def _check_host(document: Document, path: tuple[str, str], body: dict[str, object]) -> None:
    given = [key for key in ("address", "addresses") if body.get(key) not in (None, [])]
    if not given:
        words = 'the host has no address, expected "address" or "addresses"'
        document.add_key_problem(path, words)
    if len(given) == 2:
        words = 'both "address" and "addresses" stand here, expected one of them'
        document.add_key_problem((*path, "addresses"), words)
    if body.get("roles") == [] and not body.get("balances") and not body.get("free"):
        words = "the list is empty, expected at least one role"
        document.add_problem((*path, "roles"), words)
    if body.get("health") is not None and not body.get("balances"):
        words = 'there is no "balances" here: nobody stands behind this host'
        document.add_key_problem((*path, "health"), words)
    _check_free(document, path, body)
    for key in ("addresses", "source_addresses", "roles"):
        _check_duplicates(document, (*path, key))


def _check_free(document: Document, path: tuple[str, str], body: dict[str, object]) -> None:
    vantage = body.get("vantage") or document.get(("defaults", "vantage"))
    if body.get("free") and vantage != "none":
        words = "a host whose address nobody has yet runs no agent, expected vantage: none"
        document.add_key_problem((*path, "free"), words)
    listed = body.get("addresses")
    texts = [body.get("address"), *(listed if isinstance(listed, list) else ())]
    addresses = [_address_or_none(one) for one in texts]
    if body.get("free") and any(one is not None and one.family is None for one in addresses):
        words = "neighbours are asked for IP addresses, and a name stands here, expected addresses"
        document.add_key_problem((*path, "free"), words)
    if body.get("vrid") is not None and not body.get("free"):
        words = 'there is no "free: true" here: only of such a host it is looked for'
        document.add_key_problem((*path, "vrid"), words)


def _check_duplicates(document: Document, path: tuple[str, str, str]) -> None:
    """Items of a list that stand there before, and a second source address of one family."""
    raw = document.get(path)
    seen: set[str] = set()
    families: set[int | None] = set()
    for index, item in enumerate(raw if isinstance(raw, list) else ()):
        address = _address_or_none(item) if path[-1] != "roles" else None
        same = address.text.lower() if address else str(item)
        family = address.family if address else None
        if same in seen:
            words = f"{quoted(item)} stands in the list twice, expected it once"
            document.add_problem((*path, index), words)
        elif path[-1] == "source_addresses" and family and family in families:
            words = f"{quoted(item)} is a second IPv{family} address, expected one a family"
            document.add_problem((*path, index), words)
        seen.add(same)
        families.add(family)


def _address_or_none(raw: object) -> Address | None:
    try:
        return parse_address(raw)
    except ValueError:
        return None


def _make_inventory(file: InventoryFile, document: Document) -> Inventory:
    hosts = tuple(
        _make_host(name, body, file.defaults, document.place(("hosts", name)))
        for name, body in file.hosts.items()
    )
    places = {name: document.place(("settings", name)) for name in file.settings}
    notes = [
        f"host {host.name} has ssh settings that are not used: its vantage is "
        + ("a command" if host.vantage.kind == "command" else host.vantage.kind)
        for host in hosts
        if file.hosts[host.name].ssh and host.vantage.kind != "ssh"
    ]
    roles_map = {fold_role(name): tuple(roles) for name, roles in file.roles_map.items()}
    map_places = {fold_role(name): document.place(("roles_map", name)) for name in file.roles_map}
    return Inventory(
        hosts, dict(file.settings), places, tuple(notes), roles_map, map_places,
        no_dhcp=file.dhcp is not None,
    )  # fmt: skip


def _make_host(name: str, body: HostFile, defaults: DefaultsFile, place: str) -> Host:
    addresses = tuple(body.addresses) or (body.address,)
    become = body.become or defaults.become
    proxy = body.proxy or defaults.proxy
    return Host(
        name=name,
        addresses=addresses,
        roles=tuple(body.roles),
        vantage=_make_vantage(body, defaults, addresses[0]),
        become="sudo" if become == "sudo" else None,
        source_addresses=tuple(body.source_addresses),
        proxy=Proxy(proxy.https_proxy, proxy.http_proxy, tuple(proxy.no_proxy)) if proxy else None,
        place=place,
        zone=body.zone,
        own_vantage=body.vantage is not None or body.ssh is not None,
        balances=tuple(body.balances),
        health=tuple(_list_checks(body.health)) if body.health is not None else (),
        free=body.free,
        vrid=body.vrid,
    )


def _list_checks(file: HealthFile) -> Iterator[Health]:
    if file.path is not None:
        yield Health("https", file.path)
    for word, check in file.ports.items():
        port = int(word)
        if check.https is not None:
            yield Health("https", check.https, check.port, port)
        else:
            kind: Literal["http", "tcp"] = "http" if check.http else "tcp"
            yield Health(kind, check.http or "", check.port, port)


def _make_vantage(body: HostFile, defaults: DefaultsFile, address: Address) -> Vantage:
    chosen = body.vantage or defaults.vantage or VantageFile(kind="ssh")
    if chosen.command is not None:
        return Vantage("command", command=tuple(chosen.command))
    if chosen.kind != "ssh":
        return Vantage(chosen.kind or "none")
    # The host's own words, else those of ``defaults``; the first address if no host is named.
    own, common = body.ssh or SshFile(), defaults.ssh or SshDefaultsFile()
    ssh = Ssh(
        host=own.host or address.text,
        user=own.user or common.user,
        port=own.port or common.port,
        options=tuple(own.options) or tuple(common.options),
    )
    return Vantage("ssh", ssh=ssh)
