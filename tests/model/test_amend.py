"""Copies with other values are those that ``dataclasses.replace`` makes."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from netprobe.model.amend import amend
from netprobe.model.evidence import Evidence, Outcome
from netprobe.probe.flows.prober import Observation

AMENDED: tuple[type[Any], ...] = (Evidence, Observation, Outcome)


@pytest.mark.parametrize("kind", AMENDED, ids=lambda kind: kind.__name__)
def test_a_copy_is_that_of_replace(kind: type[Any]) -> None:
    """Each field may be another; the first object stays as it was, and no field is left out."""
    assert is_dataclass(kind)
    names = [one.name for one in fields(kind)]
    whole = kind(**{name: number for number, name in enumerate(names)})
    before = repr(whole)
    for name in names:
        changed = amend(whole, **{name: "other"})
        assert changed == replace(whole, **{name: "other"})
        assert hash(changed) == hash(replace(whole, **{name: "other"}))
    assert repr(whole) == before


def test_what_is_no_field_is_refused() -> None:
    """A word that is written wrongly would be lost."""
    with pytest.raises(TypeError, match="Outcome has not all of nonsense"):
        amend(Outcome("connect", None, None), nonsense=1)  # type: ignore[call-arg]
