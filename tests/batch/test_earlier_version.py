"""Files of version 0.1.0: what hosts and plans wrote in another format is refused by its name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.command import netprobe

OLD = Path(__file__).parents[1] / "golden" / "0.1.0"


@pytest.mark.slow
def test_a_bundle_of_an_earlier_version_is_refused_by_name(tmp_path: Path) -> None:
    """``merge`` and ``bundle --next`` name the file and say that another version made it."""
    for name in ("batch.pyz", "batch.npr"):
        shutil.copy(OLD / name, tmp_path)
    for words in (("merge", "batch.pyz"), ("bundle", "-o", "next.pyz", "--next", "batch.pyz")):
        done = netprobe(*words, "batch.npr", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "batch.pyz: was made by another version of netprobe" in done.stderr
    assert not (tmp_path / "next.pyz").exists()
