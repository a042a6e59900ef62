"""Server names: from the requirement, from a setting, and what a missing one costs."""

from __future__ import annotations

import pytest

from netprobe.errors import RequestError
from netprobe.model.inventory import Inventory
from netprobe.model.matrix import Setting, SettingRef
from netprobe.model.plan import Block
from netprobe.plan.expand import make_plan

from .conftest import TODAY, chosen_matrix, host, requirement


def block(value: str, address: str = "10.0.0.2") -> Block:
    """The one block of a requirement whose name is a setting with this value."""
    sni = SettingRef("name")
    wanted = requirement("x", "node", "external", probe="konnectivity", sni=sni)
    chosen = chosen_matrix([wanted], settings={"name": Setting("name", "string", value)})
    hosts = (
        host("a", "node", addresses=("10.0.0.1",)),
        host("b", "external", addresses=(address,)),
    )
    (found,) = make_plan([chosen], Inventory(hosts), TODAY).blocks
    return found


def test_the_setting_gives_the_name() -> None:
    """The block carries the value."""
    assert (block("k.example.com").sni, block("k.example.com").warnings) == ("k.example.com", ())


def test_an_empty_setting_is_a_warning() -> None:
    """An address alone says nothing to a router: the warning names the setting."""
    found = block("")

    assert found.sni == ""
    assert "--set name=NAME" in found.warnings[0]


def test_a_destination_by_name_needs_no_setting() -> None:
    """Its own name is asked for."""
    assert block("", "k.example.com").warnings == ()


@pytest.mark.parametrize("value", ["https://k.example.com", "k..example.com", "10.0.0.1", "a b"])
def test_what_is_no_name(value: str) -> None:
    """It is refused before anything is sent, with the name of the setting."""
    with pytest.raises(RequestError, match="setting name"):
        block(value)
