"""What all tests share: hypothesis's examples, signals, and how tests run side by side."""

from __future__ import annotations

import fcntl
import functools
import gc
import os
import re
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from xdist.scheduler import LoadScopeScheduling

from tests.needs import belongs_here, needs_of, report_skips, require
from tests.open_files import LeakCheck

# What a session collects lives as long as it does: there is no garbage to search for until then.
gc.disable()

# Hypothesis also tries constants of all modules that are imported by then, which it reads for that:
# examples would depend on the tests that ran before, and each worker would read every module.
assert callable(providers._get_local_constants)
providers._get_local_constants = lambda: providers._local_constants

# No deadline, and no health check of how long examples take to draw: time says nothing on a shared
# machine. The same examples everywhere: a change is judged by its own merits, and what fails on one
# machine fails on all.
TIMELESS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", TIMELESS, derandomize=True, max_examples=25)
# `make lab` looks at more of them.
settings.register_profile("more", TIMELESS, derandomize=True, max_examples=100)
# `pytest --hypothesis-profile explore` looks for new failures: other and more examples each time.
settings.register_profile("explore", TIMELESS, derandomize=False, max_examples=1000)
ROOT = Path(__file__).parents[1]
LABS = ROOT / "tests" / "lab"
# `make lab` sets it.
FULL = os.environ.get("NETPROBE_LAB_FULL", "0") not in ("", "0")
# What a test has that takes long, or runs alone.
LONG = r"mark\.(?:slow|lab|full|alone)\b"
WORKER = "PYTEST_XDIST_WORKER" in os.environ

settings.load_profile("more" if FULL else "same")

# Labs start thousands of agents with `python3`: a version manager's shell script before it takes
# five times the processor time of Python's own start.
if Path(sys.base_prefix, "bin/python3").exists():
    os.environ["PATH"] = f"{sys.base_prefix}/bin{os.pathsep}{os.environ['PATH']}"


def pytest_configure(config: pytest.Config) -> None:
    """Let a test that leaves files open fail, and no later one."""
    config.pluginmanager.register(LeakCheck(), "leak-check")


@pytest.fixture
def heeds_signals() -> Iterator[None]:
    """Let this process and its children heed what ends a run, however the tests were started.

    A shell that starts them with ``&`` makes them ignore SIGINT (POSIX, 2.11 Signals and Error
    Handling), nohup makes them ignore SIGHUP, and children inherit that; a signal that has a
    handler is back to its default in them.
    """
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [(number, signal.signal(number, signal.SIG_DFL)) for number in ending]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before:
        signal.signal(number, handler)


# Tests side by side (pytest -n): each worker is a process of its own that builds its own labs.


class SharedLabScheduling(LoadScopeScheduling):  # type: ignore[misc] # pytest-xdist has no types
    """Hand out single tests, but the tests of one lab to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return _unit_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedLabScheduling | None:
    """Use it where ``-n`` was given and nothing else was asked for."""
    return SharedLabScheduling(config, log) if config.getvalue("dist") == "load" else None


def _unit_of(nodeid: str) -> str:
    """The name of what one worker runs: a module, or a single test that takes long."""
    module, _, test = nodeid.partition("::")
    return nodeid if re.match(_long_tests(ROOT / module), test) else module


@functools.cache
def _long_tests(module: Path) -> str:
    """A pattern of the names of a module's tests that are handed out one by one."""
    text = module.read_text(encoding="utf-8")
    if 'scope="module"' in text:
        return "(?!)"
    if LABS in module.parents or re.search(rf"^pytestmark = (?:\[[^]]*|.*){LONG}", text, re.M):
        return ""
    names = re.findall(rf"^@pytest.{LONG}[\s\S]*?\bdef (\w+)", text, re.M)
    return rf"(?:{'|'.join(names)})\b" if names else "(?!)"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark labs; leave out what only `make lab` asks; side by side, begin with what takes long."""
    for item in items:
        if item.nodeid.startswith("tests/lab/"):
            item.add_marker(pytest.mark.lab)
    left_out = {item for item in items if not _is_asked(item)}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))
    if WORKER:
        last = {_unit_of(item.nodeid) for item in items if item.get_closest_marker("alone")}
        items.sort(key=lambda item: _turn_of(item, last))


def _is_asked(item: pytest.Item) -> bool:
    return belongs_here(item) and (FULL or not item.get_closest_marker("full"))


def _turn_of(item: pytest.Item, last: set[str]) -> int:
    unit = _unit_of(item.nodeid)
    if unit in last:
        return 3
    if not any(item.iter_markers("lab")) and not any(item.iter_markers("slow")):
        return 2
    return 0 if unit != item.nodeid else 1


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test before its fixtures are made where it lacks what its marks name."""
    require(*needs_of(item))


def pytest_collection_finish() -> None:
    """Leave what lives as long as the session out of all searches for garbage."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let a test that is marked ``alone`` wait for the tests of other workers, and they for it."""
    if not WORKER:
        return (yield)
    with Path(__file__).open() as lock:
        alone = item.get_closest_marker("alone") is not None
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say last, for each reason to skip tests, how many they are and what would make them run."""
    yield
    reports = [] if WORKER else terminalreporter.getreports("skipped")
    report_skips([report.longrepr[2] for report in reports], terminalreporter.write_line)
