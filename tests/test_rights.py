"""What a process may do, and what a test that needs more says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import rights
from tests.conftest import pytest_runtest_setup
from tests.lab.userns import MARK
from tests.needs import APART, SKIPS, belongs_here, report_skips, require
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


@pytest.mark.parametrize(("needs", "inside"), [(["raw sockets", "sudo"], True), (["sudo"], False)])
def test_each_test_belongs_to_one_part(
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    needs: list[str],
    inside: bool,
) -> None:
    """What needs a right that only the user namespace has runs there, all else outside."""
    request.node.add_marker(pytest.mark.needs(*needs))
    monkeypatch.setenv(APART, "mounts,raw sockets")
    monkeypatch.delenv(MARK, raising=False)
    outside = belongs_here(request.node)
    monkeypatch.setenv(MARK, "1")

    assert (belongs_here(request.node), outside) == (inside, not inside)


def test_skips_are_counted_by_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Parts note theirs, and the last lines count those of all parts, the most frequent first."""
    monkeypatch.setenv(SKIPS, str(tmp_path / "notes"))
    for _part in range(2):
        report_skips(["Skipped: no a; needs b"], pytest.fail)
    report_skips(["Skipped: no c;\nneeds d"], pytest.fail)
    monkeypatch.delenv(SKIPS)
    lines: list[str] = []
    report_skips((tmp_path / "notes").read_text().splitlines(), lines.append)

    assert lines == ["skipped 2: no a; needs b", "skipped 1: no c; needs d"]
