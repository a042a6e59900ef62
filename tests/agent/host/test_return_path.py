"""What the kernel says of the way back; broken ones need namespaces (``tests/lab``)."""

from __future__ import annotations

import pytest

from netprobe.agent.host.route import holder, look_up_return_path, neighbour
from netprobe.agent.net.netlink import attribute, attributes
from netprobe.agent.wire.host_messages import (
    ReturnPath,
    ReturnPathOrder,
)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_host_can_answer_itself(address: str) -> None:
    """No failure, nobody to resolve, and the device that has the address."""
    answer = look_up_return_path(ReturnPathOrder(7, address, address))

    assert answer._replace(neighbour=None, strict=[]) == ReturnPath(
        7, dev="lo", next_hop=address, neighbour=None, holder="lo", strict=[], failure=None
    )
    assert answer.neighbour in (None, "known")


def test_an_address_of_nobody_has_no_holder_and_no_entry() -> None:
    """What is not there is None, not an error."""
    assert holder("192.0.2.77") is None
    assert neighbour("192.0.2.77", "lo") == (None, None)


def test_an_answer_from_an_address_of_others_fails() -> None:
    """The kernel's errno by its name."""
    assert look_up_return_path(ReturnPathOrder(7, "127.0.0.1", "192.0.2.1")).failure is not None


def test_attributes_are_read_as_they_are_written() -> None:
    """Values are padded to four bytes, and the padding is no part of them."""
    raw = attribute(1, b"abc") + attribute(2, b"")
    assert len(raw) == 12

    assert list(attributes(raw)) == [(1, b"abc"), (2, b"")]
