"""Odd values at every place of good matrices and inventories: problems, never a traceback."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import yaml

from netprobe.load.matrix.bundled import bundled_path
from tests.load.test_fuzz import GOOD, survives
from tests.mutations import json_of, mutated

SEED = 20261122
FILES = (
    GOOD / "base.yaml",
    GOOD / "layer.yaml",
    GOOD / "inventory.yaml",
    GOOD / "accepted.yaml",
    bundled_path("okd-hcp"),
)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "count",
    [30, pytest.param(100, marks=pytest.mark.full), pytest.param(3000, marks=pytest.mark.full)],
)
def test_odd_values(path: Path, count: int, tmp_path: Path) -> None:
    """Every such file is read, or each of its problems is one printable line."""
    good = json.loads(json.dumps(yaml.safe_load(path.read_text()), default=str))
    chance = random.Random(SEED + count)
    for _ in range(count):
        (tmp_path / "f.yaml").write_bytes(json_of(mutated(good, chance), chance))
        survives(tmp_path / "f.yaml")
