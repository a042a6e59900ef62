"""The containers of a pod, as the kubelet starts them: real processes, with files as messages."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from netprobe.batch.checked_lines import ResultsRefused
from netprobe.batch.script import HostScript
from netprobe.cluster.pages import join_pages, read_page
from tests.agent.batch.carried import RUN, bundle_of, script
from tests.agent.interpreters import INTERPRETERS
from tests.batch.support import FOUND, IDENTITY, outcomes_of, phases
from tests.patience import PATIENCE_S
from tests.ports import free_port

pytestmark = pytest.mark.slow

RUN_IDENTITY = replace(IDENTITY, run=RUN)


def start_container(
    folder: Path,
    wanted: HostScript,
    page: int,
    limits: str,
    python: str = sys.executable,
    words: Sequence[str] = (),
) -> str:
    """Run a container to its end, and give its message."""
    bundle = bundle_of(folder, wanted)
    message = folder / f"message-{page}"
    message.touch()
    done = subprocess.run(
        [python, str(bundle), "--host", wanted.start.name, "--page", str(page), "--limits", limits,
         "--pages", str(folder), "--message", str(message), *words],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    # A container that fails would be started again.
    assert (done.returncode, done.stderr) == (0, "")
    return message.read_text()


@pytest.mark.parametrize("version", [next(iter(INTERPRETERS))])
def test_each_container_leaves_its_page(version: str, tmp_path: Path) -> None:
    """The first one carries the round out; what had no room there is on the page of the second."""
    wanted = script(phases(free_port()))
    python = INTERPRETERS[version]
    messages = [start_container(tmp_path, wanted, at, "480,4096", python) for at in (1, 2)]
    pages = [read_page(one, f"page {at}", RUN_IDENTITY, 3) for at, one in enumerate(messages, 1)]
    assert len(messages[0]) <= 480
    assert pages[0].header.others_left > 0
    found = join_pages(pages, RUN_IDENTITY, wanted)
    assert (outcomes_of(found), found.words) == (FOUND, "")
    assert [one.order for one in found.answers[902][0].orders] == [1, 2]
    # The closed port failed, and so has room before all else.
    assert 3 in outcomes_of(join_pages(pages[:1], RUN_IDENTITY, wanted))


@pytest.mark.parametrize("version", [next(iter(INTERPRETERS))])
def test_the_last_container_hands_on_all_other_pages(version: str, tmp_path: Path) -> None:
    """One each time that it is started again; then it stays, until somebody ends it."""
    wanted, python, limits = script(phases(free_port())), INTERPRETERS[version], "1,1,1,1"
    for number in (3, 4):
        (tmp_path / f"page-{number}").write_text(f"page {number}")
    pause = ("--pause", "0.1")
    found = [start_container(tmp_path, wanted, 3, limits, python, pause) for _ in range(2)]
    assert found == ["page 3", "page 4"]
    assert not list(tmp_path.glob("page-*"))
    left = subprocess.Popen(
        [python, str(tmp_path / "run.pyz"), "--page", "3", "--limits", limits, *pause,
         "--pages", str(tmp_path), "--message", str(tmp_path / "message")]
    )  # fmt: skip
    with pytest.raises(subprocess.TimeoutExpired):
        left.wait(2)
    left.terminate()
    left.wait(PATIENCE_S)
    assert not (tmp_path / "message").exists()


def test_why_there_is_no_page_is_the_message(tmp_path: Path) -> None:
    """Too late: the words come by the same way, and the second container says nothing."""
    late = script(phases(free_port()), ends_at=time.time() - 60)
    message = start_container(tmp_path, late, 1, "4096,4096")
    assert message.startswith("netprobe: too late: this run ended at ")
    with pytest.raises(ResultsRefused, match="pod x: did nothing: too late"):
        read_page(message, "pod x", RUN_IDENTITY, 3)
    assert start_container(tmp_path, late, 2, "4096,4096") == ""
