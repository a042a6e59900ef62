"""Who refused the data of a connection, by the errors that recorders saw."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from netprobe.model.evidence import Icmp, Outcome
from netprobe.model.story import Story, StoryError
from netprobe.probe.checks.story_reading import with_refusal
from tests.probe.builders import make_observation

ROUTER = "10.0.0.254"
ERROR = StoryError(ROUTER, 3, 13, 64, 1)
FAILED = Outcome("answer", "host-unreachable", attempts=2)


@pytest.mark.parametrize(
    ("error", "origin"),
    [
        (ERROR, "router"),
        (replace(ERROR, sender="10.0.0.2"), "destination"),
        (replace(ERROR, left="a", arrived=False), "source"),
    ],
)
def test_a_recorder_tells_who_refused_data(error: StoryError, origin: str) -> None:
    """The conclusion has the error; what was measured stays as it is."""
    found = with_refusal(replace(make_observation(FAILED), story=Story(errors=(error,))))

    assert found.outcome == FAILED
    assert found.refusal == Icmp(3, 13, error.sender, origin, 64)  # type: ignore[arg-type]
    assert found.heard == replace(FAILED, icmp=found.refusal)


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (replace(FAILED, operation="connect"), ERROR),
        (replace(FAILED, failure=None, answer="nonce"), ERROR),
        (replace(FAILED, icmp=Icmp(3, 1, ROUTER, "router")), ERROR),
        (FAILED, replace(ERROR, type=None, code=None)),
        (FAILED, replace(ERROR, arrived=False)),
    ],
)
def test_what_the_source_knows_itself_stands(outcome: Outcome, error: StoryError) -> None:
    """Nothing refused a connect that an errno explains, an answer, or data that met a reset."""
    found = with_refusal(replace(make_observation(outcome), story=Story(errors=(error,))))

    assert found.refusal is None
    assert found.heard is outcome
