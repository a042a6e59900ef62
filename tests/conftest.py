"""What all tests share: how hypothesis chooses its examples, and signals as a terminal has them."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# No deadline: the time of one example says nothing on a shared machine. The same examples
# everywhere: a change is judged by its own merits, and what fails on one machine fails on all.
settings.register_profile("same", deadline=None, derandomize=True)
# `pytest --hypothesis-profile explore` looks for new failures: other and more examples each time.
settings.register_profile("explore", deadline=None, derandomize=False, max_examples=1000)
settings.load_profile("same")


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Let this process's children heed SIGINT, also where a shell started the tests with ``&``.

    Such a shell makes its commands ignore SIGINT (POSIX, 2.11 Signals and Error Handling), and
    children inherit that; a signal that has a handler is back to its default in them.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
