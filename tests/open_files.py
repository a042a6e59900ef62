"""Open files of the test process: room for many of them, and which test left some open."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import sys
import time
import warnings
from collections.abc import Generator, Iterator

import pytest

from tests.needs import skip

# Number and name of a file, such as (12, "socket:[4711]"): a number alone is used again.
OpenFile = tuple[int, str]

_BEFORE = pytest.StashKey[set[OpenFile]]()
_KEPT: set[OpenFile] = set()


@contextlib.contextmanager
def room_for_files(count: int) -> Iterator[None]:
    """Let this process open so many more files for a while; skip where that is forbidden."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = len(open_files()) + count
    if hard < wanted:
        skip(f"no more than {hard} open files here", f"`ulimit -Hn` of {wanted} or more")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def open_files() -> set[OpenFile]:
    """What this process has open now."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.add((int(name), os.readlink(f"/proc/self/fd/{name}")))
    return found


@contextlib.contextmanager
def keeping_files() -> Iterator[None]:
    """What is opened in here may stay open: it belongs to more than one test."""
    before = open_files()
    try:
        yield
    finally:
        _KEPT.update(open_files() - before)


class LeakCheck:
    """A plugin of pytest: a test that leaves files open is an error of that test.

    Threads that end with a test have ``closing_s`` seconds to close theirs.
    """

    def __init__(self, closing_s: float = 5.0) -> None:
        self.closing_s = closing_s

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        """Remember what is open."""
        _KEPT.clear()
        item.stash[_BEFORE] = open_files()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None]:
        """Let fixtures of modules and sessions keep what they open."""
        with keeping_files() if fixturedef.scope != "function" else contextlib.nullcontext():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        """Look again when the test's fixtures are gone."""
        result = yield
        # What fixtures gave is held here until the next test.
        vars(item).get("funcargs", {}).clear()
        left = _left_open(item.stash[_BEFORE] | _KEPT, self.closing_s)
        if left:
            pytest.fail(f"{item.nodeid} left {len(left)} files open: {sorted(left)[:10]}", False)
        return result


def _left_open(before: set[OpenFile], closing_s: float) -> set[OpenFile]:
    if open_files() <= before:
        return set()
    # pytest keeps the last failure, and with it all that the failed test had in its hands.
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        sys.__dict__.pop(name, None)
    end = time.monotonic() + closing_s
    while time.monotonic() < end:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
        if open_files() <= before:
            return set()
        time.sleep(0.05)
    return open_files() - before
