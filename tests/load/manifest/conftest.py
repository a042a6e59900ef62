"""The desk of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.load.manifest.estate import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """An empty folder that is the working folder."""
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path)
