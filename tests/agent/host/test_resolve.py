"""Names as the host's own resolver gives them, without ever stopping the loop."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from netprobe.agent.host import resolve
from netprobe.agent.host.resolve import Resolver
from netprobe.agent.wire.host_messages import (
    Resolved,
    ResolveOrder,
)
from tests.agent.desk import Desk
from tests.open_files import keeping_files


@pytest.fixture
def desk() -> Iterator[Desk]:
    """An agent with a resolver."""
    made = Desk()
    # Its pipe is there as long as its process: a thread may write to it late.
    with keeping_files():
        made.resolver = Resolver(made)
    yield made
    made.resolver.close()
    made.listeners.close()


def asked(desk: Desk, name: str, most_s: float = 20.0) -> tuple[list[str], str | None, str]:
    """What comes back for a name."""
    desk.resolver.submit(ResolveOrder(4, name))
    found = desk.await_message(Resolved, most_s)
    assert found.id == 4
    return found.addresses, found.failure, found.words


def test_a_name_gives_its_addresses_once_each(desk: Desk) -> None:
    """Every address in the resolver's order, none twice."""
    addresses, failure, _words = asked(desk, "localhost")
    assert "127.0.0.1" in addresses or "::1" in addresses
    assert len(set(addresses)) == len(addresses)
    assert failure is None


def test_an_address_is_its_own_name(desk: Desk) -> None:
    """No resolver is asked for what is an address already."""
    assert asked(desk, "127.0.0.1")[0] == ["127.0.0.1"]


@pytest.mark.parametrize("name", ["no.such.host.invalid", "a" * 70 + ".example", "", "a..b"])
def test_a_name_that_is_none_fails_with_words(desk: Desk, name: str) -> None:
    """Whatever the resolver says, it is a failure with its words and no exception."""
    addresses, failure, words = asked(desk, name)
    if not addresses:
        assert failure == "name-not-resolved"
        assert words


def test_a_time_in_which_the_agent_stood_still_does_not_count(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its threads stood still, too: the answer is there soon after, and is the one that counts."""
    answering, look_up = threading.Event(), resolve.look_up

    def slow(name: str) -> resolve.Lookup:
        answering.wait(1000)
        return look_up(name)

    monkeypatch.setattr(resolve, "look_up", slow)
    desk.resolver.submit(ResolveOrder(1, "127.0.0.1"))
    now = desk.loop.now
    # The loop has not run since then, for longer than a name has time.
    monkeypatch.setattr(desk.loop, "now", lambda: now() + 12)
    desk.run(0.1)
    assert desk.messages == []
    answering.set()
    assert desk.await_message(Resolved).addresses == ["127.0.0.1"]


def test_a_resolver_that_hangs_is_given_up(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time ends, other names are answered meanwhile, and a late answer is not sent twice."""
    hanging, look_up = threading.Event(), resolve.look_up

    def slow(name: str) -> resolve.Lookup:
        if name == "slow":
            hanging.wait(1000)
        return look_up(name)

    monkeypatch.setattr(resolve, "look_up", slow)
    monkeypatch.setattr(resolve, "TIMEOUT_S", 2.0)
    desk.resolver.submit(ResolveOrder(1, "slow"))
    desk.resolver.submit(ResolveOrder(2, "127.0.0.1"))
    assert desk.await_message(Resolved).id == 2
    late = desk.await_message(Resolved)
    assert (late.id, late.failure) == (1, "name-not-resolved")
    hanging.set()
    desk.run(0.2)
    assert desk.messages == []
