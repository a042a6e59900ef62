"""Which hosts still have an address that ``netprobe init`` wrote."""

from __future__ import annotations

import pytest

from netprobe.load.inventory.suspects import placeholder_notes, placeholder_problems
from netprobe.model.inventory import Address, Host, Ssh, Vantage

EXAMPLE = Address("192.0.2.10", 4)


@pytest.mark.parametrize(
    ("name", "vantage", "is_example"),
    [
        ("node-0", Vantage("none"), True),
        ("node-0", Vantage("ssh", Ssh("192.0.2.10")), True),
        ("n1", Vantage("ssh", Ssh("192.0.2.10")), True),
        ("n1", Vantage("none"), False),
        # A way in of its own leads to a machine that is there.
        ("node-0", Vantage("local"), False),
        ("node-0", Vantage("command", command=("ip", "netns", "exec", "n")), False),
        ("node-0", Vantage("ssh", Ssh("10.0.0.9")), False),
    ],
)
def test_an_example_has_no_way_in_of_its_own(name: str, vantage: Vantage, is_example: bool) -> None:
    """A documentation address is an example by the host's name, or where ssh would go to it."""
    hosts = [Host(name, (EXAMPLE,), ("node",), vantage, place="f:1:1")]

    assert bool([*placeholder_problems(hosts)]) is is_example
    assert bool(placeholder_notes(hosts)) is is_example
