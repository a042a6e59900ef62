"""When an agent dials its own listeners; what comes of it is in ``test_arrival_log``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from netprobe.agent.listeners.rounds import ListenerRound
from netprobe.agent.listeners.self_test import MOST_S, QUIET_S, SelfDial


class Clock:
    """A loop whose time the test tells. ``due``: what was arranged last."""

    def __init__(self) -> None:
        self.time = 0.0
        self.due: tuple[float, Callable[[], None]] | None = None

    def now(self) -> float:
        return self.time

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Any:
        self.due = (delay_s, call)
        return self

    def cancel(self) -> None:
        self.due = None

    def pass_time(self) -> float:
        """Let time pass until what is due; gives how long that was."""
        assert self.due is not None
        (delay_s, call), self.due = self.due, None
        self.time += delay_s
        call()
        return delay_s


class Unreachable:
    """A port whose dials never arrive."""

    reached = unreached = False
    template = None


def dial(*ports: Any) -> tuple[Clock, ListenerRound, SelfDial, list[str]]:
    """A dial of these ports, and a list that says when it is done."""
    clock, of_round = Clock(), ListenerRound(b"", 0)
    of_round.ports = lambda: list(ports)  # type: ignore[method-assign]
    done: list[str] = []
    return clock, of_round, SelfDial(clock, b"", of_round, 1), done  # type: ignore[arg-type]


def test_a_round_is_dialled_when_nothing_comes_any_more() -> None:
    """A host that is busy with all others has no time for calls of its own."""
    clock, of_round, made, done = dial()
    for _ in range(3):
        of_round.arrivals += 1
        assert clock.pass_time() == QUIET_S
        assert clock.due is not None
    clock.pass_time()

    assert clock.due is None
    made.when_done(lambda: done.append("done"))
    assert done == ["done"]


def test_who_asks_does_not_wait_for_quiet() -> None:
    """The dials begin at once, and everybody who waits is told, once."""
    clock, of_round, made, done = dial()
    of_round.arrivals += 1
    for name in ("first", "second"):
        made.when_done(lambda name=name: done.append(name))  # type: ignore[misc]

    assert (done, clock.due) == (["first", "second"], None)


def test_who_asks_does_not_wait_for_thousands_of_dials_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A host with few files dials a few at a time; nothing is said of those that are left."""
    ports = [Unreachable() for _ in range(15)]
    clock, _, made, done = dial(*ports)
    monkeypatch.setattr(made, "_dial_port", lambda port, attempt: made._calls.update(
        {port: type("Call", (), {"attempt": attempt, "deadline": clock.time + 0.25,
                                 "push": lambda self: None, "close": lambda self: None})()}
    ))  # fmt: skip
    made.when_done(lambda: done.append("done"))
    while clock.due is not None:
        clock.pass_time()

    assert done == ["done"]
    assert MOST_S <= clock.time < MOST_S + 1
    assert 0 < sum(port.unreached for port in ports) < len(ports)
