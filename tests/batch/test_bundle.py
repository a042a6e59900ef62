"""Bundles as files: the same for equal requests, and read again by who merges."""

from __future__ import annotations

import glob
import shutil
import subprocess
from pathlib import Path

import pytest

from netprobe.batch.bundle import bring_runtime, open_bundle, pack_bundle
from netprobe.batch.script import HostScript
from netprobe.errors import RequestError
from tests.agent.batch.carried import RUN, bundle_of, read, script
from tests.agent.interpreters import PYTHON_2
from tests.batch.support import FOUND, outcomes_of, phases, start
from tests.needs import skip
from tests.ports import free_port
from tests.vantage.runtime.support import leftovers, session_runtime, take_own_prefix


def test_equal_requests_make_equal_bundles() -> None:
    """Whatever the day, and in whatever order the hosts come."""
    scripts = [HostScript(start(host), phases(80)) for host in (3, 4)]
    made = pack_bundle({"run": "7f"}, scripts, b"plan")
    assert made == pack_bundle({"run": "7f"}, scripts[::-1], b"plan")
    assert made.startswith(b"#!/usr/bin/env python3\n")


@pytest.mark.slow
def test_a_thousand_hosts_are_a_small_file() -> None:
    """The table and the scripts are packed; the agent is there once."""
    scripts = [
        HostScript(start()._replace(host=number, name=f"node-{number}"), phases(80))
        for number in range(1000)
    ]
    assert len(pack_bundle({}, scripts, b"")) < 900_000


def test_a_bundle_is_opened_again(tmp_path: Path) -> None:
    """Its header and its plan are as they were put in; what is none is refused by name."""
    path = bundle_of(tmp_path, script([]))
    opened = open_bundle(path)
    assert (opened.header, opened.plan) == ({"run": RUN}, b"the plan")
    path.write_bytes(path.read_bytes()[:-30])
    for wrong, words in ((path, "is no bundle"), (tmp_path / "gone", "there is no such file")):
        with pytest.raises(RequestError, match=words) as caught:
            open_bundle(wrong)
        assert str(wrong) in str(caught.value)


def test_an_old_python_is_told_what_it_is(tmp_path: Path) -> None:
    """Python 2 can read so much of a bundle."""
    old = [path for place in PYTHON_2 for path in glob.glob(place)]
    if not old:
        skip("no Python 2.7", f"one in {' or '.join(PYTHON_2)}")
    done = subprocess.run(
        [old[0], bundle_of(tmp_path, script([]))], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "netprobe: needs Python 3.6 or later; this is 2.7\n"


@pytest.mark.slow
def test_a_bundle_brings_its_own_python(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell script for hosts that have none; for who merges it is a bundle like others."""
    take_own_prefix(monkeypatch)
    port = free_port()
    packed = bundle_of(tmp_path, script(phases(port))).read_bytes()
    path = tmp_path / "run.sh"
    path.write_bytes(bring_runtime(packed, session_runtime(tmp_path_factory)))
    (tmp_path / "bin").mkdir()
    for name in ("sh", "dd", "gzip", "tar", "chmod", "mkdir", "rm", "uname"):
        program = shutil.which(name)
        assert program is not None
        (tmp_path / "bin" / name).symlink_to(program)
    done = subprocess.run(
        ["sh", path, "--out", tmp_path], capture_output=True, text=True, check=False,
        env={"PATH": f"{tmp_path}/bin"},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(f"netprobe {RUN}, round 1, node-1: 3 flows asked, 2 answered")
    assert outcomes_of(read(path)) == FOUND
    assert open_bundle(path).plan == b"the plan"
    assert leftovers() == []
