"""The names of failures: complete, unique, and honest about what they do not know."""

from __future__ import annotations

import errno

import pytest

from netprobe.agent.wire import failures


def test_every_name_is_listed_once() -> None:
    """FAILURES is the sorted list of everything that name_of can give, without doubles."""
    assert list(failures.FAILURES) == sorted(set(failures.FAILURES))
    assert set(failures.ERRNO_NAMES.values()) <= set(failures.FAILURES)


def test_constants_are_listed() -> None:
    """A name that the module defines is never forgotten in FAILURES."""
    names = {
        value
        for name, value in vars(failures).items()
        if name.isupper() and isinstance(value, str) and name not in ("UNKNOWN_PREFIX", "NO_THREAD")
    }

    assert names == set(failures.FAILURES)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (errno.ECONNREFUSED, "refused"),
        (errno.EHOSTUNREACH, "host-unreachable"),
        (errno.ENETUNREACH, "network-unreachable"),
        (errno.EACCES, "access-denied"),
        (errno.EINVAL, "invalid-route"),
        (errno.ENOPROTOOPT, "protocol-unreachable"),
        (errno.EPERM, "not-permitted"),
        (errno.ETIMEDOUT, "timed-out"),
    ],
)
def test_errno_has_its_name(number: int, name: str) -> None:
    """The errnos of the network facts have the names that the judge's tables use."""
    assert failures.name_of(number) == name


def test_unknown_errno_keeps_its_name() -> None:
    """What we do not know is said with the kernel's own word."""
    assert failures.name_of(errno.EXDEV) == "unknown-EXDEV"
    assert failures.name_of(None).startswith("unknown-")


def test_silence_and_permission_are_no_errnos() -> None:
    """No errno may ever read as silence or as a lack of permission."""
    assert failures.NO_ANSWER not in failures.ERRNO_NAMES.values()
    assert failures.NO_PERMISSION not in failures.ERRNO_NAMES.values()
