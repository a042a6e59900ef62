"""What the tests know of the verdict tables.

    python -m tests.rows wrong [TESTS...]           makes each row wrong, one at a time
    python -m tests.rows read FILE [TESTS...]       lists in FILE which test reads which row

``wrong`` runs tests that judge in their own process; ``read`` sees commands of labs too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from tests.rows.recording import VARIABLE, list_rows, record_rows
from tests.rows.wrong import RowSpoiler

JUDGING = ("tests/judge", "tests/explain", "tests/test_pipeline.py", "tests/probe")
# Python carries it out at its start (module site); agents start without.
_START = (
    f"import os; os.environ.get({VARIABLE!r}) and "
    f"__import__('tests.rows.recording').rows.recording.record_rows(os.environ[{VARIABLE!r}])\n"
)


def make_rows_wrong(tests: list[str]) -> int:
    """Print how many wrong rows no test notices, and which."""
    words = ["-o", "addopts=--import-mode=importlib", "-p", "no:terminal", "-p", "no:cacheprovider"]
    with tempfile.TemporaryDirectory() as folder:
        spoiler = RowSpoiler(Path(folder) / "read")
        record_rows(str(spoiler.record))
        pytest.main([*words, "-m", "not lab and not slow", *(tests or JUDGING)], plugins=[spoiler])
    print(f"{spoiler.count} wrong rows, {spoiler.count - spoiler.unnoticed} noticed")
    return 0 if spoiler.count else 1


def list_read_rows(record: Path, tests: list[str]) -> int:
    """Run tests, and print how many rows they and their commands read, and which they do not."""
    start = Path(sysconfig.get_path("purelib")) / "netprobe-rows-read.pth"
    start.write_text(_START, encoding="utf-8")
    try:
        words = [sys.executable, "-m", "pytest", *tests]
        status = subprocess.run(
            words, env=os.environ | {VARIABLE: str(record)}, check=False
        ).returncode
    finally:
        start.unlink()
    read = {line.split("\t")[1] for line in record.read_text(encoding="utf-8").splitlines()}
    names = [name for name, _ in list_rows()]
    print("\n".join(f"not read: {name}" for name in names if name not in read))
    print(f"{len(names)} rows, {len(read & set(names))} read")
    return status


if __name__ == "__main__":
    if sys.argv[1:2] == ["wrong"]:
        sys.exit(make_rows_wrong(sys.argv[2:]))
    if sys.argv[1:2] == ["read"] and len(sys.argv) > 2:
        sys.exit(list_read_rows(Path(sys.argv[2]).absolute(), sys.argv[3:]))
    sys.exit(__doc__)
