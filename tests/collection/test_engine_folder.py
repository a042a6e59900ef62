"""What the collection keeps of a run: limits, what hosts print, and why they have failed."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

MODULE = "ansible_collections.netprobe.preflight.plugins.plugin_utils.engine_folder"
LIMITS = {"start": 45, "start-runtime": 90, "go": 30, "wait": 80, "collect": 40, "stop": 30}


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    """The folder of a run of ten hosts, as the collection opens it."""
    return _open_folder(tmp_path)


def _open_folder(path: Path, number: int = 1, count: int = 10) -> Any:
    hosts = {f"h{n}": {"word": f"h{n}", "results": f"results/h{n}.npr"} for n in range(count)}
    engine = {
        "round": number, "hosts": hosts, "commands": {"go": "sh go"}, "last": "stop",
        "early": "halt", "limits": LIMITS, "most_bytes": 1000,
        "instead": {"start": {"97": "start-runtime"}},
    }  # fmt: skip
    (path / "results").mkdir(exist_ok=True)
    (path / "engine.json").write_text(json.dumps(engine))
    opened: Any = import_module(MODULE).EngineFolder(str(path))
    opened.keep_first()
    return opened


def test_a_hosts_silence_is_as_long_as_the_play_may_take(tmp_path: Path) -> None:
    """Until the slowest host has done its step, or its turn comes; half an hour at most."""
    folder = _open_folder(tmp_path)
    at_once, in_turns = folder.silence_s("start", 10), folder.silence_s("start", 5)

    assert LIMITS["start"] < at_once < 90
    assert in_turns > 2 * (LIMITS["start"] + LIMITS["go"])
    assert folder.silence_s("wait", 10) > LIMITS["wait"]
    rest = sum(LIMITS[step] for step in ("start", "go", "wait", "collect"))
    assert folder.silence_s("collect", 10) > 2 * rest
    assert _open_folder(tmp_path, count=5000).silence_s("go", 5) == 1800
    assert folder.command("h3", "go", 75) == "sh go h3 75"


def test_a_start_that_brings_a_python_has_time_for_both(folder: Any) -> None:
    """Where a step may be followed by another one in its place."""
    assert folder.limit_s("start") == 135
    assert folder.limit_s("go") == 30


def test_bytes_that_are_no_text_are_kept_as_they_are(folder: Any, tmp_path: Path) -> None:
    """A banner in Latin-1 is no reason to lose a host."""
    printed = b"Willkommen auf N\xfcrnberg\nNPR1 0 x y\n"
    folder.add_answer("h1", printed.decode("utf-8", "surrogateescape"))
    folder.add_error("h1", printed.decode("utf-8", "surrogateescape") * 100_000)

    assert (tmp_path / "results" / "h1.npr").read_bytes() == printed
    assert folder.error("h1").startswith("Willkommen auf N")
    assert len(folder.error("h1")) == 1000


def test_nobody_is_ended_twice_or_for_nothing(folder: Any) -> None:
    """What was begun and not ended may go on; not where the start failed."""
    for host in ("h1", "h2", "h3", "h4"):
        folder.add_mark(host, "begun")
    folder.add_mark("h2", "ended")
    folder.add_error("h3", "unreachable")
    folder.add_answer("h4", "NPR1 0 x y")
    folder.add_error("h4", "wait took longer than 80 s")

    assert [f"h{n}" for n in range(10) if folder.may_go_on(f"h{n}")] == ["h1", "h4"]
