"""The names that name servers are asked for: settings whose value is a name, and its addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from netprobe.errors import RequestError
from netprobe.model.inventory import Host
from netprobe.model.matrix import DNS_NAME, ChosenMatrix, Requirement
from netprobe.model.plan import AskedName

WILDCARD = "*."


def list_asked_names(
    requirement: Requirement, chosen: ChosenMatrix, members: Mapping[str, tuple[Host, ...]]
) -> tuple[AskedName, ...]:
    """List the names for a row of name servers; other rows have none.

    Raises RequestError where a setting holds no name.
    """
    if requirement.probe != "dns" or requirement.expect == "denied":
        return ()
    return tuple(_read_names(chosen, members))


def _read_names(
    chosen: ChosenMatrix, members: Mapping[str, tuple[Host, ...]]
) -> Iterator[AskedName]:
    for name, setting in chosen.matrix.settings.items():
        value = chosen.settings[name]
        if setting.resolves_to is None or not isinstance(value, str) or not value:
            continue
        plain = value.rstrip(".")
        if not DNS_NAME.fullmatch(plain.removeprefix(WILDCARD)):
            raise RequestError(f"setting {name}: {value!r} is no DNS name")
        hosts = {host.name: host for role in setting.resolves_to for host in members[role]}
        addresses = [one for host in hosts.values() for one in host.addresses]
        # Which addresses a host has that is given by its own name, nobody says.
        known = all(one.family for one in addresses)
        expected = tuple(dict.fromkeys(one.text for one in addresses)) if known else ()
        yield AskedName(name, plain.lower(), expected)
