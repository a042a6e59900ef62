"""The shell text before a release's file, and what stops a release."""

from __future__ import annotations

import gzip
import os
import subprocess
from pathlib import Path

import pytest

from release.dist import run_steps
from release.onefile import put_head
from release.places import ARCHES, VERSION, ReleaseError
from tests.release.roots import make_small_file

REFUSED = 4


def test_another_machine(tmp_path: Path) -> None:
    """On another kind of machine one line names both, and the file to take where there is one: exit
    status 4, and nothing is unpacked."""
    _, arm = ARCHES
    path = tmp_path / "netprobe.run"
    path.write_bytes(put_head(arm, gzip.compress(b""), 0))
    uname = tmp_path / "bin/uname"
    uname.parent.mkdir()
    for machine, advice in (
        ("x86_64", f"take netprobe-{VERSION}-x86_64.run"),
        ("ppc64le", "there are files for x86_64 and aarch64"),
    ):
        uname.write_text(f"#!/bin/sh\necho {machine}\n")
        uname.chmod(0o755)
        home = {"HOME": str(tmp_path), "PATH": f"{uname.parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["sh", path, "--version"], env=home, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (REFUSED, "")
        line = f"netprobe: this file is for aarch64, this machine is {machine}: {advice}\n"
        assert done.stderr == line
        assert not (tmp_path / ".cache").exists()


def test_a_release_ends_with_the_first_file_that_cannot_be_built() -> None:
    """The error names it, and nothing after it is built."""
    built: list[str] = []

    def fail() -> None:
        raise ReleaseError("the file has 31 bytes")

    steps = (("a", lambda: built.append("a")), ("b", fail), ("c", lambda: built.append("c")))
    with pytest.raises(ReleaseError, match=r"b: FAILED, the file has 31 bytes; nothing after"):
        run_steps(steps)
    assert built == ["a"]


def test_a_plugin_of_kubectl_is_the_part_about_clusters(tmp_path: Path) -> None:
    """By the name of the file, or of a link to it; its version is that of all."""
    file, plugin = make_small_file(tmp_path), tmp_path / "kubectl-netprobe"
    plugin.symlink_to(file)
    variables = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    for path, said in ((file, "-m netprobe clean"), (plugin, "-m netprobe cluster clean")):
        for words, expected in (("clean", said), ("--version", f"netprobe {VERSION}")):
            done = subprocess.run(
                ["sh", path, words], env=variables, capture_output=True, text=True, check=False
            )
            assert (done.stdout.strip(), done.stderr) == (expected, "")
