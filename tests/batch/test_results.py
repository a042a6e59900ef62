"""Results as they come back: cut, changed, swapped, of another run, with banners in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.orders import CloseOrder, ListenOrder, ProbeOrder
from netprobe.batch.checked_lines import ResultsRefused
from netprobe.batch.results import read_results
from tests.batch.support import HELLO, IDENTITY, KEY, RUN, header, messages, write_file, written

WHOLE = b"".join(written())


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    """Hello, marks with both clocks, orders before their answers, answers by order."""
    found = read_results(write_file(tmp_path, written()), IDENTITY)
    assert (found.name, found.header, found.hello) == ("node-1", header(), HELLO)
    assert [mark.phase for mark in found.marks] == [
        "begin", "listening", "go", "probed", "told", "end",
    ]  # fmt: skip
    assert found.marks[2].wall_s == 102.0
    assert [type(order) for order in found.orders] == [ListenOrder, ProbeOrder, CloseOrder]
    assert {number: len(some) for number, some in found.answers.items()} == {1: 2, 2: 2}
    assert (found.is_cut, found.words) == (False, "")


@pytest.mark.slow
def test_a_file_cut_at_any_byte_is_read_up_to_the_cut(tmp_path: Path) -> None:
    """Every line that is whole counts, and that something is missing is said."""
    lines = written()
    ends = [len(b"".join(lines[:count])) for count in range(len(lines) + 1)]
    orders = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    for cut in range(len(WHOLE)):
        found = read_results([WHOLE[:cut]], IDENTITY, host="node-1")
        # Without its newline a line is whole as well.
        whole = sum(end <= cut + 1 for end in ends) - 1
        assert len(found.orders) == orders[whole], cut
        assert found.is_cut is (whole < len(lines)), cut
        assert bool(found.words) is found.is_cut, cut
    with pytest.raises(ResultsRefused, match=r"x\.npr: holds no results"):
        read_results(write_file(tmp_path, [WHOLE[:20]], "x"), IDENTITY)


def test_a_changed_byte_is_refused_or_what_follows_is_not_read() -> None:
    """Nothing that a host did not write is ever read."""
    genuine = read_results([WHOLE], IDENTITY)
    refusals = set()
    for at in range(len(WHOLE)):
        changed = WHOLE[:at] + bytes([WHOLE[at] ^ 1]) + WHOLE[at + 1 :]
        try:
            found = read_results([changed], IDENTITY, host="node-1", label="a.npr")
        except ResultsRefused as error:
            refusals.add(str(error).partition(":")[0])
            continue
        # The change made the last line one that is none, or a newline another white space.
        same = (found.marks, found.orders) == (genuine.marks, genuine.orders)
        assert found.is_cut or same, at
        assert found.marks == genuine.marks[: len(found.marks)], at
    assert refusals == {"a.npr"}


def test_lines_that_are_missing_are_refused() -> None:
    """Somebody has cut a piece out."""
    lines = written()
    with pytest.raises(ResultsRefused, match=r"a\.npr: line 3 is missing"):
        read_results([*lines[:3], *lines[4:]], IDENTITY, label="a.npr")
    with pytest.raises(ResultsRefused, match=r"a\.npr: lines 0 to 1 are missing"):
        read_results(lines[2:], IDENTITY, label="a.npr")
    swapped = [*lines[:3], lines[4], lines[3], *lines[5:]]
    with pytest.raises(ResultsRefused, match="line 3 is missing"):
        read_results(swapped, IDENTITY)


def test_swapped_files_are_refused(tmp_path: Path) -> None:
    """A file with the name of one host and the results of another says whose it is."""
    path = write_file(tmp_path, written(4), "node-1")
    with pytest.raises(ResultsRefused, match=r"node-1\.npr: is of node-2, not of node-1"):
        read_results(path, IDENTITY)
    assert read_results(write_file(tmp_path, written(4), "usb"), IDENTITY).name == "node-2"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run": "00"}, f"is of run {RUN}, not of 00"),
        ({"hosts": {3: "other"}}, "is of node-1, which is no host"),
        ({"results_key": KEY}, "was not written with the key of node-1"),
    ],
)
def test_what_is_not_of_this_run_is_refused(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    """Another run, another round, a host of no run, another key: the words name the file."""
    with pytest.raises(ResultsRefused, match=rf"node-1\.npr: .*{words}"):
        read_results(write_file(tmp_path, written()), replace(IDENTITY, **changes))


def test_another_version_is_refused() -> None:
    """A format or a wire that this version does not know."""
    for changes in ({"wire": 99}, {"format": 1}):
        with pytest.raises(ResultsRefused, match="another version") as caught:
            read_results(written(**changes), IDENTITY)
        assert caught.value.hosts == ("node-1",)


def test_a_round_that_was_not_asked_is_refused() -> None:
    """The words say which ones were."""
    with pytest.raises(ResultsRefused, match="is of round 3; expected: 1 to 2"):
        read_results(written(round=3), replace(IDENTITY, rounds=2))


def test_banners_and_repeated_output_do_no_harm() -> None:
    """Engines print what hosts print: before, after, in between, twice, with other line ends."""
    lines = written()
    first, second = b"".join(lines[:4]), b"".join(lines)
    noisy = b"Welcome to NPR land\nPassword: " + first + b"logout\n" + second + b"bye\n"
    dos = noisy.replace(b"\n", b"\r\n")
    cut = first[:-20] + second
    for data in (noisy, dos, first + first + second + second, cut):
        assert read_results([data], IDENTITY).orders == read_results([WHOLE], IDENTITY).orders
    assert not read_results([cut], IDENTITY).is_cut


def test_the_last_start_of_a_host_counts() -> None:
    """A host that was restarted, and started again, has begun a new file in the same place."""
    first = written(started="2026-11-22T13:00:00Z")[:4]
    found = read_results([*first, *written()], IDENTITY)
    assert found.header == header()
    assert len(found.orders) == 3


def test_a_host_that_was_stopped_says_so() -> None:
    """Its last mark is in the words."""
    lines = written()[:-1]
    found = read_results(lines, IDENTITY)
    assert found.is_cut
    assert found.words == f"is cut off after {len(lines)} lines; the last that it tells is 'probed'"
    assert len(messages()) == len(lines)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """The reason is the system's."""
    with pytest.raises(ResultsRefused, match=r"gone\.npr: there is no such file"):
        read_results(tmp_path / "gone.npr", IDENTITY)
