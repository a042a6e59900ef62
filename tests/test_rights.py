"""What a process may do, and what a test that needs more says."""

from __future__ import annotations

import pytest

from tests import rights
from tests.conftest import pytest_runtest_setup
from tests.needs import require
from tests.rights import lack_of, without_rights


@pytest.mark.parametrize("name", rights.RIGHTS)
def test_a_right_is_there_or_has_the_kernels_reason(name: str) -> None:
    """Each can be asked about anywhere; a lack has a reason and a remedy."""
    lack = lack_of(name)

    assert lack is None or all(lack)


@pytest.mark.parametrize("name", ["raw sockets", "mounts", "other users"])
def test_a_right_that_is_given_up_is_missing(name: str) -> None:
    """The kernel answers, not the uid, which stays the same; afterwards the right is back."""
    require(name)
    with without_rights(), pytest.raises(PermissionError):
        rights.RIGHTS[name].use()

    rights.RIGHTS[name].use()


def test_a_missing_program_skips_and_names_its_package(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """With the target that installs it."""
    monkeypatch.setattr(rights, "find_program", lambda name: None)
    request.node.add_marker(pytest.mark.needs("dig"))
    lack_of.cache_clear()
    try:
        with pytest.raises(pytest.skip.Exception) as skipped:
            pytest_runtest_setup(request.node)
    finally:
        lack_of.cache_clear()

    assert skipped.value.msg == (
        "dig is not installed; needs `make lab-packages` as root (Debian: bind9-dnsutils)"
    )


def test_a_need_that_nothing_provides_is_an_error() -> None:
    """A misspelt program would skip a test for ever."""
    with pytest.raises(ValueError, match=r"^xmlint: neither a right .* nor in .*packages\.sh$"):
        lack_of("xmlint")
