"""Whether only small packets get through, and how a user sees that."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from netprobe.errors import AgentError
from netprobe.vantage import launch as launch_module
from netprobe.vantage.base import Way
from netprobe.vantage.large_packets import LINES_SCRIPT, find_hole, word_hole
from netprobe.vantage.launch import Launcher, start_agent
from tests.patience import PATIENCE_S
from tests.vantage.support import HOST, KEY, command

GREET = "echo NETPROBE-LINES; "
FIRST = GREET + "read -r x; echo has ${#x}; "
# Long enough for a shell to print a line.
ANSWER_S = 5.0


@pytest.mark.slow
async def test_the_way_of_the_lost_line_is_found() -> None:
    """The first answer that does not come tells it; before a small line nothing is known."""
    scripts = {
        LINES_SCRIPT: None,
        "sleep 1000": None,
        GREET + "sleep 1000": None,
        FIRST + "sleep 1000": "there",
        FIRST + "read -r x; echo has ${#x}; sleep 1000": "back",
        # Who hangs up loses no packets.
        FIRST + "exit 0": None,
        "exit 255": None,
    }
    found = await asyncio.gather(*(find_hole(["sh", "-c", one], ANSWER_S) for one in scripts))

    assert dict(zip(scripts, found, strict=True)) == scripts
    assert await find_hole(["/no/such/program"]) is None


def test_the_script_answers_lines_of_both_sizes() -> None:
    """It survives any login shell: one line without what a shell reads inside single quotes."""
    done = subprocess.run(
        ["sh", "-c", LINES_SCRIPT], input="abc\nlong\n", capture_output=True, text=True,
        check=True, timeout=PATIENCE_S,
    )  # fmt: skip
    begin, three, long, was = done.stdout.splitlines()

    assert (begin, three, len(long), was) == ("NETPROBE-LINES", "has 3", 4000, "was long")
    assert not {*"\n!\\'"} & {*LINES_SCRIPT}


@pytest.mark.parametrize(
    ("hole", "target", "words"),
    [
        ("there", "127.0.0.1", ("4,000 bytes to it", "`ping -M do -s 65507 127.0.0.1` gets no")),
        ("back", "::1", ("4,000 bytes from it", "`ping -M do -s 1232 ::1` does")),
        # Nobody but ssh knows what this stands for.
        ("back", "no.such.host.invalid", ("`ping -M do -s 1472 no.such.host.invalid` gets no",)),
    ],
)
def test_a_user_sees_it_by_ping(hole: str, target: str, words: tuple[str, ...]) -> None:
    """The larger size fills a packet of this machine's own device."""
    said = word_hole(hole, target)  # type: ignore[arg-type]

    assert all(one in said for one in words), said


@pytest.mark.slow
async def test_a_start_that_hangs_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its words stay, and the cause stands behind; a start of another kind keeps its own."""
    hangs = command("sh", "-c", "sleep 1000", "-")
    way = launch_module.VANTAGES["command"]
    small = Way(
        way.argv, way.explain,
        small=lambda _host, _script: ["sh", "-c", FIRST + "sleep 1000"],
        target=lambda _host: "127.0.0.1",
    )  # fmt: skip
    # What a busy machine gives a start more is not the same for both.
    monkeypatch.setattr(launch_module, "measure_wait_s", lambda pid: 0.0)
    monkeypatch.setattr(launch_module, "LATE_S", 1000.0)
    errors = []
    for one in (way, small):
        monkeypatch.setitem(launch_module.VANTAGES, "command", one)
        async with Launcher(start_timeout_s=ANSWER_S) as launcher:
            with pytest.raises(AgentError) as caught:
                await start_agent(hangs, HOST, key=KEY, launcher=launcher)
        errors.append(caught.value)

    assert [one.reason for one in errors] == ["start-timeout", "mtu-black-hole"]
    assert str(errors[1]).startswith(f"{errors[0]}; with small packets the login works")
