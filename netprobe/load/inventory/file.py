"""Our own inventory file (YAML) becomes an inventory."""

from __future__ import annotations

from collections.abc import Sequence

from netprobe.errors import Problem
from netprobe.load.inventory.addresses import parse_address
from netprobe.load.inventory.models import (
    DefaultsFile,
    HostFile,
    InventoryFile,
    ProxyFile,
    SshDefaultsFile,
    SshFile,
    VantageFile,
)
from netprobe.load.yaml.document import Document, check_header, is_header_problem
from netprobe.load.yaml.source import read_document
from netprobe.load.yaml.validation import validate
from netprobe.load.yaml.wording import listed, quoted
from netprobe.model.inventory import Address, Host, Inventory, Proxy, Ssh, Vantage


def read_inventory(path: str, problems: list[Problem]) -> Inventory | None:
    """The inventory of a file of ours; None after its problems were noted."""
    document = read_document(path, problems)
    return from_document(document, problems) if document else None


def from_document(document: Document, problems: list[Problem]) -> Inventory | None:
    """The inventory that a document holds; None after its problems were noted."""
    before = len(problems)
    if not check_header(document, "inventory", problems):
        return None
    found: list[Problem] = []
    file = validate(InventoryFile, document, found)
    problems.extend(problem for problem in found if not is_header_problem(problem, document))
    _check_hosts(document, problems)
    if file is None or len(problems) > before:
        return None
    return _inventory(file, document)


def _check_hosts(document: Document, problems: list[Problem]) -> None:
    """What no single key can show to be wrong; on plain values, so that nothing else hides it."""
    hosts = document.get(("hosts",))
    if hosts == {}:
        words = "there is no host in it, expected at least one"
        problems.append(document.at_key(("hosts",), words))
    for name, body in hosts.items() if isinstance(hosts, dict) else ():
        if isinstance(body, dict):
            problems.extend(_check_host(document, name, body))


def _check_host(document: Document, name: str, body: dict[str, object]) -> list[Problem]:
    path = ("hosts", name)
    found = []
    given = [key for key in ("address", "addresses") if body.get(key) not in (None, [])]
    if not given:
        words = 'the host has no address, expected "address" or "addresses"'
        found.append(document.at_key(path, words))
    if len(given) == 2:
        words = 'both "address" and "addresses" stand here, expected one of them'
        found.append(document.at_key((*path, "addresses"), words))
    if body.get("roles") == []:
        found.append(document.at((*path, "roles"), "the list is empty, expected at least one role"))
    for key in ("addresses", "source_addresses", "roles"):
        found.extend(_twice(document, (*path, key)))
    return found


def _twice(document: Document, path: tuple[str, ...]) -> list[Problem]:
    """Items of a list that stand there before, and a second source address of one family."""
    raw = document.get(path)
    found: list[Problem] = []
    seen: set[str] = set()
    families: set[int | None] = set()
    for index, item in enumerate(raw if isinstance(raw, list) else ()):
        address = _address_or_none(item) if path[-1] != "roles" else None
        same = address.text.lower() if address else str(item)
        family = address.family if address else None
        if same in seen:
            words = f"{quoted(item)} stands in the list twice, expected it once"
            found.append(document.at((*path, index), words))
        elif path[-1] == "source_addresses" and family and family in families:
            words = f"{quoted(item)} is a second IPv{family} address, expected one a family"
            found.append(document.at((*path, index), words))
        seen.add(same)
        families.add(family)
    return found


def _address_or_none(raw: object) -> Address | None:
    try:
        return parse_address(raw)
    except ValueError:
        return None


def _inventory(file: InventoryFile, document: Document) -> Inventory:
    hosts = tuple(
        _host(name, body, file.defaults, document.place(("hosts", name)))
        for name, body in file.hosts.items()
    )
    places = {name: document.place(("settings", name)) for name in file.settings}
    notes = (*_unused_ssh(file), *shared_addresses(hosts))
    return Inventory(hosts, dict(file.settings), places, notes)


def _host(name: str, body: HostFile, defaults: DefaultsFile, place: str) -> Host:
    addresses = tuple(body.addresses) or (body.address,)
    become = body.become or defaults.become
    return Host(
        name=name,
        addresses=addresses,
        roles=tuple(body.roles),
        vantage=_vantage(body, defaults, addresses[0]),
        become="sudo" if become == "sudo" else None,
        source_addresses=tuple(body.source_addresses),
        proxy=_proxy(body.proxy or defaults.proxy),
        place=place,
    )


def _vantage(body: HostFile, defaults: DefaultsFile, address: Address) -> Vantage:
    chosen = body.vantage or defaults.vantage or VantageFile(kind="ssh")
    if chosen.command is not None:
        return Vantage("command", command=tuple(chosen.command))
    if chosen.kind == "ssh":
        return Vantage("ssh", ssh=_ssh(body, defaults, address))
    return Vantage(chosen.kind or "none")


def _ssh(body: HostFile, defaults: DefaultsFile, address: Address) -> Ssh:
    """The host's own words, else those of ``defaults``; the first address if no host is named."""
    common = defaults.ssh or SshDefaultsFile()
    own = body.ssh or SshFile()
    return Ssh(
        host=own.host or address.text,
        user=own.user or common.user,
        port=own.port or common.port,
        options=tuple(own.options) or tuple(common.options),
    )


def _proxy(file: ProxyFile | None) -> Proxy | None:
    if file is None:
        return None
    return Proxy(file.https_proxy, file.http_proxy, tuple(file.no_proxy))


def _unused_ssh(file: InventoryFile) -> list[str]:
    """Hosts that say how ssh reaches them although no ssh goes there."""
    default = file.defaults.vantage or VantageFile(kind="ssh")
    return [
        f"host {name} has ssh settings that are not used: its vantage is {_word(vantage)}"
        for name, body in file.hosts.items()
        if body.ssh and (vantage := body.vantage or default).kind != "ssh"
    ]


def _word(vantage: VantageFile) -> str:
    return vantage.kind or "a command"


def shared_addresses(hosts: Sequence[Host]) -> list[str]:
    """Addresses that several hosts have: right for a virtual address, else a slip of the pen."""
    owners: dict[str, list[str]] = {}
    for host in hosts:
        for address in host.addresses:
            owners.setdefault(address.text.lower(), []).append(host.name)
    return [
        f"hosts {listed(names)} share the address {address}: is it a virtual one?"
        for address, names in owners.items()
        if len(names) > 1
    ]
