"""How long a host may take for a step, and how much it may print: from its own orders."""

from __future__ import annotations

from netprobe.batch.engine_folder import limit_bytes, limit_steps
from netprobe.batch.script import HostScript
from tests.batch.world import first_round, plan_of, request_of

FED = {"start": 100_000}
WAITS_S = 690


def _scripts(last: int) -> list[HostScript]:
    """What three hosts do who ask each other for these ports."""
    return first_round(request_of(plan_of(("web", "tcp", ((1000, last),)))))[1]


def test_limits_grow_with_the_work() -> None:
    """A host that is asked little is given up soon; one that is asked much may take its time."""
    little, much = (limit_steps(_scripts(last), FED, WAITS_S) for last in (1001, 1100))

    assert set(little) == {"start", "go", "wait", "collect", "stop", "halt"}
    assert little["wait"] < much["wait"] < limit_steps(_scripts(9000), FED, WAITS_S)["wait"]
    assert all(20 < little[step] < 90 for step in ("start", "go", "collect", "stop"))
    assert limit_bytes(_scripts(9000)[0]) > limit_bytes(_scripts(1001)[0]) > 1_000_000


def test_no_step_takes_longer_than_its_commands_wait() -> None:
    """Whatever the plan: commands give up by themselves, and the way to the host is bounded too."""
    assert limit_steps(_scripts(60_000), FED, WAITS_S)["wait"] == WAITS_S + 30


def test_a_slow_line_has_time() -> None:
    """What is sent to a host (a Python, or much work) takes a second for each 100 KB."""
    fed = {"start": 100_000, "start-runtime": 5_100_000}
    limits = limit_steps(_scripts(1001), fed, WAITS_S)

    assert limits["start-runtime"] - limits["start"] == 50
