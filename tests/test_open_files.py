"""Open files of the tests: who leaves some is named, and who needs many has room for them."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.open_files import open_files, room_for_files

ROOT = Path(__file__).parents[1]
CONFTEST = """
from tests.open_files import LeakCheck

def pytest_configure(config):
    config.pluginmanager.register(LeakCheck(closing_s=0.1))
"""
TESTS = """
import os, socket, pytest

@pytest.fixture(scope="module")
def shared():
    with open("/dev/null") as file:
        yield file

@pytest.fixture
def own():
    with open("/dev/null") as file:
        yield file

def test_borrows(shared, own): pass

def test_fails():
    socks = [socket.socket() for _ in range(50)]
    assert not socks

def test_leaves(): os.open("/dev/zero", os.O_RDONLY)

def test_is_tidy(shared): os.close(os.open("/dev/zero", os.O_RDONLY))
"""


@pytest.mark.slow
def test_who_leaves_files_open_is_named(tmp_path: Path) -> None:
    """Fixtures of a module keep theirs; what a failed test had in its hands is closed for it."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    # Whatever else lies in the folders above is not its own.
    own = ["-c", os.devnull, "--rootdir", ".", "--confcutdir", "."]
    command = [sys.executable, "-m", "pytest", "-q", "-rA", *own, "test_it.py"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    found = re.findall(r"^([A-Z]+) test_it\.py::(\w+)", done.stdout, re.MULTILINE)
    assert found, (done.returncode, done.stdout, done.stderr)
    assert found == [
        ("PASSED", "test_borrows"),
        ("PASSED", "test_leaves"),
        ("PASSED", "test_is_tidy"),
        ("ERROR", "test_leaves"),
        ("FAILED", "test_fails"),
    ]
    assert "test_it.py::test_leaves left 1 files open: [(" in done.stdout
    assert "'/dev/zero')]" in done.stdout


def open_many_and_fail(count: int) -> None:
    """Close them, too."""
    for descriptor in [os.open("/dev/null", os.O_RDONLY) for _ in range(count)]:
        os.close(descriptor)
    raise ZeroDivisionError


def test_room_is_given_back() -> None:
    """More files than the soft limit allows can be opened, also where the test then fails."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(open_files()) + 10, before[1]))
    try:
        low = resource.getrlimit(resource.RLIMIT_NOFILE)
        with pytest.raises(ZeroDivisionError), room_for_files(100):
            open_many_and_fail(100)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == low
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
