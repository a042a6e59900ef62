"""A plugin for pytest: ``-p tests.repeat --repeat 200`` runs every chosen test 200 times.

All repetitions run in the same processes, so that they do not cost 200 starts of Python.
"""

from __future__ import annotations

import copy

import pytest
from _pytest.nodeid import NodeId


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the number of times."""
    parser.addoption("--repeat", type=int, default=1, help="run every chosen test so many times")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put each test into the list so many times, under names of their own."""
    numbers = range(1, config.getoption("--repeat") + 1)
    items[:] = [_make_copy(item, number) for number in numbers for item in items]


def _make_copy(item: pytest.Item, number: int) -> pytest.Item:
    made = copy.copy(item)
    # Schedulers that keep a module's tests together know a test by its name alone.
    made._id = NodeId.parse(f"{item.nodeid}#{number}")
    made.stash = pytest.Stash()
    made._report_sections = []
    # Without it all copies would share one request, and so the fixtures of the first.
    if isinstance(made, pytest.Function):
        made._initrequest()
    return made
