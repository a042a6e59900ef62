"""One code in other words, where more is known than the code says."""

from __future__ import annotations

from typing import get_args

import pytest

from netprobe.konnectivity.verdicts import VARIANTS, VERDICTS
from netprobe.model.konnectivity import STAGES, TunnelPlace


@pytest.mark.parametrize("key", VARIANTS)
def test_a_variant_changes_words_and_no_outcome(key: tuple[str, str]) -> None:
    """Code, outcome and stage are those of the code; its place is one of the list."""
    code, variant = VERDICTS[key[0]], VARIANTS[key]
    assert (variant.outcome, variant.stage) == (code.outcome, code.stage)
    assert variant.where in get_args(TunnelPlace)
    assert variant.stage in STAGES
    assert variant.title != code.title
