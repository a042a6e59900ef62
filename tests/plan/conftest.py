"""Small matrices and inventories, made in Python."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from netprobe.model.inventory import Address, Host, Inventory, Vantage
from netprobe.model.matrix import (
    ChosenMatrix,
    Condition,
    Matrix,
    Requirement,
    Role,
    Setting,
    choose_settings,
)
from netprobe.model.plan import Plan
from netprobe.plan.expand import make_plan

TODAY = date(2026, 11, 20)


def host(name: str, *roles: str, addresses: tuple[str, ...] = (), **extra: Any) -> Host:
    """A host whose addresses are IPv4, IPv6 (with a colon) or names (with a letter)."""
    kinds = tuple(Address(text, _family(text)) for text in addresses or (f"10.0.0.{len(name)}",))
    return Host(name, kinds, roles, extra.pop("vantage", Vantage("local")), **extra)


def _family(text: str) -> Any:
    if ":" in text:
        return 6
    return None if any(char.isalpha() for char in text) else 4


def condition(**terms: Any) -> Condition:
    """A condition from keywords; a single value stands for a list of one."""
    return Condition(tuple(
        (name, value if isinstance(value, tuple) else (value,)) for name, value in terms.items()
    ))  # fmt: skip


def requirement(id_: str, source: str, destination: str, **extra: Any) -> Requirement:
    """A requirement between two roles, by default tcp 6443."""
    if not {"tcp", "udp", "icmp", "ipproto"} & set(extra):
        extra["tcp"] = ((6443, 6443),)
    return Requirement(id_, (source,), (destination,), purpose=f"{id_} purpose", row="Row", **extra)


@pytest.fixture
def plan_of() -> Callable[..., Plan]:
    """Plan requirements over hosts: ``plan_of(requirements, hosts, local=..., settings=...)``."""

    def plan(requirements: list[Requirement], hosts: list[Host], **extra: Any) -> Plan:
        chosen = chosen_matrix(requirements, **extra)
        return make_plan([chosen], Inventory(tuple(hosts)), TODAY)

    return plan


def chosen_matrix(requirements: list[Requirement], **extra: Any) -> ChosenMatrix:
    """A matrix with the roles master (implies node), node and external."""
    roles = {name: Role(name) for name in ("node", "external")}
    roles["master"] = Role("master", implies=("node",))
    settings: dict[str, Setting] = extra.pop("settings", {})
    matrix = Matrix(extra.pop("name", "m"), "M", roles, settings, tuple(requirements), **extra)
    return choose_settings(matrix, {})
