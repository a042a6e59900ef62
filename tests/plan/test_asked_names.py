"""The names that name servers are asked for, out of settings and the inventory."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.model.inventory import Inventory
from netprobe.model.matrix import Setting
from netprobe.model.plan import AskedName
from netprobe.plan.expand import make_plan
from netprobe.plan.of_hosts import list_lookups

from .conftest import TODAY, chosen_matrix, host, requirement


def names(value: str, roles: tuple[str, ...] | None = ("master",), **row: Any) -> Any:
    """The names of a row of name servers, given a setting with this value and these roles."""
    wanted = requirement("dns", "node", "external", udp=((53, 53),), **{"probe": "dns", **row})
    setting = Setting("api-hostname", "string", value, resolves_to=roles)
    chosen = chosen_matrix([wanted], settings={setting.name: setting})
    hosts = (
        host("a", "node", addresses=("10.0.0.1",)),
        host("b", "external", addresses=("10.0.0.53",)),
        host("vip", "master", addresses=("10.0.0.5", "fd00::5")),
        host("alias", "node", addresses=("api.example.com",)),
    )
    (block,) = make_plan([chosen], Inventory(hosts), TODAY).blocks
    return block.names


def test_a_name_with_the_addresses_of_its_role() -> None:
    """Hosts by address are what the name must be; of one by name nobody knows the address."""
    expected = AskedName("api-hostname", "api.example.com", ("10.0.0.5", "fd00::5"))
    assert names("API.example.com.") == (expected,)
    assert names("api.example.com", ("node",)) == (replace(expected, addresses=()),)


@pytest.mark.parametrize(
    ("value", "roles", "row"),
    [
        ("", ("master",), {}),
        ("api.example.com", None, {}),
        ("api.example.com", ("master",), {"expect": "denied"}),
    ],
)
def test_nothing_is_asked(value: str, roles: Any, row: Any) -> None:
    """Without a name, for settings that are none, and where the name server must not answer."""
    assert names(value, roles, **row) == ()


def test_without_a_name_server_all_sources_look_the_names_up() -> None:
    """Their programs need them all the same; what is no name is nobody's matter then."""
    assert [one.name for one in names("api.example.com", probe=None)] == ["api.example.com"]
    assert names("10.0.0.5", probe=None) == ()

    wanted = requirement("web", "node", "master", tcp=((443, 443),))
    setting = Setting("api-hostname", "string", "api.example.com", resolves_to=("master",))
    chosen = chosen_matrix([wanted], settings={setting.name: setting})
    hosts = (
        host("a", "node", addresses=("10.0.0.1",)), host("b", "master", addresses=("10.0.0.5",)),
    )  # fmt: skip
    plan = make_plan([chosen], Inventory(hosts), TODAY)

    # A master is a node, too.
    found = {one.flow.source.name: one.asked for one in list_lookups(plan)}
    assert found == dict.fromkeys(("a", "b"), ("api.example.com",))
    assert plan.count_names() == 1


def test_any_addresses_and_wildcards() -> None:
    """Without a role no address is expected; a wildcard stays one."""
    assert names("*.apps.example.com", ()) == (AskedName("api-hostname", "*.apps.example.com"),)


@pytest.mark.parametrize("value", ["https://x", "10.0.0.5", "*", "a.*.example.com"])
def test_what_is_no_name(value: str) -> None:
    """It is refused before anything is sent."""
    with pytest.raises(RequestError, match="setting api-hostname"):
        names(value)
